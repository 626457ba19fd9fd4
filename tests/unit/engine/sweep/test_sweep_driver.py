"""How far a sweep goes, when it stops, and what it keeps."""

from dataclasses import dataclass, field

import numpy as np
import pytest

import prudent
from prudent.engine.prepare import prepare
from prudent.engine.sweep.backends import BACKENDS
from prudent.engine.sweep.driver import budget_sweep
from prudent.engine.sweep.estimate import sweep_bytes
from prudent.engine.sweep.levels import LevelSweep
from prudent.engine.sweep.question import BOTH, BOUND, EXCESS, PLAN, Question
from prudent.engine.values.expected_cost import least_expected_cost
from prudent.engine.values.worst_case import UNREACHED, least_worst_case
from prudent.kernels.questions import Base, Terms
from prudent.runtime.limits import Interruption, Limits

LOOP = prudent.build("s", {"s": {"try": [(0.5, "s", 1), (0.5, "g", 1)], "wade": [(0.6, "s", 3), (0.4, "g", 2)]}})


@dataclass
class Shelf:
    """Keeps everything, in memory."""

    wanted: bool = True
    kept: dict = field(default_factory=dict)
    finished: list = field(default_factory=list)
    saved: int = 0

    def load(self, key):
        return self.kept.get(key)

    def save(self, key, content, *, final=False):
        self.kept[key] = {name: array.copy() for name, array in content.items()}
        self.finished += [key] * final
        self.saved += 1

    def due(self):
        return self.wanted


def swept(model=LOOP, alpha=0.05, limits=None, *, step=None, shift=0.0, aims=BOTH, terms=EXCESS, **options):
    prepared = prepare(model, step)
    least = least_expected_cost(prepared)
    base = Base(*(values + shift for values in least.base))
    question = Question(base, least.choice, least_worst_case(prepared), aims, terms)
    return budget_sweep(prepared, question, limits or Limits(10**9), alpha=alpha, **options)


@pytest.fixture
def level_by_level(monkeypatch):
    """Ask after each level whether to go on."""
    for backend in BACKENDS:
        monkeypatch.setattr(backend, "batch", 1)


@pytest.mark.parametrize("model", [LOOP, prudent.domains.inventory_control(stages=3)], ids=str)
def test_a_sweep_level_by_level_finds_the_same(model, request):
    whole = swept(model, None, most=60)
    request.getfixturevalue("level_by_level")
    found = swept(model, None, most=60)
    assert len(whole.excess) == len(found.excess) == 61
    for name in ("excess", "low", "mean", "choice"):
        assert np.array_equal(getattr(found, name), getattr(whole, name)), name


@pytest.mark.parametrize("alpha", [0.9, 0.3, 0.05, 1e-3])
@pytest.mark.usefixtures("level_by_level")
def test_a_sweep_ends_at_the_optimal_cvar(alpha):
    """No larger budget can be optimal: its own level is already above the best value."""
    found = swept(alpha=alpha)
    best = float((np.arange(len(found.excess)) + found.excess / alpha).min())
    assert best == pytest.approx(prudent.solve(LOOP, alpha).cvar - 1, rel=1e-9)  # the first try is in every run
    assert len(found.excess) == int(best * (1 + 1e-9)) + 1
    assert found.stopped == ""


@pytest.mark.usefixtures("level_by_level")
def test_a_budget_at_the_very_optimum_is_swept():
    model = prudent.build("s", {"s": {"calm": [(0.5, "g", 1), (0.5, "g", 4)], "risky": [(0.4, "g", 0), (0.6, "g", 4)]}})
    found = swept(model, 0.5)
    assert len(found.excess) == 5
    assert found.mean[4] == pytest.approx(2.4)  # which has the least mean of those with the least CVaR


def test_without_an_alpha_all_levels_asked_for_are_swept_and_values_kept_on_demand():
    assert len(swept(alpha=None, most=700).excess) == 701
    found = swept(alpha=None, most=40, keep=True)
    assert found.tables.excess.shape[1] >= 41
    assert found.tables.excess[0, :41] == pytest.approx(found.excess)
    worst = prudent.build("s", {"s": {"a": [(0.5, "g", 1), (0.5, "g", 4)]}})
    assert len(swept(worst, None).excess) == 2  # one level of 3 above the best of luck


def test_memory_for_some_of_the_levels_sweeps_these():
    prepared = prepare(LOOP)
    for levels, stopped in ((61, ""), (60, "memory")):
        found = swept(alpha=None, most=60, limits=Limits(sweep_bytes(prepared, levels)))
        assert (len(found.excess), found.stopped) == (levels, stopped)
    with pytest.raises(prudent.PrudentError, match="the tables would take"):
        swept(alpha=None, most=60, limits=Limits(sweep_bytes(prepared, 59)))


def test_a_sweep_stopped_by_its_memory_has_the_levels_that_fit():
    prepared = prepare(LOOP)
    least = int(least_expected_cost(prepared).value[prepared.start])
    assert least < 4
    found = swept(alpha=1e-6, limits=Limits(sweep_bytes(prepared, 7)))
    assert (found.stopped, len(found.excess)) == ("memory", 7)


def test_every_sweep_has_a_place_of_its_own():
    shelf = Shelf()
    limits = Limits(10**9, keeper=shelf)
    swept(alpha=0.1, limits=limits)
    for other in (
        {"alpha": 0.2},
        {"alpha": 0.1, "most": 5},
        {"alpha": 0.1, "aims": PLAN},
        {"alpha": 0.1, "aims": BOUND},
        {"alpha": 0.1, "terms": Terms(0.5, 1.0)},
        {"alpha": 0.1, "shift": 0.5},
        {"alpha": 0.1, "step": 2.0},
        {"alpha": 0.1, "model": prudent.domains.figure_2()},
    ):
        before = len(shelf.kept)
        swept(limits=limits, **other)
        assert len(shelf.kept) == before + 1, other
    swept(alpha=0.1, limits=limits)
    assert len(shelf.kept) == 9


def test_only_what_more_sweeps_follow_is_kept_when_it_is_finished():
    shelf = Shelf(wanted=False)
    limits = Limits(10**9, keeper=shelf)
    swept(limits=limits)
    assert shelf.saved == 0
    one = swept(limits=limits, aims=PLAN)
    assert (shelf.saved, len(shelf.finished)) == (1, 1)
    other = swept(limits=limits, aims=PLAN)
    assert shelf.saved == 1  # all was there
    assert np.array_equal(one.excess, other.excess) and np.array_equal(one.choice, other.choice)


def test_without_cycles_the_variance_tells_how_far_to_go():
    """A hundred coins: the tail is far nearer to the mean, 50, than 1 / alpha tells, and than a tile is long."""
    coins = {k: {"toss": [(0.5, k + 1, 0), (0.5, k + 1, 1)]} for k in range(100)}
    found = swept(prudent.build(0, coins), 0.05)
    charged = np.arange(len(found.excess)) + found.excess / 0.05
    assert 50 < charged.min() < len(found.excess) <= 50 + 5 * np.sqrt(0.95 / 0.05) + 3


def test_a_sweep_that_is_stopped_keeps_its_place_and_goes_on(monkeypatch):
    shelf, whole = Shelf(wanted=False), swept(alpha=None, most=3000)
    limits = Limits(10**9, keeper=shelf)
    looks = []
    with monkeypatch.context() as patch:
        patch.setattr("prudent.engine.sweep.driver.FURTHER", 0)
        patch.setattr(Limits, "stop", property(lambda self: "time" if looks.append(1) or len(looks) > 1 else ""))
        found = swept(alpha=None, most=3000, limits=limits)
    assert (found.stopped, len(found.excess), shelf.saved) == ("time", LevelSweep.first + 1, 1)
    again = swept(alpha=None, most=3000, limits=limits)
    assert again.stopped == ""
    assert np.array_equal(again.excess, whole.excess) and np.array_equal(again.choice, whole.choice)


def test_a_place_that_cannot_be_kept_costs_the_answer_only_while_there_is_none(monkeypatch, capsys):
    def full(self, key, content, *, final=False):
        raise prudent.PrudentError("the disk is full")

    monkeypatch.setattr(Shelf, "save", full)
    with pytest.raises(prudent.PrudentError, match="the disk is full"):
        swept(limits=Limits(10**9, keeper=Shelf()))
    found = swept(limits=Limits(10**9, keeper=Shelf(), interruption=Interruption(asked=True)))
    assert (found.stopped, len(found.excess)) == ("interrupted", 1)
    assert "the disk is full" in capsys.readouterr().err


def test_a_bound_alone_is_below_what_a_plan_attains():
    both, bound, plan = (swept(alpha=0.05, aims=aims) for aims in (BOTH, BOUND, PLAN))
    assert np.array_equal(both.excess, plan.excess) and np.array_equal(both.mean, plan.mean)
    assert (both.low <= both.excess).all()
    assert both.low == pytest.approx(both.excess, rel=1e-12)
    assert bound.low == pytest.approx(both.low, rel=1e-12)
    assert (bound.excess[1:] == 0).all() and len(bound.choice) == 1


def test_what_counts_on_the_way_counts_before_the_budget_is_gone():
    """With a weight of 1 for every unit, and 1 more beyond the budget, U is the mean and the excess together."""
    prepared = prepare(LOOP)
    least = least_expected_cost(prepared)
    base = Base(*(2 * values for values in least.base[:2]), least.value)
    worst = least_worst_case(prepared)
    assert worst.value[prepared.start] == UNREACHED
    question = Question(base, least.choice, worst, terms=Terms(1.0, 1.0))
    weighed = budget_sweep(prepared, question, Limits(10**9), most=50)
    alone = swept(alpha=None, most=50)
    assert (weighed.excess >= alone.excess + float(least.value[prepared.start]) - 1e-9).all()
    assert weighed.excess[-1] == pytest.approx(float(least.value[prepared.start]), rel=1e-9)
