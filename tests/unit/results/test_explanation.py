import numpy as np
import pytest
from hypothesis import given, settings

import prudent
from prudent.runtime.limits import Interruption, Limits
from strategies import cases, examples, solved


def test_numbers_are_those_of_the_plan():
    plan = prudent.solve(prudent.domains.deep_sea_treasure(), 0.2)
    told = plan.explain((0, 1, 0))
    played = next(option for option in told.options if option.action == told.action)
    assert played.expected == pytest.approx(plan.expected, rel=1e-12)
    assert plan.policy.budget + played.excess / 0.2 == pytest.approx(plan.cvar, rel=1e-9)
    assert played.allowed
    assert played.excess == min(option.excess for option in told.options)
    assert told.budget == plan.policy.budget
    assert len(told.options) == 7  # due west leads off the map, whichever way it drifts


def test_beyond_the_budget_the_mean_decides():
    plan = prudent.solve(prudent.domains.inventory_control(stages=3), 0.1)
    state, spent = (2, 0, 10), plan.policy.budget + 1
    told = plan.explain(state, spent)
    assert told.budget == -1
    assert "no budget remains" in told.summary
    assert told.action == plan.policy(state, spent)
    best = min(told.options, key=lambda option: option.expected)
    assert best.action == told.action
    assert best.excess == pytest.approx(best.expected + 1)  # every further unit is excess


def test_a_budget_that_luck_cannot_keep_is_not_called_gone():
    table = {"s": {"a": [(0.5, "g", 1), (0.4, "g", 2), (0.1, "t", 0)]}, "t": {"b": [(1, "g", 9)]}}
    plan = prudent.solve(prudent.build("s", table), 0.2)
    told = plan.explain("t")
    assert 0 < told.budget < 9
    assert f"the remaining budget is {told.budget:g}, but every run costs at least 9 more" in told.summary


@pytest.mark.parametrize(("alpha", "method"), [(0.1, "expected"), (1, "exact")])
def test_a_plan_for_the_mean_has_no_budget_to_speak_of(alpha, method):
    told = prudent.solve(prudent.domains.figure_2(), alpha, method=method).explain("s1")
    assert told.budget is None
    assert told.summary == "this plan minimises the expected cost alone"
    assert all(np.isnan(option.excess) for option in told.options)
    assert "nan" not in str(told)


def test_ways_into_a_trap_and_free_moves_are_shown():
    table = {
        "a": {"over": [(1, "b", 0)], "risk": [(0.9, "g", 0), (0.1, "pit", 0)], "leave": [(1, "g", 5)]},
        "b": {"back": [(1, "a", 0)], "leave": [(0.5, "g", 1), (0.5, "g", 3)]},
        "pit": {"wait": [(1, "pit", 1)]},
    }
    plan = prudent.solve(prudent.build("a", lambda s: table.get(s, {})), 0.5)
    told = plan.explain("a")
    assert told.action == "over"
    options = {(option.action, option.at): option for option in told.options}
    assert options["risk", "a"].excess == np.inf
    assert options["risk", "a"].why == "may lead to a state from which no goal is reached"
    assert options["over", "a"].allowed
    assert options["over", "a"].why == "costs nothing and keeps every choice open"
    assert "played" in options["leave", "b"].why
    assert "leave at b" in str(told)


def test_goals_and_strangers_are_refused():
    plan = prudent.solve(prudent.domains.figure_2(), 0.1)
    with pytest.raises(prudent.PrudentError, match="is a goal"):
        plan.explain("g")
    with pytest.raises(prudent.PrudentError, match="is not a state"):
        plan.explain("s9")


@settings(max_examples=examples(60))
@given(cases())
def test_what_is_played_is_allowed_and_best_among_the_allowed(case):
    plan = solved(case, 0.3)
    for row in plan.decisions().rows:
        told = plan.explain(row.state, row.at_least)
        assert told.action == row.action
        allowed = [option for option in told.options if option.allowed]
        played = [option for option in told.options if "played" in option.why]
        assert len(played) == 1
        assert played[0] in allowed
        least = min(option.expected for option in allowed)
        assert played[0].expected == pytest.approx(least, rel=1e-9, abs=1e-9)


def test_values_that_were_stopped_half_way_explain_nothing(monkeypatch):
    plan = prudent.solve(prudent.domains.betting_game(), 0.2)
    stopped = Limits(memory=10**9, interruption=Interruption(asked=True))
    with monkeypatch.context() as patch:
        patch.setattr(Limits, "of", lambda *arguments: stopped)
        with pytest.raises(KeyboardInterrupt):
            plan.explain((0, 5))
    assert plan.explain((0, 5)).action == plan.policy((0, 5))


def test_for_a_set_of_models_worst_and_nominal_numbers_stand_apart(tmp_path):
    model = prudent.domains.figure_2()
    p = model.probability
    sets = prudent.Intervals(p - 0.1 * p * (1 - p), p + 0.1 * p * (1 - p))
    plan = prudent.solve(model, 0.1, uncertainty=sets)
    told = plan.explain("s1")
    options = {option.action: option for option in told.options}
    assert told.action == "d"
    assert options["c"].expected == pytest.approx(20 * (0.05 + 0.1 * 0.05 * 0.95))
    assert options["c"].nominal_expected == pytest.approx(1)
    assert options["d"].expected == pytest.approx(1 + 8 * (0.3 + 0.1 * 0.3 * 0.7))
    assert options["d"].nominal_expected == pytest.approx(3.4)
    assert told.table().head[1:5] == ("worst excess", "worst expected cost", "excess", "expected cost")
    prudent.save(plan, tmp_path / "plan.safetensors")
    assert prudent.load_plan(tmp_path / "plan.safetensors", model).explain("s1") == told


def test_numbers_of_a_robust_plan_are_those_of_its_start():
    model = prudent.domains.inventory_control(stages=3, capacity=5, demand=3)
    p = model.probability
    plan = prudent.solve(model, 0.6, uncertainty=prudent.Intervals(p - 0.2 * p * (1 - p), p + 0.2 * p * (1 - p)))
    told = plan.explain(model.state(int(model.initial_state[0])))
    played = next(option for option in told.options if option.action == told.action)
    assert plan.policy.budget + played.excess / 0.6 == pytest.approx(plan.cvar, rel=1e-9)
    assert played.expected == pytest.approx(plan.expected, rel=1e-9)
    assert played.nominal_expected == pytest.approx(plan.nominal.expected, rel=1e-9)
    assert all(option.excess >= option.nominal_excess - 1e-9 for option in told.options)


def test_on_rounded_costs_it_says_that_the_action_is_looked_up():
    table = {
        "s": {"go": [(0.5, "t", 2**0.5), (0.5, "t", 4.4)]},
        "t": {"bold": [(0.9, "g", 1), (0.1, "g", 9)], "safe": [(1, "g", 4)]},
    }
    model = prudent.build("s", table.get, goals=["g"])
    plan = prudent.solve(model, 0.1, step=1.0)
    told = plan.explain("t", 4.4)
    assert "looked up by the true cost so far" in told.notes[0] and told.notes[0] in str(told)
    assert told.action == plan.policy("t", 4.4) == plan.decisions()("t", 4.4)
    assert prudent.solve(prudent.domains.figure_2(), 0.1).explain("s1").notes == ()
