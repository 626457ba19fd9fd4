"""The verbs for estimated models: learn, solve --uncertainty, stress."""

import json

import pytest
from click.testing import CliRunner

from prudent.apps.cli.main import main

LOG = """episode,state,action,next_state,cost
1,shop,order,done,3
2,shop,order,done,8
3,shop,order,done,3
"""


def run(*words: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(main, [str(word) for word in words])
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def model(tmp_path):
    log = tmp_path / "log.csv"
    log.write_text(LOG, encoding="utf-8")
    code, out, _ = run("learn", log, "--save", tmp_path / "model.json", "--json")
    assert code == 0
    assert json.loads(out)["seldom"] == [{"state": "shop", "action": "order", "times": 3.0}]
    return tmp_path / "model.json"


def test_from_a_log_to_a_plan_under_stress(model):
    plan = model.parent / "plan.safetensors"
    code, out, _ = run("solve", model, "--alpha", 0.5, "--uncertainty", 0.9, "--save", plan, "--json")
    answer = json.loads(out)
    assert code == 0
    assert answer["upper"] >= answer["nominal"]["cvar"]
    assert answer["lower"] <= answer["cvar"] <= answer["upper"]
    code, out, _ = run("evaluate", model, plan, "--json")
    own = json.loads(out)
    assert code == 0
    assert own["at_worst"]["cvar"] == pytest.approx(answer["cvar"])
    assert own["cvar"] == pytest.approx(answer["nominal"]["cvar"])
    code, out, _ = run("evaluate", model, plan, "--uncertainty", 0.5)
    assert code == 0
    assert "worst-case CVaR" in out
    code, out, _ = run("curve", model, "--alphas", 0.5, "--uncertainty", 0.9, "--json")
    assert code == 0
    assert json.loads(out)["points"][0]["cvar"] == pytest.approx(answer["cvar"])
    assert json.loads(out)["points"][0]["nominal"] == pytest.approx(answer["nominal"])
    code, out, _ = run("simulate", model, plan, "--episodes", 1000)
    assert f"exactly {answer['nominal']['expected']:.6f}" in out
    code, out, _ = run("stress", model, plan, "--samples", 10, "--json")
    assert code == 0
    assert 3 <= json.loads(out)["cvar"]["0.05"] <= json.loads(out)["cvar"]["0.95"] <= 8


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--uncertainty", "much"), "--uncertainty much: must be a confidence, such as 0.95, or own"),
        (("--uncertainty", "own"), "has no intervals of its own"),
        (("--uncertainty", "1.5"), "confidence is 1.5"),
        (
            ("--uncertainty", "0.9", "--method", "expected"),
            "uncertainty needs method 'exact' and CVaR as the objective",
        ),
        (("--uncertainty", "0.9", "--horizon", 3, "--horizon-cost", 9), "has no counts"),
    ],
)
def test_bad_uncertainty_is_refused(model, words, message):
    code, _, error = run("solve", model, "--alpha", 0.5, *words)
    assert code == 2
    assert message in error


def test_bad_logs_and_columns_are_refused(tmp_path):
    log = tmp_path / "log.csv"
    log.write_text(LOG.replace("8", "dear"), encoding="utf-8")
    code, _, error = run("learn", log)
    assert code == 2
    assert "log.csv: row 2: cost is 'dear'; it must be a number" in error
    code, _, error = run("learn", log, "--save", tmp_path / "model.umb")
    assert code == 2
    assert "models with counts are written as .json or .json.gz" in error
    code, _, error = run("learn", log, "--column", "price=cost")
    assert code == 2
    assert "--column price=cost: write MEANING=NAME" in error
