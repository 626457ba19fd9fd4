"""Threads that draw parts of one piece of work."""

import numpy as np
import pytest
from numba import njit

from prudent.kernels.team import draw, finish, new_counters, wait_for
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


def test_what_one_lane_raises_is_raised() -> None:
    def work(lane: int) -> None:
        if lane == 1:
            raise ValueError("lane 1")

    with pytest.raises(ValueError, match="lane 1"):
        side_by_side(2, work)


def test_no_lane_begins_if_a_thread_cannot_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []
    monkeypatch.setattr("concurrent.futures.thread.threading.Thread.start", _refuse)
    with pytest.raises(RuntimeError, match="no more threads"):
        side_by_side(3, begun.append)
    assert begun == []


def _refuse(self: object) -> None:
    raise RuntimeError("no more threads")
