"""The trade-off between mean and CVaR, against linear programs over (state, budget) and every w."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st

import prudent
from oracles import Flow, best_luck, solve_by_lp
from strategies import cases, examples


def flows(case, most: float):
    """The occupancy measures for each budget w up to a total, in the case's whole units."""
    luck = best_luck(case.raw)
    first = int(min(luck[s] for s, p in case.start.items() if p > 0))
    return {w: Flow(case.raw, case.start, w) for w in range(first, int(np.ceil(most)) + 1)}


@settings(max_examples=examples(40))
@given(case=cases(most_states=4), alpha=st.sampled_from([0.6, 0.3, 0.1]))
def test_points_and_lines_are_those_of_linear_programs(case, alpha):
    truth = solve_by_lp(case.raw, case.start, alpha)
    assume(truth is not None)
    found = prudent.frontier(case.model, alpha, tolerance=0)
    points = [(point.expected / case.step, point.cvar / case.step) for point in found.points]
    assert points[-1] == pytest.approx((truth.expected, truth.cvar), abs=1e-6)
    by_budget = flows(case, points[0][1])
    least = next(iter(by_budget.values())).least_mean()
    assert points[0][0] == pytest.approx(least, abs=1e-6)
    # of the policies of least mean, the first point has the least CVaR
    tails = []
    for w, flow in by_budget.items():
        if flow.matrix is None:
            tails.append(w + flow.constant / alpha)
            continue
        tails.append(w + (flow.minimum(flow.excess, (flow.mean, least + 1e-9)) + flow.constant) / alpha)
    assert points[0][1] == pytest.approx(min(tails), abs=1e-5)
    for (mean, tail), (next_mean, next_tail) in pairwise(points):
        assert mean < next_mean
        assert tail > next_tail
    for weight, bound in found.lines:
        if 0 < weight < 1e5:
            values = [
                weight * w + flow.minimum(flow.mean + weight / alpha * flow.excess) + weight / alpha * flow.constant
                for w, flow in by_budget.items()
            ]
            assert bound / case.step == pytest.approx(min(values), abs=1e-6)
    for point in found.points:
        result = prudent.evaluate(case.model, point.policy)
        assert result.mean == pytest.approx(point.expected, rel=1e-9, abs=1e-9)
        assert result.cvar(alpha) == pytest.approx(point.cvar, rel=1e-9, abs=1e-9)
        assert found.least_expected(point.cvar) <= point.expected + 1e-9 * abs(point.expected)


def best_mean(case, alpha: float, limit: float) -> float:
    """The least mean of all policies, randomised or not, with a CVaR up to a limit, by a linear program for each w."""
    levels = limit / case.step + 1e-9
    means = [flow.least_mean(alpha * (levels - w)) for w, flow in flows(case, levels).items() if w <= levels]
    return min(means) * case.step


@settings(max_examples=examples(40))
@given(case=cases(most_states=4), alpha=st.sampled_from([0.6, 0.3, 0.1]), slack=st.sampled_from([0.0, 0.05, 0.3, 2.0]))
def test_the_best_mean_within_a_limit(case, alpha, slack):
    truth = solve_by_lp(case.raw, case.start, alpha)
    assume(truth is not None)
    plan = prudent.solve(case.model, alpha, slack=slack)
    limit = (truth.cvar + slack * abs(truth.cvar)) * case.step
    small = 1e-6 * max(1.0, abs(limit))
    assert plan.max_cvar == pytest.approx(limit, abs=small)
    assert plan.cvar <= limit + small
    result = prudent.evaluate(case.model, plan.policy)
    assert result.mean == pytest.approx(plan.expected, rel=1e-9, abs=1e-9)
    assert result.cvar(alpha) == pytest.approx(plan.cvar, rel=1e-9, abs=1e-9)
    # the exact optimum of all policies, randomised ones too
    best = best_mean(case, alpha, limit)
    assert plan.expected_lower <= best + small
    assert best - small <= plan.expected
    mixed = prudent.solve(case.model, alpha, slack=slack, randomise=True)
    assert mixed.expected == pytest.approx(best, abs=1e-5 * max(1.0, abs(best)))
    assert mixed.cvar <= limit + small
    assert mixed.expected_lower <= best + small
    assert mixed.status in ("optimal", "within_gap")
    drawn = prudent.evaluate(case.model, mixed.policy)
    assert drawn.mean == pytest.approx(mixed.expected, rel=1e-9, abs=1e-9)
    assert drawn.cvar(alpha) == pytest.approx(mixed.cvar, rel=1e-9, abs=1e-9)
    if slack == 0:
        assert plan.expected == pytest.approx(truth.expected * case.step, abs=1e-5)


@settings(max_examples=examples(40))
@given(
    case=cases(most_states=4),
    alpha=st.sampled_from([0.6, 0.3, 0.1]),
    slack=st.sampled_from([0.0, 0.3, 2.0]),
    step=st.sampled_from([0.3, 0.7, 1.5]),
)
def test_the_best_mean_within_a_limit_on_rounded_costs(case, alpha, slack, step):
    step *= case.step
    assume(solve_by_lp(case.raw, case.start, alpha) is not None and step <= np.abs(case.model.cost).max())
    try:
        plans = [prudent.solve(case.model, alpha, step=step, slack=slack, randomise=drawn) for drawn in (False, True)]
    except prudent.PrudentError as error:  # a cycle that costs nothing may seem to cost less, counted in such steps
        assert "negative total cost" in str(error)
        reject()
    for plan in plans:
        best, small = best_mean(case, alpha, plan.max_cvar), 1e-6 * max(1.0, abs(plan.max_cvar))
        assert plan.expected_lower <= best + small
        result = prudent.evaluate(case.model, plan.policy)
        if any("may not be kept" in note for note in plan.notes):
            assert plan.status == "gap_not_reached" and plan.max_cvar < plan.upper
            continue
        assert best - small <= plan.expected
        assert result.cvar_at_most(alpha) <= plan.max_cvar + small
        assert result.mean == pytest.approx(plan.expected, rel=1e-9, abs=1e-9)
