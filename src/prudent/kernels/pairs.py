"""Following a policy forwards through a model without cycles, by the pairs of state and cost that its runs meet."""

import numpy as np
from numba import njit

from prudent.kernels.choices import look_up


@njit(cache=True)
def follow_pairs(forwards, arcs, left_out, choices, budget, start, capacity, most, layers, played):
    """Return the levels at which runs end and the mass that ends there, by layer; empty arrays if pairs are too many.

    ``forwards`` lists the states so that successors come later, ``arcs`` is (action_start, outcome_start, probability,
    successor, cost).  Each state has a list of pairs, linked by ``after``: levels spent, and mass as in
    :func:`prudent.kernels.forwards.push`.  There may be ``capacity`` pairs at the same time, and ``most`` in all.
    """
    action_start, outcome_start, probability, successor, cost = arcs
    entry, first, low, high, stride, without = choices
    level, after = np.empty(capacity, dtype=np.int64), np.empty(capacity, dtype=np.int64)
    mass = np.empty((layers, capacity))
    head = np.full(len(forwards), -1, dtype=np.int64)
    free, used, made = -1, 1, 0
    level[0], after[0], head[start] = 0, -1, 0
    for layer in range(layers):
        mass[layer, 0] = 1.0 if layer == 0 else 0.0
    none = np.empty(0, dtype=np.int64), np.empty((layers, 0))
    for s in forwards:
        if head[s] < 0 or action_start[s] == action_start[s + 1]:
            continue
        spent, here = _taken(head[s], level, mass, after)
        last = head[s]
        while after[last] >= 0:
            last = after[last]
        after[last], free = free, head[s]  # for reuse
        order = np.argsort(spent)
        i = 0
        while i < len(order):
            t, m, moved, square = spent[order[i]], 0.0, 0.0, 0.0
            while i < len(order) and spent[order[i]] == t:
                m += here[0, order[i]]
                if layers > 1:
                    moved += here[1, order[i]]
                if layers > 2:
                    square += here[2, order[i]]
                i += 1
            a = action_start[s] + look_up(entry, first, low, high, stride, without, budget - t, s)
            played[a] += m
            made += outcome_start[a + 1] - outcome_start[a]
            if made > most:
                return none
            for o in range(outcome_start[a], outcome_start[a + 1]):
                if free >= 0:
                    new, free = free, after[free]
                elif used < capacity:
                    new, used = used, used + 1
                else:
                    return none
                r, p = successor[o], probability[o]
                level[new], mass[0, new] = t + cost[o], m * p
                if layers > 1:
                    mass[1, new] = p * (moved + m * left_out[o])
                if layers > 2:
                    mass[2, new] = p * (square + left_out[o] * (2.0 * moved + m * left_out[o]))
                after[new], head[r] = head[r], new
    goal = -1  # the joined lists of all goals
    for s in forwards:
        if head[s] >= 0 and action_start[s] == action_start[s + 1]:
            last = head[s]
            while after[last] >= 0:
                last = after[last]
            after[last], goal = goal, head[s]
    return _taken(goal, level, mass, after)


@njit(cache=True)
def _taken(first, level, mass, after):
    """Return the levels and the mass of a linked list of pairs."""
    n, i = 0, first
    while i >= 0:
        n, i = n + 1, after[i]
    spent, here = np.empty(n, dtype=np.int64), np.empty((len(mass), n))
    i = first
    for j in range(n):
        spent[j] = level[i]
        for layer in range(len(mass)):
            here[layer, j] = mass[layer, i]
        i = after[i]
    return spent, here
