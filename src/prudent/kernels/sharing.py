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


@njit(cache=True)
def first_mixed(outcome_start, few, mixed, slots, like):
    """Find the first action with the same hash as each one; an action with less than ``few`` outcomes gets itself.

    ``slots`` enters with zeros, at least twice as many as actions and a power of two.
    """
    last = len(slots) - 1
    for a in range(len(like)):
        like[a] = a
        if outcome_start[a + 1] - outcome_start[a] < few:
            continue
        slot = np.int64(mixed[a] >> np.uint64(20)) & last
        while slots[slot] > 0 and mixed[slots[slot] - 1] != mixed[a]:
            slot = (slot + 1) & last
        if slots[slot] > 0:
            like[a] = slots[slot] - 1
        else:
            slots[slot] = a + 1


@njit(cache=True, nogil=True)
def compare_rows(counters, part, outcome_start, rows, shift, like, shared):
    """Mark the lists that actions do share; an action that shares a hash alone gets itself in ``like``.

    ``rows`` is (successor, cost, bits).
    """
    successor, cost, bits = rows
    for k in drawn(counters, len(part) - 1):
        for a in range(part[k], part[k + 1]):
            other = like[a]
            if other == a:
                continue
            back, moved = outcome_start[a] - outcome_start[other], shift[a] - shift[other]
            if outcome_start[a + 1] - outcome_start[other + 1] != back:
                like[a] = a
            for o in range(outcome_start[a], outcome_start[a + 1] if like[a] == other else outcome_start[a]):
                r = o - back
                if successor[o] != successor[r] or bits[o] != bits[r] or cost[o] - cost[r] != moved:
                    like[a] = a
                    break
            if like[a] == other:
                shared[other] = True


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
