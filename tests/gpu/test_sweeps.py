"""Sweeps on a device, part by part: layers, windows, rows of actions on their way, bounds, checkpoints, memory."""

from dataclasses import replace

import numpy as np
import pytest
from random_models import random_model

import prudent
from prudent.engine import device_rows as rows_module
from prudent.engine.device_rows import device_rows
from prudent.engine.prepare import prepare
from prudent.engine.sweep import device_policy, device_tiles, question
from prudent.engine.sweep.backends import backend_for
from prudent.engine.sweep.device_levels import DeviceLevelSweep
from prudent.engine.sweep.device_tiles import DeviceTileSweep
from prudent.engine.sweep.levels import LevelSweep
from prudent.engine.sweep.question import BOTH, BOUND, Question
from prudent.engine.sweep.task import Task
from prudent.engine.sweep.tiles import TileSweep
from prudent.engine.values import device_values
from prudent.engine.values.expected_cost import least_expected_cost
from prudent.engine.values.worst_case import UNREACHED, least_worst_case
from prudent.policies.chain import backward_from_each, spent_budget
from prudent.runtime.limits import Limits
from standin import StandIn

CYCLIC = (0, 4, 8, 20)
"""Numbers of random models: costs are above 0, so none of their cycles is free."""

ACYCLIC = ("betting", "inventory", "treasure", 1)
MAKE = {
    "betting": lambda: prudent.domains.betting_game(stages=4, cap=30),
    "inventory": lambda: prudent.domains.inventory_control(stages=3, capacity=6, demand=3),
    "treasure": lambda: prudent.domains.deep_sea_treasure(horizon=6),
}


def prepared_model(which):
    return prepare(MAKE[which]()) if which in MAKE else prepare(random_model(which), 1.0)


def task_for(which, device, *, aims=BOTH, most=60):
    prepared = prepared_model(which)
    least, worst = least_expected_cost(prepared), least_worst_case(prepared)
    most = min(most, int(worst.value[prepared.start]))
    return Task(prepared, Question(least.base, least.choice, worst, aims), most, levels=most, device=device)


def swept(task, kind=None):
    sweep = (kind or backend_for(task, task.levels))(task)
    for last in (2, 9, task.most + 1):
        sweep.advance(min(last, task.most + 1))
    return sweep


def short_tiles(monkeypatch, levels):
    monkeypatch.setattr(device_tiles, "TILE", levels)
    monkeypatch.setattr(device_tiles, "SHORTEST", levels)


def check_same(task, cpu_kind):
    """Sweep on the device and on the CPU; both must find the same."""
    ours, theirs = swept(task), swept(task, cpu_kind)
    assert type(ours).device == "gpu"
    assert np.allclose(ours.found[:, : ours.done], theirs.found[:, : theirs.done], rtol=1e-11, atol=1e-13)
    if task.question.aims.plan:
        assert ours.lost == pytest.approx(theirs.lost, abs=1e-10)
        assert ours.choice.shape == theirs.choice.shape
        reached = np.arange(task.most + 1)[:, None] + task.prepared.least_spent <= task.most  # as runs can have them
        acting = ~task.prepared.is_goal
        assert (ours.choice == theirs.choice)[:, acting][reached[:, acting]].mean() > 0.98  # but for ties to rounding
    return ours


@pytest.mark.parametrize("number", CYCLIC)
def test_wide_layers_have_launches_of_their_own(device, monkeypatch, number):
    task = task_for(number, device)
    layers = len(np.unique(task.prepared.free_depth))
    assert sum(max(run.layers, 1) for run in device_rows(device, task.prepared).runs) == layers
    check_same(task, LevelSweep)
    monkeypatch.setattr(rows_module, "NARROW", 0)
    task = task_for(number, device)
    runs = device_rows(device, task.prepared).runs
    assert [run.layers for run in runs] == [0] * layers
    assert sum(run.places for run in runs) == task.prepared.n_states
    check_same(task, LevelSweep)


@pytest.mark.parametrize("number", [*CYCLIC, *ACYCLIC])
def test_actions_go_to_the_host_row_by_row(device, monkeypatch, number):
    monkeypatch.setattr(device_policy, "CHUNK", 1)
    short_tiles(monkeypatch, 3)
    monkeypatch.setattr("prudent.engine.sweep.task.AT_FIRST", 1)
    found = check_same(task_for(number, device, most=40), TileSweep if number in ACYCLIC else LevelSweep)
    policy = found._policy
    assert policy.each == 1 and policy.rows == 2 * (3 if number in ACYCLIC else 1) + policy.late
    if isinstance(device, StandIn):
        assert device.under_way == 0


@pytest.mark.parametrize("number", ACYCLIC)
def test_tiles_take_turns_in_their_rows(device, monkeypatch, number):
    short_tiles(monkeypatch, 5)
    found = check_same(task_for(number, device), TileSweep)
    assert found.tile == 5 and found._width == found.layout.back + 6


@pytest.mark.parametrize("number", CYCLIC)
@pytest.mark.parametrize("aims", [BOTH, BOUND])
def test_a_lower_bound_of_its_own_where_rounding_may_add_up(device, monkeypatch, number, aims):
    for narrow in (0, 1024):
        monkeypatch.setattr(rows_module, "NARROW", narrow)
        monkeypatch.setattr(question, "CLOSE", 0.0)
        task = task_for(number, device, aims=aims)
        found = swept(task)
        assert isinstance(found, DeviceLevelSweep)
        excess = swept(task_for(number, None), LevelSweep).found[0, : found.done]
        assert (found.found[1, : found.done] <= excess).all()
        assert np.allclose(found.found[1, : found.done], excess, rtol=1e-12)


@pytest.mark.parametrize("number", [*CYCLIC, *ACYCLIC])
def test_a_sweep_is_resumed_where_it_was(device, monkeypatch, number):
    monkeypatch.setattr(device_policy, "CHUNK", 1)
    short_tiles(monkeypatch, 4)
    task = task_for(number, device, most=30)
    whole, first = swept(task), backend_for(task, task.levels)(task)
    first.advance(min(14, task.most + 1))
    kept = {name: array.copy() for name, array in first.packed().items()}
    again = backend_for(task, task.levels)(task)
    again.resume(kept)
    again.advance(task.most + 1)
    assert (again.found[:, : again.done] == whole.found[:, : whole.done]).all()
    assert (again.choice == whole.choice).all() and again.lost == pytest.approx(whole.lost, nan_ok=True)
    if number in CYCLIC:  # the CPU can go on from there, too
        other = LevelSweep(task)
        other.resume(kept)
        other.advance(task.most + 1)
        assert np.allclose(other.found[:, : other.done], whole.found[:, : whole.done], rtol=1e-11, atol=1e-13)
    kept["choice"] = kept["choice"][:-1]
    with pytest.raises(prudent.PrudentError, match="does not fit this solve"):
        backend_for(task, task.levels)(task).resume(kept)


def test_tables_that_do_not_fit_are_refused():
    for number, free in ((0, 9000), (1, 1000), ("inventory", 30_000)):
        task = task_for(number, StandIn(free=free))
        with pytest.raises(prudent.PrudentError, match=r"the (tables|model) would take .* of the GPU's memory"):
            swept(task)


def test_who_sweeps_what(device):
    assert isinstance(swept(task_for(0, device)), DeviceLevelSweep)
    assert isinstance(swept(task_for(1, device)), DeviceTileSweep)
    assert isinstance(swept(task_for(1, None)), TileSweep)
    assert not DeviceLevelSweep.serves(task_for(1, device), 10) and not DeviceTileSweep.serves(task_for(0, device), 10)


@pytest.mark.parametrize("number", CYCLIC)
def test_expected_and_worst_costs(device, number):
    cpu, ours = prepared_model(number), prepared_model(number)
    limits = replace(Limits.of(None, None), device=device)
    found, worst = least_expected_cost(ours, limits), least_worst_case(ours, limits)
    known, known_worst = least_expected_cost(cpu), least_worst_case(cpu)
    assert np.allclose(found.value, known.value, rtol=1e-12)
    assert (found.lower <= known.upper).all() and (known.lower <= found.upper).all()
    assert (found.lower <= found.value).all() and (found.value <= found.upper).all()
    assert np.allclose(found.lower, found.upper, rtol=2e-12)
    assert (worst.value == known_worst.value).all() and (worst.action_value == known_worst.action_value).all()


@pytest.mark.parametrize("number", CYCLIC)
@pytest.mark.parametrize("narrow", [0, 1024])
def test_a_policy_is_evaluated_backwards(device, monkeypatch, number, narrow):
    monkeypatch.setattr(rows_module, "NARROW", narrow)
    model = random_model(number)
    policy = prudent.solve(model, 0.1, step=1.0).policy
    assert policy.level > 0
    cpu, limits = backward_from_each(policy, spent_budget(policy)), replace(Limits.of(None, None), device=device)
    found = backward_from_each(policy, spent_budget(policy), limits)
    if isinstance(device, StandIn):
        assert "settle_given" in "".join(device.launched)
    assert found.shape == cpu.shape and np.allclose(found, cpu, rtol=1e-11)
    assert (found[1] >= found[0]).all()


def test_bounded_worst_cases_with_cycles(device):
    table = {
        "a": {"try": [(0.5, "b", 1.0), (0.5, "g", 1.0)], "again": [(0.5, "a", 1.0), (0.5, "g", 1.0)]},
        "b": {"on": [(0.5, "g", 4.0), (0.5, "g", 1.0)], "back": [(0.9, "a", 1.0), (0.1, "g", 1.0)]},
    }
    model = prudent.build("a", lambda state: table.get(state, {}))
    ours, limits = prepare(model), replace(Limits.of(None, None), device=device)
    assert not ours.acyclic
    worst = least_worst_case(ours, limits)
    assert worst.value.max() < UNREACHED
    assert (worst.value == least_worst_case(prepare(model)).value).all()


def test_values_that_come_slowly_are_found_on_the_cpu(device, monkeypatch):
    monkeypatch.setattr(device_values, "PASSES", 8)
    ours, limits = prepare(random_model(0), 1.0), replace(Limits.of(None, None), device=device)
    found = least_expected_cost(ours, limits)
    assert (found.value == least_expected_cost(prepare(random_model(0), 1.0)).value).all()
