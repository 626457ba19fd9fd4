"""Levels that nodes hand on from tile to tile."""

import numpy as np
import pytest

from prudent.kernels.stretches import hand_on, take_over


@pytest.mark.parametrize("kept", [1, 4, 7, 20])
@pytest.mark.parametrize("block", [1, 3, 20])
@pytest.mark.parametrize("tile", [1, 3, 7, 18])
@pytest.mark.parametrize("delay", [0, 9])
@pytest.mark.parametrize("back", [20, 2])
def test_strips_take_over_and_hand_on_in_any_order(kept, block, tile, delay, back):
    """Threads settle strips at the same time: none may hand on to a place that another has yet to take over from."""
    rng, n = np.random.default_rng([kept, tile, delay]), 60
    blocks, span = -(-kept // block), 3 * block  # of three nodes, this one in the middle
    levels, before, ring = rng.random(n), np.zeros(blocks * span), (kept, block, span)
    for first in range(1, n - tile + 1, tile):
        last = first + tile
        table = np.zeros(n)
        table[first:last] = levels[first:last]
        for begin in rng.permutation(np.arange(first, last, 5)).tolist():
            end = min(begin + 5, last)
            take_over(table, delay, delay, back, ring, before, block, first, last, begin, end)
            hand_on(table, delay, delay, back, ring, before, block, last, begin, end)
        seen = slice(max(first - min(kept, back), delay + 1), last)
        assert (table[seen] == levels[seen]).all()
        assert not table[: max(first - back, 0)].any()  # nobody looks there
        assert not before.reshape(blocks, 3, block)[:, [0, 2]].any()
