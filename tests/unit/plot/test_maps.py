"""Maps of what plans do, and strips of it over the budget, read back from what was drawn."""

import numpy as np
import pytest

import prudent

pytest.importorskip("matplotlib", reason="pictures need matplotlib (extra plot)")

from matplotlib.colors import to_rgba
from matplotlib.quiver import Quiver

from drawing import drawn
from plans import plan_for
from prudent.plot import canvas
from prudent.plot.canvas import colours_of
from prudent.plot.network import SHOWN
from prudent.results.map_data import place_states

PLOT = prudent.plot
COMMUTE = {
    "home": {"bike": [(1.0, "work", 50)], "train": [(0.9, "station", 10), (0.1, "station", 25)]},
    "station": {"bus": [(0.9, "work", 15), (0.1, "work", 35)], "taxi": [(1.0, "work", 24)]},
}


@pytest.fixture
def betting():
    return plan_for("betting_game", 0.2)


@pytest.fixture
def treasure():
    return plan_for("deep_sea_treasure", 0.02)


@pytest.fixture
def inventory():
    return plan_for("inventory_control", 0.02)


@pytest.fixture
def navigation():
    return plan_for("autonomous_navigation", 0.02, relative_gap=0.01)


@pytest.fixture(scope="module")
def commute():
    return prudent.solve(prudent.build("home", lambda place: COMMUTE.get(place, {}), name="commute"), 0.01)


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
    signs = np.sign([arrows.U.round(9), arrows.V.round(9)]).astype(int)
    by_spot = [often[spot] for spot in zip(arrows.X, arrows.Y, *signs.tolist(), strict=True)]
    opaque_last = arrows.get_facecolor()[np.argsort(by_spot), 3]
    assert (np.diff(opaque_last) >= -1e-9).all()
    assert opaque_last[-1] - opaque_last[0] > 0.4
    action, colour = {to: name for name, to in prudent.domains.treasure.DIRECTIONS.items()}, colours_of(treasure.model)
    expected = [to_rgba(colour[action[spot]])[:3] for spot in zip(*signs.tolist(), strict=True)]
    assert [tuple(shade[:3]) for shade in arrows.get_facecolor().tolist()] == expected
    labels = [text.get_text() for text in ax.texts]
    assert labels == [str(value) for value in prudent.domains.treasure.TREASURE.values()]


def test_the_sea_at_a_budget_shows_the_policy(treasure):
    moves = 6
    ax = drawn(PLOT.policy(treasure, budget=treasure.policy.budget - 5 * moves))
    (arrows,) = [each for each in ax.collections if isinstance(each, Quiver)]
    assert "after 6 moves" in ax.get_title(loc="left")
    colours, met = colours_of(treasure.model), 0
    cells = [
        s for s in treasure.model.state_names if s[2:] == (moves,) and s[:2] not in prudent.domains.treasure.TREASURE
    ]
    assert arrows.N == len(cells)
    for x, y, u, v, colour in zip(arrows.X, arrows.Y, arrows.U, arrows.V, arrows.get_facecolor(), strict=True):
        state = (int(x), int(y), moves)
        action = treasure.policy(state, 5.0 * moves)
        across, down = prudent.domains.treasure.DIRECTIONS[action]
        assert (np.sign(round(u, 9)), np.sign(round(v, 9))) == (across, down)
        is_met = treasure.visits().of(state) > 0
        assert tuple(colour) == to_rgba(colours[action] if is_met else canvas.FAINT)
        met += is_met
    assert 0 < met < arrows.N


def visited(plan):
    rows = []
    for a in np.flatnonzero(plan.visits().played).tolist():
        state = plan.model.state(plan.model.state_of_action(a))
        rows.append({"state": state, "action": plan.model.action(a), "times": plan.visits().played[a]})
    return rows


def cells_of(ax):
    """What a heat map shows, by (x, y); and how opaque each cell is."""
    (tiles,) = ax.collections
    extents = [path.get_extents() for path in tiles.get_paths()]
    middle = [((each.x0 + each.x1) / 2, (each.y0 + each.y1) / 2) for each in extents]
    return dict(zip(middle, tiles.get_array().tolist(), strict=True)), tiles.get_alpha()


def ways_of(ax):
    """The lines of a network that runs take, each with a head."""
    lines, heads = ax.collections
    assert len(heads.get_paths()) == len(lines.get_paths())
    return lines


def test_a_heat_map_of_bets(betting):
    ax = drawn(PLOT.policy(betting))
    shown, opaque = cells_of(ax)
    met = {row["state"] for row in visited(betting) if row["state"][0] < 10}
    assert len(shown) == len(met) and set(opaque) == {1}
    for (stage, money), bet in shown.items():
        assert betting.policy((int(stage), int(money))) == bet
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("bets made", "money")
    assert [each.get_ylabel() for each in ax.figure.axes if each is not ax] == ["bet (mean over visits)"]


def test_a_heat_map_at_a_budget_fades_what_runs_do_not_meet(betting):
    ax = drawn(PLOT.policy(betting, budget=betting.policy.budget))
    shown, opaque = cells_of(ax)
    for (stage, money), bet in shown.items():
        assert betting.policy((int(stage), int(money))) == bet
    met = {row["state"] for row in visited(betting) if row["state"][0] < 10}
    assert {cell for cell, alpha in zip(shown, opaque, strict=True) if alpha == 1} == met
    assert set(opaque) == {canvas.FADED, 1}


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
    often = sorted(row["times"] for row in visited(navigation) if row["times"] >= SHOWN)
    widths = sorted(ways_of(ax).get_linewidths())
    assert len(widths) == len(often)
    assert np.corrcoef(widths, often)[0, 1] > 0.999
    assert len(ax.get_legend().get_texts()) == 3
    names = {text.get_text() for text in ax.texts}
    assert {"A00", "A17"} <= names


def test_routes_at_a_budget(navigation):
    ax = drawn(PLOT.routes(navigation, budget=60))
    model, spent = navigation.model, navigation.policy.whole - 60
    playing = [s for s in model.state_names if s != "A17" and navigation.bands(s)[0].at_least <= spent]
    assert len(ways_of(ax).get_paths()) == len(playing) > 50  # an action leads to one junction
    assert "a remaining budget of 60" in ax.get_title(loc="left")


def test_ways_there_and_back_lie_side_by_side():
    table = {"a": {"go": [(0.5, "b", 1), (0.5, "g", 1)]}, "b": {"back": [(0.5, "a", 1), (0.5, "g", 2)]}}
    plan = prudent.solve(prudent.build("a", table), 0.5)
    lines = ways_of(drawn(PLOT.routes(plan, positions={"a": (0, 0), "b": (1, 0), "g": (0, 1)})))
    ends = [path.vertices for path in lines.get_paths()]
    there, back = ([end for end in ends if np.allclose(end[1] - end[0], way)] for way in ((1, 0), (-1, 0)))
    assert there[0][0, 1] < 0 < back[0][0, 1]  # each on the right, as it goes


def test_routes_at_a_budget_have_the_colours_of_the_actions(commute):
    ax = drawn(PLOT.routes(commute, budget=commute.policy.budget - 25))
    colour = colours_of(commute.model)
    shades = {tuple(shade[:3]) for shade in ways_of(ax).get_colors()}
    assert shades == {to_rgba(colour[action])[:3] for action in ("train", "taxi")}
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["train", "taxi"]


def test_the_ends_that_amend_adds_need_no_place():
    table = {"cliff": {"jump": [(0.9, "home", 1), (0.1, "ravine", 0)]}, "ravine": {"wait": [(1, "ravine", 0)]}}
    model = prudent.build("cliff", lambda state: table.get(state, {}), goals=["home"])
    plan = prudent.solve(prudent.amend(model, dead_end_cost=100), alpha=0.2)
    known = {"cliff": (0, 0), "ravine": (1, -1), "home": (2, 0)}
    ax = drawn(PLOT.routes(plan, positions=known))
    named = {text.get_text(): text.xy for text in ax.texts}
    assert named["stuck"][1] < -1
    with pytest.raises(prudent.PrudentError, match="no place for state 'ravine'; give"):
        PLOT.routes(plan, positions={"cliff": (0, 0), "home": (2, 0)})


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
    assert len(ways_of(ax).get_paths()) == 2


@pytest.mark.parametrize("state", ["home", "station"])
def test_a_strip_says_what_the_policy_says(commute, state):
    ax = drawn(PLOT.budget_strip(commute, state))
    bars = [(c.get_paths()[0].get_extents(), tuple(c.get_facecolor()[0, :3])) for c in ax.collections]
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


def test_a_strip_is_in_full_colour_where_runs_can_be(commute):
    ax = drawn(PLOT.budget_strip(commute, "station"))
    assert not any(each.get_hatch() for each in ax.collections)
    opaque = [(each.get_paths()[0].get_extents(), each.get_alpha()) for each in ax.collections]
    full = [extent for extent, alpha in opaque if alpha == 1]
    for row in commute.decisions().of("station"):
        assert sum(extent.x0 <= commute.policy.budget - row.at_least <= extent.x1 for extent in full) == 1
    assert len(full) == len(commute.decisions().of("station")) < len(opaque)


def test_an_action_has_one_colour_in_all_pictures(betting):
    """Whatever states are shown: strips of some of them, the heat map, the legend."""
    colour = colours_of(betting.model)
    assert len(set(colour.values())) == len(colour)
    assert len(set(colours_of(plan_for("deep_sea_treasure", 0.02).model).values())) == 9
    (mesh,) = drawn(PLOT.policy(betting)).collections
    for bet in range(6):
        assert mesh.cmap(mesh.norm(bet)) == pytest.approx(to_rgba(colour[bet]), abs=0.02)
    for states in ([], [(1, 3)], [(3, 20), (7, 8)]):
        ax = PLOT.budget_strip(betting, *states)
        shown = {band.action for state in states for band in betting.bands(state)}
        bars = {tuple(each.get_facecolor()[0, :3]) for each in ax.collections}
        assert not states or bars == {to_rgba(colour[action])[:3] for action in shown}


def test_colours_of_many_actions_and_of_one():
    def model(actions):
        return prudent.build("s", lambda s: {a: [(1, "g", 1)] for a in actions} if s == "s" else {})

    assert len(set(colours_of(model([f"go {i}" for i in range(40)])).values())) == 40
    assert set(colours_of(model([7]))) == {7}
    assert list(colours_of(model(["b", 2, "a", 1]))) == [1, 2, "b", "a"]


def test_other_models_are_strips_of_states_in_which_the_budget_matters(commute):
    ax = drawn(PLOT.policy(commute))
    assert [label.get_text() for label in ax.get_yticklabels()] == ["station"]
    assert ax.get_xlabel().endswith("where runs can be; states not shown: 1")
    longer = prudent.amend(prudent.domains.deep_sea_treasure(), horizon=6, horizon_cost=600)
    assert "remaining budget" in PLOT.policy(prudent.solve(longer, 0.1)).get_xlabel()  # its name, but not its states
    expected = plan_for("figure_2", 0.1, method="expected")
    ax = drawn(PLOT.policy(expected))
    assert [label.get_text() for label in ax.get_yticklabels()] == ["s1"]
    assert "depends on the state alone" in ax.get_xlabel()


def test_many_actions_have_a_legend(betting):
    ax = drawn(PLOT.budget_strip(betting))
    assert len(ax.get_yticklabels()) == 20
    more = len({row.state for row in betting.decisions().rows}) - 20
    assert ax.get_xlabel().endswith(f"where runs can be; states not shown: {more}")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == list("012345")


def test_long_names_leave_room_for_the_strips():
    def go(state):
        at = state[1]
        roads = {"freeway": ((0.7, 2), (0.3, 9)), "county road": ((0.9, 4), (0.1, 5))}
        return {
            (("junction", to), road): [(p, ("junction", to), time * (to - at)) for p, time in times]
            for to in range(at + 1, min(at + 3, 6) + 1)
            for road, times in roads.items()
        }

    plan = prudent.solve(prudent.build(("junction", 0), go), 0.2)
    ax = drawn(PLOT.budget_strip(plan, ("junction", 1), ("junction", 3), ("junction", 4)))
    ax.figure.draw_without_rendering()  # at the figure's own resolution
    figure, legend = ax.figure.bbox, ax.get_legend()
    assert ax.bbox.width > 0.6 * figure.width
    extent = legend.get_window_extent()
    assert figure.x0 <= extent.x0 < extent.x1 <= figure.x1
    assert ax.bbox.y1 <= extent.y0 + 1 < extent.y1 <= figure.y1
    assert "(('junction', 4), 'county road')" in {text.get_text() for text in legend.get_texts()}


def test_a_cut_name_keeps_its_end():
    assert canvas.name_of(("the long name of a state", 12), 16) == "('the lo…e', 12)"


def test_a_strip_says_that_a_run_may_come_back():
    table = {
        "s": {"a": [(0.5, "t", 9), (0.5, "t", 1)]},
        "t": {"sell": [(0.5, "g", -2), (0.5, "g", 0)], "keep": [(1, "g", 0)]},
    }
    label = drawn(PLOT.budget_strip(prudent.solve(prudent.build("s", table), 0.2), "t")).get_xlabel()
    assert label.splitlines()[0] == "remaining budget"
    forward = {state: {a: [(p, t, c + 2) for p, t, c in o] for a, o in rest.items()} for state, rest in table.items()}
    label = drawn(PLOT.budget_strip(prudent.solve(prudent.build("s", forward), 0.2), "t")).get_xlabel()
    assert label.splitlines()[0] == "remaining budget (below 0: the total exceeds the budget)"


@pytest.mark.parametrize(("step", "count"), [(1, 5), (1, 41), (5, 21), (5, 13), (2.5, 130)])
def test_ticks_are_values_that_occur(step, count):
    model = prudent.build(
        {(0, step * i): 1 / count for i in range(count)}, lambda s: {1: [(1, "g", 1)]} if s != "g" else {}
    )
    ax = drawn(PLOT.heat_map(prudent.solve(model, 0.5)))
    ticks = ax.get_yticks().tolist()
    assert set(ticks) <= {step * i for i in range(count)}
    assert min(count, 5) <= len(ticks) <= 13
    assert ticks[0] == 0


def test_routes_say_what_they_show(commute):
    assert drawn(PLOT.routes(commute)).get_title(loc="left").startswith("exact, the worst 1% of runs; line width")
    other = prudent.solve(commute.model, 0.01, objective=prudent.Exceedance(45))
    assert drawn(PLOT.routes(other)).get_title(loc="left").startswith("P(cost > 45), the worst 1% of runs; line width")
