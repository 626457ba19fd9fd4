import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

import prudent
from prudent.apps.cli.main import main


def run(*arguments):
    return CliRunner().invoke(main, arguments)


def test_json_has_the_contract():
    result = run("solve", "figure-2", "--alpha", "0.1", "--json")
    assert result.exit_code == 0
    answer = json.loads(result.stdout)
    wanted = "model method alpha status cvar var expected lower upper states outcomes seconds".split()
    assert set(wanted) <= set(answer)
    assert answer["cvar"] == pytest.approx(10)
    assert answer["model"] == "figure-2"


def test_infinite_numbers_are_null(tmp_path):
    model = prudent.build("s", lambda s: {"try": [(0.5, "s", 1), (0.5, "g", 1)]} if s == "s" else {})
    prudent.save(model, tmp_path / "loop.json")
    answer = json.loads(run("solve", str(tmp_path / "loop.json"), "--alpha", "0.5", "--json").stdout)
    assert answer["worst_case"] is None
    assert answer["model"] == "loop"


def test_table():
    result = run("solve", "betting-game", "--alpha", "0.2")
    assert result.exit_code == 0
    for text in ("91.337584", "75.486476", "  86         ", "optimal", "892 states", "known to all digits shown"):
        assert text in result.stdout


@pytest.mark.parametrize("method", ["exact", "expected", "worst-case"])
def test_methods_and_parameters(method):
    result = run("solve", "betting-game", "--alpha", "0.3", "--method", method, "--set", "stages=3", "--json")
    answer = json.loads(result.stdout)
    direct = prudent.solve(prudent.domains.betting_game(stages=3), 0.3, method=method)
    assert (answer["cvar"], answer["expected"], answer["method"]) == (direct.cvar, direct.expected, method)


WRONG = [
    (["solve", "betting-game", "--alpha", "2"], "alpha is 2.0; it must be the worst fraction of runs"),
    (["solve", "betting-game", "--alpha", "x"], "'x' is not a valid float"),
    (["solve", "betting-game"], "Missing option '--alpha'"),
    (["solve", "beting-game", "--alpha", "0.1"], "did you mean betting-game?"),
    (["solve", "none.json", "--alpha", "0.1"], "none.json: no such file"),
    (["solve", "model.xml", "--alpha", "0.1"], "unknown kind of file"),
    (["solve", "betting-game", "--alpha", "0.1", "--method", "best"], "method is 'best'; it must be one of"),
    (["solve", "betting-game", "--alpha", "0.1", "--set", "stage=3"], "KEY one of: stages, money, cap"),
    (
        ["solve", "betting-game", "--alpha", "0.1", "--set", "stages=few"],
        "--set stages=few: the value must be a whole number",
    ),
    (
        ["solve", "betting-game", "--alpha", "0.1", "--set", "stages=0"],
        "stages is 0; it must be a whole number, at least 1",
    ),
    (
        ["solve", "betting-game", "--alpha", "0.1", "--set", "money=300"],
        "money is 300; it must be a whole number, from 0",
    ),
    (["solve", "betting-game", "--alpha", "0.1", "--set", "stages=3", "--set", "stages=4"], "stages is set twice"),
    (["solve", "none.json", "--alpha", "0.1", "--set", "stages=3"], "only domains have parameters"),
    (["sovle", "betting-game"], "No such command 'sovle'"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG)
def test_what_the_user_can_mend_exits_2_with_one_message(arguments, message):
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""
    assert "Traceback" not in result.stderr


def test_as_a_command():
    command = [sys.executable, "-m", "prudent.apps.cli.main", "solve", "figure-2", "--alpha", "0.1", "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0
    assert json.loads(done.stdout)["status"] == "optimal"
