"""The exact method: optimal CVaR of the total cost first, lowest expected cost second.

The documentation proves what is said here (``docs/how_it_works.md``).  With b the remaining budget, U(s, b) the least
expected excess E[(C - b)+] and V the least expected cost:

    U(goal, b) = max(-b, 0)
    U(s, b)    = V(s) - b                                            for b <= 0
    U(s, b)    = min over a of  sum over outcomes of  p U(s', b - c)  for b > 0
    f(w)       = w + U(start, w) / alpha,      optimal CVaR = min over w of f(w).

The minimum of f lies on a level, and f(w) >= w, so the sweep over rising budgets stops at the first budget above the
best f found.  With A*(s, b) the actions that attain U(s, b), the second objective is

    M(s, b) = min over a in A*(s, b) of  sum over outcomes of  p (c + M(s', b - c)),     M(s, b) = V(s) for b <= 0

and the plan starts from the w with least M(start, w) among those that attain min f.

*Guarantee.*  The sweep also carries a lower bound on U: U less a factor for all rounding errors or, if that factor is
too large, a table of its own, rounded down at every step.  ``lower``, the minimum of f for that bound, holds in exact
arithmetic.  ``upper`` is the returned policy's own CVaR, rounded up: from the sweep, if that measures the loss by ties,
else from the policy's distribution or backward evaluation.  The difference bounds the cost of the tie tolerance.

*Rounded costs.*  The policy is planned on costs rounded up and charges itself those, while true costs accrue.  Its own
CVaR is bounded by the moments of what rounding left out (:class:`~prudent.policies.distribution.Groups`), the excess of
every policy by costs between levels (:mod:`prudent.kernels.between`); both start from V of costs that are not rounded.

*Focus.*  With bounds from a coarse step the sweep covers only what can matter (:mod:`prudent.engine.sweep.focus`).

*Stopped early*, after the budgets below B: f(w) >= w >= B for all others, so min(min f, B) is still a lower bound, and
the CVaR of the best policy so far still an upper one.
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from prudent.engine.prepared import Prepared
from prudent.engine.sweep.bounded import bounded_sweep
from prudent.engine.sweep.focus import Focus, focused_sweep
from prudent.engine.sweep.question import TIE, Question
from prudent.engine.sweep.task import Swept
from prudent.engine.sweep.tile_layout import clear_waste
from prudent.engine.values.bellman import UNIT
from prudent.engine.values.expected_cost import Expected, least_expected_cost, range_of, surely_expected
from prudent.engine.values.worst_case import UNREACHED, least_worst_case, true_worst_case
from prudent.methods.solution import Nominal, Solution
from prudent.models.rows import BoolArray, FloatArray
from prudent.policies.chain import Values, backward, backward_from_each, expected_steps
from prudent.policies.own_tail import UNKNOWN, OwnTail, own_tail
from prudent.policies.policy import BudgetPolicy
from prudent.runtime.limits import UNLIMITED, Limits, Stopped

SECOND = 1e-9
"""Relative margin for rounding errors in the lower bound on M, the second objective.  Also the relative error of sums
along a run beyond which the policy is evaluated backwards, state by state."""


@dataclass(frozen=True)
class Explored:
    """The result of the sweeps for a plan and a lower bound: enough for one alpha and every larger one."""

    prepared: Prepared
    swept: Swept
    least: float  # a lower bound on the least expected cost
    expected: Expected

    @property
    def margin(self) -> float | FloatArray:
        """The relative margin for rounding errors in the lower bound on M."""
        return SECOND

    @property
    def stopped(self) -> str:
        """Why it ended early, if it did."""
        return self.swept.stopped

    def finished(self, what: str) -> Self:
        """Return this, where it is of no use unfinished: raise Stopped, with ``what`` it was for, if it ended early."""
        if self.stopped:
            raise Stopped(self.stopped, what)
        return self

    def budgets(self, alpha: float) -> tuple[int, BoolArray]:
        """Return the budget of lowest expected cost among those that attain the optimal CVaR, and a mask of them."""
        excess = self.swept.excess / alpha
        f = np.arange(len(excess)) + excess
        best = int(np.argmin(f))
        attains = np.isfinite(f) & (f <= f[best] + 4 * TIE * (excess + excess[best]) + 8 * UNIT * f[best])
        mean = np.where(attains, self.swept.mean, np.inf)
        return int(np.argmax(mean <= mean.min() * (1 + TIE))), attains

    def lower(self, alpha: float) -> float:
        """Return a certified lower bound on the optimal CVaR."""
        low = self.swept.low
        reached = len(low) - 1 if self.prepared.scale.rounded else len(low)  # the first budget that is not swept
        return max(self._least(low, alpha, reached), self.least)

    def _least(self, low: FloatArray, alpha: float, reached: int) -> float:
        """Return a lower bound on f, given one on U by budget; if stopped, only below ``reached``."""
        least = float((np.arange(len(low)) + low / alpha).min(initial=np.inf)) * (1 - 4 * UNIT)
        return min(least, reached) if self.stopped else least

    @cached_property
    def values(self) -> FloatArray:
        """The expected excess, its upper bound and the expected cost of the policy that starts with each budget."""
        swept = self.swept
        if not swept.measured:
            return backward_from_each(BudgetPolicy.of_rows(self.prepared, swept.choice), self.expected)
        _, more = range_of(self.expected.upper, self.expected.value)
        above = np.multiply(
            swept.excess, more * (1 + swept.lost), out=np.zeros(len(swept.excess)), where=swept.excess > 0
        )
        return np.stack([swept.excess, above, swept.mean])

    def values_of(self, policy: BudgetPolicy, limits: Limits = UNLIMITED) -> Values:
        """Return these values for the policy of one budget; evaluate it only if the sweep does not have them."""
        if not self.swept.measured:
            return backward(policy, self.expected, limits)
        return Values(*self.values[:, policy.level].tolist())

    def steps(self, w: int) -> float:
        """Return a bound on the expected number of actions of the policy that starts with a budget; 0 if not needed."""
        return 0.0 if np.isfinite(self.prepared.scale.relative) else float(self._steps[w])

    @cached_property
    def _steps(self) -> FloatArray:
        return expected_steps(self.policy(len(self.swept.excess) - 1))

    def policy(self, budget: int, *, last: bool = False) -> BudgetPolicy:
        """Return the policy that starts with a budget; where no run can be, it plays the first action.

        With ``last`` it takes over the sweep's own table instead of a copy: no other policy may be requested later.
        """
        if self.swept.focused is not None:
            most = budget - self.prepared.least_spent  # that a run can have left in each state
            high = np.minimum(self.swept.focused.high, most)
            return BudgetPolicy(self.prepared, self.swept.focused._replace(high=high), budget)
        choice = self.swept.choice[: budget + 1]
        choice = choice if last else choice.copy()
        clear_waste(self.prepared, choice)
        return BudgetPolicy.of_rows(self.prepared, choice)

    def at(self, alpha: float, w: int, *, first: bool, limits: Limits = UNLIMITED) -> OwnTail:
        """Return the numbers of the policy that starts with a budget; ``first``: whether that is its VaR at alpha.

        It is evaluated only for what the sweep does not say.
        """
        scale = self.prepared.scale
        excess, above, mean = self.values[:, w].tolist()
        cvar, upper = w + excess / alpha, (w + above / alpha) * (1 + 4 * UNIT)
        if first and not scale.rounded:
            return OwnTail(scale.total(w), cvar, mean, upper, np.nan, 0.0)
        own = own_tail(self.policy(w), self.expected, cvar, alpha, limits=limits)
        if scale.rounded:  # charged more than its true cost
            cvar = np.nan if own.notes else max(min(own.cvar, cvar), self.lower(alpha))
            upper = min(own.upper, upper)
        return replace(own, cvar=cvar, mean=mean, upper=upper)

    def in_model(self, alpha: float, w: int, limits: Limits = UNLIMITED) -> tuple[Nominal | None, tuple[str, ...]]:
        """Return the policy's numbers in the model itself, where others are for the worst of a set; and notes."""
        return None, ()

    def solution(self, alpha: float, *, last: bool = False, limits: Limits = UNLIMITED) -> Solution:
        """Return the best policy for an alpha, evaluated within the limits; with ``last`` this is not used again."""
        w, attains = self.budgets(alpha)
        nominal, notes = self.in_model(alpha, w, limits)
        policy, rounded = self.policy(w, last=last), self.prepared.scale.rounded
        own, stopped = self._own(alpha, policy, alpha < 1 and not attains[:w].any(), limits)
        second = float((self.swept.mean * (1 - self.margin))[attains].min())
        return Solution(
            policy=policy,
            var=own.var,
            cvar=own.cvar,
            expected=own.mean,
            expected_lower=min(self.least, own.upper) if stopped or rounded else second,
            lower=self.lower(alpha),
            upper=own.upper,
            worst=true_worst_case(self.prepared, limits),
            steps=own.steps,
            stopped=stopped,
            notes=(*own.notes, *notes),
            nominal=nominal,
        )

    def _own(self, alpha: float, policy: BudgetPolicy, first: bool, limits: Limits) -> tuple[OwnTail, str]:
        """Return a policy's numbers, evaluated if the sweep does not have all of them, and why that stopped early."""
        prepared, swept, stopped, w = self.prepared, self.swept, self.stopped, policy.level
        exact_costs = not prepared.scale.rounded and (np.isfinite(prepared.scale.relative) or prepared.finite)
        if exact_costs and not stopped and swept.measured and first:
            return self.at(alpha, w, first=True), stopped
        most = w + float(swept.excess[w]) * (1 + TIE) / alpha
        own = UNKNOWN
        with suppress(Stopped):
            own = own_tail(policy, self.expected, most, alpha, limits=limits)
        if own is UNKNOWN:
            stopped = stopped or limits.stop
        cvar, mean, upper = own.cvar, own.mean, own.upper
        if own.notes or own.error > SECOND:  # the policy is too large to evaluate, or errors add up over its long runs
            values = Values(float(swept.excess[w]), np.inf, float(swept.mean[w]))
            with suppress(Stopped):
                values = self.values_of(policy, limits)
            upper = min(upper, (w + values.above / alpha) * (1 + 4 * UNIT))
            cvar, mean = min(cvar, w + values.excess / alpha), values.mean
        if prepared.scale.rounded or stopped:  # then w need not be the best budget for its own policy
            cvar = np.nan if own.notes else max(cvar, self.lower(alpha))
        return replace(own, cvar=cvar, mean=mean, upper=upper), stopped


def exact(
    prepared: Prepared, alpha: float, limits: Limits, *, bounded: bool = True, focus: Focus | None = None
) -> Solution:
    """Return a policy of optimal CVaR and, among those, lowest expected cost.

    If ``bounded`` is false and costs are rounded, the lower bound is left out.  With a ``focus`` only that is swept.
    """
    with limits:  # after Ctrl-C, evaluate what was swept
        explored = explore(prepared, alpha, limits, bounded=bounded, focus=focus)
        return explored.solution(alpha, last=True, limits=limits.for_the_rest)


def explore(
    prepared: Prepared,
    alpha: float,
    limits: Limits,
    *,
    bounded: bool = True,
    focus: Focus | None = None,
    most: int = UNREACHED,
) -> Explored:
    """Sweep the budgets as far as alpha requires, up to ``most``."""
    expected, worst = least_expected_cost(prepared, limits), least_worst_case(prepared, limits)
    if focus is None:
        question = Question(expected.base, expected.choice, worst)
        swept = bounded_sweep(prepared, question, limits, alpha=alpha, most=most, bounded=bounded)
    else:
        swept = focused_sweep(prepared, expected, worst, focus, limits)
    return Explored(prepared, swept, float(surely_expected(prepared, limits)[prepared.start]), expected)
