"""The greatest and least chances of staying within budgets: all from one sweep, and the same as one by one."""

import math

import numpy as np
import pytest

import prudent


@pytest.mark.parametrize("model", [prudent.domains.figure_2(), prudent.domains.deep_sea_treasure(horizon=6)], ids=str)
def test_each_is_what_a_plan_for_it_attains(model):
    low, high = (f(prudent.evaluate(model, prudent.solve(model, 1.0).policy).values) for f in (min, max))
    budgets = np.linspace(low - 3, high + 20, 12)
    found = prudent.chances(model, budgets)
    for i, budget in enumerate(budgets):
        plan = prudent.solve(model, 0.5, objective=prudent.Exceedance(budget))
        assert found.chance[i] == pytest.approx(1 - plan.objective.value, abs=1e-12)
        assert found.chance[i] == pytest.approx(1 - prudent.evaluate(model, plan.policy).exceeds(budget), abs=1e-12)
        assert found.lower[i] <= found.chance[i] <= found.upper[i] + 1e-15
    assert found.gap < 1e-11  # rounding is bounded, not ignored
    assert (np.diff(found.chance) >= 0).all()
    assert found.step is None


def test_runs_without_a_worst_case_and_budgets_in_any_order():
    model = prudent.build("s", {"s": {"go": [(0.5, "s", 1), (0.5, "g", 1)]}})
    found = prudent.chances(model, [3, 0, -2, 1])
    assert found.chance.tolist() == [0.875, 0.0, 0.0, 0.5]


def test_plans_are_those_that_surely_reach_a_goal():
    """A model checker would risk the trap for a small budget; plans here do not."""
    table = {
        "s": {"risky": [(0.9, "g", 1), (0.1, "trap", 1)], "safe": [(1, "g", 10)]},
        "trap": {"stay": [(1, "trap", 1)]},
    }
    model = prudent.build("s", lambda state: table.get(state, {}), goals=["g"])
    found = prudent.chances(model, [1, 5, 10])
    assert found.chance.tolist() == [0.0, 0.0, 1.0]
    (note,) = found.notes
    assert note.startswith(
        "1 of the actions may lead to a state from which no goal can be reached, for example 'risky' in 's'; no plan"
    )
    assert note in str(found.table())
    assert found.to_dict()["notes"] == [note]


def test_the_least_chance_counts_every_policy():
    """Also those that risk the trap; what never finishes is within no budget."""
    table = {
        "s": {"risky": [(0.9, "g", 1), (0.1, "trap", 1)], "safe": [(1, "g", 10)]},
        "trap": {"stay": [(1, "trap", 0)]},
    }
    model = prudent.build("s", lambda state: table.get(state, {}), goals=["g"])
    found = prudent.chances(model, [1e9, 10, 9, 1, -1], worst=True)
    assert found.chance.tolist() == [0.9, 0.9, 0.0, 0.0, 0.0]
    assert (found.lower <= found.chance).all()
    assert (found.chance <= found.upper).all()
    assert found.notes == (
        "a run can stay forever in 1 of the states, for example 'trap'; "
        "as in a model checker's Pmin, it is then within no budget",
    )
    table["s"]["wait"] = [(1, "s", 1)]  # whatever it costs
    model = prudent.build("s", lambda state: table.get(state, {}), goals=["g"])
    for step in (None, 0.7):
        assert prudent.chances(model, [0, 10, 1e9], worst=True, step=step).chance.tolist() == [0.0, 0.0, 0.0]
    assert prudent.chances(prudent.build("g", {"g": {}}), [-1, 0, 1], worst=True).chance.tolist() == [0.0, 1.0, 1.0]


@pytest.mark.parametrize("worst", [False, True])
def test_a_sweep_ends_where_more_budget_does_not_matter(worst):
    """Here no worst case bounds it."""
    model = prudent.build("s", {"s": {"go": [(0.5, "s", 1), (0.5, "g", 1)]}})
    found = prudent.chances(model, [1, 1e12, 1e300], worst=worst, memory="1MB")
    assert found.chance == pytest.approx([0.5, 1.0, 1.0], abs=1e-12)
    assert (found.lower <= [0.5, 1 - 1e-18, 1 - 1e-18]).all()
    assert (found.lower[1:] > 1 - 2e-12).all()
    assert found.upper == pytest.approx([0.5, 1.0, 1.0], abs=1e-12)
    assert (found.upper[1:] == 1.0).all()


def least_within(raw, top):
    """The least solution of Bellman's equations, level by level, from below."""
    tables = []
    for b in range(top + 1):
        now = {s: 0.0 if raw[s] else 1.0 for s in raw}
        for _ in range(1000):
            for s in raw:
                if raw[s]:
                    now[s] = min(
                        sum(p * (0.0 if c > b else now[t] if c == 0 else tables[b - c][t]) for p, t, c in outcomes)
                        for outcomes in raw[s]
                    )
        tables.append(now)
    return tables


@pytest.mark.parametrize("seed", range(6))
def test_the_least_chance_is_the_least_solution(seed):
    """With cycles, free cycles, traps and states that cannot be left, in any units, rounded or not."""
    rng = np.random.default_rng(seed)
    raw = {3: [], 4: [[(1.0, 4, 1)]]}
    for s in range(3):
        raw[s] = []
        for _ in range(2):
            weights = rng.integers(1, 5, size=2)
            targets = [3, *rng.choice([0, 1, 2, 3, 4], size=1, p=[0.3, 0.2, 0.2, 0.2, 0.1])]
            costs = rng.integers(0, 3, size=2)
            raw[s].append(
                [(float(w / weights.sum()), int(t), int(c)) for w, t, c in zip(weights, targets, costs, strict=True)]
            )
    model = prudent.build(
        0, {s: {i: [(p, t, c / 3) for p, t, c in o] for i, o in enumerate(a)} for s, a in raw.items()}
    )
    truth = np.array([0.0] + [table[0] for table in least_within(raw, 6)])
    budgets = np.arange(-1, 7) / 3
    found = prudent.chances(model, budgets, worst=True)
    assert truth[-1] > 0
    assert found.chance == pytest.approx(truth, abs=1e-12)
    assert found.gap < 1e-12
    rounded = prudent.chances(model, budgets, worst=True, step=0.5)
    assert rounded.step is not None
    assert (rounded.lower <= truth + 1e-12).all()
    assert (truth <= rounded.upper + 1e-12).all()
    assert (truth <= rounded.chance + 1e-12).all()


def test_budgets_of_any_size():
    assert prudent.chances(prudent.domains.figure_2(), [1e300, -1e300]).chance.tolist() == [1.0, 0.0]


def test_rounded_costs_are_enclosed():
    model = prudent.build("s", {"s": {"a": [(0.3, "g", 1.0), (0.7, "g", math.sqrt(2))], "b": [(1, "g", math.pi)]}})
    found = prudent.chances(model, [0.9, 1.2, 1.5, 4], step=0.01)
    truth = np.array([0.0, 0.3, 1.0, 1.0])
    assert (found.lower <= truth + 1e-12).all()
    assert (truth <= found.upper + 1e-12).all()
    assert found.step == pytest.approx(0.01, rel=0.5)
    assert "rounded" in str(found.table())


def test_what_is_no_budget_is_refused():
    model = prudent.domains.figure_2()
    with pytest.raises(prudent.PrudentError, match="budgets is 3; it must be a sequence"):
        prudent.chances(model, 3)
    with pytest.raises(prudent.PrudentError, match="budgets is nan"):
        prudent.chances(model, [1, math.nan])
    with pytest.raises(prudent.PrudentError, match="model is a str"):
        prudent.chances("figure-2", [1])
    assert len(prudent.chances(model, []).chance) == 0
