"""What pictures show, read back from what was drawn."""

import subprocess
import sys

import numpy as np
import pytest

import prudent

pytest.importorskip("matplotlib", reason="pictures need matplotlib (extra plot)")

from matplotlib.collections import PolyCollection, QuadMesh
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, StepPatch
from matplotlib.quiver import Quiver

from prudent.plot import canvas
from prudent.plot.network import SHOWN, place_states
from prudent.plot.tails import common_bins
from prudent.risk import Distribution

PLOT = prudent.plot
COMMUTE = {
    "home": {"bike": [(1.0, "work", 50)], "train": [(0.9, "station", 10), (0.1, "station", 25)]},
    "station": {"bus": [(0.9, "work", 15), (0.1, "work", 35)], "taxi": [(1.0, "work", 24)]},
}


def solved(name, alpha, **options):
    return prudent.solve(getattr(prudent.domains, name)(), alpha, **options)


@pytest.fixture(scope="module")
def betting():
    return solved("betting_game", 0.2)


@pytest.fixture(scope="module")
def treasure():
    return solved("deep_sea_treasure", 0.02)


@pytest.fixture(scope="module")
def inventory():
    return solved("inventory_control", 0.02)


@pytest.fixture(scope="module")
def navigation():
    return solved("autonomous_navigation", 0.02, relative_gap=0.01)


@pytest.fixture(scope="module")
def commute():
    return prudent.solve(prudent.build("home", lambda place: COMMUTE.get(place, {}), name="commute"), 0.01)


def drawn(ax):
    """Draw for good, so that nothing fails only then; return the axes."""
    assert canvas.png(ax.figure).startswith(b"\x89PNG")
    return ax


def steps(ax):
    return [patch for patch in ax.patches if isinstance(patch, StepPatch)]


def marks(ax):
    """The marks by their shape: x of the mean, of VaR and of CVaR, a list each."""
    found = {"o": [], "|": [], "s": []}
    for line in ax.lines:
        if line.get_marker() in found:
            found[line.get_marker()].append(float(line.get_xdata()[0]))
    return found


# Distributions


def test_a_distribution_has_all_its_mass_and_alpha_of_it_shaded(betting):
    ax = drawn(PLOT.distribution(betting))
    body, tail, _, outline = steps(ax)
    assert outline.get_data().values.sum() == pytest.approx(1)
    assert (tail.get_data().values - tail.get_data().baseline).sum() == pytest.approx(0.2)
    assert body.get_data().values == pytest.approx(tail.get_data().baseline)
    assert marks(ax) == {
        "o": [pytest.approx(75.486476, abs=1e-6)],
        "|": [86.0],
        "s": [pytest.approx(91.337584, abs=1e-6)],
    }
    (text,) = [text.get_text() for text in ax.get_legend().get_texts()]
    assert all(number in text for number in ("mean 75.486", "VaR 86", "CVaR 91.338"))
    assert ax.get_legend().get_title().get_text() == "shaded: the worst 0.2 of runs"
    centres = (outline.get_data().edges[1:] + outline.get_data().edges[:-1]) / 2
    shaded = tail.get_data().values - tail.get_data().baseline
    assert centres @ shaded / 0.2 == pytest.approx(91.34, abs=1)  # where the shade is, on average


def test_several_are_told_apart_in_black_and_white(betting):
    plans = [betting, solved("betting_game", 0.2, method="cvar-wc"), solved("betting_game", 0.2, method="expected")]
    ax = drawn(PLOT.distribution(*plans))
    outlines, tails = steps(ax)[2::3], steps(ax)[0::3]
    assert [outline.get_data().values.sum() for outline in outlines] == pytest.approx([1, 1, 1])
    assert [(t.get_data().values - t.get_data().baseline).sum() for t in tails] == pytest.approx([0.2] * 3)
    light = sorted(canvas.light(outline.get_edgecolor()) for outline in outlines)
    assert min(np.diff(light)) > 0.1
    assert len({outline.get_linestyle() for outline in outlines}) == 3
    assert len({hatched.get_hatch() for hatched in steps(ax)[1::3]}) == 3
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert [label.partition(":")[0] for label in labels] == ["exact", "cvar-wc", "expected"]
    assert marks(ax)["s"] == pytest.approx([plan.cvar for plan in plans])


def test_runs_and_distributions_take_the_alpha_of_the_first_plan_or_the_one_given(betting):
    runs = prudent.simulate(betting.model, betting.policy, episodes=500, seed=1)
    exact = prudent.evaluate(betting.model, betting.policy)
    ax = PLOT.distribution(betting, runs, exact, labels=["plan", "runs", "$5"])
    assert marks(ax)["s"] == pytest.approx([betting.cvar, runs.cvar(0.2), exact.cvar(0.2)])
    assert ax.get_legend().get_texts()[2].get_text().startswith(r"\$5:")
    ax = PLOT.distribution(runs, alpha=0.5)
    assert marks(ax)["|"] == [runs.distribution.var(0.5)]
    ax = PLOT.distribution(runs)
    assert marks(ax) == {"o": [runs.mean], "|": [], "s": []}


def test_plans_of_one_method_are_named_by_alpha(betting):
    ax = PLOT.distribution(betting, solved("betting_game", 0.5))
    assert [text.get_text()[:14] for text in ax.get_legend().get_texts()] == [
        "exact, \N{GREEK SMALL LETTER ALPHA} = 0.2",
        "exact, \N{GREEK SMALL LETTER ALPHA} = 0.5",
    ]
    assert ax.get_legend().get_title().get_text() == ""


def test_what_lies_far_out_is_gathered_in_the_last_bar():
    cut = Distribution(np.arange(1.0, 40), 0.5 ** np.arange(1, 40), mean=2.0, missing=0.5**39, missing_mean=41.0)
    ax = drawn(PLOT.distribution(cut, alpha=0.5))
    outline = steps(ax)[-1].get_data()
    assert outline.values.sum() == pytest.approx(1)
    assert "or more" in ax.get_xlabel()
    assert outline.edges[-1] < 20


@pytest.mark.parametrize(
    ("values", "most", "edges"),
    [
        ([2, 4, 8], 60, [1, 3, 5, 7, 9]),  # bars a step wide, with values in their middle
        ([0, 1, 2, 3, 4, 5], 3, [-0.5, 1.5, 3.5, 5.5]),  # or a whole number of steps
        ([20, 30, 45], 60, np.arange(17.5, 50, 5)),  # the step is less than any distance
        ([7], 60, [6.5, 7.5]),
        ([0, 1, np.e, 10], 2, [0, 5, 10]),  # no common step
    ],
)
def test_bars_are_whole_steps_wide(values, most, edges):
    share = np.full(len(values), 1 / len(values))
    found = common_bins([Distribution(np.array(values, float), share, mean=1.0)], most)
    assert found == pytest.approx(edges, abs=1e-6)


def test_edges_may_be_given(betting):
    ax = PLOT.distribution(betting, bins=[0, 50, 90])
    assert steps(ax)[-1].get_data().values.sum() == pytest.approx(1)
    assert steps(ax)[-1].get_data().edges.tolist() == [0, 50, 90]


def test_a_cumulative_distribution_is_its_sums(betting):
    exact = prudent.evaluate(betting.model, betting.policy)
    ax = drawn(PLOT.cdf(betting, solved("betting_game", 0.2, method="expected")))
    line = ax.lines[0]
    for x, y in zip(*line.get_data(), strict=True):
        if x in exact.values:
            assert y == pytest.approx(1 - exact.exceeds(x))
    assert marks(ax)["s"][0] == pytest.approx(91.337584, abs=1e-6)
    assert [text.get_text() for text in ax.texts] == ["1 − α = 0.8"]  # noqa: RUF001


def test_more_than_there_are_colours(betting):
    """Bars, marks and legend agree for any number of results."""
    parts = [Distribution(np.array([i, i + 1.0]), np.array([0.5, 0.5]), mean=i + 0.5) for i in range(8)]
    ax = drawn(PLOT.distribution(*parts, alpha=0.3))
    bars = [to_rgba(outline.get_edgecolor()) for outline in steps(ax)[2::3]]
    assert len(set(bars)) == 8
    assert [to_rgba(line.get_color()) for line in ax.lines if line.get_marker() == "s"] == bars
    assert [to_rgba(patch.get_edgecolor()) for patch in ax.get_legend().get_patches()] == bars
    far = Distribution(np.array([1.0, 2.0, 1e6]), np.array([0.5, 0.49999, 1e-5]), mean=11.5)
    x = PLOT.cdf(far).lines[0].get_xdata()
    assert (np.diff(x) >= 0).all()


# Curve and frontier


def test_the_curve_is_the_curve():
    curve = prudent.curve(prudent.domains.betting_game())
    ax = drawn(PLOT.curve(curve, alpha=0.2))
    assert ax.get_xscale() == "log"
    for name, what in (("CVaR", "cvar"), ("VaR", "var"), ("mean", "expected")):
        (line,) = [line for line in ax.lines if line.get_label() == name]
        x, y = line.get_data()
        assert set(np.round([p.alpha for p in curve.points], 12)) <= set(np.round(x, 12))
        for alpha, value in list(zip(x, y, strict=True))[::7]:
            here = [getattr(p, what) for p in (*curve.points, curve.at(alpha)) if p.alpha == alpha]
            assert any(value == pytest.approx(each, rel=1e-9) for each in here)
    assert [marked.get_ydata()[0] for marked in ax.lines if marked.get_marker() == "o"] == pytest.approx(
        [91.337584, 86, 75.486476], abs=1e-6
    )
    assert len({line.get_linestyle() for line in ax.lines if line.get_label() in ("CVaR", "VaR", "mean")}) == 3


def test_a_curve_of_one_alpha_can_be_drawn():
    drawn(PLOT.curve(prudent.curve(prudent.domains.figure_2(), alpha_min=1)))


def test_a_curve_of_rounded_costs_shows_its_bounds():
    model = prudent.build("s", {"s": {"a": [(0.5, "g", 1.0), (0.5, "g", np.pi)]}, "g": {}})
    ax = drawn(PLOT.curve(prudent.curve(model, step=0.5)))
    assert [c.get_label() for c in ax.collections] == ["bounds on the optimal CVaR"]


def test_the_frontier_and_where_no_plan_can_be(betting):
    frontier = prudent.frontier(betting.model, 0.2)
    near = prudent.solve(betting.model, 0.2, slack=0.01)
    ax = drawn(PLOT.frontier(frontier, chosen=near))
    line = ax.lines[0]
    assert line.get_xdata() == pytest.approx([p.expected for p in frontier.points])
    assert line.get_ydata() == pytest.approx([p.cvar for p in frontier.points])
    (star,) = [line for line in ax.lines if line.get_marker() == "*"]
    assert (star.get_xdata()[0], star.get_ydata()[0]) == (near.expected, near.cvar)
    (forbidden,) = ax.patches
    inside = forbidden.get_path().contains_points
    rng = np.random.default_rng(0)
    for x, y in rng.uniform(*np.array([ax.get_xlim(), ax.get_ylim()]).T, size=(300, 2)):
        bound = frontier.least_expected(y)
        if not np.isfinite(bound) or abs(x - bound) > 1e-3 * abs(bound):  # off the line itself
            assert inside([(x, y)])[0] == (x < bound)
    point = frontier.points[3]
    star = PLOT.frontier(frontier, chosen=point).lines[-1]
    assert star.get_xdata()[0] == point.expected


# Maps


def test_the_sea_has_an_arrow_for_every_move_that_runs_make(treasure):
    ax = drawn(PLOT.policy(treasure))
    (arrows,) = [each for each in ax.collections if isinstance(each, Quiver)]
    moves = {(*row["state"][:2], row["action"]) for row in visited(treasure) if row["action"] != "stop"}
    assert arrows.N == len(moves)
    often = {}
    for row in visited(treasure):
        if row["action"] != "stop":
            across, down = prudent.domains.treasure.DIRECTIONS[row["action"]]
            key = (*row["state"][:2], across, down)
            often[key] = often.get(key, 0.0) + row["times"]
    spots = zip(arrows.X, arrows.Y, np.sign(arrows.U.round(9)), np.sign(arrows.V.round(9)), strict=True)
    by_spot = [often[tuple(map(int, spot))] for spot in spots]
    light = [canvas.light(colour) for colour in arrows.get_facecolor()]
    darkest_last = np.array(light)[np.argsort(by_spot)]
    assert (np.diff(darkest_last) <= 1e-9).all()
    assert darkest_last[0] - darkest_last[-1] > 0.4
    labels = [text.get_text() for text in ax.texts]
    assert labels == [str(value) for value in prudent.domains.treasure.TREASURE.values()]


def test_the_sea_at_a_budget_shows_the_policy(treasure):
    moves = 6
    ax = drawn(PLOT.policy(treasure, budget=treasure.policy.budget - 5 * moves))
    (arrows,) = [each for each in ax.collections if isinstance(each, Quiver)]
    assert "after 6 moves" in ax.get_title(loc="left")
    ink, met = to_rgba(canvas.INK), 0
    cells = [
        s for s in treasure.model.state_names if s[2:] == (moves,) and s[:2] not in prudent.domains.treasure.TREASURE
    ]
    assert arrows.N == len(cells)
    for x, y, u, v, colour in zip(arrows.X, arrows.Y, arrows.U, arrows.V, arrows.get_facecolor(), strict=True):
        state = (int(x), int(y), moves)
        across, down = prudent.domains.treasure.DIRECTIONS[treasure.policy(state, 5.0 * moves)]
        assert (np.sign(round(u, 9)), np.sign(round(v, 9))) == (across, down)
        assert (tuple(colour) == ink) == (treasure.visits().of(state) > 0)
        met += tuple(colour) == ink
    assert 0 < met < arrows.N


def visited(plan):
    rows = []
    for a in np.flatnonzero(plan.visits().played).tolist():
        state = plan.model.state(plan.model.state_of_action(a))
        rows.append({"state": state, "action": plan.model.action(a), "times": plan.visits().played[a]})
    return rows


def cells_of(ax):
    """What a heat map shows, by (x, y)."""
    mesh = next(each for each in ax.collections if isinstance(each, QuadMesh))
    corners = np.asarray(mesh.get_coordinates())
    middle = (corners[:-1, :-1] + corners[1:, 1:]) / 2
    values = np.ma.asarray(mesh.get_array()).reshape(middle.shape[:2])
    return {
        (float(x), float(y)): float(v) for (x, y), v in zip(middle.reshape(-1, 2), values.ravel(), strict=True) if v
    }, (values)


def test_a_heat_map_of_bets(betting):
    ax = drawn(PLOT.policy(betting))
    shown, values = cells_of(ax)
    met = {row["state"] for row in visited(betting) if row["state"][0] < 10}
    assert values.count() == len(met)
    for (stage, money), bet in shown.items():
        assert betting.policy((int(stage), int(money))) == bet
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("stage", "money")


def test_a_heat_map_at_a_budget_hatches_what_runs_do_not_meet(betting):
    ax = drawn(PLOT.policy(betting, budget=betting.policy.budget))
    shown, values = cells_of(ax)
    for (stage, money), bet in shown.items():
        assert betting.policy((int(stage), int(money))) == bet
    hatched = [each for each in ax.collections if isinstance(each, PolyCollection) and each.get_hatch()]
    met = {row["state"] for row in visited(betting) if row["state"][0] < 10}
    assert values.count() - np.ma.asarray(hatched[0].get_array()).count() == len(met)


def test_the_mean_purchase_is_that_of_simulated_runs(inventory):
    ax = drawn(PLOT.policy(inventory))
    shown, _ = cells_of(ax)
    runs = prudent.simulate(inventory.model, inventory.policy, episodes=4000, seed=2, paths=4000)
    bought = {}
    for path in runs.paths:
        for (stage, stock, _), action, _ in path:
            bought.setdefault((stage, stock), []).append(action)
    checked = 0
    for cell, sample in bought.items():
        if len(sample) > 300:
            error = max(np.std(sample), 0.01) / np.sqrt(len(sample))
            assert abs(np.mean(sample) - shown[cell]) < 5 * error
            checked += 1
    assert checked > 20


def test_with_a_budget_other_coordinates_are_fixed(inventory):
    ax = drawn(PLOT.policy(inventory, budget=100.5))  # between two whole costs: as with the next lower budget
    assert "previous demand 10" in ax.get_title(loc="left")
    shown, _ = cells_of(ax)
    assert shown[8, 0] == inventory.policy((8, 0, 10), inventory.policy.budget - 100)
    with pytest.raises(prudent.PrudentError, match="share a cell; with a budget, fix the others"):
        PLOT.heat_map(inventory, 100)


def test_routes_are_as_thick_as_they_are_taken(navigation):
    ax = drawn(PLOT.policy(navigation))
    arrows = [patch for patch in ax.patches if isinstance(patch, FancyArrowPatch)]
    often = sorted(row["times"] for row in visited(navigation) if row["times"] >= SHOWN)
    assert len(arrows) == len(often)
    widths = sorted(arrow.get_linewidth() for arrow in arrows)
    assert np.corrcoef(widths, often)[0, 1] > 0.999
    names = {text.get_text() for text in ax.texts}
    assert {"A00", "A17"} <= names


def test_routes_at_a_budget(navigation):
    ax = drawn(PLOT.routes(navigation, budget=60))
    assert len([patch for patch in ax.patches if isinstance(patch, FancyArrowPatch)]) > 50
    assert "60 of the budget left" in ax.get_title(loc="left")


def test_a_layout_of_its_own_keeps_distances(navigation):
    model = navigation.model
    place = place_states(model)
    assert (place == place_states(model)).all()
    start, goal = place[model.index("A00")], place[model.index("A17")]
    assert goal[0] > start[0]
    assert goal[1] == pytest.approx(start[1], abs=1e-6 * np.ptp(place))
    known = prudent.domains.navigation.synthetic_roads()[1]  # kilometres: nobody told the layout
    truth = np.array([known[name] for name in model.state_names])
    one, other = (np.linalg.norm(each[:, None] - each[None], axis=2).ravel() for each in (place, truth))
    assert np.corrcoef(one, other)[0, 1] > 0.95


def test_junctions_of_another_seed_are_laid_out_anew():
    known = prudent.domains.navigation.place_of_junctions
    assert known(prudent.domains.autonomous_navigation(seed=0, start="C03")) is not None
    assert known(prudent.domains.autonomous_navigation(seed=1)) is None
    assert known(prudent.domains.figure_2()) is None


def test_any_model_can_be_drawn_as_a_network(commute):
    ax = drawn(PLOT.routes(commute))
    assert {text.get_text() for text in ax.texts} == {"home", "station", "work"}
    assert len(ax.patches) == 2


@pytest.mark.parametrize("state", ["home", "station"])
def test_a_strip_says_what_the_policy_says(commute, state):
    ax = drawn(PLOT.budget_strip(commute, state))
    bars = [(c.get_paths()[0].get_extents(), tuple(c.get_facecolor()[0])) for c in ax.collections]
    colour = {}
    for band in commute.bands(state):
        for spent in (band.at_least, min(band.at_most, commute.policy.budget)):
            left = commute.policy.budget - spent
            (found,) = {shade for extent, shade in bars if extent.x0 <= left <= extent.x1}
            assert colour.setdefault(commute.policy(state, spent), found) == found
    assert len(set(colour.values())) == len(colour)
    assert {text.get_text() for text in ax.texts} == set(colour)
    (lowest,) = [line for line in ax.lines if line.get_linestyle() == ":"]
    assert lowest.get_xdata()[0] == 0


def test_other_models_are_strips_of_states_in_which_the_budget_matters(commute):
    ax = drawn(PLOT.policy(commute))
    assert [label.get_text() for label in ax.get_yticklabels()] == ["station"]
    longer = prudent.amend(prudent.domains.deep_sea_treasure(), horizon=6, horizon_cost=600)
    assert "budget left" in PLOT.policy(prudent.solve(longer, 0.1)).get_xlabel()  # its name, but not its states
    expected = solved("figure_2", 0.1, method="expected")
    ax = drawn(PLOT.policy(expected))
    assert [label.get_text() for label in ax.get_yticklabels()] == ["s1"]
    assert "looks at the state alone" in ax.get_xlabel()


def test_many_actions_have_a_legend(betting):
    ax = drawn(PLOT.budget_strip(betting))
    assert len(ax.get_yticklabels()) == 20
    assert [text.get_text() for text in ax.get_legend().get_texts()] == list("012345")


# Axes, files, the world around


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
        canvas.write_picture(ax, tmp_path / f"picture{suffix}")
        assert (tmp_path / f"picture{suffix}").read_bytes().startswith(begin)
    (tmp_path / "old.png").write_bytes(b"old")
    monkeypatch.setattr(ax.figure, "savefig", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        canvas.write_picture(ax, tmp_path / "old.png")
    assert (tmp_path / "old.png").read_bytes() == b"old"
    with pytest.raises(prudent.PrudentError, match=r"pictures are written as \.png, \.svg, \.pdf"):
        canvas.write_picture(ax, tmp_path / "picture.jpg")
    with pytest.raises(prudent.PrudentError, match="there is no folder"):
        canvas.write_picture(ax, tmp_path / "nowhere" / "picture.png")


def test_names_are_cut_and_never_mathematics():
    assert canvas.name_of("$x^2$") == r"\$x^2\$"
    assert len(canvas.name_of("long" * 20)) == 24
    assert canvas.name_of("bell\a") == repr("bell\a")
    table = {"$s_1$": {"$a": [(0.5, "g", 1), (0.5, "g", 4)], "b$": [(1, "g", 3)]}, "g": {}}
    plan = prudent.solve(prudent.build("$s_1$", table), 0.4)
    for draw in (PLOT.budget_strip, PLOT.routes):
        drawn(draw(plan))


def test_colours_differ_in_lightness():
    light = [canvas.light(colour) for colour in canvas.hues(9)]
    assert (np.diff(light) > 0).all()
    assert canvas.light("black") == 0
    assert canvas.light("white") == pytest.approx(1)


ERRORS = {
    "nothing": (lambda p: PLOT.distribution(), "nothing to draw"),
    "no result": (lambda p: PLOT.distribution(p, "plan"), "result 2 is a str"),
    "too few labels": (lambda p: PLOT.cdf(p, p, labels=["a"]), "one for each of the 2"),
    "labels are a text": (lambda p: PLOT.cdf(p, labels="a"), "labels is 'a'"),
    "an alpha": (lambda p: PLOT.cdf(p, alpha=2), "alpha is 2"),
    "falling bins": (lambda p: PLOT.distribution(p, bins=[2, 1]), "their edges, rising"),
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
        draw(solved("figure_2", 0.1))


def test_what_cannot_be_drawn_says_so(betting, treasure):
    frontier = prudent.frontier(betting.model, 0.2)
    with pytest.raises(prudent.PrudentError, match=r"for alpha 0\.02; the frontier is for 0\.2"):
        PLOT.frontier(frontier, chosen=treasure)
    with pytest.raises(prudent.PrudentError, match="made for"):
        PLOT.frontier(frontier, chosen=solved("figure_2", 0.2))
    with pytest.raises(prudent.PrudentError, match="chosen is a float"):
        PLOT.frontier(frontier, chosen=0.5)
    with pytest.raises(prudent.PrudentError, match="a move costs 5, so 465 is left at the start"):
        PLOT.policy(treasure, budget=100)
    with pytest.raises(prudent.PrudentError, match="of deep-sea-treasure is not a number: a heat map"):
        PLOT.heat_map(treasure)
    with pytest.raises(prudent.PrudentError, match="600 are laid out at most"):
        PLOT.routes(betting)
    memory = solved("deep_sea_treasure", 0.02, method="cvar-ev")
    drawn(PLOT.policy(memory))  # where its runs go needs no memory
    with pytest.raises(prudent.PrudentError, match="remembers more than the cost so far"):
        PLOT.policy(memory, budget=memory.policy.budget)
