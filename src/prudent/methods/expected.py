"""Least expected cost, whatever the tail.

The policy of :mod:`prudent.values.expected`.  Its own CVaR is the optimal one of the model in which there is
no other policy.  The bounds on the optimal CVaR of the full model are V(start), below which no CVaR can be,
and the policy's own CVaR.
"""

from dataclasses import replace

from prudent.allowance import Allowance
from prudent.methods.exact import exact, surely_expected
from prudent.methods.solution import Solution
from prudent.policy import BudgetPolicy
from prudent.prepared import Prepared, restrict
from prudent.values.expected import least_expected_cost
from prudent.values.worst_case import true_worst_case

__all__ = ["expected"]


def expected(prepared: Prepared, alpha: float, allowance: Allowance) -> Solution:
    """Return a policy of least expected cost."""
    least = least_expected_cost(prepared)
    alone = exact(restrict(prepared, least.choice), alpha, allowance, bounded=False)
    lower = float(surely_expected(prepared, least)[prepared.start])
    return replace(
        alone,
        policy=BudgetPolicy.of_states(prepared, least.choice),
        lower=lower,
        expected_lower=lower,
        worst=true_worst_case(prepared),
    )
