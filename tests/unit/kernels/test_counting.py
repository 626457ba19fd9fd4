"""Passes over all outcomes, in parts."""

from itertools import pairwise

import numpy as np
import pytest

from prudent.engine.cost_step import common_divisor
from prudent.kernels.counting import PART, close_gaps, sort_rows, whole_numbers
from prudent.kernels.team import new_counters
from prudent.models.rows import read_only


def merged(cost, successor, probability):
    """Return one action's outcomes sorted, those that agree in cost and successor merged."""
    found: dict[tuple[int, int], float] = {}
    for key, chance in zip(zip(cost.tolist(), successor.tolist(), strict=True), probability.tolist(), strict=True):
        found[key] = found[key] + chance if key in found else chance
    keys = sorted(found)
    return [c for c, _ in keys], [t for _, t in keys], [found[key] for key in keys]


@pytest.mark.parametrize("size", [1, 2, 31, 32, 33, 500])
@pytest.mark.parametrize("unit", [1, 2**40])
def test_rows_are_sorted_and_merged(size, unit):
    rng = np.random.default_rng(size)
    start = np.array([0, size, size, 3 * size])
    cost, successor = unit * rng.integers(0, 5, 3 * size), rng.integers(0, 5, 3 * size)
    probability = rng.random(3 * size)
    wanted = [merged(cost[i:j], successor[i:j], probability[i:j]) for i, j in pairwise(start)]
    into = np.empty(3 * size)
    length, free = np.empty(3, dtype=np.int64), np.empty(3, dtype=np.int64)
    given = read_only(probability), (cost, successor, into)
    sort_rows(new_counters(), np.array([0, 1, 3]), start, 2 * unit, *given, length, free)
    assert length.tolist() == [len(c) for c, _, _ in wanted]
    assert free.tolist() == [sum(each < 2 * unit for each in c) for c, _, _ in wanted]
    new_start = np.append(0, np.cumsum(length))
    close_gaps(new_counters(), (cost, successor, into.view(np.int64)), start, new_start)
    for a, row in enumerate(wanted):
        here = slice(new_start[a], new_start[a + 1])
        assert (cost[here].tolist(), successor[here].tolist()) == row[:2]
        assert into[here] == pytest.approx(row[2], rel=1e-14)


@pytest.mark.parametrize("wrong", [0.5, np.nan, np.inf, -np.inf, 1e300, 2.0**24 + 1])
def test_whole_numbers_are_found_in_all_parts(wrong):
    value = np.random.default_rng(0).integers(-(2**24), 2**24 + 1, 3 * PART + 5).astype(float)
    whole, good = np.empty(len(value), dtype=np.int64), np.ones(1, dtype=bool)
    whole_numbers(new_counters(), read_only(value), 2**24, whole, good)
    assert good[0]
    assert np.array_equal(whole, value)
    value[-1] = wrong
    whole_numbers(new_counters(), read_only(value), 2**24, whole, good)
    assert not good[0]


@pytest.mark.parametrize("last", [0, 6, -9, 5])
def test_a_common_divisor_of_all_parts(last):
    whole = 6 * np.random.default_rng(1).integers(-50, 50, 2 * PART + 1)
    whole[:PART], whole[-1] = 0, last
    assert common_divisor(whole) == np.gcd.reduce(whole)
