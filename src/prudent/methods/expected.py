"""Least expected cost, whatever the tail.

The policy is that of :mod:`prudent.engine.values.expected_cost`.  Its own CVaR is read off its distribution; where that
takes too long, the exact method computes it on the model without any other action.  The bounds on the optimal CVaR of
the full model are V(start), since no CVaR is below that, and the policy's own CVaR.
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
    # Once at most alpha of the runs, or half of them, are under way, their expected costs tell the rest of the tail.
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
