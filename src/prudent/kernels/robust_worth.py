"""The value of following a policy against nature, by state and level.

The table has an index for each level; the policy's budget is ``behind`` it by this many levels.
"""

import numpy as np
from numba import njit

from prudent.kernels.choices import look_up
from prudent.kernels.free_cycles import STILL, at_worst, passes
from prudent.kernels.nature import worst_at
from prudent.kernels.robust_levels import over_levels
from prudent.kernels.stretches import FAST


@njit(cache=True, nogil=True, fastmath=FAST, _nrt=False)
def _follow(s, first, last, behind, choices, sets, base, slope, paid, table, stride, scratch):
    """Evaluate a policy's actions in a state at the levels from ``first`` to ``last``; return what changed."""
    entry, at, low, high, step, without = choices
    level, row, changed, found = first, s * stride, 0.0, scratch.by_action
    while level < last:
        a, end = look_up(entry, at, low, high, step, without, level - behind, s), level + 1
        while end < last and look_up(entry, at, low, high, step, without, end - behind, s) == a:
            end += 1
        over_levels(
            sets.action_start[s] + a, level, end, sets, scratch.excess_order, table, stride, base, slope, paid, False,
            table, base, False, found, 0, found, scratch,
        )  # fmt: skip
        for i in range(end - level):
            changed = max(changed, abs(table[row + level + i] - found[i]) - STILL * found[i])
            table[row + level + i] = found[i]
        level = end
    return changed


@njit(cache=True, nogil=True, _nrt=False)
def follow_backwards(backwards, last, ahead, behind, choices, sets, base, slope, paid, table, stride, scratch):
    """Evaluate a policy in all states of a model without cycles, at the levels below ``last``."""
    for s in backwards:
        if sets.action_start[s] < sets.action_start[s + 1]:
            for first in range(1, last - ahead[s], scratch.width):
                end = min(first + scratch.width, last - ahead[s])
                _follow(s, first, end, behind, choices, sets, base, slope, paid, table, stride, scratch)


@njit(cache=True, nogil=True, _nrt=False)
def follow(
    block_start, block_state, first, last, behind, choices, sets, base, slope, paid, table, stride, scratch
):  # fmt: skip
    """Evaluate a policy in all states at the levels from ``first`` to ``last``; see :func:`settle`."""
    entry, place, low, high, step, without = choices
    dense = scratch.dense
    for block in range(len(block_start) - 1):
        states = block_state[block_start[block] : block_start[block + 1]]
        if sets.action_start[states[0]] == sets.action_start[states[0] + 1]:
            continue  # a goal
        changed = 0.0
        for _ in range(passes(len(states)) if len(states) > 1 else 1):
            changed = 0.0
            for s in states:
                change = _follow(s, first, last, behind, choices, sets, base, slope, paid, table, stride, scratch)
                changed = max(changed, change)
            if changed <= 0.0:
                break
        if len(states) == 1 or changed <= 0.0:
            continue
        for level in range(first, last):
            for i in range(len(states)):
                s = states[i]
                played = look_up(entry, place, low, high, step, without, level - behind, s)
                dense.played[i] = sets.action_start[s] + played
            at_worst(
                states, level, sets, scratch.excess_order, table, stride, base, slope, paid, scratch.value,
                scratch.weight, dense,
            )  # fmt: skip


@njit(cache=True, nogil=True)
def after_actions(actions, level, sets, base, slope, paid, table, stride, order, found):
    """Fill in the worst expectation after each of some actions at a level, given a table of values."""
    most = np.max(np.diff(sets.outcome_start))
    value, weight = np.empty(most), np.empty(most)
    for i in range(len(actions)):
        found[i], _ = worst_at(
            actions[i], level, sets, order, table, stride, base, slope, paid, value, weight
        )  # fmt: skip
