"""BiCGSTAB (van der Vorst 1992) on the rows of one policy, preconditioned by one pass of Gauss-Seidel."""

from typing import NamedTuple

import numpy as np
from numba import njit

from prudent.kernels.indices import along


class Iteration(NamedTuple):
    """Where BiCGSTAB stands: vectors of the size of the component, and the numbers of its last step."""

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
        for j in along(rows.arc_start[i], rows.arc_start[i + 1]):
            total += rows.chance[j] * x[rows.column[j]]
        x[i] = total


@njit(cache=True)
def apply_and_sweep(rows, x, result):
    """Fill ``result`` with a pass of Gauss-Seidel for the product of the equations with ``x``."""
    result[:] = 0.0
    for i in range(len(x)):
        here = x[i]
        total = rows.leave[i] * here
        for j in along(rows.arc_start[i], rows.arc_start[i + 1]):
            total += rows.chance[j] * ((here - x[rows.column[j]]) + result[rows.column[j]])
        result[i] = total


@njit(cache=True)
def iterate_rows(rows, iteration, steps, target):
    """Continue for this many steps; return whether to go on: not once the squared residual is at most ``target``.

    Nor if the iteration breaks down.
    """
    x, first, r, p, v, t, last = iteration
    for _ in range(steps):
        before, alpha, omega = last[0], last[1], last[2]
        now = 0.0
        for i in range(len(x)):
            now += first[i] * r[i]
        if now == 0.0 or before == 0.0 or omega == 0.0:
            return False
        beta = now / before * (alpha / omega)
        for i in range(len(x)):
            p[i] = r[i] + beta * (p[i] - omega * v[i])
        apply_and_sweep(rows, p, v)
        along_v = 0.0
        for i in range(len(x)):
            along_v += first[i] * v[i]
        if along_v == 0.0:
            return False
        alpha = now / along_v
        for i in range(len(x)):
            r[i] -= alpha * v[i]
        apply_and_sweep(rows, r, t)
        square, across = 0.0, 0.0
        for i in range(len(x)):
            square += t[i] * t[i]
            across += t[i] * r[i]
        omega = across / square if square != 0.0 else 0.0
        left = 0.0
        for i in range(len(x)):
            x[i] += alpha * p[i] + omega * r[i]
            r[i] -= omega * t[i]
            left += r[i] * r[i]
        last[0], last[1], last[2] = now, alpha, omega
        if left <= target:
            return False
    return True
