"""Searches along arcs: reachable nodes, shortest paths, and an order of the nodes.

The arcs of node ``i`` lead to ``target[arc_start[i]:arc_start[i + 1]]``.
"""

from heapq import heappop, heappush

import numpy as np
from numba import njit

from prudent.kernels.intrinsics import lower_atomically
from prudent.kernels.team import drawn, drawn_by_stage, end


@njit(nogil=True)
def drawn_in_turns(counters, parts, changed):
    """Yield a turn, and a part of it, once the turns before are done, up to the first turn that changes nothing."""
    for turn, part in drawn_by_stage(counters, len(changed), parts):
        if turn > 0 and not changed[turn - 1]:
            end(counters)
            return
        yield turn, part


@njit(cache=True, nogil=True)
def look_around(counters, part, arc_start, target, start, found, ways):
    """Find the least and the greatest number that each node leads to, and which nodes any arc leads to.

    ``rising[0]`` becomes False if not all nodes but the start lead to higher numbers, ``falling[0]`` if not all lead to
    lower ones; if neither holds the rest is left out.
    """
    (low, high, entered), (rising, falling) = found, ways
    for k in drawn(counters, len(part) - 1):
        if not (rising[0] or falling[0]):
            return
        up, down = True, True
        for i in range(part[k], part[k + 1]):
            least, most = len(low), -1
            for j in range(arc_start[i], arc_start[i + 1]):
                least, most = min(least, target[j]), max(most, target[j])
                if not entered[target[j]]:  # threads share what is read, and would pass on what is written
                    entered[target[j]] = True
            low[i], high[i] = least, most
            up = up and (least > i or i == start)
            down = down and (most < i or i == start)
            if not (up or down):
                break
        if not up:
            rising[0] = False
        if not down:
            falling[0] = False


@njit(cache=True, nogil=True)
def lead_back(counters, part, arc_start, target, leads, grew):
    """Mark in ``leads`` all nodes that lead to those marked already; ``grew`` says in which turns, to and fro."""
    parts = len(part) - 1
    for turn, k in drawn_in_turns(counters, parts, grew):
        if turn % 2 == 0:
            k = parts - 1 - k
        for i in range(part[k], part[k + 1]):
            if not leads[i]:
                for j in range(arc_start[i], arc_start[i + 1]):
                    if leads[target[j]]:
                        leads[i] = grew[turn] = True
                        break


@njit(cache=True)
def strong_components(arc_start, target, start):
    """Return the strongly connected components of what the start can reach, or of all if the start is below 0.

    Returns where each component would begin in a list of nodes by component, each node's component (-1: not reached),
    and whether there are no cycles.  Arcs lead to the same or an earlier component (Tarjan 1972).
    """
    n = len(arc_start) - 1
    next_arc = arc_start[:-1].copy()  # the next arc to follow
    # When a node was met, from 1 on; 0 if it was not; below 0 its component, from -1 down.  One look suffices.
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


@njit(cache=True, nogil=True)
def lower_ahead(counters, part, arc_start, target, cost, least, changed):
    """Lower each node's value to the least of cost plus value along its arcs, until nothing changes.

    Values enter with 0 at the ends and large numbers elsewhere; without ``cost`` they count arcs.  Each turn goes over
    all nodes, to and fro; ``changed`` says which turns changed something.
    """
    parts = len(part) - 1
    for turn, k in drawn_in_turns(counters, parts, changed):
        if turn % 2 == 0:
            k = parts - 1 - k
        first, last = part[k], part[k + 1]
        for i in range(last - first):
            s = last - 1 - i if turn % 2 == 0 else first + i
            before = least[s]
            for j in range(arc_start[s], arc_start[s + 1]):
                least[s] = min(least[s], (1 if cost is None else cost[j]) + least[target[j]])
            if least[s] < before:
                changed[turn] = True


@njit(cache=True, nogil=True)
def lower_behind(counters, part, arc_start, target, cost, least, lowered, changed):
    """Lower each node's value to the least of value plus cost along the arcs that lead to it, until nothing changes.

    ``least`` enters with 0 at the start and large numbers elsewhere; without ``cost`` all that are reached get 0.
    ``lowered[i]`` is the last turn before which node ``i`` was lowered, and enters with 0 at the start, else -1;
    ``changed`` says after which turns any was.
    """
    parts = len(part) - 1
    for turn, k in drawn_in_turns(counters, parts, changed):
        for s in range(part[k], part[k + 1]):
            if lowered[s] != turn:
                continue
            for j in range(arc_start[s], arc_start[s + 1]):
                t, total = target[j], least[s] if cost is None else least[s] + cost[j]
                if total < least[t]:
                    lower_atomically(least, t, total)
                    lowered[t] = turn + 1
                    changed[turn] = True


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
