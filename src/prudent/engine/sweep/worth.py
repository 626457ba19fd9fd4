"""The value of following a policy against nature, by state and level (:mod:`prudent.results.at_worst`)."""

from dataclasses import dataclass

import numpy as np

from prudent.engine.sweep.robust_layout import error_of, new_scratch, tile_of
from prudent.engine.uncertain import Uncertain
from prudent.kernels.choices import Choices
from prudent.kernels.robust_worth import after_actions, follow, follow_backwards
from prudent.models.rows import FloatArray, IntArray
from prudent.runtime.limits import Limits, go_on

__all__ = ["EVALUATING", "Worth", "worth"]

EVALUATING = "evaluating the policy in the worst model"


@dataclass(frozen=True)
class Worth:
    """The worst-case value of following a policy, by state and level."""

    table: FloatArray  # (n_states * stride,)
    stride: int
    base: FloatArray  # (n_states,)  once the budget is used up
    slope: float  # the decrease of that value per level
    error: float  # relative error
    model: Uncertain

    def at(self, state: int, level: int) -> float:
        """Return the value in a state at a level."""
        return float(self.table[state * self.stride + level] if level > 0 else self.base[state] - self.slope * level)

    def after(self, actions: IntArray, level: int) -> FloatArray:
        """Return the worst expectation after each of some actions, played at a level."""
        found, about = np.empty(len(actions)), (self.base, self.slope, self.slope == 0.0, self.table, self.stride)
        after_actions(actions, level, self.model.sets, *about, self.model.fresh_order, found)
        return found


def worth(
    model: Uncertain, choices: Choices, base: FloatArray, behind: int, top: int, limits: Limits, *, paid: bool
) -> Worth:
    """Follow a policy against nature, at levels that are ``behind`` its budget; ``paid``: whether costs are added up.

    At level 0 and below, the value is ``base`` less the level; if costs are added up, it is ``base``.
    """
    prepared, stride, slope = model.prepared, top + 1, 0.0 if paid else 1.0
    limits.check(
        8 * prepared.n_states * stride, "the values of a policy in the worst model", "raise memory= (--memory)"
    )
    table, tile, goals = np.zeros(prepared.n_states * stride), tile_of(model), prepared.is_goal
    table.reshape(-1, stride)[goals] = np.maximum(base[goals][:, None] - slope * np.arange(stride), 0)
    scratch = new_scratch(model, (model.fresh_order, model.fresh_order), tile)
    about = behind, choices, model.sets, base, slope, paid, table, stride, scratch
    if prepared.acyclic:
        follow_backwards(prepared.blocks[1], stride, prepared.least_spent, *about)
    else:
        for first in range(1, stride, tile):
            go_on(limits, EVALUATING)
            follow(*prepared.free_blocks[:2], first, min(first + tile, stride), *about)
    return Worth(table, stride, base, slope, error_of(model, top), model)
