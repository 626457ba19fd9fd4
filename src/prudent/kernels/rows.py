"""The equations of one large component as compact rows, and ways to improve and to evaluate its policies.

:mod:`prudent.engine.values.large_components` says which way is used when.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from prudent.kernels.blocks import MARGIN


class Component(NamedTuple):
    """The equations of all actions in a component, each divided by its diagonal, the probability of moving on.

    ``x(s) = min over a of  constant(a) + sum of chance x[column]``, states numbered by their position in the
    component.  ``leave`` is 1 minus the sum of an action's chances, computed as the probability of leaving the
    component.  With it, sums are over *differences* of values, and so keep their digits where the component is hardly
    ever left and all values are almost equal.
    """

    action_start: np.ndarray  # (size + 1,)
    arc_start: np.ndarray  # (n_actions + 1,)
    column: np.ndarray  # (n_arcs,)
    chance: np.ndarray  # (n_arcs,)
    leave: np.ndarray  # (n_actions,)
    away: np.ndarray  # (n_actions,)  the diagonals
    action: np.ndarray  # (n_actions,)  numbers in the model
    outer_start: np.ndarray  # (n_actions + 1,)
    outer_state: np.ndarray  # (n_outer,)  successors outside the component, numbered as in the model
    outer_chance: np.ndarray  # (n_outer,)  not divided


class Rows(NamedTuple):
    """The rows of one policy; in each, columns before the diagonal come first, up to ``middle``."""

    start: np.ndarray  # (size + 1,)
    middle: np.ndarray  # (size,)
    column: np.ndarray  # (n,)
    chance: np.ndarray  # (n,)
    leave: np.ndarray  # (size,)
    away: np.ndarray  # (size,)


@njit(cache=True)
def component_rows(arcs, first, last):
    """Return the equations of the block with states ``first:last``."""
    size, n_actions, n_inner, n_outer = last - first, 0, 0, 0
    for i in range(first, last):
        s = arcs.block_state[i]
        n_actions += arcs.action_start[s + 1] - arcs.action_start[s]
        for a in range(arcs.action_start[s], arcs.action_start[s + 1]):
            for o in range(arcs.inner_start[a], arcs.inner_stop[a]):
                t = arcs.successor[o]
                if first <= arcs.rank[t] < last:
                    n_inner += t != s
                else:
                    n_outer += 1
    action_start, arc_start = np.empty(size + 1, dtype=np.int64), np.empty(n_actions + 1, dtype=np.int64)
    column, chance = np.empty(n_inner, dtype=np.int32), np.empty(n_inner)
    leave, away, action = np.empty(n_actions), np.empty(n_actions), np.empty(n_actions, dtype=np.int64)
    outer_start = np.empty(n_actions + 1, dtype=np.int64)
    outer_state, outer_chance = np.empty(n_outer, dtype=np.int64), np.empty(n_outer)
    row, inner, outer = 0, 0, 0
    for i in range(size):
        s = arcs.block_state[first + i]
        action_start[i] = row
        for a in range(arcs.action_start[s], arcs.action_start[s + 1]):
            arc_start[row], outer_start[row] = inner, outer
            gone, moved = arcs.leave[a], 0.0
            for o in range(arcs.inner_start[a], arcs.inner_stop[a]):
                t, p = arcs.successor[o], arcs.probability[o]
                j = arcs.rank[t] - first
                if t == s:
                    continue
                if 0 <= j < size:
                    column[inner], chance[inner] = j, p
                    moved += p
                    inner += 1
                else:
                    outer_state[outer], outer_chance[outer] = t, p
                    gone += p
                    outer += 1
            action[row], away[row] = a, gone + moved
            scale = 1.0 / away[row] if away[row] > 0.0 else 0.0
            leave[row] = gone * scale
            for j in range(arc_start[row], inner):
                chance[j] *= scale
            row += 1
    action_start[size], arc_start[row], outer_start[row] = row, inner, outer
    return Component(
        action_start, arc_start, column, chance, leave, away, action, outer_start, outer_state, outer_chance
    )


@njit(cache=True)
def constants(part, k, value):
    """Return the constants of all equations: the costs of the actions, plus values outside, divided by diagonals."""
    constant = np.zeros(len(part.away))
    for row in range(len(constant)):
        total = k[part.action[row]]
        for j in range(part.outer_start[row], part.outer_start[row + 1]):
            total += part.outer_chance[j] * value[part.outer_state[j]]
        if part.away[row] > 0.0:
            constant[row] = total / part.away[row]
    return constant


@njit(cache=True)
def relax_once(part, constant, chosen, x, backwards, anew):
    """Take the least actions (``anew``) and their values, state by state, in place; return how many actions changed.

    Afterwards all values are shifted by half of what they changed on average, divided by the average chance to leave.
    Without that, a block that is hardly ever left would reach the level of its values only after very many passes.
    """
    changes, drift, gone = 0, 0.0, 0.0
    for n in range(len(x)):
        i = len(x) - 1 - n if backwards else n
        best, least = chosen[i], np.inf
        first, last = (part.action_start[i], part.action_start[i + 1]) if anew else (best, best + 1)
        for row in range(first, last):
            total = constant[row]
            for j in range(part.arc_start[row], part.arc_start[row + 1]):
                total += part.chance[j] * x[part.column[j]]
            if total < least and part.away[row] > 0.0:
                best, least = row, total
        if best != chosen[i]:
            chosen[i] = best
            changes += 1
        drift += least - x[i]
        gone += part.leave[best]
        x[i] = least
    if gone > 0.0:
        x += 0.5 * drift / gone
    return changes


@njit(cache=True)
def relax_rows(part, constant, chosen, x, begin, end, each, quiet, still, few):
    """Relax the rows in passes ``begin`` to ``end``, to and fro, with actions taken anew in each third pass, say.

    Ends when that has changed no action for ``quiet`` times, or more than 4/5 as many as before and more than ten.
    Returns the number of passes so far, the times still to be quiet, and the last number of changes.
    """
    for turn in range(begin, end):
        anew = turn <= each or turn % each == 0
        changes = relax_once(part, constant, chosen, x, turn % 2 == 1, anew)
        if anew:
            still = still - 1 if changes == 0 else quiet
            if still == 0 or (turn > each and changes > max(0.8 * few, 10.0)):
                return turn + 1, 0, changes
            few = changes
    return end, still, few


@njit(cache=True)
def improve_rows(part, constant, share, sense, chosen, x, noise, update, backwards):
    """Take better actions, in place; return how many.  With ``update``, also improve the values at once.

    A gain counts if it is above ``noise``, MARGIN of the sums that it comes from, and ``share`` of the action's own
    constant.
    """
    changes = 0
    for n in range(len(x)):
        i = len(x) - 1 - n if backwards else n
        here, best, most = x[i], chosen[i], 0.0
        for row in range(part.action_start[i], part.action_start[i + 1]):
            if part.away[row] <= 0.0:
                continue
            gone = part.leave[row] * here
            gain, size = constant[row] - gone, abs(constant[row]) + abs(gone)
            for j in range(part.arc_start[row], part.arc_start[row + 1]):
                step = part.chance[j] * (x[part.column[j]] - here)
                gain += step
                size += abs(step)
            gain *= sense
            if gain < most and gain < -MARGIN * size - share * abs(constant[row]) - noise / part.away[row]:
                best, most = row, gain
        if best != chosen[i]:
            chosen[i] = best
            changes += 1
        if update:
            x[i] += sense * most
    return changes


@njit(cache=True)
def policy_rows(part, chosen):
    """Return the rows of the policy that takes row ``chosen[i]`` of the component in state i."""
    size, most = len(chosen), 0
    for i in range(size):
        most += part.arc_start[chosen[i] + 1] - part.arc_start[chosen[i]]
    start, middle = np.empty(size + 1, dtype=np.int64), np.empty(size, dtype=np.int64)
    column, chance = np.empty(most, dtype=np.int32), np.empty(most)
    n = 0
    for i in range(size):
        start[i] = n
        first, last = part.arc_start[chosen[i]], part.arc_start[chosen[i] + 1]
        end = n + last - first
        back = end
        for j in range(first, last):
            if part.column[j] < i:
                column[n], chance[n] = part.column[j], part.chance[j]
                n += 1
            else:
                back -= 1
                column[back], chance[back] = part.column[j], part.chance[j]
        middle[i] = n
        n = end
    start[size] = n
    return Rows(start, middle, column, chance, part.leave[chosen], part.away[chosen])


@njit(cache=True)
def apply_rows(rows, x, result):
    """Fill ``result`` with ``x - sum of chance x[column]``."""
    for i in range(len(x)):
        here = x[i]
        total = rows.leave[i] * here
        for j in range(rows.start[i], rows.start[i + 1]):
            total += rows.chance[j] * (here - x[rows.column[j]])
        result[i] = total


@njit(cache=True)
def sweep_rows(rows, rhs, x):
    """Solve the rows with only the columns before the diagonal: one Gauss-Seidel pass from 0; fill ``x``."""
    for i in range(len(rhs)):
        total = rhs[i]
        for j in range(rows.start[i], rows.middle[i]):
            total += rows.chance[j] * x[rows.column[j]]
        x[i] = total


@njit(cache=True)
def apply_and_sweep(rows, x, result):
    """Fill ``result`` with what ``sweep_rows`` makes of ``apply_rows``, in one pass."""
    for i in range(len(x)):
        here = x[i]
        total = rows.leave[i] * here
        for j in range(rows.start[i], rows.middle[i]):
            total += rows.chance[j] * ((here - x[rows.column[j]]) + result[rows.column[j]])
        for j in range(rows.middle[i], rows.start[i + 1]):
            total += rows.chance[j] * (here - x[rows.column[j]])
        result[i] = total


@njit(cache=True)
def inner(a, b):
    """Return the sum of products (BLAS would start threads, which wait for each other on a busy machine)."""
    one, two, three, four = 0.0, 0.0, 0.0, 0.0
    whole = len(a) // 4 * 4
    for i in range(0, whole, 4):
        one += a[i] * b[i]
        two += a[i + 1] * b[i + 1]
        three += a[i + 2] * b[i + 2]
        four += a[i + 3] * b[i + 3]
    for i in range(whole, len(a)):
        one += a[i] * b[i]
    return (one + two) + (three + four)


class Iteration(NamedTuple):
    """Where BiCGSTAB stands."""

    x: np.ndarray  # (size,)  the solution so far
    first: np.ndarray  # (size,)  the first residual
    r: np.ndarray  # (size,)  the residual
    p: np.ndarray  # (size,)  the direction, and the product with it
    v: np.ndarray  # (size,)
    t: np.ndarray  # (size,)
    scalars: np.ndarray  # rho, alpha, omega, and the size of residual to stop at


@njit(cache=True)
def begin_iteration(rows, rhs, fraction):
    """Begin to solve the rows; stop once the residual is this fraction of what it is now."""
    size = len(rhs)
    first = np.empty(size)
    sweep_rows(rows, rhs, first)
    scalars = np.array([1.0, 1.0, 1.0, fraction * np.sqrt(inner(first, first))])
    zero = np.zeros(size)
    return Iteration(zero, first, first.copy(), zero.copy(), zero.copy(), np.empty(size), scalars)


@njit(cache=True)
def iterate_rows(rows, iteration, steps):
    """Go on with BiCGSTAB (van der Vorst 1992), preconditioned by a sweep; return whether it ended or broke down."""
    x, first, r, p, v, t, scalars = iteration
    before, alpha, omega, target = scalars
    for _ in range(steps):
        now = inner(first, r)
        if now == 0.0 or before == 0.0 or omega == 0.0:
            return True
        beta = now / before * (alpha / omega)
        for i in range(len(x)):
            p[i] = r[i] + beta * (p[i] - omega * v[i])
        apply_and_sweep(rows, p, v)
        along = inner(first, v)
        if along == 0.0:
            return True
        alpha = now / along
        for i in range(len(x)):
            r[i] -= alpha * v[i]
            x[i] += alpha * p[i]
        apply_and_sweep(rows, r, t)
        length = inner(t, t)
        if length == 0.0:
            return True
        omega = inner(t, r) / length
        for i in range(len(x)):
            x[i] += omega * r[i]
            r[i] -= omega * t[i]
        if np.sqrt(inner(r, r)) <= target:
            return True
        before = now
    scalars[0], scalars[1], scalars[2] = before, alpha, omega
    return False


@njit(cache=True)
def residual_rows(rows, rhs, x, unit):
    """Return the residuals at ``x``, and the largest part of one beyond rounding error, relative to its sum.

    Also return the largest residual before the division by the diagonal.  Both maxima are infinite where ``x`` is not
    finite.
    """
    lack = np.empty(len(x))
    excess, largest = 0.0, 0.0
    for i in range(len(x)):
        total, size = rhs[i] - rows.leave[i] * x[i], abs(rhs[i]) + rows.leave[i] * abs(x[i])
        for j in range(rows.start[i], rows.start[i + 1]):
            step = x[rows.column[j]] - x[i]
            total += rows.chance[j] * step
            size += rows.chance[j] * abs(step)
        if not np.isfinite(total):
            return lack, np.inf, np.inf
        lack[i] = total
        largest = max(largest, rows.away[i] * abs(total))
        over = abs(total) - unit * abs(x[i])
        if over > excess * size:
            excess = over / size
    return lack, excess, largest
