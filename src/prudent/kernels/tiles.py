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
    place: np.ndarray  # (n_nodes,)  where the rows of its actions begin in the scratch, which a group shares


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
    choice: np.ndarray  # (n_budgets, n_states)  the action's number within its state, by budget


class Scratch(NamedTuple):
    """Room to work in, for one thread."""

    k: np.ndarray  # (most actions in a group, tile)  U if an action is played
    next_least: np.ndarray  # (tile,)  the least but one of them
    m: np.ndarray  # (tile,)  M if an action is played
    chosen: np.ndarray  # (tile,)  the action taken


FAST = {"contract"}
"""Fused multiply-adds round once where two steps round twice."""


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True)
def add_stretch(total, begin, end, p, table, at):
    """Add ``p`` times the stretch of ``table`` that begins ``at`` to ``total[begin:end]``."""
    first, back = np.uint64(begin), np.uint64(at)  # unsigned: no index from the end, so that it becomes vectors
    for i in range(np.uint64(max(end - begin, 0))):
        total[first + i] += p * table[back + i]


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True)
def add_excess(work, known, table, width, origin, slope, o, b, n, total):
    """Add to ``total[:n]`` an outcome's part of U for the budgets ``b:b + n``."""
    p, t, c = work.probability[o], work.successor[o], work.cost[o]
    gone = min(max(c - b + 1, 0), n)  # so many of these budgets it uses up
    for i in range(gone):
        total[i] += p * (known.excess[t] + slope * (c - b - i))
    end = min(known.worst[t] + c - b, n)  # beyond that it is 0
    add_stretch(total, gone, end, p, table, t * width + b + gone - c + work.delay[t] - origin)


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True)
def add_mean(work, known, table, width, origin, o, b, n, total):
    """Add to ``total[:n]`` an outcome's part of M for the budgets ``b:b + n``."""
    p, t, c = work.probability[o], work.successor[o], work.cost[o]
    gone = min(max(c - b + 1, 0), n)
    first = p * known.mean[t]
    for i in range(gone):
        total[i] += first
    add_stretch(total, gone, n, p, table, t * width + b + gone - c + work.delay[t] - origin)


@njit(cache=True, nogil=True, fastmath=FAST)
def settle_node(work, known, terms, tie, plan, first, last, origin, values, scratch, s):
    """Both objectives in a node that waits for none in this tile, for the levels ``first:last``."""
    b = max(first - work.delay[s], 1)
    n = last - work.delay[s] - b
    start, stop = work.action_start[s], work.action_start[s + 1]
    if n <= 0 or start == stop:  # the tables of goals are 0
        return
    width = values.width
    at = s * width + b + work.delay[s] - origin
    excess, mean = values.excess[at : at + n], values.mean[at : at + n]
    unsafe = min(max(known.worst[s] - b, 0), n)
    # First objective: U(s, b) = min over a of the expected U of what follows.
    chosen, next_least = scratch.chosen, scratch.next_least
    excess[:unsafe] = np.inf
    excess[unsafe:] = 0.0
    next_least[:unsafe] = np.inf
    for a in range(start, stop if unsafe > 0 else start):
        k = scratch.k[a - start]
        k[:unsafe] = terms.accrual * work.mean_cost[a]
        for o in range(work.outcome_start[a], work.outcome_start[a + 1]):
            add_excess(work, known, values.excess, width, origin, terms.slope, o, b, unsafe, k)
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
        weigh(work, known, values.mean, width, origin, start + chosen[i], b, i, j, mean)
        i = j
    # Where several do, the least M decides.
    mean[lower:upper] = np.inf
    for a in range(start, stop if lower < upper else start):
        k = scratch.k[a - start]
        i, j = attained(k, excess, tie, lower, upper)
        weigh(work, known, values.mean, width, origin, a, b, i, j, scratch.m)
        take(k, excess, tie, i, j, a - start, scratch.m, mean, chosen)
    # Where there is no excess, whole numbers say which they are.
    mean[unsafe:calm] = np.inf
    for a in range(start, stop if unsafe < calm else start):
        safe = min(max(known.action_worst[a] - b, unsafe), calm)
        weigh(work, known, values.mean, width, origin, a, b, safe, calm, scratch.m)
        scratch.k[0, safe:calm] = 0.0
        take(scratch.k[0], excess, tie, safe, calm, a - start, scratch.m, mean, chosen)
    mean[calm:] = known.mean[s]
    chosen[calm:n] = known.choice[s]
    if s < values.choice.shape[1]:
        for i in range(n):
            values.choice[b + i, s] = chosen[i]


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True)
def weigh(work, known, table, width, origin, a, b, begin, end, m):
    """Set ``m[begin:end]`` to M if an action is played with the budgets ``b + begin:b + end``."""
    if begin < end:
        m[begin:end] = work.mean_cost[a]
        for o in range(work.outcome_start[a], work.outcome_start[a + 1]):
            add_mean(work, known, table, width, origin, o, b + begin, end - begin, m[begin:])


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
def settle_group(work, known, terms, tie, plan, first, last, origin, values, scratch, begin, end):
    """Both objectives in the nodes of a cycle, for the levels ``first:last``: what is known, then level by level."""
    width = values.width
    for g in range(begin, end):
        s = work.group_node[g]
        b = max(first - work.delay[s], 1)
        n = min(last - work.delay[s], known.worst[s]) - b
        for a in range(work.action_start[s], work.action_start[s + 1]):
            k = scratch.k[work.place[s] + a - work.action_start[s], : max(n, 0)]
            k[:] = terms.accrual * work.mean_cost[a]
            for o in range(work.ready[a], work.outcome_start[a + 1]):
                add_excess(work, known, values.excess, width, origin, terms.slope, o, b, n, k)
    for level in range(first, last):
        for g in range(begin, end):
            s = work.group_node[g]
            if level > work.delay[s]:
                settle_level(work, known, terms, tie, plan, first, level, origin, values, scratch, s)


@njit(cache=True, nogil=True, fastmath=FAST)
def settle_level(work, known, terms, tie, plan, first, level, origin, values, scratch, s):
    """Both objectives in a node of a cycle at one level."""
    b, start, stop = level - work.delay[s], work.action_start[s], work.action_start[s + 1]
    i = b - max(first - work.delay[s], 1)
    k = scratch.k[work.place[s] : work.place[s] + stop - start, i]
    safe = b >= known.worst[s]
    least = 0.0 if safe else np.inf
    if not safe:
        for a in range(start, stop):
            for o in range(work.outcome_start[a], work.ready[a]):
                t, c = work.successor[o], work.cost[o]
                if b > c:
                    k[a - start] += (
                        work.probability[o] * values.excess[t * values.width + b - c + work.delay[t] - origin]
                    )
                else:
                    k[a - start] += work.probability[o] * (known.excess[t] + terms.slope * (c - b))
            least = min(least, k[a - start])
    values.excess[s * values.width + level - origin] = least
    if not plan:
        return
    limit, best = least * (1.0 + tie), np.inf
    for a in range(start, stop):
        if known.action_worst[a] <= b if safe else k[a - start] <= limit:
            m = work.mean_cost[a]
            for o in range(work.outcome_start[a], work.outcome_start[a + 1]):
                t, c = work.successor[o], work.cost[o]
                at = t * values.width + b - c + work.delay[t] - origin
                m += work.probability[o] * (values.mean[at] if b > c else known.mean[t])
            if m < best:
                best = m
                values.choice[b, s] = a - start
    values.mean[s * values.width + level - origin] = best


@njit(cache=True, nogil=True)
def settle(work, known, terms, tie, plan, first, last, origin, values, scratch, begin, end):
    """Settle the levels ``first:last`` in the groups ``begin:end``, those before being settled."""
    for group in range(begin, end):
        one, other = work.group_start[group], work.group_start[group + 1]
        if work.cyclic[group]:
            settle_group(work, known, terms, tie, plan, first, last, origin, values, scratch, one, other)
        else:
            s = work.group_node[one]
            settle_node(work, known, terms, tie, plan, first, last, origin, values, scratch, s)


@njit(cache=True, nogil=True, fastmath=FAST)
def follow(work, known, first, last, origin, values):
    """Evaluate the policy ``values.choice`` for the levels ``first:last``, in a model without cycles."""
    width = values.width
    for g in range(len(work.group_node)):
        s = work.group_node[g]
        b = max(first - work.delay[s], 1)
        n = last - work.delay[s] - b
        start = work.action_start[s]
        if n <= 0 or start == work.action_start[s + 1]:
            continue
        at = s * width + b + work.delay[s] - origin
        excess, mean = values.excess[at : at + n], values.mean[at : at + n]
        i = 0
        while i < n:
            j, action = i + 1, start
            if s < values.choice.shape[1]:
                action += values.choice[b + i, s]
                while j < n and values.choice[b + j, s] == action - start:
                    j += 1
            else:
                j = n
            excess[i:j] = 0.0
            for o in range(work.outcome_start[action], work.outcome_start[action + 1]):
                add_excess(work, known, values.excess, width, origin, 1.0, o, b + i, j - i, excess[i:])
            weigh(work, known, values.mean, width, origin, action, b, i, j, mean)
            i = j


@njit(cache=True, nogil=True)
def slide(table, width, by, kept):
    """Move each node's levels ``by:by + kept`` to the front."""
    for start in range(0, len(table), width):
        for i in range(start, start + kept):
            table[i] = table[i + by]
