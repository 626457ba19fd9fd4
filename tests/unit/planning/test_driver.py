"""One driver under every verb: what is asked of the bounds holds for all of them, where costs have no common step."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

import prudent
from prudent.engine.prepare import prepare
from prudent.engine.sweep.estimate import sweep_bytes
from prudent.planning.solve import solve_aloud
from strategies import noisy_table

SEEDS = (0, 3, 5, 8)


def real_model(seed):
    """A small model whose costs have no common step."""
    rng = np.random.default_rng(seed)
    table = noisy_table(rng)
    return prudent.build(
        0,
        {s: {a: [(p, t, c * 2**0.5) for p, t, c in o] for a, o in actions.items()} for s, actions in table.items()}.get,
    )


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("objective", [prudent.ValueAtRisk(), prudent.MeanPlusCVaR(2.0), prudent.WorstCase()])
def test_objectives_are_refined_to_the_gap_asked_for(seed, objective):
    model = real_model(seed)
    rough, fine = (prudent.solve(model, 0.3, objective=objective, relative_gap=gap).objective for gap in (1e-2, 1e-5))
    size = max(abs(fine.lower), abs(fine.upper))
    assert fine.upper - fine.lower <= 1e-5 * size
    assert rough.upper - rough.lower <= 1e-2 * size
    assert max(rough.lower, fine.lower) <= min(rough.upper, fine.upper)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_limit_on_cvar_is_refined_while_that_helps(seed):
    model = real_model(seed)
    rough, fine = (prudent.solve(model, 0.3, max_cvar=1e3, relative_gap=gap) for gap in (1e-2, 1e-6))
    assert fine.status in ("optimal", "within_gap")  # every plan is within the limit: only rounding leaves a gap
    assert fine.expected - fine.expected_lower <= 1e-6 * max(abs(fine.expected), 1.0)
    assert fine.expected <= rough.expected + 1e-9
    tight = prudent.solve(model, 0.3, slack=0.02, relative_gap=1e-9)  # which no step may reach
    assert tight.expected_lower <= tight.expected
    assert tight.lower <= tight.cvar <= tight.max_cvar + 1e-9


def test_a_limit_that_ends_a_finer_attempt_leaves_the_best_so_far():
    model = real_model(0)
    asked = {"objective": prudent.MeanPlusCVaR(2.0), "relative_gap": 1e-5}
    plan = prudent.solve(model, 0.3, memory="1MB", **asked)
    truth = prudent.solve(model, 0.3, **asked)
    assert plan.status == "gap_not_reached"
    assert any("limit; raise memory=" in note for note in plan.notes)
    assert plan.objective.lower <= truth.objective.upper and truth.objective.lower <= plan.objective.upper


def fine_model():
    """Costs with four decimals: a common step, but one that takes 130,000 levels."""
    costs = {"s": [(0.6, "t", 1.2345), (0.4, "t", 7.6543)], "t": [(0.3, "s", 2.7182), (0.7, "g", 3.1415)]}
    return prudent.build("s", {state: {"go": each, "pay": [(1, "g", 60.0)]} for state, each in costs.items()})


FINE = {
    "cvar": {},
    "var": {"objective": prudent.ValueAtRisk()},
    "mean plus cvar": {"objective": prudent.MeanPlusCVaR(2.0)},
    "limit": {"max_cvar": 1e3},
}


@pytest.mark.parametrize("limit", [{"memory": "1MB"}, {"time_limit": 600}])
@pytest.mark.parametrize("asked", FINE.values(), ids=FINE)
def test_a_common_step_that_takes_too_much_is_rounded(asked, limit, monkeypatch):
    monkeypatch.setattr("prudent.planning.refine.seconds_per_level", lambda *_: 1.0)  # a second for each level
    monkeypatch.setattr("prudent.planning.refine.PER_SECOND", 1e3)
    model = fine_model()
    plan = prudent.solve(model, 0.3, **asked, **limit)
    truth = prudent.solve(model, 0.3, **asked)
    assert plan.policy.prepared.scale.rounded and not truth.policy.prepared.scale.rounded
    assert plan.status in ("within_gap", "optimal")
    assert plan.step > 1e-3
    assert plan.lower <= truth.upper and truth.lower <= plan.upper
    if plan.objective is not None:
        assert plan.objective.lower <= truth.objective.upper and truth.objective.lower <= plan.objective.upper
    lacking = "memory" if "memory" in limit else "time"
    step = "the common step of the costs, 0.0001,"
    raised = next(iter(limit))
    why = f"{step} would take more {lacking} than the limit allows; to use it, raise {raised}= and set gap=0 (--gap 0)"
    assert why in plan.notes


def test_who_insists_on_the_optimum_hears_what_it_takes():
    for asked in ({"gap": 0}, {"relative_gap": 0}, {"step": 1e-4}):
        with pytest.raises(
            prudent.PrudentError, match=r"the tables would take .*; the limit is 1 MB; round costs to a"
        ):
            prudent.solve(fine_model(), 0.3, memory="1MB", **asked)


def test_the_common_step_is_the_last_one():
    """A gap that only the optimum meets leads there, if memory suffices for it but not for a guess that it might."""
    model, asked = fine_model(), {"alpha": 0.3, "relative_gap": 1e-8}
    truth = prudent.solve(model, **asked)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("prudent.planning.driver.in_time", lambda *_: False)
        plan = prudent.solve(model, **asked)
    assert not plan.policy.prepared.scale.rounded
    assert (plan.status, plan.step, plan.notes) == (truth.status, truth.step, truth.notes)
    assert plan.cvar == truth.cvar


def test_overviews_round_a_common_step_that_takes_too_much():
    model = fine_model()
    curve = prudent.curve(model, alpha_min=0.3, memory="1MB")
    plan = prudent.solve(model, 0.3, memory="1MB")
    assert curve.step > 1e-3 and curve.notes
    assert curve.at(0.3).lower <= plan.upper and plan.lower <= curve.at(0.3).upper
    assert prudent.frontier(model, 0.3, memory="1MB").step > 1e-3
    found = prudent.chances(model, [5.0, 9.0], memory="1MB")
    assert found.step > 1e-3 and (found.lower <= found.upper).all()


def test_a_common_step_is_not_rounded_where_that_saves_nothing():
    game = prudent.domains.betting_game()
    truth, prepared = prudent.solve(game, 0.2), prepare(game)
    few = round(prepared.scale.in_levels(truth.upper)) - 2
    plan = prudent.solve(game, 0.2, memory=sweep_bytes(prepared, few))  # steps of a whole euro are coarse already
    assert (plan.status, plan.step) == ("gap_not_reached", truth.step)


def test_a_mean_beyond_floats_is_refused_with_the_remedy():
    model = prudent.build(0, lambda s: {} if s == 1200 else {"go": [(0.5, s + 1, 1), (0.5, 0, 1)]}, name="endless")
    for method in ("expected", "exact", "worst-case"):
        with pytest.raises(
            prudent.PrudentError, match="cost of endless is larger than any float; limit the number of actions"
        ):
            prudent.solve(model, 0.1, method=method)


def test_a_very_long_mean_is_answered_with_bounds():
    model = prudent.build(0, lambda s: {} if s == 120 else {"go": [(0.7, s + 1, 1), (0.3, 0, 1)]})
    truth = (Fraction(0.7) ** -120 - 1) / (1 - Fraction(0.7))  # the expected number of steps
    plan = prudent.solve(model, 1.0, method="expected")
    assert plan.expected == pytest.approx(float(truth), rel=1e-9)
    assert plan.expected_lower <= truth <= plan.upper < 1.000001 * plan.expected


def told(model, alpha, **asked):
    """Solve; return the plan, and the best ones so far that a listener heard."""
    heard_of = []
    return solve_aloud(model, alpha, heard_of.append, **asked), heard_of


def test_a_listener_hears_the_best_plan_each_time_it_is_to_be_refined(monkeypatch):
    for name in ("COARSE", "FAIR"):
        monkeypatch.setattr(f"prudent.planning.refine.{name}", 20)  # levels of the first step
    model = real_model(0)
    plan, before = told(model, 0.3, relative_gap=1e-6)
    assert before and [each.status for each in before] == ["gap_not_reached"] * len(before)
    for coarse, fine in pairwise([*before, plan]):
        assert coarse.step >= fine.step and coarse.lower <= fine.lower and fine.upper <= coarse.upper
    for each in before:
        assert each.lower <= prudent.evaluate(model, each.policy).cvar(0.3) <= each.upper
    assert told(model, 0.3, relative_gap=1e-6, method="expected")[1] == []
    assert told(model, 0.3, step=before[0].step)[1] == []  # one step is given, and kept


def test_a_listener_hears_the_rounded_plan_before_the_exact_one_is_sought(monkeypatch):
    monkeypatch.setattr("prudent.planning.driver.modest", lambda *_: False)
    ways = {"slow": [(0.9, 1, 123.47), (0.1, 1, 230.51)], "fast": [(0.7, 1, 12.34), (0.3, 1, 459.13)]}
    model = prudent.build(0, lambda i: {a: [(p, i + d, c) for p, d, c in o] for a, o in ways.items()} if i < 6 else {})
    plan, before = told(model, 0.2)
    exact = before[-1]
    assert (plan.status, plan.step, exact.status) == ("optimal", 0.01, "within_gap")
    assert exact.step > plan.step and exact.lower <= plan.lower <= plan.upper <= exact.upper


def test_all_threads_find_what_attempts_need(monkeypatch):
    seen = []

    def modest(prepared, alpha, most, limits):
        seen.append(prepared.threads)
        return True

    monkeypatch.setattr("prudent.planning.driver.modest", modest)
    prudent.solve(prudent.domains.betting_game(), 0.2, threads=3)
    assert seen == [3]
