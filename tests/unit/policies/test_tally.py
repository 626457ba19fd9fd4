"""A tally is the same however runs were split."""

import numpy as np
import pytest

from prudent.policies import simulation
from prudent.policies.simulation import Tally, joined


@pytest.mark.parametrize("many", [400, 50])
def test_the_order_of_parts_changes_nothing(many, monkeypatch):
    monkeypatch.setattr(simulation, "MANY", many)
    costs = np.random.default_rng(1).normal(size=400).round(2) * 2**0.5
    whole = joined([Tally.of(costs)])
    assert whole.rounded == (many == 50)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        cuts = np.sort(rng.choice(np.arange(1, 400), size=rng.integers(1, 40), replace=False))
        parts = [Tally.of(part) for part in np.split(rng.permutation(costs), cuts)]
        while len(parts) > 1:
            parts = [*parts[2:], joined(parts[:2])]
        assert np.array_equal(parts[0].values, whole.values)
        assert np.array_equal(parts[0].counts, whole.counts)
        assert parts[0].rounded == whole.rounded


def test_rounding_is_as_small_as_it_says(monkeypatch):
    monkeypatch.setattr(simulation, "MANY", 10)
    costs = np.concatenate([[0.0, -0.0, 1e-300, -3e200], np.random.default_rng(0).normal(size=100)])
    rounded = joined([Tally.of(costs)])
    assert rounded.counts.sum() == 104 and rounded.counts[rounded.values == 0] == [2]
    near = rounded.values[np.abs(rounded.values - costs[:, None]).argmin(axis=1)]
    assert (np.abs(near - costs) <= rounded.rounding * np.abs(costs)).all()
    assert Tally.of(costs).rounding == 0
