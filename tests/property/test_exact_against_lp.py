"""The exact method against linear programs over (state, budget), on random models of every awkward shape."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import prudent
from oracles import solve_by_lp
from strategies import Case, cases, examples

ALPHAS = st.sampled_from([1.0, 0.75, 0.5, 0.3, 0.25, 0.1, 0.05])


def check(case: Case, alpha: float) -> None:
    truth = solve_by_lp(case.raw, case.start, alpha)
    if truth is None:
        with pytest.raises(prudent.PrudentError, match=r"no policy reaches a goal|has no goal"):
            prudent.solve(case.model, alpha)
        return
    plan = prudent.solve(case.model, alpha)
    close = {"rel": 1e-6, "abs": 1e-6 * case.step}
    assert plan.status == "optimal"
    assert plan.cvar == pytest.approx(truth.cvar * case.step, **close)
    assert plan.expected == pytest.approx(truth.expected * case.step, **close)
    assert plan.lower <= plan.cvar <= plan.upper
    # and the policy keeps what the plan promises
    result = prudent.evaluate(case.model, plan.policy)
    assert result.cvar(alpha) == pytest.approx(plan.cvar, rel=1e-9, abs=1e-9 * case.step)
    assert result.mean == pytest.approx(plan.expected, rel=1e-9, abs=1e-9 * case.step)
    assert result.var(alpha) == plan.var


@settings(max_examples=examples(100))
@given(cases(acyclic=True), ALPHAS)
def test_acyclic(case, alpha):
    check(case, alpha)


@settings(max_examples=examples(130))
@given(cases(acyclic=False, free=True), ALPHAS)
def test_free_moves_and_chance_loops(case, alpha):
    check(case, alpha)


@settings(max_examples=examples(100))
@given(cases(acyclic=False, free=False), ALPHAS)
def test_cyclic(case, alpha):
    check(case, alpha)


@settings(max_examples=examples(100))
@given(cases(acyclic=False, negative=True), ALPHAS)
def test_negative_costs(case, alpha):
    check(case, alpha)
