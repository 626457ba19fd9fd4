"""Least expected cost, whatever the tail.

The policy of :mod:`prudent.engine.values.expected_cost`.  Its own CVaR is read off its distribution; where that takes
too long, it is the optimal one of the model in which there is no other policy.  The bounds on the optimal CVaR of the
full model are V(start), below which no CVaR can be, and the policy's own CVaR.
"""

from dataclasses import replace

import numpy as np

from prudent.engine.prepared import Prepared, restrict
from prudent.engine.values.expected_cost import least_expected_cost, surely_expected
from prudent.engine.values.worst_case import true_worst_case
from prudent.methods.exact import SECOND, exact
from prudent.methods.solution import Solution
from prudent.policies.own_tail import own_tail
from prudent.policies.policy import BudgetPolicy
from prudent.runtime.limits import Limits

__all__ = ["expected"]


def expected(prepared: Prepared, alpha: float, limits: Limits) -> Solution:
    """Return a policy of least expected cost."""
    least = least_expected_cost(prepared)
    policy = BudgetPolicy.of_states(prepared, least.choice)
    lower = float(surely_expected(prepared, least)[prepared.start])
    # Once no more than alpha of the runs, or half of them, are under way, what is left of the tail is in the values.
    own = own_tail(policy, least, None, alpha, tolerance=min(alpha, 0.5))
    if own.notes or own.error > SECOND:
        alone = exact(restrict(prepared, least.choice), alpha, limits, bounded=False)
        return replace(
            alone, policy=policy, lower=lower, expected_lower=lower, worst=true_worst_case(prepared), steps=np.nan
        )
    return Solution(
        policy=policy,
        var=own.var,
        cvar=max(own.cvar, lower),
        expected=float(least.value[prepared.start]),
        expected_lower=lower,
        lower=lower,
        upper=own.upper,
        worst=true_worst_case(prepared),
        steps=own.steps,
    )
