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
    assert Target().status(Bracket(1 - gap, 1.0), **asked) == status


@pytest.mark.parametrize(
    ("bounds", "status"),
    [
        (Bracket(-0.5, 1.0), "gap_not_reached"),
        (Bracket(-0.5, 1.0, 1e10), "optimal"),  # less than 1e-8 of the least difference between totals
        (Bracket(-1e-9, 1e-9, 1.0), "optimal"),
        (Bracket(-1e-9, 1e-9), "gap_not_reached"),  # costs were rounded
        (Bracket(1e-9, 2e-9, 1.0), "gap_not_reached"),  # not 0, and known to within a factor of 2
        (Bracket(0.0, 1e-4, 1.0), "gap_not_reached"),
        (Bracket(0.0, 0.0), "optimal"),
    ],
)
def test_bounds_on_both_sides_of_0(bounds, status):
    asked = {"aims": True, "interrupted": False}
    assert Target().status(bounds, **asked) == status
    assert Target(gap=2).status(bounds, **asked) in ("within_gap", "optimal")
    assert Target().reached(bounds) == (bounds.gap == 0)


@pytest.mark.parametrize(
    ("aims", "target", "status"),
    [
        (True, Target(), "within_gap"),
        (True, Target(gap=0), "within_gap"),
        (False, Target(), "approximate"),
        (False, Target(relative_gap=0.1), "within_gap"),
    ],
)
def test_optimal_promises_the_second_objective_too(aims, target, status):
    for second in (True, False):
        found = target.status(Bracket(1.0, 1 + 1e-9), aims=aims, interrupted=False, second=second)
        assert found == ("optimal" if second else status)


def test_a_gap_that_was_asked_for_is_judged_whatever_the_method():
    wide = Bracket(1.0, 2.0)
    for aims in (True, False):
        assert Target(gap=1).status(wide, aims=aims, interrupted=False) == "within_gap"
        assert Target(gap=0.9).status(wide, aims=aims, interrupted=False) == "gap_not_reached"


def test_an_endless_bracket_of_endless_size_is_not_optimal():
    assert Target().status(Bracket(0.0, np.inf), aims=False, interrupted=False) == "approximate"


def model_of(*costs):
    return prudent.build("s", {"s": {"a": [(1 / len(costs), "g", cost) for cost in costs]}})


def test_bounds_in_units_leave_room_for_rounding():
    prepared = prepare(model_of(-3.0, 1.0))  # levels of 4 above -3
    found = bracket(prepared, 0.5, 0.75, 1.0, 0.1)
    assert found.lower < -1 and found.upper > 0
    assert (found.lower, found.upper) == pytest.approx((-1, 0), abs=1e-14)
    assert (found.size, found.step) == (pytest.approx(1), 4)
    assert bracket(prepared, 0.5, 50.0, 1.0, 0.1).size == pytest.approx(197)  # not counted from best luck


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


def refunded(refund, chance, unit):
    """A rare large refund, and then a careful action for 10 or a risky one for 1 or 20."""
    careful, risky = [(1, "g", 10 * unit)], [(0.9, "g", unit), (0.1, "g", 20 * unit)]
    return prudent.build(
        "s", {"s": {"go": [(chance, "g", -refund), (1 - chance, "t", 0)]}, "t": {"careful": careful, "risky": risky}}
    )


@pytest.mark.parametrize("options", [{}, {"relative_gap": 1e-8, "time_limit": 1}])
@pytest.mark.parametrize(("refund", "chance", "unit"), [(1e10, 1e-6, 2**0.5), (1e8, 1e-3, 1), (1e6, 1e-3, 1)])
def test_a_rare_refund_makes_no_gap_small(refund, chance, unit, options):
    """The optimal CVaR is that of the careful action, a little less; that of the risky one is twice as much."""
    plan = prudent.solve(refunded(refund, chance, unit), 0.05, **options)
    least = 10 * unit
    assert plan.lower <= least <= plan.upper
    if plan.status in ("optimal", "within_gap"):
        assert plan.upper <= 1.001 * least
    else:
        assert plan.status == "gap_not_reached"
        assert ("may be 0" in plan.message) == (plan.lower <= 0)
    assert prudent.solve(refunded(0, chance, unit), 0.05, **options).status == "optimal"


def test_a_gap_that_takes_long_near_0_is_given_up_unless_it_was_asked_for():
    plan = prudent.solve(refunded(1e8, 1e-3, 2**0.5), 0.05)
    assert plan.status == "gap_not_reached" and any("give an absolute gap" in note for note in plan.notes)
    asked = prudent.solve(refunded(1e4, 1e-3, 2**0.5), 0.05, gap=0.1)
    assert asked.status == "within_gap" and asked.upper - asked.lower <= 0.1
    assert not any("give an absolute gap" in note for note in asked.notes)


def test_rounded_costs_are_optimal_only_with_the_lowest_expected_cost():
    """The tail is known at a coarse step; the expected cost at that tail only if no plan at all has a lower one."""
    spread, far = [(0.5, "g", 3**0.5), (0.5, "g", 2**0.5)], [(0.5, "g", 0), (0.5, "g", 5)]
    table = {"s": {"go": [(0.5, "t", 0), (0.5, "g", 10)]}, "t": {"spread": spread, "far": far}}
    gamble = {"gamble": [(0.7, "g", 0), (0.3, "g", 15)]}  # cheaper on average, with a worse tail
    for actions, status in (({}, "optimal"), (gamble, "within_gap")):
        model = prudent.build("s", {**table, "s": table["s"] | actions})
        plan = prudent.solve(model, 0.4, step=0.25)
        assert plan.upper - plan.lower <= 1e-8 * plan.upper == pytest.approx(1e-7)
        assert plan.status == status
        assert (plan.expected > plan.expected_lower + 1) == (status == "within_gap")


def test_a_method_that_does_not_aim_at_the_expected_cost_is_approximate_though_its_cvar_is_optimal():
    spread = [(0.5, "g", 5), (0.5, "g", 0)]
    table = {"s": {"go": [(0.5, "t", 0), (0.5, "g", 10)]}, "t": {"dear": [(1, "g", 5)], "spread": spread}}
    model = prudent.build("s", table)
    game = prudent.solve(model, 0.5, method=prudent.CvarWC(grid=(0, 0.5, 1)))
    assert game.upper - game.lower <= 1e-8 * game.upper
    assert (game.expected, game.status) == (7.5, "approximate")
    best = prudent.solve(model, 0.5, method=prudent.CvarEV(grid=(0, 0.5, 1), episodes=None))
    assert (best.expected, best.status) == (6.25, "optimal")  # no plan at all has a lower expected cost
    assert prudent.solve(model, 0.5).expected == 6.25
    assert prudent.solve(model, 1.0, method="expected").status == "optimal"
