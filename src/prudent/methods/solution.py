"""What a method hands over: a policy and what is certain about it, in levels counted from best luck."""

from dataclasses import dataclass

from prudent.policies.policy import BudgetPolicy

__all__ = ["Solution"]


@dataclass(frozen=True)
class Solution:
    """A policy, its own values, and bounds on the optimal CVaR."""

    policy: BudgetPolicy
    var: float  # the policy's own, in the user's units; not a number if it is not known
    cvar: float  # the policy's own; not a number if it is not known, from below where costs are rounded
    expected: float  # the policy's own
    lower: float  # at most the optimal CVaR
    upper: float  # at least the optimal CVaR
    expected_lower: float  # at most the expected cost of every policy of optimal CVaR
    worst: float  # the least worst case over all policies, infinite where none bounds it
    steps: float = float("nan")  # at least the policy's expected number of actions, if it is known
    stopped: str = ""  # why it ended early: "interrupted", "time", "memory", or nothing
    notes: tuple[str, ...] = ()  # what else should be known
