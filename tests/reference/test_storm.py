"""Least expected costs against Storm (https://www.stormchecker.org), with several of its methods; extra ``storm``.

Storm's methods stop at a precision that they are told.  Interval iteration and optimistic value iteration promise it;
its policy iteration solves each policy to a precision of its own.  Two facts about Storm 2.0.0 are recorded below: at a
nominal 1e-6, plain value iteration is far off where loops are hardly ever left, and *sound* value iteration can be.
"""

import numpy as np
import pytest

pytest.importorskip("stormpy", reason="Storm is an optional oracle: pip install 'prudent[storm]'")

import prudent
from prudent.engine.prepare import prepare
from prudent.engine.values.expected_cost import least_expected_cost
from storm_oracle import least_expected, storm_model

PRECISION = 1e-6
SOUND = ("interval iteration", "optimistic value iteration")
CLOSE = (*SOUND, "policy iteration")


def mesh(n, leave, seed=0):
    """Random successors, two to four actions of two to five outcomes, each of which leads out with a small chance."""
    rng = np.random.default_rng(seed)
    n_actions = rng.integers(2, 5, size=n)
    n_outcomes = rng.integers(2, 6, size=n_actions.sum())
    outcome_start = np.concatenate([[0], np.cumsum(n_outcomes)])
    first = outcome_start[:-1]
    successor = rng.integers(0, n, size=outcome_start[-1])
    successor[first] = n
    weight = rng.random(len(successor)) + 0.05
    weight[first] = 0
    out = leave * rng.uniform(0.5, 1.5, size=len(first))
    probability = weight / np.repeat(np.add.reduceat(weight, first) / (1 - out), n_outcomes)
    probability[first] = out
    action_start = np.concatenate([[0], np.cumsum(n_actions), [n_actions.sum()]])
    cost = rng.integers(1, 6, size=len(successor))
    return prudent.from_arrays(action_start, outcome_start, probability, successor, cost)


def grid(width, slip):
    def actions(place):
        if place == (width - 1, width - 1):
            return {}

        def move(dx, dy):
            return min(max(place[0] + dx, 0), width - 1), min(max(place[1] + dy, 0), width - 1)

        price = 1 + (place[0] * 7 + place[1] * 13) % 5
        return {
            name: [(1 - 2 * slip, move(dx, dy), price), (slip, move(dy, dx), 1), (slip, move(-dx, -dy), 2)]
            for name, dx, dy in (("east", 1, 0), ("north", 0, 1), ("west", -1, 0), ("south", 0, -1))
        }

    return prudent.build((0, 0), actions)


def chain(n, up):
    return prudent.build(0, lambda s: {} if s == n else {"a": [(up, s + 1, 1), (1 - up, max(s - 1, 0), 1)]})


def ours(model):
    """Our bounds in units, for the states that the start can reach; elsewhere none."""
    prepared = prepare(model)
    least = least_expected_cost(prepared)
    kept = prepared.members.state_of >= 0
    step = prepared.scale.lattice.step

    def in_units(levels):
        return (levels[prepared.members.state_of[kept]] * prepared.scale.stride + prepared.scale.luck[kept]) * step

    return kept, in_units(least.lower), in_units(least.upper)


def far(model, methods):
    """By how much each method is outside of our bounds, relative to the value; and how narrow these are."""
    kept, lower, upper = ours(model)
    positive = upper > 0
    storm = storm_model(model)
    deviation = {}
    for method in methods:
        value = least_expected(storm, method, PRECISION)[kept]
        outside = np.maximum(np.maximum(lower - value, value - upper), 0.0)
        deviation[method] = float((outside[positive] / upper[positive]).max())
    return deviation, float(((upper - lower)[positive] / upper[positive]).max())


def agree(model, methods=CLOSE):
    deviation, width = far(model, methods)
    assert width < 1e-10
    for method, distance in deviation.items():
        assert distance <= PRECISION, (method, distance)


@pytest.mark.parametrize("leave", [0.3, 0.02, 1e-3])
def test_a_component_with_random_moves(leave):
    agree(mesh(1000, leave))


@pytest.mark.parametrize("slip", [0.1, 0.25])
def test_a_grid(slip):
    agree(grid(32, slip))


def test_a_chain_without_drift():
    agree(chain(100, 0.5))


@pytest.mark.slow
@pytest.mark.parametrize(("n", "leave"), [(10_000, 0.02), (100_000, 0.02)])
def test_large_components_with_random_moves(n, leave):
    agree(mesh(n, leave))


@pytest.mark.slow
def test_a_large_grid():
    agree(grid(150, 0.1), SOUND)


def test_plain_value_iteration_stops_too_soon():
    model = mesh(300, 1e-5)
    deviation, width = far(model, ("value iteration", "optimistic value iteration"))
    assert width < 1e-10
    assert deviation["optimistic value iteration"] <= PRECISION
    assert deviation["value iteration"] > 1000 * PRECISION


def two_ways_out(n, leave):
    """Random moves and two actions, one of which leaves with twice the chance of the other."""
    rng = np.random.default_rng(1)
    table = {}
    for s in range(n):
        table[s] = {}
        for name, out in (("slow", leave), ("fast", 2 * leave)):
            first, second = (int(t) for t in rng.integers(n, size=2))
            table[s][name] = [((1 - out) / 2, first, 1), ((1 - out) / 2, second, 2), (out, "goal", 1)]
    return prudent.build(0, table)


@pytest.mark.slow
def test_sound_methods_where_loops_are_hardly_ever_left():
    agree(two_ways_out(300, 1e-6))


def test_sound_value_iteration_where_loops_are_hardly_ever_left():
    deviation, width = far(two_ways_out(300, 1e-6), ("sound value iteration",))
    assert width < 1e-10
    if deviation["sound value iteration"] > PRECISION:
        pytest.xfail("Storm 2.0.0: sound value iteration is 29% above here, at a nominal 1e-6")
