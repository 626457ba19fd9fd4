"""The equations of one policy in one large component, as rows, and ways to solve them.

:mod:`prudent.engine.values.large_components` says which way is used when.
"""

from typing import NamedTuple

import numpy as np
from numba import njit


class Rows(NamedTuple):
    """The equations of one policy in a block, ``x = rhs + sum of chance x[column]``, each divided by its diagonal.

    ``leave`` is 1 minus the sum of a row's chances, computed as the probability of leaving the block.  With it, the
    products below are summed from differences, and so keep their digits where the block is hardly ever left.
    """

    start: np.ndarray  # (size + 1,)
    column: np.ndarray  # (n,)
    chance: np.ndarray  # (n,)
    leave: np.ndarray  # (size,)
    away: np.ndarray  # (size,)  the diagonals: the probabilities of moving on from each state


@njit(cache=True)
def policy_rows(arcs, first, last, order, choice):
    """Return the rows of a block's policy, with states in the given order (positions in the block)."""
    size = last - first
    rank = np.empty(size, dtype=np.int64)
    most = 0
    for i in range(size):
        rank[order[i]] = i
        a = choice[arcs.block_state[first + i]]
        most += arcs.inner_stop[a] - arcs.inner_start[a]
    start = np.empty(size + 1, dtype=np.int64)
    column, chance = np.empty(most, dtype=np.int32), np.empty(most)
    leave, away = np.empty(size), np.empty(size)
    n = 0
    for i in range(size):
        start[i] = n
        s = arcs.block_state[first + order[i]]
        a = choice[s]
        gone, moved = arcs.leave[a], 0.0
        for o in range(arcs.inner_start[a], arcs.inner_stop[a]):
            t = arcs.successor[o]
            j = arcs.rank[t]
            if t == s:
                continue
            if j < size and arcs.block_state[first + j] == t:
                column[n] = rank[j]
                chance[n] = arcs.probability[o]
                moved += arcs.probability[o]
                n += 1
            else:
                gone += arcs.probability[o]
        away[i] = gone + moved
        scale = 1.0 / away[i] if away[i] > 0.0 else 0.0
        leave[i] = gone * scale
        for j in range(start[i], n):
            chance[j] *= scale
    start[size] = n
    return Rows(start, column[:n].copy(), chance[:n].copy(), leave, away)


@njit(cache=True)
def policy_constants(arcs, first, last, order, k, choice, value):
    """Return the constants of a policy's equations: the costs of its actions, plus values outside the block."""
    size = last - first
    rhs = np.empty(size)
    for i in range(size):
        a = choice[arcs.block_state[first + order[i]]]
        rhs[i] = k[a]
        for o in range(arcs.inner_start[a], arcs.inner_stop[a]):
            t = arcs.successor[o]
            j = arcs.rank[t]
            if not (j < size and arcs.block_state[first + j] == t):
                rhs[i] += arcs.probability[o] * value[t]
    return rhs


@njit(cache=True)
def apply_rows(rows, x):
    """Return ``x - sum of chance x[column]``."""
    result = np.empty(len(x))
    for i in range(len(x)):
        total = rows.leave[i] * x[i]
        for j in range(rows.start[i], rows.start[i + 1]):
            total += rows.chance[j] * (x[i] - x[rows.column[j]])
        result[i] = total
    return result


@njit(cache=True)
def sweep_rows(rows, rhs):
    """Solve the rows with only the columns before the diagonal: one Gauss-Seidel pass from 0."""
    x = np.empty(len(rhs))
    for i in range(len(rhs)):
        total = rhs[i]
        for j in range(rows.start[i], rows.start[i + 1]):
            if rows.column[j] < i:
                total += rows.chance[j] * x[rows.column[j]]
        x[i] = total
    return x


@njit(cache=True)
def inner(a, b):
    """Return the sum of products (BLAS would start threads, which wait for each other on a busy machine)."""
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@njit(cache=True)
def iterate_rows(rows, rhs, fraction, most):
    """Solve the rows by BiCGSTAB (van der Vorst 1992), preconditioned by a sweep.

    Stops once the residual is this fraction of what it was, after ``most`` steps, or when the method breaks down.
    """
    target = fraction * np.sqrt(inner(rhs, rhs))
    x, r, p, v = np.zeros(len(rhs)), rhs.copy(), np.zeros(len(rhs)), np.zeros(len(rhs))
    before, alpha, omega = 1.0, 1.0, 1.0
    for _ in range(most):
        now = inner(rhs, r)
        if now == 0.0 or before == 0.0 or omega == 0.0:
            break
        beta = now / before * (alpha / omega)
        p = r + beta * (p - omega * v)
        y = sweep_rows(rows, p)
        v = apply_rows(rows, y)
        along = inner(rhs, v)
        if along == 0.0:
            break
        alpha = now / along
        r = r - alpha * v
        x += alpha * y
        if np.sqrt(inner(r, r)) <= target:
            break
        z = sweep_rows(rows, r)
        t = apply_rows(rows, z)
        length = inner(t, t)
        if length == 0.0:
            break
        omega = inner(t, r) / length
        x += omega * z
        r = r - omega * t
        if np.sqrt(inner(r, r)) <= target:
            break
        before = now
    return x


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


@njit(cache=True, error_model="numpy")
def eliminate_rows(rows, rank, width):
    """Eliminate states from the last rank to the first, as ``eliminate`` does, in a band of arcs up to ``width`` long.

    Returns the band, which has the arc from i to j at ``[i, j - i + width]``, and ``stay`` as ``eliminate`` does.
    """
    size = len(rank)
    band, out, stay = np.zeros((size, 2 * width + 1)), np.empty(size), np.empty(size)
    for i in range(size):
        out[rank[i]] = rows.leave[i]
        for o in range(rows.start[i], rows.start[i + 1]):
            band[rank[i], rank[rows.column[o]] - rank[i] + width] += rows.chance[o]
    for n in range(size - 1, -1, -1):
        low = max(0, n - width)
        row = band[n, low - n + width : width]
        total = out[n] + row.sum()
        stay[n] = total
        for i in range(low, n):
            f = band[i, n - i + width]
            if f > 0.0:
                f /= total
                band[i, n - i + width] = f
                band[i, low - i + width : n - i + width] += f * row
                out[i] += f * out[n]
    return band, stay


@njit(cache=True, error_model="numpy")
def substitute_rows(band, stay, rank, width, rhs):
    """Solve the eliminated rows for one right-hand side."""
    size = len(rank)
    x = np.empty(size)
    x[rank] = rhs
    for n in range(size - 1, -1, -1):
        for i in range(max(0, n - width), n):
            x[i] += band[i, n - i + width] * x[n]
    for n in range(size):
        total = x[n]
        for j in range(max(0, n - width), n):
            total += band[n, j - n + width] * x[j]
        x[n] = total / stay[n]
    return x[rank]
