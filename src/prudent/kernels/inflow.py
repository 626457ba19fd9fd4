"""Following a policy forwards on all threads: each place pulls what arrives there on a level.

States that runs can meet are numbered by *place*, such that free moves lead to later places.  Each place has the
outcomes that arrive there, from the actions that the policy plays on some level: first those from states that play the
same action on all levels, then those that count only on levels on which their action is played.  After the states come
places for the goals: all outcomes that end a run, cut into pieces.

The mass of a place on a level is the sum, over the outcomes that arrive there, of probability times the mass of the
place they come from, if that plays their action.  A level looks back no further than the largest cost; level ``t`` is
in line ``t % window`` of a table by level, place and layer.
Layers are the mass and, where costs are rounded, that mass times the mean sum of what was left out on the way, and
times the mean of its square.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from prudent.kernels.blocks import Arcs, eliminate, place_block, visits
from prudent.kernels.choices import look_up
from prudent.kernels.intrinsics import prefetch
from prudent.kernels.levels import AHEAD
from prudent.kernels.questions import FAST
from prudent.kernels.team import draw, finish, wait_for

CLOSE, LESS = 1e-6, 1e-3
"""The mass in progress is 1 minus the mass that ended until this little is left.  Then it is counted, and again when
only this part of it is left; in between, what ends is subtracted."""

TINY = 1e-290
"""Mass under way that is counted each time: it may vanish below the smallest float."""


class Arrivals(NamedTuple):
    """What arrives at each place; places are cut into parts."""

    state: np.ndarray  # (n_met,)  the state at each place before the goals
    place: np.ndarray  # (n_states,)  the place of each state, -1 where it has none
    changing: np.ndarray  # the places of states that play several actions
    arc_start: np.ndarray  # (n_places + 1,)
    sure_stop: np.ndarray  # (n_places,)  arcs up to here count on all levels
    source: np.ndarray  # (n_arcs,)  a place
    cost: np.ndarray  # (n_arcs,)
    number: np.ndarray  # (n_arcs,)  the action's number within its state
    probability: np.ndarray  # (n_arcs,)
    left_out: np.ndarray | None  # (n_arcs,)  what rounding left out of the cost
    part_start: np.ndarray  # (n_parts + 1,)  the places where parts begin
    needed: np.ndarray  # (n_parts,)  how many parts of the same level must be done before
    changing_start: np.ndarray  # (n_parts + 1,)  where the changing places of each part begin
    cycle_start: np.ndarray  # (n_parts + 1,)  the free cycles of a part: cycle[cycle_start[i]:cycle_start[i + 1]]
    cycle: np.ndarray  # blocks of the free arcs
    start: int  # the place where a run begins


class Flow(NamedTuple):
    """The mass by level modulo the window, place and layer, flat; a last entry is 0."""

    mass: np.ndarray
    number: np.ndarray  # by level modulo the window and place: the number of the action played, where it changes
    window: int
    layers: int
    met: np.ndarray  # (n_met,)  the mass met at each place
    played: np.ndarray  # (n_actions,)
    alone: bool  # whether one thread does all parts
    whether: bool  # whether mass only says that runs can be there: then it is 1


class Circling(NamedTuple):
    """The arrays of free cycles, which are solved by elimination, by one thread at a time."""

    arcs: Arcs
    outcome_start: np.ndarray  # (n_actions + 1,)
    cost: np.ndarray  # (n_outcomes,)
    chosen: np.ndarray  # (n_states,)
    k: np.ndarray  # (n_actions,)  zeros
    row: np.ndarray  # (n_states,)  zeros


class Ended(NamedTuple):
    """What has ended so far."""

    tolerance: float  # the mass that may stay under way
    total: np.ndarray  # (layers, n_levels)  by level
    sums: np.ndarray  # (3,)  in all; the mass under way when it was last counted, at first infinite; ended since then
    stop: np.ndarray  # (1,)  the number of levels after which little is under way; 0 before


@njit(cache=True, nogil=True, _nrt=False)
def pull(arrivals, circling, choices, level, levels, flow, ended, counters):
    """Follow a policy on the given levels, from the first until the last, after all before: one thread's share.

    The expected number of plays of action ``a`` is added to ``played[a]``; but where a state plays only one, to
    ``met[place]``.
    """
    n_parts, n = len(arrivals.needed), len(arrivals.arc_start) - 1
    entry, start, low, high, stride, without = choices
    drawn = -1
    while True:
        drawn = drawn + 1 if flow.alone else draw(counters)
        t, part = levels[0] + drawn // (n_parts + 1), drawn % (n_parts + 1)
        if t >= levels[1]:
            return
        if not flow.alone:
            wait_for(counters, drawn - part + (arrivals.needed[part] if part < n_parts else n_parts))
        if ended.stop[0] > 0:
            finish(counters)
            return
        if part < n_parts:
            begin, end, line = arrivals.part_start[part], arrivals.part_start[part + 1], t % flow.window * n
            first, last = arrivals.changing_start[part], arrivals.changing_start[part + 1]
            for i in range(first, last):
                r = arrivals.changing[i]
                s = arrivals.state[r]
                flow.number[line + r] = look_up(entry, start, low, high, stride, without, level - t, s)
            arrive(arrivals, arrivals.left_out, t, begin, end, flow)
            for i in range(arrivals.cycle_start[part], arrivals.cycle_start[part + 1]):
                circle(arrivals.place, circling, choices, level - t, arrivals.cycle[i], line, flow)
            for at in range(line + begin, line + end if flow.whether else line + begin):
                flow.mass[at] = 1.0 if flow.mass[at] > 0.0 else 0.0
            for r in range(begin, min(end, len(flow.met))):
                flow.met[r] += flow.mass[(line + r) * flow.layers]
            for i in range(first, last):
                r = arrivals.changing[i]
                a = circling.arcs.action_start[arrivals.state[r]] + flow.number[line + r]
                flow.played[a] += flow.mass[(line + r) * flow.layers]
        else:
            end_level(arrivals, circling, choices, level, t, flow, ended)
        if not flow.alone:
            finish(counters)


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True, _nrt=False)
def arrive(arrivals, left_out, t, begin, end, flow):
    """Add up the mass that arrives on one level, at the places ``begin:end``, with moments of what was ``left_out``."""
    arc_start, source, cost = arrivals.arc_start, arrivals.source, arrivals.cost
    mass, number, window = flow.mass, flow.number, flow.window
    layers, one, two = np.uint64(1 if left_out is None else 3), np.uint64(1), np.uint64(2)
    n, line, entered = np.uint64(len(arc_start) - 1), t % window, arrivals.start if t == 0 else -1
    nothing, last = np.uint64(len(mass)) - layers, np.uint64(max(arc_start[end] - 1, 0))
    for r in range(np.uint64(begin), np.uint64(end)):
        total, mean, square = 1.0 if np.int64(r) == entered else 0.0, 0.0, 0.0
        sure = np.uint64(arrivals.sure_stop[r])
        for i in range(np.uint64(arc_start[r]), np.uint64(arc_start[r + one])):
            soon = place_of(line, window, n, cost, source, min(i + AHEAD, last))
            prefetch(mass, layers * soon)
            place = place_of(line, window, n, cost, source, i)
            at = layers * place
            if i >= sure:
                prefetch(number, soon)
                at = at if number[place] == arrivals.number[i] else nothing
            p, m = arrivals.probability[i], mass[at]
            total += p * m
            if left_out is not None:
                rest, moment = left_out[i], mass[at + one]
                mean += p * (moment + m * rest)
                square += p * (mass[at + two] + rest * (2.0 * moment + m * rest))
        at = (np.uint64(line) * n + r) * layers
        mass[at] = total
        if left_out is not None:
            mass[at + one], mass[at + two] = mean, square


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def place_of(line, window, n, cost, source, i):
    """Return where in the table an arc comes from."""
    back = line - np.int64(cost[i])
    return np.uint64(back if back >= 0 else back + window) * n + np.uint64(source[i])


@njit(cache=True, nogil=True)
def circle(place, circling, choices, b, block, line, flow):
    """Turn what arrives in a block of states with free cycles among them into expected visits on this level."""
    arcs, chosen, k, row = circling.arcs, circling.chosen, circling.k, circling.row
    entry, first, low, high, stride, without = choices
    mass, layers = flow.mass, flow.layers
    begin, end = arcs.block_start[block], arcs.block_start[block + 1]
    size, inflow = end - begin, 0.0
    for i in range(begin, end):
        s = arcs.block_state[i]
        chosen[s] = arcs.action_start[s] + look_up(entry, first, low, high, stride, without, b, s)
        inflow += mass[(line + place[s]) * layers] if place[s] >= 0 else 0.0
    if inflow == 0.0:
        return
    place_block(arcs, begin, end, k, chosen, row)
    eliminate(arcs.dense, arcs.work[0], arcs.work[1], arcs.work[2], size)
    for layer in range(layers):
        for i in range(size):
            at = place[arcs.block_state[begin + i]]
            arcs.work[2, i] = mass[(line + at) * layers + layer] if at >= 0 else 0.0
        visits(arcs.dense, arcs.work[1], arcs.work[2], size)
        for i in range(size):
            at = place[arcs.block_state[begin + i]]
            if at >= 0:
                mass[(line + at) * layers + layer] = arcs.work[2, i]


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def end_level(arrivals, circling, choices, level, t, flow, ended):
    """Add up the mass that ends on a level, and see whether little is left under way."""
    tolerance, total, sums, stop = ended
    n = len(arrivals.arc_start) - 1
    for layer in range(flow.layers):
        for goal in range(len(arrivals.state), n):
            total[layer, t] += flow.mass[(t % flow.window * n + goal) * flow.layers + layer]
    sums[0] += total[0, t]
    sums[2] += total[0, t]
    final = t + 1 == total.shape[1]
    if 1.0 - sums[0] > 2.0 * tolerance + (CLOSE if final else 1e-12) or (t % (flow.window // 8 + 1) > 0 and not final):
        return
    left = sums[1] - sums[2]
    if (left <= tolerance and t >= level) or left <= max(LESS * sums[1], TINY):
        left = under_way(arrivals, circling, choices, level, t, flow, None, None)
        sums[1], sums[2] = left, 0.0
    if left <= tolerance and (t >= level or left == 0.0):
        stop[0] = t + 1


@njit(cache=True, nogil=True)
def under_way(arrivals, circling, choices, level, t, flow, left_out, passed):
    """Return the mass under way after level ``t``: what left a state, and arrives later; add it to ``passed`` if given.

    There levels count from the next one on.
    """
    entry, first, low, high, stride, without = choices
    arcs, outcome_start, cost = circling.arcs, circling.outcome_start, circling.cost
    mass, window, layers = flow.mass, flow.window, flow.layers
    state, n, left = arrivals.state, len(arrivals.arc_start) - 1, 0.0
    for back in range(min(window - 1, t + 1)):
        line = (t - back) % window * n
        for r in range(len(state)):
            at, s = (line + r) * layers, state[r]
            m = mass[at]
            if m == 0.0:
                continue
            a = arcs.action_start[s] + look_up(entry, first, low, high, stride, without, level - t + back, s)
            for o in range(outcome_start[a], outcome_start[a + 1]):
                if cost[o] <= back:
                    continue
                p, later, target = arcs.probability[o], cost[o] - back - 1, arcs.successor[o]
                left += p * m
                if passed is not None and p * m > 0.0:
                    passed.arriving[0, later] += p * m
                    passed.there[target] += p * m
                    passed.latest[target] = max(passed.latest[target], later)
                    passed.ahead[later] += passed.weight[target] * (p * m)
                    if left_out is not None:
                        rest, moment = left_out[o], mass[at + 1]
                        passed.arriving[1, later] += p * (moment + m * rest)
                        passed.arriving[2, later] += p * (mass[at + 2] + rest * (2.0 * moment + m * rest))
    return left
