"""Backups against nature (:mod:`prudent.kernels.nature`), many levels at a time (:mod:`prudent.kernels.robust_levels`).

    U(s, b) = min over a of  max over p of  sum over outcomes of  p U(s', b - c)

Tables are by state and level, a row for each state.  Once the budget is used up, ``base`` takes their place:

    excess   U, of the action chosen: the policy's worst-case excess
    below    the least excess over one level less, against nature's choices for U: a lower bound
    mean     M, the least worst-case expected cost among actions that attain U
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from prudent.kernels.free_cycles import ROUNDS, STILL, at_least, at_worst, passes
from prudent.kernels.robust_levels import AHEAD, over_levels
from prudent.kernels.stretches import FAST
from prudent.kernels.team import draw, finish, wait_for


class Base(NamedTuple):
    """The worst-case expected cost of each state, from which tables begin."""

    upper: np.ndarray  # (n_states,)
    below: np.ndarray  # (n_states,)  a lower bound, with one level less: plus 1
    value: np.ndarray  # (n_states,)


class Tables(NamedTuple):
    """Values and actions by state and level."""

    excess: np.ndarray  # (n_states * stride,)
    below: np.ndarray  # (n_states * stride,)
    mean: np.ndarray  # (n_states * stride,)
    choice: np.ndarray  # (n_states * stride,)  the action's number within its state
    stride: int  # levels of a state


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def _first_within(value, at, most, i, n):
    """Return the first level from ``i`` on at which a value is no larger than allowed, ``n`` if there is none."""
    while i < n:
        end, within = min(i + AHEAD, n), False
        for k in range(np.uint64(i), np.uint64(end)):
            within |= value[np.uint64(at) + k] <= most[k]
        if within:
            while value[at + i] > most[i]:
                i += 1
            return i
        i = end
    return n


@njit(cache=True, nogil=True, fastmath=FAST, _nrt=False)
def _settle(s, first, last, sets, base, tables, tie, plan, bound, scratch):
    """Settle a state at the levels from ``first`` to ``last``: its plan, its bound, or both; return what changed."""
    start, stop, n, stride = sets.action_start[s], sets.action_start[s + 1], last - first, tables.stride
    by_action, low, mean, best, width = scratch.by_action, scratch.below, scratch.mean, scratch.best, scratch.width
    excesses, means, choice, row = tables.excess, tables.mean, tables.choice, s * stride + first
    for i in range(n):
        low[i] = np.inf
    for a in range(start, stop):
        over_levels(
            a, first, last, sets, scratch.excess_order, excesses, stride, base.upper, 1.0, False, True, tables.below,
            base.below, bound, by_action, (a - start) * width, low, scratch,
        )  # fmt: skip
    if bound:
        for i in range(n):
            tables.below[row + i] = low[i]
    if not plan:
        return 0.0
    for i in range(n):
        low[i], best[i] = np.inf, np.inf
    for a in range(stop - start):
        at = np.uint64(a * width)
        for i in range(np.uint64(n)):
            x = by_action[at + i]
            low[i] = x if x < low[i] else low[i]
    for i in range(n):
        low[i] *= 1 + tie  # what attains U is no larger
    for a in range(stop - start):
        i, at = 0, a * width
        while i < n:
            i = _first_within(by_action, at, low, i, n)
            j = i
            while j < n and by_action[at + j] <= low[j]:
                j += 1
            over_levels(
                start + a, first + i, first + j, sets, scratch.mean_order, means, stride, base.value, 0.0, True, False,
                means, base.value, False, mean, 0, mean, scratch,
            )  # fmt: skip
            for m in range(j - i):
                if mean[m] < best[i + m]:
                    best[i + m] = mean[m]
                    choice[row + i + m] = a
            i = j
    changed = 0.0
    for i in range(n):
        new = by_action[choice[row + i] * width + i]
        off, more = abs(excesses[row + i] - new) - STILL * new, abs(means[row + i] - best[i]) - STILL * best[i]
        changed = max(changed, off, more)
        excesses[row + i], means[row + i] = new, best[i]
    return changed


@njit(cache=True, nogil=True, _nrt=False)
def settle_backwards(counters, part, after, backwards, first, last, ahead, safe, sets, base, tables, tie, scratch):
    """Settle all states of a model without cycles at the levels from ``first`` to ``last``; threads draw parts.

    Each state has no more levels left than those that a run has not used before it is there.  From ``safe`` on the
    policy of least worst-case mean exceeds no budget, not even one level less, so no policy is better.
    """
    while True:
        part_drawn = draw(counters)
        if part_drawn >= len(after):
            return
        wait_for(counters, after[part_drawn])
        for i in range(part[part_drawn], part[part_drawn + 1]):
            s = backwards[i]
            low, high = max(first - ahead[s], 1), last - ahead[s]
            if high <= low or sets.action_start[s] == sets.action_start[s + 1]:
                continue
            row, until = s * tables.stride, min(max(safe[s], low), high)
            for level in range(until, high):
                tables.excess[row + level] = tables.below[row + level] = 0.0
                tables.mean[row + level], tables.choice[row + level] = base.value[s], tables.choice[row]
            if until > low:
                _settle(s, low, until, sets, base, tables, tie, True, True, scratch)
        finish(counters)


@njit(cache=True, nogil=True, _nrt=False)
def _settle_tile(block_start, block_state, first, last, sets, base, tables, tie, scratch):
    """Settle all states at the levels of one tile; see :func:`settle`."""
    for block in range(len(block_start) - 1):
        begin, end = block_start[block], block_start[block + 1]
        if end == begin + 1:
            s = block_state[begin]
            if sets.action_start[s] < sets.action_start[s + 1]:
                _settle(s, first, last, sets, base, tables, tie, True, True, scratch)
            continue
        for i in range(begin, end):
            row = block_state[i] * tables.stride
            for level in range(first, last):
                tables.excess[row + level] = tables.excess[row + first - 1]
                tables.mean[row + level] = tables.mean[row + first - 1]
                tables.below[row + level] = 0.0
        _plan_block(block_state[begin:end], first, last, sets, base, tables, tie, scratch)
        _bound_block(block_state[begin:end], first, last, sets, base, tables, tie, scratch)


@njit(cache=True, nogil=True, _nrt=False)
def _plan_block(states, first, last, sets, base, tables, tie, scratch):
    """Find the policy of a block with free cycles: passes until nothing changes, now and then with exact values."""
    dense, value, weight = scratch.dense, scratch.value, scratch.weight
    for _ in range(ROUNDS):
        for _ in range(passes(len(states))):
            changed = 0.0
            for s in states:
                changed = max(changed, _settle(s, first, last, sets, base, tables, tie, True, False, scratch))
            if changed <= 0.0:
                return
        for level in range(first, last):
            for i in range(len(states)):
                dense.played[i] = sets.action_start[states[i]] + tables.choice[states[i] * tables.stride + level]
            at_worst(
                states, level, sets, scratch.excess_order, tables.excess, tables.stride, base.upper, 1.0, False, value,
                weight, dense,
            )  # fmt: skip
            at_worst(
                states, level, sets, scratch.mean_order, tables.mean, tables.stride, base.value, 0.0, True, value,
                weight, dense,
            )  # fmt: skip


@njit(cache=True, nogil=True, _nrt=False)
def _bound_block(states, first, last, sets, base, tables, tie, scratch):
    """Find the lower bound of a block with free cycles, against nature's choices for the plan."""
    for _ in range(passes(len(states))):
        changed = 0.0
        for s in states:
            row = s * tables.stride
            for level in range(first, last):
                scratch.best[level - first] = tables.below[row + level]
            _settle(s, first, last, sets, base, tables, tie, False, True, scratch)
            for level in range(first, last):
                before, after = scratch.best[level - first], tables.below[row + level]
                tables.below[row + level] = max(after, before)
                changed = max(changed, after - before - STILL * after)
        if changed <= 0.0:
            return
    for level in range(first, last):
        at_least(
            states, level, sets, scratch.excess_order, tables.excess, base.upper, tables.below, tables.stride,
            base.below, scratch.value, scratch.weight, scratch.dense,
        )  # fmt: skip


@njit(cache=True, nogil=True, _nrt=False)
def settle(block_start, block_state, first, last, sets, base, tables, tie, scratch):
    """Settle all states at the levels from ``first`` to ``last``, a tile after the other.

    In a tile no state waits for another at a cost.  Blocks come successors first.  In a cycle U begins from the level
    before, which is an upper bound, and falls; its lower bound begins from 0 and rises, against the choices of nature
    that have been found.
    """
    for level in range(first, last, scratch.width):
        _settle_tile(
            block_start, block_state, level, min(level + scratch.width, last), sets, base, tables, tie, scratch
        )  # fmt: skip
