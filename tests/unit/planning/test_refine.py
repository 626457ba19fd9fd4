"""Which step to begin with, and which one next."""

from dataclasses import replace

import numpy as np
import pytest

import prudent
from prudent.engine.cost_step import finest_step, nice_step
from prudent.engine.prepare import prepare
from prudent.engine.sweep.estimate import likely_levels, solve_bytes, sweep_bytes
from prudent.planning.bounds import Bracket, Stage, Target
from prudent.planning.refine import chance_step, coarser_step, fair_step, finer_step, first_step, modest
from prudent.runtime.limits import Interruption, Limits
from strategies import noisy_table

AMPLE, DEFAULT = Limits(10**9), Target()


def real_model(seed):
    """A small model whose costs have no common step."""
    table = noisy_table(np.random.default_rng(seed))
    return prudent.build(
        0, {s: {a: [(p, t, c * 2**0.5) for p, t, c in o] for a, o in each.items()} for s, each in table.items()}
    )


def wide(large):
    """A model with a large cost that its worst runs pay, hardly ever."""
    return prudent.build("s", {"s": {"a": [(1 - 1e-9, "g", 2**0.5), (1e-9, "g", large * np.pi)], "b": [(1, "g", 3)]}})


def first(prepared, alpha, target=DEFAULT, limits=AMPLE):
    return first_step(prepared, alpha, target, limits)


@pytest.mark.parametrize(
    ("target", "levels"),
    [(Target(), 800), (Target(relative_gap=0.1), 96), (Target(relative_gap=0.016), 200), (Target(gap=0.0), 800)],
)
@pytest.mark.parametrize("seed", range(4))
def test_the_first_step_has_as_many_levels_as_the_gap_is_likely_to_take(seed, target, levels):
    model = real_model(seed)
    coarse = prepare(model, first(prepare(model), 0.3, target))
    found = likely_levels(coarse, 0.3)
    assert coarse.scale.rounded
    assert 0.99 * levels <= found <= levels / 0.74


def test_where_time_is_short_the_first_step_is_coarser():
    model = real_model(0)
    hasty = replace(AMPLE, time_limit=1e-6)
    steps = [first(prepare(model), 0.3, limits=limits) for limits in (AMPLE, hasty)]
    assert steps[1] > 5 * steps[0]


def test_the_first_step_is_no_finer_than_a_millionth_of_the_largest_cost():
    prepared = prepare(wide(1e6))
    assert first(prepared, 0.5) == nice_step(1e-6 * (1e6 * np.pi - 2**0.5))


@pytest.mark.parametrize("alpha", [0.3, 0.05])
@pytest.mark.parametrize("seed", range(6))
def test_at_a_fair_step_the_bounds_are_about_as_close_as_by_default(seed, alpha):
    model = real_model(seed)
    plan = prudent.solve(model, alpha, step=fair_step(prepare(model), alpha))
    assert (plan.upper - plan.lower) / max(abs(plan.upper), plan.upper - prepare(model).scale.in_units(0)) < 2e-3


def test_the_step_for_chances_is_at_most_the_largest_cost_above_the_best_of_luck():
    far = prudent.build("s", {"s": {"a": [(0.5, "g", 1e9 + 2**0.5), (0.5, "g", 1e9 + np.pi)]}})
    assert chance_step(prepare(far), 0.5) == nice_step(np.pi - 2**0.5)


def test_the_exact_optimum_is_modest_with_few_levels_or_little_work():
    def of(costs):
        return prudent.build("s", {"s": {"a": [(0.5, "g", cost) for cost in costs]}})

    many = prudent.build("s", {"s": {"a": [(1 / 2048, "g", 10**6 + i) for i in range(2048)]}})
    assert modest(prepare(of([1, 4000])), 0.1) and modest(prepare(of([1, 10**7])), 0.1)
    assert modest(prepare(many), 0.1)  # about the best of luck
    apart = prudent.build("s", {"s": {"a": [(1 / 2048, "g", 1000 * i + i % 3) for i in range(2048)]}})
    assert not modest(prepare(apart), 0.1)


def test_a_step_too_fine_for_memory_becomes_coarser_up_to_the_largest_cost():
    model = prudent.build("s", {"s": {"a": [(0.5, "g", 1), (0.5, "g", 10)]}})
    assert [coarser_step(model, step) for step in (0.5, 9.0, 12.0)] == [1.0, 15.0, None]


def loop(leave):
    return prudent.build("s", {"s": {"go": [(leave, "g", 1.1), (1 - leave, "s", 2**0.5)]}, "g": {}})


@pytest.mark.parametrize("leave", [1e-7, 1e-9])
def test_a_coarse_step_is_one_that_costs_can_be_rounded_to(leave):
    """Totals of millions of costs: what has a few hundred levels would not tell costs apart."""
    step = first(prepare(loop(leave)), 0.5)
    assert step == nice_step(1000 * 2**0.5)
    assert prepare(loop(leave), step).scale.rounded


def stage(gap, *, step=0.01, size=1.0, levels=100.0, seconds=0.0):
    return Stage(prepare(wide(2), step), None, Bracket(size - gap, size, size), levels, seconds)


def finer(found, target=DEFAULT, limits=AMPLE, *more):
    return finer_step(found, target, limits, *more, base=prepare(found.prepared.model))


@pytest.mark.parametrize(
    ("gap", "order", "step"),
    [
        (4e-3, 2, 0.0046),  # sqrt(0.85 / 4)
        (4e-3, 1, 0.0021),
        (1e-2, 2, 0.0029),
        (1.05e-3, 2, 0.007),  # at least so much finer
        (0.9, 2, 0.0015),  # at most so much
        (np.inf, 2, 0.0015),
    ],
)
def test_the_next_step_is_finer_as_the_gap_is_to_be(gap, order, step):
    assert finer(stage(gap), DEFAULT, AMPLE, 0.0, order)[:2] == (step, "")


def test_the_next_step_is_for_the_gap_that_was_asked_for():
    assert finer(stage(0.1), Target(gap=0.04))[0] == 0.0058
    assert finer(stage(0.1, size=10.0), Target(relative_gap=0.004))[0] == 0.0058


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        (replace(AMPLE, interruption=Interruption(asked=True)), "interrupted"),
        (replace(AMPLE, time_limit=1.0, began=-np.inf), "time"),
        (replace(AMPLE, memory=sweep_bytes(prepare(wide(2), 0.01), 100) // 10), "memory"),
    ],
)
def test_a_limit_leaves_the_step_as_it_was_and_says_why(limits, why):
    assert finer(stage(4e-3), limits=limits)[:2] == (0.01, why)


@pytest.mark.parametrize(("levels", "step"), [(700, 0.0021), (300, 0.003)])
def test_the_next_step_is_the_finest_that_memory_suffices_for(levels, step):
    limits = replace(AMPLE, memory=solve_bytes(prepare(wide(2), 0.002), levels))
    assert finer(stage(0.5), limits=limits)[:2] == (step, "")


@pytest.mark.parametrize(("left", "found"), [(100.0, (0.0015, "")), (25.0, (0.0057, "")), (12.0, (0.01, "time"))])
def test_the_next_step_is_as_fine_as_time_is_left_for(left, found, monkeypatch):
    """Ten seconds were needed, and a step of a fifth takes five times as long."""
    monkeypatch.setattr(Limits, "left", property(lambda self: left))
    assert finer(stage(0.5, seconds=10.0))[:2] == found


def test_where_costs_have_no_digits_left_there_is_no_next_step():
    model = wide(2)
    finest = finest_step(model.cost, model.n_states + 1)
    near, far = (replace(stage(0.5), prepared=prepare(model, step)) for step in (4 * finest, 4e3 * finest))
    assert finer(near)[:2] == (4 * finest, "digits")
    assert finer(far, limits=Limits(10**12))[1] != "digits"


@pytest.mark.parametrize(("common", "found"), [(5e-4, 0.0015), (1e-3, 1e-3), (0.004, 0.004)])
def test_no_step_is_finer_than_a_common_one(common, found):
    assert finer(stage(0.5), Target(), AMPLE, common)[:2] == (found, "")
