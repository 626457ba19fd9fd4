"""Minimal worst-case cost: the least cost that some policy never exceeds, infinite if no policy bounds the cost.

    V_worst(s) = min over a of  max over outcomes of  c + V_worst(s')          V_worst(goal) = 0

This is the least solution, in whole numbers, so nothing is rounded.  It is an essential supremum: outcomes of
probability 0 do not count, and a free cycle that is left with probability 1 is harmless.
"""

from dataclasses import dataclass, replace

import numpy as np

from prudent.engine.prepared import Prepared, once, restrict
from prudent.engine.values.device_values import device_worst_case
from prudent.kernels.acyclic import Played, worst_ahead
from prudent.kernels.graphs import UNREACHED, worst_case
from prudent.models.rows import IntArray
from prudent.runtime.limits import UNLIMITED, Limits
from prudent.runtime.team import in_parts

__all__ = ["UNREACHED", "WorstCase", "least_worst_case", "true_worst_case", "worst_case_of"]


@dataclass(frozen=True)
class WorstCase:
    """The minimal worst-case cost from every prepared state, in levels; UNREACHED stands for infinite."""

    value: IntArray  # (n_states,)
    action_value: IntArray  # (n_actions,)  that after each action

    def at(self, state: int) -> float:
        """Return the minimal worst-case cost from a state as a float, infinite if no policy bounds it."""
        return float("inf") if self.value[state] == UNREACHED else float(self.value[state])


@once
def least_worst_case(prepared: Prepared, limits: Limits = UNLIMITED) -> WorstCase:
    """Return the minimal worst-case cost from every state."""
    value = np.empty(prepared.n_states, dtype=np.int64)
    if prepared.acyclic:
        action_value = np.empty(prepared.n_actions, dtype=np.int64)
        _backwards(prepared, prepared.action_start[:-1], prepared.action_start[1:], value, action_value)
        return WorstCase(value, action_value)
    if limits.device is not None and (found := device_worst_case(limits.device, prepared)) is not None:
        return WorstCase(*found)
    if _never_bounded(prepared):
        value[:] = np.where(prepared.is_goal, 0, UNREACHED)
        return WorstCase(value, np.full(prepared.n_actions, UNREACHED))
    states, outcomes = (prepared.action_start, prepared.outcome_start), (prepared.successor, prepared.cost)
    rows = *states, prepared.action_state, prepared.outcome_action, *outcomes
    worst_case(rows, prepared.graph.entering, prepared.free_blocks, value)
    total = np.minimum(prepared.cost + value[prepared.successor], UNREACHED)
    return WorstCase(value, np.maximum.reduceat(total, prepared.outcome_start[:-1]))


def _backwards(prepared: Prepared, first: IntArray, last: IntArray, value: IntArray, action_value: IntArray) -> None:
    """Fill in the least worst-case costs, without cycles, if each state's actions are ``first`` to ``last``."""
    played = Played(first, last, prepared.outcome_start, prepared.successor, prepared.cost)
    items = len(prepared.cost) * int((last - first).sum()) // max(prepared.n_actions, 1)
    order, worst = prepared.order, (value, action_value)
    in_parts(prepared.threads, worst_ahead, items, order.backwards, played, *worst, most=order.width)


def _never_bounded(prepared: Prepared) -> bool:
    """Return whether all costs are unbounded because no action can be the last one of a bounded run."""
    block_start, _, block_of = prepared.free_blocks
    several = (np.diff(block_start) > 1)[block_of]
    last = prepared.is_goal[prepared.successor] | ((prepared.cost == 0) & several[prepared.successor])
    return not np.logical_and.reduceat(last, prepared.outcome_start[:-1]).any()


def worst_case_of(prepared: Prepared, choice: IntArray, limits: Limits = UNLIMITED) -> IntArray:
    """Return the worst-case cost of the policy ``choice`` from every state, in levels."""
    if not prepared.acyclic:
        return least_worst_case(restrict(prepared, choice), limits).value
    value = np.empty(prepared.n_states, dtype=np.int64)
    _backwards(prepared, choice, choice + ~prepared.is_goal, value, np.empty(prepared.n_actions, dtype=np.int64))
    return value


def true_worst_case(prepared: Prepared, limits: Limits = UNLIMITED) -> float:
    """Return the minimal worst-case cost from the start, in levels, for the costs before rounding."""
    if not prepared.scale.rounded:
        return least_worst_case(prepared, limits).at(prepared.start)
    # A worst-case cost is that of a path that visits no state twice; drop low bits if it might overflow an integer.
    bits = max(int(prepared.fine.max(initial=0)).bit_length() + prepared.n_states.bit_length() - 61, 0)
    whole = -(-prepared.fine // 2**bits)
    found = least_worst_case(replace(prepared, cost=whole), limits).at(prepared.start)
    return found * float(2**bits / prepared.scale.stride)
