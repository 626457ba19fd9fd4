"""The sweep over budgets in tiles: all budgets of a tile at once, as vectors.

A *tile* is a range of levels, taken node by node.  A node is a state, or an outcome list that several actions share up
to a shift of its costs; such an action is then one sure step to it.  Node ``s`` counts its budgets from ``delay[s]``,
the least that reaching it takes: at level ``t`` its budget is ``t - delay[s]``, since more cannot be left.

An outcome adds a multiple of a stretch of its successor's table, and those stretches lie ``cost`` further back.  So a
tile can be filled in one go wherever no node waits for itself: along outcomes that look back less than the tile is
long, the nodes come in an order, successors first.  Where such outcomes make a cycle, the nodes on it are a *group*:
what they need from elsewhere is added up as before, the rest level by level.

Tables are by node and level, from level ``origin`` on.  Values are in levels, and none is below 0.
"""

import numpy as np
from numba import njit

from prudent.kernels.groups import settle_group
from prudent.kernels.stretches import FAST, NEVER, add_outcome, add_two, begin_with


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
