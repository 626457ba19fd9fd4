"""The bounds hold in exact rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest

import prudent
from oracles import rational_cvar
from strategies import Case, random_raw


@pytest.mark.parametrize("alpha", [1.0, 0.3, 0.05, 1e-4])
@pytest.mark.parametrize("seed", range(25))
def test_bounds_enclose_the_rational_optimum(seed, alpha):
    rng = np.random.default_rng(seed)
    raw = random_raw(rng, int(rng.integers(1, 6)))
    case = Case(raw, {0: 1.0}, float(rng.choice([1.0, 0.25, 3.0])))
    plan = prudent.solve(case.model, alpha)
    truth = rational_cvar(raw, 0, Fraction(alpha)) * Fraction(case.step)
    assert Fraction(plan.lower) <= truth <= Fraction(plan.upper)
    assert plan.status == "optimal"
    assert plan.upper - plan.lower <= 1e-10 * plan.upper  # narrow enough to mean something


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("step", [0.1, 0.01, 1 / 3])
def test_bounds_hold_for_steps_that_floats_cannot_hold(seed, step):
    rng = np.random.default_rng(seed)
    raw = random_raw(rng, 4)
    plan = prudent.solve(Case(raw, {0: 1.0}, step).model, 0.2)
    truth = rational_cvar(raw, 0, Fraction(0.2))
    for meant in (
        Fraction(step),
        Fraction(step).limit_denominator(1000),
    ):  # the float, and what it stands for
        assert Fraction(plan.lower) <= truth * meant <= Fraction(plan.upper)
    assert plan.status == "optimal"
