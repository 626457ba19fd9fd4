"""Backups against nature, which chooses the probabilities of each action from intervals, anew at every visit.

    U(s, b) = min over a of  max over p of  sum over outcomes of  p U(s', b - c)        low <= p <= high,  sum p = 1

The maximum fills the worst outcomes first: each gets its ``low``, and what is left of 1 goes to the outcomes of largest
value, up to their ``high``.  So outcomes are of three kinds: those at ``high``, the *pivot*, which takes the rest, and
those at ``low``; and these probabilities are the worst as long as the first are at least as bad as the pivot and the
last at most.  They mostly stay so over many levels.  So an action's outcomes are sorted at one level, the next levels
are added up with the same probabilities, many at a time, and the first of them where the order fails is sorted anew.

A free loop, back to the same state at no cost, makes the action be played again.  Its value is the value sought, u, so
u is the largest of  sum p x / (1 - loop)  over all choices of nature: each round fills with the last u and finds a
larger one, until it stays.

Tables are by state and level.  Where the budget is gone, ``base`` takes their place:

    excess   U, of the action chosen: what the policy's excess is at worst
    below    the least excess over one level less, against nature's choices for U: a lower bound
    mean     M, the least worst-case expected cost among actions that attain U
"""

from typing import NamedTuple

import numpy as np
from numba import njit

AHEAD = 64
"""The most levels that are added up before the order is looked at."""

ALIKE = 1e-13
"""How far, relatively, values may be out of order: the sum is then too small by no more than this."""

ROUNDS = 64
"""The most rounds for a free loop: each changes the kind of an outcome."""

PASSES, STILL = 100_000, 1e-14
"""The most passes over a free cycle, and the relative change at which they end."""


class Sets(NamedTuple):
    """The actions of a prepared model with what nature may choose from."""

    action_start: np.ndarray  # (n_states + 1,)
    outcome_start: np.ndarray  # (n_actions + 1,)
    successor: np.ndarray  # (n_outcomes,)
    cost: np.ndarray  # (n_outcomes,)  in levels, as charged
    paid: np.ndarray  # (n_outcomes,)  in levels, not rounded
    low: np.ndarray  # (n_outcomes,)
    high: np.ndarray  # (n_outcomes,)
    loop_low: np.ndarray  # (n_actions,)  of the free loop, 0 if there is none
    loop_high: np.ndarray  # (n_actions,)


class Base(NamedTuple):
    """The worst-case expected cost of each state, from which tables begin."""

    upper: np.ndarray  # (n_states,)
    below: np.ndarray  # (n_states,)  a lower bound, with one level less: plus 1
    value: np.ndarray  # (n_states,)


class Tables(NamedTuple):
    """Values and actions by state and level."""

    excess: np.ndarray  # (n_states, n_levels)
    below: np.ndarray  # (n_states, n_levels)
    mean: np.ndarray  # (n_states, n_levels)
    choice: np.ndarray  # (n_states, n_levels)  the action's number within its state


class Scratch(NamedTuple):
    """What one thread works in."""

    excess_order: np.ndarray  # (n_outcomes,)  outcomes of each action, the worst first
    mean_order: np.ndarray  # (n_outcomes,)
    value: np.ndarray  # (most outcomes of an action,)
    weight: np.ndarray  # (most outcomes of an action,)
    ahead: np.ndarray  # (5, AHEAD)
    by_action: np.ndarray  # (most actions of a state, levels of a tile)
    below: np.ndarray  # (levels of a tile,)
    mean: np.ndarray  # (levels of a tile,)
    best: np.ndarray  # (levels of a tile,)


@njit(cache=True)
def align(model_action, first, target, cost, low, high, probability, own, rows, free_below, sets):
    """Add up the intervals of the model's outcomes in the prepared ones; return an action that does not fit, or -1.

    ``first`` is where the outcomes of each model action begin; ``target`` and ``cost`` are their prepared successors
    and costs.  ``own`` is the prepared state of each prepared action, ``rows`` the prepared costs.
    """
    for a in range(len(model_action)):
        m = model_action[a]
        if m < 0:
            continue
        begin, end = sets.outcome_start[a], sets.outcome_start[a + 1]
        for o in range(first[m], first[m + 1]):
            if probability[o] <= 0:
                continue
            if target[o] == own[a] and cost[o] < free_below:
                sets.loop_low[a] += low[o]
                sets.loop_high[a] += high[o]
                continue
            found = False
            for k in range(begin, end):
                if sets.successor[k] == target[o] and rows[k] == cost[o]:
                    sets.low[k] += low[o]
                    sets.high[k] += high[o]
                    found = True
                    break
            if not found:
                return a
    return -1


@njit(cache=True)
def spread(begin, end, order, sets, a, value, weight):
    """Fill ``weight`` with nature's worst probabilities for the values of an action's outcomes.

    Return the worst expectation, and the pivot's place in the order, -1 if nature has no choice.
    """
    for i in range(begin + 1, end):
        k = order[i]
        x = value[k - begin]
        j = i
        while j > begin and value[order[j - 1] - begin] < x:
            order[j] = order[j - 1]
            j -= 1
        order[j] = k
    loop_low, loop_high = sets.loop_low[a], sets.loop_high[a]
    spare = 1.0 - loop_low
    for k in range(begin, end):
        spare -= sets.low[k]
    spare = max(spare, 0.0)
    best = -1.0
    for _ in range(ROUNDS):
        left, loop, placed, pivot = spare, loop_low, loop_high == 0.0, -1
        for i in range(begin, end):
            k = order[i]
            if not placed and value[k - begin] < best:
                more = min(loop_high - loop_low, left)
                loop, left, placed = loop + more, left - more, True
            more = min(sets.high[k] - sets.low[k], left)
            weight[k - begin] = sets.low[k] + more
            left -= more
            if more > 0.0:
                pivot = i
        if not placed:
            loop += min(loop_high - loop_low, left)
        total = 0.0
        for k in range(begin, end):
            total += weight[k - begin] * value[k - begin]
        if loop_high == 0.0:
            return total, pivot
        total /= 1.0 - loop
        for k in range(end - begin):
            weight[k] /= 1.0 - loop
        if total <= best * (1 + 1e-15):
            break
        best = total
    return total, -1


@njit(cache=True)
def worst_means(sets, value, order, found, probability):
    """Fill in the worst expected cost of each action, given the values of the states, and nature's probabilities."""
    x = np.empty(max(1, np.max(np.diff(sets.outcome_start))))
    for a in range(len(sets.outcome_start) - 1):
        begin, end = sets.outcome_start[a], sets.outcome_start[a + 1]
        for k in range(begin, end):
            x[k - begin] = sets.paid[k] + value[sets.successor[k]]
        found[a], _ = spread(begin, end, order, sets, a, x, probability[begin:end])


@njit(cache=True)
def worst_backwards(backwards, sets, order, value, choice):
    """Fill in the least worst-case expected cost of each state of a model without cycles, and its action."""
    most = max(1, np.max(np.diff(sets.outcome_start)))
    x, weight = np.empty(most), np.empty(most)
    for s in backwards:
        value[s] = 0.0
        for a in range(sets.action_start[s], sets.action_start[s + 1]):
            begin, end = sets.outcome_start[a], sets.outcome_start[a + 1]
            for k in range(begin, end):
                x[k - begin] = sets.paid[k] + value[sets.successor[k]]
            found, _ = spread(begin, end, order, sets, a, x, weight)
            if a == sets.action_start[s] or found < value[s]:
                value[s], choice[s] = found, a


@njit(cache=True)
def _at(table, base, slope, s, level):
    """Return a state's value at a level, also where the budget is gone."""
    return table[s, level] if level > 0 else base[s] - slope * level


@njit(cache=True)
def _ahead(table, base, slope, s, first, last, cost, more, out):
    """Copy a successor's values, at the levels from ``first`` to ``last`` less the cost, plus ``more``."""
    gone = min(max(cost + 1, first), last)
    for level in range(first, gone):
        out[level - first] = base[s] - slope * (level - cost) + more
    row = table[s]
    shift = gone - first
    for i in range(last - gone):
        out[shift + i] = row[gone + i - cost] + more


@njit(cache=True)
def _over_levels(a, first, last, sets, order, table, base, slope, paid, floor, floor_base, bound, out, low, scratch):
    """Fill ``out`` with the worst expectation of an action at the levels from ``first`` to ``last``.

    With ``paid`` costs are added.  With ``bound`` lower ``low`` to the same expectation of the table ``floor``.
    """
    begin, end = sets.outcome_start[a], sets.outcome_start[a + 1]
    successor, cost, value, weight = sets.successor, sets.cost, scratch.value, scratch.weight
    x, total, at_pivot, wrong, beneath = (
        scratch.ahead[0],
        scratch.ahead[1],
        scratch.ahead[2],
        scratch.ahead[3],
        scratch.ahead[4],
    )
    level, length, looped = first, AHEAD, sets.loop_high[a] > 0.0
    while level < last:
        for k in range(begin, end):
            more = sets.paid[k] if paid else 0.0
            value[k - begin] = _at(table, base, slope, successor[k], level - cost[k]) + more
        out[level - first], pivot = spread(begin, end, order, sets, a, value, weight)
        if bound:
            down = 0.0
            for k in range(begin, end):
                down += weight[k - begin] * _at(floor, floor_base, 1.0, successor[k], level - cost[k])
            low[level - first] = min(low[level - first], down)
        level += 1
        if looped or level == last:
            continue
        n = min(length, last - level)
        total[:n], beneath[:n], wrong[:n], at_pivot[:n] = 0.0, 0.0, 0.0, 0.0
        if pivot >= 0:
            k = order[pivot]
            more = sets.paid[k] if paid else 0.0
            _ahead(table, base, slope, successor[k], level, level + n, cost[k], more, at_pivot)
        for i in range(begin, end):
            k = order[i]
            share, more = weight[k - begin], sets.paid[k] if paid else 0.0
            _ahead(table, base, slope, successor[k], level, level + n, cost[k], more, x)
            if pivot < 0 or i == pivot or sets.low[k] == sets.high[k]:
                for j in range(n):
                    total[j] += share * x[j]
            elif i < pivot:
                for j in range(n):
                    total[j] += share * x[j]
                    off = at_pivot[j] - x[j]
                    wrong[j] = off if off > wrong[j] else wrong[j]
            else:
                for j in range(n):
                    total[j] += share * x[j]
                    off = x[j] - at_pivot[j]
                    wrong[j] = off if off > wrong[j] else wrong[j]
            if bound:
                _ahead(floor, floor_base, 1.0, successor[k], level, level + n, cost[k], 0.0, x)
                for j in range(n):
                    beneath[j] += share * x[j]
        good = 0
        while good < n and wrong[good] <= ALIKE * at_pivot[good]:
            out[level - first + good] = total[good]
            if bound:
                low[level - first + good] = min(low[level - first + good], beneath[good])
            good += 1
        length = min(2 * length, AHEAD) if good == n else max(length // 2, 4)
        level += good


@njit(cache=True)
def _settle(s, first, last, sets, base, tables, tie, plan, bound, scratch):
    """Settle a state at the levels from ``first`` to ``last``: its plan, its bound, or both."""
    start, stop, n = sets.action_start[s], sets.action_start[s + 1], last - first
    by_action, low, mean, best = scratch.by_action, scratch.below, scratch.mean, scratch.best
    excess, floor = (tables.excess, base.upper, 1.0, False), (tables.below, base.below)
    low[:n] = np.inf
    for a in range(start, stop):
        out = by_action[a - start]
        _over_levels(a, first, last, sets, scratch.excess_order, *excess, *floor, bound, out, low, scratch)
    if bound:
        for i in range(n):
            tables.below[s, first + i] = low[i]
    if not plan:
        return 0.0
    least, changed = low, 0.0
    for i in range(n):
        least[i], best[i] = by_action[0, i], np.inf
        for a in range(1, stop - start):
            least[i] = min(least[i], by_action[a, i])
    means = (tables.mean, base.value, 0.0, True)
    for a in range(stop - start):
        i = 0
        while i < n:
            if by_action[a, i] > least[i] * (1 + tie):
                i += 1
                continue
            j = i + 1
            while j < n and by_action[a, j] <= least[j] * (1 + tie):
                j += 1
            about = first + i, first + j, sets, scratch.mean_order
            _over_levels(start + a, *about, *means, tables.mean, base.value, False, mean, mean, scratch)
            for m in range(j - i):
                if mean[m] < best[i + m]:
                    best[i + m] = mean[m]
                    tables.choice[s, first + i + m] = a
            i = j
    for i in range(n):
        new = by_action[tables.choice[s, first + i], i]
        off = abs(tables.excess[s, first + i] - new) - STILL * new
        more = abs(tables.mean[s, first + i] - best[i]) - STILL * best[i]
        changed = max(changed, off, more)
        tables.excess[s, first + i], tables.mean[s, first + i] = new, best[i]
    return changed


@njit(cache=True, nogil=True)
def settle(block_start, block_state, first, last, ahead, sets, base, tables, tie, scratch):
    """Settle all states at the levels from ``first`` to ``last``, less those that a run has used before it is there.

    Blocks come successors first.  In a cycle U begins from the level before, which is an upper bound, and falls; its
    lower bound begins from 0 and rises, against the choices of nature that have been found.
    """
    for block in range(len(block_start) - 1):
        states = block_state[block_start[block] : block_start[block + 1]]
        if len(states) == 1:
            s = states[0]
            begin, end = max(first - ahead[s], 1), last - ahead[s]
            if end > begin and sets.action_start[s] < sets.action_start[s + 1]:
                _settle(s, begin, end, sets, base, tables, tie, True, True, scratch)
            continue
        for s in states:
            for level in range(first, last):
                tables.excess[s, level] = tables.excess[s, first - 1]
                tables.mean[s, level] = tables.mean[s, first - 1]
                tables.below[s, level] = 0.0
        for _ in range(PASSES):
            changed = 0.0
            for s in states:
                changed = max(changed, _settle(s, first, last, sets, base, tables, tie, True, False, scratch))
            if changed <= 0.0:
                break
        for _ in range(PASSES):
            changed = 0.0
            for s in states:
                before = tables.below[s, first:last].copy()
                _settle(s, first, last, sets, base, tables, tie, False, True, scratch)
                after = tables.below[s, first:last]
                for i in range(last - first):
                    after[i] = max(after[i], before[i])
                    changed = max(changed, after[i] - before[i] - STILL * after[i])
            if changed <= 0.0:
                break
