"""The worst expectation of an action against nature (:mod:`prudent.kernels.nature`), many levels at a time.

Nature's choice is the worst as long as outcomes at ``high`` are at least as bad as the pivot, and those at ``low`` at
most as bad.  Mostly this holds over many levels.  So an action's outcomes are sorted at one level, the next levels are
added up with the same probabilities, many at a time, and the first level at which the order fails is sorted anew.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from prudent.kernels.nature import value_at, worst_at
from prudent.kernels.questions import FAST
from prudent.kernels.stretches import fill

AHEAD = 64
"""The most levels that are added up before the order is checked."""

ALIKE = 1e-13
"""How far, relatively, values may be out of order: the sum is then too small by no more than this."""


class Dense(NamedTuple):
    """The arrays in which a block of states with free cycles is solved."""

    rank: np.ndarray  # (n_states,)  a state's place in its block
    played: np.ndarray  # (largest block,)  the action of each state
    matrix: np.ndarray  # (largest block, largest block)
    out: np.ndarray  # (largest block,)  the probability to leave the block
    stay: np.ndarray  # (largest block,)
    right: np.ndarray  # (largest block,)


class Scratch(NamedTuple):
    """What one thread works in; ``width`` is the most levels that are settled at once."""

    value: np.ndarray  # (most outcomes of an action,)
    weight: np.ndarray  # (most outcomes of an action,)
    spare: np.ndarray  # (AHEAD,)
    total: np.ndarray  # (AHEAD,)
    pivot: np.ndarray  # (AHEAD,)
    wrong: np.ndarray  # (AHEAD,)
    beneath: np.ndarray  # (AHEAD,)
    low: np.ndarray  # (width,)
    mean: np.ndarray  # (width,)
    best: np.ndarray  # (width,)
    by_action: np.ndarray  # (most actions of a state, width)
    dense: Dense


# Indices are unsigned, so never counted from the end: loops over levels vectorise.


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def _copy(values, s, level, n, more, out):
    """Copy a state's values at ``n`` levels, also where the budget is gone, and add ``more``."""
    gone, here = min(max(1 - level, 0), n), values.base[s] + more
    for i in range(np.uint64(gone)):
        out[i] = here - values.slope * (level + np.int64(i))
    begin, at = np.uint64(gone), np.uint64(s * values.stride + level + gone)
    for i in range(np.uint64(n - gone)):
        out[begin + i] = values.table[at + i] + more


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def _stretch(values, s, level, n, spare):
    """Return where a state's values at ``n`` levels are: an array and a place; where the budget is gone, ``spare``."""
    if level > 0:
        return values.table, np.uint64(s * values.stride + level)
    _copy(values, s, level, n, 0.0, spare)
    return spare, np.uint64(0)


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True, _nrt=False)
def _add(total, n, share, table, at):
    """Add a multiple of a stretch to a total."""
    for i in range(np.uint64(n)):
        total[i] += share * table[at + i]


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True, _nrt=False)
def _add_in_order(total, n, share, table, at, more, pivot, side, wrong):
    """Add a multiple of a stretch, and note by how much it is on the wrong side of the pivot: 1 above, -1 below."""
    for i in range(np.uint64(n)):
        x = table[at + i]
        total[i] += share * x
        off = side * (pivot[i] - (x + more))
        wrong[i] = off if off > wrong[i] else wrong[i]


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def lower(low, at, n, new):
    """Lower values from a place on to those that are less."""
    here = np.uint64(at)
    for i in range(np.uint64(n)):
        low[here + i] = new[i] if new[i] < low[here + i] else low[here + i]


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True, _nrt=False)
def over_levels(a, first, last, sets, values, floor, out, scratch):
    """Fill ``out`` with the worst expectation of an action at the levels from ``first`` to ``last``.

    With a ``floor`` lower ``scratch.low`` to the expectation of these values under the same choices of nature.
    """
    begin, end = sets.outcome_start[a], sets.outcome_start[a + 1]
    successor, cost, order, added, weight = sets.successor, sets.cost, values.order, values.added, scratch.weight
    spare, total, pivots, wrong, beneath = scratch.spare, scratch.total, scratch.pivot, scratch.wrong, scratch.beneath
    level, length, looped = first, AHEAD, sets.loop_high[a] > 0.0
    if end == begin + 1 and not looped:  # a sure step
        s, after, n = successor[begin], first - cost[begin], last - first
        _copy(values, s, after, n, added[begin], out)
        if floor is not None:
            _copy(floor, s, after, n, 0.0, scratch.best)
            lower(scratch.low, 0, n, scratch.best)
        return
    while level < last:
        at = level - first
        out[at], pivot = worst_at(a, level, sets, values, scratch.value, weight)
        if floor is not None:
            down = 0.0
            for k in range(begin, end):
                down += weight[k - begin] * value_at(floor, successor[k], level - cost[k])
            scratch.low[at] = min(scratch.low[at], down)
        level += 1
        if values.falls and out[at] == 0.0:
            fill(out, level - first, last - first, 0.0)
            if floor is not None:
                fill(scratch.low, level - first, last - first, 0.0)
            return
        if looped or level == last:
            continue
        n = min(length, last - level)
        constant = 0.0
        for k in range(begin, end):
            constant += weight[k - begin] * added[k]
        for i in range(np.uint64(n)):
            total[i], beneath[i], wrong[i], pivots[i] = constant, 0.0, 0.0, 0.0
        if pivot >= 0:
            k = order[pivot]
            _copy(values, successor[k], level - cost[k], n, added[k], pivots)
        for place in range(begin, end):
            k = order[place]
            share, here = weight[k - begin], level - cost[k]
            row, start = _stretch(values, successor[k], here, n, spare)
            if pivot < 0 or place == pivot or sets.low[k] == sets.high[k]:
                _add(total, n, share, row, start)
            else:
                _add_in_order(total, n, share, row, start, added[k], pivots, 1.0 if place < pivot else -1.0, wrong)
            if floor is not None:
                row, start = _stretch(floor, successor[k], here, n, spare)
                _add(beneath, n, share, row, start)
        good = 0
        while good < n and wrong[good] <= ALIKE * pivots[good]:
            out[at + 1 + good] = total[good]
            good += 1
        if floor is not None:
            lower(scratch.low, at + 1, good, beneath)
        length = min(2 * length, AHEAD) if good == n else max(length // 2, 4)
        level += good
