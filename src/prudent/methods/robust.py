"""The exact method against nature: the least CVaR in the worst model of a set, the least worst-case mean second.

Nature chooses the probabilities of each action from their intervals, anew at every visit and knowing the history.  With
b the budget left, U(s, b) the least worst-case expected excess and V the least worst-case expected cost:

    U(s, b)    = V(s) - b                                                              for b <= 0
    U(s, b)    = min over a of  max over p of  sum over outcomes of  p U(s', b - c)    for b > 0
    f(w)       = w + U(start, w) / alpha,      least worst-case CVaR = min over w of f(w).

For a fixed policy the laws of the cost that nature can bring about form a convex set, and w + E[(C - w)+] / alpha is
convex in w and linear in the law: so the maximum over nature and the minimum over w change places.

*Upper bound.*  The least f at a level, which the returned policy attains, holds for every model in the set.

*Lower bound.*  Between levels f is no longer concave, because of the maximum.  But against fixed choices of nature it
is, so there it is at least the smaller of the values at both ends.  For budgets between w - 1 and w fix nature's worst
choices at w, wherever that many levels are left: at w the value is U itself, and at w - 1 a second table, swept beside
U, has it.  The least of these over all w is a lower bound; the two meet where nature's choices do not change from one
level to the next, and always for intervals of width 0.

*Rounded costs.*  The policy is planned on costs rounded up, so the upper bound holds; the lower one is then that of the
model itself, since its probabilities are among nature's choices.
"""

import numpy as np

from prudent.engine.prepared import Prepared
from prudent.engine.sweep.robust import RobustSweep, robust_sweep
from prudent.engine.sweep.task import TIE
from prudent.engine.uncertain import Uncertain, uncertain
from prudent.engine.values.bellman import UNIT
from prudent.engine.values.robust_cost import worst_expected_cost
from prudent.engine.values.worst_case import true_worst_case
from prudent.methods.solution import Nominal, Solution
from prudent.models.intervals import Intervals
from prudent.policies.chain import spent_budget
from prudent.policies.own_tail import own_tail
from prudent.policies.policy import BudgetPolicy
from prudent.runtime.limits import Limits

__all__ = ["robust"]


def robust(prepared: Prepared, intervals: Intervals, alpha: float, limits: Limits, lower: float = 0.0) -> Solution:
    """Return a policy of least worst-case CVaR and, among those, least worst-case mean.

    ``lower`` is a lower bound on the optimal CVaR of the model itself, in levels, if one is known.
    """
    with limits:
        model = uncertain(prepared, intervals).shared()
        worst = worst_expected_cost(model)
        swept = robust_sweep(model, worst, alpha, limits)
        w, attains = _budgets(swept, alpha)
        policy = BudgetPolicy.of_rows(prepared, swept.choice[: w + 1])
        upper = (w + float(swept.excess[w]) * (1 + swept.error) / alpha) * (1 + 4 * UNIT)
        least = float(worst.lower[prepared.start])
        if not prepared.scale.rounded:
            lower = max(lower, _lower(swept, alpha), least)
        own = own_tail(policy, spent_budget(policy), upper, alpha, limits=limits.for_the_rest)
    complete = not (swept.stopped or prepared.scale.rounded)
    return Solution(
        policy=policy,
        var=prepared.scale.total(w),
        cvar=min(max(w + float(swept.excess[w]) / alpha, lower), upper),
        expected=float(swept.mean[w]),
        expected_lower=float(swept.mean[attains].min()) * (1 - swept.error) if complete else min(least, upper),
        lower=min(lower, upper),
        upper=upper,
        worst=true_worst_case(prepared),
        steps=_most_steps(model, w, worst.steps),
        stopped=swept.stopped,
        notes=own.notes,
        nominal=Nominal(own.cvar if not own.notes else np.nan, own.var, own.mean),
    )


def _budgets(swept: RobustSweep, alpha: float) -> tuple[int, np.ndarray]:
    """Return the budget of least worst-case mean among those that attain the least f, and a mask of all that do."""
    excess = swept.excess / alpha
    f = np.arange(len(excess)) + excess
    best = int(np.argmin(f))
    attains = f <= f[best] + 4 * TIE * (excess + excess[best]) + 8 * UNIT * f[best]
    mean = np.where(attains, swept.mean, np.inf)
    return int(np.argmax(mean <= mean.min() * (1 + TIE))), attains


def _lower(swept: RobustSweep, alpha: float) -> float:
    """Return a lower bound on the least worst-case CVaR."""
    below = swept.below[1:] * (1 - swept.error)
    f = float((np.arange(len(below)) + below / alpha).min(initial=np.inf)) * (1 - 4 * UNIT)
    return min(f, len(below)) if swept.stopped else f


def _most_steps(model: Uncertain, w: int, after: float) -> float:
    """Return a bound on the expected number of actions: with budget left, and after."""
    prepared, sets = model.prepared, model.sets
    away = np.maximum(1 - sets.loop_high, np.add.reduceat(sets.low, sets.outcome_start[:-1]))
    plays = float((1 / away).max(initial=1.0))
    if prepared.finite:
        return prepared.longest * plays
    return float((w + 1) * (prepared.free_depth.max(initial=0) + 1) * plays + after * plays)
