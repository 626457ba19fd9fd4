"""Rows that share room."""

import numpy as np
import pytest

from prudent.engine.room import shared_room


def test_a_row_takes_the_place_of_one_that_is_gone():
    size, born, gone = np.array([5, 3, 4, 2]), np.array([0, 1, 2, 3]), np.array([1, 3, 2, 3])
    row, room = shared_room(size, born, gone, 10)
    assert row.tolist() == [10, 15, 10, 10]
    assert room == 18


@pytest.mark.parametrize("seed", range(20))
def test_no_two_rows_are_in_one_place_at_once(seed):
    rng = np.random.default_rng(seed)
    n = 40
    size, born = rng.integers(0, 9, n), rng.integers(0, 30, n)
    gone = born + rng.integers(0, 10, n)
    row, room = shared_room(size, born, gone)
    assert room <= size.sum()
    for i in range(n):
        assert 0 <= row[i] and row[i] + size[i] <= room
        for j in range(i):
            if born[i] <= gone[j] and born[j] <= gone[i] and size[i] and size[j]:
                assert row[i] + size[i] <= row[j] or row[j] + size[j] <= row[i]
