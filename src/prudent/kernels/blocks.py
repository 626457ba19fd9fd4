"""Bellman's equations, solved block by block.

For given action costs ``k`` and probabilities ``p`` of moving on,

    value(s) = min over allowed a of  k(a) + sum over inner outcomes o of a of  p(o) value(successor(o)).

Blocks are the strongly connected components of the inner arcs, successors first, so a block of one state is solved
directly.  A block with cycles is solved by policy iteration.  The values of the chosen actions come from eliminating
states one by one without subtractions (Grassmann, Taksar and Heyman 1985).  This is accurate to a small multiple of
size^3 units in the last place *in every entry* (O'Cinneide 1993), whatever the probabilities of the cycles (beyond the
range of floats, values are infinite or nan).  Then choices are improved.  Gains are judged relative to the sums they
come from.  Apparent gains may still be rounding errors, so a new policy is kept only if its values fall by more than
twice what they rise, relative to their sizes.  So no policy occurs twice, and the last one kept is returned.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from prudent.kernels.indices import along
from prudent.kernels.team import drawn, drawn_shares

MARGIN = 1e-13
"""The least gain that changes a choice, relative to the size of the sums it comes from."""

ROUNDS = 10_000
"""The most policies tried in one block; callers that need a bound check the result."""

SHARE = 512
"""How many states a thread takes at a time, where their order does not matter."""

PASSES = 20
"""Passes of value iteration between two exact evaluations."""


class Arcs(NamedTuple):
    """The arcs of Bellman's equations by block, and a workspace."""

    block_start: np.ndarray  # (n_blocks + 1,)
    block_state: np.ndarray  # (n_states,)  states by block, successors' blocks first
    rank: np.ndarray  # (n_states,)  a state's position in ``block_state``
    action_start: np.ndarray  # (n_states + 1,)
    inner_start: np.ndarray  # (n_actions,)  inner outcomes of a: inner_start[a]:inner_stop[a]
    inner_stop: np.ndarray  # (n_actions,)
    probability: np.ndarray  # (n_outcomes,)
    successor: np.ndarray  # (n_outcomes,)
    leave: np.ndarray  # (n_actions,)  the probability that an action leaves these arcs
    dense: np.ndarray  # (largest block, largest block)
    work: np.ndarray  # (3, largest block)


@njit(cache=True, error_model="numpy")
def eliminate(p, out, stay, k, size):
    """Reduce ``value = k + p value`` state by state; ``out`` is the probability of leaving for good.

    States are eliminated from the last to the first.  Afterwards ``stay[n]`` is 1 minus the probability of returning
    from n to n through states after n, computed as the sum of the other probabilities.
    """
    for n in range(size - 1, -1, -1):
        total = out[n]
        for j in range(n):
            total += p[n, j]
        stay[n] = total
        for i in range(n):
            if p[i, n] > 0.0:
                f = p[i, n] / total
                for j in range(n):
                    p[i, j] += f * p[n, j]
                out[i] += f * out[n]
                k[i] += f * k[n]


@njit(cache=True, error_model="numpy")
def visits(p, stay, mass, size):
    """Replace the mass entering each state of an eliminated system by expected visits, in place."""
    for n in range(size - 1, 0, -1):
        f = mass[n] / stay[n]
        for j in range(n):
            mass[j] += f * p[n, j]
    for n in range(size):
        total = mass[n]
        for j in range(n):
            total += mass[j] * p[j, n]
        mass[n] = total / stay[n]


@njit(cache=True)
def place_block(arcs, first, last, k, choice, value):
    """Write a block's arcs under ``choice`` into the dense matrix; arcs out of the block add to constants."""
    size = last - first
    dense, out, rhs = arcs.dense, arcs.work[0], arcs.work[2]
    for i in range(size):
        a = choice[arcs.block_state[first + i]]
        dense[i, :size] = 0.0
        out[i] = arcs.leave[a]
        rhs[i] = k[a]
        for o in range(arcs.inner_start[a], arcs.inner_stop[a]):
            t = arcs.successor[o]
            j = arcs.rank[t] - first
            if 0 <= j < size:
                dense[i, j] += arcs.probability[o]
            else:
                out[i] += arcs.probability[o]
                rhs[i] += arcs.probability[o] * value[t]


@njit(cache=True, error_model="numpy")
def evaluate_block(arcs, first, last, k, choice, value):
    """Fill in the values of a block under ``choice``."""
    size = last - first
    dense, stay, rhs = arcs.dense, arcs.work[1], arcs.work[2]
    place_block(arcs, first, last, k, choice, value)
    eliminate(dense, arcs.work[0], stay, rhs, size)
    for n in range(size):
        total = rhs[n]
        for j in range(n):
            total += dense[n, j] * rhs[j]
        rhs[n] = total / stay[n]
        value[arcs.block_state[first + n]] = rhs[n]


@njit(cache=True)
def advantage(arcs, s, a, k, value):
    """Return the value of action ``a`` minus that of its state, the size of the sum, and the probability to move on.

    The sum is over *differences* of values, so it keeps its digits even if the action hardly ever leaves its state and
    all values nearby are almost equal: then a difference of the two values themselves would have none.
    """
    here = value[s]
    gain = k[a] - arcs.leave[a] * here
    size = abs(k[a]) + arcs.leave[a] * abs(here)
    away = arcs.leave[a]
    for o in range(arcs.inner_start[a], arcs.inner_stop[a]):
        t = arcs.successor[o]
        if t != s:
            gain += arcs.probability[o] * (value[t] - here)
            size += arcs.probability[o] * abs(value[t] - here)
            away += arcs.probability[o]
    return gain, size, away


@njit(cache=True)
def improve_block(arcs, first, last, k, allowed, sense, share, choice, value, update):
    """Take better actions; with ``update``, also update the values at once.  Return whether anything changed.

    A gain counts if it is above MARGIN of the sums that it comes from, and above ``share`` of the action's own cost.
    """
    changed = False
    for i in range(first, last):
        s = arcs.block_state[i]
        best = 0.0
        for a in range(arcs.action_start[s], arcs.action_start[s + 1]):
            if allowed[a] and a != choice[s]:
                gain, size, away = advantage(arcs, s, a, k, value)
                least = MARGIN * size + share * abs(k[a])
                if sense * gain < -least and away > 0.0 and sense * gain / away < sense * best:
                    best = gain / away
                    choice[s] = a
                    changed = True
        if update:
            gain, size, away = advantage(arcs, s, choice[s], k, value)
            if sense * gain < -MARGIN * size and away > 0.0:
                value[s] += gain / away
                changed = True
    return changed


@njit(cache=True)
def improved(value, change, sense):
    """Return whether a change surely improves values: relative to their sizes, they fall by over twice what they rise.

    Where a value is not finite, any change to a finite one is an improvement.
    """
    fall, rise = 0.0, 0.0
    for i in range(len(value)):
        if not np.isfinite(value[i] + change[i]):
            return not np.isfinite(value[i])
        size = abs(value[i]) + abs(value[i] + change[i])
        if sense * change[i] < 0.0:
            fall += abs(change[i]) / size
        elif change[i] != 0.0:
            rise += abs(change[i]) / size
    return fall > 2.0 * rise


@njit(cache=True, error_model="numpy")
def repeated(arcs, s, a, k, value):
    """Return the value of repeating an action until it leads elsewhere, an infinite one if it never does."""
    total, loops = k[a], False
    for o in range(arcs.inner_start[a], arcs.inner_stop[a]):
        t = arcs.successor[o]
        if t == s:
            loops = True
        else:
            total += arcs.probability[o] * value[t]
    if not loops:
        return total
    away = arcs.leave[a]
    for o in range(arcs.inner_start[a], arcs.inner_stop[a]):
        if arcs.successor[o] != s:
            away += arcs.probability[o]
    if away > 0.0:
        return total / away
    return np.inf if total >= 0.0 else -np.inf


@njit(cache=True)
def settle(arcs, s, k, allowed, sense, choice, value):
    """Solve a block of one state directly."""
    best, least = -1, 0.0
    for a in range(arcs.action_start[s], arcs.action_start[s + 1]):
        if allowed[a]:
            total = repeated(arcs, s, a, k, value)
            if best < 0 or sense * total < sense * least:
                best, least = a, total
    if best >= 0:
        choice[s] = best
        value[s] = least


@njit(cache=True)
def solve_block(arcs, first, last, k, allowed, sense, share, choice, value):
    """Solve one block; ``sense`` 1 minimises, -1 maximises.

    ``choice`` must enter with allowed actions that leave the block with probability 1.
    """
    if last - first == 1:
        settle(arcs, arcs.block_state[first], k, allowed, sense, choice, value)
        return
    state = arcs.block_state[first:last]
    evaluate_block(arcs, first, last, k, choice, value)
    for _ in range(ROUNDS):
        kept, kept_value = choice[state], value[state]
        if not improve_block(arcs, first, last, k, allowed, sense, share, choice, value, False):
            return
        for _ in range(PASSES):  # value iteration spreads better choices before the next evaluation
            if not improve_block(arcs, first, last, k, allowed, sense, share, choice, value, True):
                break
        evaluate_block(arcs, first, last, k, choice, value)
        if not improved(kept_value, value[state] - kept_value, sense):
            for i in range(last - first):
                choice[state[i]], value[state[i]] = kept[i], kept_value[i]
            return


@njit(cache=True)
def solve_blocks(arcs, first, last, k, allowed, sense, share, choice, value):
    """Solve the blocks ``first:last`` in order."""
    for block in range(first, last):
        solve_block(arcs, arcs.block_start[block], arcs.block_start[block + 1], k, allowed, sense, share, choice, value)


@njit(cache=True)
def longest_in_blocks(arcs, passes, steps):
    """Fill in the largest expected number of steps of any policy; in blocks too large to solve, roughly, in passes."""
    choice, allowed = arcs.action_start[:-1].copy(), np.ones(len(arcs.leave), dtype=np.bool_)
    k, value = -np.ones(len(arcs.leave)), np.zeros(len(steps))  # what is least, with another sign, is largest
    for block in range(len(arcs.block_start) - 1):
        first, last = arcs.block_start[block], arcs.block_start[block + 1]
        if last - first <= len(arcs.dense):
            solve_block(arcs, first, last, k, allowed, 1.0, 0.0, choice, value)
        else:
            approach(arcs, first, last, k, passes, 0.25, value, False, value)
    steps[:] = -value


@njit(cache=True)
def approach(arcs, first, last, k, passes, still, most, capped, value):
    """Bring the values of a block, which enter with a guess, closer to a solution; return whether they settle.

    They do once a pass changes none by more than ``still``.  If ``capped``, none is above ``most``.
    """
    for _ in range(passes):
        change = 0.0
        for i in range(first, last):
            s, best = arcs.block_state[i], np.inf
            for a in range(arcs.action_start[s], arcs.action_start[s + 1]):
                total = k[a]
                for o in range(arcs.inner_start[a], arcs.inner_stop[a]):
                    total += arcs.probability[o] * value[arcs.successor[o]]
                best = min(best, total)
            if capped:
                best = min(best, most[s])
            change = max(change, abs(value[s] - best))
            value[s] = best
        if change <= still:
            return True
    return False


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def rise_of(arcs, s, a, high, low):
    """Return the mean increase of the value ``high + low`` by an action, and the size of that sum.

    The low parts carry the digits of values that do not fit into ``high``; both are summed from differences.
    """
    total, size = 0.0, 0.0
    for o in along(arcs.inner_start[a], arcs.inner_stop[a]):
        t = np.uint64(arcs.successor[o])
        coarse, fine = high[t] - high[s], low[t] - low[s]
        total += arcs.probability[o] * (coarse + fine)
        size += arcs.probability[o] * (abs(coarse) + abs(fine))
    return total, size


@njit(cache=True, nogil=True)
def action_gaps(counters, arcs, k, unit, high, low, gap, error):
    """Fill in for each action its cost beyond the value ``high + low`` of its state, and the rounding error."""
    n_states = len(high)
    for first, last in drawn_shares(counters, n_states, SHARE):
        for s in range(first, last):
            for a in range(arcs.action_start[s], arcs.action_start[s + 1]):
                rise, size = rise_of(arcs, s, a, high, low)
                gap[a], error[a] = k[a] + rise, unit[a] * (abs(k[a]) + size)


@njit(cache=True)
def take_better(arcs, gap, error, choice):
    """Take in each state the action that surely has the largest gain per move away from it; return whether any has."""
    changed = False
    for s in range(len(choice)):
        now, best = choice[s], 0.0
        for a in range(arcs.action_start[s], arcs.action_start[s + 1]):
            if a == now or gap[a] + 2.0 * error[a] >= gap[now] - 2.0 * error[now]:
                continue
            away = 0.0
            for o in range(arcs.inner_start[a], arcs.inner_stop[a]):
                if arcs.successor[o] != s:
                    away += arcs.probability[o]
            if away > 0.0 and (gap[a] - gap[now]) / away < best:
                best = (gap[a] - gap[now]) / away
                choice[s] = a
                changed = True
    return changed


@njit(cache=True, nogil=True)
def claim_factors(counters, arcs, choice, gaps, values, least, most):
    """Fill in, for each share of the states, the least d and the largest for which the claim holds with ``high + low``.

    The claim is  d fall >= error - gap  for all actions, + |gap| for those chosen.  The decrease of the function by an
    action is at least ``fall``, after rounding.  If there is no d, the least is infinite.
    """
    (gap, error, unit), (high, low) = gaps, values
    n_states = len(high)
    for share in drawn(counters, len(least)):
        least[share], most[share] = 0.0, np.inf
        for s in range(share * SHARE, min((share + 1) * SHARE, n_states)):
            for a in range(arcs.action_start[s], arcs.action_start[s + 1]):
                rise, size = rise_of(arcs, s, a, high, low)
                fall = -rise - unit[a] * size
                needed = error[a] + abs(gap[a]) if choice[s] == a else error[a] - gap[a]
                if not (np.isfinite(needed) and (needed <= 0.0 or fall > 0.0)):
                    least[share] = np.inf
                elif needed > 0.0:
                    least[share] = max(least[share], needed / fall)
                elif fall < 0.0:
                    most[share] = min(most[share], needed / fall)


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def added(a, b, up):
    """Return a sum rounded up or down; exact where it is a float.  Its remainder is Knuth's."""
    total = a + b
    part = total - a
    lack = (a - (total - part)) + (b - part)
    if up:
        return np.nextafter(total, np.inf) if lack > 0.0 else total
    return np.nextafter(total, -np.inf) if lack < 0.0 else total


@njit(cache=True, nogil=True)
def enclose(counters, high, low, above, below, lower, upper):
    """Fill in bounds, not below 0, of values ``high + low`` that are up to ``above`` too high or ``below`` too low."""
    for first, last in drawn_shares(counters, len(high), SHARE):
        for s in range(first, last):
            lower[s] = max(added(high[s], added(low[s], -above[s], False), False), 0.0)
            upper[s] = added(high[s], added(low[s], below[s], True), True)


@njit(cache=True, nogil=True)
def variance_costs(counters, rows, cost, unit, choice, value, k):
    """Fill in the costs of the chosen actions whose totals are variances: the mean squares of the deviations of values.

    Costs are divided by ``unit``.
    """
    action_start, outcome_start, probability, successor = rows
    for first, last in drawn_shares(counters, len(value), SHARE):
        for s in range(first, last):
            if action_start[s] < action_start[s + 1]:
                total = 0.0
                for o in along(outcome_start[choice[s]], outcome_start[choice[s] + 1]):
                    total += probability[o] * (cost[o] / unit + value[successor[o]] - value[s]) ** 2
                k[choice[s]] = total
