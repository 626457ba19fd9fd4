"""Following a policy forwards through a model without cycles, state by state: stretches of levels at once.

Each state has a row of mass by levels spent, as in :func:`prudent.kernels.forwards.push`.  Over a stretch of
levels in which the policy plays one action, an outcome adds a multiple of the row to its successor's.
"""

import numpy as np
from numba import njit

from prudent.kernels.choices import look_up


@njit(cache=True, nogil=True)
def same_action(choices, level, s, t, last):
    """Return the action's number in a state with ``t`` levels spent, and the end of the stretch that has the same."""
    entry, first, low, high, stride, without = choices
    action = look_up(entry, first, low, high, stride, without, level - t, s)
    if level - t <= 0 or high[s] < low[s]:
        return action, last
    end = t + 1
    while end < last and look_up(entry, first, low, high, stride, without, level - end, s) == action:
        end += 1
    return action, end


@njit(cache=True, nogil=True)
def reach_ahead(forwards, graph, choices, level, least, most):
    """Find the levels spent with which a policy's runs can be in each state, from ``least`` to ``most``.

    ``forwards`` lists the states so that successors come later; ``graph`` is (action_start, outcome_start, successor,
    cost).  On entry only those of the start are given.  Return the work that following takes.
    """
    action_start, outcome_start, successor, cost = graph
    work = 0
    for s in forwards:
        if action_start[s] == action_start[s + 1] or most[s] < least[s]:
            continue
        t = least[s]
        while t <= most[s]:
            action, end = same_action(choices, level, s, t, most[s] + 1)
            a = action_start[s] + action
            for o in range(outcome_start[a], outcome_start[a + 1]):
                r = successor[o]
                least[r], most[r] = min(least[r], t + cost[o]), max(most[r], end - 1 + cost[o])
            work += (end - t) * (outcome_start[a + 1] - outcome_start[a])
            t = end
    return work


@njit(cache=True, nogil=True)
def push_on(s, graph, probability, left_out, choices, level, least, most, row, mass, played):
    """Move the mass of a state on to its successors."""
    action_start, outcome_start, successor, cost = graph
    layers = len(mass)
    t = least[s]
    while t <= most[s]:
        action, end = same_action(choices, level, s, t, most[s] + 1)
        a, n, here = action_start[s] + action, np.uint64(end - t), np.uint64(row[s] + t - least[s])
        sum_here = 0.0
        for i in range(n):
            sum_here += mass[0, here + i]
        played[a] += sum_here
        if sum_here > 0.0:
            for o in range(outcome_start[a], outcome_start[a + 1]):
                r, p = successor[o], probability[o]
                there = np.uint64(row[r] + t + cost[o] - least[r])
                for i in range(n):
                    mass[0, there + i] += p * mass[0, here + i]
                if layers > 1:
                    rest = left_out[o]
                    for i in range(n):
                        m, moment = mass[0, here + i], mass[1, here + i]
                        mass[1, there + i] += p * (moment + m * rest)
                        mass[2, there + i] += p * (mass[2, here + i] + rest * (2.0 * moment + m * rest))
        t = end
