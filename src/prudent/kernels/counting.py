"""Passes over all outcomes for preparing a model: costs as whole numbers, sorted outcomes, sums.

Threads draw parts: ``part`` says where rows are cut into them, lists without rows are cut every ``PART`` items.
"""

import numpy as np
from numba import njit

from prudent.kernels.indices import along
from prudent.kernels.team import drawn, drawn_shares

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
def whole_numbers(counters, value, most, whole, good):
    """Fill ``whole`` with the values as integers; ``good[0]`` becomes False if not all are, of size up to ``most``."""
    for first, last in drawn_shares(counters, len(value), PART):
        if not good[0]:
            return
        fits = True
        for i in along(first, last):
            x = value[i] if abs(value[i]) <= most else 0.5  # which is not whole
            whole[i] = np.int64(x)
            fits &= whole[i] == x
        if not fits:
            good[0] = False


@njit(cache=True, nogil=True)
def above_luck(counters, part, arc_start, successor, luck, cost):
    """Normalise costs in place: add best luck of the successor, subtract best luck of the state."""
    for k in drawn(counters, len(part) - 1):
        for s in range(part[k], part[k + 1]):
            for o in range(arc_start[s], arc_start[s + 1]):
                cost[o] += luck[successor[o]] - luck[s]


@njit(cache=True, nogil=True)
def sort_rows(counters, part, outcome_start, free_below, probability, columns, size, free):
    """Sort each action's outcomes by cost, then successor, and merge those that agree in both.

    ``columns`` are costs and successors, which are sorted in place, and room for probabilities.  ``size[a]`` outcomes
    are left at the beginning of each row; ``free[a]`` of them cost less than ``free_below``.
    """
    cost, successor, into = columns
    for k in drawn(counters, len(part) - 1):
        for o in along(outcome_start[part[k]], outcome_start[part[k + 1]]):
            into[o] = probability[o]
        for a in range(part[k], part[k + 1]):
            first, last = outcome_start[a], outcome_start[a + 1]
            size[a] = last - first
            for o in range(first + 1, last):
                if cost[o - 1] > cost[o] or (cost[o - 1] == cost[o] and successor[o - 1] >= successor[o]):
                    size[a] = sort_row(first, last, cost, successor, into)
                    break
            free[a] = 0
            while free[a] < size[a] and cost[first + free[a]] < free_below:
                free[a] += 1


@njit(cache=True, nogil=True, _nrt=False)
def sort_row(first, last, cost, successor, probability):
    """Sort the outcomes of one action, by insertion over falling distances (Shell); merge equal ones.

    Return how many are left.
    """
    gap = 1
    while gap < (last - first) // 9:
        gap = 3 * gap + 1
    while gap > 0:
        for o in range(first + gap, last):
            price, target, chance = cost[o], successor[o], probability[o]
            i = o
            while i - gap >= first:
                before = i - gap
                if cost[before] < price or (cost[before] == price and successor[before] <= target):
                    break
                cost[i], successor[i], probability[i] = cost[before], successor[before], probability[before]
                i = before
            cost[i], successor[i], probability[i] = price, target, chance
        gap //= 3
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
    for k in drawn(counters, len(columns)):
        column, a = columns[k], 0
        while a < len(old_start) - 1:
            first, gap = new_start[a], old_start[a] - new_start[a]
            a += 1
            while a < len(old_start) - 1 and old_start[a] - new_start[a] == gap:
                a += 1
            if gap > 0:
                for o in range(first, new_start[a]):
                    column[o] = column[o + gap]


@njit(cache=True, nogil=True, error_model="numpy")
def mean_costs(counters, part, outcome_start, probability, cost, unit, mean):
    """Fill ``mean`` with the expected cost of each action, with costs divided by ``unit``."""
    for k in drawn(counters, len(part) - 1):
        for a in range(part[k], part[k + 1]):
            total = 0.0
            for o in along(outcome_start[a], outcome_start[a + 1]):
                total += probability[o] * (cost[o] / unit)
            mean[a] = total


@njit(cache=True, nogil=True)
def chosen_rows(counters, part, action, outcome_start, new, columns, start, into):
    """Copy the outcomes of some actions, with successors numbered anew, to rows that begin at ``start``."""
    (probability, successor, cost), (chance, target, price) = columns, into
    for k in drawn(counters, len(part) - 1):
        for i in range(part[k], part[k + 1]):
            o = outcome_start[action[i]]
            for n in range(start[i], start[i + 1]):
                chance[n], target[n], price[n] = probability[o], new[successor[o]], cost[o]
                o += 1
