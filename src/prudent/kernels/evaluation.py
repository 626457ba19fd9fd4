"""Evaluation of a policy level by level, on all threads.

States, levels and the table of values are those of the sweep (:mod:`prudent.kernels.sweep`); but a state has one action
on each level, the policy's.
"""

import numpy as np
from numba import njit

from prudent.kernels.blocks import evaluate_block
from prudent.kernels.choices import look_up
from prudent.kernels.intrinsics import prefetch
from prudent.kernels.sweep import FAST, following, read_level, write_level
from prudent.kernels.team import draw, finish, wait_for

SOON = np.uint64(16)
"""How many states ahead values are fetched."""


@njit(cache=True, nogil=True)
def follow(turns, places, free, choices, first, last, values, start, found, counters):
    """Evaluate the policy ``choices`` for the budgets ``first:last``: one thread's share.

    Fields are its expected excess as computed, its expected cost and, where there are free cycles, an upper bound on
    the excess.  Their values at ``start``, a place, go to the rows of ``found``.
    """
    state, part_start, needed, cycle_start, cycle = turns
    n_parts, n = len(needed), len(state)
    table, window, fields = values
    while True:
        number = draw(counters)
        b, part = first + number // n_parts, number % n_parts
        if b >= last:
            return
        wait_for(counters, number - part + needed[part])
        begin, end = part_start[part], part_start[part + 1]
        if cycle_start[part] < cycle_start[part + 1]:
            for i in range(cycle_start[part], cycle_start[part + 1]):
                follow_block(places, free, choices, b, cycle[i], values)
        else:
            follow_states(places, free.costs, choices, b, begin, end, values)
        if begin <= start < end:
            for field in range(fields):
                found[field, b] = table[(b % window * n + start) * fields + field]
        finish(counters)


@njit(cache=True, nogil=True, fastmath=FAST, _nrt=False)
def follow_states(places, costs, choices, b, begin, end, values):
    """Evaluate a policy at one level, at the places ``begin:end``."""
    entry, first_entry, low, high, stride, without = choices
    action_start, outcome_start, first_action = places.action_start, places.outcome_start, places.action
    probability, successor, cost, state = places.probability, places.successor, places.cost, places.state
    mean_cost, rounding = costs.mean_cost, costs.rounding
    table, window, fields = values.table, values.window, np.uint64(values.fields)
    n, line, one, two = np.uint64(len(state)), b % window, np.uint64(1), np.uint64(2)
    for s in range(np.uint64(begin), np.uint64(end)):
        soon = s + SOON
        if soon < np.uint64(end) and action_start[soon] < action_start[soon + one]:
            a = np.uint64(action_start[soon] + look_up(entry, first_entry, low, high, stride, without, b, state[soon]))
            for o in range(np.uint64(outcome_start[a]), np.uint64(outcome_start[a + one])):
                back = line - np.int64(cost[o])
                prefetch(
                    table, (np.uint64(back if back >= 0 else back + window) * n + np.uint64(successor[o])) * fields
                )
        i = (np.uint64(line) * n + s) * fields
        if action_start[s] == action_start[s + one]:
            for field in range(fields):
                table[i + field] = 0.0
            continue
        number = look_up(entry, first_entry, low, high, stride, without, b, state[s])
        a = np.uint64(action_start[s] + number)
        excess, mean, above = 0.0, mean_cost[first_action[s] + number], 0.0
        for o in range(np.uint64(outcome_start[a]), np.uint64(outcome_start[a + one])):
            c, p = np.int64(cost[o]), probability[o]
            over = float(max(c - b, 0))
            back = line - c
            back = back if back >= 0 else back + window
            t = (np.uint64(back if c < b else 0) * n + np.uint64(successor[o])) * fields
            excess += p * (table[t] + over)
            mean += p * table[t + one]
            if fields > two:
                above += p * (table[t + two] + over)
        table[i], table[i + one] = excess, mean
        if fields > two:
            table[i + two] = above * (1.0 + rounding[first_action[s] + number])


@njit(cache=True, nogil=True)
def follow_block(places, free, choices, b, block, values):
    """Evaluate a policy at one level, in a block of states with free cycles among them."""
    arcs, costs, _, base, (k, _, chosen, row) = free
    entry, first_entry, low, high, stride, without = choices
    begin, end = arcs.block_start[block], arcs.block_start[block + 1]
    for field in range(3):
        first = base.mean if field == 1 else base.low if field == 2 else base.excess
        up = 1.0 if field == 2 else 0.0
        read_level(places, arcs, begin, end, b, values, field, row)
        for i in range(begin, end):
            s = arcs.block_state[i]
            a = arcs.action_start[s] + look_up(entry, first_entry, low, high, stride, without, b, s)
            chosen[s] = a
            k[a] = following(places, arcs, costs, a, b, values, first, field, 0.0 if field == 1 else 1.0)
            k[a] = k[a] + costs.mean_cost[a] if field == 1 else k[a] * (1.0 + up * costs.rounding[a])
        evaluate_block(arcs, begin, end, k, chosen, row)
        for i in range(begin, end):
            row[arcs.block_state[i]] *= 1.0 + up * costs.block_rounding[block]
        write_level(places, arcs, begin, end, b, values, field, row)
