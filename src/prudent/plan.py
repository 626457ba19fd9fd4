"""Plan: a policy, its numbers, and how certain they are."""

from dataclasses import dataclass, field
from typing import Any

from prudent.model import SSP
from prudent.policy import BudgetPolicy

__all__ = ["STATUS", "Plan"]

STATUS = {
    "optimal": "the optimal CVaR is known to within 1e-8 of its size, and the policy attains it",
    "within_gap": "the bounds on the optimal CVaR are as close as was asked for",
    "gap_not_reached": "the bounds hold but are wider than asked for: allow more time or memory, or a larger gap",
    "approximate": "this method does not aim at the optimal CVaR; the bounds hold: use method='exact' to close them",
    "interrupted": "stopped before the end; the bounds known so far hold: run it again to finish",
}
"""Each status with what it means and what to change."""


@dataclass(frozen=True, eq=False)
class Plan:
    """What :func:`prudent.solve` returns; all costs in the user's units.

    ``cvar``, ``var`` and ``expected`` belong to the returned policy and come from its exact evaluation;
    the optimal CVaR lies between ``lower`` and ``upper``.
    """

    model: SSP = field(repr=False)
    policy: BudgetPolicy = field(repr=False)
    method: str
    alpha: float
    status: str  # a key of STATUS
    cvar: float
    var: float
    expected: float
    lower: float
    upper: float
    worst_case: float  # the least worst case over all policies, infinite where none bounds it
    seconds: float  # solving alone

    @property
    def message(self) -> str:
        """What the status means and what to change."""
        return STATUS[self.status]

    def to_dict(self) -> dict[str, Any]:
        """Return the plan's numbers."""
        return {
            "model": self.model.name,
            "method": self.method,
            "alpha": self.alpha,
            "status": self.status,
            "cvar": self.cvar,
            "var": self.var,
            "expected": self.expected,
            "lower": self.lower,
            "upper": self.upper,
            "worst_case": self.worst_case,
            "states": self.model.n_states,
            "actions": self.model.n_actions,
            "outcomes": self.model.n_outcomes,
            "seconds": self.seconds,
        }
