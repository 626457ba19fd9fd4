"""A lower bound on U where costs lie between levels, level by level.

The bound L is a number for each state and level, and linear between levels; it must be below U everywhere.  An outcome
of cost c leads from budget b to b - c, so U(s, b) is at least the least, over actions, of

    g(b) = sum over outcomes of  p L(s', b - c),

which has a kink inside each level for each outcome whose cost lies between levels.  At a kink where g is convex, a
straight line between the values at both ends may pass above it, by at most t (1 - t) d: t is the position of the kink,
and d the change of the slope of L at the level that is looked up.  Such *dips* are subtracted: at both ends of a level
or, if the far end is not known yet, t (1 - t) d / t at the upper end alone.  Then the line is below g, for every
action, and so L is below U.  Dips shrink with the square of the step, and vanish if costs are whole levels.

Below level 0, L is known from V.  Level 0 is settled like the levels above it, because V is only an upper bound there:
if costs were lowered, V of the true costs may be above g, and then so would be the line to level 1.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from prudent.kernels.blocks import Arcs, approach, solve_block
from prudent.kernels.levels import PASSES, SETTLED, Costs, Ends, Workspace, lower_block
from prudent.kernels.questions import FAST, Terms
from prudent.kernels.team import draw, finish, wait_for

PAD = 3
"""Columns of the table for the levels up to 0."""

TOGETHER = 8
"""Levels that are added up at once."""

FAR = 3
"""Costs above this number of levels less one look up only levels whose neighbours are known."""


class Work(NamedTuple):
    """A model whose costs lie between levels, and what is known of its bound beforehand."""

    arcs: Arcs
    costs: Costs
    ends: Ends
    terms: Terms
    parts: np.ndarray  # (n_outcomes,)  by how much costs were rounded up to whole levels
    near: np.ndarray  # (n_actions,)  outcomes from here on look back further than ``TOGETHER`` levels
    error: np.ndarray  # (n_actions,)  the rounding error of a sum, if no value is below -``size``
    size: np.ndarray  # (n_states,)
    base: np.ndarray  # (n_states,)  the bound without budget


class Scratch(NamedTuple):
    """The arrays that all threads work in."""

    workspace: Workspace
    ready: np.ndarray  # (n_actions, TOGETHER)  sums over the outcomes that look back further
    sound: np.ndarray  # (1,)  whether no value is below -``size``


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def looked_up(table, at, s, b, cost, part, base, slope):
    """Return a state's value at ``b - cost + part``, less the dips; ``at`` is the column of level 0."""
    j = b - cost
    if j < -1:
        return base[s] - slope * (j + part)
    i = at + j
    here = table[s, i]
    if part == 0.0:
        return here
    there = table[s, i + 1]
    dip = max(there - 2.0 * here + table[s, i - 1], 0.0)
    if cost >= FAR:
        dip = max(dip, table[s, i + 2] - 2.0 * there + here) * (1.0 - part)
    return here + part * (there - here - dip)


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def add_near(total, begin, end, rows, table, at, b, base, slope):
    """Add to a total the parts of outcomes at one level; ``rows`` is their (probability, successor, cost, part)."""
    probability, successor, cost, part = rows
    for o in range(begin, end):
        total += probability[o] * looked_up(table, at, successor[o], b, cost[o], part[o], base, slope)
    return total


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True, _nrt=False)
def add_far(ready, a, flat, width, at, s, b, cost, part, p, base, slope):
    """Add an outcome's part at ``TOGETHER`` levels from ``b`` on to ``ready[a]``; it looks back further than those."""
    j = b - cost
    if j < -1:
        for t in range(TOGETHER):
            ready[a, t] += p * (base[s] - slope * (j + t + part)) if j + t < -1 else 0.0
        if j + TOGETHER <= -1:
            return
    start = max(-1 - j, 0)
    first, one, rest = np.uint64(s * width + at + j + start), np.uint64(1), 1.0 - part
    for t in range(np.uint64(TOGETHER - start)):
        here, there = flat[first + t], flat[first + t + one]
        dip = max(there - 2.0 * here + flat[first + t - one], flat[first + t + one + one] - 2.0 * there + here)
        ready[a, t + np.uint64(start)] += p * (here + part * (there - here - rest * max(dip, 0.0)))


@njit(cache=True, nogil=True)
def add_up_far(work, table, at, b, begin, end, ready):
    """Set ``ready`` of the actions ``begin:end`` to the parts of outcomes that look back further than ``TOGETHER``."""
    probability, successor, base = work.arcs.probability, work.arcs.successor, work.base
    outcome_start, cost, mean_cost = work.costs.outcome_start, work.costs.cost, work.costs.mean_cost
    parts, near, error, accrual, slope = work.parts, work.near, work.error, work.terms.accrual, work.terms.slope
    flat, width = table.ravel(), table.shape[1]
    for a in range(begin, end):
        for t in range(TOGETHER):
            ready[a, t] = accrual * mean_cost[a] - error[a]
        for o in range(near[a], outcome_start[a + 1]):
            add_far(ready, a, flat, width, at, successor[o], b, cost[o], parts[o], probability[o], base, slope)


@njit(cache=True, nogil=True)
def bound_levels(work, turns, table, at, span, scratch, counters):
    """Settle the levels of a span after all before them, ``at`` being the column of level 0: one thread's share.

    Outcomes that look back further than ``TOGETHER`` levels are added up for as many levels at once, beforehand.
    """
    state, part_start, needed, cycle_start, cycle = turns
    size, ready, sound = work.size, scratch.ready, scratch.sound
    n_parts, n_actions = len(needed), len(work.near)
    each = max(n_actions // n_parts, 1)
    far_parts = -(-n_actions // each)
    together = far_parts + TOGETHER * n_parts  # parts of so many levels, far outcomes first
    while True:
        number = draw(counters)
        b, i = span.first + number // together * TOGETHER, number % together
        t, part = (i - far_parts) // n_parts, (i - far_parts) % n_parts
        if b >= span.last:
            return
        if i < far_parts:
            wait_for(counters, number - i)
            add_up_far(work, table, at, b, i * each, min((i + 1) * each, n_actions), ready)
        elif b + t < span.last:
            wait_for(counters, number - part + needed[part])
            begin, end = part_start[part], part_start[part + 1]
            for c in range(cycle_start[part], cycle_start[part + 1]):
                bound_block(work, table, at, b + t, cycle[c], scratch.workspace, ready[:, t])
            if cycle_start[part] == cycle_start[part + 1]:
                bound_states(work, table, at, b + t, state[begin:end], ready[:, t])
            for s in state[begin:end]:
                if not table[s, at + b + t] >= -size[s]:
                    sound[0] = False
                if s == span.start:
                    span.found[0, b + t - span.first] = table[s, at + b + t]
        finish(counters)


@njit(cache=True, nogil=True)
def bound_states(work, table, at, b, states, ready):
    """Settle states whose moves within the level lead to states that are settled already."""
    arcs, costs, near, base, slope = work.arcs, work.costs, work.near, work.base, work.terms.slope
    action_start, outcome_start, worst = arcs.action_start, costs.outcome_start, work.ends.worst
    rows = arcs.probability, arcs.successor, costs.cost, work.parts
    for s in states:
        low = 0.0
        if b < worst[s]:
            low = np.inf
            for a in range(action_start[s], action_start[s + 1]):
                low = min(low, add_near(ready[a], outcome_start[a], near[a], rows, table, at, b, base, slope))
        table[s, at + b] = low if b > 0 else min(low, base[s])


@njit(cache=True, nogil=True)
def bound_block(work, table, at, b, block, workspace, ready):
    """Settle a block of states with free cycles among them."""
    arcs, costs, near, base, slope = work.arcs, work.costs, work.near, work.base, work.terms.slope
    k, allowed, chosen, row = workspace
    begin, end, block_state = arcs.block_start[block], arcs.block_start[block + 1], arcs.block_state
    action_start, inner_start, inner_stop = arcs.action_start, arcs.inner_start, arcs.inner_stop
    successor = arcs.successor
    rows = arcs.probability, successor, costs.cost, work.parts
    for i in range(begin, end):
        s = block_state[i]
        for a in range(action_start[s], action_start[s + 1]):
            allowed[a] = True
            for o in range(inner_start[a], inner_stop[a]):
                row[successor[o]] = table[successor[o], at + b]
            k[a] = add_near(ready[a], inner_stop[a], near[a], rows, table, at, b, base, slope)
    for i in range(begin, end):
        row[block_state[i]] = table[block_state[i], at + b - 1]
    # Mostly few free steps follow each other, so that passes are all it takes; large blocks are left as they are then.
    settled = approach(arcs, begin, end, k, PASSES, SETTLED * slope, base, b == 0, row)
    if not settled and end - begin <= len(arcs.dense):
        solve_block(arcs, begin, end, k, allowed, 1.0, 0.0, chosen, row)
        for i in range(begin, end if b == 0 else begin):
            row[block_state[i]] = min(row[block_state[i]], base[block_state[i]])
    lower_block(arcs, costs, work.ends, b, block, k, row, -np.inf)
    for i in range(begin, end):
        table[block_state[i], at + b] = row[block_state[i]]
