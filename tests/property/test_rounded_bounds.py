"""Rounded costs: every bound holds in exact arithmetic, at every step, on models with costs as people have them."""

from fractions import Fraction

import numpy as np
import pytest

import prudent
import prudent.planning.cvar
from prudent.engine.sweep.between import BetweenSweep
from prudent.kernels.between import PAD
from prudent.methods.objectives import MeanPlusCVaR
from rational_tails import TooMany, Truth, policy_cvar
from strategies import UNITS, examples, priced_model

ALPHAS = (1.0, 0.999, 0.95, 0.7, 0.5, 0.3, 0.2, 0.05, 0.01)
LEVELS = (0.6, 1.5, 3.2, 5, 9.7, 20, 41, 100, 300)
CLOSE = Fraction(1, 10**9)
KINDS = list(UNITS)


def meanings(kind):
    """The numbers that the floats are, and what they stand for."""
    unit = UNITS[kind]
    return [Fraction] if unit is None else [Fraction, lambda cost: Fraction(round(cost * unit), unit)]


@pytest.fixture
def stages(monkeypatch):
    """The stages of a solve."""
    seen, stage_of = [], prudent.planning.cvar.stage_of

    def noted(*args):
        seen.append(stage_of(*args))
        return seen[-1]

    monkeypatch.setattr(prudent.planning.cvar, "stage_of", noted)
    return seen


@pytest.fixture
def sweeps(monkeypatch):
    """The sweeps with costs between levels."""
    seen, begin = [], BetweenSweep.__post_init__

    def noted(sweep):
        begin(sweep)
        seen.append(sweep)

    monkeypatch.setattr(BetweenSweep, "__post_init__", noted)
    return seen


def steps_of(rng, model, kind, size):
    """Steps from a handful of levels to hundreds, some of them multiples of the unit."""
    size, unit = size if size > 1e-9 else 1.0, UNITS[kind]
    for levels in rng.choice(LEVELS, 3, replace=False):
        step = float(size / levels)
        step = max(round(step * unit), 1) / unit if unit and rng.random() < 0.7 else step
        if step < 900 * np.abs(model.cost).max():
            yield step


def check_plan(model, plan, alpha, truths):
    for truth in truths:
        assert Fraction(plan.lower) <= truth <= Fraction(plan.upper)
    prepared = plan.policy.prepared
    ends = prepared.finite and (prepared.plays == 1).all()
    try:
        own = policy_cvar(model, plan.policy, alpha, exact=ends)
    except (TooMany, RecursionError):
        return
    margin = CLOSE * abs(own) + Fraction(1, 10**12)
    assert Fraction(plan.cvar) - margin <= own <= Fraction(plan.upper) + margin


def check_table(rng, model, sweep, truth):
    """The bound is below the least excess in every state, at levels and between them."""
    prepared = sweep.task.prepared
    if not sweep.sound or sweep.origin != -PAD:
        return
    size = Fraction(prepared.scale.lattice.step) * prepared.scale.stride
    places = [*enumerate(prepared.members.state_of.tolist()), (truth.start, prepared.start)]
    for state, place in [pair for pair in places if pair[1] >= 0 and truth.rows[pair[0]]]:
        for level in range(min(sweep.done - 1, 12)):
            for part in (Fraction(0), Fraction(1, 2), Fraction(int(rng.integers(100)), 100)):
                below, above = (Fraction(float(sweep.table[place, PAD + level + i])) for i in (0, 1))
                least = truth.excess(state, (level + part) * size) / size
                assert (1 - part) * below + part * above <= least + 10 * CLOSE * (1 + least), (state, level, part)


def check_model(seed, kind, stages, sweeps):
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    model, alpha = priced_model(rng, kind), float(rng.choice(ALPHAS))
    try:
        truth, *others = (Truth(model, meant) for meant in meanings(kind))
        truths = [each.cvar(alpha) for each in (truth, *others)]
    except (TooMany, RecursionError):
        return
    for step in steps_of(rng, model, kind, float(truths[0] - truth.luck[truth.start])):
        sweeps.clear()
        check_plan(model, prudent.solve(model, alpha, step=step), alpha, truths)
        for sweep in sweeps:
            try:
                check_table(rng, model, sweep, truth)
            except (TooMany, RecursionError):
                continue
    stages.clear()
    check_plan(model, prudent.solve(model, alpha, relative_gap=float(rng.choice([0.1, 0.01, 1e-3]))), alpha, truths)
    for stage in stages:
        for optimum in truths:
            assert Fraction(stage.bracket.lower) <= optimum <= Fraction(stage.bracket.upper)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(examples(8)))
def test_bounds_enclose_the_optimum_and_the_plan_at_every_stage(kind, seed, stages, sweeps):
    check_model(seed, kind, stages, sweeps)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(1000, 1125))
def test_bounds_hold_on_five_hundred_models(kind, seed, stages, sweeps):
    check_model(seed, kind, stages, sweeps)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(examples(5)))
def test_bounds_on_the_mean_and_on_every_alpha_hold(kind, seed):
    rng = np.random.default_rng([seed, 50 + KINDS.index(kind)])
    model, alpha, weight = priced_model(rng, kind), float(rng.choice(ALPHAS[1:])), float(rng.choice([0.1, 1.0, 7.0]))
    try:
        truth = Truth(model)
        optima = {each: truth.cvar(each) for each in (alpha, (1 + alpha) / 2, 1.0)}
        both = Truth(model, share=Fraction(alpha) / Fraction(weight)).cvar(alpha) * Fraction(weight)
    except (TooMany, RecursionError):
        return
    for step in steps_of(rng, model, kind, float(optima[alpha] - truth.luck[truth.start])):
        curve = prudent.curve(model, alpha_min=alpha, step=step)
        for each, optimum in optima.items():
            point = curve.at(each)
            assert Fraction(point.lower) <= optimum <= Fraction(point.upper)
        found = prudent.solve(model, alpha, objective=MeanPlusCVaR(weight), step=step).objective
        margin = CLOSE * (abs(both) + 1) * Fraction(1, 1000)  # its value is not rounded up
        assert Fraction(found.lower) <= both <= Fraction(found.upper) + margin
        if kind != "reals":
            rounded = prudent.solve(model, alpha, slack=0.1, step=step)
            least = prudent.solve(model, alpha, gap=0).upper  # the limit counts from a bound, so it may be lower
            exact = prudent.solve(model, alpha, max_cvar=max(rounded.max_cvar, least), gap=0)
            assert rounded.expected_lower <= exact.expected + float(CLOSE) * (1 + abs(exact.expected))


@pytest.mark.parametrize(("cost", "alpha"), [(1.5, 0.9), (0.5, 0.8), (2.25, 0.97)])
def test_a_best_budget_above_the_last_level_below_the_bound_counts(cost, alpha):
    """The least f lies between the last level that it is not below and the next one."""
    model = prudent.build("s", {"s": {"a": [(0.001, "g", 0.0), (0.999, "g", cost)]}, "g": {}})
    plan = prudent.solve(model, alpha, step=1)
    assert Fraction(plan.lower) <= Truth(model).cvar(alpha) <= Fraction(plan.upper)


def test_a_short_loop_that_was_made_free_has_not_its_true_cost_at_level_0():
    """V counts the loop; right above level 0, where the loop is free, the bound may not."""
    model = prudent.build("s", {"s": {"try": [(0.5, "g", 0.0), (0.5, "s", 0.2)]}, "g": {}})
    truth = Truth(model)
    for alpha in (0.01, 0.1, 0.3, 0.5, 0.9):
        plan = prudent.solve(model, alpha, step=1)
        assert Fraction(plan.lower) <= truth.cvar(alpha) <= Fraction(plan.upper)
