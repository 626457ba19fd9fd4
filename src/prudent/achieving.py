"""The best policy for an objective, its value, and bounds on the optimal one."""

import numpy as np

from prudent.allowance import Allowance
from prudent.bracket import bracket_below
from prudent.errors import PrudentError
from prudent.methods.exact import explore
from prudent.methods.exceeding import exceeding
from prudent.methods.weighing import Weighing
from prudent.methods.worst_case import worst_case
from prudent.objectives import Achieved, Exceedance, MeanPlusCVaR, Objective, ValueAtRisk
from prudent.policy import BudgetPolicy
from prudent.prepared import Prepared
from prudent.values.expected import least_expected_cost

__all__ = ["achieve"]

NEAR = 1e-9
"""A budget so close below a level, relatively, is taken for it: floats do not hold most of them."""


def achieve(
    prepared: Prepared, alpha: float, objective: Objective, allowance: Allowance
) -> tuple[BudgetPolicy, Achieved]:
    """Return the best policy for an objective, and what it achieves, in the user's units."""
    if isinstance(objective, Exceedance):
        return _exceedance(prepared, objective.budget, allowance)
    if isinstance(objective, ValueAtRisk):
        return _value_at_risk(prepared, alpha, allowance)
    if isinstance(objective, MeanPlusCVaR):
        return _mean_plus_cvar(prepared, alpha, objective.weight, allowance)
    found = worst_case(prepared, alpha, allowance)
    value = prepared.in_units(found.worst)
    if not np.isfinite(value):
        raise PrudentError("no policy bounds the cost: there is no least worst case")
    return found.policy, Achieved("worst-case", value, value, prepared.in_units(float(found.policy.level)))


def _exceedance(prepared: Prepared, budget: float, allowance: Allowance) -> tuple[BudgetPolicy, Achieved]:
    level = prepared.in_levels(budget)
    w = int(np.floor(level + NEAR * max(abs(level), 1.0)))
    if w < 0:  # less than the best of luck takes
        cheapest = BudgetPolicy.of_states(prepared, least_expected_cost(prepared).choice)
        return cheapest, Achieved("exceedance", 1.0, 1.0, 1.0)
    found = exceeding(prepared, w, allowance)
    return found.policy(w), Achieved("exceedance", float(found.chance[w]), float(found.low[w]), float(found.high[w]))


def _value_at_risk(prepared: Prepared, alpha: float, allowance: Allowance) -> tuple[BudgetPolicy, Achieved]:
    explored = explore(prepared, alpha, allowance)
    if explored.stopped == "interrupted":
        raise KeyboardInterrupt
    f = np.arange(len(explored.swept.excess)) + explored.swept.excess / alpha
    found = exceeding(prepared, int(np.ceil(f.min())), allowance)  # VaR is never above CVaR
    w, sure = found.value_at_risk(alpha)
    value, lower = (float(prepared.totals(np.array(level))) for level in (w, sure))
    if prepared.lattice.deviation > 0:
        lower = bracket_below(prepared, float(sure))
    return found.policy(w), Achieved("var", value, min(lower, value), value)


def _mean_plus_cvar(
    prepared: Prepared, alpha: float, weight: float, allowance: Allowance
) -> tuple[BudgetPolicy, Achieved]:
    weighing = Weighing(prepared, alpha, allowance)
    found, _ = weighing.weigh(weight)
    value = prepared.in_units(found.expected) + weight * prepared.in_units(found.cvar)
    lower = (1 + weight) * bracket_below(prepared, weighing.lines[-1][1] / (1 + weight))
    return BudgetPolicy(prepared, found.choice), Achieved("mean-plus-cvar", value, min(lower, value), value)
