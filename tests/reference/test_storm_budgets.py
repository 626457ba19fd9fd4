"""Greatest and least probabilities of staying within a budget, and least VaR, against Storm."""

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


def model_with_traps(n: int, seed: int) -> prudent.SSP:
    """Any successors: traps, cycles in which one can stay for ever, actions at no cost."""
    rng = np.random.default_rng(seed)

    def actions(s):
        found = {}
        for a in range(rng.integers(1, 4) if s < n else 0):
            weights = rng.integers(1, 8, size=rng.integers(1, 4))
            targets = rng.integers(max(s - 1, 0), n + 1, size=len(weights))
            cost = int(rng.integers(0, 3))
            found[a] = [(w / weights.sum(), int(t), cost) for w, t in zip(weights, targets, strict=True)]
        return found

    table = {s: actions(s) for s in range(n + 1)}
    table[n - 1][0] = [(0.5, n, 1), (0.5, n - 1, 1)]
    return prudent.build(0, table)


@pytest.mark.parametrize("make", [random_model, model_with_traps])
@pytest.mark.parametrize("seed", [0, 3, 8, 10, 27])  # not all 0: with and without states that need not be left
def test_least_probability_of_staying_within_each_budget(make, seed):
    model = make(8, seed)
    storm = storm_model(model)
    found = prudent.chances(model, range(1, 13), worst=True)
    assert found.chance == pytest.approx([reaches_within(storm, budget, "Pmin") for budget in range(1, 13)], abs=1e-6)
    assert (found.lower <= found.chance).all()
    assert (found.chance <= found.upper).all()


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
