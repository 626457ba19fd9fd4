"""Following a policy forwards: state by state, where there are no cycles, and pair by pair of state and budget.

In a model without cycles, a state is followed over stretches of levels at once, when all before it have been.
Each state has a row of mass by levels spent.  Over a stretch of levels in which the policy plays one action, an outcome
adds a multiple of the row to its successor's.  The mass may be the probability of runs, with moments of what rounding
left out as further layers, or, as truth values, whether there are any.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from prudent.kernels.choices import look_up

STRETCH = 128
"""Levels that are cleared, or passed over, at once: few runs' costs meet few of them, where the step is fine."""


class Moves(NamedTuple):
    """A model without cycles, as it is followed."""

    backwards: np.ndarray  # (n_states,)  states, successors first
    action_start: np.ndarray  # (n_states + 1,)
    outcome_start: np.ndarray  # (n_actions + 1,)
    successor: np.ndarray  # (n_outcomes,)
    cost: np.ndarray  # (n_outcomes,)
    probability: np.ndarray  # (n_outcomes,)  or only whether it is positive


class Spans(NamedTuple):
    """A row of mass for each state: the levels spent with which runs can be there."""

    least: np.ndarray  # (n_states,)
    most: np.ndarray  # (n_states,)  below ``least`` where no run can be
    row: np.ndarray  # (n_states,)  where the row begins, a multiple of STRETCH; all goals have the first
    mass: np.ndarray  # (layers, room)
    fresh: np.ndarray  # (room / STRETCH,)  stretches that have no mass, whatever stands there


class Passed(NamedTuple):
    """What is added up on the way, and the mass that arrives from level ``limit`` on, which is not followed."""

    played: np.ndarray  # (n_actions,)  the expected number of plays
    arriving: np.ndarray  # (layers, n_later)  by the level on which it arrives
    there: np.ndarray  # (n_states,)  by the state where it arrives
    latest: np.ndarray  # (n_states,)  the last of these levels for each state, from ``limit``
    ahead: np.ndarray  # (n_later,)  times a weight of that state, by level
    weight: np.ndarray  # (n_states,)


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
def reach_ahead(moves, choices, level, limit, least, most):
    """Find the levels spent, from ``least`` to ``most``, with which runs of a policy can be in each state.

    On entry only those of the start are given.  Runs are followed on the levels before ``limit``.
    """
    action_start, outcome_start, successor, cost = moves.action_start, moves.outcome_start, moves.successor, moves.cost
    for i in range(len(moves.backwards) - 1, -1, -1):
        s = moves.backwards[i]
        t, stop = least[s], min(most[s] + 1, limit) if action_start[s] < action_start[s + 1] else 0
        while t < stop:
            action, end = same_action(choices, level, s, t, stop)
            a = action_start[s] + action
            for o in range(outcome_start[a], outcome_start[a + 1]):
                r = successor[o]
                least[r], most[r] = min(least[r], t + cost[o]), max(most[r], end - 1 + cost[o])
            t = end


@njit(cache=True, nogil=True)
def follow_ahead(moves, left_out, choices, level, limit, turns, spans, passed):
    """Move the mass of states on to their successors, from one turn to another in the order of runs.

    Mass from level ``limit`` on stays where it is, and is added up.  Without ``left_out`` there is one layer.
    """
    least, most, row, mass, fresh = spans
    for i in range(len(least) - 1 - turns[0], len(least) - 1 - turns[1], -1):
        s = moves.backwards[i]
        if moves.action_start[s] == moves.action_start[s + 1] or most[s] < least[s]:
            continue
        t, begin = least[s], row[s] - least[s]
        while t <= most[s]:
            end = min(t + STRETCH - (begin + t) % STRETCH, most[s] + 1)
            if not fresh[(begin + t) // STRETCH]:
                move_on(moves, left_out, choices, level, s, t, min(end, limit), spans, passed.played)
                for later in range(max(t - limit, 0), end - limit):
                    here = mass[:, begin + limit + later]
                    if here[0] > 0:
                        passed.there[s] += here[0]
                        passed.latest[s] = later
                        passed.ahead[later] += passed.weight[s] * here[0]
                        for layer in range(len(here)):
                            passed.arriving[layer, later] += here[layer]
                fresh[(begin + t) // STRETCH] = True
            t = end


@njit(cache=True, nogil=True)
def move_on(moves, left_out, choices, level, s, t, last, spans, played):
    """Move the mass of a state on the levels ``t:last`` on to its successors."""
    mass, (_, action_start, outcome_start, successor, cost, probability) = spans.mass, moves
    while t < last:
        action, end = same_action(choices, level, s, t, last)
        a, n, here, plays = action_start[s] + action, end - t, np.uint64(spans.row[s] + t - spans.least[s]), 0.0
        for j in range(np.uint64(n)):
            plays += mass[0, here + j]
        played[a] += plays
        for o in range(outcome_start[a], outcome_start[a + 1] if plays > 0.0 else outcome_start[a]):
            r, p = successor[o], probability[o]
            at = spans.row[r] + t + cost[o] - spans.least[r]
            clear(spans, at // STRETCH)
            clear(spans, (at + n - 1) // STRETCH)
            there = np.uint64(at)
            for j in range(np.uint64(n)):
                mass[0, there + j] += p * mass[0, here + j]
            if left_out is not None:
                rest = left_out[o]
                for j in range(np.uint64(n)):
                    m, moment = mass[0, here + j], mass[1, here + j]
                    mass[1, there + j] += p * (moment + m * rest)
                    mass[2, there + j] += p * (mass[2, here + j] + rest * (2.0 * moment + m * rest))
        t = end


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def clear(spans, stretch):
    """Clear a stretch of levels where it is fresh."""
    if spans.fresh[stretch]:
        spans.fresh[stretch] = False
        for layer in range(len(spans.mass)):
            for at in range(stretch * STRETCH, (stretch + 1) * STRETCH):
                spans.mass[layer, at] = 0


@njit(cache=True)
def occupy(rows, choices, level, start, least):
    """Return the pairs of state and remaining budget in which a policy's runs act, ``s * (level + 1) + b`` for each.

    Without budget ``b`` is 0.  A pair may be returned more than once.  ``least[s]``, large on entry, becomes the
    fewest levels that a run in ``s`` without budget can have spent.
    """
    entry, first, low, high, stride, without = choices
    action_start, outcome_start, successor, cost = rows
    width = level + 1
    seen = np.zeros(len(entry), dtype=np.bool_)
    beside = {np.int64(-1)}  # pairs seen that the table has not
    queue = [start * width + level]  # first in, first out: shortest paths by label correcting
    if level == 0:
        least[start] = 0
    waiting = np.zeros(len(first), dtype=np.bool_)  # in the queue, without budget
    head = 0
    while head < len(queue):
        s, b = divmod(queue[head], width)
        head += 1
        if b == 0:
            waiting[s] = False
        if action_start[s] == action_start[s + 1]:
            continue
        a = action_start[s] + look_up(entry, first, low, high, stride, without, b, s)
        for o in range(outcome_start[a], outcome_start[a + 1]):
            t = successor[o]
            if action_start[t] == action_start[t + 1]:
                continue
            rest = max(b - cost[o], 0)
            spent = (level - b if b > 0 else least[s]) + cost[o]
            if rest == 0:
                if spent < least[t]:
                    least[t] = spent
                    if not waiting[t]:
                        waiting[t] = True
                        queue.append(t * width)
            elif low[t] <= rest <= high[t]:
                place = first[t] + (rest - low[t]) * stride
                if not seen[place]:
                    seen[place] = True
                    queue.append(t * width + rest)
            elif t * width + rest not in beside:
                beside.add(t * width + rest)
                queue.append(t * width + rest)
    return np.array(queue)
