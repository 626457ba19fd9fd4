"""Which step to begin with, and which one next."""

from dataclasses import replace

import numpy as np
import pytest

import prudent
from prudent.engine.cost_step import finest_step, nice_step
from prudent.engine.prepare import prepare
from prudent.engine.sweep.estimate import likely_levels, sweep_bytes
from prudent.engine.values.expected_cost import least_expected_cost
from prudent.engine.values.worst_case import least_worst_case
from prudent.planning.bounds import Bracket, Target
from prudent.planning.refine import Stage, coarse_step, finer_step, likely_step
from prudent.runtime.limits import Limits
from strategies import noisy_table

AMPLE = Limits(10**9)


def real_model(seed):
    """A small model whose costs have no common step."""
    table = noisy_table(np.random.default_rng(seed))
    return prudent.build(
        0, {s: {a: [(p, t, c * 2**0.5) for p, t, c in o] for a, o in each.items()} for s, each in table.items()}
    )


def wide(large):
    """A model with a large cost that its worst runs pay, hardly ever."""
    return prudent.build("s", {"s": {"a": [(1 - 1e-9, "g", 2**0.5), (1e-9, "g", large * np.pi)], "b": [(1, "g", 3)]}})


@pytest.mark.parametrize("alpha", [0.3, 0.05])
@pytest.mark.parametrize("seed", range(6))
def test_a_coarse_step_has_about_two_thousand_levels(seed, alpha):
    model = real_model(seed)
    coarse = prepare(model, coarse_step(prepare(model), alpha))
    levels = likely_levels(coarse, least_expected_cost(coarse), least_worst_case(coarse), alpha)
    assert coarse.scale.rounded
    assert 2000 <= levels <= 2000 / 0.74


def test_a_coarse_step_is_no_finer_than_a_millionth_of_the_largest_cost():
    prepared = prepare(wide(1e6))
    assert coarse_step(prepared, 0.5) == nice_step(1e-6 * (1e6 * np.pi - 2**0.5))


@pytest.mark.parametrize("alpha", [0.3, 0.05])
@pytest.mark.parametrize("seed", range(6))
def test_at_a_likely_step_the_bounds_are_about_as_close_as_by_default(seed, alpha):
    model = real_model(seed)
    step = likely_step(prepare(model), alpha)
    gaps = []
    for each in (step, step / 4):
        plan = prudent.solve(model, alpha, step=each)
        gaps.append((plan.upper - plan.lower) / max(abs(plan.upper), plan.upper - prepare(model).scale.in_units(0)))
    assert 0.4e-3 < gaps[0] < 2.5e-3
    assert gaps[1] < 1e-3


def test_a_likely_step_is_at_most_the_largest_cost_above_the_best_of_luck():
    far = prudent.build("s", {"s": {"a": [(0.5, "g", 1e9 + 2**0.5), (0.5, "g", 1e9 + np.pi)]}})
    assert likely_step(prepare(far), 0.5) == nice_step(np.pi - 2**0.5)


def loop(leave):
    return prudent.build("s", {"s": {"go": [(leave, "g", 1.1), (1 - leave, "s", 2**0.5)]}, "g": {}})


@pytest.mark.parametrize("leave", [1e-7, 1e-9])
def test_a_coarse_step_is_one_that_costs_can_be_rounded_to(leave):
    """Totals of millions of costs: what has two thousand levels would not tell costs apart."""
    step = coarse_step(prepare(loop(leave)), 0.5)
    assert step == nice_step(1000 * 2**0.5)
    assert prepare(loop(leave), step).scale.rounded


def stage(gap, *, step=0.01, size=1.0, levels=100.0, seconds=0.0):
    return Stage(prepare(wide(2), step), None, Bracket(size - gap, size, size), levels, seconds)


@pytest.mark.parametrize(
    ("gap", "factor"),
    [
        (4e-3, 0.8 * 1e-3 / 4e-3),  # a fifth, to have a quarter of the gap
        (1e-2, 0.8 * 1e-3 / 1e-2),
        (1.05e-3, 0.7),  # at least so much finer
        (0.9, 1 / 32),  # at most so much
        (np.inf, 1 / 32),
    ],
)
def test_the_next_step_is_finer_as_the_gap_is_to_be(gap, factor):
    assert finer_step(stage(gap), Target(), AMPLE) == (nice_step(0.01 * factor), "")


def test_the_next_step_is_for_the_gap_that_was_asked_for():
    assert finer_step(stage(0.1), Target(gap=0.05), AMPLE)[0] == nice_step(0.01 * 0.4)
    assert finer_step(stage(0.1, size=10.0), Target(relative_gap=0.005), AMPLE)[0] == nice_step(0.01 * 0.4)


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        (replace(AMPLE, interrupted=True), "interrupted"),
        (replace(AMPLE, time_limit=1.0, began=-np.inf), "time"),
        (replace(AMPLE, memory=sweep_bytes(prepare(wide(2), 0.002), 499)), "memory"),
    ],
)
def test_a_limit_leaves_the_step_as_it_was_and_says_why(limits, why):
    assert finer_step(stage(4e-3), Target(), limits) == (0.01, why)


def test_memory_that_suffices_for_the_levels_there_will_be_is_enough():
    limits = replace(AMPLE, memory=sweep_bytes(prepare(wide(2), 0.002), 500))
    assert finer_step(stage(4e-3), Target(), limits) == (0.002, "")


@pytest.mark.parametrize(("left", "found"), [(100.0, (0.002, "")), (25.0, (0.004, "")), (12.0, (0.01, "time"))])
def test_the_next_step_is_as_fine_as_time_is_left_for(left, found, monkeypatch):
    """Ten seconds were needed, and a step of a fifth takes five times as long."""
    monkeypatch.setattr(Limits, "left", property(lambda self: left))
    assert finer_step(stage(4e-3, seconds=10.0), Target(), AMPLE) == found


def test_where_costs_have_no_digits_left_there_is_no_next_step():
    model = wide(2)
    finest = finest_step(model.cost, model.n_states + 1)
    near, far = (replace(stage(0.5), prepared=prepare(model, step)) for step in (4 * finest, 4e3 * finest))
    assert finer_step(near, Target(), AMPLE) == (4 * finest, "digits")
    assert finer_step(far, Target(), Limits(10**12))[1] != "digits"


@pytest.mark.parametrize(("common", "found"), [(5e-4, 0.002), (1e-3, 0.002), (1.1e-3, 1.1e-3), (0.004, 0.004)])
def test_no_step_is_finer_than_a_common_one(common, found):
    assert finer_step(stage(4e-3), Target(), AMPLE, common) == (found, "")


def test_a_stage_holds_something_else_that_was_found_in_it():
    before = stage(4e-3, levels=7.0, seconds=3.0)
    after = replace(before, stopped="time").holding("other", Bracket(1.0, 2.0, 2.0))
    assert (after.found, after.bracket.gap, after.levels, after.seconds, after.stopped) == ("other", 1, 7, 3, "time")
    assert before.holding("other").bracket == before.bracket
