"""Which budgets and actions can matter on a fine lattice, by bounds on U from a coarse one.

On the coarse grid, ``above`` is an upper bound on U and ``table`` a lower one, linear between levels.  An action whose
outcomes have more than the upper bound is never optimal.  No other pair of state and budget need be settled than those
that runs can meet through the other actions.  Without cycles one pass finds them.
"""

import numpy as np
from numba import njit

from prudent.kernels.between import PAD, add_near
from prudent.kernels.stretches import LANES, Strip
from prudent.kernels.tiles import settle_nodes

MARGIN = 1e-9
"""How far above the upper bound, relatively, an action still counts as one that may attain U: more than ties."""


@njit(cache=True, nogil=True)
def narrow(forwards, graph, exact_cost, work, table, above, ratio, found):
    """Widen ``low`` and ``high``, the budgets on the fine lattice, from the start's to those of all states.

    ``forwards`` lists the states so that successors come later, ``graph`` is (action_start, outcome_start, probability,
    successor).  ``work`` has the costs on the coarse grid, of ``ratio`` fine levels each, and ``exact_cost`` are those
    on the fine one.  ``found`` is (low, high, useful): ``useful[a, k]`` becomes whether action ``a`` may be optimal in
    cell ``k``.
    """
    action_start, outcome_start, probability, successor = graph
    rows, error, base = (probability, successor, work.costs.cost, work.parts), work.error, work.base
    low, high, useful = found
    for s in forwards:
        if high[s] < max(low[s], 1):
            continue
        begin, end = max(low[s], 0) // ratio, high[s] // ratio
        for a in range(action_start[s], action_start[s + 1]):
            first, last, before = -1, -1, np.inf
            for k in range(begin, end + 2):
                value = add_near(-error[a], outcome_start[a], outcome_start[a + 1], rows, table, PAD, k, base, 1.0)
                if k > begin and min(before, value) <= above[s, k - 1] * (1.0 + MARGIN) + MARGIN:
                    useful[a, k - 1] = True
                    first, last = k - 1 if first < 0 else first, k - 1
                before = value
            if first < 0:
                continue
            least, most = max(low[s], first * ratio), min(high[s], (last + 1) * ratio - 1)
            for o in range(outcome_start[a], outcome_start[a + 1]):
                t = successor[o]
                low[t], high[t] = min(low[t], least - exact_cost[o]), max(high[t], most - exact_cost[o])


@njit(cache=True, nogil=True)
def settle_range(question, work, values, scratch, place, budgets, useful):
    """Settle a range of budgets of the node at a place in ``work.group_node``, all its successors' before.

    ``budgets`` is (least, most, how many a cell has).  Only useful actions are looked at: the successors of others need
    not be settled.
    """
    low, high, ratio = budgets
    s, length, left_out = work.group_node[place], len(scratch.m) - LANES, work.left_out
    first = low
    while first <= high:
        cell = first // ratio
        last = min(first + length, (cell + 1) * ratio, high + 1)
        for a in range(work.action_start[s], work.action_start[s + 1]):
            left_out[a] = not useful[a, cell]
        settle_nodes(question, work, Strip(first, last, first, last, 0), values, scratch, place, place + 1)
        first = last
