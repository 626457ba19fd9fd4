"""Searches along arcs: reachable nodes, shortest paths, and an order of the nodes.

The arcs of node ``i`` lead to ``target[arc_start[i]:arc_start[i + 1]]``.
"""

import numpy as np
from numba import njit


@njit(cache=True)
def in_order(arc_start, target):
    """Return 1 if all arcs lead to higher numbers, -1 if all lead to lower ones, else 0."""
    up, down = True, True
    for i in range(len(arc_start) - 1):
        for j in range(arc_start[i], arc_start[i + 1]):
            up = up and target[j] > i
            down = down and target[j] < i
        if not (up or down):
            return 0
    return -1 if down else 1


@njit(cache=True)
def strong_components(arc_start, target, start):
    """Return the strongly connected components of what the start can reach, or of all if the start is below 0.

    Returns where each component would begin in a list of nodes by component, each node's component (-1: not reached),
    and whether there are no cycles.  Arcs lead to the same or an earlier component (Tarjan 1972).
    """
    n = len(arc_start) - 1
    next_arc = arc_start[:-1].copy()  # the next arc to follow
    # When a node was met, from 1 on; 0 if it was not; below 0 its component, from -1 down.  One look tells which.
    mark, least = np.zeros(n, dtype=np.int32), np.empty(n, dtype=np.int32)
    path, waiting = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
    begin = np.empty(n + 1, dtype=np.int64)
    count, found, listed, top, loops = 0, 0, 0, 0, False
    for root in range(max(start, 0), n if start < 0 else start + 1):
        if mark[root] != 0:
            continue
        t, depth = root, 0
        while True:
            if mark[t] == 0:  # go on to t
                count += 1
                mark[t], least[t] = count, count
                path[depth], waiting[top] = t, t
                depth += 1
                top += 1
            i = path[depth - 1]
            while next_arc[i] < arc_start[i + 1]:
                t = target[next_arc[i]]
                if mark[t] == 0:
                    break
                if mark[t] > 0:
                    loops = True
                    least[i] = min(least[i], mark[t])
                next_arc[i] += 1
            if next_arc[i] < arc_start[i + 1]:
                continue
            if least[i] == mark[i]:  # the nodes that wait from i on form a component
                begin[found] = listed
                found += 1
                while mark[i] > 0:
                    top -= 1
                    listed += 1
                    mark[waiting[top]] = -found
            depth -= 1
            if depth == 0:
                break
            least[path[depth - 1]] = min(least[path[depth - 1]], least[i])
    begin[found] = listed
    number = np.empty(n, dtype=np.int64)
    for i in range(n):
        number[i] = -mark[i] - 1
    return begin[: found + 1].copy(), number, not loops


@njit(cache=True)
def all_lead_to(block_start, block_state, block_of, arc_start, target, marked):
    """Return whether every node can reach a marked one; blocks come with successors first."""
    leads = np.zeros(len(block_start) - 1, dtype=np.bool_)
    for block in range(len(leads)):
        for i in range(block_start[block], block_start[block + 1]):
            s = block_state[i]
            leads[block] = marked[s]
            for j in range(arc_start[s], arc_start[s + 1]):
                if leads[block]:
                    break
                leads[block] = leads[block_of[target[j]]]
            if leads[block]:
                break
        if not leads[block]:
            return False
    return True


@njit(cache=True)
def least_ahead(arc_start, target, cost, least, passes):
    """Lower each node's value to the least of cost plus value along its arcs, until nothing changes.

    Values enter with 0 at the ends and large numbers elsewhere; without ``cost`` they count arcs.  Returns whether so
    many passes, to and fro, suffice.
    """
    n = len(least)
    for turn in range(passes):
        changed = False
        for i in range(n):
            s = n - 1 - i if turn % 2 == 0 else i
            best = least[s]
            for j in range(arc_start[s], arc_start[s + 1]):
                best = min(best, (1 if cost is None else cost[j]) + least[target[j]])
            if best < least[s]:
                least[s] = best
                changed = True
        if not changed:
            return True
    return False


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
    return hop


@njit(cache=True)
def downhill(action_start, outcome_start, successor, value):
    """Return the first action of each node with an outcome to a node of lower value; its first action if none."""
    choice = action_start[:-1].copy()
    for s in range(len(choice)):
        found = False
        for a in range(action_start[s], action_start[s + 1]):
            for o in range(outcome_start[a], outcome_start[a + 1]):
                if not found and value[successor[o]] < value[s]:
                    choice[s] = a
                    found = True
            if found:
                break
    return choice
