"""The parts of sweeps in tiles: a model laid out, its tables, and sums of stretches (ranges of levels) of them.

An outcome adds to a node's table a multiple of a stretch of its successor's table, ``cost`` levels further back.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from prudent.kernels.blocks import Arcs
from prudent.kernels.sweep import Costs, Ends, Workspace


class Work(NamedTuple):
    """A model laid out for tiles."""

    group_start: np.ndarray  # (n_groups + 1,)
    group_node: np.ndarray  # (n_nodes,)  groups successors first; within one, successors along free outcomes first
    cyclic: np.ndarray  # (n_groups,)  whether a group's nodes wait for each other within a tile
    action_start: np.ndarray  # (n_nodes + 1,)
    outcome_start: np.ndarray  # (n_actions + 1,)
    ready: np.ndarray  # (n_actions,)  in a cyclic group: outcomes from here on are known before the tile begins
    probability: np.ndarray  # (n_outcomes,)
    successor: np.ndarray  # (n_outcomes,)
    cost: np.ndarray  # (n_outcomes,)
    mean_cost: np.ndarray  # (n_actions,)
    delay: np.ndarray  # (n_nodes,)  the least cost from the start
    scratch: np.ndarray  # (n_nodes,)  where a node's actions begin in the scratch of its group
    queue_start: np.ndarray  # (n_groups + 1,)
    queue: np.ndarray  # (n_actions,)  the actions of each group, sorted by successor for the cache
    action_node: np.ndarray  # (n_actions,)
    left_out: np.ndarray  # (n_actions,)  whether an action need not be looked at
    block_size: np.ndarray  # (n_nodes,)  by place in group_node: how many nodes from here on form a free cycle
    block_of: np.ndarray  # (n_nodes,)  the block of that cycle in Free.arcs; -1 for nodes on none


class Free(NamedTuple):
    """What free cycles need: they are solved as equations, level by level, for a lower bound only."""

    arcs: Arcs
    costs: Costs
    ends: Ends
    workspace: Workspace


class Known(NamedTuple):
    """The values known at both ends of the budget axis, by node."""

    excess: np.ndarray  # (n_nodes,)  U without budget
    mean: np.ndarray  # (n_nodes,)  M without budget
    worst: np.ndarray  # (n_nodes,)  the budget from which U is 0
    action_worst: np.ndarray  # (n_actions,)  the same, once an action is played
    calm: np.ndarray  # (n_nodes,)  the budget from which M is the same as without budget
    choice: np.ndarray  # (n_nodes,)  the action that attains that M, by its number within the node


class Values(NamedTuple):
    """Tables of values, and of actions."""

    row: np.ndarray  # (n_nodes,)  where a node's value for budget 0 is in the tables, or would be
    excess: np.ndarray  # U
    mean: np.ndarray  # M
    before: int  # levels that are handed on from tile to tile; 0 where rows are not shared
    taken: int  # the same, or 0 in the first tile
    handed: int  # the same, or 0 in the last tile
    excess_before: np.ndarray  # (n_nodes * before,)
    mean_before: np.ndarray  # (n_nodes * before,)
    choice: np.ndarray  # the action's number within its state
    place: np.ndarray  # (n_states,)  where a state's choice for budget 0 is, or would be
    stride: int  # the distance between a state's choices for consecutive budgets


class Scratch(NamedTuple):
    """The arrays that a thread works in on a tile."""

    k: np.ndarray  # (most actions in a node * tile,)  U if an action is played
    ready: np.ndarray  # (tile, most actions in a group)  the part of U or M that is known before the tile begins
    next_least: np.ndarray  # (tile,)  the second least U
    m: np.ndarray  # (tile,)  M if an action is played
    chosen: np.ndarray  # (tile,)  the action taken
    lost: np.ndarray  # (1,)  the most that U of a chosen action is above the least, relatively


FAST = {"contract"}
"""Fused multiply-adds round once where two steps round twice."""

NEVER = 2**62
"""Larger than any budget."""

# The functions below make no arrays, so they need not count references: hence ``_nrt=False``.


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def copy(table, to, n, source, at):
    """Copy ``n`` values of ``source`` from ``at`` on to ``table[to:]``."""
    there, here = np.uint64(to), np.uint64(at)
    for i in range(np.uint64(n)):
        table[there + i] = source[here + i]


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True, _nrt=False)
def add_stretch(total, begin, end, p, table, at):
    """Add ``p`` times the stretch of ``table`` that begins ``at`` to ``total[begin:end]``."""
    first, back = np.uint64(begin), np.uint64(at)  # unsigned, so never an index from the end: it vectorises
    for i in range(np.uint64(max(end - begin, 0))):
        total[first + i] += p * table[back + i]


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True, _nrt=False)
def add_four(total, begin, n, p, table, at, p1, at1, p2, at2, p3, at3):
    """Add multiples of four stretches of ``table`` to ``total[begin:begin + n]``, one after the other."""
    first, zero, one, two, three = np.uint64(begin), np.uint64(at), np.uint64(at1), np.uint64(at2), np.uint64(at3)
    for i in range(np.uint64(n)):
        some = (total[first + i] + p * table[zero + i]) + p1 * table[one + i]
        total[first + i] = (some + p2 * table[two + i]) + p3 * table[three + i]


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True, _nrt=False)
def add_outcome(total, begin, end, p, without, slope, rest, table, at, last):
    """Add an outcome's part to ``total[begin:end]``; ``rest`` is what the outcome leaves of the first budget.

    The part is ``without - slope * rest`` if no budget is left, else ``table[at + rest]``, and 0 from ``last`` on.
    """
    gone = begin + min(max(1 - rest, 0), end - begin)
    for i in range(begin, gone):
        total[i] += p * (without - slope * (rest + i - begin))
    add_stretch(total, gone, min(end, begin + last - rest), p, table, at + rest + gone - begin)


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True, _nrt=False)
def stretch_from(o, lower, n, b, successor, cost, row, ends):
    """Return where an outcome's stretch ``lower:n`` begins in the table, and its length up to ``ends``."""
    t, rest = successor[o], b - cost[o]
    last = n if len(ends) == 0 else min(n, ends[t] - rest)
    return row[t] + rest + lower, last - lower


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True, _nrt=False)
def add_up(total, begin, n, value, o, stop, b, probability, successor, cost, row, without, slope, table, ends):
    """Set ``total[begin:begin + n]`` to ``value`` plus the parts of the outcomes ``o:stop``; ``b`` is the first budget.

    Parts are 0 from the budgets ``ends`` on, if there are any.  Whole stretches are added four at a time, in order.
    """
    lower = 0  # from here on every outcome leaves some budget
    for i in range(o, stop):
        lower = max(lower, cost[i] + 1 - b)
    lower = min(lower, n)
    if lower > 0:
        for i in range(begin, begin + lower):
            total[i] = value
        for i in range(o, stop):
            t, rest = successor[i], b - cost[i]
            last = NEVER if len(ends) == 0 else ends[t]
            add_outcome(total, begin, begin + lower, probability[i], without[t], slope, rest, table, row[t], last)
    begin, m = begin + lower, n - lower
    if m <= 0:
        return
    at, part = stretch_from(o, lower, n, b, successor, cost, row, ends)
    p, first, back, full = probability[o], np.uint64(begin), np.uint64(at), np.uint64(max(part, 0))
    for i in range(full):
        total[first + i] = value + p * table[back + i]
    for i in range(full, np.uint64(m)):
        total[first + i] = value
    o += 1
    while o < stop:
        at, part = stretch_from(o, lower, n, b, successor, cost, row, ends)
        if part == m and o + 3 < stop:
            at1, part1 = stretch_from(o + 1, lower, n, b, successor, cost, row, ends)
            at2, part2 = stretch_from(o + 2, lower, n, b, successor, cost, row, ends)
            at3, part3 = stretch_from(o + 3, lower, n, b, successor, cost, row, ends)
            if min(part1, part2, part3) == m:
                p, p1, p2, p3 = probability[o], probability[o + 1], probability[o + 2], probability[o + 3]
                add_four(total, begin, m, p, table, at, p1, at1, p2, at2, p3, at3)
                o += 4
                continue
        if part > 0:
            add_stretch(total, begin, begin + part, probability[o], table, at)
        o += 1
