"""Graphs of a model: reversed arcs, reachability, components in order, end components."""

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from prudent.kernels.counting import sorted_by
from prudent.kernels.graphs import staying
from prudent.kernels.search import in_order, next_hops, reached, strong_components
from prudent.models.rows import BoolArray, IntArray, owner, starts

__all__ = ["Blocks", "end_components", "entering", "ordered_blocks", "reachable", "towards"]

Blocks = tuple[IntArray, IntArray, IntArray]
"""(block_start, block_state, block_of): states grouped into blocks, successors' blocks first."""


def entering(successor: IntArray, n_states: int) -> tuple[IntArray, IntArray]:
    """Return, for each state, the outcomes that lead to it: their starts and the outcomes."""
    enter_start = starts(successor, n_states)
    return enter_start, sorted_by(successor, enter_start)


def _by_source(source: IntArray, target: IntArray, n: int) -> tuple[IntArray, IntArray]:
    """Return arcs, sources and targets, sorted by source."""
    if not (source[1:] < source[:-1]).any():
        return source, target
    order = sorted_by(source, starts(source, n))
    return source[order], target[order]


def reachable(source: IntArray, target: IntArray, n: int, start: int) -> BoolArray:
    """Return which states can be reached from the start along the given arcs."""
    source, target = _by_source(source, target, n)
    found: BoolArray = reached(starts(source, n), target, start)
    return found


def towards(source: IntArray, target: IntArray, n: int, marked: BoolArray) -> IntArray:
    """Return for each state the next one on a shortest path to a marked state; -1 at marked ones and without a path."""
    source, target = _by_source(source, target, n)
    enter_start, enter = entering(target, n)
    hop: IntArray = next_hops(enter_start, source[enter], marked)
    return hop


def ordered_blocks(arc_start: IntArray, target: IntArray, start: int = -1) -> tuple[Blocks, bool]:
    """Return the strongly connected components, ordered so that arcs lead to the same or an earlier one.

    The arcs of state ``s`` lead to ``target[arc_start[s]:arc_start[s + 1]]``.  With a start, states that it cannot
    reach are left out, and are in block -1.  Also return whether there are no cycles.
    """
    order = in_order(arc_start, target)
    if order != 0 and (start < 0 or reached(arc_start, target, start).all()):
        state = np.arange(len(arc_start) - 1)[::-order].copy()  # the numbers give the order, as in a model by stages
        return (np.arange(len(arc_start)), state, state), True
    # SciPy's components need a matrix of distinct arcs, which takes longer to make than the components to find.
    block_start, block_of, acyclic = strong_components(arc_start, target, start)
    known = np.flatnonzero(block_of >= 0)
    return (block_start, known[sorted_by(block_of[known], block_start)], block_of), acyclic


def _matrix(source: IntArray, target: IntArray, n: int) -> csr_array:
    ones = np.ones(len(source), dtype=np.int32)  # parallel arcs add up
    return csr_array((ones, (source, target)), shape=(n, n))


def end_components(
    action_state: IntArray, outcome_start: IntArray, successor: IntArray, n_states: int, candidate: BoolArray
) -> tuple[IntArray, BoolArray]:
    """Return the maximal end components made of candidate actions.

    An end component is a set of states and actions inside which one can stay for ever and go from any
    member to any other.  Returns the component of each state (-1: none) and whether an action is inside one.
    """
    inside, action_of = candidate.copy(), owner(outcome_start)
    if not inside.any():
        return np.full(n_states, -1, dtype=np.int64), inside
    enter_start, enter = entering(successor, n_states)
    while True:
        # Following arcs back finds most actions that cannot be inside one, at far less cost than components.
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
    # Members are exactly the states with inner actions: a member must lead back to the others.
    return component, inside
