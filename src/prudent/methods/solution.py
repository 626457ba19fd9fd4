"""What a method returns: a policy, its values and bounds on the optimal CVaR, in levels counted from best luck."""

import math
from dataclasses import dataclass

from prudent.engine.cost_scale import CostScale
from prudent.policies.policy import BudgetPolicy

__all__ = ["UNKNOWN", "Nominal", "Solution"]


@dataclass(frozen=True)
class Nominal:
    """A policy's numbers in the model itself, where those for the worst model of a set stand beside them.

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
        """Return numbers in levels, but for VaR, in the user's units (internal)."""
        return Nominal(scale.in_units(self.cvar), self.var, scale.in_units(self.expected))


UNKNOWN = Nominal(math.nan, math.nan, math.nan)
"""What is not known."""


@dataclass(frozen=True)
class Solution:
    """A policy, its own values, and bounds on the optimal CVaR."""

    policy: BudgetPolicy
    var: float  # the policy's own, in the user's units; nan if unknown
    cvar: float  # the policy's own, or a lower bound on it where costs are rounded; nan if unknown
    expected: float  # the policy's own
    lower: float  # a lower bound on the optimal CVaR
    upper: float  # an upper bound on the optimal CVaR
    expected_lower: float  # a lower bound on the expected cost of every policy of optimal CVaR
    worst: float  # the least worst case over all policies, infinite where none bounds it
    steps: float = float("nan")  # an upper bound on the policy's expected number of actions; nan if unknown
    stopped: str = ""  # why it ended early: "interrupted", "time", "memory", or nothing
    notes: tuple[str, ...] = ()  # what else the user should know
    nominal: Nominal | None = None  # for a set of models, whose worst all other numbers are for
