import base64
import json
import re
import time
from dataclasses import replace

import pytest
from click.testing import CliRunner

import prudent
from prudent.apps.cli.main import main
from prudent.apps.paper import experiments
from prudent.apps.paper import report as page
from prudent.apps.paper.experiments import ALPHAS, METHODS
from prudent.plot.canvas import short
from prudent.plot.panels import histograms, trade_offs
from prudent.runtime import progress

FIELDS = (
    "domain method alpha cvar expected lower upper simulated_cvar simulated_cvar_se simulated_expected "
    "simulated_expected_se paper_cvar paper_expected seconds paper_seconds"
).split()


TWO = {"betting-game": "Betting Game", "deep-sea-treasure": "Deep Sea Treasure"}


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The report of two domains, with few episodes."""
    pytest.importorskip("matplotlib", reason="the report has figures")
    patch = pytest.MonkeyPatch()
    for module in (experiments, page):
        patch.setattr(module, "DOMAINS", TWO)
    patch.setattr(page, "FIGURES", {"betting-game": (0.2,), "deep-sea-treasure": (0.02, 0.2)})
    patch.setattr(experiments, "GRIDS", (30,))
    out = tmp_path_factory.mktemp("report")
    results = page.reproduce(out, episodes=2000)
    patch.undo()
    return out, results


def test_files(report):
    out, _ = report
    pictures = ["betting-game-0.2", "deep-sea-treasure-0.02", "deep-sea-treasure-0.2", "summary", "summary-narrow"]
    assert {path.name for path in out.iterdir()} == {
        *(f"{name}{suffix}" for name in pictures for suffix in (".png", ".svg")),
        "index.html",
        "results.csv",
        "results.json",
    }


def test_results(report):
    out, results = report
    content = json.loads((out / "results.json").read_text())
    assert len(content["rows"]) == 16
    for row in content["rows"]:
        assert set(FIELDS) <= set(row)
        assert row["lower"] <= row["cvar"] + 1e-9
        assert (row["paper_cvar"] is None) == (row["method"] == "exact")
        assert abs(row["simulated_cvar"] - row["cvar"]) <= 4 * row["simulated_cvar_se"] + 1e-9
    tried = [(grid["points"], grid["ties"], grid["floor"]) for grid in content["deep_sea_treasure_grids"]]
    assert tried == [(30, "first", 0.0), (30, "last", 0.0), (30, "first", 1e-6)]
    assert len({grid["game_value"] for grid in content["deep_sea_treasure_grids"]}) == 1  # that without a floor
    planned = {f"{d}, {m}, alpha {a:g}" for d in TWO.values() for m in METHODS for a in ALPHAS}
    built = {f"{domain}, building" for domain in TWO.values()}
    assert set(content["parts"]) == planned | built | {"Deep Sea Treasure, 30 points"}
    for row in content["rows"]:
        took = content["parts"][f"{TWO[row['domain']]}, {row['method']}, alpha {row['alpha']:g}"]
        assert 0 < row["seconds"] < took  # a part simulates as well
    lines = (out / "results.csv").read_text().splitlines()
    assert len(lines) == 17
    assert results.row("betting-game", "exact", 0.2).off("cvar") is None
    assert abs(results.row("betting-game", "cvar-ev", 0.2).off("expected")) < 4


def test_page_stands_alone(report):
    out, _ = report
    text = (out / "index.html").read_text()
    assert text.count("data:image/svg+xml;base64,") == 5
    assert not re.findall(r"""(?:src|href)=["'](?!data:|#)""", text)  # nothing is fetched
    for words in (
        "Where the paper's policies are not optimal",
        "The rule at y = 0",
        "30, first, 1e-06",
        "game value",
        "502.25",
        "91.34",
        "prefers-color-scheme",
    ):
        assert words in text
    assert "nan" not in re.sub(r"base64,[^\"]*", "", text)


def test_pictures_on_the_page_are_those_beside_it_and_differ(report):
    out, _ = report
    files = [path.read_bytes() for path in sorted(out.glob("*.svg"))]
    text = (out / "index.html").read_text()
    shown = [base64.b64decode(each) for each in re.findall(r"data:image/svg\+xml;base64,([^\"]*)", text)]
    assert sorted(shown) == sorted(files)
    assert len(set(files)) == 5 and all(b"prefers-color-scheme: dark" in file for file in files)
    assert all(path.read_bytes().startswith(b"\x89PNG\r\n\x1a\n") for path in out.glob("*.png"))


def test_the_page_has_contents_and_the_summary_comes_first(report):
    text = (report[0] / "index.html").read_text()
    links, anchors = re.findall(r'<li><a href="#([^"]*)"', text), re.findall(r'<h2 id="([^"]*)"', text)
    assert links == anchors == ["summary", "methods", "table-1", "table-2", "distributions", "not-optimal", "rule"]
    assert text.index("<figure>") < text.index("<table")
    assert "(max-width: 44rem)" in text.partition("<source")[2].partition(">")[0]  # a narrow page has its own summary
    for row in re.findall(r'<tr class="(?:exact)?">(.*?)</tr>', text):  # what a narrow page writes above each number
        assert len(re.findall(r"<td", row)) == len(re.findall(r'<td data-head="[^"]*">', row)) > 4


def test_captions_say_what_is_drawn(report):
    text = (report[0] / "index.html").read_text()
    pairs = text.partition('class="pairs"')[2]
    titles = re.findall(r"<h3>(.*?)</h3>", pairs)
    assert titles[0] == "Betting Game, worst 20% of runs" and len(titles) == 3
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", pairs)
    order = "From the top: CVaR-Worst-Case, CVaR-Expected-Value, Expected Value, exact."
    assert captions[0] == f"{order} Orange: the worst 20% of runs."
    assert "Dashed" not in text  # that is for Inventory Control


def test_digits_are_those_that_the_bounds_support(report):
    row = report[1].row("betting-game", "exact", 0.2)
    assert page._decimals(row) == 2
    for width, decimals in ((0.05, 1), (0.5, 0), (3, 0), (0.001, 2)):
        wide = replace(row, status="within_gap", lower=91.0, upper=91.0 + width)
        assert page._decimals(wide) == decimals


def figures_of(results, monkeypatch):
    """Draw the figures of the Betting Game; return them by name."""
    drawn = {}
    monkeypatch.setattr(page, "DOMAINS", {"betting-game": "Betting Game"})
    monkeypatch.setattr(page, "FIGURES", {"betting-game": (0.2,)})
    monkeypatch.setattr(page, "histograms", lambda *a, **b: drawn.setdefault("bars", histograms(*a, **b)))
    monkeypatch.setattr(page, "trade_offs", lambda *a: drawn.setdefault("summary", trade_offs(*a)))
    page.draw_figures(results)
    return drawn


def test_a_figure_has_bars_for_each_method_and_marks_what_it_costs(report, monkeypatch):
    _, results = report
    bars = figures_of(results, monkeypatch)["bars"]
    for axis, method in zip(bars.axes, ["cvar-wc", "cvar-ev", "expected", "exact"], strict=True):
        legend = axis.get_legend()
        (numbers,) = (text.get_text() for text in legend.get_texts())
        assert legend.get_title().get_text() == METHODS[method]
        (cvar,) = [line.get_xdata()[0] for line in axis.lines if line.get_marker() == "s"]
        assert cvar == pytest.approx(results.row("betting-game", method, 0.2).simulated_cvar)
        assert f"CVaR {short(cvar)}" in numbers


def test_the_summary_shows_what_each_method_costs(report, monkeypatch):
    _, results = report
    summary = figures_of(results, monkeypatch)["summary"]
    assert [axis.get_title(loc="left") for axis in summary.axes[:2]] == [
        "Betting Game,\nworst 2% of runs",
        "Betting Game,\nworst 20% of runs",
    ]
    axis, rows = summary.axes[1], [results.row("betting-game", method, 0.2) for method in METHODS]
    points = [(line.get_xdata()[0], line.get_ydata()[0]) for line in axis.lines if len(line.get_xdata()) == 1]
    assert {(row.expected, row.cvar) for row in rows} <= set(points)
    assert {(row.paper_expected, row.paper_cvar) for row in rows if row.paper_cvar} <= set(points)
    assert len(points) == 7
    low, high = axis.patches[0].get_extents().transformed(axis.transData.inverted()).intervaly
    assert low < high == pytest.approx(results.row("betting-game", "exact", 0.2).cvar)


def test_wrong_options(tmp_path):
    result = CliRunner().invoke(main, ["reproduce", "--out", str(tmp_path), "--episodes", "1"])
    assert result.exit_code == 2
    assert "episodes is 1" in result.stderr
    (tmp_path / "file").write_text("")
    result = CliRunner().invoke(main, ["reproduce", "--out", str(tmp_path / "file" / "x")])
    assert result.exit_code == 2
    assert "cannot be created as a folder" in result.stderr


def test_compare():
    result = CliRunner().invoke(main, ["compare", "betting-game", "--alpha", "0.2", "--json"])
    rows = json.loads(result.stdout)["rows"]
    assert [row["method"] for row in rows] == ["exact", "cvar-ev", "cvar-wc", "expected", "worst-case"]
    assert rows[0]["cvar"] == pytest.approx(91.337584, abs=1e-6)
    assert rows[2]["lower"] == pytest.approx(91.103, abs=1e-3)
    few = CliRunner().invoke(main, ["compare", "figure-2", "--alpha", "0.1", "--json", "--methods", "expected, exact"])
    assert [row["method"] for row in json.loads(few.stdout)["rows"]] == ["expected", "exact"]
    for methods, message in (
        ("exact,best", "'best' is no method; methods are exact, "),
        ("exact,exact", "given twice"),
    ):
        refused = CliRunner().invoke(main, ["compare", "figure-2", "--alpha", "0.1", "--methods", methods])
        assert refused.exit_code == 2
        assert message in refused.stderr
    shown = CliRunner().invoke(main, ["compare", "figure-2", "--alpha", "0.1", "--points", "5"]).stdout
    assert "cvar-wc" in shown
    assert "…" not in shown


def test_compare_says_which_method_takes_long(monkeypatch):
    solve, said = prudent.solve, []

    def slow(model, alpha, *, method, time_limit):
        while method == "expected" and not any("expected" in each for each in said):
            time.sleep(0.01)
        return solve(model, alpha, method=method)

    options = ["compare", "figure-2", "--alpha", "0.1", "--methods", "exact,expected"]
    monkeypatch.setattr(prudent, "solve", slow)
    monkeypatch.setattr(progress, "announce", said.append)
    monkeypatch.setattr(progress, "PATIENCE", 1e3)
    with progress.announce_if_long("nothing takes so long"):
        assert said == []
    monkeypatch.setattr(progress, "PATIENCE", 0.2)
    assert CliRunner().invoke(main, options).exit_code == 0
    assert "expected is running, method 2 of 2; choose some with --methods" in said
