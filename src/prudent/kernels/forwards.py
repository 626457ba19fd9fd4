"""Following a policy forwards: where its runs can be, with what probability, and what it plays."""

import numpy as np
from numba import njit

from prudent.kernels.blocks import eliminate, place_block, visits
from prudent.kernels.choices import look_up


@njit(cache=True, nogil=True)
def push(arcs, costs, choices, level, tolerance, left_out, first, mass, total, chosen, k, row, played):
    """Follow the probability mass of a policy from level ``first`` on; return (levels filled, mass under way).

    The expected number of plays of action ``a`` on the way is added to ``played[a]``.

    ``mass[0, s, t % window]`` is the mass in ``s`` with ``t`` levels spent; ``total[0, t]`` receives the mass
    that ends there.  A second layer, if any, holds that mass times the mean sum of ``left_out`` on the way, and a
    third one, if any, times the mean of its square.  Stops when the budget is gone and at most ``tolerance`` is under
    way, or ``total`` is full.
    """
    block_start, block_state, action_start = arcs.block_start, arcs.block_state, arcs.action_start
    probability, successor, outcome_start, cost = arcs.probability, arcs.successor, costs.outcome_start, costs.cost
    inner_start, home, work = arcs.inner_start, arcs.rank, arcs.work
    entry, first_entry, low, high, stride, without = choices
    layers, _, window = mass.shape
    pause = window // 8 + 1  # summing the mass under way takes as long as so many levels
    n_blocks = len(block_start) - 1
    ended = total[0, :first].sum()
    for t in range(first, total.shape[1]):
        here = t % window
        for block in range(n_blocks - 1, -1, -1):
            begin, end = block_start[block], block_start[block + 1]
            inflow = 0.0
            for i in range(begin, end):
                inflow += mass[0, block_state[i], here]
            if inflow == 0.0:
                continue
            size = end - begin
            goal = block_state[begin]
            if action_start[goal] == action_start[goal + 1]:
                for layer in range(layers):
                    total[layer, t] += mass[layer, goal, here]
                    mass[layer, goal, here] = 0.0
                continue
            for i in range(begin, end):
                s = block_state[i]
                chosen[s] = action_start[s] + look_up(entry, first_entry, low, high, stride, without, level - t, s)
            if size > 1:  # free moves inside the block stay on this level
                place_block(arcs, begin, end, k, chosen, row)
                eliminate(arcs.dense, work[0], work[1], work[2], size)
                for layer in range(layers):
                    for i in range(size):
                        work[2, i] = mass[layer, block_state[begin + i], here]
                    visits(arcs.dense, work[1], work[2], size)
                    for i in range(size):
                        mass[layer, block_state[begin + i], here] = work[2, i]
            for i in range(begin, end):
                s = block_state[i]
                m = mass[0, s, here]
                if m == 0.0:
                    continue
                a = chosen[s]
                played[a] += m
                for o in range(inner_start[a], outcome_start[a + 1]):
                    r = successor[o]
                    p = probability[o]
                    inside = size > 1 and begin <= home[r] < end
                    if cost[o] > 0 or not inside:
                        there = here + cost[o]
                        there = there - window if there >= window else there
                        mass[0, r, there] += m * p
                        if layers > 1:
                            rest = left_out[o]
                            moment = mass[1, s, here]
                            mass[1, r, there] += p * (moment + m * rest)
                            if layers > 2:
                                mass[2, r, there] += p * (mass[2, s, here] + rest * (2.0 * moment + m * rest))
                for layer in range(layers):
                    mass[layer, s, here] = 0.0
        ended += total[0, t]
        # Near the end, sum the mass that is left: 1 - ended has lost its digits.
        if 1.0 - ended <= 2.0 * tolerance + 1e-12 and (t % pause == 0 or t + 1 == total.shape[1]):
            left = mass[0].sum()
            if left <= tolerance and (t >= level or left == 0.0):
                return t + 1, left
    return total.shape[1], mass[0].sum()


@njit(cache=True)
def occupy(arcs, costs, choices, level, start, least):
    """Return the pairs of state and remaining budget in which a policy's runs act, ``s * (level + 1) + b`` for each.

    Without budget ``b`` is 0.  A pair may be returned more than once.  ``least[s]``, large on entry, becomes the
    fewest levels that a run in ``s`` without budget can have spent.
    """
    entry, first, low, high, stride, without = choices
    action_start, successor, cost = arcs.action_start, arcs.successor, costs.cost
    inner_start, outcome_start = arcs.inner_start, costs.outcome_start
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
        for o in range(inner_start[a], outcome_start[a + 1]):
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


@njit(cache=True)
def farthest(arcs, costs, choices, level, start, worst, seen):
    """Return the most levels that a run of a policy with a budget can use.

    ``worst[s]`` is the worst case from ``s`` once the budget is gone.  ``seen[t % window, s]``, False on entry and on
    return, marks the states where a run can be with ``t`` levels used and some left.
    """
    block_start, block_state, action_start = arcs.block_start, arcs.block_state, arcs.action_start
    entry, first, low, high, stride, without = choices
    window = len(seen)
    most = 0
    seen[0, start] = True
    for t in range(level):
        here, b = seen[t % window], level - t
        for block in range(len(block_start) - 2, -1, -1):
            more = True
            while more:  # again as long as free moves inside the block find states
                more = False
                for i in range(block_start[block], block_start[block + 1]):
                    s = block_state[i]
                    if not here[s]:
                        continue
                    if action_start[s] == action_start[s + 1]:
                        most = max(most, t)
                        continue
                    a = action_start[s] + look_up(entry, first, low, high, stride, without, b, s)
                    for o in range(arcs.inner_start[a], costs.outcome_start[a + 1]):
                        r, c = arcs.successor[o], costs.cost[o]
                        if c >= b:
                            most = max(most, t + c + worst[r])
                        elif not seen[(t + c) % window, r]:
                            seen[(t + c) % window, r] = True
                            more = more or c == 0
        here[:] = False
    return most
