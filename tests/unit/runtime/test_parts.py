"""Rows are cut into parts."""

import numpy as np
import pytest

from prudent.runtime.team import GRAIN, cut


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
