"""Nodes that wait for each other within a tile: known parts are added as vectors, the rest level by level."""

import numpy as np
from numba import njit

from prudent.kernels.questions import FAST
from prudent.kernels.stretches import NEVER, add_outcome


@njit(cache=True, nogil=True, fastmath=FAST)
def settle_group(question, work, groups, strip, values, scratch, group):
    """Settle a plan or a bound in a group, for a whole tile: known parts first, then level by level."""
    (terms, tie, known), (first, last, _, _, _), plan = question, strip, len(values.mean) > 1
    outcome_start, late_stop, action_start = work.outcome_start, groups.ready, work.action_start
    probability, successor, cost, delay = work.probability, work.successor, work.cost, work.delay
    row, means, excesses = values.row, values.mean, values.excess
    worst, action_worst, calm, base, base_mean = known.worst, known.action_worst, known.calm, known.excess, known.mean
    mean_cost, k, ready = work.mean_cost, scratch.m, scratch.ready
    for q in range(groups.queue_start[group], groups.queue_start[group + 1]):
        a = groups.queue[q]
        s = groups.action_node[a]
        at = groups.scratch[s] + a - action_start[s]
        # The known part of U, for budgets that may be exceeded.
        b = max(first - delay[s], 1)
        n = max(min(last - delay[s], worst[s]) - b, 0)
        k[:n] = terms.accrual * mean_cost[a]
        for o in range(late_stop[a], outcome_start[a + 1]):
            t, rest = successor[o], b - cost[o]
            add_outcome(k, 0, n, probability[o], base[t], terms.slope, rest, excesses, row[t], worst[t])
        for i in range(n):
            ready[b + delay[s] - first + i, at] = k[i]
        # The known part of M, for budgets that need not be exceeded.
        b = max(first - delay[s], worst[s], action_worst[a], 1)
        n = min(last - delay[s], calm[s]) - b
        if plan and n > 0:
            k[:n] = mean_cost[a]
            for o in range(late_stop[a], outcome_start[a + 1]):
                t, rest = successor[o], b - cost[o]
                add_outcome(k, 0, n, probability[o], base_mean[t], 0.0, rest, means, row[t], NEVER)
            for i in range(n):
                ready[b + delay[s] - first + i, at] = k[i]
    for level in range(first, last):
        line = level - first
        for s in work.group_node[work.group_start[group] : work.group_start[group + 1]]:
            b, start, stop = level - delay[s], action_start[s], action_start[s + 1]
            if b <= 0:
                continue
            at, safe = groups.scratch[s] - start, b >= worst[s]
            least = 0.0 if safe else np.inf
            for a in range(start, start if safe else stop):
                total = at_level(
                    ready[line, at + a], outcome_start[a], late_stop[a], work, row, b, excesses, base, terms.slope
                )
                ready[line, at + a] = total
                least = min(least, total)
            excesses[row[s] + b] = least
            if not plan:
                continue
            limit, best, chosen = least * (1.0 + tie), np.inf, known.choice[s]
            if b >= calm[s]:
                best, stop = base_mean[s], start
            for a in range(start, stop):
                if action_worst[a] <= b if safe else ready[line, at + a] <= limit:
                    total = ready[line, at + a] if safe else mean_cost[a]
                    end = late_stop[a] if safe else outcome_start[a + 1]
                    total = at_level(total, outcome_start[a], end, work, row, b, means, base_mean, 0.0)
                    if total < best:
                        best, chosen = total, a - start
            means[row[s] + b] = best
            values.choice[values.place[s] + b * values.stride] = chosen


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True, _nrt=False)
def at_level(total, begin, end, work, row, b, table, base, slope):
    """Add to a total the parts of outcomes at one level, for a budget ``b``."""
    probability, successor, cost = work.probability, work.successor, work.cost
    for o in range(begin, end):
        t, rest = successor[o], b - cost[o]
        total += probability[o] * (table[row[t] + rest] if rest > 0 else base[t] - slope * rest)
    return total
