"""The greatest chances of staying within budgets: all from one sweep, and the same as one by one."""

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
    assert prudent.chances(model, [1, 5, 10]).chance.tolist() == [0.0, 0.0, 1.0]


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
