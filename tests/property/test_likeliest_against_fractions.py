"""The likeliest goal where chances are tiny or almost 1, against rational arithmetic over all stationary policies."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import prudent
from prudent.planning.likeliest import likeliest
from strategies import examples

Raw = dict[int, list[list[tuple[float, int, int]]]]


def rare(rng: np.random.Generator) -> Raw:
    """A random model with a goal, n, and a trap, n + 1; some outcomes are rare, and some actions occur twice."""
    n = int(rng.integers(1, 5))
    raw: Raw = {n: [], n + 1: [[(1.0, n + 1, 0)]]}
    for s in range(n):
        raw[s] = []
        for _ in range(rng.integers(1, 3)):
            size = int(rng.integers(1, 4))
            weights = rng.integers(1, 9, size) * 10.0 ** -rng.choice([0, 0, 3, 9, 13, 40], size=size)
            targets, costs = rng.choice([n + 1, n, *range(n)], size=size), rng.integers(0, 3, size)
            row = zip(weights / weights.sum(), targets, costs, strict=True)
            raw[s].append([(float(p), int(t), int(c)) for p, t, c in row])
        if rng.random() < 0.3:
            raw[s].append([(p, t, c + 1) for p, t, c in raw[s][0]])
    return raw


def chances(raw: Raw, policy: tuple[int, ...]) -> list[Fraction]:
    """The chance of reaching the goal from every state under one policy: the least solution, by elimination."""
    n = len(policy)
    rows = [[(Fraction(p), t) for p, t, _ in raw[s][policy[s]]] for s in range(n)]
    rows = [[(p / sum(q for q, _ in row), t) for p, t in row] for row in rows]
    leads = {n}
    while more := {s for s in range(n) if s not in leads and any(t in leads for _, t in rows[s])}:
        leads |= more
    inside = [s for s in range(n) if s in leads]
    matrix = [[Fraction(s == r) - sum((p for p, t in rows[s] if t == r), Fraction()) for r in inside] for s in inside]
    right = [sum((p for p, t in rows[s] if t == n), Fraction()) for s in inside]
    for i in range(len(inside)):
        for k in range(len(inside)):
            if k != i:
                f = matrix[k][i] / matrix[i][i]
                matrix[k] = [a - f * b for a, b in zip(matrix[k], matrix[i], strict=True)]
                right[k] -= f * right[i]
    known = {s: right[i] / matrix[i][i] for i, s in enumerate(inside)}
    return [known.get(s, Fraction()) for s in range(n)]


def greatest(raw: Raw) -> list[Fraction]:
    """The greatest chance from every state, over all stationary policies."""
    n = len(raw) - 2
    every = [chances(raw, policy) for policy in product(*(range(len(raw[s])) for s in range(n)))]
    return [max(column) for column in zip(*every, strict=True)]


def surely_ends(raw: Raw, policy: tuple[int, ...], best: list[Fraction]) -> bool:
    """Whether a run of a policy surely reaches the goal or a state without hope."""
    n = len(policy)
    ends = {n, n + 1, *(s for s in range(n) if best[s] == 0)}
    moves = {s: {t for p, t, _ in raw[s][policy[s]] if p > 0} for s in range(n)}
    seen, leads = {0}, set(ends)
    while more := {t for s in seen - ends for t in moves[s]} - seen:
        seen |= more
    while more := {s for s in range(n) if s not in leads and moves[s] & leads}:
        leads |= more
    return seen <= leads


@pytest.mark.parametrize("seed", range(examples(60)))
def test_chances_have_all_their_digits_and_the_plans_that_are_left_attain_them(seed):
    rng = np.random.default_rng([seed, 35])
    for _ in range(4):
        raw = rare(rng)
        best, n = greatest(raw), len(raw) - 2
        if best[0] == 0:
            continue
        model = prudent.build(0, {s: dict(enumerate(actions)) for s, actions in raw.items()})
        try:
            among, found = likeliest(model, 9)
        except prudent.PrudentError as error:  # rather than a wrong number
            assert "cycles are hardly ever left" in str(error)
            continue
        chance = Fraction(found)
        assert abs(chance - best[0]) <= Fraction(1e-12) * best[0] and (chance < 1) == (best[0] < 1)
        states, actions = among.names
        kept = {(states[s], actions[a]) for a, s in enumerate(among.action_state.tolist())}
        left = [[a for a in range(len(raw[s])) if best[s] == 0 or (s, a) in kept] for s in range(n)]
        for policy in product(*left):
            if surely_ends(raw, policy, best):
                got = chances(raw, policy)[0]
                assert abs(got - best[0]) <= Fraction(1e-8) * min(best[0], 1 - best[0])
        for s, a in kept:
            if s in range(n) and best[s] > 0 and a == 0 and len(raw[s]) > 1:
                twins = [b for b, row in enumerate(raw[s]) if [o[:2] for o in row] == [o[:2] for o in raw[s][0]]]
                assert all((s, b) in kept for b in twins)


def test_a_chance_below_all_digits_of_1_is_an_answer():
    for a, b in ((1e-13, 9e-13), (1e-18, 3e-18), (1e-200, 2e-200)):
        table = {0: {"a": [(a, 1, 0), (1 - a, 2, 1)], "b": [(b, 1, 0), (1 - b, 2, 1)]}, 2: {"wait": [(1, 2, 0)]}}
        plan = prudent.solve(prudent.build(0, table), 0.2, goal="likeliest", dead_end_cost=1)
        assert (plan.goal_probability, plan.policy(0)) == (pytest.approx(b, rel=1e-15), "b")


def test_plans_that_risk_little_are_not_sure():
    for chance in (1e-14, 1e-40):
        row = [(1 - chance, "goal", 0), (chance, "trap", 0)]
        table = {0: {"risk": row, "go": [(1, 1, 1)]}, 1: {"go": [(1, "goal", 1)]}, "trap": {"wait": [(1, "trap", 0)]}}
        sure = prudent.solve(prudent.build(0, table), 1, goal="likeliest")
        assert (sure.goal_probability, sure.policy(0), sure.expected) == (1, "go", 2)
        table[0]["go"] = [(1 - chance / 2, 1, 1), (chance / 2, "trap", 0)]
        plan = prudent.solve(prudent.build(0, table), 1, goal="likeliest", dead_end_cost=0)
        assert plan.policy(0) == "go" and plan.goal_probability == pytest.approx(1 - chance / 2, rel=1e-15)
        assert plan.goal_probability < 1
        assert plan.table().rows[0][1].startswith("1 - ")


@pytest.mark.parametrize("leave", [1e-9, 1e-12, 1e-14])
def test_actions_are_equal_only_if_they_are_where_cycles_are_hardly_ever_left(leave):
    def row(good: float) -> list[tuple[float, object, int]]:
        return [(1 - leave, 1, 0), (good * leave, "goal", 1), ((1 - good) * leave, "trap", 0)]

    table = {
        0: {"a": row(0.5), "b": row(0.4), "c": row(0.5)},
        1: {"back": [(1, 0, 0)]},
        "trap": {"wait": [(1, "trap", 0)]},
    }
    among, chance = likeliest(prudent.build(0, table), 5)
    assert chance == pytest.approx(0.5, rel=1e-9)
    kept = {among.names[1][a] for a in np.flatnonzero(among.action_state == 0)}
    assert kept == {"a", "c"}


def test_cycles_that_are_left_too_rarely_for_floats_are_refused():
    stay = [(1, 1, 0), (2e-27, "goal", 0), (1e-27, "trap", 0)]  # to go round 1e27 times is best: a chance of 2/3
    table = {0: {"stay": stay}, 1: {"stay": [(1, 0, 0)], "go": [(0.6, "goal", 0), (0.4, "trap", 0)]}}
    with pytest.raises(prudent.PrudentError, match="is not known to 9 digits, since cycles are hardly ever left"):
        likeliest(prudent.build(0, {**table, "trap": {"wait": [(1, "trap", 0)]}}), 0)


def test_long_walks_against_the_drift_keep_their_digits():
    """The gambler's ruin: from 1 of n, with a chance of p to win, ((q/p) - 1) / ((q/p)^n - 1)."""
    n, p = 300, 0.25
    table = {s: {"play": [(p, s + 1, 1), (1 - p, s - 1, 1)]} for s in range(1, n)}
    table[0] = {"broke": [(1, 0, 0)]}
    assert likeliest(prudent.build(1, table), 1)[1] == pytest.approx(2 / (3.0**n - 1), rel=1e-12)
