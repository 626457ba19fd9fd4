"""Rewards become costs by a rule or a function: the argument ``cost=``."""

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from prudent.errors import PrudentError

CostRule = str | Callable[[Any, Any, float, Any], float]
"""The name of a rule, or a function (state, action, reward, next state) -> cost."""

RULES = {
    "negative reward": "a reward of r costs -r, so the total cost is minus the return",
    "as given": "the numbers are costs already",
    "steps": "every action costs 1, whatever its reward",
}
"""Each rule with what it means."""


def check_rule(cost: object) -> str:
    """Return the name of a rule, or refuse what is not one."""
    if not isinstance(cost, str) or cost not in RULES:
        known = ", ".join(f"{name!r} ({meaning})" for name, meaning in RULES.items())
        raise PrudentError(f"cost is {cost!r}; it must be one of {known}")
    return cost


def check_rule_or_function(cost: object) -> CostRule:
    """Return the name of a rule, or a function; refuse what is neither."""
    return cost if callable(cost) else check_rule(cost)


def costs_of(rule: str, reward: Any) -> Any:
    """Return what a reward, or an array of them, costs by a rule."""
    if rule == "steps":
        return np.ones_like(reward, dtype=np.float64)
    return 0.0 - reward if rule == "negative reward" else reward  # 0.0 - r has no negative zeros


def cost_of(rule: CostRule, state: Hashable, action: Any, reward: Any, target: Hashable) -> Any:
    """Return what one step costs by a rule or a function."""
    return costs_of(rule, reward) if isinstance(rule, str) else rule(state, action, reward, target)
