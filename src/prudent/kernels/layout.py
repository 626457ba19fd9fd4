"""Laying a model out for tiles: shared outcome lists, least costs from the start, the order of nodes."""

from heapq import heappop, heappush

import numpy as np
from numba import njit

from prudent.kernels.team import draw


@njit(cache=True)
def alike(outcome_start, successor, cost, bits, like, shift):
    """Find actions whose outcomes are the same up to a shift of their costs; outcomes are sorted, by cost first.

    ``like[a]`` becomes the first action that is like ``a``, ``shift[a]`` the least cost of an outcome of ``a``.
    """
    n = len(like)
    size = 16
    while size < 2 * n:
        size *= 2
    slots = np.full(size, -1)
    for a in range(n):
        first, last = outcome_start[a], outcome_start[a + 1]
        least = cost[first]
        shift[a] = least
        mixed = np.uint64(last - first)
        for o in range(first, last):
            # Outcomes are hashed separately, then added, so that none waits for the one before.
            part = bits[o] ^ (np.uint64(successor[o]) * np.uint64(0x9E3779B97F4A7C15))
            part ^= np.uint64(cost[o] - least) * np.uint64(0xC2B2AE3D27D4EB4F)
            mixed += (part ^ (part >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15)
        slot = np.int64(mixed >> np.uint64(20)) & (size - 1)
        while True:
            other = slots[slot]
            if other < 0:
                slots[slot] = a
                like[a] = a
                break
            same = outcome_start[other + 1] - outcome_start[other] == last - first
            for i in range(last - first):
                if not same:
                    break
                o, r = first + i, outcome_start[other] + i
                same = successor[o] == successor[r] and bits[o] == bits[r] and cost[o] - least == cost[r] - shift[other]
            if same:
                like[a] = other
                break
            slot = (slot + 1) & (size - 1)


@njit(cache=True)
def share(outcome_start, successor, cost, probability, like, shift, node, into):
    """Rewrite outcomes: an action with a shared list becomes one sure step to the list's node; lists go to the end.

    ``node[a]`` is the node of the list that action ``a`` is the first to have, -1 where its list is not shared.
    ``into`` receives the new starts, successors, costs and probabilities.
    """
    new_start, new_successor, new_cost, new_probability = into
    n, at = len(like), 0
    for a in range(n):
        new_start[a] = at
        if node[like[a]] >= 0:
            new_successor[at], new_cost[at], new_probability[at] = node[like[a]], shift[a], 1.0
            at += 1
            continue
        for o in range(outcome_start[a], outcome_start[a + 1]):
            new_successor[at], new_cost[at], new_probability[at] = successor[o], cost[o], probability[o]
            at += 1
    row = n
    for a in range(n):
        if node[a] >= 0:
            new_start[row] = at
            row += 1
            for o in range(outcome_start[a], outcome_start[a + 1]):
                new_successor[at], new_cost[at], new_probability[at] = successor[o], cost[o] - shift[a], probability[o]
                at += 1
    new_start[row] = at


@njit(cache=True)
def least_costs(arc_start, successor, cost, start, least):
    """Find the least cost of reaching each state from the start; ``least`` enters with large numbers."""
    least[start] = 0
    heap = [(np.int64(0), np.int64(start))]
    while len(heap) > 0:
        spent, s = heappop(heap)
        if spent > least[s]:
            continue
        for o in range(arc_start[s], arc_start[s + 1]):
            t = successor[o]
            if spent + cost[o] < least[t]:
                least[t] = spent + cost[o]
                heappush(heap, (least[t], np.int64(t)))


@njit(cache=True, nogil=True)
def looks_back_less(counters, part, arc_start, successor, cost, delay, tile, short):
    """Count, for each part, the outcomes that look back less than a tile."""
    while True:
        k = draw(counters)
        if k >= len(part) - 1:
            return
        for s in range(part[k], part[k + 1]):
            for o in range(arc_start[s], arc_start[s + 1]):
                short[k] += cost[o] + delay[s] - delay[successor[o]] < tile


@njit(cache=True)
def layers(action_start, outcome_start, successor, cost, short, group_of, layer):
    """Return whether outcomes that cost less than ``short`` lead from group to group without a cycle.

    ``layer[g]`` becomes the length of the longest path along such outcomes from group ``g``.
    """
    n_groups = len(layer)
    waits = np.zeros(n_groups, dtype=np.int64)
    into = np.zeros(n_groups + 1, dtype=np.int64)
    n_nodes = len(action_start) - 1
    for s in range(n_nodes):
        for o in range(outcome_start[action_start[s]], outcome_start[action_start[s + 1]]):
            if cost[o] < short and group_of[successor[o]] != group_of[s]:
                waits[group_of[s]] += 1
                into[group_of[successor[o]] + 1] += 1
    into = np.cumsum(into)
    fill, source = into.copy(), np.empty(into[-1], dtype=np.int64)
    for s in range(n_nodes):
        for o in range(outcome_start[action_start[s]], outcome_start[action_start[s + 1]]):
            if cost[o] < short and group_of[successor[o]] != group_of[s]:
                g = group_of[successor[o]]
                source[fill[g]] = group_of[s]
                fill[g] += 1
    queue, done = [np.int64(0) for _ in range(0)], 0
    for g in range(n_groups):
        layer[g] = 0
        if waits[g] == 0:
            queue.append(np.int64(g))
    while done < len(queue):
        g = queue[done]
        done += 1
        for i in range(into[g], into[g + 1]):
            h = source[i]
            layer[h] = max(layer[h], layer[g] + 1)
            waits[h] -= 1
            if waits[h] == 0:
                queue.append(h)
    return done == n_groups


@njit(cache=True)
def share_rows(action_start, outcome_start, successor, layer, order, rows, row):
    """Give each node a row that no other node uses from its layer up to the last layer that looks at it.

    Goals have theirs, ``rows`` in all, which nothing else uses.  Returns the number of all rows.
    """
    n = len(layer)
    last = layer.copy()
    for s in range(n):
        for o in range(outcome_start[action_start[s]], outcome_start[action_start[s + 1]]):
            last[successor[o]] = max(last[successor[o]], layer[s])
    leaving = np.argsort(last, kind="mergesort")
    free, first, left = [np.int64(0) for _ in range(0)], rows, 0
    for s in order:
        if action_start[s] == action_start[s + 1]:
            continue
        while last[leaving[left]] < layer[s]:
            if row[leaving[left]] >= first:
                free.append(row[leaving[left]])
            left += 1
        if len(free) > 0:
            row[s] = free.pop()
        else:
            row[s] = rows
            rows += 1
    return rows


@njit(cache=True)
def clear_beyond(table, most):
    """Set each column of a table to 0 beyond its row ``most``."""
    for b in range(most.min() + 1, len(table)):
        for s in range(table.shape[1]):
            if b > most[s]:
                table[b, s] = 0
