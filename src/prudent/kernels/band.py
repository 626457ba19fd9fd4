"""Elimination of the rows of one policy inside a band of short arcs, with a border for hubs, which have many."""

from typing import NamedTuple

import numpy as np
from numba import njit


@njit(cache=True)
def surely_wide(rows, most):
    """Return whether a band and its border, together at most this wide, surely cannot hold all arcs.

    This is so if more than this many longer arcs share no state: each would need a hub of its own.
    """
    met, found = np.empty(2 * most + 2, dtype=np.int64), 0
    for i in range(len(rows.leave)):
        for o in range(rows.arc_start[i], rows.arc_stop[i]):
            j = np.int64(rows.column[o])
            if abs(i - j) <= most or (met[:found] == i).any() or (met[:found] == j).any():
                continue
            met[found], met[found + 1] = i, j
            found += 2
            if found == len(met):
                return True
    return False


@njit(cache=True)
def hubs_of(rows):
    """Return which states have many arcs, and the length of the longest arc between others."""
    size = len(rows.leave)
    degree = rows.arc_stop - rows.arc_start[:-1]
    for i in range(size):
        for j in rows.column[rows.arc_start[i] : rows.arc_stop[i]]:
            degree[j] += 1
    hub = degree > max(64, 4 * int(size**0.5))
    width = np.int64(0)
    for i in range(size):
        if not hub[i]:
            for j in range(rows.arc_start[i], rows.arc_stop[i]):
                if not hub[rows.column[j]]:
                    width = max(width, abs(i - np.int64(rows.column[j])))
    return hub, width


class Factors(NamedTuple):
    """Rows after elimination, states by rank: first the hubs, then the others, with arcs up to ``width`` long."""

    hub: np.ndarray  # (n_hubs, size)  the arcs of hubs
    band: np.ndarray  # (size, n_hubs + 2 width + 1)  the others' arcs to hubs, then those from i to j at j - i + width
    stay: np.ndarray  # (size,)  as in ``eliminate``


@njit(cache=True, error_model="numpy")
def eliminate_rows(rows, rank, width, n_hubs):
    """Eliminate states from the last rank to the first, as ``eliminate`` does, inside a band and a border of hubs."""
    size, middle = len(rank), n_hubs + width
    hub, band = np.zeros((n_hubs, size)), np.zeros((size, middle + width + 1))
    out, stay = np.empty(size), np.empty(size)
    for i in range(size):
        n = rank[i]
        out[n] = rows.leave[i]
        for o in range(rows.arc_start[i], rows.arc_stop[i]):
            to = rank[rows.column[o]]
            if n < n_hubs:
                hub[n, to] += rows.chance[o]
            else:
                band[n, to if to < n_hubs else to - n + middle] += rows.chance[o]
    for n in range(size - 1, -1, -1):
        low = min(max(n_hubs, n - width), n)
        if n < n_hubs:
            row, border = hub[n, low:n], hub[n, :n]
        else:
            row, border = band[n, low - n + middle : middle], band[n, :n_hubs]
        total = out[n] + row.sum() + border.sum()
        stay[n] = total
        for i in range(low, n):
            f = band[i, n - i + middle]
            if f > 0.0:
                f /= total
                band[i, n - i + middle] = f
                band[i, low - i + middle : n - i + middle] += f * row
                band[i, :n_hubs] += f * border
                out[i] += f * out[n]
        for i in range(min(n, n_hubs)):
            f = hub[i, n]
            if f > 0.0:
                f /= total
                hub[i, n] = f
                hub[i, low:n] += f * row
                hub[i, : len(border)] += f * border
                out[i] += f * out[n]
    return Factors(hub, band, stay)


@njit(cache=True, error_model="numpy")
def substitute_rows(factors, rank, width, rhs):
    """Solve the eliminated rows for one right-hand side."""
    hub, band, stay = factors
    size, n_hubs = len(rank), len(hub)
    middle = n_hubs + width
    x = np.empty(size)
    x[rank] = rhs
    for n in range(size - 1, 0, -1):
        for i in range(max(n_hubs, n - width), n):
            x[i] += band[i, n - i + middle] * x[n]
        for i in range(min(n, n_hubs)):
            x[i] += hub[i, n] * x[n]
    for n in range(size):
        total = x[n]
        if n < n_hubs:
            for j in range(n):
                total += hub[n, j] * x[j]
        else:
            for j in range(n_hubs):
                total += band[n, j] * x[j]
            for j in range(max(n_hubs, n - width), n):
                total += band[n, j - n + middle] * x[j]
        x[n] = total / stay[n]
    return x[rank]
