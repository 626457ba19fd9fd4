"""Least probabilities of exceeding a budget, and least VaR, against Storm's cost-bounded reachability."""

import numpy as np
import pytest

pytest.importorskip("stormpy", reason="Storm is an optional oracle: pip install 'prudent[storm]'")

import prudent
from storm_oracle import quantile, reaches_within, storm_model


def random_model(n: int, seed: int) -> prudent.SSP:
    """Costs that depend on the action alone, as Storm wants them."""
    rng = np.random.default_rng(seed)

    def actions(s):
        found = {}
        for a in range(rng.integers(1, 4) if s < n else 0):
            weights = rng.integers(1, 8, size=rng.integers(2, 5))
            targets = [n, *rng.integers(0, n + 1, size=len(weights) - 1)]
            cost = int(rng.integers(1, 5))
            found[a] = [(w / weights.sum(), int(t), cost) for w, t in zip(weights, targets, strict=True)]
        return found

    return prudent.build(0, {s: actions(s) for s in range(n + 1)})


@pytest.mark.parametrize("seed", range(4))
def test_least_probability_of_exceeding_each_budget(seed):
    model = random_model(30, seed)
    storm = storm_model(model)
    found = prudent.chances(model, range(1, 21))
    assert found.chance == pytest.approx([reaches_within(storm, budget) for budget in range(1, 21)], abs=1e-6)
    for budget in (1, 2, 3, 5, 8, 12):
        plan = prudent.solve(model, 0.1, objective=prudent.Exceedance(budget))
        assert 1 - plan.objective.value == pytest.approx(found.chance[budget - 1], abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("alpha", [0.47, 0.103, 0.0097])  # no chance is exactly that: Storm wants more than it
def test_least_value_at_risk_is_a_quantile(seed, alpha):
    model = random_model(30, seed)
    storm = storm_model(model)
    plan = prudent.solve(model, alpha, objective=prudent.ValueAtRisk())
    assert plan.objective.value == quantile(storm, alpha)


def test_plans_never_beat_storm_at_any_budget():
    model = random_model(30, 9)
    storm = storm_model(model)
    result = prudent.evaluate(model, prudent.solve(model, 0.1).policy)
    for budget in range(1, 20):
        assert 1 - result.exceeds(budget) <= reaches_within(storm, budget) + 1e-6
