"""Laying a model out for a sweep level by level: the order of states, and places cut into parts."""

import numpy as np
from numba import njit


@njit(cache=True)
def cut(section_start, alone, work, size):
    """Cut places into parts of about the same ``work``, a running total; return their starts and what each needs.

    Sections follow each other: those that need not be left whole (not ``alone``) are cut where they have twice the
    work.  A part needs all parts of the sections before its own.  Small sections in a row make one part.
    """
    start, needed = np.empty(len(work), dtype=np.int64), np.empty(len(work), dtype=np.int64)
    count = 0
    open_since = -1  # where a part of small sections begins
    for i in range(len(alone)):
        begin, end = section_start[i], section_start[i + 1]
        total = work[end] - work[begin]
        small = not alone[i] and total < 2 * size
        if small and open_since >= 0 and work[end] - work[open_since] < 2 * size:
            continue
        before = count
        start[count], needed[count] = begin, before
        count += 1
        open_since = begin if small else -1
        if not small and not alone[i]:
            at = begin
            for s in range(begin + 1, end):
                if work[s] - work[at] >= size and work[end] - work[s] >= size // 2:
                    start[count], needed[count] = s, before
                    count += 1
                    at = s
    start[count] = section_start[-1]
    return start[: count + 1].copy(), needed[:count].copy()


@njit(cache=True)
def breadth_first(arc_start, successor, start, most, order):
    """Fill ``order`` with up to ``most`` states in breadth-first order from the start; return how many there are."""
    n = len(arc_start) - 1
    seen = np.zeros(n, dtype=np.bool_)
    order[0], seen[start] = start, True
    head, tail = 0, 1
    while head < tail:
        s = order[head]
        head += 1
        for o in range(arc_start[s], arc_start[s + 1]):
            t = successor[o]
            if not seen[t] and tail < most:
                seen[t] = True
                order[tail] = t
                tail += 1
    return tail
