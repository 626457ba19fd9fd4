"""The sweep over budgets in tiles: all budgets of a tile at once, as vectors.

A *tile* is a range of levels, taken node by node.  A node is a state, or an outcome list that several actions share up
to a shift of its costs; such an action is then one sure step to it.  Node ``s`` counts its budgets from ``delay[s]``,
the least that reaching it takes: at level ``t`` its budget is ``t - delay[s]``, since more cannot be left.

An outcome adds a multiple of a stretch of its successor's table, and those stretches lie ``cost`` further back.  So a
tile can be filled in one go wherever no node waits for itself: along outcomes that cost less than the tile is long, the
nodes come in an order, successors first.  Where such outcomes make a cycle, the nodes on it are a *group*: what they
need from elsewhere is added up as before, the rest level by level.

Tables are by node and level, from level ``origin`` on.  Values are in levels, and none is below 0.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from prudent.kernels.blocks import Round, solve_block
from prudent.kernels.sweep import Costs, Ends, Room, lower_block


class Work(NamedTuple):
    """A model laid out for tiles."""

    group_start: np.ndarray  # (n_groups + 1,)
    group_node: np.ndarray  # (n_nodes,)  groups successors first; within one, along outcomes at no cost, too
    cyclic: np.ndarray  # (n_groups,)  whether its nodes wait for each other within a tile
    action_start: np.ndarray  # (n_nodes + 1,)
    outcome_start: np.ndarray  # (n_actions + 1,)
    ready: np.ndarray  # (n_actions,)  in a cyclic group: outcomes from here on are known before the tile is begun
    probability: np.ndarray  # (n_outcomes,)
    successor: np.ndarray  # (n_outcomes,)
    cost: np.ndarray  # (n_outcomes,)
    mean_cost: np.ndarray  # (n_actions,)
    delay: np.ndarray  # (n_nodes,)  the least cost from the start
    place: np.ndarray  # (n_nodes,)  where its actions begin in the scratch that its group shares
    queue_start: np.ndarray  # (n_groups + 1,)
    queue: (
        np.ndarray
    )  # (n_actions,)  the actions of each group, by where they lead: what is looked at stays in the cache
    action_node: np.ndarray  # (n_actions,)
    block_size: np.ndarray  # (n_nodes,)  by place in a group: how many nodes from here on form a cycle at no cost
    block_of: np.ndarray  # (n_nodes,)  the number of that cycle in the round at no cost, -1 for nodes on none


class Free(NamedTuple):
    """What cycles at no cost need: they are solved as equations, level by level, for a lower bound only."""

    arcs: Round
    costs: Costs
    ends: Ends
    room: Room


class Known(NamedTuple):
    """What is known at the ends of the budget axis, by node."""

    excess: np.ndarray  # (n_nodes,)  U without budget
    mean: np.ndarray  # (n_nodes,)  M without budget
    worst: np.ndarray  # (n_nodes,)  the budget from which U is 0
    action_worst: np.ndarray  # (n_actions,)  the same, once an action is played
    calm: np.ndarray  # (n_nodes,)  the budget from which M is what it is without one
    choice: np.ndarray  # (n_nodes,)  the action that has it, by its number within the node


class Values(NamedTuple):
    """Tables by node and level."""

    width: int  # levels
    excess: np.ndarray  # (n_nodes * width,)  U
    mean: np.ndarray  # (n_nodes * width,)  M
    choice: np.ndarray  # (n_states, n_budgets)  the action's number within its state, by budget


class Scratch(NamedTuple):
    """Room to work in, for one thread."""

    k: np.ndarray  # (most actions in a node, tile)  U if an action is played
    ready: np.ndarray  # (tile, most actions in a group)  the part of it that is known beforehand
    next_least: np.ndarray  # (tile,)  the least but one of them
    m: np.ndarray  # (tile,)  M if an action is played
    chosen: np.ndarray  # (tile,)  the action taken
    lost: np.ndarray  # (1,)  the most by which the U of one that was taken is above the least, relatively


FAST = {"contract"}
"""Fused multiply-adds round once where two steps round twice."""

NEVER = 2**62
"""A budget that no one has."""


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True)
def add_stretch(total, begin, end, p, table, at):
    """Add ``p`` times the stretch of ``table`` that begins ``at`` to ``total[begin:end]``."""
    first, back = np.uint64(begin), np.uint64(at)  # unsigned: no index from the end, so that it becomes vectors
    for i in range(np.uint64(max(end - begin, 0))):
        total[first + i] += p * table[back + i]


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True)
def add_two(total, n, p, one, q, other, table):
    """Add ``p`` and ``q`` times the stretches of ``table`` that begin at ``one`` and ``other`` to ``total[:n]``."""
    back, also = np.uint64(one), np.uint64(other)
    for i in range(np.uint64(n)):
        total[i] = (total[i] + p * table[back + i]) + q * table[also + i]


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True)
def add_outcome(total, begin, end, p, without, slope, rest, table, at, last):
    """Add an outcome's part to ``total[begin:end]``, in which ``rest`` is what it leaves of the first budget.

    Without budget left it is ``without - slope * rest``, with it ``table[at + rest]``, and 0 from ``last`` on.
    """
    gone = begin + min(max(1 - rest, 0), end - begin)
    for i in range(begin, gone):
        total[i] += p * (without - slope * (rest + i - begin))
    add_stretch(total, gone, min(end, begin + last - rest), p, table, at + rest + gone - begin)


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True)
def begin_with(total, begin, end, value, p, without, slope, rest, table, at, last):
    """Set ``total[begin:end]`` to a value and an outcome's part, as :func:`add_outcome` adds it."""
    gone = begin + min(max(1 - rest, 0), end - begin)
    for i in range(begin, gone):
        total[i] = value + p * (without - slope * (rest + i - begin))
    stop = max(min(end, begin + last - rest), gone)
    first, back = np.uint64(gone), np.uint64(at + rest + gone - begin)
    for i in range(np.uint64(stop - gone)):
        total[first + i] = value + p * table[back + i]
    total[stop:end] = value


@njit(cache=True, nogil=True, fastmath=FAST)
def settle_node(work, known, terms, tie, plan, first, last, origin, values, scratch, s):
    """Both objectives in a node that waits for none in this tile, for the levels ``first:last``."""
    # Fields are taken out of their tuples once: within loops each time would count references.
    outcome_start, probability, successor, cost = work.outcome_start, work.probability, work.successor, work.cost
    delay, width, means, excesses = work.delay, values.width, values.mean, values.excess
    mean_cost, base, base_mean = work.mean_cost, known.excess, known.mean
    worst, action_worst = known.worst, known.action_worst
    all_k, next_least, m, chosen = scratch.k, scratch.next_least, scratch.m, scratch.chosen
    b = max(first - delay[s], 1)
    n = last - delay[s] - b
    start, stop = work.action_start[s], work.action_start[s + 1]
    if n <= 0 or start == stop:  # the tables of goals are 0
        return
    here = s * width + b + delay[s] - origin
    excess, mean = excesses[here : here + n], means[here : here + n]
    # First objective: U(s, b) = min over a of the expected U of what follows.
    unsafe = min(max(worst[s] - b, 0), n)
    excess[:unsafe] = np.inf
    excess[unsafe:] = 0.0
    next_least[:unsafe] = np.inf
    for a in range(start, stop if unsafe > 0 else start):
        k = all_k[a - start]
        accrued, o, end = terms.accrual * mean_cost[a], outcome_start[a], outcome_start[a + 1]
        t, rest = successor[o], b - cost[o]
        at = t * width + delay[t] - origin
        begin_with(k, 0, unsafe, accrued, probability[o], base[t], terms.slope, rest, excesses, at, worst[t])
        o += 1
        while o < end:
            t, rest = successor[o], b - cost[o]
            at = t * width + delay[t] - origin
            if o + 1 < end and rest > 0 and rest + unsafe <= worst[t]:  # two at once, if both are whole stretches
                r, left = successor[o + 1], b - cost[o + 1]
                if left > 0 and left + unsafe <= worst[r]:
                    other = r * width + delay[r] - origin + left
                    add_two(k, unsafe, probability[o], at + rest, probability[o + 1], other, excesses)
                    o += 2
                    continue
            add_outcome(k, 0, unsafe, probability[o], base[t], terms.slope, rest, excesses, at, worst[t])
            o += 1
        for i in range(unsafe):
            less = k[i] < excess[i]
            next_least[i] = excess[i] if less else min(next_least[i], k[i])
            excess[i] = k[i] if less else excess[i]
            chosen[i] = a - start if less else chosen[i]
    if not plan:
        return
    # Second objective: M over A*(s, b), the actions that attain U.  Mostly there is one.
    calm = min(max(known.calm[s] - b, 0), n)
    unsafe = min(unsafe, calm)
    lower, upper = attained(next_least, excess, tie, 0, unsafe)
    i = 0
    while i < unsafe:
        if i == lower:
            i = upper
            continue
        end = lower if i < lower else unsafe
        j = i + 1
        while j < end and chosen[j] == chosen[i]:
            j += 1
        a = start + chosen[i]
        o = outcome_start[a]
        t, rest = successor[o], b + i - cost[o]
        at = t * width + delay[t] - origin
        begin_with(mean, i, j, mean_cost[a], probability[o], base_mean[t], 0.0, rest, means, at, NEVER)
        for o in range(outcome_start[a] + 1, outcome_start[a + 1]):
            t, rest = successor[o], b + i - cost[o]
            at = t * width + delay[t] - origin
            add_outcome(mean, i, j, probability[o], base_mean[t], 0.0, rest, means, at, NEVER)
        i = j
    # Where several do, the least M decides; where there is no excess, whole numbers say which they are.
    mean[lower:upper] = np.inf
    mean[unsafe:calm] = np.inf
    for a in range(start, stop if lower < upper or unsafe < calm else start):
        k, safe = all_k[a - start], min(max(action_worst[a] - b, unsafe), calm)
        i, j = attained(k, excess, tie, lower, upper)
        k[safe:calm] = 0.0
        for begin, end in ((i, j), (safe, calm)):
            if begin < end:
                m[begin:end] = mean_cost[a]
                for o in range(outcome_start[a], outcome_start[a + 1]):
                    t, rest = successor[o], b + begin - cost[o]
                    at = t * width + delay[t] - origin
                    add_outcome(m, begin, end, probability[o], base_mean[t], 0.0, rest, means, at, NEVER)
                take(k, excess, tie, begin, end, a - start, m, mean, chosen)
    for i in range(lower, upper):  # what is lost by taking what is as good but for rounding
        if excess[i] > 0.0:
            scratch.lost[0] = max(scratch.lost[0], all_k[chosen[i], i] / excess[i] - 1.0)
    mean[calm:] = base_mean[s]
    chosen[calm:n] = known.choice[s]
    if s < len(values.choice):
        for i in range(n):
            values.choice[s, b + i] = chosen[i]


@njit(cache=True, nogil=True, forceinline=True)
def take(k, least, tie, begin, end, action, m, best, chosen):
    """Where an action attains the least and has a lower mean, take it."""
    for i in range(begin, end):
        better = (k[i] <= least[i] * (1.0 + tie)) & (m[i] < best[i])
        best[i] = m[i] if better else best[i]
        chosen[i] = action if better else chosen[i]


@njit(cache=True, nogil=True, forceinline=True)
def attained(k, least, tie, begin, end):
    """Return the stretch of ``begin:end`` outside which ``k`` does not attain the least."""
    count = 0
    for i in range(begin, end):
        count += k[i] <= least[i] * (1.0 + tie)
    if count == 0:
        return end, end
    while not k[begin] <= least[begin] * (1.0 + tie):
        begin += 1
    while not k[end - 1] <= least[end - 1] * (1.0 + tie):
        end -= 1
    return begin, end


@njit(cache=True, nogil=True, fastmath=FAST)
def settle_group(work, known, terms, tie, plan, first, last, origin, values, scratch, free, group):
    """Both objectives in the nodes of a cycle, for the levels ``first:last``: what is known, then level by level."""
    outcome_start, late_stop, action_start = work.outcome_start, work.ready, work.action_start
    probability, successor, cost, delay = work.probability, work.successor, work.cost, work.delay
    width, means, excesses = values.width, values.mean, values.excess
    worst, action_worst, calm, base, base_mean = known.worst, known.action_worst, known.calm, known.excess, known.mean
    mean_cost, k, ready = work.mean_cost, scratch.m, scratch.ready
    for q in range(work.queue_start[group], work.queue_start[group + 1]):
        a = work.queue[q]
        s = work.action_node[a]
        place = work.place[s] + a - action_start[s]
        # Of U, as long as there may be excess.
        b = max(first - delay[s], 1)
        n = max(min(last - delay[s], worst[s] if work.block_of[s] < 0 else NEVER) - b, 0)
        k[:n] = terms.accrual * mean_cost[a]
        for o in range(late_stop[a], outcome_start[a + 1]):
            t, rest = successor[o], b - cost[o]
            at = t * width + delay[t] - origin
            add_outcome(k, 0, n, probability[o], base[t], terms.slope, rest, excesses, at, worst[t])
        for i in range(n):
            ready[b + delay[s] - first + i, place] = k[i]
        # Of M, where there need be none.
        b = max(first - delay[s], worst[s], action_worst[a], 1)
        n = min(last - delay[s], calm[s]) - b
        if plan and n > 0:
            k[:n] = mean_cost[a]
            for o in range(late_stop[a], outcome_start[a + 1]):
                t, rest = successor[o], b - cost[o]
                at = t * width + delay[t] - origin
                add_outcome(k, 0, n, probability[o], base_mean[t], 0.0, rest, means, at, NEVER)
            for i in range(n):
                ready[b + delay[s] - first + i, place] = k[i]
    for level in range(first, last):
        row = level - first
        skipped = 0
        for g in range(work.group_start[group], work.group_start[group + 1]):
            if skipped > 0:
                skipped -= 1
                continue
            if work.block_size[g] > 1:
                settle_free(work, terms, level, row, origin, values, base, ready, free, g)
                skipped = work.block_size[g] - 1
                continue
            s = work.group_node[g]
            b, start, stop = level - delay[s], action_start[s], action_start[s + 1]
            if b <= 0:
                continue
            place, safe = work.place[s] - start, b >= worst[s]
            least = 0.0 if safe else np.inf
            for a in range(start, start if safe else stop):
                total = ready[row, place + a]
                for o in range(outcome_start[a], late_stop[a]):
                    t, rest = successor[o], b - cost[o]
                    after = base[t] - terms.slope * rest
                    if rest > 0:
                        after = excesses[t * width + rest + delay[t] - origin]
                    total += probability[o] * after
                ready[row, place + a] = total
                least = min(least, total)
            excesses[s * width + level - origin] = least
            if not plan:
                continue
            limit, best, chosen = least * (1.0 + tie), np.inf, known.choice[s]
            if b >= calm[s]:
                best, stop = base_mean[s], start
            for a in range(start, stop):
                if action_worst[a] <= b if safe else ready[row, place + a] <= limit:
                    total = ready[row, place + a] if safe else mean_cost[a]
                    for o in range(outcome_start[a], late_stop[a] if safe else outcome_start[a + 1]):
                        t, rest = successor[o], b - cost[o]
                        after = base_mean[t]
                        if rest > 0:
                            after = means[t * width + rest + delay[t] - origin]
                        total += probability[o] * after
                    if total < best:
                        best, chosen = total, a - start
            means[s * width + level - origin] = best
            values.choice[s, b] = chosen


@njit(cache=True, nogil=True, fastmath=FAST)
def settle_free(work, terms, level, row, origin, values, base, ready, free, g):
    """Find what is surely below U in the nodes of a cycle at no cost, at one level."""
    arcs, (k, allowed, chosen, value) = free.arcs, free.room
    outcome_start, late_stop, action_start = work.outcome_start, work.ready, work.action_start
    probability, successor, cost, delay = work.probability, work.successor, work.cost, work.delay
    width, excesses = values.width, values.excess
    b = level - delay[work.group_node[g]]  # the same for all of them
    if b <= 0:
        return
    for i in range(g, g + work.block_size[g]):
        s = work.group_node[i]
        for a in range(action_start[s], action_start[s + 1]):
            total = ready[row, work.place[s] + a - action_start[s]]
            for o in range(outcome_start[a], late_stop[a]):
                t, rest = successor[o], b - cost[o]
                if cost[o] == 0:
                    value[t] = excesses[t * width + b + delay[t] - origin]  # where it leads out: settled before
                elif rest > 0:
                    total += probability[o] * excesses[t * width + rest + delay[t] - origin]
                else:
                    total += probability[o] * (base[t] - terms.slope * rest)
            k[a], allowed[a] = total, True
    block = work.block_of[work.group_node[g]]
    begin, end = arcs.block_start[block], arcs.block_start[block + 1]
    solve_block(arcs, begin, end, k, allowed, 1.0, chosen, value, True)
    lower_block(arcs, free.costs, free.ends, b, begin, end, k, value)
    for i in range(g, g + work.block_size[g]):
        s = work.group_node[i]
        excesses[s * width + level - origin] = value[s]


@njit(cache=True, nogil=True)
def settle(work, known, terms, tie, plan, first, last, origin, values, scratch, free, begin, end):
    """Settle the levels ``first:last`` in the groups ``begin:end``, those before being settled."""
    for group in range(begin, end):
        if work.cyclic[group]:
            settle_group(work, known, terms, tie, plan, first, last, origin, values, scratch, free, group)
        else:
            s = work.group_node[work.group_start[group]]
            settle_node(work, known, terms, tie, plan, first, last, origin, values, scratch, s)


@njit(cache=True, nogil=True, fastmath=FAST)
def follow(work, known, first, last, origin, values):
    """Evaluate the policy ``values.choice`` for the levels ``first:last``, in a model without cycles."""
    outcome_start, probability, successor, cost = work.outcome_start, work.probability, work.successor, work.cost
    delay, width, means, excesses, choice = work.delay, values.width, values.mean, values.excess, values.choice
    base, base_mean = known.excess, known.mean
    for g in range(len(work.group_node)):
        s = work.group_node[g]
        b = max(first - delay[s], 1)
        n = last - delay[s] - b
        start = work.action_start[s]
        if n <= 0 or start == work.action_start[s + 1]:
            continue
        here = s * width + b + delay[s] - origin
        excess, mean = excesses[here : here + n], means[here : here + n]
        i = 0
        while i < n:
            j, a = n, start
            if s < len(choice):
                j, a = i + 1, start + choice[s, b + i]
                while j < n and choice[s, b + j] == a - start:
                    j += 1
            excess[i:j] = 0.0
            mean[i:j] = work.mean_cost[a]
            for o in range(outcome_start[a], outcome_start[a + 1]):
                t, rest = successor[o], b + i - cost[o]
                at = t * width + delay[t] - origin
                add_outcome(excess, i, j, probability[o], base[t], 1.0, rest, excesses, at, NEVER)
                add_outcome(mean, i, j, probability[o], base_mean[t], 0.0, rest, means, at, NEVER)
            i = j


@njit(cache=True, nogil=True)
def slide(table, width, by, kept):
    """Move each node's levels ``by:by + kept`` to the front."""
    for start in range(0, len(table), width):
        for i in range(start, start + kept):
            table[i] = table[i + by]


@njit(cache=True, nogil=True)
def turn(table, turned):
    """Copy a table to one with rows and columns exchanged, square by square."""
    rows, columns = turned.shape
    for i in range(0, rows, 64):
        for j in range(0, columns, 64):
            for x in range(i, min(i + 64, rows)):
                for y in range(j, min(j + 64, columns)):
                    turned[x, y] = table[y, x]
