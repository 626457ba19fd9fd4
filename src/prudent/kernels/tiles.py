"""The sweep over budgets in tiles: all budgets of a tile at once, as vectors.

A *tile* is a range of levels, taken node by node.  A node is a state, or an outcome list that several actions share up
to a shift of its costs; such an action is then one sure step to it.  ``delay[s]`` is the least cost of reaching node
``s``: at level ``t`` its budget is ``t - delay[s]``, since more cannot be left.

An outcome adds a multiple of a stretch of its successor's table that lies ``cost`` levels further back.  Outcomes that
look back less than the length of a tile give the nodes an order, successors first, in which a node's whole tile is
filled at once.  If such outcomes form a cycle, its nodes are one *group*: their known parts are added up as before, the
rest level by level.

Nodes of one layer do not wait for each other: threads draw parts, some nodes of a layer for a *strip* of the tile's
levels, layer after layer.  If tiles hand on few levels, several are in work at the same time: each follows the previous
tile by a layer, in tables of its own that stay in the caches of the threads that work on it.

Tables are by row and level; :mod:`prudent.engine.sweep.tile_window` says which node has which row.  Values are in
levels, none below 0.
"""

import numpy as np
from numba import njit
from numba.extending import overload

from prudent.kernels.choices import look_up
from prudent.kernels.groups import settle_group
from prudent.kernels.questions import FAST, STEP, WITHIN, Bound, Given, Plan, at_goal, class_of
from prudent.kernels.stretches import LANES, Strip, add_up, begin_row, copy, fill, hand_on, kept_place
from prudent.kernels.team import draw, finish, wait_for


@njit(**WITHIN)
def settle_nodes(question, work, strip, values, scratch, begin, end):
    """Settle a question for a strip, in the groups ``begin:end``, each of one node that waits for none in this tile."""
    # Tuples are unpacked once, and stretches of arrays are passed by where they begin: in loops, each access to a
    # field and each slice would count references, except in functions without arrays of their own.
    action_start, group_start, group_node, delay = work.action_start, work.group_start, work.group_node, work.delay
    rows, means, excesses, back, block = values.row, values.mean, values.excess, values.back, values.block
    excess_before, mean_before, known = values.excess_before, values.mean_before, question.known
    base, base_mean, terms = known.excess, known.mean, question.terms
    hands_on, ring = values.kept > 0 and strip.last < values.final, (values.kept, block, len(delay) * block)
    tile, within, filled, with_mean = strip[:2], strip[2:4], values.front >= 0, len(means) > 1
    for group in range(begin, end):
        s = group_node[group_start[group]]
        since, here, place, goal = delay[s], rows[s] + strip.shift, s * block, action_start[s] == action_start[s + 1]
        far = back[s] if filled else 0
        b = max(strip.low - since, 1)
        n = strip.high - since - b
        if filled:
            begin_row(excesses, here, since, far, base[s], terms.slope, ring, excess_before, place, tile, within, goal)
            if with_mean:
                begin_row(means, here, since, far, base_mean[s], 0.0, ring, mean_before, place, tile, within, goal)
        if goal:
            low = strip.first - far if strip.low == strip.first else strip.low
            for budget in range(max(low - since, 1), strip.high - since):
                excesses[here + budget] = at_goal(terms, budget)
        if n <= 0 or goal:
            continue
        fill_in(question, work, strip.shift, values, scratch, s, b, n)
        copy(excesses, here + b, n, scratch.least, 0)
        if hands_on:
            hand_on(excesses, here, since, far, ring, excess_before, place, tile[1], strip.low, strip.high)
        if with_mean:
            copy(means, here + b, n, scratch.mean, 0)
            if hands_on:
                hand_on(means, here, since, far, ring, mean_before, place, tile[1], strip.low, strip.high)
    write_out(values.choice, values.stride, scratch)


def fill_in(question, work, shift, values, scratch, s, b, n):
    """Fill ``scratch`` with a node's values for ``n`` budgets from ``b`` on: ``least`` and, with a mean, ``mean``."""


@overload(fill_in, jit_options=STEP | {"forceinline": True})
def _fill_in(question, work, shift, values, scratch, s, b, n):
    # A bound is U alone; rounding errors are subtracted in the end.
    return {Plan: fill_in_plan, Bound: least_excess.py_func, Given: fill_in_given}[class_of(question)]


def fill_in_plan(question, work, shift, values, scratch, s, b, n):
    """Find U, M and the actions that attain them; the actions are held until those of more nodes are written."""
    unsafe = least_excess(question, work, shift, values, scratch, s, b, n)
    least_mean(question, work, shift, values, scratch, s, b, n, unsafe)
    hold(values, scratch, s, b, n)


def fill_in_given(question, work, shift, values, scratch, s, b, n):
    """Find the values of a given policy, for one stretch of budgets with the same action after the other."""
    terms, (entry, first_entry, low, high, stride, without), known = question
    outcome_start, probability, successor, cost = work.outcome_start, work.probability, work.successor, work.cost
    start, mean_cost, rows, filled = work.action_start[s], work.mean_cost, values.row, values.front >= 0
    p, at, excess, mean = scratch.p, scratch.at, scratch.least, scratch.mean
    base, base_mean, never = known.excess, known.mean, known.worst[:0]
    i = 0
    while i < n:
        j, a = n, start
        if s < len(low):  # a state: shared lists of outcomes have one action
            action = look_up(entry, first_entry, low, high, stride, without, b + i, s)
            j, a = i + 1, start + action
            while j < n and look_up(entry, first_entry, low, high, stride, without, b + j, s) == action:
                j += 1
        add_up(
            excess, i, j - i, terms.accrual * mean_cost[a], outcome_start[a], outcome_start[a + 1], b + i, probability,
            successor, cost, rows, shift, filled, base, terms.slope, values.excess, never, p, at,
        )  # fmt: skip
        add_up(
            mean, i, j - i, mean_cost[a], outcome_start[a], outcome_start[a + 1], b + i, probability, successor, cost,
            rows, shift, filled, base_mean, 0.0, values.mean, never, p, at,
        )  # fmt: skip
        i = j


@njit(**WITHIN)
def least_excess(question, work, shift, values, scratch, s, b, n):
    """Find U(s, b), the least over actions of the expected U of what follows, for ``n`` budgets from ``b`` on.

    ``scratch.k`` has it for each action, ``least`` and ``next_least`` the two least, ``chosen`` an action with the
    least.  Return for how many budgets it is not 0.
    """
    outcome_start, probability, successor, cost = work.outcome_start, work.probability, work.successor, work.cost
    start, stop, mean_cost = work.action_start[s], work.action_start[s + 1], work.mean_cost
    rows, excesses, filled, length = values.row, values.excess, values.front >= 0, len(scratch.m) - LANES
    k, least, next_least, chosen = scratch.k, scratch.least, scratch.next_least, scratch.chosen
    terms, _, known = question
    base, worst, p, at = known.excess, known.worst, scratch.p, scratch.at
    unsafe, row = min(max(worst[s] - b, 0), n), 0
    whole = (unsafe + LANES - 1) // LANES * LANES
    for a in range(start, stop if unsafe > 0 else start):
        if work.left_out[a]:
            fill(k, row, row + whole, np.inf)
        else:
            add_up(
                k, row, unsafe, terms.accrual * mean_cost[a], outcome_start[a], outcome_start[a + 1], b, probability,
                successor, cost, rows, shift, filled, base, terms.slope, excesses, worst, p, at,
            )  # fmt: skip
        row += length
        if a + 1 == stop:
            while row % (4 * length) > 0:
                fill(k, row, row + whole, np.inf)
                row += length
        if row % (4 * length) == 0:
            lower_to_four(k, row - 4 * length, length, least, next_least, chosen, whole)
    fill(least, unsafe, n, 0.0)
    return unsafe


@njit(**WITHIN)
def least_mean(question, work, shift, values, scratch, s, b, n, unsafe):
    """Find M(s, b), the lowest expected cost over A*(s, b), the actions that attain U, and which action has it."""
    outcome_start, probability, successor, cost = work.outcome_start, work.probability, work.successor, work.cost
    start, stop, mean_cost = work.action_start[s], work.action_start[s + 1], work.mean_cost
    rows, means, filled, length = values.row, values.mean, values.front >= 0, len(scratch.m) - LANES
    k, least, chosen, m, mean = scratch.k, scratch.least, scratch.chosen, scratch.m, scratch.mean
    _, tie, known = question
    base, never, p, at = known.mean, known.worst[:0], scratch.p, scratch.at
    calm = min(max(known.calm[s] - b, 0), n)
    unsafe = min(unsafe, calm)
    lower, upper = attained(scratch.next_least, 0, least, tie, 0, unsafe)
    i = 0
    while i < unsafe:  # mostly one action attains U
        if i == lower:
            i = upper
            continue
        j = same_from(chosen, i, lower if i < lower else unsafe)
        a = start + chosen[i]
        add_up(
            mean, i, j - i, mean_cost[a], outcome_start[a], outcome_start[a + 1], b + i, probability, successor, cost,
            rows, shift, filled, base, 0.0, means, never, p, at,
        )  # fmt: skip
        i = j
    # Where several attain U, the least M decides; where U is 0, whole numbers say which do.
    fill(mean, lower, upper, np.inf)
    fill(mean, unsafe, calm, np.inf)
    row = 0
    for a in range(start, stop if lower < upper or unsafe < calm else start):
        safe = min(max(known.action_worst[a] - b, unsafe), calm)
        i, j = attained(k, row, least, tie, lower, upper)
        fill(k, row + safe, row + calm, 0.0)
        for part in range(0 if work.left_out[a] else 2):
            if part == 1:
                i, j = safe, calm
            if i < j:
                add_up(
                    m, i, j - i, mean_cost[a], outcome_start[a], outcome_start[a + 1], b + i, probability, successor,
                    cost, rows, shift, filled, base, 0.0, means, never, p, at,
                )  # fmt: skip
                take(k, row, least, tie, i, j, a - start, m, mean, chosen)
        row += length
    for i in range(lower, upper):  # the loss in U by choosing among ties
        if least[i] > 0.0:
            scratch.lost[0] = max(scratch.lost[0], k[chosen[i] * length + i] / least[i] - 1.0)
    fill(mean, calm, n, base[s])
    fill(chosen, calm, n, known.choice[s])


@njit(**WITHIN)
def hold(values, scratch, s, b, n):
    """Hold the chosen actions of a node, and write them with those of others once there are enough."""
    if s >= len(values.place):
        return
    length, picked, chosen, held = len(scratch.m) - LANES, scratch.picked, scratch.chosen, scratch.held[0]
    for i in range(np.uint64(n)):
        picked[np.uint64(held * length) + i] = chosen[i]
    scratch.to[held], scratch.many[held] = values.place[s] + b * values.stride, n
    scratch.held[0] = held + 1
    if held + 1 == len(scratch.to):
        write_out(values.choice, values.stride, scratch)


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def lower_to_four(k, row, length, least, next_least, chosen, n):
    """Take that one of four actions, in rows of ``k``, that has less than the least so far; keep the second least."""
    row, length, first_one = np.uint64(row), np.uint64(length), row == 0
    action = np.int64(row // length)
    for i in range(np.uint64(n)):
        best, second = k[row + i] if first_one else least[i], np.inf if first_one else next_least[i]
        number = 0 if first_one else chosen[i]
        for part in range(4):
            value = np.inf if first_one and part == 0 else k[row + np.uint64(part) * length + i]
            less = value < best
            second = best if less else min(second, value)
            best = value if less else best
            number = action + part if less else number
        least[i], next_least[i], chosen[i] = best, second, number


@njit(cache=True, nogil=True, _nrt=False)
def write_out(choices, stride, scratch):
    """Write the actions that are held into the table: those of neighbours for the same budget lie side by side."""
    picked, to, many, length, step = scratch.picked, scratch.to, scratch.many, len(scratch.m) - LANES, np.uint64(stride)
    for low in range(0, length if scratch.held[0] > 0 else 0, LANES):
        for h in range(scratch.held[0]):
            first, here = np.uint64(to[h] + low * stride), np.uint64(h * length + low)
            for i in range(np.uint64(max(min(many[h] - low, LANES), 0))):
                choices[first + i * step] = picked[here + i]
    scratch.held[0] = 0


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def same_from(chosen, i, end):
    """Return the end of the stretch from ``i`` on that has the same action."""
    j, action, others = i + 1, chosen[i], 0
    for each in range(np.uint64(j), np.uint64(end)):
        others |= chosen[each] ^ action
    if others == 0:
        return end
    while chosen[j] == action:
        j += 1
    return j


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def take(k, row, least, tie, begin, end, action, m, best, chosen):
    """Take an action where it attains the least and has a lower mean."""
    row = np.uint64(row)
    for i in range(np.uint64(begin), np.uint64(end)):
        better = (k[row + i] <= least[i] * (1.0 + tie)) & (m[i] < best[i])
        best[i] = m[i] if better else best[i]
        chosen[i] = action if better else chosen[i]


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def attained(k, row, least, tie, begin, end):
    """Return the shortest stretch of ``begin:end`` that has all places where ``k`` attains the least."""
    count, row = 0, np.uint64(row)
    for i in range(np.uint64(begin), np.uint64(max(begin, end))):
        count += k[row + i] <= least[i] * (1.0 + tie)
    if count == 0:
        return end, end
    while not k[row + np.uint64(begin)] <= least[begin] * (1.0 + tie):
        begin += 1
    while not k[row + np.uint64(end - 1)] <= least[end - 1] * (1.0 + tie):
        end -= 1
    return begin, end


@njit(cache=True, nogil=True, forceinline=True)
def next_part(parts, tiles, front, k, layer):
    """Draw a part and wait for what it needs; return its tile, layer, groups and strip.

    ``k`` and ``layer`` are those of the part that this thread drew before.  The layer is -1 if no part is left.  A part
    needs all layers before its own, and its own layer in the tile before: that one hands on what it has found.
    """
    first, last, tile, strip, pieces = tiles.first, tiles.last, tiles.tile, tiles.strip, parts.layer_start[-1]
    counters, strips = tiles.counters, -(-min(tile, last - first) // strip)
    number = draw(counters[k])
    while number >= pieces * -(-min(tile, last - first - k * tile) // strip):
        if k + tiles.streams >= len(counters):
            return k, -1, 0, 0, Strip(0, 0, 0, 0, 0)
        wait_for(counters[k], pieces * strips)  # the next tile of this stream is settled in the same tables
        k, layer = k + tiles.streams, 0
        number = draw(counters[k])
    begin = first + k * tile
    end = min(begin + tile, last)
    own = -(-(end - begin) // strip)
    while number >= own * parts.layer_start[layer + 1]:
        layer += 1
    before, count = parts.layer_start[layer], parts.layer_start[layer + 1] - parts.layer_start[layer]
    wait_for(counters[k], own * before)
    if k > 0:
        wait_for(counters[k - 1], strips * parts.layer_start[layer + 1])
    number -= own * before
    piece, low = before + number % count, begin + number // count * strip
    shift = k % tiles.streams * tiles.apart + front - begin if front >= 0 else 0
    return k, layer, parts.group[piece], parts.group[piece + 1], Strip(begin, end, low, min(low + strip, end), shift)


@njit(cache=True, nogil=True, fastmath=FAST)
def settle(question, work, groups, tiles, values, parts, scratch, lane):
    """Settle the levels of some tiles, together with other threads, each with a lane of its own.

    ``groups`` is None if no nodes wait for each other within a tile.
    """
    k, layer, begin, end, strip = next_part(parts, tiles, values.front, lane % tiles.streams, 0)
    while layer >= 0:
        if groups is None:
            settle_nodes(question, work, strip, values, scratch, begin, end)
        elif work.cyclic[begin]:
            settle_group(question, work, groups, strip, values, scratch, begin)
        else:
            settle_nodes(question, work, strip, values, scratch, begin, end)
        if begin <= tiles.start_group < end:  # keep what was found for the start
            low, n = strip.low - tiles.first, strip.high - strip.low
            at = values.row[tiles.start] + strip.shift + strip.low
            copy(tiles.excess, low, n, values.excess, at)
            if len(values.mean) > 1:
                copy(tiles.mean, low, n, values.mean, at)
        finish(tiles.counters[k])
        k, layer, begin, end, strip = next_part(parts, tiles, values.front, k, layer)


@njit(cache=True, nogil=True)
def put_back(part, first, delay, choice):
    """Copy actions by level, from ``first`` on, and state to a table by budget and state."""
    for i in range(len(part)):
        for s in range(part.shape[1]):
            if first + i > delay[s]:
                choice[first + i - delay[s], s] = part[i, s]


@njit(cache=True, nogil=True)
def pass_on(before, ring, node, levels, end, message, pack):
    """Copy the last ``levels`` of each of some nodes before ``end`` from what they hand on to a message, or back."""
    at = 0
    for i in range(len(node)):
        t = end - levels[i]
        while t < end:
            if t < 0:  # there is no such level
                at, t = at - t, 0
                continue
            place, side_by_side = kept_place(t, ring, node[i] * ring[1])
            n = min(end - t, side_by_side)
            if pack:
                copy(message, at, n, before, place)
            else:
                copy(before, place, n, message, at)
            at, t = at + n, t + n
