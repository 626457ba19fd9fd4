"""Ways to sweep: another one is an entry in the list, each can be left and gone on with, and a misfit is refused."""

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import pytest

import prudent
from prudent.engine.prepare import prepare
from prudent.engine.prepared import choice_type
from prudent.engine.sweep.backends import BACKENDS, backend_for
from prudent.engine.sweep.levels import LevelSweep
from prudent.engine.sweep.question import BOTH, BOUND, PLAN, TIE, Question
from prudent.engine.sweep.task import Backend, Task
from prudent.engine.sweep.tiles import TileSweep
from prudent.engine.values.expected_cost import least_expected_cost
from prudent.engine.values.worst_case import least_worst_case
from prudent.runtime.limits import Limits

GAME = prudent.domains.betting_game(stages=4)
STOCK = prudent.domains.inventory_control(stages=3)  # which pays at every stage
LOOP = prudent.build(
    "s",
    {
        "s": {"try": [(0.5, "s", 1), (0.25, "t", 2), (0.25, "g", 1)], "wade": [(0.2, "s", 3), (0.8, "g", 4)]},
        "t": {"back": [(0.5, "s", 0), (0.5, "g", 3)], "on": [(0.9, "g", 1), (0.1, "g", 9)]},
    },
)


def task_of(model, aims=BOTH, *, most=60, keep=False):
    prepared = prepare(model)
    expected, worst = least_expected_cost(prepared), least_worst_case(prepared)
    most = min(most, int(worst.value[prepared.start]))
    return Task(prepared, Question(expected.base, expected.choice, worst, aims), most, keep)


@dataclass
class PlainSweep(Backend):
    """A third way, in plain Python: any model without cycles."""

    batch: ClassVar[int] = 2_000
    rows: list[np.ndarray] = field(default_factory=list)  # U, M and the action of each level, by state
    swept: ClassVar[int] = 0

    def __post_init__(self):
        super().__post_init__()
        self.rows = [
            np.array([self.task.question.base.excess, self.task.question.base.mean, self.task.first_choice[0]])
        ]

    @classmethod
    def serves(cls, task, levels):
        return task.prepared.acyclic

    @classmethod
    def table_bytes(cls, prepared, levels, aims, *, keep):
        return 24 * prepared.n_states * (levels + 1)

    def _advance(self, last, *, final):
        for b in range(self.done, last):
            self.rows.append(np.zeros((3, self.task.prepared.n_states)))
            for s in self.task.prepared.blocks[1]:
                self._settle(b, int(s))
            excess, mean, _ = self.rows[b][:, self.task.prepared.start]
            self.found[:, b] = excess, excess * (1 - 1e-12), mean
            PlainSweep.swept += 1

    def _settle(self, b, s):
        prepared, options = self.task.prepared, []
        for number, a in enumerate(range(prepared.action_start[s], prepared.action_start[s + 1])):
            excess, mean = 0.0, float(prepared.mean_cost[a])
            for o in range(prepared.outcome_start[a], prepared.outcome_start[a + 1]):
                left = b - prepared.cost[o]
                after = self.rows[max(left, 0)][:, prepared.successor[o]]
                excess += prepared.probability[o] * (after[0] - min(left, 0))
                mean += prepared.probability[o] * after[1]
            options.append((excess, mean, number))
        if options:
            least = min(options)[0] * (1 + TIE)
            mean, number = min(option[1:] for option in options if option[0] <= least)
            self.rows[b][:, s] = options[number][0], mean, number

    @property
    def choice(self):
        return np.array([row[2] for row in self.rows]).astype(choice_type(self.task.prepared))

    def _state(self):
        return {"rows": np.array(self.rows)}

    def _wanted(self, kept, done):
        return {"rows": ((done, 3, self.task.prepared.n_states), np.float64)}

    def _restore(self, kept):
        self.rows = list(kept["rows"])


@pytest.fixture
def third(monkeypatch):
    for place in ("backends", "estimate"):
        monkeypatch.setattr(f"prudent.engine.sweep.{place}.BACKENDS", (PlainSweep, *BACKENDS))
    monkeypatch.setattr(PlainSweep, "swept", 0)


def same_numbers(one, other):
    for name in ("cvar", "expected", "var", "lower", "upper", "expected_lower"):
        assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-10), name


@pytest.mark.parametrize("alpha", [0.05, 0.7])
def test_another_way_to_sweep_is_an_entry_in_the_list(alpha, request):
    truth = prudent.solve(GAME, alpha)
    request.getfixturevalue("third")
    plan = prudent.solve(GAME, alpha)
    assert PlainSweep.swept > 50
    same_numbers(plan, truth)
    assert prudent.evaluate(GAME, plan.policy).cvar(alpha) == pytest.approx(truth.cvar, rel=1e-12)
    assert prudent.solve(LOOP, alpha).status == "optimal"  # which it does not serve


def test_another_way_to_sweep_is_kept_in_checkpoints(request, tmp_path, monkeypatch):
    truth, file, looks = prudent.solve(GAME, 0.2), tmp_path / "place", []
    request.getfixturevalue("third")
    monkeypatch.setattr(PlainSweep, "first", 10)
    with monkeypatch.context() as patch:
        patch.setattr(Limits, "stop", property(lambda self: "interrupted" if looks.append(1) or len(looks) > 3 else ""))
        stopped = prudent.solve(GAME, 0.2, checkpoint=file)
    assert stopped.status == "interrupted" and file.exists()
    before, PlainSweep.swept = PlainSweep.swept, 0
    same_numbers(prudent.solve(GAME, 0.2, checkpoint=file), truth)
    assert before + PlainSweep.swept < 120  # nothing was swept twice
    assert not file.exists()


def test_the_first_way_that_serves_a_task_takes_it():
    cyclic = prudent.build(
        "s", {"s": {"a": [(0.5, "t", 1), (0.5, "g", 1)]}, "t": {"b": [(0.5, "s", 0), (0.5, "g", 2)]}}
    )
    assert backend_for(task_of(GAME), 60) is TileSweep
    assert backend_for(task_of(GAME, keep=True), 60) is LevelSweep
    assert backend_for(task_of(GAME, PLAN), np.inf) is TileSweep
    assert backend_for(task_of(cyclic, keep=True), 60) is LevelSweep


CASES = [(TileSweep, model, aims) for model in (GAME, STOCK) for aims in (BOTH, PLAN, BOUND)]
CASES += [(LevelSweep, model, aims) for model in (GAME, LOOP) for aims in (BOTH, PLAN, BOUND)]
NAMES = [f"{kind.__name__} {model.n_states} {'plan' * aims.plan}{'bound' * aims.bound}" for kind, model, aims in CASES]


def halfway(kind, task, level=17):
    sweep = kind(task)
    for last in (5, level):
        sweep.advance(last)
    return sweep


@pytest.mark.parametrize(("kind", "model", "aims"), CASES, ids=NAMES)
def test_a_sweep_that_is_gone_on_with_ends_as_if_it_had_not_stopped(kind, model, aims):
    task = task_of(model, aims)
    whole = halfway(kind, task)
    whole.advance(task.most + 1, final=True)
    kept = {name: array.copy() for name, array in halfway(kind, task).packed().items()}
    again = kind(task)
    again.resume(kept)
    assert again.done == 17
    again.advance(task.most + 1, final=True)
    assert np.array_equal(again.found[:, : again.done], whole.found[:, : whole.done])
    assert np.array_equal(again.choice, whole.choice)
    assert (len(again.choice), again.done) == (task.most + 1 if aims.plan else 1, task.most + 1)


@pytest.mark.parametrize(("kind", "model", "aims"), CASES, ids=NAMES)
def test_what_a_finished_sweep_found_is_enough_to_have_finished(kind, model, aims):
    task = task_of(model, aims)
    sweep = halfway(kind, task)
    again = kind(task)
    again.resume({name: sweep.packed()[name] for name in ("found", "choice")})
    assert (again.done, np.array_equal(again.found, sweep.found[:, :17])) == (17, True)
    assert np.array_equal(again.choice, sweep.choice)
    assert np.isnan(again.lost).all()


def changed(name, change):
    return lambda kept: kept.update({name: change(kept[name])})


def spoilt(at, value):
    def change(array):
        array = array.copy()
        array[at] = value
        return array

    return change


MISFITS = {
    "a table too few": lambda kept: kept.pop("lost"),
    "a table too many": lambda kept: kept.update(more=np.zeros(1)),
    "nothing found": changed("found", lambda found: found[:, :0]),
    "found of another kind": changed("found", lambda found: found.astype(np.float32)),
    "not a number": changed("found", spoilt((0, 3), np.nan)),
    "below nothing": changed("found", spoilt((2, 3), -1.0)),
    "beyond all measure": changed("found", spoilt((1, 3), 1e101)),
    "a level too few": changed("choice", lambda choice: choice[:-1]),
    "actions of another kind": changed("choice", lambda choice: choice.astype(np.int64)),
    "no such action": changed("choice", spoilt((3, 0), 99)),
    "another first choice": changed("choice", lambda choice: spoilt((0, 0), choice[0, 0] ^ 1)(choice)),
    "no such action at last": changed("chosen", spoilt(0, 10**6)),
    "an action of another state": changed("chosen", spoilt(0, -1)),
}


@pytest.mark.parametrize("what", MISFITS)
@pytest.mark.parametrize(("kind", "model"), [(TileSweep, GAME), (LevelSweep, LOOP)])
def test_what_no_sweep_of_the_task_has_kept_is_refused(kind, model, what):
    task = task_of(model)
    kept = halfway(kind, task).packed()
    MISFITS[what](kept)
    with pytest.raises(prudent.PrudentError, match="the checkpoint does not fit this solve; delete it, or"):
        kind(task).resume(kept)


def test_what_was_kept_of_another_task_is_refused():
    kept = halfway(LevelSweep, task_of(LOOP)).packed()
    for other in (task_of(GAME), task_of(LOOP, BOUND), replace(task_of(LOOP), keep=True)):
        with pytest.raises(prudent.PrudentError, match="the checkpoint does not fit this solve"):
            LevelSweep(other).resume(kept)
