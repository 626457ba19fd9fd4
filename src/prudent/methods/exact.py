"""The exact method: optimal CVaR of the total cost first, least expected cost second.

With b the budget left, U(s, b) the least expected excess E[(C - b)+] and V the least expected cost:

    U(goal, b) = max(-b, 0)
    U(s, b)    = V(s) - b                                            for b <= 0
    U(s, b)    = min over a of  sum over outcomes of  p U(s', b - c)  for b > 0
    f(w)       = w + U(start, w) / alpha,      optimal CVaR = min over w of f(w).

Costs are whole levels, so f is concave between levels and its minimum lies on one: nothing is interpolated.
f(w) >= w, so the sweep over rising budgets stops at the first budget above the best f found: no bound is
asked from anyone.  With A*(s, b) the actions that attain U(s, b), the second objective is

    M(s, b) = min over a in A*(s, b) of  sum over outcomes of  p (c + M(s', b - c)),     M(s, b) = V(s) for b <= 0

and the plan starts from the w with least M(start, w) among those that attain min f.  Where b >= V_worst(s),
U is 0 and A* is decided in whole numbers; elsewhere actions within a relative tolerance of the minimum tie.

*Guarantee.*  Beside U goes what is surely below it, from a lower bound on V: in tiles U less a factor for all that
rounding can do, level by level a table that is rounded down at every step; ``lower`` = min over w of f taken from it
holds in exact arithmetic.  ``upper`` is the returned policy's own CVaR, rounded up: from the sweep itself in a model
without cycles, where what ties lost is measured, else from following the policy, or from its values backwards.  What
the tie tolerance cost, if anything, is their difference.

*Rounded costs.*  The policy is planned on costs rounded up and charges itself those, while true costs accrue: so
its true excess is at most its excess as charged.  With costs rounded down the same recursion is below the excess of
every policy.  Both start from V of the costs that are not rounded.  Hence

    f of costs rounded down <= optimal CVaR <= the policy's own CVaR <= its CVaR as charged.

Since the true V meets rounded costs there, the first f falls by a jump right after each level and is concave from
there to the next: its infimum over all w is the least of its limits from the right.

*Stopped early*, after the budgets below B: f(w) >= w >= B for all others, so min(min f, B) is still a lower bound, and
the best policy so far a policy.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from prudent.engine.prepare import prepare
from prudent.engine.prepared import Prepared
from prudent.engine.sweep.driver import BOTH, BOUND, EXCESS, PLAN, TIE, Swept, budget_sweep
from prudent.engine.sweep.tile_layout import clear_waste
from prudent.engine.values.bellman import UNIT, path_rounding
from prudent.engine.values.expected_cost import Expected, least_expected_cost, proper_choice
from prudent.engine.values.worst_case import UNREACHED, WorstCase, least_worst_case, true_worst_case
from prudent.errors import TooLarge
from prudent.kernels.sweep import Base, Terms
from prudent.methods.solution import Solution
from prudent.models.rows import BoolArray, FloatArray
from prudent.policies.chain import MISSING, Values, backward, backward_from_each, forward_counting
from prudent.policies.distribution import Distribution, mixture
from prudent.policies.policy import BudgetPolicy, MixedPolicy
from prudent.runtime.limits import Limits

__all__ = [
    "SECOND",
    "UNFOLLOWED",
    "Explored",
    "exact",
    "explore",
    "reached",
    "solution_for",
    "surely_above",
    "surely_expected",
    "without_safety",
]

SECOND = 1e-9
"""Relative margin for the rounding of M, the second objective, in its lower bound; and what sums along a run may err
before they are taken backwards, state by state."""

UNFOLLOWED = "the policy is too large to be followed: for what is unknown of it, simulate it"


@dataclass(frozen=True)
class Explored:
    """What the sweeps found: enough for an alpha, and for every larger one."""

    prepared: Prepared
    expected: Expected
    swept: Swept
    low: FloatArray  # (n_levels,)  what the least excess surely is at least, for the budgets from 0 up
    least: float  # what the least expected cost surely is at least
    stopped: str  # why it ended early, if it did

    def lower(self, alpha: float) -> float:
        """Return what the optimal CVaR surely is at least."""
        f = float((np.arange(len(self.low)) + self.low / alpha).min(initial=np.inf)) * (1 - 4 * UNIT)
        return max(min(f, len(self.low)) if self.stopped else f, self.least)

    def budgets(self, alpha: float) -> tuple[int, BoolArray]:
        """Return the budget of least mean among those that attain the optimal CVaR, and which ones do."""
        excess = self.swept.excess / alpha
        f = np.arange(len(excess)) + excess
        best = int(np.argmin(f))
        attains = f <= f[best] + 4 * TIE * (excess + excess[best]) + 8 * UNIT * f[best]
        mean = np.where(attains, self.swept.mean, np.inf)
        return int(np.argmax(mean <= mean.min() * (1 + TIE))), attains

    @cached_property
    def values(self) -> FloatArray:
        """The expected excess, what it is at most, and the expected cost of the policy that starts with each budget."""
        swept = self.swept
        if np.isnan(swept.lost):
            return backward_from_each(BudgetPolicy(self.prepared, swept.choice), self.expected)
        whole = self.expected.value > 0
        more = float((self.expected.upper[whole] / self.expected.value[whole]).max(initial=1.0))
        return np.stack([swept.excess, swept.excess * (more * (1 + swept.lost)), swept.mean])

    def values_of(self, policy: BudgetPolicy) -> Values:
        """Return the same for the policy of one budget: it is evaluated only where the sweep does not have them."""
        if np.isnan(self.swept.lost):
            return backward(policy, self.expected)
        return Values(*self.values[:, policy.level].tolist())

    def policy(self, budget: int, *, last: bool = False) -> BudgetPolicy:
        """Return the policy that starts with a budget; where no run of it can be, the action is the first.

        The last one to be asked for may have the sweep's own table.
        """
        choice = self.swept.choice[: budget + 1]
        choice = choice if last else choice.copy()
        clear_waste(self.prepared, choice)
        return BudgetPolicy(self.prepared, choice)


def exact(prepared: Prepared, alpha: float, limits: Limits, *, bounded: bool = True) -> Solution:
    """Return a policy of optimal CVaR and, among those, least expected cost.

    With ``bounded`` false and rounded costs the lower bound is left out.
    """
    with limits:  # Ctrl-C lets what is done be evaluated
        return solution_for(explore(prepared, alpha, limits, bounded=bounded), alpha, last=True)


def explore(prepared: Prepared, alpha: float, limits: Limits, *, bounded: bool = True) -> Explored:
    """Sweep the budgets as far as alpha needs it."""
    expected, worst = least_expected_cost(prepared), least_worst_case(prepared)
    least, low, stopped = surely_expected(prepared, expected), np.zeros(1), ""
    base = Base(expected.value, expected.lower, expected.value)
    if prepared.scale.rounded and bounded:
        low, stopped = surely_above(prepared, expected, limits, alpha=alpha)
        if stopped:  # what follows is only for an answer; that sweep's place is the one to go on from
            limits = replace(limits, keeper=None)
    aims = PLAN if prepared.scale.rounded else BOTH
    swept = budget_sweep(prepared, base, expected.choice, worst, limits, alpha=alpha, aims=aims)
    if not prepared.scale.rounded:
        low = swept.low
    return Explored(prepared, expected, swept, low, float(least[prepared.start]), swept.stopped or stopped)


def solution_for(explored: Explored, alpha: float, *, last: bool = False) -> Solution:
    """Return the best policy for an alpha, evaluated; ``last``: the sweep is for nothing else."""
    prepared, expected, stopped = explored.prepared, explored.expected, explored.stopped
    w, attains = explored.budgets(alpha)
    lower, policy = explored.lower(alpha), explored.policy(w, last=last)
    exact_costs = not prepared.scale.rounded and (prepared.scale.deviation == 0 or prepared.finite)
    if exact_costs and not stopped and not np.isnan(explored.swept.lost) and alpha < 1 and not attains[:w].any():
        # The sweep has all numbers, and VaR is the least budget that is best for the policy itself.
        excess, above, mean = explored.values[:, w].tolist()
        var = prepared.scale.total(w)
        own = Own(var, w + excess / alpha, mean, (w + above / alpha) * (1 + 4 * UNIT), np.nan, 0.0)
    else:
        own = reached(policy, expected, w + float(explored.swept.excess[w]) * (1 + TIE) / alpha, alpha)
    cvar, mean, upper = own.cvar, own.mean, own.upper
    if own.notes or own.slip > SECOND:  # too large to be followed, or runs so long that sums err
        values = explored.values_of(policy)
        upper = min(upper, (w + values.above / alpha) * (1 + 4 * UNIT))
        cvar, mean = min(cvar, w + values.excess / alpha), values.mean
    if prepared.scale.rounded or stopped:  # only the best of all budgets is surely the best for its own policy, too
        cvar = np.nan if own.notes else max(cvar, lower)
    complete = not (stopped or prepared.scale.rounded)
    second = float(explored.swept.mean[attains].min()) * (1 - SECOND)
    return Solution(
        policy=policy,
        var=own.var,
        cvar=cvar,
        expected=mean,
        expected_lower=second if complete else explored.least,
        lower=lower,
        upper=upper,
        worst=true_worst_case(prepared),
        steps=own.steps,
        stopped=stopped,
        notes=own.notes,
    )


@dataclass(frozen=True)
class Own:
    """A policy's own tail, from its distribution."""

    var: float  # in the user's units; not a number if it is not known
    cvar: float  # in levels; infinite if it is not known, from below where costs are rounded
    mean: float  # in levels
    upper: float  # what its CVaR surely is at most
    steps: float  # at least the expected number of actions
    slip: float  # the relative error allowed for in the upper bound
    notes: tuple[str, ...] = ()


def reached(policy: BudgetPolicy, tail: Expected, most: float | None, alpha: float, tolerance: float = MISSING) -> Own:
    """Follow a policy as far as ``most``, which its CVaR is at most, if that is known; VaR is never above that.

    Or until no more than ``tolerance`` of its runs are under way.  Sums along a run err with its length.
    """
    prepared = policy.prepared
    most = None if most is None else int(min(most, UNREACHED)) + 2
    parts = policy.parts if isinstance(policy, MixedPolicy) else ((1.0, policy),)

    def followed(charged: bool) -> tuple[Distribution, float]:
        each = [(share, *forward_counting(part, tail, most, tolerance, charged, True)) for share, part in parts]
        whole = mixture([(share, found) for share, found, _ in each]) if len(each) > 1 else each[0][1]
        return whole, sum(share * steps for share, _, steps in each)

    try:
        found, steps = followed(charged=False)
        charged = followed(charged=True)[0] if prepared.scale.rounded else found
    except TooLarge:
        return Own(np.nan, np.inf, np.nan, np.inf, np.nan, np.inf, (UNFOLLOWED,))
    slip = path_rounding(prepared, tail.steps) + charged.missing / alpha * float((tail.upper - tail.value).max())
    upper, level = charged.cvar(alpha) * (1 + slip), found.var(alpha)
    if most is not None and np.isinf(upper):  # it was not: whoever kept the values lied
        return reached(policy, tail, None, alpha)
    var = prepared.scale.in_units(level) if prepared.scale.rounded else prepared.scale.total(int(level))
    return Own(var, min(found.cvar(alpha), upper), found.mean, upper, steps, slip)


def surely_expected(prepared: Prepared, expected: Expected) -> FloatArray:
    """Return what the least expected cost surely is at least, where a lattice holds costs only closely too."""
    if prepared.scale.slip == 0:
        return expected.lower
    return least_expected_cost(replace(prepared, fine=prepared.scale.surely(prepared.fine))).lower


def surely_above(
    prepared: Prepared,
    expected: Expected,
    limits: Limits,
    *,
    alpha: float | None = None,
    most: int = UNREACHED,
    terms: Terms = EXCESS,
    beyond: float | None = None,
) -> tuple[FloatArray, str]:
    """Sweep costs rounded down, to where no larger budget can be optimal for alpha, or to ``most``.

    Without budget the first objective is made of the terms and V, unless it is ``beyond``, whatever the state.
    Return what the first objective surely is at least, for the budgets from 0 up, and why it was stopped, if it was.
    """
    down, least = prepare(prepared.model, prepared.scale.step, down=True), surely_expected(prepared, expected)
    # Rounded down, more states lie on free cycles and count as one: it has the least of its members' values.
    low = np.full(down.n_states, np.inf)
    known = prepared.members.state_of >= 0
    np.minimum.at(low, down.members.state_of[known], least[prepared.members.state_of[known]])
    low[down.start] = min(low[down.start], least[prepared.start])
    # Limits from the right: row b stands for a budget just above b - 1, which is gone only at b charged.
    low = ((terms.accrual + terms.slope) * low + terms.slope) * (1 - 4 * UNIT)
    if beyond is not None:
        low = np.full(down.n_states, beyond)
    worst = least_worst_case(down)
    worst = WorstCase(np.minimum(worst.value + 1, UNREACHED), np.minimum(worst.action_value + 1, UNREACHED))
    if terms.accrual > 0:
        worst = without_safety(down)
    base = Base(low, low, low)
    swept = budget_sweep(
        down, base, proper_choice(down), worst, limits, alpha=alpha, most=most, aims=BOUND, terms=terms
    )
    return swept.low[1:], swept.stopped


def without_safety(prepared: Prepared) -> WorstCase:
    """Return a worst case for objectives in which costs count before the budget is gone, too: only goals are safe."""
    value = np.where(np.diff(prepared.action_start) > 0, UNREACHED, 0)
    return WorstCase(value, np.full(prepared.n_actions, UNREACHED))
