"""The parts of sweeps in tiles: a model laid out, its tables, and sums of stretches (ranges of levels) of them.

An outcome adds to a node's table a multiple of a stretch of its successor's table, ``cost`` levels further back.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from prudent.kernels.questions import FAST


class Work(NamedTuple):
    """A model laid out for tiles."""

    group_start: np.ndarray  # (n_groups + 1,)
    group_node: np.ndarray  # (n_nodes,)  groups successors first; within one, successors along free outcomes first
    cyclic: np.ndarray  # (n_groups,)  whether a group's nodes wait for each other within a tile
    action_start: np.ndarray  # (n_nodes + 1,)
    outcome_start: np.ndarray  # (n_actions + 1,)
    probability: np.ndarray  # (n_outcomes,)
    successor: np.ndarray  # (n_outcomes,)
    cost: np.ndarray  # (n_outcomes,)
    mean_cost: np.ndarray  # (n_actions,)
    left_out: np.ndarray  # (n_actions,)  whether an action need not be looked at
    delay: np.ndarray  # (n_nodes,)  the least cost from the start


class Groups(NamedTuple):
    """What cyclic groups need besides."""

    ready: np.ndarray  # (n_actions,)  outcomes from here on are known before the tile begins
    scratch: np.ndarray  # (n_nodes,)  where a node's actions begin in the scratch of its group
    queue_start: np.ndarray  # (n_groups + 1,)
    queue: np.ndarray  # (n_actions,)  the actions of each group, sorted by successor for the cache
    action_node: np.ndarray  # (n_actions,)


class Parts(NamedTuple):
    """The groups cut into pieces of about the same work, none with groups of two layers."""

    layer_start: np.ndarray  # (n_layers + 1,)  where the pieces of each layer begin
    group: np.ndarray  # (n_pieces + 1,)  where each piece begins; a group with a cycle is one of its own


class Tiles(NamedTuple):
    """Tiles that are settled in one call, some at the same time, and what is found for the start."""

    first: int  # the first level
    last: int  # the level after the last
    tile: int  # levels in a tile
    strip: int  # levels of a tile that are settled at once
    streams: int  # tiles in work at the same time, each in tables of its own
    apart: int  # how far apart in the tables two streams are
    counters: np.ndarray  # (n_tiles, 16)  of each tile
    start: int  # the start's node
    start_group: int  # and its group
    excess: np.ndarray  # (last - first,)  U of the start
    mean: np.ndarray  # (last - first,)  M of the start, with a plan


class Strip(NamedTuple):
    """The levels ``low:high`` of a tile, which are settled at once; ``shift`` is added to where rows are."""

    first: int  # of the tile
    last: int  # after the tile
    low: int
    high: int
    shift: int


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

    row: np.ndarray  # (n_nodes,)  where a node's value for budget 0 is, or would be; if shared, if tiles began with 0
    excess: np.ndarray  # U
    mean: np.ndarray  # M
    front: int  # levels before a tile that rows hold where they are shared, with those without budget; else -1
    back: np.ndarray  # (n_nodes,)  how many of these are looked back to, where rows are shared
    kept: int  # levels of each node that are handed on from tile to tile; 0 where rows are not shared
    block: int  # how many of them lie side by side
    final: int  # where the last tile ends, which hands nothing on
    excess_before: np.ndarray  # by block, node, level: level t is where t modulo ``kept`` is
    mean_before: np.ndarray
    choice: np.ndarray  # the action's number within its state
    place: np.ndarray  # (n_states,)  where a state's choice for budget 0 is, or would be
    stride: int  # the distance between a state's choices for consecutive budgets


class Scratch(NamedTuple):
    """The arrays that a thread works in."""

    k: np.ndarray  # (most actions in a node, in whole fours, * length)  U if an action is played
    ready: np.ndarray  # (tile, most actions in a group)  the part of U or M that is known before the tile begins
    least: np.ndarray  # (length,)  the least U
    next_least: np.ndarray  # (length,)  the second least U
    m: np.ndarray  # (length,)  M if an action is played
    mean: np.ndarray  # (length,)  the least M
    chosen: np.ndarray  # (length,)  the action taken
    p: np.ndarray  # (most outcomes of an action,)  of the stretches to add up: their probabilities
    at: np.ndarray  # (most outcomes of an action,)  and where they begin
    picked: np.ndarray  # (some nodes * length,)  their actions, to be written together
    to: np.ndarray  # (some nodes,)  where to: the place of the first
    many: np.ndarray  # (some nodes,)  and how many
    held: np.ndarray  # (1,)  how many nodes these are now
    lost: np.ndarray  # (1,)  the most that U of a chosen action is above the least, relatively


LANES = 32
"""Loops run over whole blocks of so many levels where they may: compiled loops do the rest of a block one by one.
Scratch and tables are longer by as many levels, of any value."""

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
def add_outcome(total, begin, end, p, without, slope, rest, table, at, last):
    """Add an outcome's part to ``total[begin:end]``; ``rest`` is what the outcome leaves of the first budget.

    The part is ``without - slope * rest`` if no budget is left, else ``table[at + rest]``, and 0 from ``last`` on.
    """
    gone = begin + min(max(1 - rest, 0), end - begin)
    for i in range(begin, gone):
        total[i] += p * (without - slope * (rest + i - begin))
    first, back = np.uint64(gone), np.uint64(at + rest + gone - begin)  # unsigned, so it vectorises
    for i in range(np.uint64(max(min(end, begin + last - rest) - gone, 0))):
        total[first + i] += p * table[back + i]


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True, _nrt=False)
def add_one(total, begin, n, fresh, value, table, p, at, j):
    """Add a stretch to ``total[begin:begin + n]``; where that is ``fresh``, it is ``value`` before."""
    first, zero, p0 = np.uint64(begin), np.uint64(at[j]), p[j]
    for i in range(np.uint64(n)):
        total[first + i] = (value if fresh else total[first + i]) + p0 * table[zero + i]


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True, _nrt=False)
def add_two(total, begin, n, fresh, value, table, p, at, j):
    """Add two stretches, one after the other."""
    first, zero, one, p0, p1 = np.uint64(begin), np.uint64(at[j]), np.uint64(at[j + 1]), p[j], p[j + 1]
    for i in range(np.uint64(n)):
        some = (value if fresh else total[first + i]) + p0 * table[zero + i]
        total[first + i] = some + p1 * table[one + i]


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True, _nrt=False)
def add_five(total, begin, n, fresh, value, table, p, at, j):
    """Add five stretches, one after the other: each total is loaded and stored once."""
    first, zero, one, two = np.uint64(begin), np.uint64(at[j]), np.uint64(at[j + 1]), np.uint64(at[j + 2])
    three, four = np.uint64(at[j + 3]), np.uint64(at[j + 4])
    p0, p1, p2, p3, p4 = p[j], p[j + 1], p[j + 2], p[j + 3], p[j + 4]
    for i in range(np.uint64(n)):
        some = ((value if fresh else total[first + i]) + p0 * table[zero + i]) + p1 * table[one + i]
        total[first + i] = ((some + p2 * table[two + i]) + p3 * table[three + i]) + p4 * table[four + i]


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True, _nrt=False)
def add_up(
    total, begin, n, value, o, stop, b, probability, successor, cost, row, shift, filled, without, slope, table, ends,
    p, at,
):  # fmt: skip
    """Set ``total[begin:begin + n]`` to ``value`` plus the parts of the outcomes ``o:stop``; ``b`` is the first budget.

    Parts are 0 from the budgets ``ends`` on, if there are any, as the table has it.  ``filled`` says that the table has
    them without budget, too; ``shift`` is added to where its rows are.  ``total`` is overwritten up to a whole block;
    ``p`` and ``at`` are scratch.
    """
    lower = 0  # from here on every outcome leaves some budget
    for i in range(o, o if filled else stop):
        lower = max(lower, cost[i] + 1 - b)
    lower = min(lower, n)
    if lower > 0:
        for i in range(begin, begin + lower):
            total[i] = value
        for i in range(o, stop):
            t, rest = successor[i], b - cost[i]
            last = NEVER if len(ends) == 0 else ends[t]
            add_outcome(
                total, begin, begin + lower, probability[i], without[t], slope, rest, table, row[t] + shift, last
            )
    count = 0
    for i in range(o, stop):
        t, rest = successor[i], b - cost[i] + lower
        if len(ends) == 0 or ends[t] > rest:
            p[count], at[count] = probability[i], row[t] + shift + rest
            count += 1
    begin, n = begin + lower, (n - lower + LANES - 1) // LANES * LANES
    j, fresh = 0, True
    while j + 5 <= count:
        add_five(total, begin, n, fresh, value, table, p, at, j)
        j, fresh = j + 5, False
    while j + 2 <= count:
        add_two(total, begin, n, fresh, value, table, p, at, j)
        j, fresh = j + 2, False
    if j < count:
        add_one(total, begin, n, fresh, value, table, p, at, j)
    if count == 0:
        fill(total, begin, begin + n, value)


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def fill(table, begin, end, value):
    """Set a stretch to a value."""
    for i in range(np.uint64(begin), np.uint64(max(begin, end))):
        table[i] = value


@njit(cache=True, nogil=True)
def slide(table, width, by, kept):
    """Move the levels ``by:by + kept`` of each row, ``width`` long, to its front."""
    for start in range(0, len(table) - width + 1, width):
        for i in range(start, start + kept):
            table[i] = table[i + by]


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def kept_place(t, ring, at):
    """Return where level ``t`` of a node is kept, and how many levels from there on lie side by side.

    ``ring`` says how many levels are kept, how many of them lie side by side, and how far apart such blocks are.
    """
    kept, block, span = ring
    place = t % kept
    return place // block * span + at + place % block, min(kept - place, block - place % block)


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def take_over(table, row, delay, back, ring, before, at, first, last, begin, end):
    """Put levels of a node from before the tile ``first:last`` into its row: those whose places ``begin:end`` takes.

    So parts of a tile that take over and hand on at the same time never use the same place.  The last part also takes
    those whose places nobody hands on to.  Levels more than ``back`` before the tile are not looked at.
    """
    kept, low = ring[0], max(delay + 1, first - back)  # no level before is needed: it has no budget, or nobody looks
    t = max(begin, last - kept)
    while t < end:
        old = first - kept + (t - first) % kept  # the level that has the place of t
        place, side_by_side = kept_place(old, ring, at)
        n = min(end - t, first - old, side_by_side)
        gone = min(max(low - old, 0), n)
        copy(table, row + old + gone - delay, n - gone, before, place + gone)
        t += n
    t = max(last - kept, low)
    while end == last and t < first:
        place, side_by_side = kept_place(t, ring, at)
        n = min(first - t, side_by_side)
        copy(table, row + t - delay, n, before, place)
        t += n


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def hand_on(table, row, delay, back, ring, before, at, last, begin, end):
    """Keep those of the levels ``begin:end`` of a node that tiles after ``last`` look back to."""
    t = max(begin, last - min(ring[0], back), delay + 1)
    while t < end:
        place, side_by_side = kept_place(t, ring, at)
        n = min(end - t, side_by_side)
        copy(before, place, n, table, row + t - delay)
        t += n


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True, _nrt=False)
def begin_row(table, row, delay, back, without, slope, ring, before, at, tile, strip, goal):
    """Put into a node's shared row what the levels of a strip and those before the tile have without being settled."""
    (first, last), (begin, end) = tile, strip
    low = first - back if begin == first else begin
    b, at_first = low - delay, np.uint64(row + low - delay)
    for i in range(np.uint64(max(min(end, delay + 1) - low, 0))):  # no budget is left
        table[at_first + i] = without - slope * (b + np.int64(i))
    if goal:
        fill(table, row + max(low - delay, 1), row + end - delay, 0.0)
    elif ring[0] > 0:
        take_over(table, row, delay, back, ring, before, at, first, last, begin, end)
