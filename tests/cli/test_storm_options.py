"""--property and --const, for files through Storm and for what takes neither."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import prudent
from prudent.apps.cli.main import main

MODELS = Path(__file__).parents[1] / "reference" / "models"
ROBOT, GAMBLER = str(MODELS / "robot.prism"), str(MODELS / "gambler.prism")
CONSTANTS = ["--const", "N=2", "--const", "slip=1/8"]


def run(*arguments):
    return CliRunner().invoke(main, arguments)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["figure-2", "--property", "Tmin=? [F x=1]"],
            "--property: figure-2 is a domain, and this option is for files",
        ),
        (["figure-2", "--const", "N=1"], "--const: figure-2 is a domain, and this option is for files"),
        (
            ["model.json", "--property", "Tmin=? [F x=1]"],
            "model.json: a .json file defines its own costs and goals",
        ),
        (
            ["model.json", "--const", "N=1"],
            "model.json: a .json file has no undefined constants; leave out constants= (--const)",
        ),
        (["figure-2", "--initial", "s0"], "--initial: figure-2 is a domain, and this option is for files"),
        (
            ["model.json", "--initial", "s0"],
            "model.json: a .json file defines where runs start; change that in the file",
        ),
        (["model.prism", "--const", "N"], "--const N: write NAME=VALUE"),
        (["model.prism", "--const", "N=1", "--const", "N=2"], "--const N=2: N is given twice"),
        (["model.prism", "--const", "N=1,N=2"], "--const N=2: N is given twice"),
        (["model.prism", "--const", "N=1,"], "--const : write NAME=VALUE, with commas between several"),
        (["model.prism", "--const", "N=1"], "model.prism: no such file"),
    ],
)
@pytest.mark.parametrize("verb", [["solve", "--alpha", "0.1"], ["curve"], ["compare", "--alpha", "0.1"]])
def test_refused(arguments, words, verb):
    result = run(*verb, *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"prudent: {words}" in result.stderr


class TestWithStorm:
    @pytest.fixture(autouse=True)
    def storm(self):
        pytest.importorskip("stormpy")

    def test_solve(self):
        result = subprocess.run(
            [sys.executable, "-m", "prudent.apps.cli.main", "solve", ROBOT, *CONSTANTS, "--alpha", "0.1", "--json"],
            check=True,
            capture_output=True,
            text=True,
        )
        answer = json.loads(result.stdout)  # one object, and nothing of Storm's
        direct = prudent.solve(prudent.load(ROBOT, constants={"N": 2, "slip": 0.125}), 0.1)
        assert (answer["cvar"], answer["expected"], answer["model"]) == (direct.cvar, direct.expected, "robot")

    def test_a_plan_is_kept_evaluated_and_simulated(self, tmp_path):
        plan = str(tmp_path / "plan.safetensors")
        asked = ["--property", 'R{"cost"}min=? [F money=6]']
        assert run("solve", GAMBLER, *asked, "--alpha", "0.1", "--save", plan).exit_code == 0
        found = json.loads(run("evaluate", GAMBLER, plan, *asked, "--json").stdout)
        assert found["mean"] == pytest.approx(prudent.solve(prudent.load(GAMBLER, property=asked[1]), 0.1).expected)
        assert run("simulate", GAMBLER, plan, *asked, "--episodes", "100").exit_code == 0
        other = run("evaluate", GAMBLER, plan, "--property", 'R{"rounds"}min=? [F money=6]')
        assert other.exit_code == 2
        assert "was made for another model" in other.stderr
        assert "with the same property= (--property), constants= (--const) and initial= (--initial)" in other.stderr

    @pytest.mark.parametrize("verb", ["evaluate", "simulate"])
    def test_forgotten_constants(self, tmp_path, verb):
        plan = str(tmp_path / "plan.safetensors")
        assert run("solve", ROBOT, *CONSTANTS, "--alpha", "0.1", "--save", plan).exit_code == 0
        other = run(verb, ROBOT, plan, "--const", "N=3", "--const", "slip=1/8")
        assert other.exit_code == 2
        assert "with the same property= (--property), constants= (--const) and initial= (--initial)" in other.stderr
        assert "as solve had them: --set, --property, --const" in " ".join(run(verb, "--help").stdout.split())

    def test_a_start_is_chosen_and_a_property_by_its_name_in_a_file(self, tmp_path):
        (tmp_path / "walk.prism").write_text(
            "module m x : [0..3]; [] x<3 -> (x'=x+1); endmodule init x<3 endinit rewards true : 1; endrewards"
        )
        (tmp_path / "walk.props").write_text('const int k;\n"end": Rmin=? [ F x=k ]\n"chance": Pmax=? [ F x=k ]\n')
        asked = [str(tmp_path / "walk.prism"), "--property", f"{tmp_path}/walk.props:end", "--const", "k=3"]
        drawn, chosen = (
            json.loads(run("solve", *asked, *start, "--alpha", "1", "--json").stdout)
            for start in ([], ["--initial", "x=1"])
        )
        assert (drawn["expected"], chosen["expected"]) == (2, 2)
        assert "3 initial states without probabilities" in drawn["notes"][0]
        assert chosen["notes"] == []
        for verb in (["check"], ["curve"], ["frontier", "--alpha", "0.5"], ["compare", "--alpha", "0.5"]):
            assert "note: " * (verb == ["check"]) + "the file names 3 initial states" in run(*verb, *asked).stdout
        other = run("check", *asked, "--initial", "x=7")
        assert (other.exit_code, "the initial states of the file are 'x=0', 'x=1', 'x=2'" in other.stdout) == (2, True)
        assert "FILE.props:NAME" in " ".join(run("solve", "--help").stdout.split())

    @pytest.mark.parametrize("given", ["N=2,slip=1/8", "N=2, slip=1/8"])
    def test_constants_with_commas(self, given):
        together, apart = (run("check", ROBOT, *each, "--json") for each in (["--const", given], CONSTANTS))
        assert together.exit_code == 0
        assert json.loads(together.stdout)["states"] == json.loads(apart.stdout)["states"]
        assert "N=3,p=0.25" in run("solve", "--help").stdout

    def test_check_lists_what_is_wrong(self):
        answer = json.loads(run("check", ROBOT, "--json").stdout)
        assert not answer["ok"]
        assert "leaves N, slip undefined; give constants=" in answer["problems"][0]
        assert "--const N=... --const slip=..." in answer["problems"][0]
        assert json.loads(run("check", ROBOT, *CONSTANTS, "--json").stdout)["ok"]

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (
                [ROBOT, *CONSTANTS, "--property", 'R{"cost"}max=? [F "goal"]'],
                "--horizon; the property maximises rewards",
            ),
            ([ROBOT, "--const", "N=few", "--const", "slip=0.1"], "constant N is 'few'; it must be a number"),
            ([GAMBLER], 'there is no label "goal"; choose goals and costs with property= (--property)'),
            ([GAMBLER, "--property", "R{"], "Storm: Parsing error at 1:"),
        ],
    )
    def test_refused_with_storm(self, arguments, words):
        result = run("solve", *arguments, "--alpha", "0.1", "--json")
        assert (result.exit_code, result.stdout) == (2, "")
        assert words in result.stderr
