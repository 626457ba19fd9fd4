"""Limits on CVaR: they count from the optimum's bounds, and are kept, or the plan says that they may not be."""

from dataclasses import replace

import numpy as np
import pytest

import prudent
from cents import in_cents, limits_on, spare_parts
from cycles import walk
from plans import same_policy
from prudent.engine.sweep import bounded
from prudent.methods import within_limit
from prudent.methods.mean_cvar import Single
from prudent.planning import job
from prudent.policies.own_tail import UNKNOWN
from prudent.runtime.limits import Stopped

UNKEPT = "may not be kept"


def check_kept(model, alpha, plan, truth, most):
    """The plan keeps its limit or says so; the limit is not above the one that counts from the optimum."""
    result = prudent.evaluate(model, plan.policy)
    assert plan.max_cvar <= most * (1 + 1e-9)
    assert plan.lower <= truth.upper and truth.lower <= plan.upper
    assert plan.expected == pytest.approx(result.mean, rel=1e-9)
    assert plan.expected_lower <= plan.expected
    if any(UNKEPT in note for note in plan.notes):
        assert plan.status in ("gap_not_reached", "interrupted")
        assert plan.max_cvar < plan.upper
    else:
        assert result.cvar_at_most(alpha) <= plan.max_cvar * (1 + 1e-9)


def check_random(seeds, most_states):
    for seed in seeds:
        rng = np.random.default_rng([seed, 1])
        model, alpha = in_cents(seed, most_states), float(rng.choice([0.3, 0.1, 0.02]))
        plan = prudent.solve(model, alpha, threads=1)
        for limit, most in limits_on(model, plan, rng):
            check_kept(model, alpha, prudent.solve(model, alpha, threads=1, **limit), plan, most)


def test_limits_on_models_in_cents():
    check_random(range(6), 8)


@pytest.mark.slow
def test_limits_on_a_hundred_models_in_cents():
    check_random(range(100, 200), 8)


@pytest.mark.parametrize(
    "limit", [{"slack": 0.01}, {"absolute_slack": 20.0}, {"max_cvar": 3650.0}, {"slack": 0.01, "randomise": True}]
)
def test_a_limit_on_a_store_of_spare_parts(limit):
    model, alpha = spare_parts(13, 4), 0.05
    plan = prudent.solve(model, alpha)
    most = limit.get("max_cvar", plan.upper * (1 + limit.get("slack", 0.0)) + limit.get("absolute_slack", 0.0))
    within = prudent.solve(model, alpha, **limit)
    check_kept(model, alpha, within, plan, most)
    assert not any(UNKEPT in note for note in within.notes)
    assert within.expected < 0.97 * plan.expected  # what a limit is for
    assert within.expected - within.expected_lower < 0.04 * within.expected


def refund():
    """A rare refund, with costs that have no common step; the optimum of the rest is 14.14."""
    root = 2**0.5
    return prudent.build(
        "s",
        {
            "s": {"go": [(1e-6, "g", -1e10), (1 - 1e-6, "u", 0)]},
            "u": {"safe": [(1, "g", 10 * root)], "risky": [(0.9, "g", 1.0), (0.1, "g", 20 * root)]},
        },
    )


@pytest.mark.parametrize("limit", [{"absolute_slack": 1.0}, {"slack": 0.05}, {"max_cvar": 15.0}])
@pytest.mark.parametrize("randomise", [False, True])
def test_a_limit_counts_from_the_bounds_of_the_optimum(limit, randomise):
    """Here the step is coarse, so the optimum is known only roughly; the plan found may be far from it."""
    plan = prudent.solve(refund(), 0.05, time_limit=4, randomise=randomise, **limit)
    optimum, own = 10 * 2**0.5, prudent.evaluate(refund(), plan.policy).cvar_at_most(0.05)
    most = {"absolute_slack": optimum + 1, "slack": 1.05 * optimum, "max_cvar": 15.0}[next(iter(limit))]
    assert plan.max_cvar <= most
    assert plan.status not in ("optimal", "within_gap") or own <= most
    assert own <= plan.max_cvar or any(UNKEPT in note for note in plan.notes)


def test_a_limit_that_is_stopped_is_kept_or_the_plan_says_so():
    model, alpha = spare_parts(13, 4), 0.05
    plain = prudent.solve(model, alpha)
    for limit in (0.02, 0.1, 0.5):
        for options in ({"slack": 0.02}, {"max_cvar": 1.05 * plain.upper}, {"slack": 0.02, "randomise": True}):
            most = options.get("max_cvar", 1.02 * plain.upper)
            check_kept(model, alpha, prudent.solve(model, alpha, time_limit=limit, **options), plain, most)


@pytest.mark.parametrize("randomise", [False, True])
def test_stopped_while_the_bound_is_sought(monkeypatch, randomise):
    """The plan found is kept; only its bound is missing."""
    stopped = prudent.runtime.limits.Stopped("time", "this")

    def stop(*args, **options):
        raise stopped

    monkeypatch.setattr("prudent.methods.mean_cvar.Weighing.bound", stop)
    monkeypatch.setattr("prudent.methods.mixture._surely", stop)
    model = spare_parts(13, 4)
    plan = prudent.solve(model, 0.05, slack=0.01, randomise=randomise, time_limit=600)
    assert plan.status == "gap_not_reached"
    assert prudent.evaluate(model, plan.policy).cvar_at_most(0.05) <= plan.max_cvar
    assert "an extra CVaR of" in plan.notes[-1]


@pytest.mark.parametrize("limit", [{"absolute_slack": 1.0}, {"slack": 0.05}, {"max_cvar": 15.0}, {"max_cvar": 1e12}])
def test_a_limit_without_time_for_any_sweep_has_an_answer(limit):
    for seconds in (1e-9, 0.01, 0.05):
        plan = prudent.solve(refund(), 0.05, time_limit=seconds, **limit)
        assert plan.lower <= 10 * 2**0.5 <= plan.upper
        assert plan.upper <= plan.max_cvar or (
            plan.status == "gap_not_reached" and any(UNKEPT in note for note in plan.notes)
        )
    rng = np.random.default_rng(0)
    actions = {s: {"a": [(0.3, int(rng.integers(300)), 7), (0.7, (s + 1) % 301, 2)]} for s in range(300)}
    model = prudent.build(0, actions.get, goals=[300])
    if limit == {"max_cvar": 15.0}:
        with pytest.raises(prudent.PrudentError, match="no plan has a CVaR that low"):
            prudent.solve(model, 0.05, time_limit=1e-9, **limit)
        return
    plan = prudent.solve(model, 0.05, time_limit=1e-9, **limit)
    assert np.isfinite(plan.lower) and plan.lower <= plan.upper
    assert any("stopped at the time limit" in note for note in plan.notes)


def test_bounds_without_time_to_prove_them_are_those_at_hand(monkeypatch):
    def late(*_):
        raise Stopped("time", "weighing")

    model = spare_parts(6, 4)
    plain = prudent.solve(model, 0.05)
    monkeypatch.setattr("prudent.methods.mean_cvar.Single.least_expected", late)
    plan = prudent.solve(model, 0.05, slack=0.02, time_limit=1000)
    check_kept(model, 0.05, plan, plain, 1.02 * plain.upper)
    assert plan.expected_lower < plan.expected


def test_only_a_known_optimum_is_called_minimal():
    for options in ({"max_cvar": 20.0}, {"max_cvar": 30.0}, {"absolute_slack": 1.0}):
        plan = prudent.solve(refund(), 0.05, time_limit=4, **options)
        assert plan.upper - plan.lower > 1  # how far depends on the time
        assert not any("at the minimal CVaR" in note for note in plan.notes)


def test_a_step_too_coarse_to_keep_a_limit_is_told():
    model = spare_parts(6, 4)
    plain = prudent.solve(model, 0.05)
    plan = prudent.solve(model, 0.05, max_cvar=1.001 * plain.upper, step=60.0)
    assert plan.upper > plan.max_cvar
    assert plan.status == "gap_not_reached"
    assert any(UNKEPT in note and f"at most {plan.upper:.9g}" in note for note in plan.notes)


@pytest.mark.parametrize("asked", [{"slack": 0.05}, {"absolute_slack": 5.0}, {"max_cvar": 1e6}])
@pytest.mark.parametrize("n", [60, 20_000])
def test_where_time_ends_before_the_minimal_cvar_is_known_there_is_the_plan_at_hand(n, asked):
    """It says that the limit may not be kept; what is known of its expected cost may be nothing."""
    model = walk(n)
    plan = prudent.solve(model, 0.05, time_limit=1e-9, **asked)
    assert plan.lower < plan.upper and plan.expected_lower <= plan.lower
    assert any("stopped at the time limit" in note for note in plan.notes)
    assert plan.notes[-1].endswith("limit on CVaR could be used; this is a plan for the lowest expected cost")
    unkept = [note for note in plan.notes if UNKEPT in note]
    assert bool(unkept) == (plan.max_cvar < plan.upper)
    if n == 20_000:
        assert plan.status == "gap_not_reached"
        assert np.isnan(plan.expected) and plan.upper == np.inf and "no upper bound on the CVaR" in unkept[0]
    else:
        truth = prudent.solve(model, 0.05, method="expected")
        assert plan.status == ("gap_not_reached" if unkept else "optimal")
        assert truth.cvar <= plan.upper and plan.lower <= truth.upper
        assert plan.expected == pytest.approx(truth.expected, rel=1e-9)


def test_a_limit_that_no_plan_keeps_is_refused_though_the_minimal_cvar_is_not_known():
    told = r"max_cvar is 1; no plan has a CVaR that low.* is at least [\d.e+]+;"
    with pytest.raises(prudent.PrudentError, match=told):
        prudent.solve(walk(20_000), 0.05, max_cvar=1, time_limit=1e-9)


@pytest.mark.parametrize("slack", [{"slack": 0.1}, {"absolute_slack": 0.0}])
def test_a_limit_on_the_mean_where_time_ends_counts_from_its_bounds(slack):
    model = walk(60)
    least = prudent.solve(model, 1, method="expected").expected
    plan = prudent.solve(model, 1, time_limit=1e-9, **slack)
    assert plan.expected == pytest.approx(least, rel=1e-9)
    assert plan.max_cvar == pytest.approx(least * (1 + slack.get("slack", 0.0)), rel=1e-9)
    assert (plan.status == "optimal") == (not any(UNKEPT in note for note in plan.notes))


def test_a_model_is_prepared_once(monkeypatch):
    seen, real = [], job.prepare
    monkeypatch.setattr(job, "prepare", lambda *about: seen.append(about) or real(*about))
    prudent.solve(spare_parts(6, 4), 0.05, slack=0.001)
    assert len(seen) == 1


def test_a_bound_that_is_stopped_leaves_the_plan(monkeypatch):
    def late(self, sure):
        raise Stopped("time", "this")

    model = prudent.domains.betting_game()
    whole = prudent.solve(model, 0.2, slack=0.05)
    monkeypatch.setattr(Single, "least_expected", late)
    plan = prudent.solve(model, 0.2, slack=0.05, time_limit=100)
    assert plan.expected == whole.expected and plan.expected_lower <= whole.expected_lower
    assert any("stopped at the time limit" in note for note in plan.notes)


def sweeps(monkeypatch, model, alpha, **limit):
    """The numbers of levels of all sweeps that a solve takes, and the plan."""
    levels, real = [], bounded.budget_sweep

    def counted(*about, **options):
        swept = real(*about, **options)
        levels.append(len(swept.excess))
        return swept

    monkeypatch.setattr(bounded, "budget_sweep", counted)
    return levels, prudent.solve(model, alpha, **limit)


@pytest.mark.parametrize(("randomise", "most"), [(False, 2), (True, 3)])
def test_few_sweeps_have_many_levels(monkeypatch, randomise, most):
    """Weights are sought at a coarser step; at the common one there are a plain solve, and those that decide."""
    levels, plan = sweeps(monkeypatch, in_cents(125, 8), 0.1, slack=0.02, randomise=randomise)
    assert sum(each > max(levels) / 4 for each in levels) == most and len(levels) > most + 2
    assert plan.step == 0.01 and plan.expected < prudent.solve(in_cents(125, 8), 0.1).expected


def test_a_plan_of_lowest_expected_cost_is_not_improved_upon(monkeypatch):
    model = prudent.build("s", {"s": {"good": [(0.5, "g", 1.25), (0.5, "g", 3.5)], "bad": [(1, "g", 9.75)]}})
    levels, plan = sweeps(monkeypatch, model, 0.2, slack=0.5)
    assert len(levels) == 1 and (plan.status, plan.expected) == ("optimal", 2.375)


@pytest.mark.parametrize("randomise", [False, True])
def test_a_plan_is_followed_once(monkeypatch, randomise):
    followed, real = [], within_limit.own_tail
    monkeypatch.setattr(
        within_limit, "own_tail", lambda *about, **more: followed.append(about[0]) or real(*about, **more)
    )
    plan = prudent.solve(prudent.domains.betting_game(), 0.2, slack=0.02, randomise=randomise)
    assert followed == [plan.policy] and len(plan.policy.parts) == 1 + randomise


def test_a_plan_too_long_to_follow_is_evaluated_backwards(monkeypatch):
    """So is one whose sums along its runs are too long to be certain."""
    model, usual = prudent.domains.betting_game(), within_limit.own_tail
    for randomise in (False, True):
        monkeypatch.setattr(within_limit, "own_tail", usual)
        known = prudent.solve(model, 0.2, slack=0.02, randomise=randomise)
        for own in (UNKNOWN, replace(UNKNOWN, var=90.0, cvar=95.0, upper=96.0, error=1.0, notes=())):
            monkeypatch.setattr(within_limit, "own_tail", lambda *about, own=own, **more: own)
            plan = prudent.solve(model, 0.2, slack=0.02, randomise=randomise)
            assert plan.expected == pytest.approx(known.expected, rel=1e-9)
            assert np.isnan(plan.cvar) if own is UNKNOWN else plan.cvar == pytest.approx(known.cvar, rel=1e-9)
            assert same_policy(plan.policy, known.policy)
