"""Backups against nature (:mod:`prudent.kernels.nature`), many levels at a time.

    U(s, b) = min over a of  max over p of  sum over outcomes of  p U(s', b - c)

Nature's choice is the worst as long as outcomes at ``high`` are at least as bad as the pivot, and those at ``low`` at
most.  That mostly stays so over many levels.  So an action's outcomes are sorted at one level, the next levels are
added up with the same probabilities, many at a time, and the first of them where the order fails is sorted anew.

Tables are by state and level, a row for each state.  Where the budget is gone, ``base`` takes their place:

    excess   U, of the action chosen: what the policy's excess is at worst
    below    the least excess over one level less, against nature's choices for U: a lower bound
    mean     M, the least worst-case expected cost among actions that attain U
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from prudent.kernels.choices import look_up
from prudent.kernels.free_cycles import STILL, Dense, at_least, at_worst, value_at, worst_at
from prudent.kernels.nature import spread
from prudent.kernels.stretches import FAST
from prudent.kernels.team import draw, finish, wait_for

AHEAD = 64
"""The most levels that are added up before the order is looked at."""

ALIKE = 1e-13
"""How far, relatively, values may be out of order: the sum is then too small by no more than this."""

PASSES, ROUNDS = 20, 1000
"""The passes over a free cycle before it is solved exactly, more for a large one; the most times that it is."""


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
    """Do what :func:`_over_levels` does for an action with one outcome; ``level`` is the first one after it."""
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
def _over_levels(
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
        _over_levels(
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
            _over_levels(
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
    policy of least worst-case mean exceeds no budget, not even one level less, so nothing is better.
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
        for _ in range(_passes(len(states))):
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
    for _ in range(_passes(len(states))):
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


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def _passes(size):
    """Return how many passes over a block take about as long as solving it exactly."""
    return PASSES + size * size // 16


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


# A policy's own values: the table has an index for each level, of which its budget is ``behind`` by so many.


@njit(cache=True, nogil=True, fastmath=FAST, _nrt=False)
def _follow(s, first, last, behind, choices, sets, base, slope, paid, table, stride, scratch):
    """Evaluate a policy's actions in a state at the levels from ``first`` to ``last``; return what changed."""
    entry, at, low, high, step, without = choices
    level, row, changed, found = first, s * stride, 0.0, scratch.by_action
    while level < last:
        a, end = look_up(entry, at, low, high, step, without, level - behind, s), level + 1
        while end < last and look_up(entry, at, low, high, step, without, end - behind, s) == a:
            end += 1
        _over_levels(
            sets.action_start[s] + a, level, end, sets, scratch.excess_order, table, stride, base, slope, paid, False,
            table, base, False, found, 0, found, scratch,
        )  # fmt: skip
        for i in range(end - level):
            changed = max(changed, abs(table[row + level + i] - found[i]) - STILL * found[i])
            table[row + level + i] = found[i]
        level = end
    return changed


@njit(cache=True, nogil=True, _nrt=False)
def follow_backwards(backwards, last, ahead, behind, choices, sets, base, slope, paid, table, stride, scratch):
    """Evaluate a policy in all states of a model without cycles, at the levels below ``last``."""
    for s in backwards:
        if sets.action_start[s] < sets.action_start[s + 1]:
            for first in range(1, last - ahead[s], scratch.width):
                end = min(first + scratch.width, last - ahead[s])
                _follow(s, first, end, behind, choices, sets, base, slope, paid, table, stride, scratch)


@njit(cache=True, nogil=True, _nrt=False)
def follow(
    block_start, block_state, first, last, behind, choices, sets, base, slope, paid, table, stride, scratch
):  # fmt: skip
    """Evaluate a policy in all states at the levels from ``first`` to ``last``; see :func:`settle`."""
    entry, place, low, high, step, without = choices
    dense = scratch.dense
    for block in range(len(block_start) - 1):
        states = block_state[block_start[block] : block_start[block + 1]]
        if sets.action_start[states[0]] == sets.action_start[states[0] + 1]:
            continue  # a goal
        changed = 0.0
        for _ in range(_passes(len(states)) if len(states) > 1 else 1):
            changed = 0.0
            for s in states:
                change = _follow(s, first, last, behind, choices, sets, base, slope, paid, table, stride, scratch)
                changed = max(changed, change)
            if changed <= 0.0:
                break
        if len(states) == 1 or changed <= 0.0:
            continue
        for level in range(first, last):
            for i in range(len(states)):
                s = states[i]
                played = look_up(entry, place, low, high, step, without, level - behind, s)
                dense.played[i] = sets.action_start[s] + played
            at_worst(
                states, level, sets, scratch.excess_order, table, stride, base, slope, paid, scratch.value,
                scratch.weight, dense,
            )  # fmt: skip


@njit(cache=True, nogil=True)
def after_actions(actions, level, sets, base, slope, paid, table, stride, order, found):
    """Fill in the worst expectation after each of some actions at a level, given a table of values."""
    most = np.max(np.diff(sets.outcome_start))
    value, weight = np.empty(most), np.empty(most)
    for i in range(len(actions)):
        found[i], _ = worst_at(
            actions[i], level, sets, order, table, stride, base, slope, paid, value, weight
        )  # fmt: skip
