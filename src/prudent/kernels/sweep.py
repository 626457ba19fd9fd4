"""The sweep over budgets: least expected excess, then least expected cost, level by level.

Budgets, costs and values are in levels.  Row ``b`` of a table belongs to budget ``b``; row 0 also answers for
every budget below it, since U(s, b) = V(s) - b for b <= 0.
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


class Tables(NamedTuple):
    """Tables by budget and state."""

    excess: np.ndarray  # (n_levels, n_states)  U
    low: np.ndarray  # (n_levels, n_states)  surely at most U
    mean: np.ndarray  # (n_levels, n_states)  M
    choice: np.ndarray  # (n_levels, n_states)  the action's number within its state


class Room(NamedTuple):
    """Room to work in."""

    k: np.ndarray  # (n_actions,)
    allowed: np.ndarray  # (n_actions,)
    chosen: np.ndarray  # (n_states,)  enters with an action for each state


@njit(cache=True)
def following(arcs, costs, first, last, b, table, slope):
    """Return the expected value of what follows the outcomes ``first:last`` with budget ``b``.

    Beyond the last unit of budget the table goes on as ``row 0 - slope * b``.
    """
    total = 0.0
    for o in range(first, last):
        rest = b - costs.cost[o]
        if rest > 0:
            total += arcs.probability[o] * table[rest, arcs.successor[o]]
        else:
            total += arcs.probability[o] * (table[0, arcs.successor[o]] - slope * rest)
    return total


@njit(cache=True)
def settle_state(arcs, costs, ends, tie, b, s, tables, room):
    """Both objectives in a state whose free outcomes lead to states that are settled already."""
    start, stop = arcs.action_start[s], arcs.action_start[s + 1]
    safe = b >= ends.worst[s]
    # First objective: U(s, b) = min over a of the expected U of what follows.
    least, low = 0.0, 0.0
    if not safe:
        least, low = np.inf, np.inf
        for a in range(start, stop):
            first, last = costs.outcome_start[a], costs.outcome_start[a + 1]
            room.k[a] = following(arcs, costs, first, last, b, tables.excess, 1.0)
            least = min(least, room.k[a])
            low = min(low, (1.0 - costs.rounding[a]) * following(arcs, costs, first, last, b, tables.low, 1.0))
    tables.excess[b, s], tables.low[b, s] = least, low
    # Second objective over A*(s, b), the actions that attain it; where there is no excess, decided in whole numbers.
    limit = least * (1.0 + tie)
    best = np.inf if start < stop else 0.0
    for a in range(start, stop):
        if ends.action_worst[a] <= b if safe else room.k[a] <= limit:
            first, last = costs.outcome_start[a], costs.outcome_start[a + 1]
            m = costs.mean_cost[a] + following(arcs, costs, first, last, b, tables.mean, 0.0)
            if m < best:
                best = m
                room.chosen[s] = a
    tables.mean[b, s] = best


@njit(cache=True)
def settle_block(arcs, costs, ends, tie, b, begin, end, tables, room):
    """Both objectives in a block of states with free cycles among them."""
    k, allowed, chosen = room
    for table in range(2):  # U itself, then what is surely below it
        values = tables.low if table else tables.excess
        for i in range(begin, end):
            s = arcs.block_state[i]
            for a in range(arcs.action_start[s], arcs.action_start[s + 1]):
                allowed[a] = True
                k[a] = following(arcs, costs, arcs.inner_stop[a], costs.outcome_start[a + 1], b, values, 1.0)
        solve_block(arcs, begin, end, k, allowed, 1.0, chosen, values[b], True)
        if table:
            lower_block(arcs, costs, ends, b, begin, end, k, tables.low[b])
            break
        # A*(s, b), each action's loss judged relative to the sums it comes from.
        for i in range(begin, end):
            s = arcs.block_state[i]
            for a in range(arcs.action_start[s], arcs.action_start[s + 1]):
                loss, size, _ = advantage(arcs, s, a, k, values[b])
                allowed[a] = a == chosen[s] or loss <= tie * size
                if b >= ends.worst[s]:
                    allowed[a] = ends.action_worst[a] <= b
            for a in range(arcs.action_start[s], arcs.action_start[s + 1]):
                if not allowed[chosen[s]]:
                    chosen[s] = a
            if b >= ends.worst[s]:
                values[b, s] = 0.0
        for i in range(begin, end):
            s = arcs.block_state[i]
            for a in range(arcs.action_start[s], arcs.action_start[s + 1]):
                last = costs.outcome_start[a + 1]
                k[a] = costs.mean_cost[a] + following(arcs, costs, arcs.inner_stop[a], last, b, tables.mean, 0.0)
        solve_block(arcs, begin, end, k, allowed, 1.0, chosen, tables.mean[b], True)
        for i in range(begin, end):
            s = arcs.block_state[i]
            tables.choice[b, s] = chosen[s] - arcs.action_start[s]


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
def sweep(arcs, costs, ends, tie, first, last, tables, room):
    """Fill rows ``first:last`` of the tables; row 0 and the rows before ``first`` are there."""
    for b in range(first, last):
        for block in range(len(arcs.block_start) - 1):
            begin, end = arcs.block_start[block], arcs.block_start[block + 1]
            if end - begin > 1:
                settle_block(arcs, costs, ends, tie, b, begin, end, tables, room)
            else:
                s = arcs.block_state[begin]
                settle_state(arcs, costs, ends, tie, b, s, tables, room)
                tables.choice[b, s] = room.chosen[s] - arcs.action_start[s]


@njit(cache=True)
def follow(arcs, costs, direction, first, last, choice, excess, mean, k, chosen):
    """Evaluate the policy ``choice``: fill rows ``first:last`` of its expected excess and its expected cost.

    The excess is rounded plainly (``direction`` 0) or up (1), by more than it can err.
    """
    for b in range(first, last):
        for block in range(len(arcs.block_start) - 1):
            begin, end = arcs.block_start[block], arcs.block_start[block + 1]
            for second in range(2):
                table = mean if second else excess
                slope = 0.0 if second else 1.0
                for i in range(begin, end):
                    s = arcs.block_state[i]
                    if arcs.action_start[s] == arcs.action_start[s + 1]:
                        table[b, s] = 0.0
                        continue
                    a = arcs.action_start[s] + choice[b, s]
                    chosen[s] = a
                    start = arcs.inner_stop[a] if end - begin > 1 else costs.outcome_start[a]
                    k[a] = following(arcs, costs, start, costs.outcome_start[a + 1], b, table, slope)
                    k[a] = k[a] + costs.mean_cost[a] if second else k[a] * (1.0 + direction * costs.rounding[a])
                    if end - begin == 1:
                        table[b, s] = k[a]
                if end - begin > 1:
                    evaluate_block(arcs, begin, end, k, chosen, table[b])
                    if not second:
                        for i in range(begin, end):
                            table[b, arcs.block_state[i]] *= 1.0 + direction * costs.block_rounding[block]


@njit(cache=True)
def distribute(arcs, costs, choice, level, tolerance, first, mass, total, chosen, k):
    """Follow the probability mass of a policy from level ``first`` on; return (levels filled, mass under way).

    ``mass[t % window, s]`` is the mass in ``s`` with ``t`` levels spent; ``total[t]`` receives what ends
    there.  Stops when the budget is gone and no more than ``tolerance`` is under way, or ``total`` is full.
    """
    window = len(mass)
    n_blocks = len(arcs.block_start) - 1
    ended = total[:first].sum()
    for t in range(first, len(total)):
        row = mass[t % window]
        b = max(level - t, 0)
        for block in range(n_blocks - 1, -1, -1):
            begin, end = arcs.block_start[block], arcs.block_start[block + 1]
            inflow = 0.0
            for i in range(begin, end):
                inflow += row[arcs.block_state[i]]
            if inflow == 0.0:
                continue
            size = end - begin
            goal = arcs.block_state[begin]
            if arcs.action_start[goal] == arcs.action_start[goal + 1]:
                total[t] += inflow
                row[goal] = 0.0
                continue
            for i in range(begin, end):
                s = arcs.block_state[i]
                chosen[s] = arcs.action_start[s] + choice[b, s]
            if size > 1:
                place_block(arcs, begin, end, k, chosen, row)
                eliminate(arcs.dense, arcs.work[0], arcs.work[1], arcs.work[2], size)
                for i in range(size):
                    arcs.work[2, i] = row[arcs.block_state[begin + i]]
                visits(arcs.dense, arcs.work[1], arcs.work[2], size)
                for i in range(size):
                    row[arcs.block_state[begin + i]] = arcs.work[2, i]
            for i in range(begin, end):
                s = arcs.block_state[i]
                m = row[s]
                if m == 0.0:
                    continue
                row[s] = 0.0
                a = chosen[s]
                for o in range(arcs.inner_start[a], costs.outcome_start[a + 1]):
                    r = arcs.successor[o]
                    if costs.cost[o] > 0:
                        mass[(t + costs.cost[o]) % window, r] += m * arcs.probability[o]
                    elif not (size > 1 and arcs.place[r] < size and arcs.block_state[begin + arcs.place[r]] == r):
                        row[r] += m * arcs.probability[o]
        ended += total[t]
        if 1.0 - ended <= 2.0 * tolerance + 1e-12:  # near the end, add up what is left: 1 - ended has lost its digits
            left = mass.sum()
            if left <= tolerance and (t >= level or left == 0.0):
                return t + 1, left
    return len(total), mass.sum()


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
