"""Laying a model out for tiles: least costs from the start, layers and rows of nodes."""

from heapq import heappop, heappush

import numpy as np
from numba import njit

from prudent.kernels.intrinsics import lower_atomically, raise_atomically
from prudent.kernels.team import drawn, drawn_in_order


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
    for k in drawn(counters, len(part) - 1):
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


@njit(cache=True, nogil=True)
def node_layers(counters, part, after, backwards, arc_start, successor, cost, layer, last, delay):
    """Fill in, without cycles, the most outcomes on a path from each node, and the last layer that looks at it.

    ``backwards`` lists the states, successors first, in parts as for other passes over acyclic models; ``layer`` and
    ``last`` enter with -1.  Shared lists are nodes after the states: ``delay``, which enters with that of the states
    and large numbers, becomes the fewest levels that a run in them can have used.
    """
    n_states = len(backwards)
    for k in drawn_in_order(counters, after):
        for i in range(part[k], part[k + 1]):
            s = backwards[i]
            for o in range(arc_start[s], arc_start[s + 1]):
                t = successor[o]
                if t >= n_states:
                    if delay[s] + cost[o] < delay[t]:
                        lower_atomically(delay, t, delay[s] + cost[o])
            # Shared lists come before the states that have them; several threads may find one: they find the same.
            for at in range(arc_start[s], arc_start[s + 1] + 1):
                node = successor[at] if at < arc_start[s + 1] else s
                if node != s and (node < n_states or layer[node] >= 0):
                    continue
                far = 0
                for o in range(arc_start[node], arc_start[node + 1]):
                    far = max(far, layer[successor[o]] + 1)
                if last[node] < far:
                    raise_atomically(last, node, far)
                for o in range(arc_start[node], arc_start[node + 1]):
                    if last[successor[o]] < far:
                        raise_atomically(last, successor[o], far)
                layer[node] = far


@njit(cache=True, nogil=True)
def look_furthest(counters, part, action_start, outcome_start, successor, cost, delay, back, longest):
    """Find how many levels back each node is looked at, at most; and, for each part, the most outcomes of an action."""
    for k in drawn(counters, len(part) - 1):
        length = 1
        for s in range(part[k], part[k + 1]):
            for a in range(action_start[s], action_start[s + 1]):
                length = max(length, outcome_start[a + 1] - outcome_start[a])
                for o in range(outcome_start[a], outcome_start[a + 1]):
                    t = successor[o]
                    far = cost[o] + delay[s] - delay[t]
                    if far > back[t]:
                        raise_atomically(back, t, far)
        longest[k] = length


@njit(cache=True)
def share_rows(action_start, layer, order, last, leaving, rows, row):
    """Give each node a row that no other node uses from its layer up to the last layer that looks at it.

    ``order`` lists the nodes by layer, ``leaving`` by the last layer.  Goals have their rows, ``rows`` in all, which
    nothing else uses.  Returns the number of all rows.
    """
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


@njit(cache=True, nogil=True)
def clear_beyond(counters, table, most, first):
    """Set each column of a table to 0 beyond its row ``most``; rows before ``first`` are beyond none."""
    for k in drawn(counters, len(table) - first):
        b = first + k
        for s in range(table.shape[1]):
            if b > most[s]:
                table[b, s] = 0
