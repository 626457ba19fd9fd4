"""Rows are cut into parts, and arrays are copied in parts."""

import numpy as np
import pytest

from prudent.runtime.team import COPIED, GRAIN, copy_together, cut


@pytest.mark.parametrize("size", [[], [0], [3, 0, 5], [GRAIN] * 3, [GRAIN // 3] * 10, [5 * GRAIN, 1, 0, 1]])
def test_rows_are_cut_into_parts(size):
    start = np.append(0, np.cumsum(size, dtype=np.int64))
    part = cut(start)
    assert part[0] == 0
    assert part[-1] == len(size)
    assert (np.diff(part) >= 0).all()
    items = np.diff(start[part])
    assert items.sum() == start[-1]
    assert (items <= GRAIN + max(size, default=0)).all()


@pytest.mark.parametrize("threads", [1, 3])
def test_arrays_are_copied_by_all_threads(threads):
    for rows in (0, 3, 3 * COPIED // 800):
        source = np.arange(rows * 100.0).reshape(rows, 100)
        target = np.empty_like(source)
        copy_together(source, target, threads)
        assert (target == source).all()
