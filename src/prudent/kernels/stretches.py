"""What sweeps in tiles are made of: a model laid out, its tables, and sums of stretches of them.

An outcome's part of a node's table is a multiple of a stretch of its successor's, ``cost`` levels further back.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from prudent.kernels.blocks import Arcs
from prudent.kernels.sweep import Costs, Ends, Workspace


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
    scratch: np.ndarray  # (n_nodes,)  where its actions begin in the scratch that its group shares
    queue_start: np.ndarray  # (n_groups + 1,)
    queue: np.ndarray  # (n_actions,)  the actions of each group, by where they lead, for the cache's sake
    action_node: np.ndarray  # (n_actions,)
    block_size: np.ndarray  # (n_nodes,)  by place in a group: how many nodes from here on form a cycle at no cost
    block_of: np.ndarray  # (n_nodes,)  the number of that cycle among the free arcs, -1 for nodes on none


class Free(NamedTuple):
    """What cycles at no cost need: they are solved as equations, level by level, for a lower bound only."""

    arcs: Arcs
    costs: Costs
    ends: Ends
    workspace: Workspace


class Known(NamedTuple):
    """What is known at the ends of the budget axis, by node."""

    excess: np.ndarray  # (n_nodes,)  U without budget
    mean: np.ndarray  # (n_nodes,)  M without budget
    worst: np.ndarray  # (n_nodes,)  the budget from which U is 0
    action_worst: np.ndarray  # (n_actions,)  the same, once an action is played
    calm: np.ndarray  # (n_nodes,)  the budget from which M is what it is without one
    choice: np.ndarray  # (n_nodes,)  the action that has it, by its number within the node


class Values(NamedTuple):
    """Tables of values, and of actions."""

    row: np.ndarray  # (n_nodes,)  where a node's value for budget 0 is in the tables, or would be
    excess: np.ndarray  # U
    mean: np.ndarray  # M
    before: int  # so many levels before a tile are handed on to it; none where rows are not shared
    taken: int  # that many again, or none where nothing comes before
    handed: int  # that many again, or none where nothing follows
    excess_before: np.ndarray  # (n_nodes * before,)
    mean_before: np.ndarray  # (n_nodes * before,)
    choice: np.ndarray  # (n_budgets, n_states)  the action's number within its state


class Scratch(NamedTuple):
    """Workspace to work in, for one thread."""

    k: np.ndarray  # (most actions in a node * tile,)  U if an action is played
    ready: np.ndarray  # (tile, most actions in a group)  the part of it that is known beforehand
    next_least: np.ndarray  # (tile,)  the least but one of them
    m: np.ndarray  # (tile,)  M if an action is played
    chosen: np.ndarray  # (tile,)  the action taken
    lost: np.ndarray  # (1,)  the most by which the U of one that was taken is above the least, relatively


FAST = {"contract"}
"""Fused multiply-adds round once where two steps round twice."""

NEVER = 2**62
"""A budget that no one has."""

# What follows borrows its arrays and makes none, so that it need not count references: hence ``_nrt=False``.


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def copy(table, to, n, source, at):
    """Copy ``n`` values of ``source`` from ``at`` on to ``table[to:]``."""
    there, here = np.uint64(to), np.uint64(at)
    for i in range(np.uint64(n)):
        table[there + i] = source[here + i]


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True, _nrt=False)
def add_stretch(total, begin, end, p, table, at):
    """Add ``p`` times the stretch of ``table`` that begins ``at`` to ``total[begin:end]``."""
    first, back = np.uint64(begin), np.uint64(at)  # unsigned: no index from the end, so that it becomes vectors
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
    """Add an outcome's part to ``total[begin:end]``, in which ``rest`` is what it leaves of the first budget.

    Without budget left it is ``without - slope * rest``, with it ``table[at + rest]``, and 0 from ``last`` on.
    """
    gone = begin + min(max(1 - rest, 0), end - begin)
    for i in range(begin, gone):
        total[i] += p * (without - slope * (rest + i - begin))
    add_stretch(total, gone, min(end, begin + last - rest), p, table, at + rest + gone - begin)


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True, _nrt=False)
def stretch_from(o, lower, n, b, successor, cost, row, ends):
    """Return where the stretch ``lower:n`` begins that an outcome leads to, and how much of it is in the table."""
    t, rest = successor[o], b - cost[o]
    last = n if len(ends) == 0 else min(n, ends[t] - rest)
    return row[t] + rest + lower, last - lower


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True, _nrt=False)
def add_up(total, begin, n, value, o, stop, b, probability, successor, cost, row, without, slope, table, ends):
    """Set ``total[begin:begin + n]`` to a value and what the outcomes ``o:stop`` lead to, ``b`` the first budget.

    Tables end at ``ends``, or nowhere if that is empty.  Whole stretches are taken four at a time, in their order.
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
