"""Passes over all outcomes for preparing a model: costs as whole numbers, sorted outcomes, sums.

Threads draw parts: ``part`` says where rows are cut into them, lists without rows are cut every ``PART`` items.
"""

import numpy as np
from numba import njit

from prudent.kernels.team import draw

SHORT = 32
"""Rows up to this length are sorted by counting, for each item, those that come before it."""

HALF, LOWER = 31, 2**31 - 1
"""The bits of a cost, and of a successor, that are sorted as one number; and a mask for the lower ones."""

PART = 2**14
"""Items in a part of a list."""


@njit(cache=True)
def sorted_by(row, row_start):
    """Return the items sorted by row, in their own order within a row; rows begin at ``row_start``."""
    next_item = row_start.copy()
    order = np.empty(len(row), dtype=np.int64)
    for i in range(len(row)):
        order[next_item[row[i]]] = i
        next_item[row[i]] += 1
    return order


@njit(cache=True, nogil=True)
def copy_list(counters, source, target):
    """Copy a list."""
    while True:
        k = draw(counters)
        if k >= -(-len(source) // PART):
            return
        target[k * PART : min((k + 1) * PART, len(source))] = source[k * PART : (k + 1) * PART]


@njit(cache=True, nogil=True)
def whole_numbers(counters, value, most, whole, good):
    """Fill ``whole`` with the values as integers; ``good[0]`` becomes False if not all are, of size up to ``most``."""
    while True:
        k = draw(counters)
        if k >= -(-len(value) // PART) or not good[0]:
            return
        fits, given, into = True, value[k * PART : (k + 1) * PART], whole[k * PART : (k + 1) * PART]
        for i in range(len(given)):
            x = given[i] if abs(given[i]) <= most else 0.5  # which is not whole
            into[i] = np.int64(x)
            fits &= into[i] == x
        if not fits:
            good[0] = False


@njit(cache=True, nogil=True)
def common_divisors(counters, whole, common):
    """Fill ``common`` with the greatest common divisor of each part, 0 where there are only zeros.

    The first entry is kept for 1: once a part has no other common divisor, those not begun yet are left out.
    """
    while True:
        k = draw(counters)
        if k >= len(common) - 1:
            return
        found = np.int64(0)
        for i in range(k * PART, min((k + 1) * PART, len(whole))):
            b = abs(whole[i])
            if b != found:
                while b != 0:
                    found, b = b, found % b
            if found == 1 or common[0] == 1:
                common[0] = 1
                return
        common[k + 1] = found


@njit(cache=True, nogil=True)
def above_luck(counters, part, arc_start, successor, luck, cost):
    """Normalise costs in place: add best luck of the successor, subtract best luck of the state."""
    while True:
        k = draw(counters)
        if k >= len(part) - 1:
            return
        for s in range(part[k], part[k + 1]):
            for o in range(arc_start[s], arc_start[s + 1]):
                cost[o] += luck[successor[o]] - luck[s]


@njit(cache=True, nogil=True)
def sort_rows(counters, part, outcome_start, free_below, probability, cost, successor, into, size, free):
    """Sort each action's outcomes by cost, then successor, and merge those that agree in both.

    Costs and successors are sorted in place, probabilities go ``into`` another list.  ``size[a]`` outcomes are left at
    the beginning of each row; ``free[a]`` of them cost less than ``free_below``.
    """
    room = np.empty(SHORT, np.int64), np.empty(SHORT, np.int64), np.empty(SHORT)
    while True:
        k = draw(counters)
        if k >= len(part) - 1:
            return
        first, last = outcome_start[part[k]], outcome_start[part[k + 1]]
        into[first:last] = probability[first:last]
        for a in range(part[k], part[k + 1]):
            first, last = outcome_start[a], outcome_start[a + 1]
            in_order = True
            for o in range(first + 1, last):
                if cost[o - 1] > cost[o] or (cost[o - 1] == cost[o] and successor[o - 1] >= successor[o]):
                    in_order = False
                    break
            twins = False
            if not in_order:
                if last - first > SHORT or exceeds(first, last, cost, successor):
                    sort_long_row(first, last, cost, successor, into)
                    twins = True  # or not
                else:
                    twins = sort_row(first, last, cost, successor, into, room)
            size[a] = merge_row(first, last, cost, successor, into) if twins else last - first
            free[a] = 0
            while free[a] < size[a] and cost[first + free[a]] < free_below:
                free[a] += 1


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def exceeds(first, last, cost, successor):
    """Return whether a cost or a successor of one action is too large for both to be sorted as one number."""
    large = np.int64(0)
    for o in range(first, last):
        large |= cost[o] | successor[o]
    return large > LOWER


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def sort_row(first, last, cost, successor, probability, room):
    """Sort the outcomes of one action; return whether two agree in cost and successor."""
    key, place, chance = room
    n, twins = last - first, False
    for i in range(n):
        key[i] = (cost[first + i] << HALF) | successor[first + i]
        place[i], chance[i] = first, probability[first + i]
    for i in range(1, n):
        mine, before = key[i], 0
        for j in range(i):  # without branches
            lower = key[j] <= mine
            before += lower
            place[j] += not lower
            twins |= key[j] == mine
        place[i] += before
    for i in range(n):
        o = place[i]
        cost[o], successor[o], probability[o] = key[i] >> HALF, key[i] & LOWER, chance[i]
    return twins


@njit(cache=True, nogil=True)
def sort_long_row(first, last, cost, successor, probability):
    """Sort the outcomes of one action, whatever there is."""
    order = np.argsort(successor[first:last], kind="mergesort")
    order = order[np.argsort(cost[first:last][order], kind="mergesort")]
    cost[first:last] = cost[first:last][order]
    successor[first:last] = successor[first:last][order]
    probability[first:last] = probability[first:last][order]


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def merge_row(first, last, cost, successor, probability):
    """Merge equal neighbours among the outcomes of one action; return how many are left."""
    n = first + 1
    for o in range(first + 1, last):
        if cost[o] == cost[n - 1] and successor[o] == successor[n - 1]:
            probability[n - 1] += probability[o]
        else:
            cost[n], successor[n], probability[n] = cost[o], successor[o], probability[o]
            n += 1
    return n - first


@njit(cache=True, nogil=True)
def close_gaps(counters, columns, old_start, new_start):
    """Move rows that got shorter up to each other, in place, in each of the columns."""
    while True:
        k = draw(counters)
        if k >= len(columns):
            return
        column, a = columns[k], 0
        while a < len(old_start) - 1:
            first, gap = new_start[a], old_start[a] - new_start[a]
            a += 1
            while a < len(old_start) - 1 and old_start[a] - new_start[a] == gap:
                a += 1
            if gap > 0:
                for o in range(first, new_start[a]):
                    column[o] = column[o + gap]


@njit(cache=True, nogil=True)
def stop_below(counters, part, outcome_start, cost, least, stop):
    """Fill ``stop`` with where each action's outcomes of cost below ``least`` end; they come first."""
    while True:
        k = draw(counters)
        if k >= len(part) - 1:
            return
        for a in range(part[k], part[k + 1]):
            o = outcome_start[a]
            while o < outcome_start[a + 1] and cost[o] < least:
                o += 1
            stop[a] = o


@njit(cache=True, nogil=True)
def mean_costs(counters, part, outcome_start, probability, cost, unit, mean):
    """Fill ``mean`` with the expected cost of each action, with costs divided by ``unit``."""
    while True:
        k = draw(counters)
        if k >= len(part) - 1:
            return
        for a in range(part[k], part[k + 1]):
            mean[a] = mean_cost(outcome_start[a], outcome_start[a + 1], probability, cost, unit)


@njit(cache=True, nogil=True)
def cost_range(counters, part, outcome_start, cost, least, most):
    """Fill in, for each part, the least cost above 0, infinite if there is none, and the largest."""
    while True:
        k = draw(counters)
        if k >= len(part) - 1:
            return
        low, high = np.iinfo(np.int64).max, 0
        for o in range(outcome_start[part[k]], outcome_start[part[k + 1]]):
            low = min(low, cost[o] if cost[o] > 0 else low)
            high = max(high, cost[o])
        least[k], most[k] = low, high


@njit(cache=True, nogil=True, forceinline=True, _nrt=False, error_model="numpy")
def mean_cost(first, last, probability, cost, unit):
    """Return the expected cost of one action's outcomes, divided by ``unit``."""
    total = 0.0
    for o in range(first, last):
        total += probability[o] * (cost[o] / unit)
    return total


@njit(cache=True, nogil=True)
def chance_from(counters, part, first, outcome_start, probability, chance):
    """Fill ``chance``, for each action, with the probability of its outcomes from ``first`` on."""
    while True:
        k = draw(counters)
        if k >= len(part) - 1:
            return
        for a in range(part[k], part[k + 1]):
            total = 0.0
            for o in range(first[a], outcome_start[a + 1]):
                total += probability[o]
            chance[a] = total


@njit(cache=True, nogil=True)
def sum_rounding(counters, part, outcome_start, given_start, given, first, unit, error):
    """Fill ``error``, for each action, with the relative error of a weighted sum: ``4 n + 8`` units for n outcomes.

    They count as they were ``given``, if those were more; an action that was not given, below 0, had ``first``.
    """
    while True:
        k = draw(counters)
        if k >= len(part) - 1:
            return
        for a in range(part[k], part[k + 1]):
            before = first if given[a] < 0 else given_start[given[a] + 1] - given_start[given[a]]
            error[a] = (4 * max(outcome_start[a + 1] - outcome_start[a], before) + 8) * unit


@njit(cache=True, nogil=True)
def chosen_rows(counters, part, action, outcome_start, new, probability, successor, cost, start, into):
    """Copy the outcomes of some actions, with successors numbered anew, to rows that begin at ``start``."""
    chance, target, price = into
    while True:
        k = draw(counters)
        if k >= len(part) - 1:
            return
        for i in range(part[k], part[k + 1]):
            o = outcome_start[action[i]]
            for n in range(start[i], start[i + 1]):
                chance[n], target[n], price[n] = probability[o], new[successor[o]], cost[o]
                o += 1


@njit(cache=True, nogil=True)
def free_actions(counters, part, outcome_start, cost, free_below, free):
    """Fill ``free`` with which actions have no outcome of this cost or more."""
    while True:
        k = draw(counters)
        if k >= len(part) - 1:
            return
        for a in range(part[k], part[k + 1]):
            free[a] = True
            for o in range(outcome_start[a], outcome_start[a + 1]):
                if cost[o] >= free_below:
                    free[a] = False
                    break


@njit(cache=True, nogil=True)
def free_loops(counters, part, arc_start, successor, cost, free_below, loops):
    """Fill ``loops`` with how many free outcomes of each state lead back to it."""
    while True:
        k = draw(counters)
        if k >= len(part) - 1:
            return
        for s in range(part[k], part[k + 1]):
            loops[s] = 0
            for o in range(arc_start[s], arc_start[s + 1]):
                loops[s] += successor[o] == s and cost[o] < free_below
