"""Sweeps in tiles, against sweeps level by level: the same numbers, whatever the layout."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import prudent
import prudent.engine.sweep.backends
import prudent.engine.sweep.driver
import prudent.engine.sweep.tile_layout
import prudent.engine.sweep.tile_window
import prudent.engine.sweep.tiles
from plans import same_policy
from prudent.engine.prepare import prepare
from prudent.engine.prepared import once
from prudent.engine.sweep.levels import LevelSweep
from prudent.engine.sweep.question import BOTH, BOUND, EXCESS, PLAN, Question, without_safety
from prudent.engine.sweep.task import Swept, Task
from prudent.engine.sweep.tile_layout import BLOCK, Rules, lay_out, tiling_of
from prudent.engine.sweep.tile_window import SHORT, Window, shape_of
from prudent.engine.sweep.tiles import TileSweep
from prudent.engine.values.expected_cost import least_expected_cost
from prudent.engine.values.worst_case import least_worst_case
from prudent.kernels.questions import Base, Terms
from prudent.kernels.stretches import LANES
from strategies import cases, examples, solvable

LAYOUT, WINDOW = "prudent.engine.sweep.tile_layout", "prudent.engine.sweep.tile_window"


def swept(prepared, *, tiles, most=60, aims=BOTH, terms=EXCESS, layout=None, threads=1, anew=False):
    """One sweep to a level, in tiles or level by level, in steps that get longer; begun ``anew`` after each of them."""
    expected, worst = least_expected_cost(prepared), least_worst_case(prepared)
    slope = terms.accrual + terms.slope
    base = Base(slope * expected.value, slope * expected.lower, expected.value)
    if terms.accrual > 0:
        worst = without_safety(prepared)
    most = min(most, int(worst.value[prepared.start]))
    task = Task(prepared, Question(base, expected.choice, worst, aims, terms), most, threads=threads)
    sweep = TileSweep(task, layout=layout) if tiles else LevelSweep(task)
    while sweep.done <= most:
        if anew:
            kept, sweep = {name: each.copy() for name, each in sweep.packed().items()}, TileSweep(task, layout=layout)
            sweep.resume(kept)
        last = min(2 * sweep.done + 7, most + 1)
        sweep.advance(last, final=last > most)
    return Swept(*sweep.found[:, : sweep.done], sweep.choice, sweep.values, "", sweep.lost)


def finely(strip):
    """Parts as small as can be, in strips of so many levels, so that small models have work for many threads."""
    stack = ExitStack()
    for name, value in {
        f"{LAYOUT}.PART": 1,
        f"{LAYOUT}.LEAST": 1,
        f"{WINDOW}.STRIP": strip,
        f"{WINDOW}.SHORT": 1,
    }.items():
        stack.enter_context(patch(name, value))
    return stack


def assert_same(one, other):
    for name in ("excess", "low", "mean"):
        assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-10, abs=1e-300)


@pytest.mark.parametrize("name", ["betting_game", "deep_sea_treasure"])
@pytest.mark.parametrize("aims", [BOTH, PLAN])
@pytest.mark.parametrize("terms", [EXCESS, Terms(1.0, 3.0)])
def test_domains(name, aims, terms):
    prepared = prepare(getattr(prudent.domains, name)())
    assert tiling_of(prepared) is not None
    assert_same(*(swept(prepared, tiles=tiles, aims=aims, terms=terms) for tiles in (True, False)))


def test_shared_lists_are_added_up_once():
    prepared = prepare(prudent.domains.inventory_control())
    tiling = tiling_of(prepared)
    assert len(tiling.work.cost) < len(prepared.cost) / 4
    assert_same(*(swept(prepared, tiles=tiles, most=150) for tiles in (True, False)))


@settings(max_examples=examples(80), deadline=None)
@given(case=cases(), tile=st.sampled_from([2, 3, 8]), terms=st.sampled_from([EXCESS, Terms(1.0, 2.0)]))
def test_random_models_with_short_tiles(case, tile, terms):
    """Short tiles let small costs be long ones, cycles wait within a tile, and tables slide."""
    with solvable():
        prepared = prepare(case.model)
    layout = lay_out(prepared, Rules(long=tile, tiles=(tile,), crowded=1.1, by_level=1e9))
    assume(layout is not None)  # free cycles are solved level by level
    for aims in (BOTH, PLAN, BOUND):
        found = [swept(prepared, tiles=tiles, aims=aims, terms=terms, layout=layout) for tiles in (True, False)]
        assert_same(*found)
        assert len(found[0].choice) == len(found[1].choice)


@settings(max_examples=examples(60), deadline=None)
@given(case=cases(), tile=st.sampled_from([2, 3, 8, 40]), strip=st.sampled_from([1, 2, 5]))
def test_parts_of_any_size_in_any_number_of_threads(case, tile, strip):
    """The same bits, also where every level is handed on and every sweep is resumed."""
    with solvable():
        prepared = prepare(case.model)
    layout = lay_out(prepared, Rules(long=tile, tiles=(tile,), crowded=1.1, by_level=1e9))
    assume(layout is not None)
    alone = swept(prepared, tiles=True, layout=layout)
    with finely(strip):
        parts = [swept(prepared, tiles=True, layout=layout, threads=n, anew=n > 1) for n in (1, 3)]
    for each in parts:
        for name in ("excess", "low", "mean", "choice"):
            assert (getattr(each, name) == getattr(alone, name)).all()


def test_costs_that_look_far_back_are_swept_in_shared_rows():
    """Tiles get as long as costs look back, and nodes hand on no more levels than there are."""
    rng, n = np.random.default_rng(2), 40
    outcomes = n * 2 * 3
    model = prudent.from_arrays(
        np.append(np.arange(0, 2 * n + 1, 2), 2 * n),
        np.arange(0, outcomes + 1, 3),
        rng.dirichlet(np.ones(3), 2 * n).ravel(),
        np.minimum(np.repeat(np.arange(n), 6) + rng.integers(1, 3, outcomes), n),
        rng.integers(0, 300, outcomes).astype(float),
    )
    prepared = prepare(model)
    layout = lay_out(prepared, Rules(long=16))
    assert layout.shares_rows and layout.wide is False and 16 < layout.tile <= layout.back and layout.back > 2 * BLOCK
    assert_same(*(swept(prepared, tiles=tiles, most=700, layout=layout) for tiles in (True, False)))
    sweep = TileSweep(Task(prepared, Question(*_values(prepared)), 700), layout=layout)
    sweep.advance(20)
    assert sweep.packed()["excess"].size < (BLOCK + 1) * layout.n_nodes + 100
    sweep.advance(700)
    handed = sum(sweep.packed()[name].nbytes for name in ("excess", "mean"))
    with patch("prudent.engine.sweep.tiles.tiling_of", lambda prepared: layout):
        said = TileSweep.table_bytes(prepared, 700, BOTH, keep=False)
    streams, tile, width = shape_of(layout, 700, 1)
    rest = 16 * layout.rows * width + 8 * layout.scratch_rows * tile
    assert streams == 1 and said == rest + handed - 16 * LANES  # whole blocks of levels


@settings(max_examples=examples(60), deadline=None)
@given(
    case=cases(acyclic=True, most_states=9),
    tile=st.sampled_from([2, 3, 8, 40]),
    threads=st.integers(2, 5),
    anew=st.booleans(),
)
def test_several_tiles_at_the_same_time(case, tile, threads, anew):
    """The same bits, also where tiles are shorter than what they hand on."""
    with solvable():
        prepared = prepare(case.model)
    layout = lay_out(prepared, Rules(long=tile))
    alone = swept(prepared, tiles=True, layout=layout)
    with finely(tile), patch(f"{WINDOW}.BEHIND", 0), patch(f"{WINDOW}.LITTLE", 1e9):
        assert shape_of(layout, 1000, threads)[0] == (threads if layout.shares_rows else 1)
        together = swept(prepared, tiles=True, layout=layout, threads=threads, anew=anew)
    for name in ("excess", "low", "mean", "choice"):
        assert (getattr(together, name) == getattr(alone, name)).all()


@pytest.mark.parametrize("levels", [1, 100, 300, 513, 1030, 1966])
@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_tiles_at_the_same_time_are_about_as_long(levels, threads):
    tiling = tiling_of(prepare(staged(np.random.default_rng(0), stages=60, width=20)))
    window = Window(tiling, 4000, True, threads, 4000)
    tiles, _, _ = window.tiles(1, 1 + levels, final=True)
    turns = -(-levels // (window.streams * window.tile))
    assert window.streams == threads and tiles.tile <= window.tile
    assert tiles.tile == SHORT or 0 <= tiles.tile - levels / (turns * threads) < LANES  # in whole lanes


def _values(prepared):
    expected = least_expected_cost(prepared)
    return expected.base, expected.choice, least_worst_case(prepared)


def staged(rng, stages, width):
    """A model without cycles, large enough for tiles to be settled side by side."""
    n = stages * width
    outcomes = n * 3 * 5
    stage = np.repeat(np.arange(stages), width * 3 * 5)
    successor = np.where(stage == stages - 1, n, (stage + 1) * width + rng.integers(0, width, outcomes))
    return prudent.from_arrays(
        np.append(np.arange(0, 3 * n + 1, 3), 3 * n),
        np.arange(0, outcomes + 1, 5),
        rng.dirichlet(np.ones(5), 3 * n).ravel(),
        successor,
        rng.integers(0, 10, outcomes).astype(float),
    )


def test_threads_change_nothing(monkeypatch):
    lanes, side_by_side = set(), prudent.engine.sweep.tiles.side_by_side
    monkeypatch.setattr(
        prudent.engine.sweep.tiles, "side_by_side", lambda n, work: (lanes.add(n), side_by_side(n, work))
    )
    model = staged(np.random.default_rng(1), 60, 150)
    plans = [prudent.solve(model, 0.1, threads=threads) for threads in (1, 2, 3)]
    assert lanes == {1, 2, 3}
    for plan in plans[1:]:
        assert plan.to_dict() | {"seconds": 0} == plans[0].to_dict() | {"seconds": 0}
        assert same_policy(plan.policy, plans[0].policy)
    with pytest.raises(prudent.PrudentError, match="threads is 0; it must be a whole number"):
        prudent.solve(model, 0.1, threads=0)


def test_solves_at_the_same_time_do_not_wait_for_each_other():
    model = staged(np.random.default_rng(1), 60, 150)
    alone = prudent.solve(model, 0.1, threads=2).cvar
    with ThreadPoolExecutor(4) as pool:
        assert {plan.cvar for plan in pool.map(lambda _: prudent.solve(model, 0.1, threads=2), range(8))} == {alone}


def test_what_goes_wrong_in_a_thread_is_raised(monkeypatch):
    def settle(*arguments):
        raise MemoryError("no room")

    model = staged(np.random.default_rng(1), 60, 150)
    prudent.solve(model, 0.1, threads=1)
    monkeypatch.setattr(prudent.engine.sweep.tiles, "settle", settle)
    with pytest.raises(MemoryError, match="no room"):
        prudent.solve(model, 0.1, threads=2)


def test_numbers_of_the_sweep_are_those_of_an_evaluation():
    """Plans of models without cycles take their numbers from the sweep itself."""
    for name in ("betting_game", "deep_sea_treasure", "inventory_control"):
        model = getattr(prudent.domains, name)()
        for alpha in (0.02, 0.2):
            plan = prudent.solve(model, alpha)
            result = prudent.evaluate(model, plan.policy)
            assert plan.expected == pytest.approx(result.mean, rel=1e-12)
            assert plan.cvar == pytest.approx(result.cvar(alpha), rel=1e-12)
            assert plan.var == result.var(alpha)
            assert plan.lower <= result.cvar(alpha) <= plan.upper


def test_states_that_no_run_reaches_so_cheaply_are_refused():
    risky = {"a": [(0.5, "g", 1), (0.5, "g", 9)], "b": [(1.0, "g", 4)]}
    model = prudent.build("s", {"s": {"go": [(0.5, "t", 5), (0.5, "g", 1)]}, "t": risky})
    plan = prudent.solve(model, 0.1)
    assert plan.policy("t", 5) == "b"
    with pytest.raises(
        prudent.PrudentError, match="no run can be in state 't' having spent 3; the lowest cost so far is 5"
    ):
        plan.policy("t", 3)
    with pytest.raises(
        prudent.PrudentError, match="no run can be in state 't' having spent 3; the lowest cost so far is 5"
    ):
        plan.explain("t", 3)
    with pytest.raises(
        prudent.PrudentError, match="no run can be in state 't' having spent 0; the lowest cost so far is 5"
    ):
        plan.policy("t")


def test_amounts_that_no_run_has_spent_are_refused():
    """Runs to t cost 3 or 7: there is a common step of 1 in the costs, but 4 between totals."""
    model = prudent.build(
        "s", {"s": {"go": [(0.5, "t", 3), (0.5, "t", 7)]}, "t": {"on": [(0.5, "g", 1), (0.5, "g", 5)]}}
    )
    policy = prudent.solve(model, 0.1).policy
    assert policy("t", 3) == policy("t", 7) == "on"
    with pytest.raises(
        prudent.PrudentError, match="'t' having spent 5; the lowest cost so far is 3, and higher ones go in steps of 4"
    ):
        policy("t", 5)


def test_states_that_no_run_reaches_are_refused():
    table = {"s": {"go": [(1, "g", 1)], "bad": [(0.5, "trap", 1), (0.5, "via", 1)]}, "via": {"on": [(1, "g", 1)]}}
    model = prudent.build("s", table | {"trap": {"stay": [(1, "trap", 1)]}})
    alone = prudent.from_arrays([0, 1, 2, 2], [0, 1, 2], [1, 1], [2, 2], [1, 1])
    for method in ("exact", "expected"):
        policy = prudent.solve(model, 0.1, method=method).policy
        for state in ("trap", "via"):
            with pytest.raises(
                prudent.PrudentError, match=f"no run of any plan reaches state '{state}': no plan that may come"
            ):
                policy(state, 1)
        with pytest.raises(prudent.PrudentError, match="no run of any plan reaches state 1: nothing leads to it from"):
            prudent.solve(alone, 0.1, method=method).policy(1)


def test_once_is_once():
    calls = []

    @once
    def counted(prepared):
        calls.append(prepared)
        return len(calls)

    prepared = prepare(prudent.domains.figure_2())
    assert [counted(prepared) for _ in range(3)] == [1, 1, 1]


def test_nothing_is_written_outside_of_what_a_thread_works_in():
    """Sums run on to whole lanes, also in the last row, for a state whose actions fill all rows."""
    rng, n, guard = np.random.default_rng(0), 30, 64
    model = prudent.from_arrays(
        np.append(np.arange(0, 4 * n + 1, 4), 4 * n),
        np.arange(0, 8 * n + 1, 2),
        np.full(8 * n, 0.5),
        np.minimum(np.repeat(np.arange(n), 8) + rng.integers(1, 3, 8 * n), n),
        rng.choice([1.0, 2.0, 3.0, 500.0], 8 * n),
    )
    prepared = prepare(model)
    layout = replace(lay_out(prepared, Rules()), shares_rows=False)
    layout = replace(layout, row=np.arange(layout.n_nodes), rows=layout.n_nodes)
    sweep = TileSweep(Task(prepared, Question(*_values(prepared)), 40), layout=layout)
    (scratch,) = sweep.tables.scratch
    room = {
        name: np.full(len(getattr(scratch, name)) + guard, 77.0) for name in ("k", "least", "next_least", "m", "mean")
    }
    sweep.tables.scratch[0] = scratch._replace(**{name: array[:-guard] for name, array in room.items()})
    sweep.advance(41)
    for name, array in room.items():
        assert (array[-guard:] == 77).all(), name
