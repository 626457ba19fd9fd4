"""Costs without a common step: the bounds hold in exact rational arithmetic, on models of every shape."""

from fractions import Fraction

import numpy as np
import pytest

import prudent
from oracles import rational_cvar_of_reals
from strategies import examples, noisy_table

BATCH = 50


def exact_rows(table: dict) -> dict:
    """The model that the floats stand for: each row divided by its exact sum."""
    rows = {}
    for s, actions in table.items():
        rows[s] = []
        for outcomes in actions.values():
            total = sum(Fraction(p) for p, _, _ in outcomes)
            rows[s].append([(Fraction(p) / total, t, Fraction(c)) for p, t, c in outcomes])
    return rows


@pytest.mark.parametrize("batch", range(examples(4)))
def test_bounds_enclose_the_rational_optimum(batch):
    rng = np.random.default_rng([7, batch])
    done = 0
    while done < BATCH:
        table, alpha = noisy_table(rng), float(rng.choice([1.0, 0.5, 0.2, 0.05]))
        truth = rational_cvar_of_reals(exact_rows(table), 0, Fraction(alpha))
        if truth is None:
            continue
        done += 1
        plan = prudent.solve(prudent.build(0, table), alpha, relative_gap=float(rng.choice([1e-1, 1e-2, 1e-3])))
        assert Fraction(plan.lower) <= truth <= Fraction(plan.upper), (table, alpha)
        assert plan.lower <= plan.cvar <= plan.upper
        assert plan.expected_lower <= plan.expected
        assert plan.status in ("optimal", "within_gap") or plan.upper - plan.lower < 1e-14  # an answer of nothing
