"""The exact method against nature: minimal worst-case CVaR first, lowest worst-case expected cost second.

Nature chooses the probabilities of each action from their intervals, anew at every visit and knowing the history.  With
b the remaining budget, U(s, b) the least worst-case expected excess and V the least worst-case expected cost:

    U(s, b)    = V(s) - b                                                              for b <= 0
    U(s, b)    = min over a of  max over p of  sum over outcomes of  p U(s', b - c)    for b > 0
    f(w)       = w + U(start, w) / alpha,      least worst-case CVaR = min over w of f(w).

For a fixed policy the distributions of the cost that nature can cause form a convex set, and w + E[(C - w)+] / alpha is
convex in w and linear in the distribution.  So the maximum over nature and the minimum over w can be exchanged.

*Upper bound.*  The least f at a level, which the returned policy attains, holds for every model in the set.

*Lower bound.*  Because of the maximum, f is no longer concave between levels.  But for fixed choices of nature it is,
so there it is at least the smaller of the values at both ends.  For budgets between w - 1 and w, fix nature's worst
choices at w, wherever that many levels are left.  At w the value is U itself; at w - 1 it comes from a second table,
swept together with U.  The least of these over all w is a lower bound.  The two bounds meet if nature's choices do not
change from one level to the next, and always for intervals of width 0.

*Rounded costs.*  The policy is planned on costs rounded up, so the upper bound holds.  The lower bound is that of costs
rounded down until the budget is used up, and true costs afterwards: no run costs more than before, whatever is played
and whatever nature does.  Row b of that sweep stands for budgets above b - 1, down to their limit, which is what the
second table has.  Both bounds are off by about a step for each action of a run.

*The model itself* gives another lower bound, since its probabilities are among nature's choices.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from prudent.engine.prepare import prepare
from prudent.engine.prepared import Prepared
from prudent.engine.sweep.against_nature import robust_sweep
from prudent.engine.sweep.nature_layout import error_of, shared
from prudent.engine.uncertain import Uncertain, uncertain
from prudent.engine.values.bellman import UNIT
from prudent.engine.values.robust_cost import WorstMean, worst_expected_cost
from prudent.engine.values.worst_case import true_worst_case
from prudent.methods.exact import ByBudget, Explored, least_objective
from prudent.methods.solution import Nominal, Solution
from prudent.models.intervals import Intervals
from prudent.policies.chain import spent_budget
from prudent.policies.own_tail import own_tail
from prudent.policies.policy import BudgetPolicy
from prudent.runtime.limits import UNLIMITED, Limits


@dataclass(frozen=True)
class RobustExplored(ByBudget):
    """The result of the sweep against nature; its excess and mean are the policies' worst-case ones."""

    model: Uncertain
    worst: WorstMean
    nominal: Explored | None = None  # of the model itself, if that was explored, too
    beneath: "RobustExplored | None" = None  # of costs rounded down, if costs are rounded

    @property
    def error(self) -> float:
        """The relative error of the sweep's values."""
        return error_of(self.model, len(self.swept.excess))

    def lower(self, alpha: float) -> float:
        """Return a lower bound on the minimal worst-case CVaR."""
        known = 0.0 if self.nominal is None else self.nominal.lower(alpha)
        if self.beneath is not None:
            return max(known, self.beneath.lower(alpha))
        below = self.swept.low[1:] * (1 - self.error)
        reached = len(below) if self.stopped else np.inf
        return max(known, least_objective(below, alpha, reached), self.least)

    def upper(self, w: int, alpha: float) -> float:
        """Return an upper bound on the worst-case CVaR of the policy that starts with a budget."""
        return (w + float(self.swept.excess[w]) * (1 + self.error) / alpha) * (1 + 4 * UNIT)

    def policy(self, budget: int) -> BudgetPolicy:
        """Return the policy that starts with a budget."""
        return BudgetPolicy.of_rows(self.prepared, self.swept.choice[: budget + 1].copy())

    def steps(self, w: int) -> float:
        """Return a bound on the expected number of actions: until the budget is spent, and afterwards."""
        prepared, sets = self.prepared, self.model.sets
        away = np.maximum(1 - sets.loop_high, np.add.reduceat(sets.low, sets.outcome_start[:-1]))
        plays = float((1 / away).max(initial=1.0))
        if prepared.finite:
            return prepared.longest * plays
        return float((w + 1) * (prepared.free_depth.max(initial=0) + 1) * plays + self.worst.steps * plays)

    def own(self, policy: BudgetPolicy, alpha: float, limits: Limits = UNLIMITED) -> tuple[Nominal, tuple[str, ...]]:
        """Return a policy's numbers in the model itself, in levels except for VaR, and notes on unknown ones."""
        own = own_tail(policy, spent_budget(policy, limits), self.upper(policy.level, alpha), alpha, limits=limits)
        return Nominal(own.cvar if not own.notes else np.nan, own.var, own.mean), own.notes

    def solution(self, alpha: float, limits: Limits = UNLIMITED) -> Solution:
        """Return the best policy for an alpha."""
        prepared, swept = self.prepared, self.swept
        w, attains = self.budgets(alpha)
        policy, upper = self.policy(w), self.upper(w, alpha)
        lower = self.lower(alpha)
        nominal, notes = self.own(policy, alpha, limits)
        complete = not (self.stopped or prepared.scale.rounded)
        return Solution(
            policy=policy,
            var=prepared.scale.total(w),
            cvar=min(max(w + float(swept.excess[w]) / alpha, lower), upper),
            expected=float(swept.mean[w]),
            expected_lower=float(swept.mean[attains].min()) * (1 - self.error) if complete else min(self.least, upper),
            lower=min(lower, upper),
            upper=upper,
            worst=true_worst_case(prepared, limits),
            steps=self.steps(w),
            stopped=self.stopped,
            notes=notes,
            nominal=nominal,
        )


def explore_against(
    prepared: Prepared, intervals: Intervals, alpha: float, limits: Limits, nominal: Explored | None = None
) -> RobustExplored:
    """Sweep the budgets against nature as far as alpha requires."""

    def sweep(model: Uncertain, **more: Any) -> RobustExplored:
        worst = worst_expected_cost(model, limits)
        swept, least = robust_sweep(model, worst, alpha, limits), float(worst.lower[model.prepared.start])
        return RobustExplored(model.prepared, swept, least, model, worst, **more)

    model, beneath = shared(uncertain(prepared, intervals)), None
    if prepared.scale.rounded:
        below = prepare(prepared.model, prepared.scale.step, limits, down=True)
        beneath = sweep(uncertain(below, intervals, down=True))
        beneath = replace(beneath, swept=replace(beneath.swept, choice=beneath.swept.choice[:0].copy()))
    found = sweep(model, nominal=nominal, beneath=beneath)
    if beneath is not None and beneath.stopped and not found.stopped:
        found = replace(found, swept=replace(found.swept, stopped=beneath.stopped))
    return found


def robust(prepared: Prepared, intervals: Intervals, alpha: float, limits: Limits) -> Solution:
    """Return a policy of minimal worst-case CVaR and, among those, lowest worst-case expected cost."""
    with limits:  # after Ctrl-C, evaluate what was swept
        return explore_against(prepared, intervals, alpha, limits).solution(alpha, limits.for_the_rest)
