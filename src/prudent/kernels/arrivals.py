"""The Markov chain of a policy, laid out by the places at which its runs arrive.

States that runs can meet are numbered by *place*, such that free moves lead to later places.  Each place has the
outcomes that arrive there, from the actions that the policy plays on some level: first those from states that play the
same action on all levels, then those that count only on levels on which their action is played.  After the states come
places for the goals: all outcomes that end a run, cut into pieces.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit


class Arrivals(NamedTuple):
    """What arrives at each place; places are cut into parts."""

    state: np.ndarray  # (n_met,)  the state at each place before the goals
    place: np.ndarray  # (n_states,)  the place of each state, -1 where it has none
    changing: np.ndarray  # the places of states that play several actions
    arc_start: np.ndarray  # (n_places + 1,)
    sure_stop: np.ndarray  # (n_places,)  arcs up to here count on all levels
    source: np.ndarray  # (n_arcs,)  a place
    cost: np.ndarray  # (n_arcs,)
    number: np.ndarray  # (n_arcs,)  the action's number within its state
    probability: np.ndarray  # (n_arcs,)
    left_out: np.ndarray | None  # (n_arcs,)  what rounding left out of the cost
    part_start: np.ndarray  # (n_parts + 1,)  the places where parts begin
    needed: np.ndarray  # (n_parts,)  how many parts of the same level must be done before
    changing_start: np.ndarray  # (n_parts + 1,)  where the changing places of each part begin
    cycle_start: np.ndarray  # (n_parts + 1,)  the free cycles of a part: cycle[cycle_start[i]:cycle_start[i + 1]]
    cycle: np.ndarray  # blocks of the free arcs
    start: int  # the place where a run begins


@njit(cache=True)
def mark_met(rows, played, start, met):
    """Mark the states that a policy's runs can meet, by the actions that it plays on some level."""
    action_start, outcome_start, successor = rows
    waiting = np.empty(len(met), dtype=np.int32)
    waiting[0], count = start, 1
    met[start] = True
    while count > 0:
        count -= 1
        s = waiting[count]
        for a in range(action_start[s], action_start[s + 1]):
            if played[a]:
                for o in range(outcome_start[a], outcome_start[a + 1]):
                    if not met[successor[o]]:
                        met[successor[o]] = True
                        waiting[count] = successor[o]
                        count += 1


@njit(cache=True)
def mark_changing(action_start, played, state, changing):
    """Mark the places of states that play several actions."""
    for i in range(len(state)):
        count = 0
        for a in range(action_start[state[i]], action_start[state[i] + 1]):
            count += played[a]
        changing[i] = count > 1


@njit(cache=True)
def collect(rows, costs, left_out, played, state, place, changing, block_of, number_type, cost_type, piece):
    """Return the arcs by the place of arrival: starts and the other fields of :class:`Arrivals` by arc, in their order.

    Free moves inside a block are left to its elimination.  Goals have places for ``piece`` arcs each.
    """
    action_start, outcome_start, successor = rows
    cost, probability = costs
    n = len(state)
    sure, unsure = np.zeros(n + 1, dtype=np.int64), np.zeros(n + 1, dtype=np.int64)  # the last is for all goals
    for i in range(n):
        count = unsure if changing[i] else sure
        for a in range(action_start[state[i]], action_start[state[i] + 1]):
            if played[a]:
                for o in range(outcome_start[a], outcome_start[a + 1]):
                    r = place[successor[o]]
                    if r < 0 or cost[o] > 0 or block_of[successor[o]] != block_of[state[i]]:
                        count[r if r >= 0 else n] += 1
    n_places = n - (-(sure[n] + unsure[n]) // piece)
    arc_start, sure_stop = np.zeros(n_places + 1, dtype=np.int64), np.empty(n_places, dtype=np.int64)
    at = 0
    for r in range(n + 1):  # the counts become places to fill
        sure[r], unsure[r], at = at, at + sure[r], at + sure[r] + unsure[r]
        if r < n:
            arc_start[r + 1], sure_stop[r] = at, unsure[r]
    for r in range(n, n_places):
        arc_start[r + 1] = min(arc_start[r] + piece, at)
        sure_stop[r] = min(max(unsure[n], arc_start[r]), arc_start[r + 1])
    source, probabilities = np.empty(at, dtype=np.int32), np.empty(at)
    rest: Any = None if left_out is None else np.empty(at)
    new_cost, number = np.empty(at, dtype=cost_type.dtype), np.empty(at, dtype=number_type.dtype)
    for i in range(n):
        first, fill = action_start[state[i]], unsure if changing[i] else sure
        for a in range(first, action_start[state[i] + 1]):
            if played[a]:
                for o in range(outcome_start[a], outcome_start[a + 1]):
                    r = place[successor[o]]
                    if r < 0 or cost[o] > 0 or block_of[successor[o]] != block_of[state[i]]:
                        r = r if r >= 0 else n
                        at = fill[r]
                        fill[r] += 1
                        source[at], number[at], new_cost[at], probabilities[at] = i, a - first, cost[o], probability[o]
                        if left_out is not None:
                            rest[at] = left_out[o]
    return arc_start, sure_stop, source, new_cost, number, probabilities, rest


@njit(cache=True)
def keep_played(arrivals, left_out, without):
    """Keep, in place, the arcs of actions that are played without budget; return their starts."""
    state, arc_start, sure_stop, source = arrivals.state, arrivals.arc_start, arrivals.sure_stop, arrivals.source
    cost, number, probability = arrivals.cost, arrivals.number, arrivals.probability
    kept, start = 0, np.zeros_like(arc_start)
    for r in range(len(arc_start) - 1):
        for i in range(arc_start[r], arc_start[r + 1]):
            if i < sure_stop[r] or number[i] == without[state[source[i]]]:
                source[kept], cost[kept], probability[kept] = source[i], cost[i], probability[i]
                if left_out is not None:
                    left_out[kept] = left_out[i]
                kept += 1
        start[r + 1] = kept
    return start
