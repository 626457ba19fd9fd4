from dataclasses import replace

import pytest

import prudent

CLIFF = {
    "start": {"jump": [(0.8, "home", 1), (0.2, "ravine", 0)], "walk": [(1.0, "start", 1)]},
    "ravine": {"wait": [(1, "ravine", 0)], "climb": [(1, "ledge", 2)]},
    "ledge": {"fall": [(1, "ravine", 0)]},
}


@pytest.fixture
def cliff():
    return prudent.build("start", lambda s: CLIFF.get(s, {}))


def test_the_message_names_remedies_that_exist(cliff):
    with pytest.raises(prudent.PrudentError, match=r"'(ravine|ledge)'.*dead_end_cost=.*horizon=.*prudent.amend"):
        prudent.solve(cliff, 0.5)


def test_a_price_for_getting_stuck(cliff):
    model = prudent.amend(cliff, dead_end_cost=50)
    plan = prudent.solve(model, 0.5)
    assert plan.expected == pytest.approx(0.8 * 1 + 0.2 * 50)
    assert plan.cvar == pytest.approx((0.2 * 50 + 0.3 * 1) / 0.5)
    assert plan.policy("ravine") == "give up"
    assert plan.policy("start") == "jump"
    assert model.n_states == cliff.n_states + 1
    assert (
        prudent.amend(prudent.domains.figure_2(), dead_end_cost=5).fingerprint == prudent.domains.figure_2().fingerprint
    )


def test_names_do_not_collide():
    table = {"stuck": {"a": [(0.5, "g", 1), (0.5, "pit", 1)]}, "pit": {"b": [(1, "pit", 1)]}}
    model = prudent.amend(prudent.build("stuck", lambda s: table.get(s, {})), dead_end_cost=5)
    assert "stuck'" in model.state_names


def test_a_horizon_with_a_price(cliff):
    model = prudent.amend(cliff, horizon=3, horizon_cost=20)
    result = prudent.evaluate(
        model, lambda state, spent: "jump" if state[0] == "start" else "climb" if state[0] == "ravine" else "fall"
    )
    # home at once, or in the ravine: climb, fall, and time is up
    assert result.values.tolist() == [1, 22]
    assert result.probabilities.tolist() == pytest.approx([0.8, 0.2])
    plan = prudent.solve(model, 1.0)
    assert plan.expected == pytest.approx(0.8 * 1 + 0.2 * 20)  # waiting in the ravine costs nothing
    assert prudent.check(model).acyclic


def test_a_horizon_long_enough_changes_nothing():
    game = prudent.domains.betting_game(stages=4)
    longer = prudent.amend(game, horizon=9, horizon_cost=1e6)
    for alpha in (0.1, 1.0):
        one, other = prudent.solve(game, alpha), prudent.solve(longer, alpha)
        assert one.cvar == pytest.approx(other.cvar, rel=1e-12)
        assert one.expected == pytest.approx(other.expected, rel=1e-12)


def test_both_and_an_initial_distribution():
    table = {
        "a": {"x": [(0.5, "g", 1), (0.5, "pit", 1)]},
        "b": {"x": [(1, "b", 1)], "y": [(1, "a", 1)]},
        "pit": {"w": [(1, "pit", 0)]},
    }
    model = prudent.build({"a": 0.5, "b": 0.5}, lambda s: table.get(s, {}))
    both = prudent.amend(model, dead_end_cost=10, horizon=2, horizon_cost=100)
    result = prudent.evaluate(both, lambda state, spent: {"a": "x", "b": "y", "pit": "give up"}[state[0]])
    assert result.values.tolist() == [1, 2, 11, 102]
    assert result.probabilities.tolist() == pytest.approx([0.25, 0.25, 0.25, 0.25])


def test_notes_stay(cliff):
    noted = replace(cliff, notes=("read from a file",))
    assert prudent.amend(noted, dead_end_cost=1, horizon=2, horizon_cost=1).notes == ("read from a file",)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dead_end_cost": float("inf")}, "dead_end_cost is inf; it must be a finite number"),
        ({"dead_end_cost": "dear"}, "dead_end_cost is 'dear'"),
        ({"horizon": 0, "horizon_cost": 1}, "horizon is 0; it must be a whole number of actions, at least 1"),
        ({"horizon": 2.5, "horizon_cost": 1}, "horizon is 2.5"),
        ({"horizon": 2}, "horizon= needs horizon_cost="),
        ({"horizon_cost": 2}, "give horizon= as well"),
    ],
)
def test_what_is_wrong_is_said(cliff, options, message):
    with pytest.raises(prudent.PrudentError, match=message):
        prudent.amend(cliff, **options)


def test_counts_and_bounds_are_kept_with_a_price_for_getting_stuck(cliff):
    p = cliff.probability
    count = 10 * p + 1
    known = replace(cliff, count=count, intervals=prudent.Intervals(0.5 * p, p))
    model = prudent.amend(known, dead_end_cost=50)
    for o, (count, low) in enumerate(zip(model.count, model.intervals.low, strict=True)):
        if model.action(model.outcome_start.searchsorted(o, side="right") - 1) == "give up":
            assert (count, low) == (0, 1)
        else:
            assert (count, low) == pytest.approx((10 * model.probability[o] + 1, 0.5 * model.probability[o]))


def test_a_horizon_keeps_bounds_and_says_that_counts_are_left_out(cliff):
    p = cliff.probability
    known = replace(cliff, count=10 * p, intervals=prudent.Intervals(0.5 * p, p))
    model = prudent.amend(known, horizon=3, horizon_cost=5)
    assert model.count is None
    assert model.intervals.low.tolist() == pytest.approx((0.5 * model.probability).tolist())
    assert any("counts were left out" in note for note in model.notes)
    assert not prudent.amend(cliff, horizon=3, horizon_cost=5).notes
