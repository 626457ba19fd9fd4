"""Acyclic models, which are solved in one pass, layer by layer, the states of a layer side by side.

*Expected costs.*  Each state is settled once: its least value, as a sum of two floats whose residual is within the
rounding error of its terms; an action that is surely the best; and bounds on how far the value is above the least one
and below the choice's own.  So the outcomes of a state are read from memory once.

*Largest and least costs* are whole numbers.  They are kept in arrays that, as far as the compiler knows, may overlap.
So it does not gather several numbers with one instruction, which on some machines takes several times as long as one
by one.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from prudent.kernels.indices import along
from prudent.kernels.intrinsics import lower_atomically
from prudent.kernels.team import drawn_in_order

HIGH, LOW, ABOVE, BELOW = 0, 1, 2, 3
"""The columns of the table of values: both floats, and the bounds on their errors."""

CORRECTIONS = 100
"""The most corrections of one value; the bounds cover the rest."""


class Parts(NamedTuple):
    """The states layer by layer, successors first, each layer cut into parts that threads draw."""

    part: np.ndarray  # (n_parts + 1,)  where each part begins
    after: np.ndarray  # (n_parts,)  how many parts are in the layers before: those that it may look at
    state: np.ndarray  # (n_states,)


class Actions(NamedTuple):
    """The actions that may be played, all of them or a policy's: own costs, and relative rounding errors of sums."""

    first: np.ndarray  # (n_states,)
    last: np.ndarray  # (n_states,)  the one after the last; at goals it is the first
    outcome_start: np.ndarray  # (n_actions + 1,)
    probability: np.ndarray  # (n_outcomes,)
    successor: np.ndarray  # (n_outcomes,)
    k: np.ndarray  # (n_actions,)
    unit: np.ndarray  # (n_actions,)


class Played(NamedTuple):
    """The same with the cost of each outcome."""

    first: np.ndarray  # (n_states,)
    last: np.ndarray  # (n_states,)
    outcome_start: np.ndarray  # (n_actions + 1,)
    successor: np.ndarray  # (n_outcomes,)
    cost: np.ndarray  # (n_outcomes,)


@njit(cache=True)
def runs(near, backwards, layer_start):
    """Cut ``backwards`` into layers, none of whose states leads to another; return how many there are.

    ``near[s]`` is the place in the list of the last state that state ``s`` leads to, -1 if it leads to none.
    """
    n = 0
    for i in range(len(backwards)):
        if i == 0 or near[backwards[i]] >= layer_start[n - 1]:
            layer_start[n] = i
            n += 1
    layer_start[n] = len(backwards)
    return n


@njit(cache=True)
def longest_ahead(backwards, arc_start, target, longest):
    """Fill ``longest`` with the most arcs on a path from each state."""
    for s in backwards:
        longest[s] = 0
        for j in range(arc_start[s], arc_start[s + 1]):
            longest[s] = max(longest[s], longest[target[j]] + 1)


@njit(cache=True, nogil=True)
def solve_backwards(counters, parts, actions, choice, table):
    """Fill ``table`` (n_states, 4) with values and bounds on their errors, and take the best ``choice``, in place.

    A table with one column gets values alone, as one float each.
    """
    part, after, state = parts
    for k in drawn_in_order(counters, after):
        for i in range(part[k], part[k + 1]):
            s = state[i]
            if actions.first[s] < actions.last[s]:
                choice[s] = settled(actions, s, table)
            else:
                table[s] = 0.0


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def settled(actions, s, table):
    """Fill in the row of a state whose successors are settled; return its best action."""
    begin, end, outcome_start, probability, successor, k, unit = actions
    best, least = -1, np.inf
    for a in range(begin[s], end[s]):
        total = k[a]
        for o in along(outcome_start[a], outcome_start[a + 1]):
            total += probability[o] * table[np.uint64(successor[o]), HIGH]
        if best < 0 or total < least:
            best, least = a, total
    table[s, HIGH] = least
    if table.shape[1] == 1:
        return best
    table[s, LOW] = 0.0
    for _ in range(CORRECTIONS):
        lack, error, _ = gap_of(actions, s, best, table)
        if abs(lack) > error:  # the two floats hold the corrected sum and its remainder (Knuth)
            high, low = table[s, HIGH], table[s, LOW] + lack
            total = high + low
            part = total - high
            table[s, HIGH], table[s, LOW] = total, (high - (total - part)) + (low - part)
            lack, error, _ = gap_of(actions, s, best, table)
        above, better, most = 0.0, -1, lack - 2.0 * error
        for a in range(begin[s], end[s]):
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


@njit(cache=True, nogil=True)
def luck_ahead(counters, parts, arc_start, successor, cost, least):
    """Fill ``least`` with best luck: the least cost to a goal by any actions and any outcomes."""
    part, after, state = parts
    for k in drawn_in_order(counters, after):
        for i in range(part[k], part[k + 1]):
            s = state[i]
            first, last = arc_start[s], arc_start[s + 1]
            least[s] = cost[first] + least[successor[first]] if first < last else 0
            for o in range(first + 1, last):
                least[s] = min(least[s], cost[o] + least[successor[o]])


@njit(cache=True, nogil=True)
def least_behind(counters, parts, arc_start, successor, cost, least):
    """Lower ``least`` to the least cost of reaching each state; it enters with 0 at the start, else large numbers.

    Here the parts are in the order of runs, successors last.
    """
    part, after, state = parts
    for k in drawn_in_order(counters, after):
        for i in range(part[k], part[k + 1]):
            s = state[i]
            for o in range(arc_start[s], arc_start[s + 1]):
                if least[s] + cost[o] < least[successor[o]]:
                    lower_atomically(least, successor[o], least[s] + cost[o])


@njit(cache=True, nogil=True)
def worst_ahead(counters, parts, played, worst, action_worst):
    """Fill ``worst`` with the minimal worst-case cost of each state, ``action_worst`` with that after each action."""
    part, after, state = parts
    first, last, outcome_start, successor, cost = played
    for k in drawn_in_order(counters, after):
        for i in range(part[k], part[k + 1]):
            s = state[i]
            least = 0
            for a in range(first[s], last[s]):
                action_worst[a] = 0
                for o in range(outcome_start[a], outcome_start[a + 1]):
                    action_worst[a] = max(action_worst[a], cost[o] + worst[successor[o]])
                least = action_worst[a] if a == first[s] else min(least, action_worst[a])
            worst[s] = least
