"""What sweeps in tiles are made of: a model laid out, its tables, and sums of stretches of them.

An outcome's part of a node's table is a multiple of a stretch of its successor's, ``cost`` levels further back.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from prudent.kernels.blocks import Round
from prudent.kernels.sweep import Costs, Ends, Room


class Work(NamedTuple):
    """A model laid out for tiles."""

    group_start: np.ndarray  # (n_groups + 1,)
    group_node: np.ndarray  # (n_nodes,)  groups successors first; within one, along outcomes at no cost, too
    cyclic: np.ndarray  # (n_groups,)  whether its nodes wait for each other within a tile
    action_start: np.ndarray  # (n_nodes + 1,)
    outcome_start: np.ndarray  # (n_actions + 1,)
    ready: np.ndarray  # (n_actions,)  in a cyclic group: outcomes from here on are known before the tile is begun
    probability: np.ndarray  # (n_outcomes,)
    successor: np.ndarray  # (n_outcomes,)
    cost: np.ndarray  # (n_outcomes,)
    mean_cost: np.ndarray  # (n_actions,)
    delay: np.ndarray  # (n_nodes,)  the least cost from the start
    place: np.ndarray  # (n_nodes,)  where its actions begin in the scratch that its group shares
    queue_start: np.ndarray  # (n_groups + 1,)
    queue: np.ndarray  # (n_actions,)  the actions of each group, by where they lead, for the cache's sake
    action_node: np.ndarray  # (n_actions,)
    block_size: np.ndarray  # (n_nodes,)  by place in a group: how many nodes from here on form a cycle at no cost
    block_of: np.ndarray  # (n_nodes,)  the number of that cycle in the round at no cost, -1 for nodes on none


class Free(NamedTuple):
    """What cycles at no cost need: they are solved as equations, level by level, for a lower bound only."""

    arcs: Round
    costs: Costs
    ends: Ends
    room: Room


class Known(NamedTuple):
    """What is known at the ends of the budget axis, by node."""

    excess: np.ndarray  # (n_nodes,)  U without budget
    mean: np.ndarray  # (n_nodes,)  M without budget
    worst: np.ndarray  # (n_nodes,)  the budget from which U is 0
    action_worst: np.ndarray  # (n_actions,)  the same, once an action is played
    calm: np.ndarray  # (n_nodes,)  the budget from which M is what it is without one
    choice: np.ndarray  # (n_nodes,)  the action that has it, by its number within the node


class Values(NamedTuple):
    """Tables by node and level."""

    width: int  # levels
    excess: np.ndarray  # (n_nodes * width,)  U
    mean: np.ndarray  # (n_nodes * width,)  M
    choice: np.ndarray  # (n_states, n_budgets)  the action's number within its state, by budget


class Scratch(NamedTuple):
    """Room to work in, for one thread."""

    k: np.ndarray  # (most actions in a node, tile)  U if an action is played
    ready: np.ndarray  # (tile, most actions in a group)  the part of it that is known beforehand
    next_least: np.ndarray  # (tile,)  the least but one of them
    m: np.ndarray  # (tile,)  M if an action is played
    chosen: np.ndarray  # (tile,)  the action taken
    lost: np.ndarray  # (1,)  the most by which the U of one that was taken is above the least, relatively


FAST = {"contract"}
"""Fused multiply-adds round once where two steps round twice."""

NEVER = 2**62
"""A budget that no one has."""


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True)
def add_stretch(total, begin, end, p, table, at):
    """Add ``p`` times the stretch of ``table`` that begins ``at`` to ``total[begin:end]``."""
    first, back = np.uint64(begin), np.uint64(at)  # unsigned: no index from the end, so that it becomes vectors
    for i in range(np.uint64(max(end - begin, 0))):
        total[first + i] += p * table[back + i]


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True)
def add_two(total, n, p, one, q, other, table):
    """Add ``p`` and ``q`` times the stretches of ``table`` that begin at ``one`` and ``other`` to ``total[:n]``."""
    back, also = np.uint64(one), np.uint64(other)
    for i in range(np.uint64(n)):
        total[i] = (total[i] + p * table[back + i]) + q * table[also + i]


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True)
def add_outcome(total, begin, end, p, without, slope, rest, table, at, last):
    """Add an outcome's part to ``total[begin:end]``, in which ``rest`` is what it leaves of the first budget.

    Without budget left it is ``without - slope * rest``, with it ``table[at + rest]``, and 0 from ``last`` on.
    """
    gone = begin + min(max(1 - rest, 0), end - begin)
    for i in range(begin, gone):
        total[i] += p * (without - slope * (rest + i - begin))
    add_stretch(total, gone, min(end, begin + last - rest), p, table, at + rest + gone - begin)


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True)
def begin_with(total, begin, end, value, p, without, slope, rest, table, at, last):
    """Set ``total[begin:end]`` to a value and an outcome's part, as :func:`add_outcome` adds it."""
    gone = begin + min(max(1 - rest, 0), end - begin)
    for i in range(begin, gone):
        total[i] = value + p * (without - slope * (rest + i - begin))
    stop = max(min(end, begin + last - rest), gone)
    first, back = np.uint64(gone), np.uint64(at + rest + gone - begin)
    for i in range(np.uint64(stop - gone)):
        total[first + i] = value + p * table[back + i]
    total[stop:end] = value
