"""Pictures of distributions, curves and frontiers, read back from what was drawn."""

import numpy as np
import pytest

import prudent

pytest.importorskip("matplotlib", reason="pictures need matplotlib (extra plot)")

from matplotlib.colors import to_rgba

from drawing import drawn, marks, steps
from plans import plan_for
from prudent.plot import canvas
from prudent.plot.tails import common_bins
from prudent.policies.distribution import Distribution

PLOT = prudent.plot


@pytest.fixture
def betting():
    return plan_for("betting_game", 0.2)


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
    assert all(number in text for number in ("expected 75.49", "VaR 86", "CVaR 91.34"))
    assert ax.get_legend().get_title().get_text() == "shaded: the worst 20% of runs"
    centres = (outline.get_data().edges[1:] + outline.get_data().edges[:-1]) / 2
    shaded = tail.get_data().values - tail.get_data().baseline
    assert centres @ shaded / 0.2 == pytest.approx(91.34, abs=1)  # where the shade is, on average


def test_several_are_told_apart_in_black_and_white(betting):
    plans = [betting, plan_for("betting_game", 0.2, method="cvar-wc"), plan_for("betting_game", 0.2, method="expected")]
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
    ax = PLOT.distribution(betting, plan_for("betting_game", 0.5))
    names = [text.get_text().partition(":")[0] for text in ax.get_legend().get_texts()]
    assert names == ["exact, the worst 20% of runs", "exact, the worst 50% of runs"]
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
    ax = drawn(PLOT.cdf(betting, plan_for("betting_game", 0.2, method="expected")))
    line = ax.lines[0]
    for x, y in zip(*line.get_data(), strict=True):
        if x in exact.values:
            assert y == pytest.approx(1 - exact.exceeds(x))
    assert marks(ax)["s"][0] == pytest.approx(91.337584, abs=1e-6)
    assert [text.get_text() for text in ax.texts] == ["80%"]


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
    (line,) = [line for line in ax.lines if line.get_label() == "CVaR"]
    assert {point.alpha for point in curve.points} <= set(line.get_xdata())
    for alpha, value in list(zip(*line.get_data(), strict=True))[::7]:
        assert value == pytest.approx(curve.at(alpha).cvar, rel=1e-9)
    marked = [line.get_ydata()[0] for line in ax.lines if len(line.get_xdata()) == 1]
    assert marked == pytest.approx([91.337584, 86, 75.486476], abs=1e-6)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["1%", "2%", "5%", "10%", "20%", "50%", "100%"]


@pytest.mark.parametrize(("name", "what"), [("VaR", "var"), ("expected cost", "expected")])
def test_no_line_of_a_curve_leads_across_a_jump(name, what):
    curve = prudent.curve(prudent.domains.betting_game())
    (line,) = [line for line in drawn(PLOT.curve(curve)).lines if line.get_label() == name]
    x, y = (np.asarray(each).reshape(-1, 3) for each in line.get_data())
    assert np.isnan(x[:, 2]).all() and (y[:, 0] == y[:, 1]).all()
    assert (np.abs(np.diff(y[:, 0])) > 0).all() and len(x) > 10
    assert x[0, 0] == curve.alpha_min and x[-1, 1] == 1 and (x[1:, 0] == x[:-1, 1]).all()
    for begin, end, value in zip(x[:, 0], x[:, 1], y[:, 0], strict=True):
        if end > begin:
            assert getattr(curve.at((begin + end) / 2), what) == pytest.approx(value, rel=1e-9)


def test_a_dot_says_what_counts_at_a_jump():
    curve = prudent.curve(prudent.domains.figure_2())
    (line,) = [line for line in drawn(PLOT.curve(curve)).lines if line.get_label() == "expected cost"]
    x, y = line.get_data()
    dots = {(x[k], y[k]) for k in line.get_markevery()}
    assert len(dots) == 2
    for alpha, value in dots:
        assert value == pytest.approx(curve.at(alpha).expected)
    assert (x[0], y[0]) not in dots


def test_a_curve_of_one_alpha_can_be_drawn():
    curve = prudent.curve(prudent.domains.figure_2(), alpha_min=1)
    ax = drawn(PLOT.curve(curve))
    assert ax.get_xscale() == "linear"
    mean = curve.at(1).expected
    assert [line.get_ydata()[0] for line in ax.lines[1:]] == [curve.at(1).var, mean]
    assert ax.lines[0].get_ydata()[-1] == mean  # CVaR


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


def test_a_long_legend_stays_in_the_picture():
    plan = plan_for("autonomous_navigation", 0.02, relative_gap=0.01)  # its numbers have words of their own
    ax = PLOT.distribution(plan, labels=["the lowest expected cost"])
    ax.figure.draw_without_rendering()
    assert ax.get_legend().get_window_extent().x1 <= ax.figure.bbox.x1
    assert ax.bbox.width > 0.7 * ax.figure.bbox.width  # the bars keep their room
    (text,) = [text.get_text() for text in ax.get_legend().get_texts()]
    assert text.startswith("the lowest expected cost:\n")
