"""The sweep over budgets: least expected excess, then least expected cost, level by level, on all threads.

Budgets, costs and values are in levels.  States are numbered by *place*: first those from which no free move leads
on, then layer by layer those whose free moves lead to layers before (:mod:`prudent.engine.sweep.level_layout`).  States
of a layer do not look at each other on the same level, so a layer is cut into parts that threads take side by side.

The values of a state on a level, U and M or those requested, are *fields* next to each other in one table, so one
access to memory brings all of them.  The table is by level, then by place; a level looks back no further than the
largest cost, so it keeps only that many levels, the *window*: level ``b`` is in line ``b % window``.  Line 0 begins
with the values without budget.  They also give the values for budgets below 0, since U(s, b) = V(s) - b for b <= 0.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from prudent.kernels.blocks import Arcs, advantage, approach, solve_block
from prudent.kernels.intrinsics import prefetch
from prudent.kernels.team import draw, finish, wait_for

PASSES, SETTLED = 64, 1e-9
"""Passes over a block that is too large to solve as equations, and the change in a value at which passes end."""

AHEAD = np.uint64(64)
"""How many outcomes ahead values are fetched: about as many as are added up while one comes from memory."""

FAST = {"contract"}
"""Fused multiply-adds round once where two steps round twice."""


class Costs(NamedTuple):
    """The costs of outcomes, and the rounding errors of sums over them."""

    outcome_start: np.ndarray  # (n_actions + 1,)  those at no cost come first: arcs.inner_start:arcs.inner_stop
    cost: np.ndarray  # (n_outcomes,)
    mean_cost: np.ndarray  # (n_actions,)
    rounding: np.ndarray  # (n_actions,)  relative error of one weighted sum over an action's outcomes
    block_rounding: np.ndarray  # (n_blocks,)  relative error of evaluating a policy in a block with cycles


class Ends(NamedTuple):
    """The budgets from which U is 0, and bounds on the number of free steps."""

    worst: np.ndarray  # (n_states,)  the minimal worst-case cost: from there on U is 0
    action_worst: np.ndarray  # (n_actions,)  the minimal worst-case cost after an action
    stay: np.ndarray  # (n_states,)  upper bound on the expected number of free steps in a row


class Base(NamedTuple):
    """The values without budget."""

    excess: np.ndarray  # (n_states,)  U
    low: np.ndarray  # (n_states,)  lower bound on U
    mean: np.ndarray  # (n_states,)  M


class Aims(NamedTuple):
    """What a sweep computes."""

    plan: bool  # excess, mean and choice
    bound: bool  # low


class Terms(NamedTuple):
    """The weights of the first objective: for U, 0 on all cost and 1 on cost beyond the budget."""

    accrual: float  # for each unit of cost
    slope: float  # for each unit of cost beyond the budget


class Workspace(NamedTuple):
    """The arrays that free cycles are solved in."""

    k: np.ndarray  # (n_actions,)
    allowed: np.ndarray  # (n_actions,)
    chosen: np.ndarray  # (n_states,)  enters with an action for each state
    row: np.ndarray  # (n_states,)  values at one level


class Turns(NamedTuple):
    """The order in which states take their turn on a level, cut into parts that threads take side by side."""

    state: np.ndarray  # (n_states,)  states by layer: free moves lead to layers before
    start: np.ndarray  # (n_parts + 1,)  where parts begin
    needed: np.ndarray  # (n_parts,)  how many parts of the same level must be done before
    cycle_start: np.ndarray  # (n_parts + 1,)  the free cycles of a part: cycle[cycle_start[i]:cycle_start[i + 1]]
    cycle: np.ndarray  # blocks of the free arcs


class Places(NamedTuple):
    """A model laid out for sweeping level by level: its rows in the order of the turns."""

    state: np.ndarray  # (n_states,)  the state at each place
    place: np.ndarray  # (n_states,)  the place of each state
    action_start: np.ndarray  # (n_states + 1,)
    action: np.ndarray  # (n_states,)  the first action of the state at each place, by the model's number
    outcome_start: np.ndarray  # (n_actions + 1,)
    probability: np.ndarray  # (n_outcomes,)
    successor: np.ndarray  # (n_outcomes,)  a place
    cost: np.ndarray  # (n_outcomes,)
    column: np.ndarray  # (n_states,)  where the actions of each place are in a row of the policy: at its state


class Known(NamedTuple):
    """The values known before a sweep begins."""

    mean_cost: np.ndarray  # (n_actions,)  by place
    worst: np.ndarray  # (n_states,)  by place: the budget from which U is 0
    default: np.ndarray  # (n_states,)  by place: the number of an action within its state, where no value decides


class Free(NamedTuple):
    """The arrays of free cycles, by the model's numbers: they are solved as equations, by one thread at a time."""

    arcs: Arcs
    costs: Costs
    ends: Ends
    base: Base
    workspace: Workspace


class Values(NamedTuple):
    """The table of values, flat: by level modulo the window, by place, by field."""

    table: np.ndarray
    window: int
    fields: int  # U and M, then the lower bound on U; or that alone


class Scratch(NamedTuple):
    """The arrays that one thread works in."""

    excess: np.ndarray  # (most actions in a state,)  U if an action is played
    mean: np.ndarray  # (most actions in a state,)  M if an action is played
    lost: np.ndarray  # (1,)  the most that U of a chosen action is above the least, relatively


@njit(cache=True, nogil=True)
def sweep(turns, places, known, free, terms, tie, aims, first, last, values, choice, start, found, scratch, counters):
    """Settle the budgets ``first:last`` after all before them: one thread's share.

    The values of ``start``, a place, go to ``found``: rows for U, its lower bound and M, a column for each budget.
    """
    _, part_start, needed, cycle_start, cycle = turns
    n_parts, n = len(needed), len(places.state)
    table, window, fields = values
    while True:
        number = draw(counters)
        b, part = first + number // n_parts, number % n_parts
        if b >= last:
            return
        wait_for(counters, number - part + needed[part])
        begin, end = part_start[part], part_start[part + 1]
        row = choice[b - first] if aims.plan else choice[0]
        if cycle_start[part] < cycle_start[part + 1]:
            for i in range(cycle_start[part], cycle_start[part + 1]):
                settle_block(places, free, terms, tie, aims, b, cycle[i], values, row)
        else:
            if aims.plan:
                settle_plan(places, known, free.ends.action_worst, terms, tie, b, begin, end, values, row, scratch)
            if aims.bound and fields != 2:
                settle_bound(places, known, free.costs.rounding, terms, b, begin, end, values)
        if begin <= start < end:
            at = (b % window * n + start) * fields
            if aims.plan:
                found[0, b], found[2, b] = table[at], table[at + 1]
            if aims.bound and fields != 2:
                found[1, b] = table[at + fields - 1]
        finish(counters)


@njit(cache=True, nogil=True, fastmath=FAST, _nrt=False)
def settle_plan(places, known, action_worst, terms, tie, b, begin, end, values, choice, scratch):
    """Settle both objectives at one level, at the places ``begin:end``, and choose actions."""
    action_start, outcome_start, first_action = places.action_start, places.outcome_start, places.action
    probability, successor, cost, column = places.probability, places.successor, places.cost, places.column
    mean_cost, worst, default = known
    u, m, lost = scratch.excess, scratch.mean, scratch.lost[0]
    table, window, fields = values.table, values.window, np.uint64(values.fields)
    accrual, slope = terms
    n, line, one = np.uint64(len(places.state)), b % window, np.uint64(1)
    last = np.uint64(outcome_start[action_start[end]] - 1)
    for s in range(np.uint64(begin), np.uint64(end)):
        start, stop = np.uint64(action_start[s]), np.uint64(action_start[s + one])
        safe, least = b >= worst[s], np.inf
        for a in range(start, stop):
            total, mean = accrual * mean_cost[a], mean_cost[a]
            for o in range(np.uint64(outcome_start[a]), np.uint64(outcome_start[a + one])):
                soon = min(o + AHEAD, last)
                back = line - np.int64(cost[soon])
                prefetch(
                    table, (np.uint64(back if back >= 0 else back + window) * n + np.uint64(successor[soon])) * fields
                )
                c, p = np.int64(cost[o]), probability[o]
                if c < b:
                    back = line - c
                    i = (np.uint64(back if back >= 0 else back + window) * n + np.uint64(successor[o])) * fields
                    total += p * table[i]
                else:  # no budget is left
                    i = np.uint64(successor[o]) * fields
                    total += p * (table[i] + slope * (c - b))
                mean += p * table[i + one]
            u[a - start], m[a - start] = total, mean
            least = min(least, total)
        i = (np.uint64(line) * n + s) * fields
        if start == stop:  # a goal
            table[i], table[i + one] = 0.0, 0.0
            continue
        # M decides over A*(s, b), the actions that attain U; where U is 0, whole numbers say which do.
        limit, best, chosen, action = least * (1.0 + tie), np.inf, np.int64(default[s]), first_action[s]
        for j in range(np.int64(stop - start)):
            if (action_worst[action + j] <= b if safe else u[j] <= limit) and m[j] < best:
                best, chosen = m[j], np.int64(j)
        if safe:
            least = 0.0
        elif u[chosen] > least > 0.0:
            lost = max(lost, u[chosen] / least - 1.0)
        table[i], table[i + one] = least, best
        choice[column[s]] = chosen
    scratch.lost[0] = lost


@njit(cache=True, nogil=True, fastmath=FAST, _nrt=False)
def settle_bound(places, known, rounding, terms, b, begin, end, values):
    """Settle the lower bound on U at one level, at the places ``begin:end``: the last field."""
    action_start, outcome_start, first_action = places.action_start, places.outcome_start, places.action
    probability, successor, cost = places.probability, places.successor, places.cost
    mean_cost, worst = known.mean_cost, known.worst
    table, window, fields = values.table, values.window, np.uint64(values.fields)
    accrual, slope = terms
    n, line, one = np.uint64(len(places.state)), b % window, np.uint64(1)
    last = np.uint64(outcome_start[action_start[end]] - 1)
    for s in range(np.uint64(begin), np.uint64(end)):
        start, stop = np.uint64(action_start[s]), np.uint64(action_start[s + one])
        least = np.inf
        for a in range(start, stop if b < worst[s] else start):
            total = accrual * mean_cost[a]
            for o in range(np.uint64(outcome_start[a]), np.uint64(outcome_start[a + one])):
                soon = min(o + AHEAD, last)
                back = line - np.int64(cost[soon])
                prefetch(
                    table, (np.uint64(back if back >= 0 else back + window) * n + np.uint64(successor[soon])) * fields
                )
                c, p = np.int64(cost[o]), probability[o]
                if c < b:
                    back = line - c
                    back = back if back >= 0 else back + window
                    total += p * table[(np.uint64(back) * n + np.uint64(successor[o]) + one) * fields - one]
                else:
                    total += p * (table[(np.uint64(successor[o]) + one) * fields - one] + slope * (c - b))
            least = min(least, (1.0 - rounding[first_action[s] + np.int64(a - start)]) * total)
        table[(np.uint64(line) * n + s + one) * fields - one] = least if b < worst[s] and start < stop else 0.0


@njit(cache=True, nogil=True)
def following(places, arcs, cost, a, b, values, base, field, slope):
    """Return the sum of probability times value after the outcomes of an action that leave the level ``b``."""
    probability, successor, place = arcs.probability, arcs.successor, places.place
    table, window, fields = values
    total, n = 0.0, len(places.state)
    for o in range(arcs.inner_stop[a], cost.outcome_start[a + 1]):
        rest, t = b - cost.cost[o], successor[o]
        if rest > 0:
            total += probability[o] * table[(rest % window * n + place[t]) * fields + field]
        else:
            total += probability[o] * (base[t] - slope * rest)
    return total


@njit(cache=True, nogil=True)
def settle_block(places, free, terms, tie, aims, b, block, values, choice):
    """Settle both objectives in a block of states with free cycles among them."""
    arcs, costs, ends, base, (k, allowed, chosen, row) = free
    begin, end = arcs.block_start[block], arcs.block_start[block + 1]
    for plan in (False, True):  # the lower bound on U, then U itself
        if not (aims.plan if plan else aims.bound):
            continue
        field = 0 if plan else values.fields - 1
        first = base.excess if plan else base.low
        read_level(places, arcs, begin, end, b, values, field, row)
        for i in range(begin, end):
            s = arcs.block_state[i]
            for a in range(arcs.action_start[s], arcs.action_start[s + 1]):
                allowed[a] = True
                after = following(places, arcs, costs, a, b, values, first, field, terms.slope)
                k[a] = terms.accrual * costs.mean_cost[a] + after
        if not plan and end - begin > len(arcs.dense):
            approach(arcs, begin, end, k, PASSES, SETTLED * terms.slope, row, False, row)
        else:
            solve_block(arcs, begin, end, k, allowed, 1.0, 0.0, chosen, row)
        if not plan:
            lower_block(arcs, costs, ends, b, begin, end, k, row)
            write_level(places, arcs, begin, end, b, values, field, row)
            continue
        # A*(s, b), each action's loss judged relative to the sums it comes from.
        for i in range(begin, end):
            s = arcs.block_state[i]
            for a in range(arcs.action_start[s], arcs.action_start[s + 1]):
                loss, size, _ = advantage(arcs, s, a, k, row)
                allowed[a] = a == chosen[s] or loss <= tie * size
                if b >= ends.worst[s]:
                    allowed[a] = ends.action_worst[a] <= b
            for a in range(arcs.action_start[s], arcs.action_start[s + 1]):
                if not allowed[chosen[s]]:
                    chosen[s] = a
            if b >= ends.worst[s]:
                row[s] = 0.0
        write_level(places, arcs, begin, end, b, values, field, row)
        read_level(places, arcs, begin, end, b, values, 1, row)
        for i in range(begin, end):
            s = arcs.block_state[i]
            for a in range(arcs.action_start[s], arcs.action_start[s + 1]):
                k[a] = costs.mean_cost[a] + following(places, arcs, costs, a, b, values, base.mean, 1, 0.0)
        solve_block(arcs, begin, end, k, allowed, 1.0, 0.0, chosen, row)
        write_level(places, arcs, begin, end, b, values, 1, row)
        for i in range(begin, end):
            s = arcs.block_state[i]
            choice[places.column[places.place[s]]] = chosen[s] - arcs.action_start[s]


@njit(cache=True, nogil=True)
def read_level(places, arcs, begin, end, b, values, field, row):
    """Copy to ``row`` a field at level ``b`` of a block and of what it leads to at no cost."""
    table, window, fields = values
    place, first = places.place, b % window * len(places.state)
    for i in range(begin, end):
        s = arcs.block_state[i]
        row[s] = table[(first + place[s]) * fields + field]
        for a in range(arcs.action_start[s], arcs.action_start[s + 1]):
            for o in range(arcs.inner_start[a], arcs.inner_stop[a]):
                t = arcs.successor[o]
                row[t] = table[(first + place[t]) * fields + field]


@njit(cache=True, nogil=True)
def write_level(places, arcs, begin, end, b, values, field, row):
    """Copy the values of a block from ``row`` to a field at level ``b``."""
    table, window, fields = values
    place, first = places.place, b % window * len(places.state)
    for i in range(begin, end):
        table[(first + place[arcs.block_state[i]]) * fields + field] = row[arcs.block_state[i]]


@njit(cache=True, nogil=True)
def lower_block(arcs, costs, ends, b, begin, end, k, low):
    """Lower the values of a block to a subsolution, rounding errors included: it is below every policy's values."""
    most = 0.0
    for i in range(begin, end):
        s = arcs.block_state[i]
        for a in range(arcs.action_start[s], arcs.action_start[s + 1]):
            gain, size, _ = advantage(arcs, s, a, k, low)
            most = max(most, costs.rounding[a] * size - gain)
    for i in range(begin, end):
        s = arcs.block_state[i]
        if b >= ends.worst[s]:
            low[s] = 0.0
        elif most > 0.0:
            low[s] = max(low[s] - most * ends.stay[s], 0.0)
