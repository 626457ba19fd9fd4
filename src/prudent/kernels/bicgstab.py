"""BiCGSTAB (van der Vorst 1992) on the rows of one policy, preconditioned by one pass of Gauss-Seidel.

An iteration is a sequence of stages, each cut into parts that several threads draw.  Sums of products are kept by part
and added up in the order of the parts, by every thread that needs them.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from prudent.kernels.indices import along
from prudent.kernels.rows import part_of, share_of
from prudent.kernels.team import draw, end, ended, finish, wait_for

NOW, ALONG, SQUARE, ACROSS, LEFT, NEXT = 0, 1, 2, 3, 4, 5
"""The sums of products: first r, first v, t t, t r; and afterwards r r and first r."""


class Iteration(NamedTuple):
    """Where BiCGSTAB stands: vectors of the size of the component, and sums of products of its iterations."""

    x: np.ndarray  # the solution so far
    first: np.ndarray  # the first residual
    r: np.ndarray  # the residual
    p: np.ndarray  # the direction, and the product with it
    v: np.ndarray
    t: np.ndarray  # the product with the residual
    sums: np.ndarray  # (iterations + 1, 6, parts)  the first row has those of the last iteration before


@njit(cache=True, nogil=True, _nrt=False)
def total(sums):
    """Return the sum over all parts."""
    found = 0.0
    for i in range(len(sums)):
        found += sums[i]
    return found


@njit(cache=True, nogil=True, _nrt=False)
def ratio(sums, above, below):
    """Return the ratio of two sums, 0 if the second one is."""
    under = total(sums[below])
    return total(sums[above]) / under if under != 0.0 else 0.0


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def apply_and_sweep(rows, i, x, result):
    """Fill in row i of the result of a Gauss-Seidel pass for the product with ``x``."""
    here = x[i]
    found = rows.leave[i] * here
    for j in along(rows.start[i], rows.middle[i]):
        found += rows.chance[j] * ((here - x[rows.column[j]]) + result[rows.column[j]])
    for j in along(rows.middle[i], rows.start[i + 1]):
        found += rows.chance[j] * (here - x[rows.column[j]])
    result[i] = found


@njit(cache=True, nogil=True)
def iterate_rows(counters, cut, rows, iteration, steps, target):
    """Continue for this many steps, until the squared residual is at most ``target``, or until it breaks down.

    An iteration has stages for the direction, the product with it, phase by phase, the residual, the product with that,
    and the solution.
    """
    x, first, r, p, v, t, sums = iteration
    phases = len(cut.phase_start) - 1
    stages = 2 * phases + 3
    while True:
        number = draw(counters)
        stage, part = number // cut.parts, number % cut.parts
        step, stage = 1 + stage // stages, stage % stages
        if step > steps:
            return
        wait_for(counters, number - part)
        if ended(counters):
            return
        last, here = sums[step - 1], sums[step]
        if stage == 0:
            before, now, omega = total(last[NOW]), total(last[NEXT]), ratio(last, ACROSS, SQUARE)
            if now == 0.0 or before == 0.0 or omega == 0.0 or total(last[LEFT]) <= target:
                end(counters)
                return
            beta = now / before * (ratio(last, NOW, ALONG) / omega)
            begin, stop = share_of(cut, part)
            for i in range(begin, stop):
                p[i] = r[i] + beta * (p[i] - omega * v[i])
            here[NOW, part] = last[NEXT, part]
        elif stage <= phases:
            begin, stop = part_of(cut, stage - 1, part)
            along = 0.0
            for i in range(begin, stop):
                apply_and_sweep(rows, i, p, v)
                along += first[i] * v[i]
            here[ALONG, part] += along
        elif stage == phases + 1:
            alpha = ratio(here, NOW, ALONG)
            if alpha == 0.0:
                end(counters)
                return
            begin, stop = share_of(cut, part)
            for i in range(begin, stop):
                r[i] -= alpha * v[i]
        elif stage < stages - 1:
            begin, stop = part_of(cut, stage - phases - 2, part)
            square, across = 0.0, 0.0
            for i in range(begin, stop):
                apply_and_sweep(rows, i, r, t)
                square += t[i] * t[i]
                across += t[i] * r[i]
            here[SQUARE, part] += square
            here[ACROSS, part] += across
        else:
            alpha, omega = ratio(here, NOW, ALONG), ratio(here, ACROSS, SQUARE)
            begin, stop = share_of(cut, part)
            left, along = 0.0, 0.0
            for i in range(begin, stop):
                x[i] = (x[i] + alpha * p[i]) + omega * r[i]
                r[i] -= omega * t[i]
                left += r[i] * r[i]
                along += first[i] * r[i]
            here[LEFT, part], here[NEXT, part] = left, along
        finish(counters)
