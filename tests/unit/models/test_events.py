"""Models from a step function on arrays: the same as those from a function of one state, and named alike."""

import numpy as np
import pytest

import prudent
from prudent.domains.inventory import HOLDING, PRICE, REVENUE, SWING
from prudent.models import events

SIDE = 7


def rows_of(model):
    """Every outcome by names, with its probability; actions without a name of their own by their numbers."""
    states, actions = model.names
    rows = {}
    for o in range(model.n_outcomes):
        a = model.outcome_action[o]
        key = states[model.action_state[a]], actions[a], states[model.successor[o]], model.cost[o]
        rows[key] = model.probability[o]
    return rows


def moved(state, action):
    """Where a move leads on a small torus: action 0 and 1 go right by 1 or 2, and up."""
    right, up = action
    x, y = state
    return (x + right) % SIDE, (y + up) % SIDE


def grid(**options):
    def step(state, action, event):
        x, y = moved(state, action)
        return (np.where(event == 0, x, state[0]), np.where(event == 0, y, state[1])), 1 + (event == 1) * 0.5

    options = {"initial": (3, 3), "goals": [(0, 0)]} | options
    return prudent.from_events((SIDE, SIDE), (2, 2), [0.75, 0.25], step, **options)


@pytest.mark.parametrize("at_once", [1, 50, 2**15])
def test_a_grid_is_the_model_of_a_function(at_once, monkeypatch):
    monkeypatch.setattr(events, "AT_ONCE", at_once)

    def actions(state):
        moves = [(right, up) for right in range(2) for up in range(2)]
        each = {m: [(0.75, moved(state, m), 1), (0.25, state, 1.5)] for m in moves}
        return each if state != (0, 0) else {}

    one, other = grid(), prudent.build((3, 3), actions)
    assert rows_of(one) == rows_of(other) and one.n_states == SIDE**2
    assert list(one.state_names) == sorted(one.state_names)
    assert prudent.solve(one, 0.1).cvar == pytest.approx(prudent.solve(other, 0.1).cvar)


def test_inventory_control_is_the_model_of_a_function():
    stages, capacity, first = 3, 7, 4

    def actions(state):
        if state == "end":
            return {}
        stage, stock, previous = state
        options = {}
        for buy in range(capacity - stock + 1):
            options[buy] = []
            for swing in range(-SWING, SWING + 1):
                asked = min(max(previous + swing, 0), capacity)
                sold = min(stock + buy, asked)
                left = stock + buy - sold
                to = "end" if stage == stages - 1 else (stage + 1, left, asked)
                cost = 2 * capacity - (REVENUE * sold - PRICE * buy - HOLDING * left)
                options[buy].append((1 / (2 * SWING + 1), to, cost))
        return options

    one = prudent.domains.inventory_control(stages, capacity, first)
    other = rows_of(prudent.build((0, 0, first), actions))
    assert rows_of(one) == {key: pytest.approx(chance) for key, chance in other.items()}


def test_only_what_can_be_reached_is_in_the_model():
    model = prudent.from_events(10, 1, [1.0], lambda s, a, e: (s + 2, s * 1.0, s >= 6))
    assert model.state_names == (0, 2, 4, 6, "end") and model.cost.tolist() == [0, 2, 4, 6]


def test_runs_may_end_at_once():
    model = prudent.from_events(10, 1, [1.0], lambda s, a, e: (s, 1.0), goals=[0])
    assert (model.n_states, model.n_outcomes) == (1, 0) and prudent.solve(model, 0.5).cvar == 0
    counted = prudent.from_events(3, 1, [1.0], lambda s, a, e: (s + 1, 1.0, (s == 1) * 1))  # ends as numbers
    assert counted.state_names == (0, 1, "end")


def test_chances_may_depend_on_state_and_action():
    chances = np.zeros((4, 3, 2))
    chances[..., 1] = np.arange(4)[:, None] / 8 + np.arange(3) / 8
    chances[..., 0] = 1 - chances[..., 1]
    model = prudent.from_events(4, 3, chances, lambda s, a, e: (np.minimum(s + e, 3), 1 + a), goals=np.arange(4) == 3)
    action = model.find_action(1, 2)
    assert model.probability[model.outcome_start[action] : model.outcome_start[action + 1]].tolist() == [5 / 8, 3 / 8]
    assert model.is_goal.tolist() == [False, False, False, True] and model.state_names is None


def test_a_step_may_answer_with_whole_floats_or_with_one_value_for_all():
    model = prudent.from_events((4, 2), 1, [0.5, 0.5], lambda s, a, e: ((s[0] + 1.0, e == 1), 2, s[0] == 3))
    assert model.n_states == 8 and set(model.cost.tolist()) == {2.0} and prudent.solve(model, 0.5).cvar == 8


def test_actions_that_are_not_allowed_are_left_out_and_the_others_keep_their_names():
    allowed = np.array([[True, False, True], [False, True, True]])
    step = lambda s, a, e: (s + 1, a * 1.0, s == 1)  # noqa: E731
    model = prudent.from_events(2, 3, [1.0], step, allowed=allowed)
    assert model.action_names == (0, 2, 1, 2)
    named = prudent.from_events(2, 3, [1.0], step, allowed=allowed, action_names=["x", "y", "z"])
    assert named.action_names == ("x", "z", "y", "z")


@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_step_that_changes_its_arguments_is_refused(which):
    def step(*given):
        given[which][:] += 1
        return given[0], 1.0

    with pytest.raises(prudent.PrudentError, match=r"step changes its arguments, .*; change a copy"):
        prudent.from_events(3, 2, [0.5, 0.5], step, goals=[2])

    def wrong(*given):
        raise ValueError("no such road")

    with pytest.raises(ValueError, match="no such road"):
        prudent.from_events(3, 2, [0.5, 0.5], wrong)


def to(after, cost=1.0):
    return lambda s, a, e: (after, cost)


@pytest.mark.parametrize(
    ("arguments", "options", "told"),
    [
        (
            (3, 2, [1.0], to(3)),
            {},
            r"step\(0, 0, 0\) leads to 3; next states must be whole numbers of at least 0 and below \(3,\)",
        ),
        ((3, 2, [1.0], to(0.5)), {}, r"step\(0, 0, 0\) leads to 0.5"),
        (((3, 2), 2, [1.0], to((1, 2))), {"initial": (0, 1)}, r"step\(\(0, 1\), 0, 0\) leads to \(1, 2\)"),
        ((3, 2, [1.0], to((1, 2))), {}, "step returned a next state with 2 parts; states have 1 parts"),
        ((3, 2, [1.0], lambda s, a, e: s), {}, "step returned a value of type ndarray; it must return"),
        ((3, 2, [1.0], lambda s, a, e: (s[:-1], 1.0)), {}, r"next state of shape \(1,\) and type int64; .* as many as"),
        (
            (3, 2, [1.0], to(1, "much")),
            {},
            "step returned a cost of shape .* it must be one number, or an array of 2 numbers",
        ),
        ((3, 2, [1.0], to(1, np.inf)), {"goals": [1]}, "state 0, action 0 has an outcome of cost inf"),
        ((3, 2, [0.5, 0.4], to(1)), {"goals": [1]}, "probabilities of state 0, action 0 sum to 0.9"),
        ((3, 2, [1.5, -0.5], to(1)), {"goals": [1]}, "outcome of probability 1.5"),
        ((3, 2, [1.0], to(1)), {}, "the model has no goal"),
        ((3, 2, [1.0], to(1)), {"initial": 3}, "initial: state is 3; it must be a whole number, from 0 to 2"),
        ((3, 2, [1.0], to(1)), {"initial": (0, 1)}, r"initial: state is \(0, 1\); it must be one whole number"),
        (
            ((3, 3), 2, [1.0], to((0, 0))),
            {"goals": np.array([[0, 1]])},
            r"goals: state is .*; it must be a tuple of 2 whole num",
        ),
        ((3, 2, [1.0], to(1)), {"goals": 1}, "goals is 1; it must be a collection of states"),
        ((3, 2, [1.0], to(1)), {"allowed": "no"}, "allowed is 'no'; it must be an array of bool"),
        (
            (3, 2, [1.0], to(1)),
            {"allowed": [[True], [True, False]]},
            "allowed is .* it must be an array of bool",
        ),
        ((3, 2, [1.0], to(1)), {"initial": [0]}, r"initial: state is \[0\]; it must be a whole number"),
        ((3, 2, [1.0], to(1)), {"allowed": np.ones((2, 2), bool)}, r"allowed has the shape \(2, 2\); it must have"),
        ((3, 2, np.ones((2, 1)), to(1)), {}, r"chances has the shape \(2,\) before its events; it must have"),
        ((3, 2, [], to(1)), {}, r"chances is \[\]; it must be an array with the probability of each event"),
        ((3, 2, [[0.5, 0.5], [1.0]], to(1)), {}, "chances is .* it must be an array with the probability"),
        ((3, 2, ["half"], to(1)), {}, "chances is .* it must be an array with the probability"),
        ((2.5, 2, [1.0], to(1)), {}, "states is 2.5; it must be a whole number, or the shape of a grid"),
        (((2**40, 2**40), 2, [1.0], to(1)), {}, r"there are 1.21e\+24 states, too many to build; use prudent.search"),
        ((3, 10**12, [1.0], to(1)), {}, r"there are 1e\+12 actions, too many"),
        ((3, 2, [1.0], to(1)), {"action_names": 5, "goals": [1]}, "action_names has 1 names; there are 2 actions"),
        ((3, 2, 1.0, to(1)), {}, "chances is 1.0; it must be an array"),
        ((3, 2, [1.0], 7), {}, "step is a int; it must be a function"),
        ((3, 2, [1.0], to(1)), {"action_names": ["a"], "goals": [1]}, "action_names has 1 names; there are 2 actions"),
        (((), 2, [1.0], to(1)), {}, "states is"),
        ((0, 2, [1.0], to(1)), {}, "states is 0"),
    ],
)
def test_what_is_wrong_is_named(arguments, options, told):
    with pytest.raises(prudent.PrudentError, match=told):
        prudent.from_events(*arguments, **options)
