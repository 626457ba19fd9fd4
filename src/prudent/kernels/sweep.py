"""The sweep over budgets: least expected excess, then least expected cost, level by level.

Budgets, costs and values are in levels.  A level looks back no further than the largest cost, so tables of values
keep only that many rows: budget ``b`` is in row ``b % window``.  Without budget the values are those of ``base``,
which also answers for every budget below 0, since U(s, b) = V(s) - b for b <= 0.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from prudent.kernels.blocks import (
    advantage,
    eliminate,
    evaluate_block,
    place_block,
    solve_block,
    visits,
)


class Costs(NamedTuple):
    """What the outcomes cost, and how far sums over them can be trusted."""

    outcome_start: np.ndarray  # (n_actions + 1,)  those at no cost come first: arcs.inner_start:arcs.inner_stop
    cost: np.ndarray  # (n_outcomes,)
    mean_cost: np.ndarray  # (n_actions,)
    rounding: np.ndarray  # (n_actions,)  relative error of one weighted sum over an action's outcomes
    block_rounding: np.ndarray  # (n_blocks,)  relative error of evaluating a policy in a block with cycles


class Ends(NamedTuple):
    """What is known at the two ends of the budget axis, and of staying in between."""

    worst: np.ndarray  # (n_states,)  the least worst case: from there on U is 0
    action_worst: np.ndarray  # (n_actions,)  the least worst case after an action
    stay: np.ndarray  # (n_states,)  at least the expected number of free steps in a row


class Base(NamedTuple):
    """What is known without budget."""

    excess: np.ndarray  # (n_states,)  U
    low: np.ndarray  # (n_states,)  surely at most U
    mean: np.ndarray  # (n_states,)  M


class Tables(NamedTuple):
    """Tables by budget and state."""

    excess: np.ndarray  # (window, n_states)  U
    low: np.ndarray  # (window, n_states)  surely at most U
    mean: np.ndarray  # (window, n_states)  M
    choice: np.ndarray  # (n_rows, n_states)  the action's number within its state; row 0 is the first of a call


class Aims(NamedTuple):
    """What a sweep is for."""

    plan: bool  # excess, mean and choice
    bound: bool  # low


class Terms(NamedTuple):
    """What the first objective adds up: for U neither cost on the way, and 1 for each unit beyond the budget."""

    accrual: float  # for each unit of cost
    slope: float  # for each unit of cost beyond the budget


class Room(NamedTuple):
    """Room to work in."""

    k: np.ndarray  # (n_actions,)
    allowed: np.ndarray  # (n_actions,)
    chosen: np.ndarray  # (n_states,)  enters with an action for each state


@njit(cache=True)
def following(arcs, costs, first, last, b, table, base, slope):
    """Return the expected value of what follows the outcomes ``first:last`` with budget ``b``.

    Beyond the last unit of budget the table goes on as ``base - slope * b``.
    """
    total = 0.0
    window = len(table)
    row = b if b < window else b % window
    for o in range(first, last):
        rest = b - costs.cost[o]
        if rest > 0:
            back = row - costs.cost[o]
            total += arcs.probability[o] * table[back if back >= 0 else back + window, arcs.successor[o]]
        else:
            total += arcs.probability[o] * (base[arcs.successor[o]] - slope * rest)
    return total


@njit(cache=True)
def settle_state(arcs, costs, ends, terms, tie, aims, b, s, base, tables, room):
    """Both objectives in a state whose free outcomes lead to states that are settled already."""
    start, stop = arcs.action_start[s], arcs.action_start[s + 1]
    safe = b >= ends.worst[s]
    # First objective: U(s, b) = min over a of the expected U of what follows.
    least, low = 0.0, 0.0
    if not safe:
        least, low = np.inf, np.inf
        for a in range(start, stop):
            first, last = costs.outcome_start[a], costs.outcome_start[a + 1]
            if aims.plan:
                room.k[a] = terms.accrual * costs.mean_cost[a] + following(
                    arcs, costs, first, last, b, tables.excess, base.excess, terms.slope
                )
                least = min(least, room.k[a])
            if aims.bound:
                sure = terms.accrual * costs.mean_cost[a] + following(
                    arcs, costs, first, last, b, tables.low, base.low, terms.slope
                )
                low = min(low, (1.0 - costs.rounding[a]) * sure)
    if aims.bound:
        tables.low[b % len(tables.low), s] = low
    if not aims.plan:
        return
    tables.excess[b % len(tables.excess), s] = least
    # Second objective over A*(s, b), the actions that attain it; where there is no excess, decided in whole numbers.
    limit = least * (1.0 + tie)
    best = np.inf if start < stop else 0.0
    for a in range(start, stop):
        if ends.action_worst[a] <= b if safe else room.k[a] <= limit:
            first, last = costs.outcome_start[a], costs.outcome_start[a + 1]
            m = costs.mean_cost[a] + following(arcs, costs, first, last, b, tables.mean, base.mean, 0.0)
            if m < best:
                best = m
                room.chosen[s] = a
    tables.mean[b % len(tables.mean), s] = best


@njit(cache=True)
def settle_block(arcs, costs, ends, terms, tie, aims, b, begin, end, base, tables, room):
    """Both objectives in a block of states with free cycles among them."""
    k, allowed, chosen = room
    for plan in (False, True):  # what is surely below U, then U itself
        if not (aims.plan if plan else aims.bound):
            continue
        values, first = (tables.excess, base.excess) if plan else (tables.low, base.low)
        row = values[b % len(values)]
        for i in range(begin, end):
            s = arcs.block_state[i]
            for a in range(arcs.action_start[s], arcs.action_start[s + 1]):
                allowed[a] = True
                k[a] = terms.accrual * costs.mean_cost[a] + following(
                    arcs, costs, arcs.inner_stop[a], costs.outcome_start[a + 1], b, values, first, terms.slope
                )
        solve_block(arcs, begin, end, k, allowed, 1.0, chosen, row, True)
        if not plan:
            lower_block(arcs, costs, ends, b, begin, end, k, row)
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
        for i in range(begin, end):
            s = arcs.block_state[i]
            for a in range(arcs.action_start[s], arcs.action_start[s + 1]):
                last = costs.outcome_start[a + 1]
                k[a] = costs.mean_cost[a] + following(
                    arcs, costs, arcs.inner_stop[a], last, b, tables.mean, base.mean, 0.0
                )
        solve_block(arcs, begin, end, k, allowed, 1.0, chosen, tables.mean[b % len(tables.mean)], True)


@njit(cache=True)
def lower_block(arcs, costs, ends, b, begin, end, k, low):
    """Lower the values of a block until no action surely gains on them: then they are below every policy's."""
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


@njit(cache=True)
def sweep(arcs, costs, ends, terms, tie, aims, first, last, base, tables, start, found, room):
    """Settle the budgets ``first:last``, those before being settled; note the values of ``start`` in ``found``.

    ``found`` has a row each for U, what is surely below it, and M, and a column for each budget.
    """
    for b in range(first, last):
        for block in range(len(arcs.block_start) - 1):
            begin, end = arcs.block_start[block], arcs.block_start[block + 1]
            if end - begin > 1:
                settle_block(arcs, costs, ends, terms, tie, aims, b, begin, end, base, tables, room)
            else:
                settle_state(arcs, costs, ends, terms, tie, aims, b, arcs.block_state[begin], base, tables, room)
        if aims.plan:
            for s in range(len(arcs.place)):
                tables.choice[b - first, s] = room.chosen[s] - arcs.action_start[s]
            found[0, b] = tables.excess[b % len(tables.excess), start]
            found[2, b] = tables.mean[b % len(tables.mean), start]
        if aims.bound:
            found[1, b] = tables.low[b % len(tables.low), start]


@njit(cache=True)
def follow(arcs, costs, base, choice, first, last, tables, start, found, k, chosen):
    """Evaluate the policy ``choice`` for the budgets ``first:last``; note the values of ``start`` in ``found``.

    Layers 0, 1 and 2 of ``base``, ``tables`` and ``found`` are its expected excess as computed, rounded up by more than
    it can err, and its expected cost.
    """
    window = tables.shape[1]
    for b in range(first, last):
        for block in range(len(arcs.block_start) - 1):
            begin, end = arcs.block_start[block], arcs.block_start[block + 1]
            for layer in range(3):
                table, row = tables[layer], tables[layer, b % window]
                slope, up = 0.0 if layer == 2 else 1.0, 1.0 if layer == 1 else 0.0
                for i in range(begin, end):
                    s = arcs.block_state[i]
                    if arcs.action_start[s] == arcs.action_start[s + 1]:
                        row[s] = 0.0
                        continue
                    a = arcs.action_start[s] + choice[b, s]
                    chosen[s] = a
                    outer = arcs.inner_stop[a] if end - begin > 1 else costs.outcome_start[a]
                    k[a] = following(arcs, costs, outer, costs.outcome_start[a + 1], b, table, base[layer], slope)
                    k[a] = k[a] + costs.mean_cost[a] if layer == 2 else k[a] * (1.0 + up * costs.rounding[a])
                    if end - begin == 1:
                        row[s] = k[a]
                if end - begin > 1:
                    evaluate_block(arcs, begin, end, k, chosen, row)
                    for i in range(begin, end):
                        row[arcs.block_state[i]] *= 1.0 + up * costs.block_rounding[block]
        for layer in range(3):
            found[layer, b] = tables[layer, b % window, start]


@njit(cache=True)
def distribute(arcs, costs, choice, level, tolerance, shift, first, mass, total, chosen, k):
    """Follow the probability mass of a policy from level ``first`` on; return (levels filled, mass under way).

    ``mass[0, t % window, s]`` is the mass in ``s`` with ``t`` levels spent; ``total[0, t]`` receives what ends
    there.  Where they have a second layer, it is that mass times the mean of what ``shift`` adds up to on the way.
    Stops when the budget is gone and no more than ``tolerance`` is under way, or ``total`` is full.
    """
    layers, window, _ = mass.shape
    pause = window // 8 + 1  # adding up what is under way takes as long as so many levels
    n_blocks = len(arcs.block_start) - 1
    ended = total[0, :first].sum()
    for t in range(first, total.shape[1]):
        rows = mass[:, t % window]
        b = max(level - t, 0)
        for block in range(n_blocks - 1, -1, -1):
            begin, end = arcs.block_start[block], arcs.block_start[block + 1]
            inflow = 0.0
            for i in range(begin, end):
                inflow += rows[0, arcs.block_state[i]]
            if inflow == 0.0:
                continue
            size = end - begin
            goal = arcs.block_state[begin]
            if arcs.action_start[goal] == arcs.action_start[goal + 1]:
                for layer in range(layers):
                    total[layer, t] += rows[layer, goal]
                    rows[layer, goal] = 0.0
                continue
            for i in range(begin, end):
                s = arcs.block_state[i]
                chosen[s] = arcs.action_start[s] + choice[b, s]
            if size > 1:  # moving at no cost: nothing is shifted inside
                place_block(arcs, begin, end, k, chosen, rows[0])
                eliminate(arcs.dense, arcs.work[0], arcs.work[1], arcs.work[2], size)
                for layer in range(layers):
                    for i in range(size):
                        arcs.work[2, i] = rows[layer, arcs.block_state[begin + i]]
                    visits(arcs.dense, arcs.work[1], arcs.work[2], size)
                    for i in range(size):
                        rows[layer, arcs.block_state[begin + i]] = arcs.work[2, i]
            for i in range(begin, end):
                s = arcs.block_state[i]
                m = rows[0, s]
                if m == 0.0:
                    continue
                a = chosen[s]
                for o in range(arcs.inner_start[a], costs.outcome_start[a + 1]):
                    r = arcs.successor[o]
                    p = arcs.probability[o]
                    inside = size > 1 and arcs.place[r] < size and arcs.block_state[begin + arcs.place[r]] == r
                    if costs.cost[o] > 0 or not inside:
                        row = (t + costs.cost[o]) % window
                        mass[0, row, r] += m * p
                        if layers > 1:
                            mass[1, row, r] += p * (rows[1, s] + m * shift[o])
                for layer in range(layers):
                    rows[layer, s] = 0.0
        ended += total[0, t]
        # Near the end, add up what is left: 1 - ended has lost its digits.
        if 1.0 - ended <= 2.0 * tolerance + 1e-12 and (t % pause == 0 or t + 1 == total.shape[1]):
            left = mass[0].sum()
            if left <= tolerance and (t >= level or left == 0.0):
                return t + 1, left
    return total.shape[1], mass[0].sum()


@njit(cache=True)
def occupy(arcs, costs, choice, start, seen, least):
    """Mark in ``seen[b, s]`` where a policy's run can be, ``b`` levels left; row 0 is for a budget that is gone.

    ``least[s]``, large on entry, becomes the least number of levels spent with which a run is in ``s`` without
    budget.
    """
    level, n = len(seen) - 1, seen.shape[1]
    queue = [level * n + start]  # first in, first out: shortest paths by label correcting
    seen[level, start] = True
    if level == 0:
        least[start] = 0
    waiting = np.zeros(n, dtype=np.bool_)  # in the queue, without budget
    head = 0
    while head < len(queue):
        b, s = divmod(queue[head], n)
        head += 1
        if b == 0:
            waiting[s] = False
        if arcs.action_start[s] == arcs.action_start[s + 1]:
            continue
        a = arcs.action_start[s] + choice[b, s]
        for o in range(arcs.inner_start[a], costs.outcome_start[a + 1]):
            t = arcs.successor[o]
            rest = max(b - costs.cost[o], 0)
            spent = (level - b if b > 0 else least[s]) + costs.cost[o]
            if rest > 0 and not seen[rest, t]:
                seen[rest, t] = True
                queue.append(rest * n + t)
            elif rest == 0 and spent < least[t]:
                seen[0, t] = True
                least[t] = spent
                if not waiting[t]:
                    waiting[t] = True
                    queue.append(t)
