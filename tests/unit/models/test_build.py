import numpy as np
import pytest

import prudent
from prudent.models.rows import merge_outcomes


def test_explores_merges_and_numbers():
    asked = []

    def actions(state):
        asked.append(state)
        return {} if state >= 3 else {"go": [(0.25, state + 1, 1), (0.25, state + 1, 1), (0.5, 3, 2)]}

    model = prudent.build(0, actions)
    assert asked == [0, 1, 3, 2]
    assert (model.n_states, model.n_outcomes) == (4, 6)
    assert model.state_names == (0, 1, 3, 2)
    assert prudent.build(2, actions).probability.tolist() == [0.5, 0.5]


def test_costs_keep_outcomes_apart():
    model = prudent.build("s", lambda s: {"a": [(0.5, "g", 1), (0.5, "g", 2)]} if s == "s" else None)
    assert model.n_outcomes == 2


def test_initial_distribution():
    table = {"a": {0: [(1, "g", 4)]}, "b": {0: [(1, "g", 10)]}, "g": {}}
    model = prudent.build({"a": 0.75, "b": 0.25}, table.__getitem__)
    plan = prudent.solve(model, 0.5)
    assert plan.cvar == pytest.approx(7)
    assert plan.expected == pytest.approx(5.5)
    assert plan.policy("b") == 0


BAD = [
    (lambda s: {"a": [(0.5, "g")]} if s == "s" else {}, "outcomes of state 's', action 'a' must be"),
    (lambda s: {"a": [("x", "g", 1)]} if s == "s" else {}, "probability at state 's', action 'a' is the text 'x'"),
    (lambda s: {"a": [(1, "g", "12")]} if s == "s" else {}, "cost at state 's', action 'a' is the text '12'"),
    (lambda s: {"a": [(1, "g", b"1")]} if s == "s" else {}, "cost at state 's', action 'a' is the text b'1'"),
    (lambda s: {"a": [(1, "g", None)]} if s == "s" else {}, "cost at state 's', action 'a' is None"),
    (lambda s: [(1, "g", 1)] if s == "s" else {}, "actions('s') returned list"),
    (lambda s: {"a": 7} if s == "s" else {}, "outcomes of state 's', action 'a' must be"),
    (
        lambda s: {"a": [(0.9, "g", 1)]} if s == "s" else {},
        "probabilities of state 's', action 'a' sum to 0.9",
    ),
    (lambda s: {"a": [(1, ["g"], 1)]} if s == "s" else {}, "outcomes of state 's', action 'a' must be"),
]


@pytest.mark.parametrize(("actions", "message"), BAD)
def test_bad_functions_are_refused(actions, message):
    with pytest.raises(prudent.PrudentError) as caught:
        prudent.build("s", actions)
    assert message in str(caught.value)


def test_goals_are_checked():
    table = {"s": {"a": [(0.5, "g", 1), (0.5, "t", 1)]}, "g": {}, "t": {}}
    with pytest.raises(prudent.PrudentError, match="state 't' has no actions and is not among the goals"):
        prudent.build("s", table.__getitem__, goals=["g"])
    with pytest.raises(prudent.PrudentError, match="goal 's' has actions"):
        prudent.build("s", table.__getitem__, goals=["s", "g", "t"])
    assert prudent.build("s", table.__getitem__, goals=["g", "t"]).n_states == 3


def test_nothing_said_about_a_state_is_told_apart_from_no_actions():
    table = {"s": {"a": [(0.5, "g", 1), (0.5, "t", 1)]}}
    with pytest.raises(prudent.ModelError, match=r"actions\('t'\) returned None, and 't' is not among the goals"):
        prudent.build("s", lambda s: table.get(s), goals=["g"])
    with pytest.raises(prudent.ModelError, match="the table has no entry for 't', which is not among the goals"):
        prudent.build("s", table, goals=["g"])
    with pytest.raises(prudent.ModelError, match="state 't' has no actions and is not among the goals"):
        prudent.build("s", lambda s: table.get(s, {}), goals=["g"])
    with pytest.raises(prudent.ModelError, match=r"actions\('t'\) returned None"):
        prudent.search("s", lambda s: table.get(s), 0.1, goals=["g"])
    assert prudent.build("s", table).n_states == 3  # where no goals are named, both mean a goal


def test_probabilities_are_checked_before_they_are_added_up():
    with pytest.raises(prudent.PrudentError, match=r"state 's', action 'a' is -0.5; it must lie between"):
        prudent.build("s", {"s": {"a": [(-0.5, "g", 1), (1.0, "g", 1), (0.5, "t", 0)]}, "g": {}, "t": {}})
    twice = merge_outcomes(np.array([0, 0]), np.array([1, 1]), np.array([2.0, 2.0]), np.array([-1.0, 2.0]))
    assert twice[3].tolist() == [-1.0, 2.0]  # for the model to refuse
