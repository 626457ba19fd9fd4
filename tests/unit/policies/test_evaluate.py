import numpy as np
import pytest
from hypothesis import given, settings

import prudent
from strategies import cases, examples, solved

LOOP = {"s": {"try": [(0.5, "s", 1), (0.5, "g", 1)], "pay": [(1, "g", 5)]}, "g": {}}


def model_of(table, start="s"):
    return prudent.build(start, lambda s: table.get(s, {}))


def test_a_table_on_a_model_with_cycles():
    result = prudent.evaluate(model_of(LOOP), {"s": "try"})
    assert result.mean == pytest.approx(2, rel=1e-14)
    assert result.std == pytest.approx(np.sqrt(2), rel=1e-6)
    assert 0 < result.missing <= 1e-13
    assert result.probabilities[:3].tolist() == [0.5, 0.25, 0.125]
    assert result.missing_mean == pytest.approx(result.values[-1] + 2)
    assert result.cvar(0.25) == pytest.approx(4, rel=1e-13)
    assert result.cvar(1e-6) == pytest.approx(np.ceil(np.log2(1e6)) + 1 + 0, rel=0.05)


def agree(plan):
    """Compare what is followed level by level with what is followed by pairs of state and level alone."""
    whole, played = prudent.evaluate(plan.model, plan.policy), plan.visits().played
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("prudent.policies.chain.FEW", 0)
        patch.setattr("prudent.policies.chain.NUMBERS", 0)  # or be refused
        found = prudent.evaluate(plan.model, plan.policy)
        assert plan.visits().played == pytest.approx(played, abs=1e-13)
    assert found.values == pytest.approx(whole.values, rel=1e-14, abs=1e-14)
    assert found.probabilities == pytest.approx(whole.probabilities, abs=1e-14)
    assert (found.missing, found.grouped) == (0, whole.grouped)
    assert found.mean == pytest.approx(whole.mean, rel=1e-13)


@settings(max_examples=examples(40))
@given(cases(acyclic=True))
def test_pairs_of_state_and_level_tell_the_same(case):
    agree(solved(case, 0.3))


@pytest.mark.parametrize("step", [None, 7])
def test_pairs_tell_the_same_of_rounded_costs(step):
    agree(prudent.solve(prudent.domains.inventory_control(stages=4), 0.1, step=step))


def test_a_policy_that_meets_too_many_pairs_is_refused(monkeypatch):
    model = prudent.domains.betting_game(stages=4)
    policy = prudent.solve(model, 0.2).policy
    for limit in ("PAIRS", "STEPS"):
        with monkeypatch.context() as patch:
            patch.setattr("prudent.policies.chain.FEW", 0)
            patch.setattr("prudent.policies.chain.NUMBERS", 0)
            patch.setattr(f"prudent.policies.chain.{limit}", 10)
            with pytest.raises(prudent.PrudentError, match="following the policy takes room"):
                prudent.evaluate(model, policy)


def test_functions_and_tables_agree():
    model = prudent.domains.deep_sea_treasure(horizon=6)
    plan = prudent.solve(model, 0.1)
    by_plan = prudent.evaluate(model, plan.policy)
    by_function = prudent.evaluate(model, lambda state, spent: plan.policy(state, spent))
    assert np.array_equal(by_plan.values, by_function.values)
    assert by_plan.probabilities == pytest.approx(by_function.probabilities, abs=1e-14)
    assert by_plan.mean == pytest.approx(by_function.mean, rel=1e-13)


def test_a_function_that_looks_at_what_was_spent():
    result = prudent.evaluate(model_of(LOOP), lambda state, spent: "try" if spent < 3 else "pay")
    assert result.values.tolist() == [1, 2, 3, 8]
    assert result.probabilities.tolist() == [0.5, 0.25, 0.125, 0.125]
    assert result.missing == 0


def test_a_function_without_end_is_cut():
    result = prudent.evaluate(model_of(LOOP), lambda state, spent: "try", tolerance=1e-6)
    assert 0 < result.missing <= 1e-6
    assert result.mean == pytest.approx(2, abs=1e-4)


def test_free_chance_loops_in_a_function():
    table = {
        "s": {"a": [(0.5, "t", 0), (0.5, "g", 1)]},
        "t": {"b": [(0.5, "s", 0), (0.25, "t", 0), (0.25, "g", 3)]},
    }
    by_table = prudent.evaluate(model_of(table), {"s": "a", "t": "b"})
    by_function = prudent.evaluate(model_of(table), lambda state, spent: {"s": "a", "t": "b"}[state])
    assert by_table.values.tolist() == by_function.values.tolist() == [1, 3]
    assert by_table.probabilities == pytest.approx([0.75, 0.25])
    assert by_function.probabilities == pytest.approx([0.75, 0.25])


STUCK = {
    "s": {"wait": [(1, "s", 0)], "walk": [(1, "s", 1)], "fall": [(0.5, "pit", 0), (0.5, "g", 0)], "go": [(1, "g", 1)]},
    "pit": {"wait": [(1, "pit", 0)]},
}


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ({"s": "wait"}, "does not reach a goal with probability 1: from state 's'"),
        ({"s": "walk"}, "does not reach a goal with probability 1: from state 's'"),
        ({"s": "fall", "pit": "wait"}, "does not reach a goal with probability 1: from state 'pit'"),
        ({"s": "fall"}, "the policy has no action for state 'pit'"),
        ({"s": "fly"}, "state 's' has no action 'fly'; its actions are 'wait', 'walk', 'fall', 'go'"),
        (lambda s, spent: "wait", "from state 's' it never does"),
        (lambda s, spent: "fall", "it can get into state 'pit'"),
        (lambda s, spent: "fly", "state 's' has no action 'fly'"),
        ("go", "policy is a str; pass plan.policy"),
    ],
)
def test_improper_policies_are_refused_by_name(policy, message):
    with pytest.raises(prudent.PrudentError) as caught:
        prudent.evaluate(model_of(STUCK), policy)
    assert message in str(caught.value)


def test_a_function_on_a_finite_horizon_is_followed_to_the_end(monkeypatch):
    """However many pairs of state and cost so far there are."""
    monkeypatch.setattr("prudent.policies.evaluate.PAIRS", 10)
    for unit in (1.0, 2**0.5):  # with rounded costs, too
        table = {i: {"a": [(0.5, i + 1, unit), (0.3, i + 1, 10.37), (0.2, i + 2, 99)]} for i in range(8)}
        table |= {i: {"a": [(0.5, i + 1, 1.0), (0.5, i + 1, 3.0)], "b": [(1.0, i + 1, 2.0)]} for i in (8, 9)}
        model = prudent.build({0: 0.75, 1: 0.25}, lambda s, table=table: table.get(s, {}))
        by_table = prudent.evaluate(model, dict.fromkeys(table, "a"))
        by_function = prudent.evaluate(model, lambda state, spent: "a")
        assert by_function.values == pytest.approx(by_table.values, rel=1e-12)
        assert by_function.probabilities == pytest.approx(by_table.probabilities, abs=1e-14)
        assert by_function.mean == pytest.approx(by_table.mean, rel=1e-12)
        assert (by_function.missing, by_function.grouped) == (0, by_table.grouped)
        mixed = prudent.evaluate(model, lambda state, spent: "b" if state >= 8 and spent < 90 else "a")
        assert mixed.probabilities.sum() == pytest.approx(1, abs=1e-13)
        runs = prudent.simulate(model, lambda state, spent: "b" if state >= 8 and spent < 90 else "a", episodes=2000)
        assert abs(runs.mean - mixed.mean) < 5 * runs.mean_se


def test_few_totals_on_many_levels_are_followed_one_by_one(monkeypatch):
    """Three costs on a fine step: runs meet few of the levels, and going through all of them would take far longer."""
    monkeypatch.setattr("prudent.policies.chain.distribute", None)
    table = {i: {"a": [(0.5, i + 1, 1.01), (0.3, i + 1, 10.37), (0.2, i + 1, 999.99)]} for i in range(30)}
    model = prudent.build(0, lambda s: table.get(s, {}))
    result = prudent.evaluate(model, dict.fromkeys(table, "a"))
    assert len(result.values) == 31 * 32 // 2
    assert result.mean == pytest.approx(30 * (0.505 + 3.111 + 199.998), rel=1e-12)


def test_a_function_that_walks_for_ever_is_stopped(monkeypatch):
    monkeypatch.setattr("prudent.policies.evaluate.PAIRS", 1000)
    with pytest.raises(prudent.PrudentError, match=r"still under way with probability 1;.*may never reach a goal"):
        prudent.evaluate(model_of(STUCK), lambda s, spent: "walk")


def test_a_policy_of_another_model_is_refused():
    plan = prudent.solve(model_of(LOOP), 0.5)
    assert prudent.evaluate(model_of(LOOP), plan.policy).mean == pytest.approx(plan.expected)
    with pytest.raises(prudent.PrudentError, match="the policy was made for"):
        prudent.evaluate(model_of(STUCK), plan.policy)


def test_policy_questions():
    plan = prudent.solve(model_of(LOOP), 0.3)
    assert plan.policy("s", 0) == plan.policy("s", 1000) == "try"
    assert prudent.solve(model_of(LOOP), 0.02).policy("s", 0) == "pay"  # six tries in a row are more likely than that
    for state, spent, message in [
        ("g", 0, "is a goal"),
        ("x", 0, "is not a state"),
        ([], 0, "is not a state"),
        ("s", 0.5, "must be a multiple of the model's cost step 1"),
        ("s", -1, "no run can be in state 's' having spent -1"),
    ]:
        with pytest.raises(prudent.PrudentError, match=message):
            plan.policy(state, spent)
