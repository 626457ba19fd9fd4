"""Laying a model out for tiles: least costs from the start, layers of blocks, rows of nodes."""

from heapq import heappop, heappush

import numpy as np
from numba import njit

from prudent.kernels.team import drawn


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


@njit(cache=True)
def layers(blocks, action_start, outcome_start, successor, cost, short, layer):
    """Set ``layer`` to the most outcomes that cost less than ``short``, from block to block, on a path from each block.

    ``blocks`` lists those that such outcomes lead to first, as (start, state, block_of).
    """
    block_start, block_state, block_of = blocks
    for k in range(len(layer)):
        layer[k] = 0
        for s in block_state[block_start[k] : block_start[k + 1]]:
            for o in range(outcome_start[action_start[s]], outcome_start[action_start[s + 1]]):
                if cost[o] < short and block_of[successor[o]] != k:
                    layer[k] = max(layer[k], layer[block_of[successor[o]]] + 1)


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
