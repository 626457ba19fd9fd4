"""Sweeps over several ranks, part by part, with threads as ranks: the same bits, checkpoints, errors on all."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "gpu"))

from random_models import random_model

import prudent
from prudent.engine.places import places_of, sections_of
from prudent.engine.prepare import prepare
from prudent.engine.sweep import question as question_module
from prudent.engine.sweep import rank_tiles
from prudent.engine.sweep.backends import backend_for
from prudent.engine.sweep.estimate import sweep_bytes
from prudent.engine.sweep.levels import LevelSweep
from prudent.engine.sweep.question import BOTH, BOUND, PLAN, Question
from prudent.engine.sweep.rank_levels import RankLevelSweep, share_of
from prudent.engine.sweep.rank_sweep import Advance, Begin, Collect
from prudent.engine.sweep.rank_tiles import RankTileSweep
from prudent.engine.sweep.task import Task
from prudent.engine.sweep.tile_layout import Tiling, tiling_of
from prudent.engine.sweep.tiles import TileSweep
from prudent.engine.values.expected_cost import least_expected_cost
from prudent.engine.values.worst_case import least_worst_case
from prudent.runtime.ranks import End, Ranks, on_first
from threads_as_ranks import Comm, led, on_ranks, same

MODELS = {
    "betting": lambda: prudent.domains.betting_game(stages=4, cap=30),
    "inventory": lambda: prudent.domains.inventory_control(stages=3, capacity=6, demand=3),
    "treasure": lambda: prudent.domains.deep_sea_treasure(horizon=6),
    "higher stakes": lambda: prudent.domains.betting_game(stages=5, cap=80),
    "larger store": lambda: prudent.domains.inventory_control(stages=5, capacity=8, demand=4),
    "wide": lambda: wide_model(),
    "chain": lambda: chain(),
    **{number: (lambda number=number: random_model(number)) for number in (1, 2, 4, 6, 8, 20, 22)},
}
KINDS = {RankTileSweep: TileSweep, RankLevelSweep: LevelSweep}


def wide_model():
    """Return a model without cycles that looks back so far that one process lets every node have a row of its own."""
    rng = np.random.default_rng(5)

    def actions(s):
        to = rng.integers(s + 1, 31, size=(3, 3))
        return {a: [(1 / 3, int(t), int(rng.integers(1, 900))) for t in to[a]] for a in range(3)}

    return prudent.build(0, {s: actions(s) if s < 30 else {} for s in range(31)}.get)


def chain():
    """Return a model with cycles whose states lead to states nearby."""
    return prudent.build(0, lambda s: {} if s == 60 else {"on": [(0.5, s + 1, 2), (0.5, max(s - 1, 0), 1)]})


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Short tiles, many pieces, and work for all lanes."""
    monkeypatch.setattr(Tiling, "lanes", lambda tiling, parts, levels, strip, threads: threads)
    monkeypatch.setattr(rank_tiles, "SMALLEST", 1)
    monkeypatch.setattr(rank_tiles, "LEAST", 1)
    monkeypatch.setattr(rank_tiles, "short_tile", lambda *about: 4)


def task_for(which, *, aims=BOTH, most=70, ranks=None, threads=1):
    model = MODELS[which]()
    prepared = prepare(model, None if isinstance(which, str) and which != "wide" else 1.0)
    least, worst = least_expected_cost(prepared), least_worst_case(prepared)
    most = min(1500 if which == "wide" else most, int(worst.value[prepared.start]))
    about = most, False, threads, most, None, ranks
    return Task(prepared, Question(least.base, least.choice, worst, aims), *about)


def kind_for(which):
    """Return the backend that sweeps a model on ranks."""
    return backend_for(task_for(which, ranks=SimpleNamespace()), 70)


def swept(task, kind, *, until=(2, 9, 30), kept=None):
    sweep = kind(task)
    if kept is not None:
        sweep.resume(kept)
    for last in (*until, task.most + 1):
        if sweep.done < min(last, task.most + 1):
            sweep.advance(min(last, task.most + 1), final=last > task.most)
    return sweep


def results(sweep):
    lost = sweep.lost
    return [sweep.found[:, : sweep.done], np.ascontiguousarray(sweep.choice), np.asarray(lost)]


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("which", MODELS)
def test_the_same_bits_on_any_number_of_ranks(which, size):
    kind = kind_for(which)
    alone = results(swept(task_for(which), KINDS[kind]))
    found = led(size, lambda ranks: results(swept(task_for(which, ranks=ranks), kind)))
    assert all(same(ours, theirs) for ours, theirs in zip(found, alone, strict=True))


def test_rows_that_one_process_does_not_share_are_shared():
    tiling = tiling_of(task_for("wide").prepared)
    assert not tiling.shares_rows and tiling.back > 512


@pytest.mark.parametrize("which", ["betting", 6, 2])
def test_each_rank_has_threads_of_its_own(which):
    kind = kind_for(which)
    alone = results(swept(task_for(which), KINDS[kind]))
    found = led(2, lambda ranks: results(swept(task_for(which, ranks=ranks, threads=2), kind)), threads=3)
    assert all(same(ours, theirs) for ours, theirs in zip(found, alone, strict=True))


@pytest.mark.parametrize("aims", [BOUND, PLAN])
@pytest.mark.parametrize("which", ["treasure", 6, 2])
def test_a_plan_or_a_bound_alone(which, aims, monkeypatch):
    monkeypatch.setattr(question_module, "CLOSE", 0.0)  # the bound has a field of its own
    kind = kind_for(which)
    alone = results(swept(task_for(which, aims=aims), KINDS[kind]))
    found = led(3, lambda ranks: results(swept(task_for(which, aims=aims, ranks=ranks), kind)))
    assert all(same(ours, theirs) for ours, theirs in zip(found, alone, strict=True))


@pytest.mark.parametrize("which", ["betting", "inventory", 20, 2, 6])
def test_any_number_of_ranks_goes_on_from_the_same_checkpoint(which):
    kind = kind_for(which)
    truth = results(swept(task_for(which), KINDS[kind]))

    def kept(task, sweep_kind):
        sweep = sweep_kind(task)
        for last in (5, 11):
            sweep.advance(min(last, task.most + 1))
        return {name: np.array(array) for name, array in sweep.packed().items()}

    first = led(3, lambda ranks: kept(task_for(which, ranks=ranks), kind))
    assert first.keys() == kept(task_for(which), KINDS[kind]).keys()
    assert same(first["choice"], kept(task_for(which), KINDS[kind])["choice"])
    found = led(2, lambda ranks: results(swept(task_for(which, ranks=ranks), kind, kept=first)))
    assert all(same(ours, theirs) for ours, theirs in zip(found, truth, strict=True))


def test_states_are_split_and_exchanged_as_seldom_as_costs_allow():
    """After best luck is taken off, moves cost 0 to the goal and 3 or 4 to others: three levels between exchanges."""

    def actions(s):
        return {"on": [(0.5, (s + 1) % 80, 3), (0.3, (s * 7) % 80, 4), (0.2, 80, 2)]} if s < 80 else {}

    model = prudent.build(0, actions)
    prepared = prepare(model)
    about = places_of(prepared)[0], sections_of(prepared), prepared.cost_range[1]
    shares = on_ranks(2, lambda comm: share_of(*about, Ranks(comm, 1)))
    assert sorted(np.concatenate([share.own for share in shares]).tolist()) == list(range(81))
    assert [share.levels for share in shares] == [3, 3]
    assert sum(len(share.goals) for share in shares) == 1  # one rank has the goal, the other looks at it
    for share in shares:
        assert len(share.places.state) == len(share.own) + len(share.rim) <= 81
        assert len(share.own) in (40, 41)
    truth, found = (
        prudent.solve(model, 0.1, step=1),
        on_ranks(2, lambda comm: prudent.solve(model, 0.1, step=1, comm=comm)),
    )
    assert found[0].to_dict() | {"seconds": 0} == truth.to_dict() | {"seconds": 0}


@pytest.mark.parametrize("which", ["chain", 2, 6])
def test_what_the_tables_of_ranks_take(which, monkeypatch):
    def work(ranks):
        sweep = swept(task_for(which, ranks=ranks), RankLevelSweep)
        tables = sweep._part.tables
        actions = sweep.done * tables.columns * tables.choice.itemsize  # rows beyond are not taken
        return tables.table.nbytes + actions, sweep_bytes(sweep.task.prepared, sweep.done, ranks=ranks)

    taken, foreseen = led(3, work)
    assert taken <= foreseen
    few, many = (sweep_bytes(task_for(which).prepared, 9, ranks=SimpleNamespace(size=size)) for size in (3, 30))
    assert few > many
    monkeypatch.setattr("prudent.engine.sweep.estimate.AT_FIRST", 10)
    assert led(3, work)[1] == foreseen  # rank 0 has room for all actions from the beginning


def test_what_can_be_mended_and_ctrl_c_are_raised_on_all_ranks():
    model = prudent.domains.figure_2()
    for found in on_ranks(3, lambda comm: prudent.solve(model, 7, comm=comm)):
        assert isinstance(found, prudent.PrudentError) and "alpha is 7" in str(found)
    for found in on_ranks(2, lambda comm: prudent.solve(model, 0.1, device="gpu", comm=comm)):
        assert isinstance(found, prudent.PrudentError) and "sweep on CPUs only; remove device= or comm=" in str(found)

    def refused():
        raise prudent.ModelError(["one problem", "another"])

    for found in on_ranks(2, lambda comm: on_first(comm, refused)):
        assert isinstance(found, prudent.ModelError) and len(found.problems) == 2

    def interrupted(ranks):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        led(2, interrupted)


def test_an_error_on_one_rank_ends_all(monkeypatch, capfd):
    begin = rank_tiles.TilePart.begin

    def fails(part, ranks, whole=None):
        if ranks.rank > 0:
            raise MemoryError("no room")
        begin(part, ranks, whole)

    monkeypatch.setattr(rank_tiles.TilePart, "begin", fails)
    monkeypatch.setattr(sys, "__stderr__", sys.stderr)
    found = on_ranks(2, lambda comm: prudent.solve(prudent.domains.betting_game(stages=4), 0.1, comm=comm, threads=1))
    assert [type(each).__name__ for each in found] == ["Ended", "MemoryError"]
    assert "rank 1 failed, which ends all ranks" in capfd.readouterr().err


@pytest.mark.parametrize("order", [Begin, Advance, Collect, End])
def test_ctrl_c_once_others_were_told_to_work_ends_all(order, monkeypatch):
    """Else they would wait for rank 0."""
    tell = Ranks.tell

    def broken_off(ranks, what):
        tell(ranks, what)
        if isinstance(what, order):
            monkeypatch.setattr(Ranks, "tell", tell)
            raise KeyboardInterrupt

    monkeypatch.setattr(Ranks, "tell", broken_off)
    aborted = []
    monkeypatch.setattr(Comm, "Abort", lambda comm, code: (aborted.append(code), comm._hub.ended.set()))
    on_ranks(2, lambda comm: prudent.solve(prudent.domains.betting_game(stages=4), 0.1, comm=comm, threads=1))
    assert aborted[0] == 130


def test_a_communicator_is_one_of_mpi4py():
    with pytest.raises(prudent.PrudentError, match=r"comm is 4; it must be an mpi4py communicator, such as"):
        prudent.solve(prudent.domains.figure_2(), 0.1, comm=4)
    (plan,) = on_ranks(1, lambda comm: prudent.solve(prudent.domains.figure_2(), 0.1, comm=comm))
    assert plan.cvar == pytest.approx(10)
