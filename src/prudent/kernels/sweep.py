"""The sweep over budgets: least expected excess, then least expected cost, level by level.

Budgets, costs and values are in levels.  A level looks back no further than the largest cost, so tables of values
keep only that many columns: budget ``b`` is in column ``b % window``.  They are stored by state, then by budget: from
level to level, an outcome reads the next entry of one row, which is in the cache.  Without budget the values are those
of ``base``.  They also give the values for budgets below 0, since U(s, b) = V(s) - b for b <= 0.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from prudent.kernels.blocks import advantage, evaluate_block, solve_block
from prudent.kernels.choices import look_up


class Costs(NamedTuple):
    """The costs of outcomes, and the rounding errors of sums over them."""

    outcome_start: np.ndarray  # (n_actions + 1,)  those at no cost come first: arcs.inner_start:arcs.inner_stop
    cost: np.ndarray  # (n_outcomes,)
    mean_cost: np.ndarray  # (n_actions,)
    rounding: np.ndarray  # (n_actions,)  relative error of one weighted sum over an action's outcomes
    block_rounding: np.ndarray  # (n_blocks,)  relative error of evaluating a policy in a block with cycles


class Ends(NamedTuple):
    """The budgets from which U is 0, and bounds on the number of free steps."""

    worst: np.ndarray  # (n_states,)  the least worst case: from there on U is 0
    action_worst: np.ndarray  # (n_actions,)  the least worst case after an action
    stay: np.ndarray  # (n_states,)  upper bound on the expected number of free steps in a row


class Base(NamedTuple):
    """The values without budget."""

    excess: np.ndarray  # (n_states,)  U
    low: np.ndarray  # (n_states,)  lower bound on U
    mean: np.ndarray  # (n_states,)  M


class Tables(NamedTuple):
    """Tables by state and budget; the choice by budget and state."""

    excess: np.ndarray  # (n_states, window)  U
    low: np.ndarray  # (n_states, window)  lower bound on U
    mean: np.ndarray  # (n_states, window)  M
    choice: np.ndarray  # (n_rows, n_states)  the action's number within its state; row 0 is the first of a call


class Aims(NamedTuple):
    """What a sweep computes."""

    plan: bool  # excess, mean and choice
    bound: bool  # low


class Terms(NamedTuple):
    """The weights of the first objective: for U, 0 on all cost and 1 on cost beyond the budget."""

    accrual: float  # for each unit of cost
    slope: float  # for each unit of cost beyond the budget


class Workspace(NamedTuple):
    """The arrays that a sweep works in."""

    k: np.ndarray  # (n_actions,)
    allowed: np.ndarray  # (n_actions,)
    chosen: np.ndarray  # (n_states,)  enters with an action for each state
    row: np.ndarray  # (n_states,)  values at one level


@njit(cache=True, forceinline=True)
def following(probability, successor, cost, first, last, b, table, base, slope):
    """Return the sum of probability times value after the outcomes ``first:last``, from budget ``b``.

    Where no budget is left, ``rest <= 0``, the value is ``base - slope * rest``.
    """
    total = 0.0
    window = table.shape[1]
    column = b if b < window else b % window
    for o in range(first, last):
        rest = b - cost[o]
        if rest > 0:
            back = column - cost[o]
            total += probability[o] * table[successor[o], back if back >= 0 else back + window]
        else:
            total += probability[o] * (base[successor[o]] - slope * rest)
    return total


@njit(cache=True)
def settle_block(arcs, costs, ends, terms, tie, aims, b, begin, end, base, tables, workspace):
    """Settle both objectives in a block of states with free cycles among them."""
    k, allowed, chosen, row = workspace
    probability, successor, cost = arcs.probability, arcs.successor, costs.cost
    for plan in (False, True):  # the lower bound on U, then U itself
        if not (aims.plan if plan else aims.bound):
            continue
        values, first = (tables.excess, base.excess) if plan else (tables.low, base.low)
        read_level(arcs, begin, end, b, values, row)
        for i in range(begin, end):
            s = arcs.block_state[i]
            for a in range(arcs.action_start[s], arcs.action_start[s + 1]):
                allowed[a] = True
                outer, last = arcs.inner_stop[a], costs.outcome_start[a + 1]
                k[a] = terms.accrual * costs.mean_cost[a] + following(
                    probability, successor, cost, outer, last, b, values, first, terms.slope
                )
        solve_block(arcs, begin, end, k, allowed, 1.0, 0.0, chosen, row)
        if not plan:
            lower_block(arcs, costs, ends, b, begin, end, k, row)
            write_level(arcs, begin, end, b, values, row)
            continue
        # A*(s, b), each action's loss judged relative to the sums it comes from.
        for i in range(begin, end):
            s = arcs.block_state[i]
            for a in range(arcs.action_start[s], arcs.action_start[s + 1]):
                loss, size, _ = advantage(arcs, s, a, k, row)
                allowed[a] = a == chosen[s] or loss <= tie * size
                if b >= ends.worst[s]:
                    allowed[a] = ends.action_worst[a] <= b
            for a in range(arcs.action_start[s], arcs.action_start[s + 1]):
                if not allowed[chosen[s]]:
                    chosen[s] = a
            if b >= ends.worst[s]:
                row[s] = 0.0
        write_level(arcs, begin, end, b, values, row)
        read_level(arcs, begin, end, b, tables.mean, row)
        for i in range(begin, end):
            s = arcs.block_state[i]
            for a in range(arcs.action_start[s], arcs.action_start[s + 1]):
                outer, last = arcs.inner_stop[a], costs.outcome_start[a + 1]
                k[a] = costs.mean_cost[a] + following(
                    probability, successor, cost, outer, last, b, tables.mean, base.mean, 0.0
                )
        solve_block(arcs, begin, end, k, allowed, 1.0, 0.0, chosen, row)
        write_level(arcs, begin, end, b, tables.mean, row)


@njit(cache=True)
def read_level(arcs, begin, end, b, table, row):
    """Copy to ``row`` the values at level ``b`` of a block and of what it leads to at no cost."""
    column = b % table.shape[1]
    for i in range(begin, end):
        s = arcs.block_state[i]
        row[s] = table[s, column]
        for a in range(arcs.action_start[s], arcs.action_start[s + 1]):
            for o in range(arcs.inner_start[a], arcs.inner_stop[a]):
                row[arcs.successor[o]] = table[arcs.successor[o], column]


@njit(cache=True)
def write_level(arcs, begin, end, b, table, row):
    """Copy the values of a block from ``row`` to level ``b``."""
    column = b % table.shape[1]
    for i in range(begin, end):
        table[arcs.block_state[i], column] = row[arcs.block_state[i]]


@njit(cache=True)
def lower_block(arcs, costs, ends, b, begin, end, k, low):
    """Lower the values of a block to a subsolution, rounding errors included: it is below every policy's values."""
    most = 0.0
    for i in range(begin, end):
        s = arcs.block_state[i]
        for a in range(arcs.action_start[s], arcs.action_start[s + 1]):
            gain, size, _ = advantage(arcs, s, a, k, low)
            most = max(most, costs.rounding[a] * size - gain)
    for i in range(begin, end):
        s = arcs.block_state[i]
        if b >= ends.worst[s]:
            low[s] = 0.0
        elif most > 0.0:
            low[s] = max(low[s] - most * ends.stay[s], 0.0)


@njit(cache=True, nogil=True)
def sweep(arcs, costs, ends, terms, tie, aims, first, last, base, tables, start, found, workspace):
    """Settle the budgets ``first:last`` after all before them; record the values of ``start`` in ``found``.

    ``found`` has a row each for U, its lower bound and M, and a column for each budget.
    """
    # Tuples are unpacked once: in loops, each access to a field would count references.
    block_start, block_state, action_start = arcs.block_start, arcs.block_state, arcs.action_start
    probability, successor, outcome_start, cost = arcs.probability, arcs.successor, costs.outcome_start, costs.cost
    mean_cost, rounding, worst, action_worst = costs.mean_cost, costs.rounding, ends.worst, ends.action_worst
    excess, lows, mean, choice, k, chosen = (
        tables.excess,
        tables.low,
        tables.mean,
        tables.choice,
        workspace.k,
        workspace.chosen,
    )
    base_excess, base_low, base_mean = base.excess, base.low, base.mean
    for b in range(first, last):
        for block in range(len(block_start) - 1):
            begin, end = block_start[block], block_start[block + 1]
            if end - begin > 1:
                settle_block(arcs, costs, ends, terms, tie, aims, b, begin, end, base, tables, workspace)
                continue
            # A state whose free outcomes lead to states that are settled already.
            s = block_state[begin]
            one, other = action_start[s], action_start[s + 1]
            safe = b >= worst[s]
            # First objective: U(s, b) = min over a of the expected U of what follows.
            least, low = 0.0, 0.0
            if not safe:
                least, low = np.inf, np.inf
                for a in range(one, other):
                    o, stop, accrued = outcome_start[a], outcome_start[a + 1], terms.accrual * mean_cost[a]
                    if aims.plan:
                        after = following(probability, successor, cost, o, stop, b, excess, base_excess, terms.slope)
                        k[a] = accrued + after
                        least = min(least, k[a])
                    if aims.bound:
                        after = following(probability, successor, cost, o, stop, b, lows, base_low, terms.slope)
                        low = min(low, (1.0 - rounding[a]) * (accrued + after))
            if aims.bound:
                lows[s, b % lows.shape[1]] = low
            if not aims.plan:
                continue
            excess[s, b % excess.shape[1]] = least
            # Second objective over A*(s, b), the actions that attain U; where U is 0, whole numbers decide which do.
            limit = least * (1.0 + tie)
            best = np.inf if one < other else 0.0
            for a in range(one, other):
                if action_worst[a] <= b if safe else k[a] <= limit:
                    o, stop = outcome_start[a], outcome_start[a + 1]
                    m = mean_cost[a] + following(probability, successor, cost, o, stop, b, mean, base_mean, 0.0)
                    if m < best:
                        best = m
                        chosen[s] = a
            mean[s, b % mean.shape[1]] = best
        if aims.plan:
            for s in range(choice.shape[1]):
                choice[b - first, s] = chosen[s] - action_start[s]
            found[0, b] = excess[start, b % excess.shape[1]]
            found[2, b] = mean[start, b % mean.shape[1]]
        if aims.bound:
            found[1, b] = lows[start, b % lows.shape[1]]


@njit(cache=True)
def follow(arcs, costs, base, choices, first, last, tables, start, found, k, chosen, row):
    """Evaluate the policy ``choices`` for the budgets ``first:last``; record the values of ``start`` in ``found``.

    Layers 0, 1 and 2 of ``base``, ``tables`` and ``found`` are its expected excess as computed, an upper bound on it,
    and its expected cost.
    """
    window = tables.shape[2]
    entry, first_entry, low, high, stride, without = choices
    block_start, block_state, action_start = arcs.block_start, arcs.block_state, arcs.action_start
    probability, successor, outcome_start, cost = arcs.probability, arcs.successor, costs.outcome_start, costs.cost
    inner_stop, rounding, mean_cost = arcs.inner_stop, costs.rounding, costs.mean_cost
    for b in range(first, last):
        for block in range(len(block_start) - 1):
            begin, end = block_start[block], block_start[block + 1]
            for layer in range(3):
                table = tables[layer]
                if end - begin > 1:
                    read_level(arcs, begin, end, b, table, row)
                slope, up = 0.0 if layer == 2 else 1.0, 1.0 if layer == 1 else 0.0
                for i in range(begin, end):
                    s = block_state[i]
                    if action_start[s] == action_start[s + 1]:
                        row[s] = 0.0
                        continue
                    a = action_start[s] + look_up(entry, first_entry, low, high, stride, without, b, s)
                    chosen[s] = a
                    outer = inner_stop[a] if end - begin > 1 else outcome_start[a]
                    k[a] = following(
                        probability, successor, cost, outer, outcome_start[a + 1], b, table, base[layer], slope
                    )
                    k[a] = k[a] + mean_cost[a] if layer == 2 else k[a] * (1.0 + up * rounding[a])
                    if end - begin == 1:
                        row[s] = k[a]
                if end - begin > 1:
                    evaluate_block(arcs, begin, end, k, chosen, row)
                    for i in range(begin, end):
                        row[block_state[i]] *= 1.0 + up * costs.block_rounding[block]
                write_level(arcs, begin, end, b, table, row)
        for layer in range(3):
            found[layer, b] = tables[layer, start, b % window]
