"""The sweep over budgets against nature (:mod:`prudent.kernels.nature`), for any question.

A *question* says what is done over the actions of a state, many levels at a time, and how states with free cycles among
them are solved.  It reaches :func:`settle`, :func:`settle_cycle` and :func:`solve` as a named tuple, by whose type the
compiler picks the step:

    RobustPlan    U(s, b) = min over a of  max over p of  sum of  p U(s', b - c),  and M among those that attain U
    RobustBound   a lower bound on U over one level less, against nature's choices for U
    RobustGiven   the value of a given policy: one action in each state on each level

Passes of backups converge slowly if a cycle is hardly ever left.  So from time to time the chosen actions are evaluated
exactly: against fixed probabilities by elimination (:mod:`prudent.kernels.blocks`), after which nature chooses the
worst ones for these values, until they stay the same.  Nature's choices can only raise the values, so no choice occurs
twice.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numba.extending import overload

from prudent.kernels.blocks import eliminate
from prudent.kernels.choices import Choices, look_up
from prudent.kernels.nature import Values, value_at, worst_at
from prudent.kernels.nature_levels import AHEAD, lower, over_levels
from prudent.kernels.questions import FAST
from prudent.kernels.stretches import copy, fill
from prudent.kernels.team import draw, finish, wait_for

PASSES = 20
"""How many passes of backups come before a block is solved exactly; more for a large one."""

ROUNDS = 1000
"""The most times that the policy, nature or a lower bound's policy chooses anew."""

STILL = 1e-14
"""The relative change at which values stay."""

BETTER = 1e-13
"""The least relative gain for which a lower bound's policy changes."""

STEP: Any = {"nogil": True, "fastmath": FAST, "_nrt": False}
"""How the steps of questions are compiled."""

INLINE: Any = {**STEP, "forceinline": True}
"""The same, in place: a call takes as long as few levels do, since so many arrays are passed on."""


class RobustPlan(NamedTuple):
    """Find the least worst-case excess and, among the actions that attain it, the least worst-case expected cost.

    From ``safe`` on the policy of least worst-case mean exceeds no budget, not even one level less, so no policy is
    better.
    """

    excess: Values  # U, of the action chosen: the policy's worst-case excess
    below: Any  # the least excess over one level less, against nature's choices for U; None: left out
    mean: Values  # M
    choice: np.ndarray  # (n_states * stride,)  the action's number within its state
    safe: np.ndarray  # (n_states,)
    tie: float


class RobustBound(NamedTuple):
    """Find the lower bound of a plan that has been found, where there are free cycles: it begins from 0 and rises."""

    excess: Values
    below: Values


class RobustGiven(NamedTuple):
    """Evaluate a policy, whose budget is ``behind`` the level."""

    values: Values
    choices: Choices
    behind: int


def settle(question, s, first, last, sets, scratch):
    """Settle a state at the levels from ``first`` to ``last``; return what changed."""


@overload(settle, jit_options=INLINE)
def _settle(question, s, first, last, sets, scratch):
    return {RobustPlan: _choose, RobustBound: _raise, RobustGiven: _follow}[question.instance_class]


def settle_cycle(question, states, first, last, sets, scratch):
    """Settle the states of a block with free cycles at the levels from ``first`` to ``last``."""


@overload(settle_cycle, jit_options=STEP)
def _settle_cycle(question, states, first, last, sets, scratch):
    return _plan_cycle if question.instance_class is RobustPlan else _cycle


def solve(question, states, level, sets, scratch):
    """Solve a block at a level for the actions found; return whether others may then be better."""


@overload(solve, jit_options=STEP)
def _solve(question, states, level, sets, scratch):
    return {RobustPlan: _solve_plan, RobustBound: _solve_bound, RobustGiven: _solve_policy}[question.instance_class]


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def _first_within(value, most, i, n):
    """Return the first level from ``i`` on at which a value is no larger than allowed, ``n`` if there is none."""
    while i < n:
        end, within = min(i + AHEAD, n), False
        for k in range(np.uint64(i), np.uint64(end)):
            within |= value[k] <= most[k]
        if within:
            while value[i] > most[i]:
                i += 1
            return i
        i = end
    return n


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def _keep(values, row, n, new):
    """Write values at ``n`` levels, if they are wanted."""
    if values is not None:
        copy(values.table, row, n, new, 0)


def _choose(question, s, first, last, sets, scratch):
    """Settle a state of a plan: all actions for U, then those that attain it for M."""
    excess, below, mean, choice, safe, tie = question
    start, stop, row = sets.action_start[s], sets.action_start[s + 1], s * excess.stride + first
    by_action, low, best = scratch.by_action, scratch.low, scratch.best
    n = min(max(safe[s] - first, 0), last - first)
    for i in range(n, last - first):  # where the excess is 0, as in new tables
        mean.table[row + i], choice[row + i] = mean.base[s], choice[s * excess.stride]
    if n == 0:
        return 0.0
    fill(low, 0, n, np.inf)
    for a in range(start, stop):
        over_levels(a, first, first + n, sets, excess, below, by_action[a - start], scratch)
    _keep(below, row, n, low)
    fill(low, 0, n, np.inf)
    fill(best, 0, n, np.inf)
    for a in range(stop - start):
        lower(low, 0, n, by_action[a])
    for i in range(n):
        low[i] *= 1 + tie  # what attains U is no larger
    for a in range(stop - start):
        i, value = 0, by_action[a]
        while i < n:
            i = _first_within(value, low, i, n)
            j = i
            while j < n and value[j] <= low[j]:
                j += 1
            over_levels(start + a, first + i, first + j, sets, mean, None, scratch.mean, scratch)
            for m in range(j - i):
                if scratch.mean[m] < best[i + m]:
                    best[i + m] = scratch.mean[m]
                    choice[row + i + m] = a
            i = j
    changed = 0.0
    for i in range(n):
        new, at = by_action[choice[row + i], i], row + i
        off, more = abs(excess.table[at] - new) - STILL * new, abs(mean.table[at] - best[i]) - STILL * best[i]
        changed = max(changed, off, more)
        excess.table[at], mean.table[at] = new, best[i]
    return changed


def _raise(question, s, first, last, sets, scratch):
    """Raise the lower bound of a state to the least over its actions."""
    excess, below = question
    changed, low, row = 0.0, scratch.low, s * below.stride + first
    fill(low, 0, last - first, np.inf)
    for a in range(sets.action_start[s], sets.action_start[s + 1]):
        over_levels(a, first, last, sets, excess, below, scratch.by_action[0], scratch)
    for i in range(last - first):
        changed = max(changed, low[i] - below.table[row + i] - STILL * low[i])
        below.table[row + i] = max(below.table[row + i], low[i])
    return changed


def _follow(question, s, first, last, sets, scratch):
    """Evaluate a policy's actions in a state, over as many levels as it plays the same one."""
    values, choices, behind = question
    entry, at, low, high, step, without = choices
    level, row, changed, found = first, s * values.stride, 0.0, scratch.by_action[0]
    while level < last:
        a, end = look_up(entry, at, low, high, step, without, level - behind, s), level + 1
        while end < last and look_up(entry, at, low, high, step, without, end - behind, s) == a:
            end += 1
        over_levels(sets.action_start[s] + a, level, end, sets, values, None, found, scratch)
        for i in range(end - level):
            changed = max(changed, abs(values.table[row + level + i] - found[i]) - STILL * found[i])
            values.table[row + level + i] = found[i]
        level = end
    return changed


@njit(cache=True, nogil=True, _nrt=False)
def settle_backwards(counters, turns, first, last, ahead, question, sets, scratch):
    """Settle all states of a model without cycles at the levels from ``first`` to ``last``; threads draw parts.

    Each state has no more levels left than those that a run has not used before it is there.
    """
    part, after, backwards = turns
    while True:
        part_drawn = draw(counters)
        if part_drawn >= len(after):
            return
        wait_for(counters, after[part_drawn])
        for i in range(part[part_drawn], part[part_drawn + 1]):
            s = backwards[i]
            low, high = max(first - ahead[s], 1), last - ahead[s]
            if low < high and sets.action_start[s] < sets.action_start[s + 1]:
                settle(question, s, low, high, sets, scratch)
        finish(counters)


@njit(cache=True, nogil=True, _nrt=False)
def settle_blocks(block_start, block_state, first, last, question, sets, scratch):
    """Settle all states at the levels from ``first`` to ``last``, a tile after the other; blocks successors first.

    In a tile no state waits for another at a cost.
    """
    width = len(scratch.low)
    for level in range(first, last, width):
        until = min(level + width, last)
        for block in range(len(block_start) - 1):
            states = block_state[block_start[block] : block_start[block + 1]]
            if len(states) > 1:
                settle_cycle(question, states, level, until, sets, scratch)
            elif sets.action_start[states[0]] < sets.action_start[states[0] + 1]:
                settle(question, states[0], level, until, sets, scratch)


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def _passes(size):
    """Return how many passes over a block take about as long as solving it exactly."""
    return PASSES + size * size // 16


@njit(cache=True, nogil=True, _nrt=False)
def _until_still(question, states, first, last, sets, scratch):
    """Settle a block in passes until nothing changes, now and then exactly."""
    for _ in range(ROUNDS):
        for _ in range(_passes(len(states))):
            changed = 0.0
            for s in states:
                changed = max(changed, settle(question, s, first, last, sets, scratch))
            if changed <= 0.0:
                return
        again = False
        for level in range(first, last):
            again |= solve(question, states, level, sets, scratch)
        if not again:
            return


def _cycle(question, states, first, last, sets, scratch):
    """Settle a block for a question that is not cut into others."""
    _until_still(question, states, first, last, sets, scratch)


def _plan_cycle(question, states, first, last, sets, scratch):
    """Find the policy of a block, then its lower bound."""
    excess, below, mean, choice, safe, tie = question
    for s in states:  # U begins from the level before, which is an upper bound, and falls
        row, before = s * excess.stride, s * excess.stride + first - 1
        for level in range(first, last):
            excess.table[row + level], mean.table[row + level] = excess.table[before], mean.table[before]
    _until_still(RobustPlan(excess, None, mean, choice, safe, tie), states, first, last, sets, scratch)
    _until_still(RobustBound(excess, below), states, first, last, sets, scratch)


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def _evaluate(states, level, sets, judge, values, scratch):
    """Evaluate the actions played against nature's worst choices for the values of ``judge``; return what changed."""
    size, weight, dense = len(states), scratch.weight, scratch.dense
    for i in range(size):
        a = dense.played[i]
        begin, end = sets.outcome_start[a], sets.outcome_start[a + 1]
        worst_at(a, level, sets, judge, scratch.value, weight)
        dense.matrix[i, :size] = 0.0
        dense.out[i] = dense.right[i] = 0.0
        for k in range(begin, end):
            s, share = sets.successor[k], weight[k - begin]
            j = dense.rank[s]
            if sets.cost[k] == 0 and j < size and states[j] == s:
                dense.matrix[i, j] += share
            else:
                dense.out[i] += share
                dense.right[i] += share * value_at(values, s, level - sets.cost[k])
            dense.right[i] += share * values.added[k]
    eliminate(dense.matrix, dense.out, dense.stay, dense.right, size)
    changed = 0.0
    for i in range(size):
        total = dense.right[i]
        for j in range(i):
            total += dense.matrix[i, j] * dense.right[j]
        dense.right[i] = total / dense.stay[i]
        here = states[i] * values.stride + level
        changed = max(changed, abs(values.table[here] - dense.right[i]) - STILL * dense.right[i])
        values.table[here] = dense.right[i]
    return changed


@njit(cache=True, nogil=True, _nrt=False)
def _at_worst(states, level, sets, values, scratch):
    """Fill in the worst expectation of the actions played, in all states of a block at a level."""
    for _ in range(ROUNDS):
        if _evaluate(states, level, sets, values, values, scratch) <= 0.0:
            return


def _solve_plan(question, states, level, sets, scratch):
    """Evaluate the actions chosen, in both tables."""
    for i in range(len(states)):
        s = states[i]
        scratch.dense.played[i] = sets.action_start[s] + question.choice[s * question.excess.stride + level]
    _at_worst(states, level, sets, question.excess, scratch)
    _at_worst(states, level, sets, question.mean, scratch)
    return True


def _solve_policy(question, states, level, sets, scratch):
    """Evaluate the policy's actions."""
    entry, first, low, high, step, without = question.choices
    for i in range(len(states)):
        s = states[i]
        a = look_up(entry, first, low, high, step, without, level - question.behind, s)
        scratch.dense.played[i] = sets.action_start[s] + a
    _at_worst(states, level, sets, question.values, scratch)
    return False


def _solve_bound(question, states, level, sets, scratch):
    """Fill in the least expectation against nature's worst choices for the plan's excess."""
    excess, below = question
    played = scratch.dense.played
    for i in range(len(states)):
        played[i] = sets.action_start[states[i]]
    for _ in range(ROUNDS):
        _evaluate(states, level, sets, excess, below, scratch)
        changed = False
        for i in range(len(states)):
            s = states[i]
            least = below.table[s * below.stride + level] * (1 - BETTER)
            for a in range(sets.action_start[s], sets.action_start[s + 1]):
                scratch.low[0] = least
                over_levels(a, level, level + 1, sets, excess, below, scratch.by_action[0], scratch)
                if scratch.low[0] < least:
                    least, played[i], changed = scratch.low[0], a, True
        if not changed:
            break
    return False
