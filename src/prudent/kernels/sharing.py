"""Outcome lists that several actions share, up to a shift of their costs.

Outcomes are sorted, by cost first.  Threads draw parts: ``part`` says where the actions are cut into them.
"""

import numpy as np
from numba import njit

from prudent.kernels.team import drawn


@njit(cache=True, nogil=True)
def mix_rows(counters, part, outcome_start, successor, cost, bits, few, shift, mixed):
    """Hash each action's outcomes, whatever the shift of their costs; leave out actions with less than ``few``.

    ``shift[a]`` becomes the least cost of an outcome of ``a``.
    """
    for k in drawn(counters, len(part) - 1):
        for a in range(part[k], part[k + 1]):
            first, last = outcome_start[a], outcome_start[a + 1]
            least, total = cost[first], np.uint64(last - first)
            shift[a] = least
            for o in range(first, last if last - first >= few else first):
                # Outcomes are hashed separately, then added, so that none waits for the one before.
                each = bits[o] ^ (np.uint64(successor[o]) * np.uint64(0x9E3779B97F4A7C15))
                each ^= np.uint64(cost[o] - least) * np.uint64(0xC2B2AE3D27D4EB4F)
                total += (each ^ (each >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15)
            mixed[a] = total


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def same_row(a, other, outcome_start, successor, cost, bits, shift):
    """Return whether two actions have the same outcomes up to a shift of their costs."""
    first, start, n = outcome_start[a], outcome_start[other], outcome_start[a + 1] - outcome_start[a]
    if outcome_start[other + 1] - start != n:
        return False
    moved = shift[a] - shift[other]
    for i in range(n):
        o, r = first + i, start + i
        if successor[o] != successor[r] or bits[o] != bits[r] or cost[o] - cost[r] != moved:
            return False
    return True


@njit(cache=True, nogil=True)
def compare_rows(counters, part, outcome_start, successor, cost, bits, shift, like, shared):
    """Mark the lists that actions do share; an action that shares a hash alone gets itself in ``like``."""
    for k in drawn(counters, len(part) - 1):
        for a in range(part[k], part[k + 1]):
            if like[a] == a:
                continue
            if same_row(a, like[a], outcome_start, successor, cost, bits, shift):
                shared[like[a]] = True
            else:
                like[a] = a


@njit(cache=True, nogil=True)
def share(counters, part, row, target, shift, old, new):
    """Rewrite outcomes: those of ``row[i]``, or one sure step to the node ``target[i]`` if that is not -1.

    ``shift[i]`` is the cost of the step, or is taken off the costs.  ``old`` and ``new`` are (outcome_start, successor,
    cost, probability).
    """
    outcome_start, successor, cost, probability = old
    new_start, new_successor, new_cost, new_probability = new
    for k in drawn(counters, len(part) - 1):
        for i in range(part[k], part[k + 1]):
            at = new_start[i]
            if target[i] >= 0:
                new_successor[at], new_cost[at], new_probability[at] = target[i], shift[i], 1.0
                continue
            for o in range(outcome_start[row[i]], outcome_start[row[i] + 1]):
                new_successor[at], new_cost[at], new_probability[at] = successor[o], cost[o] - shift[i], probability[o]
                at += 1
