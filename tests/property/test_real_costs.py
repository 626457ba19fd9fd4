"""Costs without a common step: the bounds hold in exact rational arithmetic, on models of every shape."""

from fractions import Fraction

import numpy as np
import pytest

import prudent
from oracles import rational_cvar_of_reals
from strategies import examples

BATCH = 50


def noisy_table(rng: np.random.Generator) -> dict:
    """A small model with costs like 0.1 k + noise, some negative; every action may end the run at once."""
    n, cyclic, negative = int(rng.integers(1, 5)), rng.random() < 0.3, rng.random() < 0.5
    height = rng.normal(0, 0.4, n + 1) if negative else np.zeros(n + 1)
    height[n] = 0.0
    table: dict = {n: {}}
    for s in range(n):
        table[s] = {}
        for a in range(rng.integers(1, 4)):
            weights = rng.integers(1, 8, size=rng.integers(2, 4))
            inner = rng.integers(0, n + 1, len(weights) - 1) if cyclic else rng.integers(s + 1, n + 1, len(weights) - 1)
            low = 2 if cyclic else 0  # cycles cost something, so that totals are few
            costs = 0.1 * rng.integers(low, 9, len(weights)) + rng.choice([0, 1e-12, 1e-7, 0.01]) * rng.random()
            table[s][a] = [
                (w / weights.sum(), int(t), float(c + height[t] - height[s]))
                for w, t, c in zip(weights, [n, *inner], costs, strict=True)
            ]
    return table


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
        assert plan.status in ("optimal", "within_gap")
