"""The catalogue of what a user can get wrong: from Python a PrudentError, by command exit 2; one clear message each."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

import prudent
from prudent.apps.cli.main import main

GOOD = {
    "format": "prudent-ssp",
    "version": 1,
    "initial": "s",
    "goals": ["g"],
    "transitions": [{"state": "s", "action": "a", "outcomes": [{"p": 1, "to": "g", "cost": 2}]}],
}


def with_outcomes(*outcomes, **changes):
    rows = [{"state": "s", "action": "a", "outcomes": [{"p": p, "to": t, "cost": c} for p, t, c in outcomes]}]
    return {**GOOD, "transitions": rows, **changes}


def trap(**more):
    document = with_outcomes((0.5, "g", 1), (0.5, "pit", 1))
    document["transitions"].append({"state": "pit", "action": "wait", "outcomes": [{"p": 1, "to": "pit", "cost": 0}]})
    return document


# what is wrong: (a model document or its text, the message)
MODELS = {
    "probabilities sum to 0.9": (
        with_outcomes((0.9, "g", 1)),
        "probabilities of state 's', action 'a' sum to 0.9; they",
    ),
    "negative probability": (
        with_outcomes((-0.5, "g", 1), (1.5, "g", 2)),
        "state 's', action 'a' has an outcome of probab",
    ),
    "not-a-number probability": ('{"p": NaN}', "NaN is not allowed; numbers must be finite"),
    "infinite cost": (
        json.dumps(with_outcomes((1, "g", 7))).replace("7", "1e999"),
        "has an outcome of cost inf; costs are fin",
    ),
    "unknown successor": (
        with_outcomes((1, "h", 1)),
        "transitions[0].outcomes[0].to: state 'h' has no transitions and is",
    ),
    "no goal": (with_outcomes((1, "s", 1), goals=[]), "the model has no goal; give at least one state without actions"),
    "no proper policy": (trap(), "may end in state 'pit', from which no goal can be reached"),
    "cycle of negative cost": (
        with_outcomes((0.5, "s", -1), (0.5, "g", 0)),
        "the cycle 's' -> 's' of m can have a total cost",
    ),
    "goal with transitions": ({**GOOD, "goals": ["g", "s"]}, "goals[1]: goal 's' has transitions"),
    "duplicate names": ({**GOOD, "transitions": GOOD["transitions"] * 2}, "state 's' has two actions named 'a'"),
    "malformed JSON": ('{"format": "prudent-ssp",\n "version": ]', "line 2, column 13"),
    "wrong type inside": (
        with_outcomes((1, "g", "dear")),
        'transitions[0].outcomes[0].cost is "dear"; it must be a num',
    ),
    "missing field": ({k: v for k, v in GOOD.items() if k != "initial"}, "the document has no 'initial'"),
    "unknown field": ({**GOOD, "speed": 3}, "the document has an unknown field 'speed'"),
    "wrong version": ({**GOOD, "version": 9}, "version is 9; this release reads version 1"),
    "empty file": ("", "line 1, column 1"),
}


@pytest.mark.parametrize("what", MODELS)
def test_models_from_python_and_by_command(tmp_path, what):
    document, message = MODELS[what]
    path = tmp_path / "m.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    with pytest.raises(prudent.PrudentError) as caught:
        prudent.solve(prudent.load(path), 0.5)
    assert message in str(caught.value)
    plan = tmp_path / "plan.safetensors"
    for arguments in (["solve", path, "--alpha", "0.5", "--save", plan], ["solve", path, "--alpha", "0.5", "--json"]):
        result = CliRunner().invoke(main, [str(argument) for argument in arguments])
        assert result.exit_code == 2
        assert result.stdout == ""
        assert message in result.stderr
        assert len(result.stderr.strip().splitlines()) == 1
    checked = CliRunner().invoke(main, ["check", str(path), "--json"])
    assert checked.exit_code == 2
    assert any(message in problem for problem in json.loads(checked.stdout)["problems"])
    assert [item.name for item in tmp_path.iterdir()] == ["m.json"]


ARGUMENTS = {
    "alpha of 0": (["--alpha", "0"], {"alpha": 0}, "it must be the worst fraction of runs"),
    "alpha above 1": (["--alpha", "1.5"], {"alpha": 1.5}, "it must be the worst fraction of runs"),
    "alpha not a number": (["--alpha", "nan"], {"alpha": np.nan}, "it must be the worst fraction of runs"),
    "unknown method": (
        ["--alpha", "0.5", "--method", "exat"],
        {"alpha": 0.5, "method": "exat"},
        "did you mean 'exact'?",
    ),
    "negative gap": (["--alpha", "0.5", "--gap", "-1"], {"alpha": 0.5, "gap": -1}, "gap is -1"),
}


@pytest.mark.parametrize("what", ARGUMENTS)
def test_arguments_from_python_and_by_command(what):
    command, options, message = ARGUMENTS[what]
    with pytest.raises(prudent.PrudentError, match=message):
        prudent.solve(prudent.domains.figure_2(), **options)
    result = CliRunner().invoke(main, ["solve", "figure-2", *command])
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""


COMMANDS = {
    "unknown domain": (["solve", "deep-see-treasure", "--alpha", "0.5"], "did you mean deep-sea-treasure?"),
    "a folder": (["solve", ".", "--alpha", "0.5"], "unknown kind of file"),
    "no such plan": (["evaluate", "figure-2", "none.safetensors"], "none.safetensors: no such file"),
    "not a plan": (["simulate", "figure-2", "README.md"], "plans are read and written as .safetensors"),
    "nowhere to save": (
        ["solve", "figure-2", "--alpha", "0.5", "--save", "no/where.safetensors"],
        "there is no folder no",
    ),
    "a chain to save": (
        ["solve", "figure-2", "--alpha", "0.5", "--save", "chain.umb"],
        "as .safetensors; a plan's Markov chain is a model: prudent.save(plan.chain(), ...)",
    ),
    "horizon without price": (
        ["solve", "figure-2", "--alpha", "0.5", "--horizon", "3"],
        "horizon= needs horizon_cost=",
    ),
    "infinite price": (["solve", "figure-2", "--alpha", "0.5", "--dead-end-cost", "inf"], "dead_end_cost is inf"),
    "unknown option": (["solve", "figure-2", "--alhpa", "0.5"], "No such option"),
}


@pytest.mark.parametrize("what", COMMANDS)
def test_commands(what):
    arguments, message = COMMANDS[what]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""


def test_wrong_kinds_of_things_from_python():
    with pytest.raises(prudent.PrudentError, match=r"model is a dict; make one with prudent.build"):
        prudent.solve(GOOD, 0.5)
    with pytest.raises(prudent.PrudentError, match="two states are both written"):
        prudent.save(prudent.build(1, lambda s: {"a": [(1, "1", 1)]} if s == 1 else {}), "never.json")
    assert not os.path.exists("never.json")


def test_a_real_process_leaves_no_traceback(tmp_path):
    (tmp_path / "m.json").write_text("{")
    command = [
        sys.executable,
        "-m",
        "prudent.apps.cli.main",
        "solve",
        str(tmp_path / "m.json"),
        "--alpha",
        "0.5",
        "--json",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1
