"""Graphs of a model: reversed arcs, reachability, components in order, end components."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

from prudent.kernels.graphs import sorted_by, staying
from prudent.model import IntArray, owner

__all__ = [
    "Blocks",
    "BoolArray",
    "end_components",
    "entering",
    "ordered_blocks",
    "reachable",
    "starts",
    "towards",
]

BoolArray = NDArray[np.bool_]
Blocks = tuple[IntArray, IntArray, IntArray]
"""(block_start, block_state, block_of): states grouped into blocks, successors' blocks first."""


def starts(row: IntArray, n_rows: int) -> IntArray:
    """Return where each row starts in a list sorted by row (the inverse of :func:`~prudent.model.owner`)."""
    return np.concatenate([[0], np.cumsum(np.bincount(row, minlength=n_rows))]).astype(np.int64)


def entering(successor: IntArray, n_states: int) -> tuple[IntArray, IntArray]:
    """Return, for each state, the outcomes that lead to it: their starts and the outcomes."""
    enter_start = starts(successor, n_states)
    return enter_start, sorted_by(successor, enter_start)


def _matrix(source: IntArray, target: IntArray, n: int) -> csr_array:
    ones = np.ones(len(source), dtype=np.int32)  # equal arcs add up
    return csr_array((ones, (source, target)), shape=(n, n))


def reachable(source: IntArray, target: IntArray, n: int, start: int) -> BoolArray:
    """Return which states can be reached from the start along the given arcs."""
    found = np.zeros(n, dtype=bool)
    found[breadth_first_order(_matrix(source, target, n), start, return_predecessors=False)] = True
    return found


def towards(source: IntArray, target: IntArray, n: int, marked: BoolArray) -> IntArray:
    """Return for each state the next one on a shortest way to a marked state, -1 there and where none leads."""
    sink = n
    into = np.flatnonzero(marked)
    reverse = _matrix(np.concatenate([target, np.full(len(into), sink)]), np.concatenate([source, into]), n + 1)
    _, before = breadth_first_order(reverse, sink)
    follow: IntArray = before[:n].astype(np.int64)
    follow[(follow == sink) | (follow < 0)] = -1
    return follow


def ordered_blocks(source: IntArray, target: IntArray, n: int) -> Blocks:
    """Return the strongly connected components, ordered so that arcs lead to the same or an earlier one."""
    _, label = connected_components(_matrix(source, target, n), directed=True, connection="strong")
    label = label.astype(np.int64)
    # SciPy numbers strong components against their arcs, though it does not promise to: look, do not trust.
    if (label[source] < label[target]).any():
        raise AssertionError("strong components are not numbered against their arcs")
    block_start, block_state = entering(label, int(label.max(initial=-1)) + 1)
    return block_start, block_state, label


def end_components(
    action_state: IntArray, outcome_start: IntArray, successor: IntArray, n_states: int, candidate: BoolArray
) -> tuple[IntArray, BoolArray]:
    """Return the maximal end components made of candidate actions.

    An end component is a set of states and actions inside which one can stay for ever and go from any
    member to any other.  Returns the component of each state (-1: none) and whether an action is inside one.
    """
    action_of = owner(outcome_start)
    inside = candidate.copy()
    enter_start, enter = entering(successor, n_states)
    while True:
        # Most of what cannot be inside one is found by following arcs back, which costs far less than components.
        staying(action_state, action_of, enter_start, enter, inside)
        if not inside.any():
            return np.full(n_states, -1, dtype=np.int64), inside
        kept = inside[action_of]
        _, label = connected_components(
            _matrix(action_state[action_of[kept]], successor[kept], n_states), connection="strong"
        )
        leaves = label[action_state[action_of]] != label[successor]
        dropped = inside & (np.bincount(action_of, weights=leaves, minlength=len(inside)) > 0)
        if not dropped.any():
            break
        inside &= ~dropped
    component = np.full(n_states, -1, dtype=np.int64)
    members = np.unique(action_state[inside])
    _, component[members] = np.unique(label[members], return_inverse=True)
    # A state without an inner action of its own is still a member where the others can reach it: impossible,
    # since then it could not lead back; so members are exactly the states with inner actions.
    return component, inside
