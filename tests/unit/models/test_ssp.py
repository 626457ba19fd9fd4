import numpy as np
import pytest

import prudent


def small(**changes):
    arrays = dict(
        action_start=[0, 2, 3, 3],
        outcome_start=[0, 1, 3, 4],
        probability=[1.0, 0.5, 0.5, 1.0],
        successor=[2, 1, 2, 2],
        cost=[5.0, 1.0, 2.0, 3.0],
    )
    options = {k: changes.pop(k) for k in list(changes) if k not in arrays}
    return prudent.from_arrays(**{**arrays, **changes}, **options)


def test_shape_and_names():
    model = small(state_names=["a", "b", "g"], action_names=["x", "y", "z"])
    assert (model.n_states, model.n_actions, model.n_outcomes) == (3, 3, 4)
    assert model.is_goal.tolist() == [False, False, True]
    assert model.index("b") == 1
    assert model.find_action(0, "y") == 1
    assert repr(model) == "<SSP model: 3 states, 3 actions, 4 outcomes>"
    plain = small()
    assert [plain.action(a) for a in range(3)] == [0, 1, 0]
    assert plain.state(1) == 1


def test_arrays_are_copied_and_frozen():
    cost = np.array([5.0, 1.0, 2.0, 3.0])
    model = small(cost=cost)
    cost[0] = 99
    assert model.cost[0] == 5
    with pytest.raises(ValueError, match="read-only"):
        model.cost[0] = 1
    assert small(cost=model.cost).cost is model.cost  # nobody writes to it
    with pytest.raises(AttributeError):
        model.cost = cost


def test_probabilities_are_normalised_once():
    model = small(probability=[1.0, 0.5, 0.5 + 4e-10, 1.0])
    assert model.deviation == pytest.approx(4e-10, rel=1e-3)
    again = prudent.from_arrays(model.action_start, model.outcome_start, model.probability, model.successor, model.cost)
    assert np.array_equal(model.probability, again.probability)
    tenths = np.full(10, 0.1)
    model = prudent.from_arrays([0, 1, 1], [0, 10], tenths, np.ones(10, int), np.arange(10.0))
    assert np.array_equal(model.probability, tenths)


BAD = [
    (
        {"probability": [1.0, 0.5, 0.4, 1.0]},
        "probabilities of state 0, action 1 sum to 0.9; they must sum to 1",
    ),
    (
        {"probability": [1.0, 0.333, 0.666, 1.0]},
        "state 0, action 1 sum to 0.999; they must sum to 1; if they were rounded, divide them by their sum",
    ),
    ({"probability": [1.0, -0.5, 1.5, 1.0]}, "state 0, action 1 has an outcome of probability -0.5"),
    ({"probability": [1.0, np.nan, 0.5, 1.0]}, "state 0, action 1 has an outcome of probability nan"),
    ({"cost": [5.0, np.inf, 2.0, 3.0]}, "state 0, action 1 has an outcome of cost inf; costs must be finite"),
    ({"successor": [2, 1, 7, 2]}, "state 0, action 1 leads to state number 7; the model has 3 states"),
    ({"successor": [2, 1, -1, 2]}, "leads to state number -1"),
    ({"action_start": [0, 2, 3, 4]}, "action_start must rise from 0"),
    ({"action_start": [0, 2, 1, 3]}, "action_start must rise from 0"),
    ({"outcome_start": [0, 1, 1, 4]}, "state 0, action 1 has no outcomes"),
    ({"cost": [1.0]}, "cost has 1 entries; probability has 4"),
    ({"state_names": ["a", "a", "g"]}, "state name 'a' is given twice"),
    ({"state_names": ["a"]}, "state_names has 1 entries; the model needs 3"),
    ({"action_names": ["x", "x", "z"]}, "state 0 has two actions named 'x'"),
    ({"initial": 9}, "the initial state is number 9"),
    ({"initial": {0: 0.5, 1: 0.4}}, "initial probabilities sum to 0.9; they must sum to 1"),
    (
        {"initial": {0: 0.33, 1: 0.66}},
        "initial probabilities sum to 0.99; they must sum to 1; if they were rounded, divide them",
    ),
    ({"initial": {0: 1.5, 1: -0.5}}, "an initial probability is -0.5; probabilities must lie between 0 and 1"),
    ({"goals": [1, 2]}, "goal 1 has actions"),
    ({"goals": []}, "state 2 has no actions and is not among the goals"),
    ({"cost": [["a"]]}, "cost must be an array of numbers"),
    ({"successor": [2, 1, 1.5, 2]}, "successor must hold whole numbers"),
    ({"cost": [[5.0, 1.0, 2.0, 3.0]]}, "cost has 2 dimensions; it must have one"),
]


@pytest.mark.parametrize(("change", "message"), BAD)
def test_bad_models_are_refused_by_name(change, message):
    with pytest.raises(prudent.PrudentError) as caught:
        small(**change)
    assert message in str(caught.value)


def test_no_goal():
    with pytest.raises(prudent.PrudentError, match="the model has no goal"):
        prudent.from_arrays([0, 1], [0, 1], [1.0], [0], [1.0])


def test_all_problems_are_listed():
    with pytest.raises(prudent.ModelError) as caught:
        small(probability=[0.7, 0.5, 0.4, 1.0], cost=[5.0, np.inf, 2.0, 3.0])
    assert len(caught.value.problems) == 3
    assert "and 2 more problems" in str(caught.value)


def test_fingerprint():
    named = small(state_names=["0", "1", "2"])
    assert small().fingerprint == named.fingerprint == small(name="other").fingerprint
    assert small(cost=[5.0, 1.0, 2.0, 4.0]).fingerprint != small().fingerprint
    assert small(state_names=["0", "1", "g"]).fingerprint != small().fingerprint
