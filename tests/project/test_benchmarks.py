"""The references that the benchmarks measure against give the package's answers."""

import sys
from pathlib import Path

import numpy as np
import pytest

import prudent
from prudent.engine.prepare import prepare

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import numpy_reference
from awkward_models import OURS, rows_of
from cases import Case, staged
from page import page
from savings import counted
from simulated_worlds import CONFIDENCE, held_alone, promises
from table import Row, Series
from timing import Spread, interleaved
from untuned_numba import solve_untuned
from what_limits_take import measured

CASES = [
    (prudent.domains.betting_game, 0.2),
    (prudent.domains.betting_game, 0.02),
    (prudent.domains.deep_sea_treasure, 0.2),
]


@pytest.fixture(scope="module", params=CASES, ids=lambda case: f"{case[0].__name__} {case[1]:g}")
def case(request):
    make, alpha = request.param
    model = make()
    prepared = prepare(model)
    plan = prudent.solve(model, alpha)
    return prepared, alpha, int(prepared.scale.in_levels(plan.cvar)) + 1, plan


@pytest.mark.parametrize("reference", [numpy_reference.solve_with_numpy, solve_untuned])
def test_references_agree(case, reference):
    prepared, alpha, levels, plan = case
    found = reference(prepared, alpha, levels)
    assert found.cvar == pytest.approx(plan.cvar, rel=1e-9)
    assert found.expected == pytest.approx(plan.expected, rel=1e-9)


def test_both_ways_through_numpy_agree(case):
    prepared, _, levels, _ = case
    by_state, by_level = (way(prepared, levels) for way in (numpy_reference.by_state, numpy_reference.by_level))
    np.testing.assert_allclose(by_state[0], by_level[0], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(by_state[1], by_level[1], rtol=1e-9)


def test_references_on_a_cycle():
    def drive(place):
        if place == "there":
            return {}
        return {
            "fast": [(0.7, "there", 2), (0.2, "here", 3), (0.1, "there", 9)],
            "slow": [(0.9, "there", 4), (0.1, "here", 1)],
        }

    model = prudent.build("here", drive)
    plan, prepared = prudent.solve(model, 0.1), prepare(model)
    for reference in (numpy_reference.solve_with_numpy, solve_untuned):
        found = reference(prepared, 0.1, int(prepared.scale.in_levels(plan.cvar)) + 1)
        assert found.cvar == pytest.approx(plan.cvar, rel=1e-9)
        assert found.expected == pytest.approx(plan.expected, rel=1e-9)


def test_measurements_take_turns():
    seen = []
    found = interleaved({"a": lambda: seen.append("a"), "b": lambda: seen.append("b")}, turns=2)
    assert "".join(seen) == "ababab"  # warmed up first
    assert [len(spread.values) for spread in found.values()] == [2, 2]


def test_a_spread_is_its_quartiles():
    spread = Spread((4.0, 1.0, 2.0, 3.0, 5.0))
    assert (spread.low, spread.median, spread.high) == (2.0, 3.0, 4.0)
    assert spread.over(Spread((2.0,) * 5)).median == 1.5


def test_a_row_says_whether_its_aim_is_met():
    ratio = Row.of("against", "model", "theirs / ours", Spread((0.5, 0.4, 0.6)), "x", aim=1.0, note="behind")
    assert ratio.met is False
    assert ratio.shown == ("model", "theirs / ours", "0.5x", "0.45 .. 0.55", ">= 1x: not met", "behind")
    assert Row("against", "model", "absent", None, aim=1.0, note="not installed").shown[4] == ">= 1: not measured"


def test_the_page_holds_the_table_and_the_plots():
    pytest.importorskip("matplotlib", reason="the page has plots")
    rows = [Row("a part", "model", "seconds < 1", 0.5, " s", aim=1.0), Row("a part", "model", "ratio", 2.0, "x")]
    line = Series("Plot", "line", "x", "y", [1.0, 10.0], [2.0, 3.0], marks={"L1": 3.0})
    text = page({"cores": 2}, rows, [line])
    assert "seconds &lt; 1" in text and "not met" in text and "<svg" in text


def test_the_finite_horizon_model_is_as_large_as_it_says():
    case = Case("staged", staged(4, 5), 0.1)
    assert case.model.n_states == 21
    assert case.prepared.acyclic
    assert case.naive == 2 * len(case.prepared.cost) * case.levels
    for reference in (numpy_reference.solve_with_numpy, solve_untuned):
        case.check(*reference(case.prepared, case.alpha, case.levels)[:2])
    with pytest.raises(ValueError, match="staged"):
        case.check(case.truth[0] + 1e-6, case.truth[1])


def test_awkward_models_are_compared_with_the_fastest_method_that_is_right():
    first, second = OURS
    alone = {"states": 1_000, "gap": 1e-12, first: [1.0, 1.0], second: [2.0, 2.0]}
    wrong = {**alone, "method": "quick", "off": 1e-3, "storm": [0.01, 0.01]}
    right = {**alone, "method": "sound", "off": 1e-7, "storm": [0.5, 0.5]}
    storm, _, ratio, _, _ = rows_of("model", [alone, wrong, alone, right], ["slow stopped"])
    assert (storm.value, storm.note) == (0.5, "sound 0.5 s; quick is 1e-03 off; slow stopped")
    assert (ratio.model, ratio.value, ratio.met, ratio.note) == ("model: 1,000 states", 0.5, True, "behind")
    assert [row.value for row in rows_of("model", [alone, wrong], [])] == [None, 1.0, 2.0]
    assert rows_of("model", [], ["quick stopped"])[0].note == "quick stopped"


@pytest.mark.parametrize(
    ("runs", "worlds"),
    [(100, 10), *(pytest.param(runs, 200, marks=pytest.mark.slow) for runs in (100, 300, 1000, 3000, 10_000))],
)
def test_robust_promises_hold_in_simulated_worlds(runs, worlds):
    promised, cvar, _, upper, robust_cvar, _ = promises(runs, worlds)
    assert (robust_cvar <= upper + 1e-9).mean() >= CONFIDENCE
    assert (cvar <= promised + 1e-9).mean() < CONFIDENCE  # the nominal plan's are broken


def test_a_short_log_alone_does_not_hold_what_a_known_model_does():
    assert 0.4 < held_alone(100, 10) < CONFIDENCE


def test_each_saving_leaves_less_work():
    rows = counted(Case("BG", prudent.domains.betting_game(), 0.02))
    left = [row.value for row in rows]
    assert left[0] == 100 and left == sorted(left, reverse=True) and 0 < left[-1] < 50


def test_each_kind_of_limit_is_measured_beside_plain_solves():
    found = measured(models=1, rounds=2)
    assert list(found) == ["plain", "slack", "absolute_slack", "max_cvar", "slack, randomise"]
    assert all(len(spread.values) == 2 for spread in found.values())
