"""States with free cycles among them, at one level and against nature: solved by elimination.

Passes of backups converge slowly if a cycle is hardly ever left.  So from time to time the chosen actions are evaluated
exactly: against fixed probabilities by elimination (:mod:`prudent.kernels.blocks`), after which nature chooses the
worst ones for these values, until they stay the same.  Nature's choices can only raise the values, so no choice occurs
twice.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from prudent.kernels.blocks import eliminate
from prudent.kernels.nature import value_at, worst_at

PASSES = 20
"""How many passes of backups come before a block is solved exactly; more for a large one."""

ROUNDS = 1000
"""The most times that the policy, nature or a lower bound's policy chooses anew."""

STILL = 1e-14
"""The relative change at which values stay."""

BETTER = 1e-13
"""The least relative gain for which a lower bound's policy changes."""


class Dense(NamedTuple):
    """The arrays in which a block of states is solved."""

    rank: np.ndarray  # (n_states,)  a state's place in its block
    played: np.ndarray  # (largest block,)  the action of each state
    matrix: np.ndarray  # (largest block, largest block)
    out: np.ndarray  # (largest block,)  the probability to leave the block
    stay: np.ndarray  # (largest block,)
    right: np.ndarray  # (largest block,)


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def passes(size):
    """Return how many passes over a block take about as long as solving it exactly."""
    return PASSES + size * size // 16


@njit(cache=True, nogil=True, error_model="numpy")
def _solve(states, level, sets, order, judge, judge_base, table, stride, base, slope, paid, value, weight, dense):
    """Evaluate the actions played against nature's worst choices for the values of ``judge``; return what changed."""
    size, rank = len(states), dense.rank
    for i in range(size):
        a = dense.played[i]
        begin, end = sets.outcome_start[a], sets.outcome_start[a + 1]
        worst_at(a, level, sets, order, judge, stride, judge_base, slope, paid, value, weight)
        dense.matrix[i, :size] = 0.0
        dense.out[i] = dense.right[i] = 0.0
        for k in range(begin, end):
            s, share = sets.successor[k], weight[k - begin]
            inside = sets.cost[k] == 0 and rank[s] < size and states[rank[s]] == s
            if inside:
                dense.matrix[i, rank[s]] += share
            else:
                dense.out[i] += share
                dense.right[i] += share * value_at(table, stride, base, slope, s, level - sets.cost[k])
            dense.right[i] += share * sets.paid[k] if paid else 0.0
    eliminate(dense.matrix, dense.out, dense.stay, dense.right, size)
    changed = 0.0
    for i in range(size):
        total = dense.right[i]
        for j in range(i):
            total += dense.matrix[i, j] * dense.right[j]
        dense.right[i] = total / dense.stay[i]
        here = states[i] * stride + level
        changed = max(changed, abs(table[here] - dense.right[i]) - STILL * dense.right[i])
        table[here] = dense.right[i]
    return changed


@njit(cache=True, nogil=True)
def at_worst(states, level, sets, order, table, stride, base, slope, paid, value, weight, dense):
    """Fill in the worst expectation of the actions played, in all states of a block at a level."""
    for _ in range(ROUNDS):
        about = table, base, table, stride, base, slope, paid, value, weight, dense
        if _solve(states, level, sets, order, *about) <= 0.0:
            return


@njit(cache=True, nogil=True)
def at_least(states, level, sets, order, judge, judge_base, table, stride, base, value, weight, dense):
    """Fill in the least expectation against nature's worst choices for ``judge``, in a block at a level."""
    for i in range(len(states)):
        dense.played[i] = sets.action_start[states[i]]
    for _ in range(ROUNDS):
        _solve(states, level, sets, order, judge, judge_base, table, stride, base, 1.0, False, value, weight, dense)
        changed = False
        for i in range(len(states)):
            s = states[i]
            least = table[s * stride + level] * (1 - BETTER)
            for a in range(sets.action_start[s], sets.action_start[s + 1]):
                worst_at(a, level, sets, order, judge, stride, judge_base, 1.0, False, value, weight)
                begin, total = sets.outcome_start[a], 0.0
                for k in range(begin, sets.outcome_start[a + 1]):
                    after = value_at(table, stride, base, 1.0, sets.successor[k], level - sets.cost[k])
                    total += weight[k - begin] * after
                if total < least:
                    least, dense.played[i], changed = total, a, True
        if not changed:
            return
