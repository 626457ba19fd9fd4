"""Models laid out for sweeping level by level, and swept so by several threads."""

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from tests.strategies import cases, examples, solvable

import prudent
from prudent.engine import places as layout_module
from prudent.engine.places import lanes_of, places_of, turns_of
from prudent.engine.prepare import prepare
from prudent.engine.sweep.between import BetweenSweep
from prudent.engine.sweep.bounded import beneath
from prudent.engine.sweep.levels import LevelSweep
from prudent.engine.sweep.question import BOTH, BOUND, EXCESS, PLAN, Question
from prudent.engine.sweep.task import Task
from prudent.engine.values.expected_cost import least_expected_cost
from prudent.engine.values.worst_case import least_worst_case
from prudent.kernels.places import cut
from prudent.runtime.limits import UNLIMITED

ROOMS = {
    "a": {"go": [(0.5, "b", 0), (0.5, "a", 2)], "wait": [(1, "c", 1)]},
    "b": {"back": [(0.4, "a", 0), (0.6, "c", 1)], "on": [(0.5, "d", 0), (0.5, "g", 5)]},
    "c": {"on": [(0.7, "d", 0), (0.3, "a", 3)]},
    "d": {"on": [(0.5, "g", 1), (0.5, "b", 2)]},
}


@pytest.fixture
def tiny_parts(monkeypatch):
    monkeypatch.setattr(layout_module, "PART", 1)
    monkeypatch.setattr(layout_module, "ENOUGH", 1)


def swept(model, aims, threads, levels=30, keep=False):
    prepared = prepare(model)
    least, worst = least_expected_cost(prepared), least_worst_case(prepared)
    most = int(min(levels, worst.value[prepared.start]))
    sweep = LevelSweep(Task(prepared, Question(least.base, least.choice, worst, aims), most, keep, threads))
    for last in (most // 2 + 1, most + 1):
        if last > sweep.done:
            sweep.advance(last)
    return sweep


def test_a_part_needs_all_parts_to_which_its_free_moves_lead(tiny_parts):
    prepared = prepare(prudent.build("a", ROOMS))
    turns, (places, _) = turns_of(prepared), places_of(prepared)
    part = np.searchsorted(turns.start, np.arange(prepared.n_states), side="right") - 1
    for s in range(prepared.n_states):
        for o in range(places.outcome_start[places.action_start[s]], places.outcome_start[places.action_start[s + 1]]):
            t = places.successor[o]
            same_cycle = prepared.free_blocks[2][places.state[s]] == prepared.free_blocks[2][places.state[t]]
            if places.cost[o] == 0 and not same_cycle:
                assert part[t] < turns.needed[part[s]] <= part[s] or (part[s] == part[t] and t < s)


def test_rows_are_those_of_the_states_at_their_places(tiny_parts):
    prepared = prepare(prudent.build("a", ROOMS))
    places, action = places_of(prepared)
    assert (places.place[places.state] == np.arange(prepared.n_states)).all()
    for i, s in enumerate(places.state):
        count = prepared.action_start[s + 1] - prepared.action_start[s]
        assert count == places.action_start[i + 1] - places.action_start[i]
        for j in range(count):
            a, new = prepared.action_start[s] + j, places.action_start[i] + j
            assert action[new] == a == places.action[i] + j
            old = slice(prepared.outcome_start[a], prepared.outcome_start[a + 1])
            row = slice(places.outcome_start[new], places.outcome_start[new + 1])
            assert (prepared.probability[old] == places.probability[row]).all()
            assert (prepared.cost[old] == places.cost[row]).all()
            assert (places.place[prepared.successor[old]] == places.successor[row]).all()


def test_large_sections_are_cut_and_small_ones_in_a_row_make_one_part():
    work = np.arange(101) * 10
    start, needed = cut(
        np.array([0, 40, 42, 44, 90, 92, 100]), np.array([False, False, False, False, True, False]), work, 100
    )
    assert start.tolist() == [0, 10, 20, 30, 40, 44, 54, 64, 74, 84, 90, 92, 100]
    assert needed.tolist() == [0, 0, 0, 0, 4, 5, 5, 5, 5, 5, 10, 11]


@pytest.mark.parametrize("aims", [BOTH, PLAN, BOUND])
@pytest.mark.parametrize("threads", [2, 5])
def test_any_number_of_threads_gives_the_same_bits(aims, threads, tiny_parts):
    floors = {f"{name}{i}": _upstairs(actions, i) for i in range(6) for name, actions in ROOMS.items()}
    model = prudent.build("lift", {"lift": {"up": [(1 / 6, f"a{i}", i % 3) for i in range(6)]}, **floors})
    one, other = swept(model, aims, 1), swept(model, aims, threads)
    prepared = other.task.prepared
    assert lanes_of(turns_of(prepared), 1000 * len(prepared.cost), threads) > 1
    assert np.array_equal(one.found, other.found)
    assert np.array_equal(one.choice, other.choice)
    assert np.array_equal(one.tables.table, other.tables.table)


def _upstairs(actions, i):
    return {a: [(p, t if t == "g" else f"{t}{i}", c) for p, t, c in outcomes] for a, outcomes in actions.items()}


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=cases())
def test_parts_change_nothing(case, monkeypatch):
    with solvable():
        prepare(case.model)
    whole = swept(case.model, BOTH, 1, keep=True)
    with monkeypatch.context() as patch:
        for name in ("PART", "ENOUGH"):
            patch.setattr(layout_module, name, 1)
        cut_up = swept(case.model, BOTH, 3, keep=True)
    assert np.array_equal(whole.found, cut_up.found)
    assert np.array_equal(whole.choice, cut_up.choice)
    for one, other in zip(whole.values, cut_up.values, strict=True):
        assert np.array_equal(one, other)


def corridor(numbers):
    """Return a corridor of rooms, numbered so: from each to its neighbours, out at the end."""
    n = len(numbers)
    place = np.argsort(numbers)
    start = [*(np.minimum(np.arange(n + 1), n) * 1), n]
    left, right = np.maximum(place - 1, 0), place + 1
    successor = np.stack([numbers[left], np.append(numbers, n)[right]], axis=1)
    return prudent.from_arrays(
        np.array(start),
        2 * np.arange(n + 1),
        np.full(2 * n, 0.5),
        successor.ravel(),
        np.ones(2 * n),
        initial=numbers[0],
    )


def test_states_are_renumbered_only_where_that_brings_successors_closer(monkeypatch):
    monkeypatch.setattr(layout_module, "MANY", 100)
    monkeypatch.setattr(layout_module, "NEAR", 16)
    shuffled = np.random.default_rng(0).permutation(200)
    tidy, mixed = prepare(corridor(np.arange(200))), prepare(corridor(shuffled))
    assert (layout_module._nearby(tidy) == np.arange(201)).all()
    order = layout_module._nearby(mixed)
    assert sorted(order) == list(range(201))
    rank = np.argsort(order)
    far = np.abs(rank[mixed.outcome_state] - rank[mixed.successor])
    assert far.max() <= 2
    whole, other = (swept(corridor(numbers), PLAN, 1) for numbers in (np.arange(200), shuffled))
    assert np.array_equal(whole.found, other.found)
    random = prudent.from_arrays(
        np.array([*range(200), 199]),
        2 * np.arange(200),
        np.full(398, 0.5),
        np.random.default_rng(1).integers(0, 200, 398),
        np.ones(398),
    )
    assert (np.diff(layout_module._nearby(prepare(random))) == 1).all()


@settings(max_examples=examples(30), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=cases())
def test_parts_change_no_bound_between_levels(case, monkeypatch):
    with solvable():
        prepare(case.model)
    assume(np.abs(case.model.cost).max() >= 3 * case.step)

    def bound(threads):
        below, base, worst = beneath(prepare(case.model, 2.5 * case.step), EXCESS, UNLIMITED, between=True)
        sweep = BetweenSweep(Task(below, Question(base, below.proper_choice(), worst, BOUND), 40, threads=threads))
        for last in (13, 41):
            sweep.advance(last)
        return sweep.found

    whole = bound(1)
    with monkeypatch.context() as patch:
        for name in ("PART", "ENOUGH"):
            patch.setattr(layout_module, name, 1)
        assert np.array_equal(whole, bound(3))
