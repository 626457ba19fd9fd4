"""Other objectives than CVaR, against linear programs."""

from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import prudent
from oracles import Flow, best_luck, least_exceedance, solve_by_lp
from strategies import cases, examples, solved


@settings(max_examples=examples(50))
@given(case=cases(most_states=4), above=st.integers(-1, 7))
def test_least_probability_of_exceeding_a_budget(case, above):
    assume(solve_by_lp(case.raw, case.start, 0.5) is not None)
    luck = best_luck(case.raw)
    w = int(min(luck[s] for s, p in case.start.items() if p > 0)) + above
    chance, mean = least_exceedance(case.raw, case.start, w)
    plan = prudent.solve(case.model, 0.5, objective=prudent.Exceedance(w * case.step))
    assert plan.status == "optimal"
    assert plan.objective.value == pytest.approx(chance, abs=1e-7)
    assert plan.objective.lower <= chance + 1e-7
    assert chance - 1e-7 <= plan.objective.upper
    if above >= 0:
        assert plan.expected == pytest.approx(mean * case.step, abs=1e-5 * max(1.0, abs(mean * case.step)))
    found = prudent.chances(case.model, [w * case.step, (w - 1) * case.step])
    assert found.chance[0] == pytest.approx(1 - chance, abs=1e-7)
    assert found.chance[1] == pytest.approx(1 - least_exceedance(case.raw, case.start, w - 1)[0], abs=1e-7)
    result = prudent.evaluate(case.model, plan.policy)
    assert result.exceeds((w + 1e-6) * case.step) == pytest.approx(plan.objective.value, abs=1e-9)
    assert result.mean == pytest.approx(plan.expected, rel=1e-9, abs=1e-9)


@settings(max_examples=examples(50))
@given(case=cases(most_states=4), above=st.integers(-1, 7))
def test_least_excess_over_a_budget(case, above):
    assume(solve_by_lp(case.raw, case.start, 0.5) is not None)
    luck = best_luck(case.raw)
    w = int(min(luck[s] for s, p in case.start.items() if p > 0)) + above
    flow = Flow(case.raw, case.start, w)
    least = flow.least_excess()
    plan = prudent.solve(case.model, 0.5, objective=prudent.Excess(w * case.step))
    assert plan.status == "optimal"
    assert plan.objective.value == pytest.approx(least * case.step, abs=1e-7 * case.step)
    assert plan.objective.lower <= least * case.step + 1e-7
    assert least * case.step <= plan.objective.upper + 1e-7
    mean = flow.least_mean(least + 1e-11) * case.step
    assert plan.expected == pytest.approx(mean, abs=1e-5 * max(1.0, abs(mean)))
    result = prudent.evaluate(case.model, plan)
    assert result.mean == pytest.approx(plan.expected, rel=1e-9, abs=1e-9)
    assert result.expect(lambda cost: max(cost - w * case.step, 0)) == pytest.approx(plan.objective.value, abs=1e-9)


@settings(max_examples=examples(30))
@given(case=cases(most_states=4), alpha=st.sampled_from([0.6, 0.2]))
def test_replanning_on_the_same_model_gives_what_the_plan_has_from_there(case, alpha):
    plan = solved(case, alpha)
    step, budget = case.step, plan.policy.whole
    seen = {(state, 0.0): None for state, p in case.start.items() if case.raw[state] and p > 0}
    for path in prudent.simulate(case.model, plan, episodes=4, paths=4).paths:
        spent = 0.0
        for state, _, cost in path:
            seen[state, round(spent / step) * step] = None
            spent += cost
    for state, spent in list(seen)[:4]:
        again = prudent.replan(plan, state, spent)
        onwards = replace(case, start={state: 1.0}).model
        own = prudent.evaluate(
            onwards, lambda s, more, spent=spent: plan.policy(s, round((spent + more) / step) * step)
        )
        left = budget - spent
        flow = Flow(case.raw, {state: 1.0}, round(left / step))
        assert again.objective.value == pytest.approx(flow.least_excess() * step, abs=1e-7 * step)
        assert again.objective.value == pytest.approx(own.expect(lambda c, left=left: max(c - left, 0)), abs=1e-9)
        assert again.expected == pytest.approx(own.mean, rel=1e-8, abs=1e-8)
        assert again.status == "optimal"


@settings(max_examples=examples(40))
@given(case=cases(most_states=4), alpha=st.sampled_from([0.7, 0.3, 0.1]))
def test_least_value_at_risk(case, alpha):
    assume(solve_by_lp(case.raw, case.start, 0.5) is not None)
    plan = prudent.solve(case.model, alpha, objective=prudent.ValueAtRisk())
    w = round(plan.objective.value / case.step)
    assert least_exceedance(case.raw, case.start, w)[0] <= alpha + 1e-8
    assert least_exceedance(case.raw, case.start, w - 1)[0] > alpha - 1e-8
    assert plan.status == "optimal"
    assert plan.var <= plan.objective.value
    assert plan.objective.lower <= plan.objective.value <= plan.objective.upper


@settings(max_examples=examples(30))
@given(case=cases(most_states=4), alpha=st.sampled_from([0.6, 0.2]), weight=st.sampled_from([0.1, 1.0, 20.0]))
def test_mean_plus_weighted_cvar(case, alpha, weight):
    truth = solve_by_lp(case.raw, case.start, alpha)
    assume(truth is not None)
    plan = prudent.solve(case.model, alpha, objective=prudent.MeanPlusCVaR(weight))
    luck = best_luck(case.raw)
    first, best = int(min(luck[s] for s, p in case.start.items() if p > 0)), float("inf")
    w = first
    most = plan.objective.value / case.step  # which is attained, so no larger w can be better
    least = Flow(case.raw, case.start, first).least_mean()
    while weight * w + least <= min(best, most) + 1e-9 and w <= first + 60:
        flow, slope = Flow(case.raw, case.start, w), weight / alpha
        best = min(best, weight * w + flow.minimum(flow.mean + slope * flow.excess) + slope * flow.constant)
        w += 1
    size = 1e-6 * max(1.0, abs(best * case.step))
    assert plan.objective.value == pytest.approx(best * case.step, abs=size)
    assert plan.objective.lower <= best * case.step + size
    assert plan.expected + weight * plan.cvar == pytest.approx(plan.objective.value, abs=size)
    assert plan.status == "optimal"
