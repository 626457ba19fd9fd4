"""Nature, which chooses the probabilities of an action's outcomes from intervals, anew at every visit.

    max over p of  sum over outcomes of  p x        low <= p <= high,  sum p = 1

The maximum fills the worst outcomes first: each gets its ``low``, and the rest of 1 goes to the outcomes of largest
value x, up to their ``high``.  So outcomes are of three kinds: those at ``high``, the *pivot*, which takes the rest,
and those at ``low``.

A free loop, back to the same state at no cost, makes the action be played again.  Its value is the value sought, u, so
u is the largest of  sum p x / (1 - loop)  over all choices of nature.  Each round fills with the last u and finds a
larger one, until u stays the same.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

ROUNDS = 64
"""The most rounds for a free loop: each changes the kind of an outcome."""


class Sets(NamedTuple):
    """The actions of a prepared model, and the sets from which nature chooses."""

    action_start: np.ndarray  # (n_states + 1,)
    outcome_start: np.ndarray  # (n_actions + 1,)
    successor: np.ndarray  # (n_outcomes,)
    cost: np.ndarray  # (n_outcomes,)  in levels, as charged
    low: np.ndarray  # (n_outcomes,)
    high: np.ndarray  # (n_outcomes,)
    loop_low: np.ndarray  # (n_actions,)  of the free loop, 0 if there is none
    loop_high: np.ndarray  # (n_actions,)
    spare: np.ndarray  # (n_actions,)  1 minus the sum of all that is low


class Values(NamedTuple):
    """Values by state and level; once the budget is used up, ``base`` takes their place."""

    table: np.ndarray  # (n_states * stride,)  a row for each state
    stride: int  # levels of a state
    base: np.ndarray  # (n_states,)  at level 0
    slope: float  # by how much they fall with each level: 1 for an excess, 0 for a cost
    added: np.ndarray  # (n_outcomes,)  what an outcome adds to the value after it: a cost that is added up, or 0
    order: np.ndarray  # (n_outcomes,)  the outcomes of each action, the worst first: sorted anew where they are read
    falls: bool = False  # whether none rises with the level, so that once 0 it stays


@njit(cache=True)
def align(model_action, first, target, cost, low, high, probability, own, rows, free_below, sets):
    """Add up the intervals of the model's outcomes in the prepared ones; return an action that does not fit, or -1.

    ``first`` is where the outcomes of each model action begin; ``target`` and ``cost`` are their prepared successors
    and costs.  ``own`` is the prepared state of each prepared action, ``rows`` the prepared costs.  Costs under
    ``free_below`` are free.
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


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def spread(a, sets, order, value, weight):
    """Fill ``weight`` with nature's worst probabilities for the values of an action's outcomes.

    Return the worst expectation, and the pivot's place in the order, -1 if nature has no choice.
    """
    begin, end = sets.outcome_start[a], sets.outcome_start[a + 1]
    for i in range(begin + 1, end):
        k = order[i]
        x = value[k - begin]
        j = i
        while j > begin and value[order[j - 1] - begin] < x:
            order[j] = order[j - 1]
            j -= 1
        order[j] = k
    low, high = sets.low, sets.high
    loop_low, loop_more = sets.loop_low[a], sets.loop_high[a] - sets.loop_low[a]
    looped, best = sets.loop_high[a] > 0.0, -1.0
    for _ in range(ROUNDS):
        left, loop, placed, total, pivot = sets.spare[a], loop_low, not looped, 0.0, -1
        for i in range(begin, end):
            k = order[i]
            if not placed and value[k - begin] < best:
                more = min(loop_more, left)
                loop, left, placed = loop + more, left - more, True
            more = min(high[k] - low[k], left)
            share = low[k] + more
            left -= more
            if more > 0.0:
                pivot = i
            weight[k - begin] = share
            total += share * value[k - begin]
        if not looped:
            return total, pivot
        if not placed:
            loop += min(loop_more, left)
        total /= 1.0 - loop
        for k in range(end - begin):
            weight[k] /= 1.0 - loop
        if total <= best * (1 + 1e-15):
            break
        best = total
    return total, -1


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def value_at(values, s, level):
    """Return a state's value at a level, also where the budget is gone."""
    return values.table[np.uint64(s * values.stride + level)] if level > 0 else values.base[s] - values.slope * level


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def worst_at(a, level, sets, values, value, weight):
    """Return the worst expectation of an action at a level, and the pivot; fill ``weight`` with nature's choice."""
    begin, end = sets.outcome_start[a], sets.outcome_start[a + 1]
    for k in range(begin, end):
        value[k - begin] = value_at(values, sets.successor[k], level - sets.cost[k]) + values.added[k]
    return spread(a, sets, values.order, value, weight)


@njit(cache=True)
def worst_after(actions, level, sets, values, found, probability):
    """Fill in the worst expectation after each of some actions at a level, and nature's probabilities."""
    value = np.empty(max(1, np.max(np.diff(sets.outcome_start))))
    for i in range(len(actions)):
        begin, end = sets.outcome_start[actions[i]], sets.outcome_start[actions[i] + 1]
        found[i], _ = worst_at(actions[i], level, sets, values, value, probability[begin:end])


@njit(cache=True)
def worst_backwards(backwards, sets, values, choice):
    """Fill in the least worst-case expected cost of each state of a model without cycles: the base; and its action."""
    most = max(1, np.max(np.diff(sets.outcome_start)))
    value, weight = np.empty(most), np.empty(most)
    for s in backwards:
        values.base[s] = 0.0
        for a in range(sets.action_start[s], sets.action_start[s + 1]):
            found, _ = worst_at(a, 0, sets, values, value, weight)
            if a == sets.action_start[s] or found < values.base[s]:
                values.base[s], choice[s] = found, a
