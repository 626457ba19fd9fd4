"""Axes and files, what is left untouched, and what cannot be drawn."""

import subprocess
import sys

import numpy as np
import pytest

import prudent

pytest.importorskip("matplotlib", reason="pictures need matplotlib (extra plot)")

from matplotlib.figure import Figure

from drawing import drawn
from plans import plan_for
from prudent.plot import canvas
from prudent.policies.distribution import Distribution

PLOT = prudent.plot


@pytest.fixture
def betting():
    return plan_for("betting_game", 0.2)


@pytest.fixture
def treasure():
    return plan_for("deep_sea_treasure", 0.02)


def test_axes_are_those_given_or_show_themselves(betting):
    own = Figure().subplots()
    assert PLOT.distribution(betting, ax=own) is own
    ax = PLOT.distribution(betting)
    assert ax._repr_png_().startswith(b"\x89PNG")
    assert ax.figure._repr_png_() == ax._repr_png_()
    assert own.figure is not ax.figure


def test_no_global_state_is_touched():
    code = """
import prudent, sys, io
prudent.plot
assert "matplotlib" not in sys.modules
plan = prudent.solve(prudent.domains.figure_2(), 0.1)
import matplotlib
def settings():  # asking for the backend would choose one
    return {name: matplotlib.rcParams[name] for name in matplotlib.rcParams if name != "backend"}
before = settings()
for draw in (prudent.plot.distribution, prudent.plot.cdf, prudent.plot.policy, prudent.plot.routes):
    draw(plan).figure.savefig(io.BytesIO(), format="svg")
prudent.plot.curve(prudent.curve(plan.model))._repr_png_()
prudent.plot.frontier(prudent.frontier(plan.model, 0.1), chosen=plan)._repr_png_()
assert settings() == before
assert "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_without_matplotlib_it_is_said_what_to_install(betting, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.axes", None)
    with pytest.raises(prudent.PrudentError, match=r"needs matplotlib; install it with: pip install 'prudent\[plot\]'"):
        PLOT.distribution(betting)


def test_files_are_whole_or_not_there(betting, tmp_path, monkeypatch):
    ax = PLOT.distribution(betting)
    for suffix, begin in ((".png", b"\x89PNG"), (".svg", b"<?xml"), (".PDF", b"%PDF")):
        canvas.save(ax, tmp_path / f"picture{suffix}")
        assert (tmp_path / f"picture{suffix}").read_bytes().startswith(begin)
    (tmp_path / "old.png").write_bytes(b"old")
    monkeypatch.setattr(ax.figure, "savefig", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        canvas.save(ax, tmp_path / "old.png")
    assert (tmp_path / "old.png").read_bytes() == b"old"
    with pytest.raises(prudent.PrudentError, match=r"pictures are written as \.png, \.svg, \.pdf"):
        canvas.save(ax, tmp_path / "picture.jpg")
    with pytest.raises(prudent.PrudentError, match="there is no folder"):
        canvas.save(ax, tmp_path / "nowhere" / "picture.png")


def test_an_svg_suits_light_and_dark_pages(betting, tmp_path):
    ax = PLOT.distribution(betting)
    both, light, dark = (canvas.svg(ax.figure, theme).decode() for theme in ("both", "light", "dark"))
    assert "prefers-color-scheme: dark" in both and "prefers-color-scheme" not in light + dark
    assert "fill: #ffffff" in light and "fill: #ffffff" not in dark
    for old, new in canvas.DARK.items():
        used = f"stroke: {old.lower()}" in light
        assert used == (f"stroke: {new.lower()}" in dark)
        assert f'[style*="stroke: {old.lower()}"] {{ stroke: {new.lower()} !important }}' in both
    for ink, paper in ((canvas.INK, canvas.PAPER), (canvas.DARK[canvas.INK], canvas.DARK[canvas.PAPER])):
        dim, bright = sorted((canvas.light(ink), canvas.light(paper)))
        assert (bright + 0.05) / (dim + 0.05) > 7
    PLOT.save(ax, tmp_path / "dark.svg", theme="dark")
    assert (tmp_path / "dark.svg").read_text() == dark  # the same file every time
    with pytest.raises(prudent.PrudentError, match=r"theme is 'grey'; it must be"):
        PLOT.save(ax, tmp_path / "grey.svg", theme="grey")
    with pytest.raises(prudent.PrudentError, match=r"has light colours; write an \.svg"):
        PLOT.save(ax, tmp_path / "dark.png", theme="dark")
    with pytest.raises(prudent.PrudentError, match=r"theme is 'grey'; it must be"):
        PLOT.save(ax, tmp_path / "grey.png", theme="grey")
    for theme in ("light", "both"):  # what a PNG has anyway
        PLOT.save(ax, tmp_path / f"{theme}.png", theme=theme)
    assert (tmp_path / "light.png").read_bytes() == (tmp_path / "both.png").read_bytes()


def test_costs_have_the_digits_that_a_reader_needs():
    shown = {91.3376: "91.34", 86.0: "86", 0.5: "0.50", 0.00123456: "0.00123", 1234567.8: "1,234,568", -2.5: "-2.50"}
    assert {value: canvas.short(value) for value in shown} == shown
    assert (canvas.short(float("nan")), canvas.short(float("inf"))) == ("unknown", "unbounded")


def test_names_are_cut_and_never_mathematics():
    assert canvas.name_of("$x^2$") == r"\$x^2\$"
    assert len(canvas.name_of("long" * 20)) == 24
    assert canvas.name_of("bell\a") == repr("bell\a")
    table = {"$s_1$": {"$a": [(0.5, "g", 1), (0.5, "g", 4)], "b$": [(1, "g", 3)]}, "g": {}}
    plan = prudent.solve(prudent.build("$s_1$", table), 0.4)
    strip, network = drawn(PLOT.budget_strip(plan)), drawn(PLOT.routes(plan))
    assert [label.get_text() for label in strip.get_yticklabels()] == [r"\$s_1\$"]
    assert {text.get_text() for text in strip.texts} <= {r"\$a", r"b\$"} and strip.texts
    assert {text.get_text() for text in network.texts} == {r"\$s_1\$", "g"}


def test_colours_differ_in_lightness():
    light = [canvas.light(colour) for colour in canvas.hues(9)]
    assert (np.diff(light) > 0).all()
    dark = canvas.light(canvas.DARK[canvas.PAPER])
    assert (light[0] + 0.05) / (dark + 0.05) > 1.8  # the darkest is seen on a dark page, too
    assert canvas.light("black") == 0
    assert canvas.light("white") == pytest.approx(1)


ERRORS = {
    "nothing": (lambda p: PLOT.distribution(), "no result is given; give plans"),
    "no result": (lambda p: PLOT.distribution(p, "plan"), "result 2 is a str"),
    "too few labels": (lambda p: PLOT.cdf(p, p, labels=["a"]), "a name for each of the 2"),
    "labels are a text": (lambda p: PLOT.cdf(p, labels="a"), "labels is 'a'"),
    "an alpha": (lambda p: PLOT.cdf(p, alpha=2), "alpha is 2"),
    "falling bins": (lambda p: PLOT.distribution(p, bins=[2, 1]), "rising edges of bars"),
    "no bins": (lambda p: PLOT.distribution(p, bins=0), "bins is 0"),
    "words as bins": (lambda p: PLOT.distribution(p, bins="auto"), "bins is 'auto'"),
    "empty": (lambda p: PLOT.distribution(Distribution(np.zeros(0), np.zeros(0), mean=0.0)), "without values"),
    "an axis": (lambda p: PLOT.distribution(p, ax="here"), "ax is a str"),
    "no curve": (lambda p: PLOT.curve(p), "curve is a Plan"),
    "no frontier": (lambda p: PLOT.frontier(p), "frontier is a Plan"),
    "no plan": (lambda p: PLOT.policy(p.policy), "plan is a BudgetPolicy"),
    "another state": (lambda p: PLOT.budget_strip(p, "s9"), "'s9' is not a state"),
    "a goal": (lambda p: PLOT.budget_strip(p, "g"), "'g' is a goal"),
    "a budget for strips": (lambda p: PLOT.policy(p, budget=3), "for all budgets at once"),
    "no tuples": (lambda p: PLOT.heat_map(p), "no state that is a tuple"),
    "one coordinate": (lambda p: PLOT.heat_map(p, x=1, y=1), "two coordinates"),
    "where": (lambda p: PLOT.heat_map(p, where={0: 1}), "where is"),
    "names": (lambda p: PLOT.heat_map(p, names="ab"), "names is 'ab'"),
    "no sea": (lambda p: PLOT.sea_map(p), "not Deep Sea Treasure"),
    "no position": (lambda p: PLOT.routes(p, positions={"s0": (0, 0)}), "no place for state 's1'"),
    "a bad position": (lambda p: PLOT.routes(p, positions=dict.fromkeys(("s0", "s1", "s2", "g"), 1)), "must be"),
    "positions": (lambda p: PLOT.routes(p, positions=[1]), "positions is a list"),
    "a budget": (lambda p: PLOT.routes(p, budget="all"), "budget is 'all'"),
}


@pytest.mark.parametrize("what", ERRORS)
def test_what_can_be_got_wrong(what):
    draw, message = ERRORS[what]
    with pytest.raises(prudent.PrudentError, match=message):
        draw(plan_for("figure_2", 0.1))


def test_what_cannot_be_drawn_says_so(betting, treasure):
    frontier = prudent.frontier(betting.model, 0.2)
    with pytest.raises(prudent.PrudentError, match=r"for alpha 0\.02; the frontier is for 0\.2"):
        PLOT.frontier(frontier, chosen=treasure)
    with pytest.raises(prudent.PrudentError, match="made for"):
        PLOT.frontier(frontier, chosen=plan_for("figure_2", 0.2))
    with pytest.raises(prudent.PrudentError, match="chosen is a float"):
        PLOT.frontier(frontier, chosen=0.5)
    with pytest.raises(prudent.PrudentError, match="a move costs 5, so it must be 465 at the start"):
        PLOT.policy(treasure, budget=100)
    with pytest.raises(prudent.PrudentError, match="of deep-sea-treasure is not a number: a heat map"):
        PLOT.heat_map(treasure)
    with pytest.raises(prudent.PrudentError, match="600 are laid out at most"):
        PLOT.routes(betting)
    memory = plan_for("deep_sea_treasure", 0.02, method="cvar-ev")
    assert drawn(PLOT.policy(memory)).get_xlabel() == "column"  # where its runs go needs no memory
    with pytest.raises(prudent.PrudentError, match="remembers more than the cost so far"):
        PLOT.policy(memory, budget=memory.policy.budget)
