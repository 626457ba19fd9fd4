"""Minimal worst-case cost first, lowest expected cost second.

This is the exact method's policy for the budget w = V_worst(start): with it no run need exceed w, so U is 0 and A* are
the actions that keep it 0.  If no policy bounds the cost, all are equally good, and the one of lowest expected cost is
returned.  The policy's own CVaR is read off its distribution, which ends at w.  The bounds on the optimal CVaR are
V(start) and the policy's own CVaR.
"""

from dataclasses import replace

from prudent.engine.prepared import Prepared
from prudent.engine.sweep.driver import budget_sweep
from prudent.engine.sweep.question import PLAN, Question
from prudent.engine.values.bellman import path_rounding
from prudent.engine.values.expected_cost import least_expected_cost
from prudent.engine.values.worst_case import UNREACHED, least_worst_case
from prudent.errors import PrudentError, TooLarge
from prudent.methods.expected import expected
from prudent.methods.solution import Solution
from prudent.policies.chain import backward, forward
from prudent.policies.own_tail import UNFOLLOWED
from prudent.policies.policy import BudgetPolicy
from prudent.runtime.limits import Limits, Stopped


def worst_case(prepared: Prepared, alpha: float, limits: Limits) -> Solution:
    """Return a policy of minimal worst-case cost and, among those, lowest expected cost."""
    worst, start = least_worst_case(prepared, limits), prepared.start
    w = int(worst.value[start])
    if w == UNREACHED:
        note = "no policy bounds the cost; this is the policy of lowest expected cost"
        found = expected(prepared, alpha, limits)
        return replace(found, notes=(note, *found.notes))
    least = least_expected_cost(prepared, limits)
    swept = budget_sweep(prepared, Question(least.base, least.choice, worst, PLAN), limits, most=w)
    if swept.stopped == "interrupted":
        raise KeyboardInterrupt
    if swept.stopped == "time":
        raise Stopped(swept.stopped, "the plan of minimal worst-case cost")
    if swept.stopped:
        raise PrudentError(
            f"the minimal worst-case cost is {prepared.scale.in_units(w):g}, but its plan was not finished within the "
            "limits; raise time_limit= (--time-limit) or memory= (--memory)"
        )
    policy = BudgetPolicy.of_rows(prepared, swept.choice)
    values = backward(policy, least, limits)
    found = Solution.unswept(policy, limits, expected=values.mean, upper=float(w))
    try:
        distribution = charged = forward(policy, most=w + 1, limits=limits)[0]
        if prepared.scale.rounded:
            charged = forward(policy, most=w + 1, charged=True, limits=limits)[0]
    except TooLarge:
        return replace(found, notes=(UNFOLLOWED,))
    upper = prepared.scale.in_levels(charged.cvar(alpha)) * (1 + path_rounding(prepared, least.steps(limits)))
    cvar = prepared.scale.in_levels(distribution.cvar(alpha))
    return replace(found, var=distribution.var(alpha), cvar=cvar, upper=float(min(upper, w)))
