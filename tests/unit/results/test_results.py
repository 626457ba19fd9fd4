"""Everything a user gets back leaves as plain values, as a data frame and as a table, with the same numbers."""

import csv
import inspect
import io
import json
import subprocess
import sys

import numpy as np
import pytest
from rich.console import Console

import prudent

EVIL = "<script>alert(1)</script>"
BAD = "=HYPERLINK(1)"


@pytest.fixture(scope="module")
def results():
    """One of each, of a model whose names mean harm and whose worst case is unbounded."""
    table = {
        EVIL: {BAD: [(0.5, EVIL, 1), (0.5, ("t", 1), 1)], "pay": [(0.5, EVIL, 3), (0.5, "g", 3)]},
        ("t", 1): {-1: [(0.9, "g", 1), (0.1, "g", 9)], "[bold]": [(1, "g", 4)]},
    }
    model = prudent.build(EVIL, lambda s: table.get(s, {}))
    plan = prudent.solve(model, 0.4)
    return {
        "plan": plan,
        "distribution": prudent.evaluate(model, plan.policy),
        "runs": prudent.simulate(model, plan, episodes=500, seed=1, paths=2),
        "curve": prudent.curve(model, alpha_min=0.1),
        "frontier": prudent.frontier(model, 0.4),
        "report": prudent.check(model),
        "decisions": plan.decisions(),
        "explanation": plan.explain(("t", 1), 2),
    }


NAMES = ("plan", "distribution", "runs", "curve", "frontier", "report", "decisions", "explanation")


@pytest.mark.parametrize("name", NAMES)
def test_plain_values_survive_json(results, name):
    content = results[name].to_dict()
    assert json.loads(json.dumps(content, allow_nan=False)) == content


@pytest.mark.parametrize("name", NAMES)
def test_html_rich_and_repr(results, name):
    result = results[name]
    shown = result._repr_html_()
    assert "<script" not in shown
    assert "&lt;script" in shown or name != "decisions"
    assert len(repr(result).splitlines()) == 1
    assert len(repr(result)) < 300
    out = io.StringIO()
    Console(file=out, width=150).print(result)
    cells = [cell for row in result.table().rows for cell in row]
    assert all(cell in out.getvalue() for cell in cells)
    assert "[bold]" in out.getvalue() or name != "explanation"


def test_infinite_is_none_in_a_dict_and_infinite_in_a_frame(results):
    pytest.importorskip("pandas")
    plan, report = results["plan"], results["report"]
    assert plan.worst_case == report.worst_case == np.inf
    for result in (plan, report):
        assert result.to_dict()["worst_case"] is None
        assert result.to_frame()["worst_case"][0] == np.inf
    assert None in [row["at_most"] for row in results["decisions"].to_dict()["decisions"]]
    assert results["decisions"].to_frame()["at_most"].max() == np.inf


def test_frame_of_plans(results):
    pandas = pytest.importorskip("pandas")
    plan = results["plan"]
    row = plan.to_frame().iloc[0]
    for name, value in plan.to_dict().items():
        if name not in ("notes", "objective", "max_cvar", "worst_case"):
            assert row[name] == value
    other = prudent.solve(plan.model, 0.4, objective=prudent.Exceedance(3))
    both = pandas.concat([plan.to_frame(), other.to_frame()], ignore_index=True)
    assert both["cvar"].tolist() == [plan.cvar, other.cvar]
    assert both["objective"].tolist() == ["", "exceedance"]
    assert both["objective_value"][1] == other.objective.value
    assert both["objective_parameter"][1] == 3
    assert np.isnan(both["objective_lower"][0])
    assert both.dtypes["cvar"] == both.dtypes["objective_upper"] == np.float64
    assert both.dtypes["states"] == np.int64


def test_frame_of_a_distribution(results):
    pytest.importorskip("pandas")
    result = results["distribution"]
    frame = result.to_frame()
    assert list(frame.columns) == ["value", "probability", "exceeds"]
    assert set(frame.dtypes) == {np.dtype(np.float64)}
    assert frame["value"].tolist() == result.values.tolist()
    assert frame["probability"].tolist() == result.probabilities.tolist()
    assert frame["exceeds"].tolist() == [result.exceeds(x) for x in result.values]
    frame.loc[0, "value"] = -1.0  # the frame is the user's own
    assert result.values[0] != -1


def test_frames_of_runs_curve_and_frontier(results):
    pytest.importorskip("pandas")
    runs, curve, frontier = results["runs"], results["curve"], results["frontier"]
    assert runs.to_frame()["cost"].mean() == pytest.approx(runs.mean, rel=1e-12)
    assert len(runs.to_frame()) == 500
    points = [{name: value for name, value in vars(point).items() if name != "nominal"} for point in curve.points]
    assert curve.to_frame().to_dict("records") == points
    assert curve.to_frame([0.3, 0.2])["cvar"].tolist() == [curve.at(0.3).cvar, curve.at(0.2).cvar]
    assert [(p["expected"], p["cvar"]) for p in frontier.to_frame().to_dict("records")] == [
        (point.expected, point.cvar) for point in frontier.points
    ]
    for result in (runs, curve, frontier):
        assert set(result.to_frame().dtypes) == {np.dtype(np.float64)}


def test_frames_keep_names_as_they_are(results):
    pytest.importorskip("pandas")
    frame = results["decisions"].to_frame()
    assert set(frame["state"]) == {EVIL, ("t", 1)}
    assert frame["action"].tolist() == [row.action for row in results["decisions"].rows]
    told = results["explanation"].to_frame()
    assert told["played"].sum() == 1
    assert told.loc[told["played"], "action"].item() == results["explanation"].action
    assert told["allowed"].dtype == bool


def test_frame_of_reports(tmp_path):
    pandas = pytest.importorskip("pandas")
    good = prudent.check(prudent.domains.figure_2())
    (tmp_path / "m.json").write_text("{")
    bad = prudent.check(tmp_path / "m.json")
    both = pandas.concat([good.to_frame(), bad.to_frame()], ignore_index=True)
    assert both["ok"].tolist() == [True, False]
    assert both["states"].dtype == both["forecast_memory"].dtype == pandas.Int64Dtype()
    assert both["states"][0] == 4
    assert both["forecast_levels"][0] == good.forecast.levels
    assert both["worst_case"][0] == good.worst_case
    assert both["states"].isna().tolist() == [False, True]
    assert both["problems"][1] == bad.problems[0]
    assert repr(bad).endswith("m.json: not ready, 1 problems>")


def test_alpha_of_a_distribution_and_of_runs(results):
    result, runs, plan = results["distribution"], results["runs"], results["plan"]
    assert result.to_dict()["cvar"] is result.to_dict()["alpha"] is None
    assert runs.to_dict() == runs.to_dict(0.4) != runs.to_dict(0.3)
    assert result.to_dict(0.4)["cvar"] == pytest.approx(plan.cvar, rel=1e-9)
    assert runs.to_dict(0.4)["cvar"] == runs.cvar(0.4)
    assert len(result.table(0.4).rows) == len(result.table().rows) + 2
    assert "exact" not in runs.distribution._repr_html_()
    steps = [(step["state"], step["action"], step["cost"]) for step in runs.to_dict()["paths"][1]]
    assert steps == [(str(state), str(action), cost) for state, action, cost in runs.paths[1]]
    with pytest.raises(prudent.PrudentError, match="alpha is 2"):
        result.to_dict(2)


def test_runs_show_their_tail(results):
    runs, plan = results["runs"], results["plan"]
    assert repr(runs).endswith(f"alpha 0.4: CVaR {runs.cvar(0.4):.2f} ± {runs.cvar_se(0.4):.2f}, VaR {plan.var:g}>")
    mean, cvar, var = runs.table().rows
    assert mean == ("expected cost", f"{runs.mean:.2f}", f"± {runs.mean_se:.2f}, exactly 3.8")
    assert cvar[1:] == (
        f"{runs.cvar(0.4):.2f}",
        f"± {runs.cvar_se(0.4):.2f}, mean of the worst 40% of runs, exactly 6.125",
    )
    assert var == ("VaR", f"{runs.distribution.var(0.4):g}", "exceeded in at most 40% of runs")
    assert "exactly" not in runs.table(0.3).rows[1][2]  # the plan knows its own tail alone
    other = prudent.Runs.of(runs.costs)
    assert (other.alpha, other.table().title) == (0.05, "total cost")
    assert other.table(0.4).rows[1][:2] == cvar[:2]


def test_every_table_takes_the_same_argument(results):
    """Results with a tail take one alpha or several; no table takes anything else."""
    several = {"plan": 9, "distribution": 12, "runs": 5, "curve": 2}
    for name, result in results.items():
        assert set(inspect.signature(result.table).parameters) == ({"alpha"} if name in several else set())
        if name in several:
            assert len(result.table(alpha=[0.3, 0.2]).rows) == several[name]
            assert len(result.table(alpha=0.3).rows) < several[name]
            with pytest.raises(prudent.PrudentError, match="alpha is 2; it must be the worst fraction of runs"):
                result.table(2)
    assert results["plan"].table(0.3).rows[-2:] == results["distribution"].table(0.3).rows[1:3]


def test_a_curve_is_shown_at_round_alphas_and_names_its_breakpoints():
    curve = prudent.curve(prudent.domains.betting_game())
    table = curve.table()
    assert [row[0] for row in table.rows] == ["1%", "2%", "5%", "10%", "20%", "30%", "50%", "70%", "100%"]
    assert table.notes[-1] == f"{len(curve.points)} breakpoints of the curve are in .points, to_frame() and --json"
    assert table.head == ("worst runs", "CVaR", "VaR", "expected cost")  # the bounds say nothing more
    assert table.rows[4] == ("20%", "91.337584", "86", "75.486476")
    asked = np.linspace(0.1, 0.9, 40)
    assert len(curve.table(asked).rows) == 40
    assert len(curve.to_dict()["points"]) == len(curve.points)
    assert curve.to_dict(0.2)["points"] == curve.to_dict([0.2])["points"]


def test_long_decisions_are_cut_in_a_notebook_and_whole_as_text():
    decisions = prudent.solve(prudent.domains.betting_game(), 0.2).decisions()
    assert len(decisions.table().rows) == 50
    assert f"{len(decisions) - 50:,} more rows; print(decisions)" in decisions.table().notes[0]
    assert len(str(decisions).splitlines()) == len(decisions) + 1


def test_decisions_as_a_file(results, tmp_path):
    decisions, path = results["decisions"], tmp_path / "d.csv"
    assert decisions.to_csv(path) is None
    assert path.read_bytes().decode() == decisions.to_csv()
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["state"] for row in rows] == [str(row.state) for row in decisions.rows]
    assert [row["action"].removeprefix("'") for row in rows] == [str(row.action) for row in decisions.rows]
    assert f"'{BAD}" in {row["action"] for row in rows}
    assert "-1" in {row["action"] for row in rows}
    assert [float(row["at_least"]) for row in rows] == [row.at_least for row in decisions.rows]
    assert [float(row["at_most"] or "inf") for row in rows] == [row.at_most for row in decisions.rows]
    pandas = pytest.importorskip("pandas")
    assert len(pandas.read_csv(path)) == len(decisions)


def test_decisions_that_cannot_be_written(results, tmp_path):
    decisions = results["decisions"]
    with pytest.raises(prudent.PrudentError, match=r"d.txt: decisions are written as .csv"):
        decisions.to_csv(tmp_path / "d.txt")
    with pytest.raises(prudent.PrudentError, match=r"7: decisions are written as .csv"):
        decisions.to_csv(7)
    with pytest.raises(prudent.PrudentError, match="there is no folder"):
        decisions.to_csv(tmp_path / "none" / "d.csv")
    odd = prudent.solve(prudent.build("s\ud800", {"s\ud800": {"a": [(1, "g", 1)]}}), 0.5).decisions()
    with pytest.raises(prudent.PrudentError, match=r"UTF-8 has no '\\ud800'.*rename"):
        odd.to_csv(tmp_path / "odd.csv")
    assert list(tmp_path.iterdir()) == []
    odd._repr_html_().encode()


def test_only_what_is_played_is_marked():
    """Two states that free moves join have actions of one name; only the state's own is played."""
    table = {
        "a": {"over": [(1, "b", 0)], "leave": [(1, "g", 5)]},
        "b": {"back": [(1, "a", 0)], "leave": [(0.5, "g", 1), (0.5, "g", 3)]},
    }
    told = prudent.solve(prudent.build("a", lambda s: table.get(s, {})), 0.5).explain("b")
    assert told.action == "leave"
    marked = [line for line in str(told).splitlines() if line.startswith(">")]
    assert len(marked) == 1
    assert " at " not in marked[0]


def test_without_pandas(results, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    for result in results.values():
        with pytest.raises(
            prudent.PrudentError, match=r"needs pandas; install it with: pip install 'prudent\[frame\]'"
        ):
            result.to_frame()


def test_showing_does_not_load_pandas():
    code = (
        "import prudent, sys; plan = prudent.solve(prudent.domains.figure_2(), 0.1);"
        "[(repr(x), x._repr_html_(), x.__rich__(), x.to_dict()) for x in (plan, plan.decisions(), plan.explain('s1'))];"
        "print('pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "False"
