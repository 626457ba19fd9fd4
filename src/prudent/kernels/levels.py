"""The layout by levels: budgets one after the other, all states of a level in their order, on all threads.

Budgets, costs and values are in levels.  States are numbered by *place*: first those from which no free move leads
on, then layer by layer those whose free moves lead to layers before (:mod:`prudent.engine.places`).  States
of a layer do not look at each other on the same level, so a layer is cut into parts that threads take side by side.

The values of a state on a level, the *fields* of the question (:mod:`prudent.kernels.questions`), are next to each
other in one table, so one access to memory brings all of them.  The table is by level, then by place; a level looks
back no further than the largest cost, so it keeps only that many levels, the *window*: level ``b`` is in line
``b % window``.  Line 0 begins with the values without budget.  They also give the values for budgets below 0, since
U(s, b) = V(s) - b for b <= 0, and no level above the largest cost looks at them.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numba.extending import overload

from prudent.kernels.blocks import Arcs, advantage, approach, evaluate_block, solve_block
from prudent.kernels.choices import look_up
from prudent.kernels.intrinsics import prefetch
from prudent.kernels.questions import FAST, STEP, Bound, Given, Plan, PlanAndBound, at_goal, class_of
from prudent.kernels.team import draw, finish, wait_for

PASSES, SETTLED = 64, 1e-9
"""Passes over a block that is too large to solve as equations, and the change in a value at which passes end."""

AHEAD = np.uint64(64)
"""How many outcomes ahead values are fetched: about as many as are added up while one comes from memory."""

SOON = np.uint64(16)
"""How many states ahead values are fetched where a state has one action: its outcomes are not those that come next."""


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


class Workspace(NamedTuple):
    """The arrays that free cycles are solved in."""

    k: np.ndarray  # (n_actions,)
    allowed: np.ndarray  # (n_actions,)
    chosen: np.ndarray  # (n_states,)  enters with an action for each state
    row: np.ndarray  # (n_states,)  values at one level


class Free(NamedTuple):
    """What free cycles need, by the model's numbers: they are solved as equations, by one thread at a time."""

    arcs: Arcs
    costs: Costs
    ends: Ends
    workspace: Workspace


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
    """What is known before a sweep by levels begins."""

    mean_cost: np.ndarray  # (n_actions,)  by place
    rounding: np.ndarray  # (n_actions,)  by the model's number: relative error of one weighted sum
    worst: np.ndarray  # (n_states,)  by place: the budget from which U is 0
    action_worst: np.ndarray  # (n_actions,)  by the model's number: the same, once an action is played
    default: np.ndarray  # (n_states,)  by place: the number of an action within its state, where no value decides


class Values(NamedTuple):
    """The table of values, flat by level modulo the window, place and field, and that of actions."""

    table: np.ndarray
    window: int
    fields: int
    choice: np.ndarray  # (n_levels, n_columns)  for a plan


class Span(NamedTuple):
    """Levels to settle one after the other, and the values that are recorded."""

    first: int
    last: int
    start: int  # a place; -1 if it is not among these
    found: np.ndarray  # (n_fields, last - first)  its values


class Scratch(NamedTuple):
    """The arrays that one thread works in."""

    excess: np.ndarray  # (most actions in a state,)  U if an action is played
    mean: np.ndarray  # (most actions in a state,)  M if an action is played
    lost: np.ndarray  # (1,)  the most that U of a chosen action is above the least, relatively


@njit(cache=True, nogil=True)
def sweep(question, turns, places, free, values, span, scratch, counters):
    """Settle some levels after all before them: one thread's share.  Without free cycles ``free`` is None."""
    _, part_start, needed, cycle_start, cycle = turns
    table, window, fields, _ = values
    n_parts, n = len(needed), len(places.state)
    while True:
        number = draw(counters)
        b, part = span.first + number // n_parts, number % n_parts
        if b >= span.last:
            return
        wait_for(counters, number - part + needed[part])
        begin, end = part_start[part], part_start[part + 1]
        if cycle_start[part] == cycle_start[part + 1]:
            settle(question, places, b, begin, end, values, scratch)
        if free is not None:
            for i in range(cycle_start[part], cycle_start[part + 1]):
                settle_cycle(question, places, free, b, cycle[i], values)
        if begin <= span.start < end:
            at = (b % window * n + span.start) * fields
            for field in range(fields):
                span.found[field, b - span.first] = table[at + field]
        finish(counters)


def settle(question, places, b, begin, end, values, scratch):
    """Settle a question at one level, at the places ``begin:end``, none of them on a free cycle."""


@overload(settle, jit_options=STEP)
def _settle(question, places, b, begin, end, values, scratch):
    return {Plan: settle_plan, Bound: settle_bound, PlanAndBound: settle_both, Given: settle_given}[class_of(question)]


def settle_both(question, places, b, begin, end, values, scratch):
    """Settle a plan, then the lower bound, whose values are not looked at for the plan."""
    terms, tie, known = question
    settle(Plan(terms, tie, known), places, b, begin, end, values, scratch)
    settle(Bound(terms, tie, known), places, b, begin, end, values, scratch)


def settle_plan(question, places, b, begin, end, values, scratch):
    """Settle both objectives and choose actions: M decides over A*(s, b), the actions that attain U."""
    terms, tie, known = question
    accrual, slope = terms.accrual, terms.slope
    mean_cost, _, worst, action_worst, default = known
    action_start, outcome_start = places.action_start, places.outcome_start
    first_action, column = places.action, places.column
    u, m, lost, choice = scratch.excess, scratch.mean, scratch.lost[0], values.choice
    table, fields, one, nothing = values.table, np.uint64(values.fields), np.uint64(1), np.uint64(0)
    level = b, b % values.window
    last = np.uint64(outcome_start[action_start[end]] - 1)
    for s in range(np.uint64(begin), np.uint64(end)):
        start, stop = np.uint64(action_start[s]), np.uint64(action_start[s + one])
        safe, least = b >= worst[s], np.inf
        for a in range(start, stop):
            mean = mean_cost[a]
            outcomes = np.uint64(outcome_start[a]), np.uint64(outcome_start[a + one]), last
            total, mean = after(places, values, level, outcomes, slope, (nothing, True), (accrual * mean, mean))
            u[a - start], m[a - start] = total, mean
            least = min(least, total)
        i = (np.uint64(level[1]) * np.uint64(len(places.state)) + s) * fields
        if start == stop:  # a goal
            table[i], table[i + one] = at_goal(terms, b), 0.0
            continue
        # Where U is 0, whole numbers say which actions attain it.
        limit, best, chosen, action = least * (1.0 + tie), np.inf, np.int64(default[s]), first_action[s]
        for j in range(np.int64(stop - start)):
            if (action_worst[action + j] <= b if safe else u[j] <= limit) and m[j] < best:
                best, chosen = m[j], np.int64(j)
        if safe:
            least = 0.0
        elif u[chosen] > least > 0.0:
            lost = max(lost, u[chosen] / least - 1.0)
        table[i], table[i + one] = least, best
        choice[b, column[s]] = chosen
    scratch.lost[0] = lost


def settle_bound(question, places, b, begin, end, values, scratch):
    """Settle the lower bound on U: the last field."""
    terms, _, known = question
    accrual, slope = terms.accrual, terms.slope
    mean_cost, rounding, worst = known.mean_cost, known.rounding, known.worst
    action_start, outcome_start, first_action = places.action_start, places.outcome_start, places.action
    table, fields, one = values.table, np.uint64(values.fields), np.uint64(1)
    level, field = (b, b % values.window), np.uint64(values.fields - 1)
    last = np.uint64(outcome_start[action_start[end]] - 1)
    for s in range(np.uint64(begin), np.uint64(end)):
        start, stop = np.uint64(action_start[s]), np.uint64(action_start[s + one])
        least = np.inf
        for a in range(start, stop if b < worst[s] else start):
            outcomes = np.uint64(outcome_start[a]), np.uint64(outcome_start[a + one]), last
            total, _ = after(places, values, level, outcomes, slope, (field, False), (accrual * mean_cost[a], 0.0))
            least = min(least, (1.0 - rounding[first_action[s] + np.int64(a - start)]) * total)
        at = (np.uint64(level[1]) * np.uint64(len(places.state)) + s) * fields + field
        if start == stop:  # a goal
            table[at] = at_goal(terms, b)
        else:
            table[at] = least if b < worst[s] else 0.0


def settle_given(question, places, b, begin, end, values, scratch):
    """Settle the values of a given policy."""
    terms, (entry, first_entry, low, high, stride, without), known = question
    accrual, slope = terms.accrual, terms.slope
    action_start, outcome_start = places.action_start, places.outcome_start
    first_action, state = places.action, places.state
    table, fields, one, nothing = values.table, np.uint64(values.fields), np.uint64(1), np.uint64(0)
    level, above = (b, b % values.window), np.uint64(2)
    for s in range(np.uint64(begin), np.uint64(end)):
        soon = s + SOON
        if soon < np.uint64(end) and action_start[soon] < action_start[soon + one]:
            a = np.uint64(action_start[soon] + look_up(entry, first_entry, low, high, stride, without, b, state[soon]))
            for o in range(np.uint64(outcome_start[a]), np.uint64(outcome_start[a + one])):
                prefetch(table, looked_at(places, values, level[1] - np.int64(places.cost[o]), o))
        i = (np.uint64(level[1]) * np.uint64(len(state)) + s) * fields
        if action_start[s] == action_start[s + one]:  # a goal
            for field in range(fields):
                table[i + field] = 0.0 if field == 1 else at_goal(terms, b)
            continue
        number = look_up(entry, first_entry, low, high, stride, without, b, state[s])
        a = np.uint64(action_start[s] + number)
        outcomes = np.uint64(outcome_start[a]), np.uint64(outcome_start[a + one]), nothing
        mean = known.mean_cost[a]
        sums = accrual * mean, mean
        table[i], table[i + one] = after(places, values, level, outcomes, slope, (nothing, True), sums)
        if fields > above:
            total, _ = after(places, values, level, outcomes, slope, (above, False), sums)
            table[i + above] = total * (1.0 + known.rounding[first_action[s] + number])


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def looked_at(places, values, back, o):
    """Return where in the table the values after an outcome begin: in line ``back``, from the end if below 0."""
    line = np.uint64(back if back >= 0 else back + values.window)
    return (line * np.uint64(len(places.state)) + np.uint64(places.successor[o])) * np.uint64(values.fields)


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True, _nrt=False)
def after(places, values, level, outcomes, slope, which, sums):
    """Return a first objective after some outcomes of an action, added to what is given; and M, if asked for.

    ``which`` is (the field of the first objective, whether M, which is next to it, is asked for).  ``outcomes`` is
    (first, end, last): those before ``end`` are added up, those up to ``last`` are fetched ahead; none if that is 0,
    because others come next.
    """
    table, probability, cost = values.table, places.probability, places.cost
    (b, line), (first, end, last), (field, with_mean), (total, mean) = level, outcomes, which, sums
    for o in range(first, end):
        if last > 0:
            soon = min(o + AHEAD, last)
            prefetch(table, looked_at(places, values, line - np.int64(cost[soon]), soon))
        c, p = np.int64(cost[o]), probability[o]
        if c < b:
            i = looked_at(places, values, line - c, o)
            total += p * table[i + field]
        else:  # no budget is left
            i = looked_at(places, values, 0, o)
            total += p * (table[i + field] + slope * (c - b))
        if with_mean:
            mean += p * table[i + np.uint64(1)]
    return total, mean


def settle_cycle(question, places, free, b, block, values):
    """Settle a question at one level, in a block of states with free cycles among them."""


@overload(settle_cycle, jit_options={"nogil": True})
def _settle_cycle(question, places, free, b, block, values):
    steps = {Plan: plan_cycle, Bound: bound_cycle, PlanAndBound: both_cycle, Given: given_cycle}
    return steps[class_of(question)]


def both_cycle(question, places, free, b, block, values):
    """Settle the lower bound, then the plan, which begins with the actions found for it."""
    terms, tie, known = question
    settle_cycle(Bound(terms, tie, known), places, free, b, block, values)
    settle_cycle(Plan(terms, tie, known), places, free, b, block, values)


def plan_cycle(question, places, free, b, block, values):
    """Settle both objectives of a block and choose actions."""
    arcs, costs, ends, (k, allowed, chosen, row) = free
    terms, tie, _ = question
    begin, end = arcs.block_start[block], arcs.block_start[block + 1]
    read_level(places, arcs, begin, end, b, values, 0, row)
    for i in range(begin, end):
        s = arcs.block_state[i]
        for a in range(arcs.action_start[s], arcs.action_start[s + 1]):
            allowed[a] = True
            k[a] = leaving(places, arcs, s, a, b, values, 0, terms.slope, terms.accrual * costs.mean_cost[a])
    solve_block(arcs, begin, end, k, allowed, 1.0, 0.0, chosen, row)
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
    write_level(places, arcs, begin, end, b, values, 0, row)
    read_level(places, arcs, begin, end, b, values, 1, row)
    for i in range(begin, end):
        s = arcs.block_state[i]
        for a in range(arcs.action_start[s], arcs.action_start[s + 1]):
            k[a] = leaving(places, arcs, s, a, b, values, 1, 0.0, costs.mean_cost[a])
    solve_block(arcs, begin, end, k, allowed, 1.0, 0.0, chosen, row)
    write_level(places, arcs, begin, end, b, values, 1, row)
    for i in range(begin, end):
        s = arcs.block_state[i]
        values.choice[b, places.column[places.place[s]]] = chosen[s] - arcs.action_start[s]


def bound_cycle(question, places, free, b, block, values):
    """Settle the lower bound on U in a block."""
    arcs, costs, ends, (k, allowed, chosen, row) = free
    terms, field = question.terms, values.fields - 1
    begin, end = arcs.block_start[block], arcs.block_start[block + 1]
    read_level(places, arcs, begin, end, b, values, field, row)
    for i in range(begin, end):
        s = arcs.block_state[i]
        for a in range(arcs.action_start[s], arcs.action_start[s + 1]):
            allowed[a] = True
            k[a] = leaving(places, arcs, s, a, b, values, field, terms.slope, terms.accrual * costs.mean_cost[a])
    if end - begin > len(arcs.dense):
        approach(arcs, begin, end, k, PASSES, SETTLED * terms.slope, row, False, row)
    else:
        solve_block(arcs, begin, end, k, allowed, 1.0, 0.0, chosen, row)
    lower_block(arcs, costs, ends, b, block, k, row, 0.0)
    write_level(places, arcs, begin, end, b, values, field, row)


def given_cycle(question, places, free, b, block, values):
    """Settle the values of a given policy in a block: its excess, its mean, and an upper bound on the excess."""
    arcs, costs, _, (k, _, chosen, row) = free
    terms, (entry, first_entry, low, high, stride, without), _ = question
    begin, end = arcs.block_start[block], arcs.block_start[block + 1]
    for field in range(values.fields):
        accrual, slope = (1.0, 0.0) if field == 1 else (terms.accrual, terms.slope)
        up = 1.0 if field == 2 else 0.0
        read_level(places, arcs, begin, end, b, values, field, row)
        for i in range(begin, end):
            s = arcs.block_state[i]
            a = arcs.action_start[s] + look_up(entry, first_entry, low, high, stride, without, b, s)
            chosen[s] = a
            after = leaving(places, arcs, s, a, b, values, field, slope, accrual * costs.mean_cost[a])
            k[a] = after * (1.0 + up * costs.rounding[a])
        evaluate_block(arcs, begin, end, k, chosen, row)
        for i in range(begin, end):
            row[arcs.block_state[i]] *= 1.0 + up * costs.block_rounding[block]
        write_level(places, arcs, begin, end, b, values, field, row)


@njit(cache=True, nogil=True)
def leaving(places, arcs, s, a, b, values, field, slope, total):
    """Return a field after the outcomes of an action that leave the level ``b``, added to what is given."""
    action = places.action_start[places.place[s]] + a - arcs.action_start[s]
    begin = places.outcome_start[action] + arcs.inner_stop[a] - arcs.inner_start[a]
    outcomes = np.uint64(begin), np.uint64(places.outcome_start[action + 1]), np.uint64(0)
    level = b, b % values.window
    return after(places, values, level, outcomes, slope, (np.uint64(field), False), (total, 0.0))[0]


@njit(cache=True, nogil=True)
def read_level(places, arcs, begin, end, b, values, field, row):
    """Copy to ``row`` a field at level ``b`` of a block and of what it leads to at no cost."""
    table, window, fields, _ = values
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
    table, window, fields, _ = values
    place, first = places.place, b % window * len(places.state)
    for i in range(begin, end):
        table[(first + place[arcs.block_state[i]]) * fields + field] = row[arcs.block_state[i]]


@njit(cache=True, nogil=True)
def lower_block(arcs, costs, ends, b, block, k, low, least):
    """Lower the values of a block to a subsolution, rounding errors included: it is below every policy's values.

    No value is lowered below ``least``.
    """
    begin, end, most = arcs.block_start[block], arcs.block_start[block + 1], 0.0
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
            low[s] = max(low[s] - most * ends.stay[s], least)
