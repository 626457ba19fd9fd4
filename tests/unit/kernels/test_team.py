"""Threads that draw parts of one piece of work."""

from threading import Barrier, get_ident

import numpy as np
import pytest
from numba import njit

from prudent.kernels.intrinsics import lower_atomically
from prudent.kernels.team import draw, end, finish, new_counters, wait_for
from prudent.runtime.team import side_by_side


@njit(nogil=True)
def smooth(counters, parts, rounds, values):
    """Average neighbours, round after round; a round reads what the one before wrote, in all parts."""
    size = values.shape[1] // parts
    while True:
        number = draw(counters)
        if number >= parts * rounds:
            return
        turn = number // parts
        wait_for(counters, turn * parts)
        for i in range(number % parts * size, (number % parts + 1) * size):
            values[1 - turn % 2, i] = 0.5 * (values[turn % 2, i] + values[turn % 2, (i + size) % values.shape[1]])
        finish(counters)


@pytest.mark.parametrize("lanes", [1, 2, 5])
def test_parts_wait_for_the_round_before(lanes: int) -> None:
    values = np.random.default_rng(0).random((2, 240))
    expected = values[0].copy()
    for _ in range(101):
        expected = 0.5 * (expected + np.roll(expected, -30))
    counters = new_counters()
    side_by_side(lanes, lambda lane: smooth(counters, 8, 101, values))
    assert (values[1] == expected).all()


@njit(nogil=True)
def lower(counters, places, values, least):
    """Lower places to values; whoever draws a number beyond the last one waits until the work is ended."""
    while True:
        number = draw(counters)
        if number > len(values):
            wait_for(counters, 2 * len(values))
            return
        if number == len(values):
            wait_for(counters, len(values))
            end(counters)
            return
        lower_atomically(least, places[number], values[number])
        finish(counters)


@pytest.mark.parametrize("lanes", [1, 4])
def test_places_are_lowered_by_all_lanes(lanes: int) -> None:
    rng = np.random.default_rng(0)
    places, values, least = rng.integers(0, 5, 10_000), rng.integers(0, 2**40, 10_000), np.full(5, 2**50)
    counters = new_counters()
    side_by_side(lanes, lambda lane: lower(counters, places, values, least))
    assert least.tolist() == [values[places == each].min() for each in range(5)]


def test_what_one_lane_raises_is_raised() -> None:
    def work(lane: int) -> None:
        if lane == 1:
            raise ValueError("lane 1")

    with pytest.raises(ValueError, match="lane 1"):
        side_by_side(2, work)


def test_no_lane_begins_if_a_thread_cannot_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []
    monkeypatch.setattr("prudent.runtime.team._idle", [])
    monkeypatch.setattr("threading.Thread.start", _refuse)
    with pytest.raises(RuntimeError, match="no more threads"):
        side_by_side(3, begun.append)
    assert begun == []


def test_threads_are_kept_for_more_work() -> None:
    names = [set(_seen(3)) for _ in range(20)]
    assert len(set.union(*names)) == 3


def test_threads_may_have_threads_of_their_own() -> None:
    done: list[int] = []
    side_by_side(3, lambda lane: side_by_side(3, done.append))
    assert sorted(done) == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def _seen(lanes: int) -> list[int]:
    """Return the threads that lanes run in."""
    found: list[int] = []
    gate = Barrier(lanes)

    def work(lane: int) -> None:
        gate.wait()
        found.append(get_ident())

    side_by_side(lanes, work)
    return found


def _refuse(self: object) -> None:
    raise RuntimeError("no more threads")
