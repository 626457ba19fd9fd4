"""Laying a model out for tiles: layers of blocks, rows of nodes."""

import numpy as np
from numba import njit

from prudent.kernels.team import drawn


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
def node_layers(backwards, arc_start, successor, layer):
    """Fill in, without cycles, the most outcomes on a path from each node; ``layer`` enters with -1.

    ``backwards`` lists the states, successors first.  Shared lists are nodes after the states; they come before the
    states that have them.
    """
    for s in backwards:
        for at in range(arc_start[s], arc_start[s + 1] + 1):
            node = successor[at] if at < arc_start[s + 1] else s
            if layer[node] < 0:
                layer[node] = 0
                for o in range(arc_start[node], arc_start[node + 1]):
                    layer[node] = max(layer[node], layer[successor[o]] + 1)


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
