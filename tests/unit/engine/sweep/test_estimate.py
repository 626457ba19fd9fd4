"""What a sweep takes, told before it is begun: against closed forms, and against what it then takes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import prudent
from prudent.engine.prepare import prepare
from prudent.engine.sweep import estimate
from prudent.engine.sweep.estimate import advised_device, likely_levels, seconds_per_level, sweep_bytes, within_levels
from prudent.engine.sweep.levels import LevelSweep
from prudent.engine.sweep.question import BOTH, BOUND, Question
from prudent.engine.sweep.task import Task
from prudent.engine.values.expected_cost import Expected, least_expected_cost
from prudent.engine.values.worst_case import least_worst_case
from prudent.methods.exact import explore
from prudent.runtime.limits import Limits
from strategies import cases, examples, solvable

LOOP = {"s": {"try": [(0.5, "s", 1), (0.5, "g", 1)], "wade": [(0.6, "s", 3), (0.4, "g", 2)]}}


@pytest.mark.parametrize("alpha", [0.5, 0.1, 0.01])
def test_levels_are_those_of_cantelli_for_tries_of_one_half(alpha):
    """A number of tries has mean 2 and variance 2, counted from the one that it takes at least."""
    truth = 1 + 2**0.5 * ((1 - alpha) / alpha) ** 0.5
    assert likely_levels(prepare(prudent.build("s", LOOP)), alpha) == pytest.approx(min(truth, 1 / alpha) + 1, rel=1e-6)


def test_levels_are_never_more_than_the_least_worst_case():
    model = prudent.build("s", LOOP | {"s": LOOP["s"] | {"pay": [(1, "g", 4)]}})
    assert likely_levels(prepare(model), 1e-6) == 3 + 1


@settings(max_examples=examples(60))
@given(case=cases(), alpha=st.sampled_from([0.5, 0.1, 0.02]))
def test_the_optimal_cvar_is_at_no_more_levels_than_are_likely(case, alpha):
    with solvable():
        prepared = prepare(case.model)
    excess = explore(prepared, alpha, Limits(10**9)).swept.excess
    assert (np.arange(len(excess)) + excess / alpha).min() <= likely_levels(prepared, alpha) - 1 + 1e-6


@pytest.mark.parametrize(("most", "alpha", "known"), [(100, 0.02, False), (1.5, 0.02, False), (12, 0.02, True)])
def test_the_variance_is_found_only_where_it_decides(most, alpha, known):
    """The mean is 1 level, the likely levels are 1 + 2**0.5 * 7 + 1, the CVaR at most 50."""
    prepared = prepare(prudent.build("s", LOOP))
    assert within_levels(prepared, alpha, most) == (most > 11.9)
    assert (Expected.variance in least_expected_cost(prepared).found) == known


@settings(max_examples=examples(60))
@given(case=cases(), alpha=st.sampled_from([0.5, 0.1, 0.02]), ratio=st.sampled_from([0.3, 0.9, 1.1, 3.0]))
def test_levels_are_judged_as_they_are_likely(case, alpha, ratio):
    with solvable():
        prepared = prepare(case.model)
    found = likely_levels(prepared, alpha)
    assert within_levels(prepared, alpha, ratio * found) == (ratio >= 1)


@pytest.mark.parametrize("aims", [BOTH, BOUND])
@pytest.mark.parametrize("keep", [False, True])
def test_memory_is_at_least_what_the_tables_take_and_not_much_more(aims, keep):
    prepared, levels = prepare(prudent.build("s", LOOP)), 500
    expected = least_expected_cost(prepared)
    worst = least_worst_case(prepared)
    sweep = LevelSweep(Task(prepared, Question(expected.base, expected.choice, worst, aims), levels, keep))
    sweep.advance(levels + 1, final=True)
    tables = sum(array.nbytes for array in (sweep.tables.table, sweep.choice, sweep.found[:, : levels + 1]))
    assert tables <= sweep_bytes(prepared, levels, aims, keep) < 10 * tables
    assert sweep_bytes(prepared, levels, aims, keep) < sweep_bytes(prepared, 2 * levels, aims, keep)


def test_memory_counts_actions_twice_if_they_are_many_and_none_for_a_bound(monkeypatch):
    prepared = prepare(prudent.build("s", LOOP))
    values = {aims: 8 * prepared.n_states * (3 + 1) * (3 if aims.plan else 1) + 16 * 4 for aims in (BOTH, BOUND)}
    assert prepared.cost.max() == 3
    assert sweep_bytes(prepared, 99) == values[BOTH] + (prepared.n_states + estimate.PER_LEVEL) * 100
    monkeypatch.setattr(estimate, "AT_FIRST", 100)
    assert sweep_bytes(prepared, 99) == values[BOTH] + (2 * prepared.n_states + estimate.PER_LEVEL) * 100
    assert sweep_bytes(prepared, 99, BOUND) == values[BOUND] + estimate.PER_LEVEL * 100


def test_a_level_takes_time_and_none_is_tried_where_there_is_no_room(monkeypatch):
    prepared = prepare(prudent.build("s", LOOP))
    assert 0 < seconds_per_level(prepared, 1000) < np.inf
    monkeypatch.setattr(estimate, "TRIAL", 100)
    assert np.isnan(seconds_per_level(prepared, 1000))


def test_a_gpu_is_advised_where_many_states_are_side_by_side_and_the_cpu_takes_long():
    game, loop = prepare(prudent.domains.betting_game()), prepare(prudent.build("s", LOOP))
    for prepared in (game, loop):
        assert [advised_device(prepared, 100, seconds) for seconds in (0.1, 100.0)] == ["cpu", "gpu"]
    assert advised_device(loop, 10**9, 100.0) == "cpu"  # a launch for each level takes longer
    assert advised_device(prepare(prudent.build("s", LOOP), 0.7), 100, 100.0) == "cpu"  # costs are rounded
    free = {"s": {"a": [(0.5, "t", 0), (0.5, "g", 1)]}, "t": {"b": [(0.5, "s", 0), (0.5, "g", 2)]}}
    assert advised_device(prepare(prudent.build("s", free)), 100, 100.0) == "cpu"  # cycles at no cost
    assert prudent.check(prudent.domains.figure_2()).forecast.device == "cpu"
