"""The equations of one large component as compact rows, of all actions or of one policy; BiCGSTAB on those of a policy.

:mod:`prudent.engine.values.large_components` describes how they are solved.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from prudent.kernels.blocks import SHARE
from prudent.kernels.indices import along
from prudent.kernels.team import drawn, drawn_shares


class Component(NamedTuple):
    """The equations of all actions in a component, or of a policy's, each divided by its diagonal.

    ``x(s) = min over a of  constant(a) + sum of chance x[column]``, states numbered by their position in the
    component.  The diagonal, ``away``, is the probability of moving on.  ``leave`` is 1 minus the sum of an action's
    chances, computed as the probability of leaving the component.  With it, sums are over *differences* of values, and
    so keep their digits where the component is hardly ever left and all values are almost equal.

    A row has room for all outcomes of its action: first come the inner columns, up to ``arc_stop``; successors outside
    the component, numbered as in the model and with chances that are not divided, come last.
    """

    action_start: np.ndarray  # (size + 1,)  the rows of each state
    action: np.ndarray  # (n_rows,)
    arc_start: np.ndarray  # (n_rows + 1,)
    arc_stop: np.ndarray  # (n_rows,)
    column: np.ndarray  # (n_arcs,)
    chance: np.ndarray  # (n_arcs,)
    leave: np.ndarray  # (n_rows,)
    away: np.ndarray  # (n_rows,)


@njit(cache=True, nogil=True)
def fill_component(counters, arcs, first, last, component):
    """Fill in the rows of the block with states ``first:last``."""
    action_start, action, arc_start, arc_stop, column, chance, leave, away = component
    block_state, rank, successor, probability = arcs.block_state, arcs.rank, arcs.successor, arcs.probability
    size = last - first
    for begin, end in drawn_shares(counters, size, SHARE):
        for i in range(begin, end):
            s = block_state[first + i]
            for row in range(action_start[i], action_start[i + 1]):
                a = action[row]
                front, back = arc_start[row], arc_start[row + 1]
                gone, moved = arcs.leave[a], 0.0
                for o in range(arcs.inner_start[a], arcs.inner_stop[a]):
                    t, p = successor[o], probability[o]
                    j = rank[t] - first
                    if t == s:
                        back -= 1
                        column[back], chance[back] = t, 0.0
                    elif 0 <= j < size:
                        column[front], chance[front] = j, p
                        moved += p
                        front += 1
                    else:
                        back -= 1
                        column[back], chance[back] = t, p
                        gone += p
                arc_stop[row], away[row] = front, gone + moved
                scale = 1.0 / away[row] if away[row] > 0.0 else 0.0
                leave[row] = gone * scale
                for j in range(arc_start[row], front):
                    chance[j] *= scale


@njit(cache=True, nogil=True)
def fill_constants(counters, component, k, value, constant):
    """Fill in the constants of all equations: the costs of the actions, plus values outside, divided by diagonals.

    They are infinite where an action never moves on.
    """
    _, action, arc_start, arc_stop, column, chance, _, away = component
    for begin, end in drawn_shares(counters, len(action), SHARE):
        for row in range(begin, end):
            total = k[action[row]]
            for j in range(arc_stop[row], arc_start[row + 1]):
                total += chance[j] * value[column[j]]
            constant[row] = total / away[row] if away[row] > 0.0 else np.inf


@njit(cache=True, nogil=True)
def fill_residuals(counters, rows, rhs, x, unit, lack, worst):
    """Fill in a policy's residuals at ``x``, and for each share two maxima, infinite where ``x`` is not finite.

    They are the largest part of a residual beyond rounding error, relative to its sum; and the largest residual before
    the division by the diagonal.
    """
    _, _, start, stop, column, chance, leave, away = rows
    for share in drawn(counters, worst.shape[1]):
        excess, largest = 0.0, 0.0
        for i in range(share * SHARE, min((share + 1) * SHARE, len(x))):
            here = x[i]
            total, size = rhs[i] - leave[i] * here, abs(rhs[i]) + leave[i] * abs(here)
            for j in along(start[i], stop[i]):
                step = x[column[j]] - here
                total += chance[j] * step
                size += chance[j] * abs(step)
            if not np.isfinite(total):
                excess, largest = np.inf, np.inf
                break
            lack[i] = total
            largest = max(largest, away[i] * abs(total))
            over = abs(total) - unit * abs(here)
            if over > excess * size:
                excess = over / size
        worst[0, share], worst[1, share] = excess, largest


class Iteration(NamedTuple):
    """Where BiCGSTAB (van der Vorst 1992) stands: vectors of the component's size, and the numbers of its last step."""

    x: np.ndarray  # the solution so far
    first: np.ndarray  # the first residual
    r: np.ndarray  # the residual
    p: np.ndarray  # the direction, and the product with it
    v: np.ndarray
    t: np.ndarray  # the product with the residual
    last: np.ndarray  # (3,)  the product of first and r, alpha and omega


@njit(cache=True)
def sweep_rows(rows, rhs, x):
    """Solve the rows with only the columns of the states before, from 0: one pass of Gauss-Seidel; fill ``x``."""
    x[:] = 0.0  # also where the columns of later states are read
    for i in range(len(x)):
        total = rhs[i]
        for j in along(rows.arc_start[i], rows.arc_stop[i]):
            total += rows.chance[j] * x[rows.column[j]]
        x[i] = total


@njit(cache=True)
def apply_and_sweep(rows, x, result):
    """Fill ``result`` with a pass of Gauss-Seidel for the product of the equations with ``x``."""
    result[:] = 0.0
    for i in range(len(x)):
        here = x[i]
        total = rows.leave[i] * here
        for j in along(rows.arc_start[i], rows.arc_stop[i]):
            total += rows.chance[j] * ((here - x[rows.column[j]]) + result[rows.column[j]])
        result[i] = total


@njit(cache=True)
def iterate_rows(rows, iteration, steps, target):
    """Continue for this many steps; return whether to go on: not once the squared residual is at most ``target``.

    Nor if the iteration breaks down.
    """
    x, first, r, p, v, t, last = iteration
    for _ in range(steps):
        before, alpha, omega = last
        now = (first * r).sum()
        if now == 0.0 or before == 0.0 or omega == 0.0:
            return False
        p[:] = r + now / before * (alpha / omega) * (p - omega * v)
        apply_and_sweep(rows, p, v)
        along_v = (first * v).sum()
        if along_v == 0.0:
            return False
        alpha = now / along_v
        r -= alpha * v
        apply_and_sweep(rows, r, t)
        square = (t * t).sum()
        omega = (t * r).sum() / square if square != 0.0 else 0.0
        x += alpha * p + omega * r
        r -= omega * t
        last[0], last[1], last[2] = now, alpha, omega
        if (r * r).sum() <= target:
            return False
    return True
