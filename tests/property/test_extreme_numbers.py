"""Subnormal, tiny and huge numbers, against rational arithmetic: an answer that is true, or a refusal."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import prudent
from strategies import examples

LIMITS = {"memory": "200MB", "time_limit": 0.2}

Table = dict[int, dict[int, list[tuple[float, object, float]]]]

CHANCES = [1, 1, 1, 1, 1e-3, 1e-13, 1e-100, 1e-160, 1e-200, 1e-300, 1e-310, 5e-324]
COSTS = [0, 0, 1, 2, 1, 3, 0.1, 1e-300, 5e-324, 1e300, 1e150, 1e16, -1, 1e-160]


def extreme(rng: np.random.Generator) -> Table:
    """A random model of a few states, in which cycles may be left with any probability."""
    n, table = int(rng.integers(1, 5)), {}
    pool = rng.choice(len(COSTS), size=int(rng.integers(1, 4)))
    for s in range(n):
        table[s] = {}
        for a in range(int(rng.integers(1, 3))):
            weight = np.array([CHANCES[i] for i in rng.integers(0, len(CHANCES), int(rng.integers(1, 4)))], dtype=float)
            weight[0] = 1
            table[s][a] = [
                (float(p), "g" if rng.random() < 0.35 else int(rng.integers(0, n)), float(COSTS[rng.choice(pool)]))
                for p in weight / weight.sum()
            ]
    return table


def mean(table: Table, policy: tuple[int, ...]) -> Fraction | None:
    """The expected cost of a stationary policy from state 0, or None if a run may never end."""
    rows = {}
    for s, a in enumerate(policy):
        row = [(Fraction(p), t, Fraction(c)) for p, t, c in table[s][a] if p > 0]
        rows[s] = [(p / sum(q for q, _, _ in row), t, c) for p, t, c in row]
    seen, leads = {0}, {"g"}
    while more := {t for s in seen if s != "g" for _, t, _ in rows[s]} - seen:
        seen |= more
    while more := {s for s in rows if s not in leads and any(t in leads for _, t, _ in rows[s])}:
        leads |= more
    if not seen <= leads:
        return None
    inside = [s for s in rows if s in seen]
    matrix = [
        [Fraction(s == r) - sum((p for p, t, _ in rows[s] if t == r), Fraction()) for r in inside] for s in inside
    ]
    right = [sum((p * c for p, _, c in rows[s]), Fraction()) for s in inside]
    for i in range(len(inside)):  # the matrix is diagonally dominant: no pivot is 0
        for k in range(len(inside)):
            if k != i and matrix[k][i] != 0:
                f = matrix[k][i] / matrix[i][i]
                matrix[k] = [a - f * b for a, b in zip(matrix[k], matrix[i], strict=True)]
                right[k] -= f * right[i]
    return right[0] / matrix[0][0]


@pytest.mark.parametrize("seed", range(examples(40)))
def test_there_is_a_true_answer_or_a_refusal(seed):
    rng = np.random.default_rng([seed, 16])
    for _ in range(6):
        table = extreme(rng)
        try:
            model = prudent.build(0, table)
        except prudent.ModelError as error:
            assert "no goal" in str(error)
            continue
        means = [mean(table, policy) for policy in product(*(range(len(table[s])) for s in table))]
        best = min((m for m in means if m is not None), default=None)
        for ask in (
            lambda model: prudent.solve(model, 0.1, **LIMITS),
            lambda model: prudent.chances(model, [0, 1, 5], **LIMITS),
            lambda model: prudent.chances(model, [0, 1, 5], worst=True, **LIMITS),
            lambda model: prudent.solve(model, 1, method="expected", goal="likeliest", dead_end_cost=0, **LIMITS),
        ):
            try:
                ask(model)
            except prudent.PrudentError:
                pass  # nothing else may be raised, and no warning
        try:
            plan = prudent.solve(model, 1, method="expected", memory="200MB")
        except prudent.PrudentError:
            continue
        noise = Fraction(1e-9) * abs(best) + Fraction(5e-324)
        assert np.isneginf(plan.lower) or Fraction(plan.lower) <= best + noise
        assert np.isposinf(plan.upper) or Fraction(plan.upper) >= best - noise


@pytest.mark.parametrize("chance", [5e-324, 1e-310, 1e-300])
def test_cycles_at_no_cost_that_are_hardly_ever_left_are_refused(chance):
    alone = prudent.build("s", {"s": {"wait": [(1, "s", 0), (chance, "g", 1)]}})
    with pytest.raises(prudent.PrudentError, match=r"state 's', action 'wait' of model: .* larger probabilities"):
        prudent.solve(alone, 0.1)
    both = {"s": {"wait": [(1, "t", 0), (chance, "g", 1)]}, "t": {"wait": [(1, "s", 0), (chance, "g", 2)]}}
    for ask in (prudent.solve, prudent.chances):
        with pytest.raises(
            prudent.PrudentError, match=r"state '[st]' of model leads to a cycle at no cost that is left"
        ):
            ask(prudent.build("s", both), 0.1 if ask is prudent.solve else [1])
    drawn = prudent.build({"s": 0.5, "g": 0.5}, both)
    with pytest.raises(prudent.PrudentError, match=r"state '[st]' of model leads to a cycle"):
        prudent.solve(drawn, 0.1)


def test_tiny_probabilities_without_such_cycles_are_answered():
    table = {0: {"a": [(1, 1, 1), (5e-324, "g", 1)]}, 1: {"b": [(1, "g", 0)]}}
    assert prudent.solve(prudent.build(0, table), 0.1).cvar == 1
    rare = {"s": {"wait": [(1, "t", 0), (1e-280, "g", 1)]}, "t": {"wait": [(1, "s", 0), (1e-280, "g", 2)]}}
    assert prudent.solve(prudent.build("s", rare), 1).cvar == pytest.approx(1.5)


def test_an_expected_cost_beyond_floats_in_the_users_units_is_refused():
    model = prudent.build(0, {0: {"try": [(1, 0, 1e150), (1e-160, "g", 1e16)]}})
    with pytest.raises(prudent.PrudentError, match="the lowest expected cost of model is larger than any float"):
        prudent.solve(model, 1, method="expected")
