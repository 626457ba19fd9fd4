"""Backward induction on a model without cycles: one pass, layer by layer, the states of a layer side by side.

Each state is settled once: its least value, as a sum of two floats whose residual is within the rounding error of its
terms; an action that is surely the best; and bounds on how far the value is above the least one and below the choice's
own.  So the outcomes of a state are read from memory once.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from prudent.kernels.indices import along
from prudent.kernels.team import draw, finish, wait_for

HIGH, LOW, ABOVE, BELOW = 0, 1, 2, 3
"""The columns of the table of values: both floats, and the bounds on their errors."""

CORRECTIONS = 100
"""The most corrections of one value; the bounds cover the rest."""


class Parts(NamedTuple):
    """States layer by layer, successors first, and each layer cut into parts."""

    state: np.ndarray  # (n_states,)
    part_start: np.ndarray  # (n_parts + 1,)
    before: np.ndarray  # (n_parts,)  how many parts are in the layers before


class Actions(NamedTuple):
    """The actions of a model: their outcomes, their own costs, and the relative rounding error of their sums."""

    action_start: np.ndarray  # (n_states + 1,)
    outcome_start: np.ndarray  # (n_actions + 1,)
    probability: np.ndarray  # (n_outcomes,)
    successor: np.ndarray  # (n_outcomes,)
    k: np.ndarray  # (n_actions,)
    unit: np.ndarray  # (n_actions,)


@njit(cache=True, nogil=True)
def solve_backwards(counters, parts, actions, choice, table):
    """Fill ``table`` (n_states, 4) with values and bounds on their errors, and take the best ``choice``, in place."""
    state, part_start, before = parts
    while True:
        part = draw(counters)
        if part >= len(before):
            return
        wait_for(counters, before[part])
        for i in range(part_start[part], part_start[part + 1]):
            s = state[i]
            if actions.action_start[s] < actions.action_start[s + 1]:
                choice[s] = settled(actions, s, table)
            else:
                table[s] = 0.0
        finish(counters)


@njit(cache=True, nogil=True, _nrt=False)
def settled(actions, s, table):
    """Fill in the row of a state whose successors are settled; return its best action."""
    action_start, outcome_start, probability, successor, k, unit = actions
    best, least = -1, np.inf
    for a in range(action_start[s], action_start[s + 1]):
        total = k[a]
        for o in along(outcome_start[a], outcome_start[a + 1]):
            total += probability[o] * table[np.uint64(successor[o]), HIGH]
        if best < 0 or total < least:
            best, least = a, total
    table[s, HIGH], table[s, LOW] = least, 0.0
    for _ in range(CORRECTIONS):
        lack, error, _ = gap_of(actions, s, best, table)
        if abs(lack) > error:
            correct(table, s, lack)
            lack, error, _ = gap_of(actions, s, best, table)
        above, better, most = 0.0, -1, lack - 2.0 * error
        for a in range(action_start[s], action_start[s + 1]):
            gap, err, ahead = gap_of(actions, s, a, table)
            above = max(above, err - gap + ahead + unit[a] * (err + abs(gap) + ahead))
            if a != best and gap + 2.0 * err < most:
                better, most = a, gap + 2.0 * err
        if better < 0:
            break
        best = better
    table[s, ABOVE] = above
    lack, error, _ = gap_of(actions, s, best, table)
    ahead = 0.0
    for o in range(outcome_start[best], outcome_start[best + 1]):
        ahead += probability[o] * table[successor[o], BELOW]
    table[s, BELOW] = max(error + lack + ahead + unit[best] * (error + abs(lack) + ahead), 0.0)
    return best


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def gap_of(actions, s, a, table):
    """Return the cost of an action beyond the value of its state, the rounding error, and the mean of ABOVE after it.

    Sums are over differences, so that they keep their digits if values are almost equal.
    """
    high, low = table[s, HIGH], table[s, LOW]
    total, size, ahead = 0.0, 0.0, 0.0
    for o in along(actions.outcome_start[a], actions.outcome_start[a + 1]):
        p, t = actions.probability[o], np.uint64(actions.successor[o])
        coarse, fine = table[t, HIGH] - high, table[t, LOW] - low
        total += p * (coarse + fine)
        size += p * (abs(coarse) + abs(fine))
        ahead += p * table[t, ABOVE]
    return actions.k[a] + total, actions.unit[a] * (abs(actions.k[a]) + size), ahead


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def correct(table, s, change):
    """Add to a value; its two floats hold the sum and its remainder (Knuth)."""
    high, low = table[s, HIGH], table[s, LOW] + change
    total = high + low
    part = total - high
    table[s, HIGH], table[s, LOW] = total, (high - (total - part)) + (low - part)


@njit(cache=True, nogil=True)
def evaluate_backwards(counters, parts, actions, choice, value):
    """Fill ``value`` with the expected totals of a policy."""
    state, part_start, before = parts
    action_start, outcome_start, probability, successor, k, _ = actions
    while True:
        part = draw(counters)
        if part >= len(before):
            return
        wait_for(counters, before[part])
        for i in range(part_start[part], part_start[part + 1]):
            s = state[i]
            if action_start[s] < action_start[s + 1]:
                a = choice[s]
                total = k[a]
                for o in along(outcome_start[a], outcome_start[a + 1]):
                    total += probability[o] * value[np.uint64(successor[o])]
                value[s] = total
        finish(counters)
