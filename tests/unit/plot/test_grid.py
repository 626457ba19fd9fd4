"""Grids of what plans do in each cell, read back from what was drawn."""

import numpy as np
import pytest

import prudent

pytest.importorskip("matplotlib", reason="pictures need matplotlib (extra plot)")

from matplotlib.colors import to_rgba
from matplotlib.text import Annotation

from drawing import drawn
from plans import plan_for
from prudent.plot.canvas import FADED, colours_of
from prudent.results.map_data import is_map

PLOT = prudent.plot
WEEKS, WORN = 6, 3
STEPS = {"right": (1, 0), "left": (-1, 0), "up": (0, 1), "down": (0, -1)}


def machine(state):
    week, wear = state
    if week == WEEKS:
        return {}
    fails = 0.05 + 0.1 * wear
    return {
        "run": [(1 - fails, (week + 1, wear), 0), (fails, (week + 1, min(wear + 1, WORN)), 4 * wear)],
        "service": [(0.9, (week + 1, max(wear - 1, 0)), 1), (0.1, (week + 1, wear), 1)],
    }


def field(cell):
    """Return the moves on a field of 4 x 3 cells; one in five slips and stays."""
    if cell == (3, 1):
        return {}
    moves = {name: (cell[0] + right, cell[1] + up) for name, (right, up) in STEPS.items()}
    inside = {name: to for name, to in moves.items() if 0 <= to[0] < 4 and 0 <= to[1] < 3}
    return {name: [(0.8, to, 2), (0.2, cell, 1)] for name, to in inside.items()}


@pytest.fixture(scope="module")
def care():
    return prudent.solve(prudent.build((0, 2), machine, name="machine"), 0.05)


@pytest.fixture(scope="module")
def walk():
    return prudent.solve(prudent.build((0, 0), field, name="field"), 0.1)


def shapes(ax):
    """Return what is filled: extent and colour."""
    fills = ax.collections[0]
    return [(path.get_extents(), tuple(c)) for path, c in zip(fills.get_paths(), fills.get_facecolor(), strict=True)]


def test_a_cell_is_divided_as_runs_play(care):
    ax = drawn(PLOT.grid(care, names=("week", "wear")))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("week", "wear")
    colour, visits = colours_of(care.model), care.visits()
    found = {}
    for extent, shade in shapes(ax):
        cell = round((extent.x0 + extent.x1) / 2), round((extent.y0 + extent.y1) / 2)
        action = next(a for a in colour if to_rgba(colour[a]) == shade)
        found[cell, action] = extent.width
    played = [(s, a) for s in care.model.state_names if s[0] < WEEKS for a in ("run", "service") if visits.of(s, a) > 0]
    assert set(found) == set(played)
    for (state, action), width in found.items():
        assert width == pytest.approx(visits.of(state, action) / visits.of(state))
    assert any(0.01 < width < 0.99 for width in found.values())
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["run", "service"]
    assert {"run", "service"} <= {text.get_text() for text in ax.texts}


def test_with_a_budget_cells_without_runs_are_faded(care):
    left = care.policy.budget - 2
    ax = drawn(PLOT.grid(care, left, costs=True))
    colour = colours_of(care.model)
    met = {r.state for r in care.decisions().rows if r.at_least <= 2 <= r.at_most}
    shown = {(round(e.x0 + 0.5), round(e.y0 + 0.5)): shade for e, shade in shapes(ax)}
    assert met <= set(shown) and len(met) < len(shown)
    for state, shade in shown.items():
        assert shade == pytest.approx(to_rgba(colour[care.policy(state, 2.0)], 1 if state in met else FADED))
    assert ax.get_legend().get_title().get_text().endswith("faded: no run is there")
    wrote = {(round(t.get_position()[0]), round(t.get_position()[1])): t.get_text() for t in ax.texts}
    assert all(wrote[s] == ("service\n1" if care.policy(s, 2.0) == "service" else wrote[s]) for s in met)
    running = next(s for s in met if care.policy(s, 2.0) == "run")
    cost = 4 * running[1] * (0.05 + 0.1 * running[1])
    assert float(wrote[running].partition("\n")[2]) == pytest.approx(cost, abs=0.006)


def test_a_map_has_arrows_where_moves_lead(walk, care):
    assert is_map(walk.model, 0, 1) and not is_map(care.model, 0, 1)  # weeks only pass
    ax = drawn(PLOT.policy(walk))
    arrows = [text for text in ax.texts if isinstance(text, Annotation)]
    cells = {s for s in walk.model.state_names if s != (3, 1) and walk.visits().of(s) > 0}
    assert len(arrows) == len(cells)
    for arrow in arrows:
        (x, y), (x0, y0) = arrow.xy, arrow.get_position()
        state = round((x + x0) / 2), round((y + y0) / 2)
        played = max(STEPS, key=lambda a: walk.visits().of(state, a) if a in field(state) else 0)
        assert (np.sign(round(x - x0, 9)), np.sign(round(y - y0, 9))) == STEPS[played]
    (star,) = [line for line in ax.lines if line.get_marker() == "*"]
    assert (star.get_xdata()[0], star.get_ydata()[0]) == (3, 1)
    assert not [text for text in drawn(PLOT.grid(walk, arrows=False)).texts if isinstance(text, Annotation)]
    costs = drawn(PLOT.grid(walk, costs=True)).texts
    assert {text.get_text() for text in costs if not isinstance(text, Annotation)} == {"1.80"}


def test_numbers_names_and_other_coordinates():
    ax = drawn(PLOT.grid(plan_for("inventory_control", 0.02), 300, where={2: 10}, names=("stage", "stock", "demand")))
    assert "demand 10" in ax.get_title(loc="left")  # too many actions for a legend
    with pytest.raises(prudent.PrudentError, match="share a cell; with a budget, fix the others"):
        PLOT.grid(plan_for("inventory_control", 0.02), 300)
    words = prudent.build(("a", "x"), lambda s: {"go": [(1, ("b", "y"), 1)]} if s[0] == "a" else {})
    ax = drawn(PLOT.policy(prudent.solve(words, 0.5)))
    assert [label.get_text() for label in ax.get_xticklabels()] == ["a"]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"budget": "all"}, "budget is 'all'"),
        ({"x": 1, "y": 1}, "two coordinates"),
        ({"names": "ab"}, "names is 'ab'"),
        ({"where": {0: 1}}, "where is"),
        ({"budget": 1e9}, "can be reached with budget"),
    ],
)
def test_what_a_grid_refuses(care, asked, message):
    with pytest.raises(prudent.PrudentError, match=message):
        PLOT.grid(care, **asked)
    with pytest.raises(prudent.PrudentError, match="no state that is a tuple"):
        PLOT.grid(plan_for("figure_2", 0.1))
