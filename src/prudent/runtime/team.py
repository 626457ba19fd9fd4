"""Threads that work in parallel on one kernel call each."""

import os
import sys
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.kernels.team import new_counters

GRAIN = 2**14
"""Items in a part: about ten microseconds of work."""

COPIED = 2**20
"""The fewest bytes for which a thread is started to copy them."""

SHARE = 100_000
"""The fewest items for which a thread is started: a few times the cost of starting it."""


class _Hand:
    """A thread that waits for work and is kept for more: starting one takes longer than many kernels."""

    def __init__(self) -> None:
        self.jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
        Thread(target=self._work, name="prudent", daemon=True).start()

    def _work(self) -> None:
        while True:
            self.jobs.get()()


_idle: list[_Hand] = []

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _idle.clear())  # a child has none of its parent's threads


def side_by_side(lanes: int, work: Callable[[int], None]) -> None:
    """Call ``work`` with each lane from 0 up, in as many threads as there are lanes.

    No lane begins before all threads are ready: lanes may wait for each other.
    """
    if lanes == 1:
        work(0)
        return
    hands, done = _taken(lanes - 1), SimpleQueue[BaseException | None]()

    def run(lane: int) -> None:
        try:
            work(lane)
        except BaseException as error:
            done.put(error)
        else:
            done.put(None)

    for lane, hand in enumerate(hands, 1):
        hand.jobs.put(partial(run, lane))
    try:
        work(0)
    finally:
        raised = [error for _ in hands if (error := done.get()) is not None]
        _idle.extend(hands)
    if raised:
        raise raised[0]


def cut(start: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where to cut rows, which begin at ``start``, into parts of about ``GRAIN`` items."""
    rows, items = len(start) - 1, int(start[-1])
    if items <= GRAIN:
        return np.array([0, rows])
    inside = np.searchsorted(start, np.arange(GRAIN, items, GRAIN))
    return np.unique(np.concatenate([[0], inside, [rows]]))


def in_parts(
    threads: int, kernel: Callable[..., None], items: float, *arguments: object, most: int = sys.maxsize
) -> None:
    """Let up to so many threads draw the parts of a kernel's work: as many as the items are worth.

    ``most`` is the number of parts that can be done at the same time, if parts wait for others: more threads would
    wait.
    """
    counters = new_counters()
    lanes = max(min(threads, int(items / SHARE), most), 1)
    side_by_side(lanes, lambda lane: kernel(counters, *arguments))


def copy_together(source: NDArray[Any], target: NDArray[Any], threads: int) -> None:
    """Copy a contiguous array to another, with as many threads as it is worth.

    If the target's memory is new, taking it is slower than copying, and threads take it in parallel.
    """
    lanes = max(min(threads, target.nbytes // COPIED), 1)
    parts, copies = (np.array_split(array.reshape(-1), lanes) for array in (source, target))
    side_by_side(lanes, lambda lane: np.copyto(copies[lane], parts[lane], casting="unsafe"))


def _taken(number: int) -> list[_Hand]:
    """Return this many idle threads, new ones if need be."""
    hands: list[_Hand] = []
    try:
        while len(hands) < number:
            try:
                hands.append(_idle.pop())
            except IndexError:
                hands.append(_Hand())
    except BaseException:  # the system has no more threads
        _idle.extend(hands)
        raise
    return hands
