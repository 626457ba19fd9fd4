"""The result of a method: a policy, its values and bounds on the optimal CVaR, in levels counted from best luck."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from prudent.engine.cost_scale import CostScale
from prudent.engine.values.expected_cost import surely_expected
from prudent.engine.values.worst_case import true_worst_case
from prudent.policies.policy import BudgetPolicy
from prudent.runtime.limits import Limits

if TYPE_CHECKING:
    from prudent.methods.exact import Explored


@dataclass(frozen=True)
class Nominal:
    """A policy's numbers in the model itself, as opposed to the worst model of a set.

    Examples
    --------
    >>> import prudent
    >>> model = prudent.domains.figure_2()
    >>> certain = prudent.Intervals(model.probability, model.probability)
    >>> round(prudent.solve(model, alpha=0.1, uncertainty=certain).nominal.expected, 6)
    4.06
    """

    cvar: float  # nan if unknown
    var: float  # nan if unknown
    expected: float

    def in_units(self, scale: CostScale) -> "Nominal":
        """Return numbers in the user's units; given are levels, except for VaR (internal)."""
        return Nominal(scale.in_units(self.cvar), self.var, scale.in_units(self.expected))


@dataclass(frozen=True, kw_only=True)
class Solution:
    """A policy, its own values, and bounds on the optimal CVaR."""

    policy: BudgetPolicy
    var: float = math.nan  # the policy's own, in the user's units; nan if unknown
    cvar: float = math.nan  # the policy's own, or a lower bound on it if costs are rounded; nan if unknown
    expected: float  # the policy's own
    lower: float  # a lower bound on the optimal CVaR
    upper: float  # an upper bound on the optimal CVaR
    expected_lower: float  # a lower bound on the expected cost of every policy of optimal CVaR
    worst: float  # the minimal worst-case cost; infinite if no policy bounds the cost
    steps: float = math.nan  # an upper bound on the policy's expected number of actions; nan if unknown
    stopped: str = ""  # why it ended early: "interrupted", "time", "memory", or empty
    notes: tuple[str, ...] = ()  # further information for the user
    nominal: Nominal | None = None  # for a set of models: all other numbers are for the worst of them
    explored: "Explored | None" = None  # the sweeps that found it, where more is asked of them

    @classmethod
    def unswept(cls, policy: BudgetPolicy, limits: Limits, **known: Any) -> "Solution":
        """Return a policy with what is known of it; no CVaR is below the lowest expected cost, so that bounds both."""
        prepared = policy.prepared
        least = float(surely_expected(prepared, limits)[prepared.start])
        worst = true_worst_case(prepared, limits)
        return cls(policy=policy, expected_lower=least, lower=least, worst=worst, **known)
