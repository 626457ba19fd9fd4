"""Passes over all outcomes for preparing a model: costs as whole numbers, sorted outcomes, sums."""

import numpy as np
from numba import njit

SHORT = 32
"""Rows up to this length are sorted by insertion."""


@njit(cache=True)
def sorted_by(row, row_start):
    """Return the items sorted by row, in their own order within a row; rows begin at ``row_start``."""
    next_item = row_start.copy()
    order = np.empty(len(row), dtype=np.int64)
    for i in range(len(row)):
        order[next_item[row[i]]] = i
        next_item[row[i]] += 1
    return order


@njit(cache=True)
def whole_numbers(value, most):
    """Return the values as integers, and whether all are integers of size at most ``most``."""
    whole = np.empty(len(value), dtype=np.int64)
    for i in range(len(value)):
        if not -most <= value[i] <= most:
            return whole, False
        whole[i] = np.int64(value[i])
        if whole[i] != value[i]:
            return whole, False
    return whole, True


@njit(cache=True)
def common_divisor(whole):
    """Return the greatest common divisor, 0 where there are only zeros."""
    common = np.int64(0)
    for i in range(len(whole)):
        a, b = common, abs(whole[i])
        while b != 0:
            a, b = b, a % b
        common = a
        if common == 1:
            break
    return common


@njit(cache=True)
def above_luck(arc_start, successor, steps, luck):
    """Return normalised costs: each cost plus best luck of its successor minus best luck of its state."""
    cost = np.empty(len(steps), dtype=np.int64)
    for s in range(len(luck)):
        for o in range(arc_start[s], arc_start[s + 1]):
            cost[o] = steps[o] + luck[successor[o]] - luck[s]
    return cost


@njit(cache=True)
def sort_rows(outcome_start, cost, successor, probability):
    """Sort each action's outcomes in place, by cost, then successor; return whether any two agree in both."""
    twins = False
    for a in range(len(outcome_start) - 1):
        first, last = outcome_start[a], outcome_start[a + 1]
        i = first + 1
        while i < last and (cost[i - 1] < cost[i] or (cost[i - 1] == cost[i] and successor[i - 1] < successor[i])):
            i += 1
        if i >= last:  # in order, and none twice
            continue
        if last - first > SHORT:
            order = np.argsort(successor[first:last], kind="mergesort")
            order = order[np.argsort(cost[first:last][order], kind="mergesort")]
            cost[first:last] = cost[first:last][order]
            successor[first:last] = successor[first:last][order]
            probability[first:last] = probability[first:last][order]
        else:
            for i in range(first + 1, last):
                c, s, p = cost[i], successor[i], probability[i]
                j = i
                while j > first and (cost[j - 1] > c or (cost[j - 1] == c and successor[j - 1] > s)):
                    cost[j], successor[j], probability[j] = cost[j - 1], successor[j - 1], probability[j - 1]
                    j -= 1
                cost[j], successor[j], probability[j] = c, s, p
        for i in range(first + 1, last):
            twins = twins or (cost[i] == cost[i - 1] and successor[i] == successor[i - 1])
    return twins


@njit(cache=True)
def stop_below(outcome_start, cost, least):
    """Return, for each action, where its outcomes of cost below ``least`` end; they come first."""
    stop = outcome_start[:-1].copy()
    for a in range(len(stop)):
        while stop[a] < outcome_start[a + 1] and cost[stop[a]] < least:
            stop[a] += 1
    return stop


@njit(cache=True)
def mean_costs(outcome_start, probability, cost, unit):
    """Return the expected cost of each action, with costs divided by ``unit``."""
    mean = np.zeros(len(outcome_start) - 1)
    for a in range(len(mean)):
        for o in range(outcome_start[a], outcome_start[a + 1]):
            mean[a] += probability[o] * (cost[o] / unit)
    return mean


@njit(cache=True)
def chance_from(first, outcome_start, probability):
    """Return, for each action, the probability of its outcomes from ``first`` on."""
    chance = np.zeros(len(first))
    for a in range(len(first)):
        for o in range(first[a], outcome_start[a + 1]):
            chance[a] += probability[o]
    return chance
