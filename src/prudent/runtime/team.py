"""Threads that work side by side on one kernel call each."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from prudent.runtime.limits import threads_in_force

__all__ = ["lanes_for", "side_by_side"]

SHARE = 100_000
"""The least work of one thread, in outcomes: about what takes as long as starting it."""


def lanes_for(work: float) -> int:
    """Return how many threads share work, counted in outcomes: as many as are allowed, unless each had too little."""
    return max(min(threads_in_force(), int(work / SHARE)), 1)


def side_by_side(lanes: int, work: Callable[[int], None]) -> None:
    """Call ``work`` with each lane from 0 up, in so many threads at once.

    None begins before all threads are there: lanes may wait for each other.
    """
    if lanes == 1:
        work(0)
        return
    gate = Barrier(lanes)

    def run(lane: int) -> None:
        gate.wait()
        work(lane)

    with ThreadPoolExecutor(lanes - 1, thread_name_prefix="prudent") as pool:
        try:
            others = [pool.submit(run, lane) for lane in range(1, lanes)]
        except BaseException:  # the system has no more threads
            gate.abort()
            raise
        run(0)
        for each in others:
            each.result()
