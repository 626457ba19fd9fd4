"""What a reward of somebody else's model costs here: rules with names, the same for every bridge."""

from typing import Any

import numpy as np

from prudent.errors import PrudentError

__all__ = ["RULES", "check_rule", "costs_of"]

RULES = {
    "negative reward": "a reward of r costs -r: the total cost is minus the return",
    "as given": "the numbers are costs already",
    "steps": "every action costs 1, whatever its reward",
}
"""Each rule with what it means."""


def check_rule(cost: object) -> str:
    """Return the name of a rule, or refuse what is not one."""
    if not isinstance(cost, str) or cost not in RULES:
        known = "; ".join(f"{name!r}: {meaning}" for name, meaning in RULES.items())
        raise PrudentError(f"cost is {cost!r}; it must name how rewards become costs: {known}")
    return cost


def costs_of(rule: str, reward: Any) -> Any:
    """Return what a reward, or an array of them, costs by a rule."""
    if rule == "steps":
        return np.ones_like(reward, dtype=np.float64)
    return 0.0 - reward if rule == "negative reward" else reward  # 0.0 - r has no negative zeros
