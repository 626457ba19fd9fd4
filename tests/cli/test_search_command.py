"""``prudent search``: as solve, with how much was looked at."""

import json

import pytest
from click.testing import CliRunner

import prudent
from plans import plan_for
from prudent.apps.cli.main import main


def run(*arguments):
    return CliRunner().invoke(main, arguments)


def test_json_is_that_of_solve_with_what_was_met(tmp_path):
    files = [str(tmp_path / "plan.safetensors"), str(tmp_path / "part.json")]
    done = run("search", "figure-2", "--alpha", "0.1", "--json", "--save", files[0], "--save-model", files[1])
    assert done.exit_code == 0
    answer, whole = json.loads(done.stdout), plan_for("figure-2", 0.1)
    assert answer["cvar"] == pytest.approx(whole.cvar) and answer["expected"] == pytest.approx(whole.expected)
    assert answer["expanded"] <= answer["met"] <= 4 and answer["certified"] and answer["model"] == "figure-2"
    assert prudent.load_plan(files[0], prudent.load(files[1])).explored.met == answer["met"]


def test_the_table_says_how_much_was_met():
    assert "states met" in run("search", "betting-game", "--set", "stages=3", "--alpha", "0.5").stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["inventory-control", "--set", "stages=2", "--alpha", "0.5"], "set heuristic="),
        (
            ["figure-2", "--alpha", "0.5", "--problem", "p.pddl"],
            "--problem: figure-2 is a domain, and this option is for files; use --set",
        ),
        (["nowhere", "--alpha", "0.5"], "neither a domain nor a file"),
        (["figure-2", "--alpha", "0.5", "--save", "plan.txt"], "plan.txt"),
    ],
)
def test_what_is_wrong_is_named(arguments, told):
    done = run("search", *arguments)
    assert done.exit_code == 2 and told in done.stderr
