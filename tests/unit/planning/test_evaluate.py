import numpy as np
import pytest
from hypothesis import given, settings

import prudent
from strategies import at_the_start, cases, examples, solved

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
    """Compare what is followed state by state, in rows of their own or in shared room, with what is by level."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("prudent.policies.forwards._by_state", at_the_start)
        whole, played = prudent.evaluate(plan.model, plan.policy), plan.visits().played
    for apart in (2**22, 0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("prudent.policies.forwards.APART", apart)
            patch.setattr("prudent.policies.forwards.NUMBERS", 0)  # by level it would be refused
            found = prudent.evaluate(plan.model, plan.policy)
            assert plan.visits().played == pytest.approx(played, abs=1e-13)
        assert found.values == pytest.approx(whole.values, rel=1e-14, abs=1e-14)
        assert found.probabilities == pytest.approx(whole.probabilities, abs=1e-14)
        assert (found.missing, found.grouped) == (0, whole.grouped)
        assert found.mean == pytest.approx(whole.mean, rel=1e-13)
        assert found.cvar_at_most(0.3) == pytest.approx(whole.cvar_at_most(0.3), rel=1e-12)


@settings(max_examples=examples(40))
@given(cases(acyclic=True))
def test_by_state_and_by_level_tell_the_same(case):
    agree(solved(case, 0.3))


@pytest.mark.parametrize("step", [None, 7])
def test_by_state_and_by_level_tell_the_same_of_rounded_costs(step):
    agree(prudent.solve(prudent.domains.inventory_control(stages=4), 0.1, step=step))


def test_a_policy_that_takes_too_much_room_is_refused(monkeypatch):
    model = prudent.domains.betting_game(stages=4)
    policy = prudent.solve(model, 0.2).policy
    monkeypatch.setattr("prudent.policies.forwards.APART", 0)
    monkeypatch.setattr("prudent.policies.forwards.NUMBERS", 0)
    monkeypatch.setattr("prudent.policies.forwards.shared_room", lambda size, *_: (0 * size, 2**60))
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
        ({"s": "fall"}, "policy: there is no action for state 'pit'"),
        ({"s": "fly"}, "state 's' has no action 'fly'; its actions are 'wait', 'walk', 'fall', 'go'"),
        (lambda s, spent: "wait", "from state 's' it never does"),
        (lambda s, spent: "fall", "it can get into state 'pit'"),
        (lambda s, spent: "fly", "state 's' has no action 'fly'"),
        ("go", "policy is a str; pass a plan or its policy"),
    ],
)
def test_improper_policies_are_refused_by_name(policy, message):
    with pytest.raises(prudent.PrudentError) as caught:
        prudent.evaluate(model_of(STUCK), policy)
    assert message in str(caught.value)


def test_a_plan_stands_for_its_policy():
    model = model_of(LOOP)
    plan = prudent.solve(model, 0.1)
    by_plan, by_policy = (prudent.evaluate(model, each) for each in (plan, plan.policy))
    assert (by_plan.values.tolist(), by_plan.mean) == (by_policy.values.tolist(), by_policy.mean)
    assert prudent.simulate(model, plan, episodes=100).mean == prudent.simulate(model, plan.policy, episodes=100).mean
    for verb in (prudent.evaluate, prudent.simulate):
        with pytest.raises(prudent.PrudentError, match="the policy was made for"):
            verb(prudent.domains.figure_2(), plan)

    class Function:  # of a user's own, which happens to keep a plan's policy
        policy = plan.policy

        def __call__(self, state, spent):
            return "pay"

    assert prudent.evaluate(model, Function()).values.tolist() == [5]


def test_a_function_on_a_finite_horizon_is_followed_to_the_end(monkeypatch):
    """At a step of one's own, however many pairs of state and cost so far there are."""
    monkeypatch.setattr("prudent.policies.function.PAIRS", 10)
    for unit, step in (1.0, 0.01), (2**0.5, 0.01):  # with rounded costs, too
        table = {i: {"a": [(0.5, i + 1, unit), (0.3, i + 1, 10.37), (0.2, i + 2, 99)]} for i in range(8)}
        table |= {i: {"a": [(0.5, i + 1, 1.0), (0.5, i + 1, 3.0)], "b": [(1.0, i + 1, 2.0)]} for i in (8, 9)}
        model = prudent.build({0: 0.75, 1: 0.25}, lambda s, table=table: table.get(s, {}))
        by_table = prudent.evaluate(model, dict.fromkeys(table, "a"), step=step)
        by_function = prudent.evaluate(model, lambda state, spent: "a", step=step)
        assert by_function.values == pytest.approx(by_table.values, rel=1e-12)
        assert by_function.probabilities == pytest.approx(by_table.probabilities, abs=1e-14)
        assert by_function.mean == pytest.approx(by_table.mean, rel=1e-12)
        assert (by_function.missing, by_function.grouped) == (0, by_table.grouped)
        mixed = prudent.evaluate(model, lambda state, spent: "b" if state >= 8 and spent < 90 else "a", step=step)
        assert mixed.probabilities.sum() == pytest.approx(1, abs=1e-13)
        runs = prudent.simulate(model, lambda state, spent: "b" if state >= 8 and spent < 90 else "a", episodes=2000)
        assert abs(runs.mean - mixed.mean) < 5 * runs.mean_se


def machine(weeks):
    """Return a machine that wears, with prices in cents, a week that may pass for free, and a way to wreck it."""

    def actions(state):
        if state in ("end", "wreck"):
            return {"stay": [(1, "wreck", 0)]} if state == "wreck" else {}
        week, wear = state

        def after(wear):
            return (week + 1, min(wear, 2)) if week + 1 < weeks else "end"

        fail = (0.01, 0.05, 0.2)[wear]
        return {
            "run": [
                (0.7 - fail, after(wear), 12.49),
                (0.3, after(wear + 1), round(29.84 + 1.17 * week, 2)),
                (fail, after(0), 618.25),
            ],
            "service": [(0.1, state, 0), (0.7, after(0), 129.99), (0.2, after(wear), 154.35)],
            "race": [(0.99, after(wear), 0), (0.01, "wreck", 0)],
        }

    return prudent.build((0, 0), actions)


def careful(state, spent):
    return "service" if state[1] > 1 and spent < 500 else "run"


def runs_of(model, policy, state, spent=0):
    """Return the distribution of totals in cents, run by run."""
    if state == "end":
        return {spent: 1.0}
    found, at = {}, model.find_action(model.index(state), policy(state, spent / 100))
    outcomes = range(model.outcome_start[at], model.outcome_start[at + 1])
    away = [o for o in outcomes if model.state(model.successor[o]) != state]
    whole = sum(model.probability[o] for o in away)
    for o in away:
        ahead = runs_of(model, policy, model.state(model.successor[o]), spent + round(100 * model.cost[o]))
        for total, p in ahead.items():
            found[total] = found.get(total, 0.0) + p * model.probability[o] / whole
    return found


def test_a_function_meets_each_total_that_its_runs_do():
    model = machine(7)
    truth = runs_of(model, careful, (0, 0))
    result = prudent.evaluate(model, careful)
    assert (100 * result.values).round().astype(int).tolist() == sorted(truth)
    assert result.probabilities == pytest.approx([truth[total] for total in sorted(truth)], rel=1e-12)
    assert (result.grouped, result.asked_step, result.missing) == (False, None, 0)
    assert result.most == result.values[-1] == max(truth) / 100


def test_a_function_that_meets_too_many_totals_is_asked_at_rounded_ones(monkeypatch):
    """The horizon is finite though an action may wreck the machine, and a service may take no time."""
    model, asked = machine(16), []

    def counted(state, spent):
        asked.append(spent)
        return careful(state, spent)

    exact = prudent.evaluate(model, counted)
    many = len(asked)
    monkeypatch.setattr("prudent.policies.function.PAIRS", many // 8)
    asked.clear()
    rounded = prudent.evaluate(model, counted)
    assert len(asked) < many / 2  # all attempts together
    assert rounded.grouped and rounded.missing == 0
    assert 0.01 < rounded.asked_step < 100
    assert rounded.mean == pytest.approx(exact.mean, rel=2e-3)
    assert rounded.cvar(0.05) == pytest.approx(exact.cvar(0.05), rel=1e-2)
    assert exact.most <= rounded.most <= exact.most * 1.2
    assert any("set a smaller step= for smaller groups" in note for note in rounded.table().notes)
    assert prudent.evaluate(model, careful, step=rounded.asked_step).mean == rounded.mean
    monkeypatch.undo()
    tight = prudent.evaluate(model, careful, memory=100_000)
    assert tight.grouped
    assert tight.mean == pytest.approx(exact.mean, rel=2e-2)
    with pytest.raises(prudent.PrudentError, match=r"following the function.* memory.*; give a larger step="):
        prudent.evaluate(model, careful, memory=100_000, step=0.01)
    with pytest.raises(prudent.PrudentError, match=r"larger step= asks less often, takes longer than the time limit"):
        prudent.evaluate(model, careful, time_limit=1e-9)


def test_a_function_that_meets_too_many_totals_on_cycles(monkeypatch):
    table = {
        i: {"a": [(0.7, i + 1, 1.01), (0.2, max(i - 1, 0), 2.37), (0.1, i, 3.49)], "b": [(1, i + 1, 5)]}
        for i in range(4)
    }
    model = prudent.build(0, lambda s: table.get(s, {}))
    exact = prudent.evaluate(model, lambda s, spent: "a" if spent < 9 else "b")
    monkeypatch.setattr("prudent.policies.function.PAIRS", 100)
    rounded = prudent.evaluate(model, lambda s, spent: "a" if spent < 9 else "b")
    assert rounded.asked_step > 0.01
    assert rounded.mean == pytest.approx(exact.mean, rel=5e-3)
    assert rounded.cvar(0.1) == pytest.approx(exact.cvar(0.1), rel=2e-2)


def test_step_rounds_tables_and_plans_without_a_budget():
    model = machine(10)
    table = {model.state(s): "run" for s in range(model.n_states) if not model.is_goal[s]}
    table = {state: careful(state, 0) for state in table if state != "wreck"}
    exact, rounded = (prudent.evaluate(model, table, step=step) for step in (None, 5))
    assert rounded.grouped and not exact.grouped
    assert rounded.asked_step is None
    assert rounded.mean == pytest.approx(exact.mean, rel=1e-13)
    assert exact.cvar(0.1) * 0.99 < rounded.cvar(0.1) <= exact.cvar(0.1)
    assert rounded.most == pytest.approx(exact.most)
    plan = prudent.solve(model, 0.1, method="expected")
    assert prudent.evaluate(model, plan.policy, step=5).mean == pytest.approx(plan.expected)
    with pytest.raises(prudent.PrudentError, match="step= is for tables, functions and plans without a budget"):
        prudent.evaluate(model, prudent.solve(model, 0.1).policy, step=5)


def test_a_table_that_takes_too_much_is_followed_at_a_larger_step(monkeypatch):
    model = machine(10)
    table = {model.state(s): "run" for s in range(model.n_states) if model.state(s) not in ("end", "wreck")}
    exact = prudent.evaluate(model, table)
    monkeypatch.setattr("prudent.policies.forwards._by_state", lambda *_: None)
    small = prudent.evaluate(model, table, memory=50_000)
    monkeypatch.setattr("prudent.policies.total_cost.TO_THE_END", 0)
    monkeypatch.setattr("prudent.policies.forwards.WORK", 2_000_000)
    short = prudent.evaluate(model, table)
    for rounded in (small, short):
        assert rounded.grouped
        assert rounded.missing <= 1e-13
        assert rounded.mean == pytest.approx(exact.mean)
        assert rounded.cvar(0.1) == pytest.approx(exact.cvar(0.1), rel=1e-2)
    with pytest.raises(prudent.PrudentError, match="following the policy would take"):
        prudent.evaluate(model, table, memory=50_000, step=0.01)


@settings(max_examples=examples(25))
@given(cases())
def test_no_run_costs_more_than_the_most(case):
    """It is the largest value where nothing is missing or grouped, and unbounded only where a tail has no end."""
    plan = solved(case, 0.3)
    result = prudent.evaluate(plan.model, plan.policy)
    if result.missing > 0:
        assert result.most > result.values[-1]
    elif result.grouped:
        assert result.most >= result.values[-1] - 1e-9
    else:
        assert result.most == pytest.approx(result.values[-1], rel=1e-14, abs=1e-14)
    if plan.policy.prepared.acyclic:
        assert np.isfinite(result.most)
        assert result.missing == 0


def test_the_most_is_known_where_the_tail_is_cut(monkeypatch):
    monkeypatch.setattr("prudent.policies.total_cost.TO_THE_END", 0)
    monkeypatch.setattr("prudent.policies.forwards._by_state", lambda *_: None)  # that way nothing is cut
    plan = prudent.solve(machine(14), 0.05, step=5)
    result = prudent.evaluate(plan.model, plan.policy)
    assert 0 < result.missing <= 1e-13
    assert result.values[-1] < result.most < 14 * 625
    rows = {row[0]: row[1:] for row in result.table().rows}
    shown, known = rows["highest cost"]
    assert known == "at most"
    assert result.most <= float(shown.replace(",", "")) <= result.most + 1
    assert result.to_dict()["most"] == result.most
    assert prudent.evaluate(model_of(LOOP), {"s": "try"}).most == np.inf
    bounded = prudent.evaluate(model_of(LOOP), prudent.solve(model_of(LOOP), 0.02).policy)
    assert bounded.most == 5


def test_few_totals_on_many_levels_are_followed_by_state(monkeypatch):
    """Three costs on a fine step: runs meet few of the levels, and the stretches between them are passed over."""
    monkeypatch.setattr("prudent.policies.forwards.NUMBERS", 0)
    table = {i: {"a": [(0.5, i + 1, 1.01), (0.3, i + 1, 10.37), (0.2, i + 1, 999.99)]} for i in range(30)}
    model = prudent.build(0, lambda s: table.get(s, {}))
    result = prudent.evaluate(model, dict.fromkeys(table, "a"))
    assert len(result.values) == 31 * 32 // 2
    assert result.mean == pytest.approx(30 * (0.505 + 3.111 + 199.998), rel=1e-12)


def test_a_function_that_walks_for_ever_is_stopped(monkeypatch):
    monkeypatch.setattr("prudent.policies.function.PAIRS", 1000)
    with pytest.raises(prudent.PrudentError, match=r"still unfinished with probability 1;.*may never reach a goal"):
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
