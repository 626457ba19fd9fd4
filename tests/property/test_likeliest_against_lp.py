"""The likeliest goal: the greatest chance, and the least CVaR among the plans that attain it, by linear programs."""

import importlib.util

import numpy as np
import pytest
from scipy.optimize import linprog

import prudent
from oracles import Raw, solve_by_lp
from strategies import examples

PRICE = 9


def trapped(rng: np.random.Generator) -> Raw:
    """A random model with a goal, n, and a trap, n + 1; there are ties and free loops."""
    n = int(rng.integers(2, 7))
    raw: Raw = {n: [], n + 1: [[(1.0, n + 1, 0)]]}
    for s in range(n):
        raw[s] = []
        for _ in range(rng.integers(1, 4)):
            weights = rng.choice([1, 1, 2, 3], size=rng.integers(1, 4))
            targets, costs = rng.integers(0, n + 2, size=len(weights)), rng.choice([0, 0, 1, 2, 4], size=len(weights))
            row = zip(weights, targets, costs, strict=True)
            raw[s].append([(float(w / weights.sum()), int(t), int(c)) for w, t, c in row])
    return raw


def greatest_chance(raw: Raw) -> np.ndarray:
    """The greatest chance of reaching a goal from every state: the least solution of Bellman's inequalities."""
    rows = []
    for s, actions in raw.items():
        for outcomes in actions:
            row = np.zeros(len(raw))
            row[s] -= 1
            for p, t, _ in outcomes:
                row[t] += p
            rows.append(row)
    bounds = [(0, 1) if raw[s] else (1, 1) for s in range(len(raw))]
    found = linprog(np.ones(len(raw)), A_ub=rows, b_ub=np.zeros(len(rows)), bounds=bounds, method="highs")
    assert found.status == 0
    return found.x


def likeliest_only(raw: Raw, chance: np.ndarray) -> Raw:
    """The model of plans that attain it: a run that cannot reach a goal any more pays and ends."""
    goal, kept = next(s for s in raw if not raw[s]), {}
    for s, actions in raw.items():
        value = [sum(p * chance[t] for p, t, _ in outcomes) for outcomes in actions]
        kept[s] = [o for o, v in zip(actions, value, strict=True) if v >= chance[s] - 1e-9]
        if chance[s] < 1e-9:
            kept[s] = [[(1.0, goal, PRICE)]]
    return kept


def model_of(raw: Raw) -> prudent.SSP:
    return prudent.build(0, {s: dict(enumerate(actions)) for s, actions in raw.items()})


@pytest.mark.parametrize("seed", range(examples(30)))
def test_the_greatest_chance_and_the_least_cvar_at_it_agree_with_linear_programs(seed):
    rng = np.random.default_rng([seed, 11])
    for alpha in (1.0, 0.3, 0.1):
        raw = trapped(rng)
        chance = greatest_chance(raw)
        if chance[0] < 1e-9:
            continue
        plan = prudent.solve(model_of(raw), alpha, goal="likeliest", dead_end_cost=PRICE)
        assert plan.goal_probability == pytest.approx(chance[0], abs=1e-9)
        answer = solve_by_lp(likeliest_only(raw, chance), {0: 1.0}, alpha)
        assert plan.cvar == pytest.approx(answer.cvar, abs=1e-6)
        assert plan.expected == pytest.approx(answer.expected, abs=1e-5)
        runs = prudent.evaluate(plan.model, plan.policy)
        assert runs.mean == pytest.approx(plan.expected)


@pytest.mark.skipif(importlib.util.find_spec("stormpy") is None, reason="needs the extra storm")
def test_the_greatest_chance_is_that_of_storm():
    import stormpy

    from storm_oracle import storm_model

    for seed in range(examples(30)):
        raw = trapped(np.random.default_rng([seed, 12]))
        if greatest_chance(raw)[0] < 1e-9:
            continue
        model = model_of(raw)
        storm = storm_model(model)
        result = stormpy.model_checking(storm, stormpy.parse_property('Pmax=? [F "goal"]'), only_initial_states=True)
        chance = result.get_value(storm.initial_states[0])
        plan = prudent.solve(model, 0.5, goal="likeliest", dead_end_cost=PRICE)
        assert plan.goal_probability == pytest.approx(chance, abs=1e-6)
