"""The exact method as one plain loop in Numba: what tuning is measured against.

Tables by budget and state; for each budget every state, every action, every outcome, both objectives at once; no bands,
no bounds on rounding, no tiles, nothing vectorised on purpose.
"""

import numpy as np
from numba import njit

from numpy_reference import TIE, Answer, best_budget
from prudent.engine.prepared import Prepared


def solve_untuned(prepared: Prepared, alpha: float, levels: int) -> Answer:
    """Return the optimum over the budgets from 0 to ``levels``, which must be at least the optimal CVaR."""
    starts, order, _ = prepared.blocks if prepared.acyclic else prepared.free_blocks
    if len(starts) - 1 < prepared.n_states:
        raise ValueError("the reference does not know cycles at no cost")
    arrays = (order, prepared.action_start, prepared.outcome_start, prepared.probability, prepared.successor)
    least = expected_cost(*arrays, prepared.mean_cost)
    excess, mean, choice = sweep(*arrays, prepared.cost, prepared.mean_cost, least, levels)
    return Answer(*best_budget(prepared, alpha, excess[:, prepared.start], mean[:, prepared.start]), choice)


@njit(cache=True)
def expected_cost(order, action_start, outcome_start, probability, successor, mean_cost):
    """Sweep the states, successors first as far as there is an order, until no value moves."""
    value = np.zeros(len(order))
    moved, largest = 1.0, 0.0
    while moved > 4e-16 * largest:
        moved = 0.0
        for s in order:
            best = np.inf if action_start[s] < action_start[s + 1] else 0.0
            for a in range(action_start[s], action_start[s + 1]):
                total = mean_cost[a]
                for o in range(outcome_start[a], outcome_start[a + 1]):
                    total += probability[o] * value[successor[o]]
                best = min(best, total)
            moved = max(moved, abs(best - value[s]))
            largest = max(largest, best)
            value[s] = best
    return value


@njit(cache=True)
def sweep(order, action_start, outcome_start, probability, successor, cost, mean_cost, least, levels):
    """Fill the tables of U, M and the actions, budgets rising."""
    n = len(order)
    excess, mean = np.zeros((levels + 1, n)), np.zeros((levels + 1, n))
    choice = np.zeros((levels + 1, n), dtype=np.int16)
    excess[0], mean[0] = least, least
    widest = 0
    for s in range(n):
        widest = max(widest, action_start[s + 1] - action_start[s])
    first, second = np.empty(widest), np.empty(widest)
    for b in range(1, levels + 1):
        for s in order:
            start, stop = action_start[s], action_start[s + 1]
            if start == stop:
                continue
            low = np.inf
            for a in range(start, stop):
                u, m = 0.0, mean_cost[a]
                for o in range(outcome_start[a], outcome_start[a + 1]):
                    p, t, rest = probability[o], successor[o], b - cost[o]
                    if rest > 0:
                        u += p * excess[rest, t]
                        m += p * mean[rest, t]
                    else:
                        u += p * (least[t] - rest)
                        m += p * least[t]
                first[a - start], second[a - start] = u, m
                low = min(low, u)
            best = np.inf
            for i in range(stop - start):
                if first[i] <= low * (1.0 + TIE) and second[i] < best:
                    best = second[i]
                    choice[b, s] = i
            excess[b, s], mean[b, s] = low, best
    return excess, mean, choice
