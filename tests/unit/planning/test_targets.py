"""How far apart bounds may be, what they are then called, and how wide they are in the user's units."""

import numpy as np
import pytest

import prudent
from prudent.engine.prepare import prepare
from prudent.planning.bounds import Bracket, Target, bracket, bracket_below


@pytest.mark.parametrize(
    ("target", "width"),
    [
        (Target(), 0.02),
        (Target(gap=3), 3),
        (Target(relative_gap=0.5), 10),
        (Target(gap=3, relative_gap=0.5), 10),
        (Target(gap=30, relative_gap=0.5), 30),
        (Target(gap=0), 0),
    ],
)
def test_a_gap_is_absolute_or_relative_or_either(target, width):
    assert target.width(20.0) == pytest.approx(width)
    assert target.said == (target != Target())
    assert target.exact == (width == 0)


@pytest.mark.parametrize(
    ("gap", "options", "status"),
    [
        (0.5e-8, {}, "optimal"),
        (2e-8, {}, "within_gap"),
        (0.9e-3, {}, "within_gap"),
        (1.1e-3, {}, "gap_not_reached"),
        (np.inf, {}, "gap_not_reached"),
        (0.9e-3, {"aims": False}, "approximate"),
        (0.5e-8, {"aims": False}, "optimal"),
        (0.9e-3, {"interrupted": True}, "interrupted"),
        (0.5e-8, {"interrupted": True}, "optimal"),
    ],
)
def test_a_gap_has_a_name(gap, options, status):
    asked = {"aims": True, "interrupted": False, **options}
    assert Target().status(Bracket(1 - gap, 1.0, 1.0), **asked) == status


def test_a_gap_that_was_asked_for_is_judged_whatever_the_method():
    wide = Bracket(1.0, 2.0, 2.0)
    for aims in (True, False):
        assert Target(gap=1).status(wide, aims=aims, interrupted=False) == "within_gap"
        assert Target(gap=0.9).status(wide, aims=aims, interrupted=False) == "gap_not_reached"


def test_an_endless_bracket_of_endless_size_is_not_optimal():
    assert Target().status(Bracket(0.0, np.inf, np.inf), aims=False, interrupted=False) == "approximate"


def model_of(*costs):
    return prudent.build("s", {"s": {"a": [(1 / len(costs), "g", cost) for cost in costs]}})


def test_bounds_in_units_leave_room_for_rounding():
    prepared = prepare(model_of(-3.0, 1.0))  # levels of 4 above -3
    found = bracket(prepared, 0.5, 0.75, 1.0, 0.1)
    assert found.lower < -1 and found.upper > 0
    assert (found.lower, found.upper) == pytest.approx((-1, 0), abs=1e-14)
    assert found.size == pytest.approx(4)  # a level: nothing is told apart more finely
    assert bracket(prepared, 0.5, 50.0, 1.0, 0.1).size == pytest.approx(200)  # counted from the best of luck


def test_what_floats_did_to_a_step_is_in_the_bounds():
    exact, near = prepare(model_of(1.0, 3.0)), prepare(model_of(0.1 + 0.2, -0.1))
    off = near.scale.deviation
    assert exact.scale.deviation == 0 < off
    assert bracket_below(exact, 1.0) == pytest.approx(3, rel=1e-15)
    for steps, alpha in ((1.0, 1.0), (1e6, 1.0), (1e6, 1e-3)):
        found = bracket(near, 1.0, 1.0, steps, alpha)
        assert found.upper - 0.3 == pytest.approx(off * steps / alpha, rel=1e-6, abs=1e-15)
    # two actions' worth of lucks, and a factor for each normalised cost
    n = near.longest + 1
    assert 0.3 - bracket_below(near, 1.0) >= n * off + (2 * n + 1) * off / 0.1 * 0.2 * (1 - 1e-9)


def test_where_no_cost_is_negative_totals_are_off_as_costs_are():
    """Each cost is off by a fraction of itself, hence each total, however many actions it takes."""
    near = prepare(model_of(0.1 + 0.2, 0.1))
    assert 0 < near.scale.relative < 8 * 2.0**-52
    for steps in (1.0, 1e9):
        found = bracket(near, 1.0, 1.0, steps, 1e-3)
        assert 0 < found.upper - 0.3 < 1e-14 and 0 < 0.3 - found.lower < 1e-14
    assert np.isinf(prepare(model_of(0.1 + 0.2, -0.1)).scale.relative)
    assert prepare(model_of(1.0, -3.0)).scale.relative == 0


def street(unit):
    """A way of 60 steps, some of them back, with prices up to 90,000 cents in a unit of the user's."""
    rng = np.random.default_rng(5)
    price = rng.integers(1, 90, (60, 2)) * 1000 + 10

    def actions(i):
        return {} if i == 60 else {"go": [(0.9, i + 1, price[i, 0] / unit), (0.1, max(i - 1, 0), price[i, 1] / unit)]}

    return prudent.build(0, actions)


def test_euros_with_two_decimals_are_solved_as_whole_cents_are():
    cents, euros = (prudent.solve(street(unit), 0.2) for unit in (1, 100))
    assert prepare(street(100)).scale.deviation > 0
    assert (cents.status, euros.status, euros.notes) == ("optimal", "optimal", ())
    assert euros.upper - euros.lower <= 2 * (cents.upper - cents.lower) / 100
    assert euros.cvar == pytest.approx(cents.cvar / 100, rel=1e-12)
