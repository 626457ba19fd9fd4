"""Looking up actions in tables of either layout, against a plain dictionary."""

import numpy as np
import pytest

from prudent.kernels.choices import Choices, mark_played

N_ACTIONS = np.array([3, 1, 2, 4])
ACTION_START = np.append(0, np.cumsum(N_ACTIONS))


def drawn(seed: int) -> tuple[Choices, list[dict[int, int]], list[int]]:
    """A table of ranges, and what it says as a dictionary for each state."""
    rng = np.random.default_rng(seed)
    low = rng.integers(0, 5, size=4)
    high = low + rng.integers(-2, 6, size=4)
    says = [{b: int(rng.integers(n)) for b in range(low[s], high[s] + 1)} for s, n in enumerate(N_ACTIONS)]
    without = rng.integers(0, N_ACTIONS)
    entry = np.array([a for each in says for a in each.values()], dtype=np.uint8)
    return Choices.of_ranges(entry, low, high, without.astype(np.uint8)), says, without.tolist()


def expected(says: dict[int, int], without: int, left: int) -> int:
    if left <= 0 or not says:
        return without
    return says[min(says, key=lambda b: abs(b - left))]


@pytest.mark.parametrize("seed", range(20))
def test_the_nearest_budget_that_the_table_has_is_played(seed):
    choices, says, without = drawn(seed)
    state, left = np.arange(4)[:, None], np.arange(-3, 15)
    wanted = [[expected(says[s], without[s], b) for b in left.tolist()] for s in range(4)]
    assert choices.each(state, left).tolist() == wanted
    assert [[choices.at(s, b) for b in left.tolist()] for s in range(4)] == wanted
    some = np.array([2, 0, 2])
    assert choices.of(some).each(np.arange(3)[:, None], left).tolist() == [wanted[s] for s in some]
    assert choices.rows is None


@pytest.mark.parametrize("seed", range(20))
def test_what_is_played_anywhere_is_marked_and_nothing_else(seed):
    choices, says, without = drawn(seed)
    played = np.zeros(ACTION_START[-1], dtype=bool)
    mark_played(ACTION_START, choices, played)
    wanted = {ACTION_START[s] + a for s in range(4) for a in (*says[s].values(), without[s])}
    assert set(np.flatnonzero(played).tolist()) == wanted


def test_rows_are_a_table_without_a_copy():
    rows = np.random.default_rng(0).integers(0, N_ACTIONS, size=(150, 4)).astype(np.uint8)
    choices = Choices.of_rows(rows)
    assert np.shares_memory(choices.entry, rows) and np.shares_memory(choices.rows, rows)
    assert np.array_equal(choices.rows, rows)
    left = np.arange(-2, 160)
    assert np.array_equal(choices.each(np.arange(4), left[:, None]), rows[np.clip(left, 0, 149)])
    played = np.zeros(ACTION_START[-1], dtype=bool)
    mark_played(ACTION_START, choices, played)
    assert set(np.flatnonzero(played).tolist()) == set((ACTION_START[:-1] + rows).ravel().tolist())
    assert choices.of(np.array([1, 0, 2, 3])).rows is None
    assert choices._replace(high=choices.high - 1).rows is None
