"""Compressed rows, state -> action -> outcome: which items belong to which row."""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

SUM_TOLERANCE = 1e-9
"""How far the sum of an action's probabilities may be from 1 before the model is rejected."""

MOST_LIKELY = 1 + SUM_TOLERANCE
"""The largest probability that counts as 1."""


def owner(start: IntArray) -> IntArray:
    """Return, for each item of a compressed row structure, the row it belongs to."""
    return np.repeat(np.arange(len(start) - 1), np.diff(start))


def row_of(start: IntArray, item: int) -> int:
    """Return the row that one item of a compressed row structure belongs to."""
    return int(np.searchsorted(start, item, side="right")) - 1


def starts(row: IntArray, n_rows: int) -> IntArray:
    """Return where each row starts in a list sorted by row (the inverse of :func:`owner`)."""
    return offsets(np.bincount(row, minlength=n_rows))


def offsets(size: ArrayLike) -> IntArray:
    """Return where each row starts, and where the last ends, given how many items each has."""
    return np.append(0, np.cumsum(size, dtype=np.int64))


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view that cannot be written to; kernels are compiled for one kind of array or the other."""
    view = array.view()
    view.flags.writeable = False
    return view


def ranges(start: IntArray, row: IntArray) -> IntArray:
    """Return the items of the given rows of a compressed row structure, one after the other."""
    size = start[row + 1] - start[row]
    return np.asarray(np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size) + np.repeat(start[row], size))


def by_state(state: IntArray, size: IntArray, n_states: int) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return actions in the order of their states, given the state of each and how many outcomes it has.

    Returns where the actions of each state start, where the outcomes of each action start, and the numbers that the
    actions and the outcomes had before.
    """
    action = np.argsort(state, kind="stable")
    return starts(state, n_states), offsets(size[action]), action, ranges(offsets(size), action)


def merge_outcomes(
    action: IntArray, successor: IntArray, cost: FloatArray, probability: FloatArray
) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Add up the probabilities of outcomes with equal action, successor and cost; return outcomes in this order."""
    low, high = float(cost.min(initial=0.0)), float(cost.max(initial=0.0))
    n_successors, n_costs, keys = int(successor.max(initial=0)) + 1, high - low + 1, [action, successor, cost]
    if (int(action.max(initial=0)) + 1) * n_successors * n_costs < 2**62 and (cost == np.rint(cost)).all():
        # One key is enough if costs are small whole numbers.
        keys = [(action * n_successors + successor) * int(n_costs) + (cost - low).astype(np.int64)]
    order, new = np.lexsort(keys[::-1]), np.zeros(len(action), dtype=bool)
    new[:1] = True  # whether an outcome differs from the one before it
    for key in keys:
        ordered = key[order]
        new[1:] |= ordered[1:] != ordered[:-1]
    action, successor, cost, probability = action[order], successor[order], cost[order], probability[order]
    # Invalid probabilities are not added up, so that the model rejects them.
    if new.all() or not (probability.min() >= 0 and probability.max() <= MOST_LIKELY):
        return action, successor, cost, probability
    first = np.flatnonzero(new)
    return action[first], successor[first], cost[first], np.add.reduceat(probability, first)


class Rows:
    """A model in compressed rows, numbered as :class:`~prudent.SSP` says."""

    action_start: IntArray  # (n_states + 1,)
    outcome_start: IntArray  # (n_actions + 1,)

    @property
    def n_states(self) -> int:
        """The number of states, goals included."""
        return len(self.action_start) - 1

    @property
    def n_actions(self) -> int:
        """The number of (state, action) pairs."""
        return len(self.outcome_start) - 1

    @cached_property
    def is_goal(self) -> BoolArray:
        """Whether a state is a goal, i.e. has no actions."""
        return np.asarray(np.diff(self.action_start) == 0)

    @cached_property
    def acting(self) -> tuple[int, ...]:
        """The states that are not goals (internal)."""
        return tuple(np.flatnonzero(~self.is_goal).tolist())

    def actions(self, state: int) -> range:
        """Return the numbers of the actions of a state (internal)."""
        return range(int(self.action_start[state]), int(self.action_start[state + 1]))

    def outcomes(self, action: int) -> range:
        """Return the numbers of the outcomes of an action (internal)."""
        return range(int(self.outcome_start[action]), int(self.outcome_start[action + 1]))

    @cached_property
    def action_state(self) -> IntArray:
        """The state of each action."""
        return owner(self.action_start)

    @cached_property
    def outcome_action(self) -> IntArray:
        """The action of each outcome."""
        return owner(self.outcome_start)

    @cached_property
    def outcome_state(self) -> IntArray:
        """The state that each outcome starts from."""
        return owner(self.arc_start)

    @cached_property
    def arc_start(self) -> IntArray:
        """Where the outcomes of each state start, those of all its actions together."""
        return self.outcome_start[self.action_start]
