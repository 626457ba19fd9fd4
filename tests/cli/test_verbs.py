import json
import os
import signal
import subprocess
import sys
import time

import click
import pytest
from click.testing import CliRunner

import prudent
from prudent.apps.cli.main import main


def run(*arguments, **options):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments], **options)
    assert result.exit_code == 0, result.stderr
    return result.stdout


@pytest.fixture
def plan(tmp_path):
    path = tmp_path / "plan.safetensors"
    run("solve", "betting-game", "--alpha", 0.2, "--save", path)
    return path


def test_save_says_so_on_stderr_and_json_stays_alone(tmp_path):
    path = tmp_path / "p.safetensors"
    answer = json.loads(run("solve", "figure-2", "--alpha", 0.1, "--save", path, "--json"))
    assert answer["status"] == "optimal"
    assert prudent.load_plan(path, prudent.domains.figure_2()).cvar == answer["cvar"]


def test_evaluate(plan):
    answer = json.loads(run("evaluate", "betting-game", plan, "--json"))
    for name in ("mean", "std", "var", "cvar", "alpha", "missing", "values", "probabilities"):
        assert name in answer
    assert answer["mean"] == pytest.approx(75.486476, abs=1e-6)
    assert answer["cvar"] == pytest.approx(91.337584, abs=1e-6)
    assert (answer["var"], answer["missing"], answer["alpha"]) == (86, 0, 0.2)
    assert sum(answer["probabilities"]) == pytest.approx(1)
    shown = run("evaluate", "betting-game", plan)
    for text in ("75.486476", "91.337584", "  86         ", "█", "▒"):
        assert text in shown


def test_simulate(plan):
    answer = json.loads(run("simulate", "betting-game", plan, "--episodes", 5000, "--seed", 3, "--json"))
    assert (answer["episodes"], answer["seed"], answer["alpha"]) == (5000, 3, 0.2)
    assert abs(answer["mean"] - 75.486476) < 4 * answer["mean_se"]
    assert abs(answer["cvar"] - 91.337584) < 4 * answer["cvar_se"]
    again = json.loads(run("simulate", "betting-game", plan, "--episodes", 5000, "--seed", 3, "--threads", 1, "--json"))
    assert again == answer
    shown = run("simulate", "betting-game", plan, "--paths", 2)
    assert "run 2, total" in shown
    assert "exactly 75.486476" in shown
    paths = json.loads(run("simulate", "betting-game", plan, "--paths", 1, "--json"))["paths"]
    assert paths[0][0]["state"] == "(0, 5)"


def test_check():
    answer = json.loads(run("check", "inventory-control", "--json"))
    for name in ("ok", "states", "actions", "outcomes", "acyclic", "step", "worst_case", "problems"):
        assert name in answer
    assert (answer["ok"], answer["acyclic"], answer["step"], answer["worst_case"]) == (True, True, 1, 390)
    shown = run("check", "inventory-control", "--set", "stages=3")
    assert "finite horizon" in shown
    assert "ready to solve" in shown


def test_check_shows_every_problem_and_exits_2(tmp_path):
    path = tmp_path / "m.json"
    rows = [{"state": "s", "action": a, "outcomes": [{"p": 0.5, "to": "g", "cost": 1}]} for a in "ab"]
    path.write_text(
        json.dumps({"format": "prudent-ssp", "version": 1, "initial": "s", "goals": ["g"], "transitions": rows})
    )
    result = CliRunner().invoke(main, ["check", str(path)])
    assert result.exit_code == 2
    assert result.stdout.count("problem: ") == 2


def test_decisions(tmp_path):
    shown = run("solve", "figure-2", "--alpha", 0.1, "--decisions")
    assert "s1     0          d" in shown
    rows = json.loads(run("solve", "figure-2", "--alpha", 0.1, "--decisions", "--json"))["decisions"]
    assert rows[1] == {"state": "s1", "at_least": 0.0, "at_most": 0.0, "action": "d"}


def test_dead_ends_and_horizons(tmp_path):
    table = {"s": {"a": [(0.5, "g", 1), (0.5, "pit", 1)]}, "pit": {"w": [(1, "pit", 0)]}}
    prudent.save(prudent.build("s", lambda s: table.get(s, {})), tmp_path / "m.json")
    options = ["--dead-end-cost", 9]
    answer = json.loads(run("solve", tmp_path / "m.json", "--alpha", 0.5, *options, "--json"))
    assert (answer["cvar"], answer["expected"]) == (pytest.approx(10), pytest.approx(5.5))
    run("solve", tmp_path / "m.json", "--alpha", 0.5, *options, "--save", tmp_path / "p.safetensors")
    assert (
        json.loads(run("evaluate", tmp_path / "m.json", tmp_path / "p.safetensors", *options, "--json"))["mean"] == 5.5
    )
    answer = json.loads(
        run("solve", tmp_path / "m.json", "--alpha", 0.5, "--horizon", 4, "--horizon-cost", 7, "--json")
    )
    assert answer["expected"] == pytest.approx(1 + 3.5)


def test_no_color(plan):
    for more, coloured in (({}, True), ({"NO_COLOR": "1"}, False)):
        environment = {"FORCE_COLOR": "1", "TERM": "xterm", **more}
        shown = CliRunner().invoke(main, ["evaluate", "betting-game", str(plan)], env=environment)
        assert ("\x1b[34m" in shown.stdout) == coloured
        assert "75.486476" in shown.stdout


def test_output_that_is_not_unicode(plan):
    for verb, *arguments in (("evaluate", plan), ("simulate", plan), ("solve", "--alpha", 0.2)):
        result = CliRunner(charset="ascii").invoke(main, [verb, "betting-game", *map(str, arguments)])
        assert result.exit_code == 0, result.stderr
        result.stdout_bytes.decode("ascii")


def test_names_are_not_markup(tmp_path):
    prudent.save(prudent.domains.figure_2(), tmp_path / "[bold].json")
    assert "[bold]" in run("check", tmp_path / "[bold].json")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell):
    assert "_PRUDENT_COMPLETE" in run("completion", shell)


def test_completion_offers_domains():
    environment = {
        **os.environ,
        "_PRUDENT_COMPLETE": "bash_complete",
        "COMP_WORDS": "prudent solve bet",
        "COMP_CWORD": "2",
    }
    done = subprocess.run(
        [sys.executable, "-c", "from prudent.apps.cli.main import main; main(prog_name='prudent')"],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert "betting-game" in done.stdout


@pytest.mark.parametrize(
    "verb", [[], ["solve"], ["evaluate"], ["simulate"], ["check"], ["chances"], ["study"], ["completion"]]
)
def test_help_has_examples(verb):
    shown = run(*verb, "--help")
    assert "Example" in shown
    assert "prudent " in shown


def test_ctrl_c_exits_130(tmp_path):
    program = "from prudent.apps.cli.main import main; print('here', flush=True); main()"
    command = [sys.executable, "-c", program, "solve", "inventory-control", "--alpha", "0.01", "--json"]
    command += ["--set", "capacity=100", "--set", "demand=50"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "here\n"
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert out == "" or json.loads(out)["status"] == "interrupted"  # stopped before, or in, the sweep
    assert "Traceback" not in err


def test_curve():
    answer = json.loads(run("curve", "betting-game", "--alphas", "0.2,0.02", "--json"))
    assert [point["alpha"] for point in answer["points"]] == [0.2, 0.02]
    assert [point["cvar"] for point in answer["points"]] == pytest.approx([91.337584, 95], abs=1e-6)
    assert [point["expected"] for point in answer["points"]] == pytest.approx([75.486476, 95], abs=1e-6)
    assert [point["var"] for point in answer["points"]] == [86, 95]
    printed = run("curve", "figure-2", "--alpha-min", 0.05)
    assert [line.split() for line in printed.splitlines()[2:5]] == [
        ["5%", "10", "10", "4.06"],
        ["10%", "10", "9", "4.06"],
        ["20%", "8.5", "7", "7.3"],
    ]
    assert "\n4 breakpoints of the curve are in" in printed
    result = CliRunner().invoke(main, ["curve", "figure-2", "--alphas", "0.1,x"])
    assert result.exit_code == 2
    assert "--alphas 'x': must be numbers with commas between them" in result.stderr


def test_frontier():
    answer = json.loads(run("frontier", "figure-2", "--alpha", 0.1, "--json"))
    assert [(point["expected"], point["cvar"]) for point in answer["points"]] == [
        pytest.approx((1.9, 14.5)),
        pytest.approx((4.06, 10)),
    ]
    assert "extra expected cost per unit of CVaR saved" in run("frontier", "figure-2", "--alpha", 0.1)


def test_chances():
    answer = json.loads(run("chances", "figure-2", "--budgets", "9,1", "--json"))
    assert [point["budget"] for point in answer["points"]] == [9, 1]
    assert [point["chance"] for point in answer["points"]] == pytest.approx([0.9, 0.855])
    assert all(point["lower"] <= point["chance"] <= point["upper"] for point in answer["points"])
    assert "highest probability" in run("chances", "figure-2", "--budgets", "9")
    assert "lowest probability" in run("chances", "figure-2", "--budgets", "9", "--worst")
    result = CliRunner().invoke(main, ["chances", "figure-2", "--budgets", "1,x"])
    assert result.exit_code == 2
    assert "--budgets 'x': must be numbers with commas between them" in result.stderr


def test_slack_and_limit():
    answer = json.loads(run("solve", "betting-game", "--alpha", 0.2, "--slack", 0.01, "--json"))
    assert answer["max_cvar"] == pytest.approx(1.01 * 91.337584, abs=1e-5)
    assert answer["cvar"] <= answer["max_cvar"]
    assert answer["expected_lower"] <= answer["expected"] < 66
    limited = run("solve", "betting-game", "--alpha", 0.2, "--max-cvar", 93)
    assert "no plan with a CVaR up to 93 has less than" in " ".join(limited.split())
    result = CliRunner().invoke(main, ["solve", "betting-game", "--alpha", "0.2", "--max-cvar", "90"])
    assert result.exit_code == 2
    assert "The optimal CVaR is 91.3375837; raise max_cvar" in result.stderr


@pytest.mark.parametrize(
    ("text", "value"), [("var", 79), ("worst-case", 95), ("exceed:90", 0.0456748984375), ("mean+cvar:2", 248.419408)]
)
def test_objectives(text, value):
    answer = json.loads(run("solve", "betting-game", "--alpha", 0.2, "--objective", text, "--json"))
    assert answer["objective"]["value"] == pytest.approx(value, abs=1e-5)
    assert answer["status"] == "optimal"
    assert "optimal: " in run("solve", "betting-game", "--alpha", 0.2, "--objective", text)


@pytest.mark.parametrize("text", ["cvar", "exceed", "exceed:x", "mean+cvar:-1"])
def test_objectives_that_mean_nothing(text):
    result = CliRunner().invoke(main, ["solve", "betting-game", "--alpha", "0.2", "--objective", text])
    assert result.exit_code == 2
    assert "must be" in result.stderr


NUMERALS = [
    ("chances", "figure-2", "--budgets", "1_0"),
    ("curve", "figure-2", "--alphas", "0_1,0.5"),
    ("solve", "figure-2", "--alpha", "0.1", "--objective", "exceed:1_0"),
    ("solve", "figure-2", "--alpha", "0.1", "--memory", "1_0GB"),
    ("solve", "figure-2", "--alpha", "0.1", "--uncertainty", "0.9_5"),
    ("solve", "figure-2", "--alpha", "0_1"),
    ("solve", "betting-game", "--alpha", "0.1", "--set", "stages=1_0"),
    ("study", "betting-game", "--alpha", "0.1", "--set", "stages=2,1_0"),
]


@pytest.mark.parametrize("asked", NUMERALS, ids=" ".join)
def test_what_only_python_reads_as_a_number_is_none(asked):
    result = CliRunner().invoke(main, list(asked))
    assert result.exit_code == 2 and "_" in result.stderr
    assert "must be" in result.stderr or "is not a valid" in result.stderr


def test_every_option_reads_numbers_alike():
    options = [(verb, option) for verb, command in main.commands.items() for option in command.params]
    assert [(verb, option.name) for verb, option in options if option.type in (click.FLOAT, click.INT)] == []
    named = [option for _, option in options if option.type.name in ("float", "integer")]
    assert len(named) > 30
    for option in named:
        assert option.type.convert("1", option, None) == 1
        with pytest.raises(click.BadParameter, match="'1_0' is not a valid"):
            option.type.convert("1_0", option, None)


@pytest.mark.parametrize("verb", ["evaluate", "simulate", "curve", "frontier", "compare"])
def test_a_time_limit_is_kept_by_every_verb(verb, plan):
    options = [plan] if verb in ("evaluate", "simulate") else [] if verb == "curve" else ["--alpha", 0.2]
    options += ["--methods", "cvar-wc"] if verb == "compare" else []
    result = CliRunner().invoke(main, [*map(str, [verb, "betting-game", *options]), "--time-limit", "1e-9"])
    if verb in ("evaluate", "simulate"):
        assert result.exit_code == 2
        assert "takes longer than the time limit; raise time_limit= (--time-limit)" in result.stderr
    else:  # an answer, with what is known
        assert result.exit_code == 0 and "unknown" in result.stdout
    run(verb, "betting-game", *options, "--time-limit", 600)


def test_a_check_within_a_time_limit():
    assert json.loads(run("check", "betting-game", "--time-limit", "1e-9", "--json"))["forecast"] is None
    assert json.loads(run("check", "betting-game", "--time-limit", 600, "--json"))["forecast"]["levels"] > 90


def test_study(tmp_path):
    asked = ["study", "betting-game", "--set", "stages=2,3", "--alpha", "0.5,0.1", "--workers", 1]
    keep, csv = tmp_path / "rows.jsonl", tmp_path / "rows.csv"
    answer = json.loads(run(*asked, "--keep", keep, "--csv", csv, "--json"))
    assert [(row["stages"], row["alpha"]) for row in answer["rows"]] == [(2, 0.5), (2, 0.1), (3, 0.5), (3, 0.1)]
    alone = json.loads(run("solve", "betting-game", "--alpha", 0.1, "--set", "stages=3", "--json"))
    for name in ("model", "method", "status", "cvar", "var", "expected", "lower", "upper", "states", "outcomes"):
        assert answer["rows"][3][name] == alone[name]
    assert json.loads(run(*asked, "--keep", keep, "--json"))["rows"] == answer["rows"]  # seconds, too: not solved again
    assert len(csv.read_text().splitlines()) == 5
    assert "optimal" in run(*asked)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--set", "stages=two"], "--set stages=two: the value must be a whole number"),
        (["--set", "stage=2"], "--set stage=2: betting-game has no such parameter"),
        (["--set", "stages=2", "--set", "stages=3"], "stages is set twice"),
        (["--set", "stages=2,2"], "stages has 2 twice"),
        (["--set", "stages=0,-1", "--workers", "1"], "all 2 combinations failed, the first with: stages is 0"),
        (["--csv", "rows.txt"], "rows.txt: a study's table is written as .csv"),
    ],
)
def test_study_says_what_is_wrong(change, message):
    result = CliRunner().invoke(main, ["study", "betting-game", "--alpha", "0.5", *change])
    assert result.exit_code == 2 and message in result.stderr


def test_study_that_was_interrupted_ends_with_130(monkeypatch):
    plan = prudent.solve(prudent.domains.figure_2(), 0.5)
    stopped = type(plan)(**vars(plan) | {"status": "interrupted"})
    monkeypatch.setattr("prudent.planning.study.solve", lambda *_, **__: stopped)
    result = CliRunner().invoke(main, ["study", "figure-2", "--alpha", "0.5", "--workers", "1"])
    assert result.exit_code == 130 and "1 of 1 combinations are not finished" in result.stdout
