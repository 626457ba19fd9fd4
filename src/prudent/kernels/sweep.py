"""The sweep over budgets: least expected excess, then least expected cost, level by level.

Budgets, costs and values are in lattice steps.  Row ``b`` of a table belongs to budget ``b``; row 0 also
answers for every budget below it, since U(s, b) = V(s) - b for b <= 0.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from prudent.kernels.blocks import eliminate, evaluate_block, place_block, solve_block, visits


class Costs(NamedTuple):
    """What the outcomes cost, and what the two ends of the budget axis are known to be."""

    outcome_start: np.ndarray  # (n_actions + 1,)  those at no cost come first: arcs.inner_start:arcs.inner_stop
    cost: np.ndarray  # (n_outcomes,)
    mean_cost: np.ndarray  # (n_actions,)
    shrink: np.ndarray  # (n_actions,)  a factor just below 1 that outweighs rounding (just above, to evaluate)
    block_shrink: np.ndarray  # (n_blocks,)  the same for a block with cycles
    worst: np.ndarray  # (n_states,)  the least worst case
    action_worst: np.ndarray  # (n_actions,)  the least worst case after an action


@njit(cache=True)
def costly(arcs, costs, a, b, table, slope):
    """Return the part of an action's value that its outcomes at a cost contribute.

    Beyond the last unit of budget the table goes on as ``row 0 - slope * b``.
    """
    total = 0.0
    for o in range(arcs.inner_stop[a], costs.outcome_start[a + 1]):
        rest = b - costs.cost[o]
        if rest > 0:
            total += arcs.probability[o] * table[rest, arcs.successor[o]]
        else:
            total += arcs.probability[o] * (table[0, arcs.successor[o]] - slope * rest)
    return total


@njit(cache=True)
def free(arcs, a, row):
    """Return the part that its outcomes at no cost contribute."""
    total = 0.0
    for o in range(arcs.inner_start[a], arcs.inner_stop[a]):
        total += arcs.probability[o] * row[arcs.successor[o]]
    return total


@njit(cache=True)
def sweep(arcs, costs, tie, first, last, excess, mean, choice, k, allowed, chosen):
    """Fill rows ``first:last`` of the tables; row 0 and the rows before ``first`` are there.

    ``excess`` is U, rounded so that it is never above its true value; ``mean`` is M; ``choice`` holds, as
    numbers within the state, the actions that attain both.  ``k``, ``allowed``, ``chosen`` are room to work.
    """
    n_blocks = len(arcs.block_start) - 1
    for b in range(first, last):
        for block in range(n_blocks):
            start, stop = arcs.block_start[block], arcs.block_start[block + 1]
            cyclic = stop - start > 1
            # First objective: U(s, b) = min over a of the expected U of what follows.
            for i in range(start, stop):
                s = arcs.block_state[i]
                least = np.inf
                for a in range(arcs.action_start[s], arcs.action_start[s + 1]):
                    k[a] = 0.0
                    if b < costs.worst[s]:
                        k[a] = costly(arcs, costs, a, b, excess, 1.0)
                        if not cyclic:
                            k[a] = costs.shrink[a] * (k[a] + free(arcs, a, excess[b]))
                            least = min(least, k[a])
                    allowed[a] = True
                if not cyclic:
                    excess[b, s] = least if least < np.inf else 0.0
            if cyclic:
                solve_block(arcs, start, stop, k, allowed, 1.0, chosen, excess[b])
            # A*(s, b): the actions that attain it; where there is no excess, decided in whole numbers.
            for i in range(start, stop):
                s = arcs.block_state[i]
                limit = excess[b, s] * (1.0 + tie)
                for a in range(arcs.action_start[s], arcs.action_start[s + 1]):
                    if b >= costs.worst[s]:
                        allowed[a] = costs.action_worst[a] <= b
                    elif cyclic:
                        allowed[a] = a == chosen[s] or k[a] + free(arcs, a, excess[b]) <= limit
                    else:
                        allowed[a] = k[a] <= limit
                for a in range(arcs.action_start[s], arcs.action_start[s + 1]):
                    if not allowed[chosen[s]]:
                        chosen[s] = a
            if cyclic:
                for i in range(start, stop):
                    s = arcs.block_state[i]
                    excess[b, s] *= costs.block_shrink[block] if b < costs.worst[s] else 0.0
            # Second objective: M(s, b) = min over A*(s, b) of the expected cost of what follows.
            for i in range(start, stop):
                s = arcs.block_state[i]
                least = np.inf
                for a in range(arcs.action_start[s], arcs.action_start[s + 1]):
                    if allowed[a]:
                        k[a] = costs.mean_cost[a] + costly(arcs, costs, a, b, mean, 0.0)
                        if not cyclic:
                            k[a] += free(arcs, a, mean[b])
                            if k[a] < least:
                                least = k[a]
                                chosen[s] = a
                if not cyclic:
                    mean[b, s] = least if least < np.inf else 0.0
            if cyclic:
                solve_block(arcs, start, stop, k, allowed, 1.0, chosen, mean[b])
            for i in range(start, stop):
                s = arcs.block_state[i]
                choice[b, s] = chosen[s] - arcs.action_start[s]


@njit(cache=True)
def follow(arcs, costs, first, last, choice, excess, mean, k, chosen):
    """Evaluate the policy ``choice``: fill rows ``first:last`` of its expected excess and its expected cost."""
    n_blocks = len(arcs.block_start) - 1
    for b in range(first, last):
        for block in range(n_blocks):
            start, stop = arcs.block_start[block], arcs.block_start[block + 1]
            for pass_ in range(2):
                table = mean if pass_ else excess
                for i in range(start, stop):
                    s = arcs.block_state[i]
                    if arcs.action_start[s] == arcs.action_start[s + 1]:
                        table[b, s] = 0.0
                        continue
                    a = arcs.action_start[s] + choice[b, s]
                    chosen[s] = a
                    k[a] = costly(arcs, costs, a, b, table, 0.0 if pass_ else 1.0)
                    if pass_:
                        k[a] += costs.mean_cost[a]
                    if stop - start == 1:
                        table[b, s] = k[a] + free(arcs, a, table[b])
                        if not pass_:
                            table[b, s] *= costs.shrink[a]
                if stop - start > 1:
                    evaluate_block(arcs, start, stop, k, chosen, table[b])
                    if not pass_:
                        for i in range(start, stop):
                            table[b, arcs.block_state[i]] *= costs.block_shrink[block]


@njit(cache=True)
def distribute(arcs, costs, choice, level, tolerance, first, mass, total, chosen, k):
    """Follow the probability mass of a policy from level ``first`` on; return (levels filled, mass under way).

    ``mass[t % window, s]`` is the mass in ``s`` with ``t`` levels spent; ``total[t]`` receives what ends
    there.  Stops when no more than ``tolerance`` is under way, or ``total`` is full.
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
            if left <= tolerance:
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
