"""What must not change an answer, and what must change it in a known way."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import prudent
from oracles import Flow, best_luck, solve_by_lp
from strategies import Case, cases, examples, solved

ALPHAS = st.sampled_from([1.0, 0.5, 0.3, 0.1, 0.02])


def same(one: prudent.Plan, other: prudent.Plan, scale: float = 1.0, shift: float = 0.0) -> None:
    for name in ("cvar", "expected"):  # not var: equally good policies may differ in it
        wanted = getattr(one, name) * scale + shift
        assert getattr(other, name) == pytest.approx(wanted, rel=1e-9, abs=1e-9 * scale), name


@settings(max_examples=examples(60))
@given(cases())
def test_cvar_falls_as_alpha_rises(case):
    values = [solved(case, alpha).cvar for alpha in (1e-6, 0.02, 0.1, 0.3, 0.5, 0.9, 1.0)]
    assert all(a >= b - 1e-9 * max(1, abs(a)) for a, b in pairwise(values))


@settings(max_examples=examples(60))
@given(cases())
def test_alpha_one_is_the_expected_optimum(case):
    plan, expected = solved(case, 1.0), solved(case, 1.0, method="expected")
    assert plan.cvar == pytest.approx(plan.expected, rel=1e-12, abs=1e-12)
    assert plan.expected == pytest.approx(expected.expected, rel=1e-12, abs=1e-12)
    assert expected.status == "optimal"


@settings(max_examples=examples(60))
@given(cases(acyclic=True))
def test_small_alpha_is_the_worst_case_where_runs_are_finite(case):
    # At most 5 steps of chance at least 1/12 each, and a first chance step of at least 1/4.
    plan = solved(case, 1e-6)
    worst = solved(case, 1e-6, method="worst-case")
    assert plan.cvar == pytest.approx(plan.worst_case, rel=1e-9, abs=1e-9)
    assert plan.expected == pytest.approx(worst.expected, rel=1e-9, abs=1e-9)
    assert prudent.evaluate(case.model, worst.policy).values[-1] == pytest.approx(worst.worst_case)


@settings(max_examples=examples(60))
@given(cases(), ALPHAS, st.integers(-3, 5))
def test_a_constant_on_the_first_step_is_added(case, alpha, more):
    first = {s: [[(p, t, c) for p, t, c in o] for o in a] for s, a in case.raw.items()}
    before = max(first) + 1
    first[before] = [[(p, s, more) for s, p in case.start.items()]]
    same(solved(case, alpha), solved(Case(first, {before: 1.0}, case.step), alpha), shift=more * case.step)


@settings(max_examples=examples(60))
@given(cases(), ALPHAS, st.sampled_from([2.0, 10.0, 0.1]))
def test_scaling_costs_scales_the_answers(case, alpha, factor):
    same(solved(case, alpha), solved(Case(case.raw, case.start, case.step * factor), alpha), scale=factor)


@settings(max_examples=examples(60))
@given(cases(), ALPHAS)
def test_splitting_outcomes_changes_nothing(case, alpha):
    plan = solved(case, alpha)
    model = case.model
    twice = prudent.from_arrays(
        model.action_start,
        2 * model.outcome_start,
        np.repeat(model.probability / 2, 2),
        np.repeat(model.successor, 2),
        np.repeat(model.cost, 2),
        initial=dict(zip(model.initial_state.tolist(), model.initial_probability.tolist(), strict=True)),
    )
    same(plan, prudent.solve(twice, alpha))


@settings(max_examples=examples(60))
@given(cases(), ALPHAS, st.randoms(use_true_random=False))
def test_relabelling_changes_nothing(case, alpha, random):
    states = list(case.raw)
    random.shuffle(states)
    name = dict(zip(case.raw, states, strict=True))
    raw = {name[s]: [[(p, name[t], c) for p, t, c in o] for o in random.sample(a, len(a))] for s, a in case.raw.items()}
    start = {name[s]: p for s, p in case.start.items()}
    same(solved(case, alpha), solved(Case(raw, start, case.step), alpha))


@settings(max_examples=examples(60))
@given(cases())
def test_expected_method_equals_the_linear_program(case):
    truth = solve_by_lp(case.raw, case.start, 1.0)
    assume(truth is not None)
    plan = prudent.solve(case.model, 0.5, method="expected")
    assert plan.expected == pytest.approx(truth.expected * case.step, rel=1e-7, abs=1e-7 * case.step)
    assert plan.lower <= plan.cvar <= plan.upper


@settings(max_examples=examples(80))
@given(cases(negative=False))
def test_worst_case_is_the_least_budget_without_excess(case):
    """V_worst against its definition: the least w at which some policy has no excess at all."""
    plan = solved(case, 0.5, method="worst-case")
    w = round(plan.worst_case / case.step) if np.isfinite(plan.worst_case) else None
    start = int(min(best_luck(case.raw)[s] for s in case.start))
    if w is None:
        assert Flow(case.raw, case.start, start + 5).least_excess() > 1e-9
    else:
        assert Flow(case.raw, case.start, w).least_excess() <= 1e-9
        assert w == start or Flow(case.raw, case.start, w - 1).least_excess() > 1e-7
        result = prudent.evaluate(case.model, plan.policy)
        assert result.missing <= 1e-12
        assert result.values[-1] <= plan.worst_case + 1e-9
