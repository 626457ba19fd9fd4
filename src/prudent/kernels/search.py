"""Searches along arcs: reachable nodes, shortest paths, and an order of the nodes.

The arcs of node ``i`` lead to ``target[arc_start[i]:arc_start[i + 1]]``.
"""

import numpy as np
from numba import njit


@njit(cache=True)
def successors_first(arc_start, target):
    """Return the nodes in an order with successors first, and whether there is one, i.e. there are no cycles.

    If all arcs lead to higher numbers, or all to lower ones, as in models built stage by stage, the numbers give the
    order.  Otherwise a depth-first search lists each node after all its successors.
    """
    n = len(arc_start) - 1
    up, down = True, True
    for i in range(n):
        for j in range(arc_start[i], arc_start[i + 1]):
            up = up and target[j] > i
            down = down and target[j] < i
        if not (up or down):
            break
    order = np.arange(n)
    if down:
        return order, True
    if up:
        return n - 1 - order, True
    next_arc = arc_start[:-1].copy()  # the next arc to follow
    entered, listed = np.zeros(n, dtype=np.bool_), np.zeros(n, dtype=np.bool_)
    path = np.empty(n, dtype=np.int64)
    found = 0
    for root in range(n):
        if listed[root]:
            continue
        path[0], depth = root, 1
        entered[root] = True
        while depth > 0:
            i = path[depth - 1]
            while next_arc[i] < arc_start[i + 1] and listed[target[next_arc[i]]]:
                next_arc[i] += 1
            if next_arc[i] == arc_start[i + 1]:
                listed[i] = True
                order[found] = i
                found += 1
                depth -= 1
                continue
            t = target[next_arc[i]]
            if entered[t]:  # and not listed: it is on the path
                return order, False
            entered[t] = True
            path[depth] = t
            depth += 1
    return order, True


@njit(cache=True)
def reached(arc_start, target, start):
    """Return which nodes can be reached from the start."""
    n = len(arc_start) - 1
    found = np.zeros(n, dtype=np.bool_)
    stack = np.empty(n, dtype=np.int64)
    found[start] = True
    stack[0], top = start, 1
    while top > 0:
        top -= 1
        i = stack[top]
        for j in range(arc_start[i], arc_start[i + 1]):
            t = target[j]
            if not found[t]:
                found[t] = True
                stack[top] = t
                top += 1
    return found


@njit(cache=True)
def next_hops(enter_start, enter_source, marked):
    """Return for each node the next one on a shortest path to a marked node; -1 at marked nodes and without a path.

    ``enter_source`` lists, for each node, the nodes with an arc to it, lowest first: they are found in that order.
    Also return all nodes with a path, nearest first.
    """
    n = len(marked)
    hop = np.full(n, -1)
    known = marked.copy()
    queue = np.empty(n, dtype=np.int64)
    last = 0
    for i in range(n):
        if marked[i]:
            queue[last] = i
            last += 1
    first = 0
    while first < last:
        i = queue[first]
        first += 1
        for j in range(enter_start[i], enter_start[i + 1]):
            s = enter_source[j]
            if not known[s]:
                known[s] = True
                hop[s] = i
                queue[last] = s
                last += 1
    return hop, queue[:last]


@njit(cache=True)
def along_hops(action_start, outcome_start, successor, hop):
    """Return the first action of each state with an outcome to the next state, ``hop``; its first action if none."""
    choice = action_start[:-1].copy()
    for s in range(len(choice)):
        for a in range(action_start[s + 1] - 1, action_start[s] - 1, -1):
            for o in range(outcome_start[a], outcome_start[a + 1]):
                if successor[o] == hop[s]:
                    choice[s] = a
    return choice
