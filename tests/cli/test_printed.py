"""The command prints what the results say of themselves."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import prudent
from prudent.apps.cli.main import main
from prudent.apps.cli.terminal import print_histogram, round_edges


def run(*arguments):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.stderr
    return result.stdout


def without_seconds(content):
    if isinstance(content, list):
        return [without_seconds(item) for item in content]
    if isinstance(content, dict):
        return {name: without_seconds(item) for name, item in content.items() if name != "seconds"}
    return content


@pytest.fixture(scope="module")
def model():
    return prudent.domains.betting_game(stages=4)


@pytest.fixture(scope="module")
def plan(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("plans") / "p.safetensors"
    prudent.save(prudent.solve(model, 0.2), path)
    return path


GAME = ("betting-game", "--set", "stages=4")


def test_json_is_to_dict(model, plan):
    loaded = prudent.load_plan(plan, model)
    about = {"model": "betting-game", "method": "exact"}
    wanted = [
        (("solve", "--alpha", 0.2), loaded.to_dict()),
        (("solve", "--alpha", 0.2, "--decisions"), loaded.to_dict() | loaded.decisions().to_dict()),
        (("evaluate", plan), about | {"device": "cpu"} | prudent.evaluate(model, loaded.policy).to_dict(0.2)),
        (("simulate", plan), about | prudent.simulate(model, loaded.policy).to_dict(0.2)),
        (("curve",), prudent.curve(model).to_dict()),
        (("curve", "--alphas", "0.3,0.1"), prudent.curve(model).to_dict([0.3, 0.1])),
        (("frontier", "--alpha", 0.2), prudent.frontier(model, 0.2).to_dict()),
        (("chances", "--budgets", "90,80.5"), prudent.chances(model, [90, 80.5]).to_dict()),
        (("chances", "--budgets", "95", "--worst"), prudent.chances(model, [95], worst=True).to_dict()),
        (("check",), prudent.check(model).to_dict()),
    ]
    for (verb, *arguments), content in wanted:
        printed = json.loads(run(verb, *GAME, *arguments, "--json"))
        assert without_seconds(printed) == without_seconds(content), verb
        assert list(printed) == list(content)


def test_comparisons_fit_80_columns():
    for domain in ("betting-game", "inventory-control"):
        lines = run("compare", domain, "--alpha", 0.2, "--set", "stages=3").splitlines()
        assert max(len(line.rstrip()) for line in lines) <= 80
        exact = prudent.solve(getattr(prudent.domains, domain.replace("-", "_"))(stages=3), 0.2)
        assert f"optimal CVaR: {exact.shown()['cvar']}, known to all digits shown" in lines[-1]
        assert float(lines[2].split()[1]) == pytest.approx(exact.cvar, abs=5e-6)


def test_a_curve_has_all_its_breakpoints_as_json():
    lines = run("curve", "betting-game").splitlines()
    assert len(lines) == 12
    assert "breakpoints of the curve: .points, to_frame() or --json" in lines[-1]
    assert len(json.loads(run("curve", "betting-game", "--json"))["points"]) > 90


def test_decisions_as_csv(model, plan, tmp_path):
    path = tmp_path / "d.csv"
    shown = run("solve", *GAME, "--alpha", 0.2, "--decisions-csv", path)
    assert "state " not in shown
    assert path.read_bytes().decode() == prudent.load_plan(plan, model).decisions().to_csv()
    assert "decisions" not in json.loads(run("solve", *GAME, "--alpha", 0.2, "--decisions-csv", path, "--json"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--decisions-csv", "table.txt"], "table.txt: decisions are written as .csv"),
        (["--decisions-csv", "none/table.csv"], "there is no folder none"),
        (["--max-cvar", "99", "--randomise", "--decisions-csv", "d.csv"], "leave out --randomise"),
        (
            ["--method", "cvar-wc", "--decisions-csv", "d.csv", "--save", "p.safetensors"],
            "is no table; use method='exact'",
        ),
    ],
)
def test_decisions_that_cannot_be_written_leave_nothing(options, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, ["solve", *GAME, "--alpha", "0.2", *options])
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_only_what_costs_more_than_var_is_shaded(capsys):
    """A bar that begins at VaR has runs at VaR and beyond."""
    found = prudent.policies.distribution.Distribution(
        np.array([2.5, 9, 9.5, 15.5]), np.array([0.5, 0.4, 0.05, 0.05]), mean=6.1
    )
    print_histogram(found, found.var(0.1))
    shown = [line for line in capsys.readouterr().out.splitlines() if "%" in line and " 0.00%" not in line]
    bars = [line.rpartition("% ")[2] for line in shown]
    assert [line.split()[0] for line in shown] == ["2", "9", "15"]  # round edges
    assert [bar.count("█") for bar in bars] == [40, 32, 0]
    assert [bar.count("▒") for bar in bars] == [0, 4, 4]


def test_a_histogram_has_round_edges(plan):
    assert round_edges(58.938, 425.9).tolist() == [float(x) for x in range(40, 441, 20)]
    assert round_edges(1, 10, least=1.0).tolist() == [float(x) for x in range(1, 11)]  # whole costs
    assert round_edges(0.5, 2.4).tolist() == pytest.approx([x / 10 for x in range(5, 25)])
    shown = run("evaluate", *GAME, plan).splitlines()
    assert shown[-1].startswith("each range includes its lower end, the last one both ends")
