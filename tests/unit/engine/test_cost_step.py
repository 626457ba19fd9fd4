from fractions import Fraction

import numpy as np
import pytest

import prudent
from prudent.engine.cost_step import Lattice, find_lattice, fine_lattice, nice_step
from prudent.engine.prepare import prepare
from prudent.errors import PrudentError


@pytest.mark.parametrize(
    ("costs", "step", "multiples"),
    [
        ([0.5, 2, 3.5], 0.5, [1, 4, 7]),
        ([0.01, 19.99, 3.3], 0.01, [1, 1999, 330]),
        ([1 / 3, 2 / 3, 1.0], 1 / 3, [1, 2, 3]),
        ([0.1 + 0.2, 0.1], 0.1, [3, 1]),
        ([300 * 0.01, -299 * 0.01], 0.01, [300, -299]),
        ([6, 10, -4, 0], 2, [3, 5, -2, 0]),
        ([np.pi, 2 * np.pi, np.pi / 3], np.pi / 3, [3, 6, 1]),
        ([0, 0], 1, [0, 0]),
        ([1e20, 3e20], 1e20, [1, 3]),
        ([7.0], 7, [1]),
    ],
)
def test_steps_are_found(costs, step, multiples):
    lattice, whole = find_lattice(np.array(costs, dtype=float))
    assert lattice.step == pytest.approx(step, rel=1e-15)
    assert whole.tolist() == multiples
    assert lattice.deviation <= 1e-15 * max(map(abs, costs))
    if min(costs) < 0 and lattice.deviation > 0:
        assert lattice.relative == np.inf
    else:
        assert lattice.relative <= 2.0**-48
        exact = [k * Fraction(lattice.step).limit_denominator(1000) for k in multiples]
        if step != np.pi / 3:  # else no fraction is meant
            assert all(
                abs(Fraction(c) - k) <= Fraction(lattice.relative) * k for c, k in zip(costs, exact, strict=True)
            )


@pytest.mark.parametrize(
    "costs", [[1, np.sqrt(2)], [0.1, np.pi, np.e], [1, 1 + 1e-9], [1e-12, 1], [1e-320, 1], [1e200, 1]]
)
def test_no_step_is_made_up(costs):
    assert find_lattice(np.array(costs, dtype=float)) is None


def test_values_are_the_nearest_floats():
    assert Lattice(0.1, 0.0).value(np.array([3, 7])).tolist() == [0.3, 0.7]
    assert Lattice(0.01, 0.0).value(1999) == 19.99
    assert Lattice(5.0, 0.0).value(3) == 15


def test_a_fine_lattice_holds_costs_closely():
    cost = np.array([2**0.5, -np.pi, 0.0, 1e-3])
    lattice, whole, parts = fine_lattice(cost, 0.01, 1000)
    assert lattice.step * parts == 0.01
    for c, n in zip(cost.tolist(), whole.tolist(), strict=True):  # in exact arithmetic
        assert abs(Fraction(c) - n * Fraction(lattice.step)) <= Fraction(lattice.deviation)
    assert lattice.deviation < 1e-11
    assert int(np.abs(whole).max()) * 1001 < 2**62  # totals along a path through all states fit


@pytest.mark.parametrize("step", [1e-3, 0.037, 0.25, 1.0, 2.9])
def test_a_fine_lattice_does_not_depend_on_the_step(step):
    cost = np.array([0.375, -3.0, 2**0.5])
    lattice, whole, _ = fine_lattice(cost, 0.01, 10)
    other, same, others = fine_lattice(cost, step, 10)
    assert (lattice, whole.tolist()) == (other, same.tolist())
    assert others * other.step == pytest.approx(step, rel=1e-12)


@pytest.mark.parametrize("step", [0.0, -1.0, float("nan"), float("inf")])
def test_steps_are_checked(step):
    with pytest.raises(PrudentError, match="must be a number above 0"):
        prepare(prudent.domains.figure_2(), step)


def test_steps_too_small_for_the_costs_are_refused():
    with pytest.raises(PrudentError, match=r"it must be at least \S+ for these costs"):
        fine_lattice(np.array([1.5]), 1e-17, 3)
    with pytest.raises(PrudentError, match="use another unit for the costs"):
        fine_lattice(np.array([1e-299]), 1e-300, 3)


def test_nice_steps_are_round_and_not_above():
    for most in np.geomspace(1e-7, 1e7, 500):
        step = nice_step(most)
        assert 0.74 * most <= step <= most * 1.00001
        assert len(f"{step:g}".replace(".", "").strip("0").split("e")[0]) <= 2
