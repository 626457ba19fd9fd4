"""Least worst case first, least expected cost second.

The exact method's policy for the budget w = V_worst(start): with it no run need exceed w, so U is 0 and A* are
the actions that keep it so.  Where no policy bounds the cost, every policy is as good, and the one of least
expected cost is returned.  Its own CVaR is read off its distribution, which ends at w.  The bounds on the
optimal CVaR are V(start) and the policy's own CVaR.
"""

from dataclasses import replace

from prudent.chain import backward, forward
from prudent.methods.exact import budget_tables
from prudent.methods.expected import expected
from prudent.methods.solution import Solution
from prudent.policy import BudgetPolicy
from prudent.prepare import Prepared
from prudent.values.expected import least_expected_cost
from prudent.values.rounds import rounding
from prudent.values.worst_case import UNREACHED, least_worst_case

__all__ = ["worst_case"]


def worst_case(prepared: Prepared, alpha: float) -> Solution:
    """Return a policy of least worst case and, among those, least expected cost."""
    worst, start = least_worst_case(prepared), prepared.start
    w = int(worst.value[start])
    if w == UNREACHED:
        note = "no policy bounds the cost; this is the one of least expected cost"
        return replace(expected(prepared, alpha), notes=(note,))
    least = least_expected_cost(prepared)
    policy = BudgetPolicy(prepared, budget_tables(prepared, least, worst, None, most=w).choice)
    values = backward(policy, least)
    distribution = forward(policy, most=w + 1)
    levels = prepared.in_levels(distribution.cvar(alpha))
    slip = 4 * rounding(prepared).max(initial=0.0) * (10 + least.steps.max())
    return Solution(
        policy=policy,
        var=distribution.var(alpha),
        cvar=levels,
        expected=float(values.mean[w, start]),
        lower=float(least.lower[start]),
        upper=float(min(levels * (1 + slip), w)),
        worst=float(w),
    )
