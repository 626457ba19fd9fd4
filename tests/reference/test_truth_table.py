"""The exact optima of the paper's domains, as two independent programs found them.

Source: the project's table of reference figures, to six digits after the point; the expected-value policy's
numbers beside them.  Sizes are of the reachable models.
"""

import json

import pytest
from click.testing import CliRunner

import prudent
from plans import domain, plan_for
from prudent.apps.cli.main import main

OPTIMUM = [
    ("betting-game", 0.02, 95, 95, 95),
    ("betting-game", 0.2, 91.337584, 75.486476, 86),
    ("deep-sea-treasure", 0.02, 478.520073, 344.928061, 465),
    ("deep-sea-treasure", 0.2, 422.930215, 340.760951, 380),
    ("inventory-control", 0.02, 386.398587, 250.708910, 382),
    ("inventory-control", 0.2, 360.170979, 249.492789, 333),
]
EXPECTED = [
    ("betting-game", 58.381353, {0.02: 100, 0.2: 97.2609}),
    ("deep-sea-treasure", 315.206910, {0.02: 575, 0.2: 452.6944}),
    ("inventory-control", 236.084320, {0.02: 416.5337, 0.2: 370.8839}),
]
SIZES = {
    "betting-game": (892, 4_706, 12_190),
    "deep-sea-treasure": (1_078, 6_705, 18_396),
    "inventory-control": (1_971, 28_390, 270_725),
}
WORST = {"betting-game": 95, "deep-sea-treasure": 500, "inventory-control": 390}


@pytest.mark.parametrize(("name", "alpha", "cvar", "expected", "var"), OPTIMUM)
def test_optimum_by_the_command(name, alpha, cvar, expected, var):
    answer = json.loads(CliRunner().invoke(main, ["solve", name, "--alpha", str(alpha), "--json"]).stdout)
    assert answer["status"] == "optimal"
    assert answer["cvar"] == pytest.approx(cvar, abs=1e-6)
    assert answer["expected"] == pytest.approx(expected, abs=1e-6)
    assert answer["var"] == var
    assert answer["lower"] <= answer["cvar"] <= answer["upper"]
    assert (answer["states"], answer["actions"], answer["outcomes"]) == SIZES[name]
    assert answer["worst_case"] == WORST[name]


@pytest.mark.parametrize(("name", "expected", "tails"), EXPECTED)
def test_expected_policy(name, expected, tails):
    for alpha, cvar in tails.items():
        plan = plan_for(name, alpha, method="expected")
        assert plan.expected == pytest.approx(expected, abs=1e-6)
        assert plan.cvar == pytest.approx(cvar, abs=1e-4)
        assert plan.status == "approximate"


@pytest.mark.parametrize("alpha", [0.02, 0.2])
@pytest.mark.parametrize("name", SIZES)
def test_the_distribution_confirms_the_plan(name, alpha):
    plan = plan_for(name, alpha)
    result = prudent.evaluate(domain(name), plan.policy)
    assert result.missing == 0
    assert result.probabilities.sum() == pytest.approx(1, abs=1e-12)
    assert result.cvar(alpha) == pytest.approx(plan.cvar, rel=1e-12)
    assert result.mean == pytest.approx(plan.expected, rel=1e-12)
    assert result.probabilities @ result.values == pytest.approx(plan.expected, rel=1e-12)
    assert result.var(alpha) == plan.var


def test_no_run_of_the_cautious_bettor_costs_more_than_95():
    plan = plan_for("betting-game", 0.02)
    result = prudent.evaluate(plan.model, plan.policy)
    assert result.values.max() <= 95
    assert result.missing == 0


def test_figure_2():
    model = prudent.domains.figure_2()
    plan = prudent.solve(model, 0.1)
    assert plan.cvar == pytest.approx(10, abs=1e-12)
    assert plan.expected == pytest.approx(4.06, abs=1e-12)
    assert plan.var == 9  # P(C > 9) is exactly 0.1; every w from 7 to 10 minimises f
    assert plan.policy("s1") == "d"
    tail = {"c": 14.5, "d": 10, "e": 10}
    mean = {"c": 1.9, "d": 4.06, "e": 7.3}
    for action in tail:
        result = prudent.evaluate(model, {"s0": "a", "s1": action, "s2": "b"})
        assert result.cvar(0.1) == pytest.approx(tail[action], abs=1e-12)
        assert result.mean == pytest.approx(mean[action], abs=1e-12)
