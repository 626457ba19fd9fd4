"""The minimal expected excess over one budget; the expected cost comes second.

For a budget of w + t levels, w whole and 0 <= t < 1, and b whole levels left, a run exceeds the budget once b < 0:

    U(s, b)    = V(s) - b - t                                         for b < 0
    U(goal, b) = 0                                                    for b >= 0
    U(s, b)    = min over a of  sum over outcomes of  p U(s', b - c)   for b >= 0,

and M, the expected cost, decides between actions that attain U.  This is the sweep of the exact method with row b + 1
for b levels left, as for :mod:`prudent.methods.exceedance`.  The sweep continues up to w even if some plan never
exceeds a smaller budget, because more budget lowers the expected cost.

*Guarantee.*  As for CVaR.  If costs are rounded, the plan's excess is that of costs rounded up, and the lower bound is
taken at the next level that is not below the budget.
"""

from dataclasses import dataclass, replace

import numpy as np

from prudent.engine.prepared import Prepared
from prudent.engine.sweep.bounded import bounded_sweep
from prudent.engine.values.bellman import UNIT
from prudent.engine.values.expected_cost import least_expected_cost, surely_expected
from prudent.engine.values.worst_case import UNREACHED, WorstCase, least_worst_case
from prudent.kernels.sweep import Base
from prudent.methods.exact import Explored
from prudent.policies.policy import BudgetPolicy
from prudent.runtime.limits import Limits, Stopped

__all__ = ["LeastExcess", "least_excess"]


@dataclass(frozen=True)
class LeastExcess:
    """A policy and its expected excess over a budget, in levels."""

    policy: BudgetPolicy
    excess: float
    high: float  # an upper bound on that
    low: float  # a lower bound on the least excess over ``upto``
    upto: float  # the budget, or the next level where costs are rounded


def least_excess(prepared: Prepared, w: int, part: float, limits: Limits) -> LeastExcess:
    """Return the policy of least excess over ``w + part`` levels, the part below 1."""
    least, worst = least_expected_cost(prepared, limits), least_worst_case(prepared, limits)
    value = np.minimum(worst.value + 1, UNREACHED)
    value[prepared.start] = UNREACHED  # budgets beyond the worst case matter, too: they lower the expected cost
    ends, more = WorstCase(value, np.minimum(worst.action_value + 1, UNREACHED)), 1 - part
    gone = replace(least, value=least.value + more, lower=(least.lower + more) * (1 - UNIT), upper=least.upper + more)
    rounded = prepared.scale.rounded
    swept = bounded_sweep(prepared, Base(gone.value, gone.lower, least.value), ends, limits, most=w + 1 + rounded)
    if swept.stopped:
        raise Stopped(swept.stopped, "sweeping the budgets")
    policy = BudgetPolicy.of_rows(prepared, swept.choice[: w + 2].copy(), past_budget=1)
    sure = float(surely_expected(prepared, limits)[prepared.start])
    values = Explored(prepared, gone, swept, sure).values_of(policy, limits)
    upto, row = float(w + part), w + 1
    if rounded:  # a bound from rounded costs has a row for each budget from 0 up
        upto = row = w + (part > 0)
    low = float(swept.low[row]) if row < len(swept.low) else 0.0  # beyond the worst case
    return LeastExcess(policy, values.excess, values.above, max(low, sure - upto), upto)
