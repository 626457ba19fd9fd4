"""A sweep that carries a bound: exact costs need one sweep, rounded ones two, and the bound is below the truth."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import prudent
from cents import maintenance
from prudent.engine.prepare import prepare
from prudent.engine.sweep.between import BetweenSweep
from prudent.engine.sweep.bounded import bounded_sweep, surely_above
from prudent.engine.sweep.question import Question, without_safety
from prudent.engine.values.expected_cost import least_expected_cost
from prudent.engine.values.worst_case import UNREACHED, least_worst_case
from prudent.kernels.questions import Aims, Base, Terms
from prudent.runtime.limits import Limits

STEP = 0.5
TABLE = {
    "s": {"a": [(0.5, "t", 0.3), (0.5, "t", 1.9)], "b": [(1, "t", 1.2)]},
    "t": {"c": [(0.75, "g", 0.4), (0.25, "g", 2.7)], "d": [(0.5, "g", 0.9), (0.5, "g", 1.3)]},
}
LUCK = Fraction(7, 10)
MODEL = prudent.build("s", TABLE)


def least_excess(w):
    """The least expected excess over a total in exact arithmetic, by trying all policies; a total of 0 is the mean."""
    cost = {(s, a): [(Fraction(p), Fraction(str(c))) for p, _, c in o] for s in TABLE for a, o in TABLE[s].items()}
    best = None
    for first in TABLE["s"]:
        for answers in product(TABLE["t"], repeat=len(cost["s", first])):
            total = Fraction(0)
            for (p, c), second in zip(cost["s", first], answers, strict=True):
                total += sum(p * q * max(c + d - w, Fraction(0)) for q, d in cost["t", second])
            best = total if best is None else min(best, total)
    return best


def swept(step=STEP, limits=None, **options):
    prepared = prepare(MODEL, step)
    least = least_expected_cost(prepared)
    found = bounded_sweep(
        prepared, Question(least.base, least.choice, least_worst_case(prepared)), limits or Limits(10**9), **options
    )
    return prepared, found


def test_exact_costs_have_plan_and_bound_from_one_sweep():
    prepared, found = swept(None)
    assert not prepared.scale.rounded
    truth = [float(least_excess(Fraction(str(total)))) for total in prepared.scale.totals(np.arange(len(found.excess)))]
    assert found.excess * prepared.scale.level_size == pytest.approx(truth, abs=1e-12)
    assert (found.low <= found.excess).all() and found.low == pytest.approx(found.excess, rel=1e-12)


@pytest.mark.parametrize("step", [0.5, 0.3, 0.25, 0.07])
def test_rounded_costs_enclose_the_least_excess_at_every_budget(step):
    """Two actions are rounded, and the bound counts for all budgets from one level to the next."""
    prepared, found = swept(step, alpha=None, most=int(4 / step))
    assert prepared.scale.rounded
    size = Fraction(str(step))
    truth = [least_excess(LUCK + b * size) for b in range(max(len(found.low), len(found.excess)))]
    for b, low in enumerate(found.low):
        assert truth[b] - 3 * size / 2 <= Fraction(float(low)) * size <= truth[b]
    for b, excess in enumerate(found.excess):
        assert Fraction(float(excess)) * size >= truth[b] - Fraction(1, 10**12)


def test_the_bound_is_left_out_where_nobody_asks_for_it():
    _, found = swept(bounded=False, alpha=0.2)
    assert found.low.tolist() == [0]
    assert found.excess.tolist() == swept(alpha=0.2)[1].excess.tolist()


def test_an_exhausted_budget_may_count_as_one_whatever_the_state():
    prepared = prepare(MODEL, STEP)
    low, stopped = surely_above(prepared, Limits(10**9), most=8, terms=Terms(0.0, 0.0), exhausted=0.25)
    assert stopped == "" and 0 < low[0] <= 0.25
    assert (np.diff(low) <= 0).all() and low[-1] == 0


def test_what_counts_before_the_budget_is_gone_leaves_only_goals_safe():
    prepared = prepare(MODEL, STEP)
    worst = without_safety(prepared)
    assert worst.value.tolist() == [0 if goal else UNREACHED for goal in prepared.is_goal]
    assert (worst.action_value == UNREACHED).all()
    low, _ = surely_above(prepared, Limits(10**9), most=30, terms=Terms(1.0, 2.0))
    mean = float(least_excess(Fraction(0)) - LUCK)
    assert mean - 2 * STEP <= low[-1] * STEP <= mean
    assert low[0] > low[1] > low[2] > low[3] > low[-1]


class Shelf:
    """Counts what is kept."""

    def __init__(self):
        self.saved = []

    def load(self, key):
        return None

    def save(self, key, content, *, final=False):
        self.saved.append((key, final))

    def due(self):
        return False


def test_a_bound_that_is_stopped_stops_the_whole_and_keeps_the_only_place(monkeypatch):
    shelf, looks = Shelf(), []
    monkeypatch.setattr(Limits, "stop", property(lambda self: "time" if not looks and not looks.append(1) else ""))
    _, found = swept(limits=Limits(10**9, keeper=shelf), alpha=0.2)
    assert found.stopped == "time"
    assert [final for _, final in shelf.saved] == [False]  # the plan's sweep went on, for an answer only
    assert len(found.excess) > 1


class Memory(Shelf):
    """Gives back what was kept last."""

    def __init__(self):
        super().__init__()
        self.kept = {}

    def load(self, key):
        return self.kept.get(key)

    def save(self, key, content, *, final=False):
        self.kept[key] = {name: np.array(array) for name, array in content.items()}


def test_a_bound_below_0_is_taken_up_again_from_a_checkpoint():
    limits = Limits(10**9, keeper=Memory())
    swept = [surely_above(prepare(MODEL, 1.0), limits, alpha=1e-6) for _ in range(2)]
    assert min(kept["found"].min() for kept in limits.keeper.kept.values()) < 0
    assert swept[0][0].tolist() == swept[1][0].tolist()


def test_the_base_says_what_is_lost_without_budget():
    prepared = prepare(MODEL, STEP)
    least = least_expected_cost(prepared)
    base = Base(*(values + 1.0 for values in least.base[:2]), least.value)
    found = bounded_sweep(
        prepared, Question(base, least.choice, least_worst_case(prepared)), Limits(10**9), most=3, bounded=False
    )
    assert found.excess[0] == least.value[prepared.start] + 1


def test_the_table_of_a_bound_is_made_once_as_large_as_foreseen(monkeypatch):
    """However many levels are asked for at once."""
    tables, real = [], BetweenSweep._settle

    def settle(sweep, first, last):
        prepared = sweep.task.prepared
        looked = int(prepared.cost.max())
        foreseen = BetweenSweep.table_bytes(prepared, 10**6, Aims(False, True), keep=False)
        assert sweep.table.nbytes <= foreseen <= 8 * prepared.n_states * (2 * looked + 300)
        tables.append(sweep.table)
        real(sweep, first, last)

    monkeypatch.setattr(BetweenSweep, "_settle", settle)
    plan = prudent.solve(maintenance(), 0.05, step=2.0)
    assert plan.lower < plan.upper < 1.002 * plan.lower and len(tables) > 3
    assert len({id(table) for table in tables}) == 2  # the first one is for no level but those without budget
