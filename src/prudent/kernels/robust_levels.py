"""The worst expectation of an action against nature (:mod:`prudent.kernels.nature`), many levels at a time.

Nature's choice is the worst as long as outcomes at ``high`` are at least as bad as the pivot, and those at ``low`` at
most as bad.  Mostly this holds over many levels.  So an action's outcomes are sorted at one level, the next levels are
added up with the same probabilities, many at a time, and the first level at which the order fails is sorted anew.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from prudent.kernels.free_cycles import Dense
from prudent.kernels.nature import value_at, worst_at
from prudent.kernels.stretches import FAST

AHEAD = 64
"""The most levels that are added up before the order is checked."""

ALIKE = 1e-13
"""How far, relatively, values may be out of order: the sum is then too small by no more than this."""


class Scratch(NamedTuple):
    """What one thread works in."""

    excess_order: np.ndarray  # (n_outcomes,)  outcomes of each action, the worst first
    mean_order: np.ndarray  # (n_outcomes,)
    value: np.ndarray  # (most outcomes of an action,)
    weight: np.ndarray  # (most outcomes of an action,)
    spare: np.ndarray  # (AHEAD,)
    total: np.ndarray  # (AHEAD,)
    pivot: np.ndarray  # (AHEAD,)
    wrong: np.ndarray  # (AHEAD,)
    beneath: np.ndarray  # (AHEAD,)
    by_action: np.ndarray  # (most actions of a state * width,)
    below: np.ndarray  # (width,)
    mean: np.ndarray  # (width,)
    best: np.ndarray  # (width,)
    dense: Dense  # of states with free cycles
    width: int  # levels of a tile


# Indices are unsigned, so never counted from the end: loops over levels vectorise.


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def _stretch(table, stride, base, slope, s, level, n, spare):
    """Return where a state's values at ``n`` levels are: an array and a place; where the budget is gone, ``spare``."""
    if level > 0:
        return table, np.uint64(s * stride + level)
    gone, here = min(1 - level, n), base[s]
    for i in range(np.uint64(gone)):
        spare[i] = here - slope * (level + np.int64(i))
    begin, at = np.uint64(gone), np.uint64(s * stride + max(level, 1))
    for i in range(np.uint64(n - gone)):
        spare[begin + i] = table[at + i]
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


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True, _nrt=False)
def _after_sure_step(s, level, n, table, stride, base, slope, more, floor, floor_base, bound, out, to, low):
    """Do what :func:`over_levels` does for an action with one outcome; ``level`` is the first one after it."""
    gone, here = min(max(1 - level, 0), n), base[s] + more
    for i in range(gone):
        out[to + i] = here - slope * (level + i)
        if bound:
            low[i] = min(low[i], floor_base[s] - (level + i))
    at, begin, until = np.uint64(s * stride + level + gone), np.uint64(to + gone), np.uint64(gone)
    for i in range(np.uint64(n - gone)):
        out[begin + i] = table[at + i] + more
    if bound:
        for i in range(np.uint64(n - gone)):
            x = floor[at + i]
            low[until + i] = x if x < low[until + i] else low[until + i]


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True, _nrt=False)
def over_levels(
    a, first, last, sets, order, table, stride, base, slope, paid, falls, floor, floor_base, bound, out, to, low,
    scratch,
):  # fmt: skip
    """Fill ``out[to:]`` with the worst expectation of an action at the levels from ``first`` to ``last``.

    With ``paid`` costs are added.  With ``falls`` values never rise with the level, so once 0 they stay.  With
    ``bound`` lower ``low`` to the same expectation of the table ``floor``.
    """
    begin, end = sets.outcome_start[a], sets.outcome_start[a + 1]
    successor, cost, paid_cost, value, weight = sets.successor, sets.cost, sets.paid, scratch.value, scratch.weight
    spare, total, pivots, wrong, beneath = scratch.spare, scratch.total, scratch.pivot, scratch.wrong, scratch.beneath
    level, length, looped = first, AHEAD, sets.loop_high[a] > 0.0
    if end == begin + 1 and not looped:
        _after_sure_step(
            successor[begin], first - cost[begin], last - first, table, stride, base, slope,
            paid_cost[begin] if paid else 0.0, floor, floor_base, bound, out, to, low,
        )  # fmt: skip
        return
    while level < last:
        out[to + level - first], pivot = worst_at(
            a, level, sets, order, table, stride, base, slope, paid, value, weight
        )  # fmt: skip
        if bound:
            down = 0.0
            for k in range(begin, end):
                down += weight[k - begin] * value_at(floor, stride, floor_base, 1.0, successor[k], level - cost[k])
            low[level - first] = min(low[level - first], down)
        level += 1
        if falls and out[to + level - first - 1] == 0.0:
            for i in range(level - first, last - first):
                out[to + i] = 0.0
                if bound:
                    low[i] = min(low[i], 0.0)
            return
        if looped or level == last:
            continue
        n = min(length, last - level)
        constant = 0.0
        if paid:
            for k in range(begin, end):
                constant += weight[k - begin] * paid_cost[k]
        for i in range(np.uint64(n)):
            total[i], beneath[i], wrong[i], pivots[i] = constant, 0.0, 0.0, 0.0
        if pivot >= 0:
            k = order[pivot]
            row, at = _stretch(table, stride, base, slope, successor[k], level - cost[k], n, spare)
            more = paid_cost[k] if paid else 0.0
            for i in range(np.uint64(n)):
                pivots[i] = row[at + i] + more
        for place in range(begin, end):
            k = order[place]
            share, more, here = weight[k - begin], paid_cost[k] if paid else 0.0, level - cost[k]
            row, at = _stretch(table, stride, base, slope, successor[k], here, n, spare)
            if pivot < 0 or place == pivot or sets.low[k] == sets.high[k]:
                _add(total, n, share, row, at)
            else:
                _add_in_order(total, n, share, row, at, more, pivots, 1.0 if place < pivot else -1.0, wrong)
            if bound:
                row, at = _stretch(floor, stride, floor_base, 1.0, successor[k], here, n, spare)
                _add(beneath, n, share, row, at)
        good = 0
        while good < n and wrong[good] <= ALIKE * pivots[good]:
            out[to + level - first + good] = total[good]
            if bound:
                low[level - first + good] = min(low[level - first + good], beneath[good])
            good += 1
        length = min(2 * length, AHEAD) if good == n else max(length // 2, 4)
        level += good
