"""Several threads in one kernel: they draw numbers, and wait until the work before theirs is done.

Work is cut into parts, numbered in an order in which they could be done one after the other.  Each thread draws the
next number, waits for the parts that its own needs, does it, and counts it as done.  No sum depends on which thread
does a part, so results have the same bits for any number of threads.  A delayed thread delays no other for longer than
one part.

The generators that draw parts are not kept in the cache by themselves: Numba cannot compile another kernel with one
that it has read from there.

Numba's own ``prange`` is not suitable: its threading layers end the process if two threads launch loops at the same
time (workqueue), or if a process that has launched one is forked (OpenMP).
"""

import numpy as np
from numba import njit

from prudent.kernels.intrinsics import add_atomically, give_way, pause, read_atomically

DRAWN, DONE = 0, 8
"""Where the two counters are: on cache lines of their own."""

ENDED = 2**50
"""Parts done, by which all know that the work has ended early."""

SPINS = 10_000
"""Checks of a counter, some tenths of a millisecond, before a waiting thread yields its core: a busy process may then
keep the core for a hundred times as long as a part takes."""


def new_counters(*shape: int) -> np.ndarray:
    """Return the counters for one round of work, or for an array of them."""
    return np.zeros((*shape, 16), dtype=np.int64)


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def draw(counters):
    """Return the number of the next part to do."""
    return add_atomically(counters, DRAWN, 1)


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def finish(counters):
    """Count one more part as done."""
    add_atomically(counters, DONE, 1)


@njit(cache=True, nogil=True, _nrt=False)
def wait_for(counters, parts):
    """Wait until so many parts are done."""
    looks = 0
    while read_atomically(counters, DONE) < parts:
        looks += 1
        if looks < SPINS:
            pause()
        else:
            give_way()


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def end(counters):
    """End the work early: nobody waits any longer; all who did find that it has ended."""
    add_atomically(counters, DONE, ENDED)


@njit(nogil=True)
def drawn(counters, parts):
    """Yield the parts that this thread draws, out of so many."""
    while True:
        part = draw(counters)
        if part >= parts:
            return
        yield part


@njit(nogil=True)
def drawn_shares(counters, items, each):
    """Yield the first of the items that this thread draws, so many at a time, and the one after the last."""
    while True:
        first = draw(counters) * each
        if first >= items:
            return
        yield first, min(first + each, items)


@njit(nogil=True)
def drawn_in_order(counters, after):
    """Yield the parts that this thread draws, each once the first ``after[part]`` parts are done."""
    while True:
        part = draw(counters)
        if part >= len(after):
            return
        wait_for(counters, after[part])
        yield part
        finish(counters)


@njit(nogil=True)
def drawn_by_stage(counters, stages, parts):
    """Yield a stage, and the part of it that this thread draws, once all stages before it are done."""
    while True:
        number = draw(counters)
        stage = number // parts
        if stage >= stages:
            return
        wait_for(counters, stage * parts)
        if read_atomically(counters, DONE) >= ENDED:
            return
        yield stage, number % parts
        finish(counters)
