"""What is played where, against the policy itself; and a domain that only the registry knows of."""

import numpy as np
import pytest

import prudent
from plans import plan_for
from prudent.domains.registry import DOMAINS, Domain
from prudent.results.map_data import cells_of, choices, domain_of, other_parts, played_at


@pytest.mark.parametrize("name", ["betting_game", "inventory_control", "figure_2", "autonomous_navigation"])
def test_what_is_played_is_what_the_policy_plays(name):
    plan = plan_for(name, 0.2, relative_gap=0.01) if name == "autonomous_navigation" else plan_for(name, 0.2)
    model, whole = plan.model, plan.policy.whole
    seen = 0
    for index in np.flatnonzero(~model.is_goal)[::7].tolist():
        bands = plan.bands(model.state(index))
        for share in (1.0, 0.8, 0.5, 0.2):
            spent = float(np.round((1 - share) * whole))
            action = played_at(plan, index, whole - spent)
            if spent >= bands[0].at_least + plan.step:
                assert action == next(band.action for band in bands if spent <= band.at_most)
                seen += 1
            elif spent < bands[0].at_least:
                assert action is None
    assert seen > 2


def test_a_budget_between_two_levels_counts_as_the_lower_one():
    plan = plan_for("inventory_control", 0.2)
    index = plan.model.index((8, 0, 10))
    for left in (100, 150, 200):
        assert (
            played_at(plan, index, left + 0.5)
            == played_at(plan, index, left)
            == plan.policy((8, 0, 10), plan.policy.budget - left)
        )


def test_a_plan_that_remembers_more_is_refused():
    plan = plan_for("deep_sea_treasure", 0.02, method="cvar-ev")
    with pytest.raises(prudent.PrudentError, match="remembers more than the cost so far"):
        played_at(plan, plan.model.index((0, 1, 0)), plan.policy.whole)
    drawn = plan_for("figure_2", 0.1, max_cvar=12, randomise=True)
    with pytest.raises(prudent.PrudentError, match="draws one of two policies is no map"):
        played_at(drawn, drawn.model.index("s1"), drawn.policy.whole)


def test_a_domain_is_drawn_as_it_says_while_its_states_are_what_it_says():
    for name in ("betting-game", "inventory-control", "deep-sea-treasure", "autonomous-navigation", "figure-2"):
        assert domain_of(DOMAINS[name].make()) is DOMAINS[name]
    longer = prudent.amend(prudent.domains.deep_sea_treasure(), horizon=6, horizon_cost=600)
    assert longer.name == "deep-sea-treasure" and domain_of(longer).drawn == "table"
    words = prudent.build((0, 0), {(0, 0): {"a": [(1, "g", 1)], "b": [(1, "g", 2)]}, "g": {}}, name="betting-game")
    assert domain_of(words).drawn == "table"
    assert domain_of(prudent.build("s", {"s": {"a": [(1, "g", 1)]}, "g": {}}, name="mine")).drawn == "table"


def lift():
    """A lift that goes up or down by a choice of floors, numbered in tens, with a load."""

    def actions(state):
        if state == "out":
            return {}
        time, height, _ = state
        if time == 4:
            return {"open": [(1.0, "out", abs(height - 30))]}
        return {
            by: [(0.8, (time + 2, height + 10 * by, state[2]), 1), (0.2, (time + 2, height, state[2]), 1)]
            for by in (-1, 0, 1, 2)
        }

    return prudent.build({(0, 10, 0): 0.5, (0, 10, 1): 0.5}, actions, goals=["out"], name="lift")


@pytest.fixture
def lifted(monkeypatch):
    monkeypatch.setitem(DOMAINS, "lift", Domain("Lift", lift, ("time", "height", "load"), "floors up", "heat"))
    return prudent.solve(lift(), 0.03)


def test_a_new_domain_has_cells(lifted):
    assert domain_of(lifted.model) is DOMAINS["lift"]
    where = other_parts(lifted.model)
    assert where == {2: 0}
    cells = cells_of(lifted, lifted.policy.whole - 10, 0, 1, where, numbers=True)  # spent: 10, or by time 2, 11
    assert {cell: played.shares for cell, played in cells.items()} == {
        cell: {lifted.policy((*cell, 0), 10 + cell[0] / 2): 1.0} for cell in cells
    }
    assert not cells_of(lifted, lifted.policy.whole + 10, 0, 1, where, numbers=True)
    choosing = {(s[0], s[1]) for s in lifted.model.state_names if s != "out" and s[0] < 4 and s[2] == 0}
    assert cells and set(cells) <= choosing == {cell for _, cell in choices(lifted.model, 0, 1, where)}
    visits = lifted.visits()
    for (time, height), met in cells_of(lifted, None, 0, 1, {}, numbers=True).items():
        played = {by: sum(visits.of((time, height, load), by) for load in (0, 1)) for by in (-1, 0, 1, 2)}
        assert met.mean == pytest.approx(sum(by * often for by, often in played.items()) / sum(played.values()))


def test_a_new_domain_is_drawn_without_another_word(lifted):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib (extra plot)")
    ax = prudent.plot.policy(lifted, lifted.policy.whole - 10)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("time", "height")
    assert "load 0" in ax.get_title(loc="left")


def test_a_new_domain_is_mapped_by_the_page_without_another_word(lifted):
    pytest.importorskip("starlette", reason="the page needs starlette (extra web)")
    from prudent.apps.web.maps import policy_map
    from prudent.apps.web.worker import Session

    left = lifted.policy.whole - 10
    found = policy_map(Session(lifted.model, {}, 10**9), lifted, left, "1")
    assert [found[name] for name in ("kind", "x", "y", "z", "least", "most")] == [
        "heat", "time", "height", "floors up", -1, 2,
    ]  # fmt: skip
    assert found["layer"] == {"name": "load", "value": 1, "positions": [0, 1]}
    assert "columns" not in found  # they are counted: 0, 1, 2
    assert found["rows"] == [0, 10, 20, 30]
    assert [row[2] for row in found["cells"]] == [lifted.policy((2, height, 1), 11) for height in (0, 10, 20, 30)]
    assert [row[0] for row in found["cells"]] == [None, lifted.policy((0, 10, 1), 10), None, None]
    assert [row[1] for row in found["cells"]] == [None] * 4
