import numpy as np
import pytest

import prudent
from strategies import noisy_table


def test_the_worst_case_as_an_objective():
    plan = prudent.solve(prudent.domains.betting_game(), 0.2, objective=prudent.WorstCase())
    assert (plan.objective.value, plan.objective.lower, plan.objective.upper) == (95, 95, 95)
    assert plan.status == "optimal"
    loop = prudent.build("s", {"s": {"try": [(0.5, "s", 1), (0.5, "g", 1)]}, "g": {}})
    with pytest.raises(prudent.PrudentError, match="no policy bounds the cost"):
        prudent.solve(loop, 0.2, objective=prudent.WorstCase())


def test_what_is_asked_is_checked():
    model = prudent.domains.figure_2()
    for wrong in ("var", prudent.ValueAtRisk, 5):
        with pytest.raises(prudent.PrudentError, match="it must be Exceedance"):
            prudent.solve(model, 0.1, objective=wrong)
    for options in ({"method": "expected"}, {"slack": 0.1}):
        with pytest.raises(prudent.PrudentError, match=r"objective (needs method 'exact'|excludes slack)"):
            prudent.solve(model, 0.1, objective=prudent.ValueAtRisk(), **options)
    with pytest.raises(prudent.PrudentError, match="budget is inf; it must be a finite number"):
        prudent.Exceedance(float("inf"))
    with pytest.raises(prudent.PrudentError, match="budget is 'all'; it must be a finite number"):
        prudent.Excess("all")
    with pytest.raises(prudent.PrudentError, match="weight is 0; it must be a number above 0"):
        prudent.MeanPlusCVaR(0)


@pytest.mark.parametrize(
    "objective",
    [prudent.Exceedance(90), prudent.Excess(90), prudent.ValueAtRisk(), prudent.MeanPlusCVaR(2), prudent.WorstCase()],
)
def test_plans_are_kept_and_say_what_they_are_for(objective, tmp_path):
    model = prudent.domains.betting_game()
    plan = prudent.solve(model, 0.2, objective=objective)
    assert "objective" in plan.message
    prudent.save(plan, tmp_path / "p.safetensors")
    again = prudent.load_plan(tmp_path / "p.safetensors", model)
    assert again.to_dict() == plan.to_dict()
    runs = prudent.simulate(model, again.policy, episodes=20_000, seed=2)
    assert abs(runs.mean - plan.expected) <= 4 * runs.mean_se + 1e-9
    if isinstance(objective, prudent.Exceedance):
        share = float((runs.costs > 90).mean())
        assert abs(share - plan.objective.value) <= 4 * np.sqrt(share * (1 - share) / 20_000)


@pytest.mark.parametrize("seed", range(4))
def test_costs_without_a_common_step(seed):
    model = prudent.build(0, noisy_table(np.random.default_rng(seed)))
    middle = prudent.solve(model, 0.5).var
    plan = prudent.solve(model, 0.5, objective=prudent.Exceedance(middle))
    assert plan.objective.lower <= plan.objective.value <= plan.objective.upper
    runs = prudent.simulate(model, plan.policy, episodes=20_000, seed=1)
    share = float((runs.costs > middle * (1 + 1e-9)).mean())
    assert plan.objective.lower - 0.02 <= share <= plan.objective.upper + 0.02
    tail = prudent.solve(model, 0.2, objective=prudent.ValueAtRisk()).objective
    assert tail.lower <= tail.value
    assert tail.lower <= prudent.solve(model, 0.2).upper
    mixed = prudent.solve(model, 0.2, objective=prudent.MeanPlusCVaR(1.0)).objective
    assert mixed.lower <= mixed.value <= mixed.upper


@pytest.mark.parametrize("seed", range(4))
def test_an_excess_where_costs_have_no_common_step(seed):
    model = prudent.build(0, noisy_table(np.random.default_rng(seed)))
    tail = prudent.solve(model, 0.2)
    for budget in (tail.var, tail.expected, prudent.solve(model, 1.0).lower - 100):
        plan = prudent.solve(model, 0.2, objective=prudent.Excess(budget))
        assert plan.objective.lower <= plan.objective.value <= plan.objective.upper
        if plan.status == "gap_not_reached":  # the excess may be 0
            assert plan.objective.lower == 0 and plan.objective.upper < 1e-5 and "absolute gap" in plan.message
        else:
            assert plan.status in ("optimal", "within_gap")
        excess = np.maximum(prudent.simulate(model, plan, episodes=20_000, seed=1).costs - budget, 0)
        error = 4 * excess.std() / np.sqrt(len(excess)) + 1e-9
        assert plan.objective.lower - error <= excess.mean() <= plan.objective.upper + error


def test_an_excess_over_a_budget_between_levels_and_without_the_measures_of_a_sweep(monkeypatch):
    for model in (prudent.domains.figure_2(), prudent.build("s", {"s": {"try": [(0.5, "s", 2), (0.5, "g", 4)]}})):
        for budget in (4.5, 6.75, 8):
            for measured in (True, False):
                monkeypatch.setattr("prudent.engine.sweep.task.Swept.measured", measured)
                plan = prudent.solve(model, 0.2, objective=prudent.Excess(budget))
                own = prudent.evaluate(model, plan).expect(lambda cost, budget=budget: max(cost - budget, 0))
                assert plan.objective.value == pytest.approx(own, rel=1e-9)
                assert (plan.status, plan.objective.parameter) == ("optimal", budget)


def test_budgets_that_no_run_needs():
    model = prudent.domains.figure_2()
    for kind in (prudent.Exceedance, prudent.Excess):
        for budget in (100, 1e12):
            plan = prudent.solve(model, 0.1, objective=kind(budget))
            assert plan.objective.value == 0
            assert plan.objective.parameter == budget
            assert plan.expected == pytest.approx(1.9)


def test_a_rounded_worst_case_is_one_that_the_plan_keeps():
    table = {0: {"a": [(0.5, 1, 2**0.5), (0.5, "g", 3**0.5)]}, 1: {"a": [(0.5, "g", 1 / 3), (0.5, "g", 0.1)]}}
    model = prudent.build(0, table)
    plan = prudent.solve(model, 0.1, objective=prudent.WorstCase())
    runs = prudent.simulate(model, plan.policy, episodes=1000, seed=0)
    assert plan.objective.lower <= runs.costs.max() <= plan.objective.value


def test_the_plan_for_the_least_var_has_it():
    """A chance that is larger by less than a tie, but by more than VaR forgives."""
    more = 2e-12
    table = {"s": {"A": [(0.5, "g", 7), (0.5, "g", 100)], "B": [(0.5 - more, "g", 1), (0.5 + more, "g", 100)]}}
    plan = prudent.solve(prudent.build("s", table, goals=["g"]), 0.5, objective=prudent.ValueAtRisk())
    assert (plan.status, plan.objective.value, plan.var, plan.policy("s")) == ("optimal", 7, 7, "A")


def test_budgets_of_many_levels_are_told_apart():
    cost = 2**24 - 1
    table = {i: {"go": [(0.999, i + 1, cost), (0.001, i + 1, 0)]} for i in range(80)} | {80: {"go": [(1, "g", 1)]}}
    model, total = prudent.build(0, table, goals=["g"]), 80 * cost + 1
    for below, chance in ((0, 0.0), (1, 0.999**80), (2, 0.999**80), (cost, 0.999**80)):
        plan = prudent.solve(model, 0.1, objective=prudent.Exceedance(total - below))
        assert plan.objective.value == pytest.approx(chance, rel=1e-12)
        assert plan.objective.lower <= chance * (1 + 1e-15) and chance * (1 - 1e-15) <= plan.objective.upper


@pytest.mark.parametrize(("steps", "known"), [(12, True), (40, False)])
def test_chances_that_floats_hardly_hold_are_not_called_0(steps, known):
    """The truth is 1e-10 ** steps: a small number, or one that no float holds."""
    table = {i: {"a": [(1e-10, i + 1, 1), (1 - 1e-10, "g", 0)]} for i in range(steps)} | {steps: {"a": [(1, "g", 1)]}}
    model = prudent.build(0, lambda s: table.get(s, {}))
    plan = prudent.solve(model, 0.1, objective=prudent.Exceedance(steps - 0.5))
    found = prudent.chances(model, [steps - 1, steps + 1])
    assert found.lower[0] < 1 == found.upper[0]
    assert found.lower[1] == found.upper[1] == 1  # no run costs more
    if known:
        assert plan.status == "optimal"
        assert plan.objective.value == pytest.approx(10.0 ** (-10 * steps), rel=1e-9)
        assert plan.table().rows[0] == ("P(cost > 11.5)", "1e-120", "optimal, known to all digits shown")
    else:
        assert (plan.objective.lower, plan.objective.upper) == (0.0, 1e-300)
        assert plan.status == "gap_not_reached"
        assert plan.table().rows[0][2] == "optimal: 0 to 1e-300"
        assert "the minimal probability is below 1e-300; probabilities that small are not distinguished" in plan.notes
    sure = prudent.solve(model, 0.1, objective=prudent.Exceedance(steps + 1))
    assert (sure.objective.upper, sure.status) == (0.0, "optimal")
