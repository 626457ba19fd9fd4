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
def merge_rows(outcome_start, cost, successor, probability):
    """Merge equal neighbours among each action's outcomes, in place; return where the actions' outcomes start now."""
    start, n = np.empty_like(outcome_start), 0
    for a in range(len(outcome_start) - 1):
        start[a] = n
        for o in range(outcome_start[a], outcome_start[a + 1]):
            if n > start[a] and cost[o] == cost[n - 1] and successor[o] == successor[n - 1]:
                probability[n - 1] += probability[o]
            else:
                cost[n], successor[n], probability[n] = cost[o], successor[o], probability[o]
                n += 1
    start[-1] = n
    return start


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


@njit(cache=True)
def sum_rounding(outcome_start, given_start, given, first, unit):
    """Return per action the relative rounding error of a weighted sum: ``4 n + 8`` units for n outcomes.

    They count as they were ``given``, if those were more; an action that was not given, below 0, had ``first``.
    """
    error = np.empty(len(given))
    for a in range(len(given)):
        before = first if given[a] < 0 else given_start[given[a] + 1] - given_start[given[a]]
        error[a] = (4 * max(outcome_start[a + 1] - outcome_start[a], before) + 8) * unit
    return error


@njit(cache=True)
def chosen_rows(action, outcome_start, new, probability, successor, cost):
    """Return the outcomes of some actions, with successors numbered anew: their starts and columns."""
    size = 0
    for a in action:
        size += outcome_start[a + 1] - outcome_start[a]
    start, chance = np.empty(len(action) + 1, dtype=np.int64), np.empty(size)
    target, price = np.empty(size, dtype=np.int64), np.empty(size, dtype=cost.dtype)
    n = 0
    for i in range(len(action)):
        start[i] = n
        for o in range(outcome_start[action[i]], outcome_start[action[i] + 1]):
            chance[n], target[n], price[n] = probability[o], new[successor[o]], cost[o]
            n += 1
    start[len(action)] = n
    return start, chance, target, price


@njit(cache=True)
def free_actions(outcome_start, cost, free_below):
    """Return which actions have no outcome of this cost or more."""
    free = np.ones(len(outcome_start) - 1, dtype=np.bool_)
    for a in range(len(free)):
        for o in range(outcome_start[a], outcome_start[a + 1]):
            if cost[o] >= free_below:
                free[a] = False
                break
    return free


@njit(cache=True)
def free_loops(arc_start, successor, cost, free_below):
    """Return which outcomes are free and lead back to the same state, and whether any does."""
    loop, found = np.zeros(len(successor), dtype=np.bool_), False
    for s in range(len(arc_start) - 1):
        for o in range(arc_start[s], arc_start[s + 1]):
            if successor[o] == s and cost[o] < free_below:
                loop[o], found = True, True
    return loop, found
