"""The sweep over budgets in tiles: all budgets of a tile at once, as vectors.

A *tile* is a range of levels, taken node by node.  A node is a state, or an outcome list that several actions share up
to a shift of its costs; such an action is then one sure step to it.  ``delay[s]`` is the least cost of reaching node
``s``: at level ``t`` its budget is ``t - delay[s]``, since more cannot be left.

An outcome adds a multiple of a stretch of its successor's table that lies ``cost`` levels further back.  Outcomes that
look back less than the length of a tile give the nodes an order, successors first, in which a node's whole tile is
filled at once.  Where such outcomes form a cycle, its nodes are one *group*: what they need from elsewhere is added up
as before, the rest level by level.

Tables are by row and level; :mod:`prudent.engine.sweep.tile_window` says which node has which row.  Values are in
levels, none below 0.
"""

import numpy as np
from numba import njit

from prudent.kernels.choices import look_up
from prudent.kernels.groups import settle_group
from prudent.kernels.stretches import FAST, add_up, copy


@njit(cache=True, nogil=True, fastmath=FAST)
def settle_nodes(work, known, terms, tie, plan, first, last, values, scratch, begin, end):
    """Settle both objectives in the groups ``begin:end``, each of one node that waits for none in this tile."""
    # Tuples are unpacked once, and stretches of arrays are passed by where they begin: in loops, each access to a
    # field, each slice and each call with a tuple would count references.
    outcome_start, probability, successor, cost = work.outcome_start, work.probability, work.successor, work.cost
    action_start, group_start, group_node = work.action_start, work.group_start, work.group_node
    delay, rows, means, excesses, left_out = work.delay, values.row, values.mean, values.excess, work.left_out
    choices, places, stride = values.choice, values.place, values.stride
    before, taken, handed = values.before, values.taken, values.handed
    excess_before, mean_before = values.excess_before, values.mean_before
    mean_cost, base, base_mean, base_choice = work.mean_cost, known.excess, known.mean, known.choice
    worst, action_worst, all_calm = known.worst, known.action_worst, known.calm
    k, tile, next_least, m, chosen = scratch.k, len(scratch.m), scratch.next_least, scratch.m, scratch.chosen
    accrual, slope, lost, never = terms.accrual, terms.slope, scratch.lost[0], known.worst[:0]
    for group in range(begin, end):
        s = group_node[group_start[group]]
        b = max(first - delay[s], 1)
        n = last - delay[s] - b
        start, stop = action_start[s], action_start[s + 1]
        if n <= 0 or start == stop:  # the tables of goals are 0
            continue
        here = rows[s] + b
        front = rows[s] + first - delay[s] - before
        copy(excesses, front, taken, excess_before, s * before)
        # First objective: U(s, b) = min over a of the expected U of what follows.
        unsafe = min(max(worst[s] - b, 0), n)
        fill(excesses, here + unsafe, here + n, 0.0)
        row, first_one = 0, True
        for a in range(start, stop if unsafe > 0 else start):
            if not left_out[a]:
                o, end_o, value = outcome_start[a], outcome_start[a + 1], accrual * mean_cost[a]
                add_up(
                    k, row, unsafe, value, o, end_o, b, probability, successor, cost, rows,
                    base, slope, excesses, worst,
                )  # fmt: skip
                lower_to(k, row, excesses, here, next_least, chosen, a - start, unsafe, first_one)
                first_one = False
            row += tile
        copy(excess_before, s * before, handed, excesses, front + last - first)
        if not plan:
            continue
        copy(means, front, taken, mean_before, s * before)
        # Second objective: M over A*(s, b), the actions that attain U.  Mostly there is one.
        calm = min(max(all_calm[s] - b, 0), n)
        unsafe = min(unsafe, calm)
        lower, upper = attained(next_least, 0, excesses, here, tie, 0, unsafe)
        i = 0
        while i < unsafe:
            if i == lower:
                i = upper
                continue
            j = same_from(chosen, i, lower if i < lower else unsafe)
            a = start + chosen[i]
            add_up(
                means, here + i, j - i, mean_cost[a], outcome_start[a], outcome_start[a + 1], b + i, probability,
                successor, cost, rows, base_mean, 0.0, means, never,
            )  # fmt: skip
            i = j
        # Where several attain U, the least M decides; where U is 0, whole numbers say which do.
        fill(means, here + lower, here + upper, np.inf)
        fill(means, here + unsafe, here + calm, np.inf)
        row = 0
        for a in range(start, stop if lower < upper or unsafe < calm else start):
            if left_out[a]:
                row += tile
                continue
            safe = min(max(action_worst[a] - b, unsafe), calm)
            i, j = attained(k, row, excesses, here, tie, lower, upper)
            fill(k, row + safe, row + calm, 0.0)
            for part in range(2):
                if part == 1:
                    i, j = safe, calm
                if i < j:
                    add_up(
                        m, i, j - i, mean_cost[a], outcome_start[a], outcome_start[a + 1], b + i, probability,
                        successor, cost, rows, base_mean, 0.0, means, never,
                    )  # fmt: skip
                    take(k, row, excesses, here, tie, i, j, a - start, m, means, chosen)
            row += tile
        for i in range(lower, upper):  # the loss in U by choosing among ties
            if excesses[here + i] > 0.0:
                lost = max(lost, k[chosen[i] * tile + i] / excesses[here + i] - 1.0)
        fill(means, here + calm, here + n, base_mean[s])
        copy(mean_before, s * before, handed, means, front + last - first)
        for i in range(calm, n):
            chosen[i] = base_choice[s]
        if s < len(places):
            at = places[s] + b * stride
            for i in range(n):
                choices[at + i * stride] = chosen[i]
    scratch.lost[0] = lost


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def fill(table, begin, end, value):
    """Set a stretch to a value."""
    for i in range(np.uint64(begin), np.uint64(max(begin, end))):
        table[i] = value


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def lower_to(k, row, least, here, next_least, chosen, action, n, first_one):
    """Take an action where it has less than the least so far; keep the second least, too."""
    row, here = np.uint64(row), np.uint64(here)
    if first_one:
        for i in range(np.uint64(n)):
            least[here + i], next_least[i], chosen[i] = k[row + i], np.inf, action
        return
    for i in range(np.uint64(n)):
        value, best = k[row + i], least[here + i]
        less = value < best
        next_least[i] = best if less else min(next_least[i], value)
        least[here + i] = value if less else best
        chosen[i] = action if less else chosen[i]


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def same_from(chosen, i, end):
    """Return the end of the stretch from ``i`` on that has the same action."""
    j = i + 1
    while j < end and chosen[j] == chosen[i]:
        j += 1
    return j


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def take(k, row, least, here, tie, begin, end, action, m, best, chosen):
    """Take an action where it attains the least and has a lower mean."""
    row, here = np.uint64(row), np.uint64(here)
    for i in range(np.uint64(begin), np.uint64(end)):
        better = (k[row + i] <= least[here + i] * (1.0 + tie)) & (m[i] < best[here + i])
        best[here + i] = m[i] if better else best[here + i]
        chosen[i] = action if better else chosen[i]


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def attained(k, row, least, here, tie, begin, end):
    """Return the shortest stretch of ``begin:end`` that has all places where ``k`` attains the least."""
    count, row, here = 0, np.uint64(row), np.uint64(here)
    for i in range(np.uint64(begin), np.uint64(max(begin, end))):
        count += k[row + i] <= least[here + i] * (1.0 + tie)
    if count == 0:
        return end, end
    while not k[row + np.uint64(begin)] <= least[here + np.uint64(begin)] * (1.0 + tie):
        begin += 1
    while not k[row + np.uint64(end - 1)] <= least[here + np.uint64(end - 1)] * (1.0 + tie):
        end -= 1
    return begin, end


@njit(cache=True, nogil=True)
def settle(work, known, terms, tie, plan, first, last, values, scratch, free, begin, end):
    """Settle the levels ``first:last`` in the groups ``begin:end``; these groups are settled before ``first``."""
    group = begin
    while group < end:
        if work.cyclic[group]:
            settle_group(work, known, terms, tie, plan, first, last, values, scratch, free, group)
            group += 1
            continue
        stop = group + 1
        while stop < end and not work.cyclic[stop]:
            stop += 1
        settle_nodes(work, known, terms, tie, plan, first, last, values, scratch, group, stop)
        group = stop


@njit(cache=True, nogil=True, fastmath=FAST)
def follow(work, known, choices, first, last, values):
    """Evaluate the policy ``choices`` for the levels ``first:last``, in a model without cycles."""
    outcome_start, probability, successor, cost = work.outcome_start, work.probability, work.successor, work.cost
    action_start, group_node, mean_cost = work.action_start, work.group_node, work.mean_cost
    delay, rows, means, excesses = work.delay, values.row, values.mean, values.excess
    entry, first_entry, low, high, stride, without = choices
    before, taken, handed = values.before, values.taken, values.handed
    excess_before, mean_before = values.excess_before, values.mean_before
    base, base_mean, never = known.excess, known.mean, known.worst[:0]
    for g in range(len(group_node)):
        s = group_node[g]
        b = max(first - delay[s], 1)
        n = last - delay[s] - b
        start = action_start[s]
        if n <= 0 or start == action_start[s + 1]:
            continue
        here, front = rows[s] + b, rows[s] + first - delay[s] - before
        copy(excesses, front, taken, excess_before, s * before)
        copy(means, front, taken, mean_before, s * before)
        i = 0
        while i < n:
            j, a = n, start
            if s < len(low):
                action = look_up(entry, first_entry, low, high, stride, without, b + i, s)
                j, a = i + 1, start + action
                while j < n and look_up(entry, first_entry, low, high, stride, without, b + j, s) == action:
                    j += 1
            o, end_o = outcome_start[a], outcome_start[a + 1]
            add_up(
                excesses, here + i, j - i, 0.0, o, end_o, b + i, probability, successor, cost, rows, base, 1.0,
                excesses, never,
            )  # fmt: skip
            add_up(
                means, here + i, j - i, mean_cost[a], o, end_o, b + i, probability, successor, cost, rows, base_mean,
                0.0, means, never,
            )  # fmt: skip
            i = j
        copy(excess_before, s * before, handed, excesses, front + last - first)
        copy(mean_before, s * before, handed, means, front + last - first)


@njit(cache=True, nogil=True)
def slide(table, width, by, kept):
    """Move each node's levels ``by:by + kept`` to the front."""
    for start in range(0, len(table), width):
        for i in range(start, start + kept):
            table[i] = table[i + by]
