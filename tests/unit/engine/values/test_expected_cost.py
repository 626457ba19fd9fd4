"""Loops that are hardly ever left, ties that rounding hides, and other places where digits get lost."""

from fractions import Fraction

import numpy as np
import pytest

import prudent


def two_cycle(d):
    """s <-> t, left with chance d: by 'a' at cost 1, by 'b' at cost 2."""
    return {
        "s": {"b": [(1 - d, "t", 0), (d, "g", 2)], "a": [(1 - d, "t", 0), (d, "g", 1)]},
        "t": {"x": [(1.0, "s", 0)]},
        "z": {"x": [(0.5, "g", 0), (0.5, "s", 0)]},
    }


@pytest.mark.parametrize("method", ["exact", "expected", "worst-case"])
@pytest.mark.parametrize("d", [1e-3, 1e-9, 1e-12, 1e-14])
def test_the_better_way_out_is_found_however_rare(d, method):
    for start, expected in (("s", 1), ("z", 0.5)):
        plan = prudent.solve(prudent.build(start, two_cycle(d)), 0.5, method=method)
        assert (plan.cvar, plan.expected) == (pytest.approx(1, rel=1e-9), pytest.approx(expected, rel=1e-9))
        assert plan.lower <= 1 <= plan.upper
        assert plan.upper < 1 + 1e-6


@pytest.mark.parametrize("d", [1e-3, 1e-6, 1e-9, 1e-12])
def test_the_tail_decides_inside_a_loop(d):
    first = [(0.9, "g", 5), (0.06, "g", 10), (0.04, "g", 100)]
    second = [(0.9, "g", 0), (0.05, "g", 10), (0.05, "g", 100)]
    table = {
        "s": {name: [(1 - d, "t", 0), *((d * p, q, c) for p, q, c in o)] for name, o in (("a", first), ("b", second))},
        "t": {"x": [(1.0, "s", 0)]},
    }
    plan = prudent.solve(prudent.build("s", table), 0.05)
    assert plan.policy("s") == "a"
    assert (plan.cvar, plan.expected) == (pytest.approx(82, rel=1e-9), pytest.approx(9.1, rel=1e-9))
    assert plan.status == "optimal"


@pytest.mark.parametrize("n", [10, 100, 1000])
def test_ties_between_a_short_and_a_long_way_are_seen(n):
    cheap = [(0.9, "g", 0), (0.06, "g", 10), (0.04, "g", 100)]
    dear = [(0.9, "g", 5), (0.06, "g", 10), (0.04, "g", 100)]
    out = [(0.995, "g", 0), (0.005, "g", 1000)]

    def actions(state):
        if state == "g":
            return {}
        if state == "s":
            return {"A": [(1.0, "a", 0)], "B": [(1.0, (0, 0), 0)]}
        if state == "a":
            return {"go": cheap, "quit": out}
        if state[0] == n:
            return {"quit": out, "go": dear}
        return {"quit": out, "go": [(0.5, (state[0] + 1, 0), 0), (0.5, (state[0] + 1, 1), 0)]}

    plan = prudent.solve(prudent.build("s", actions), 0.05)
    assert plan.policy("s") == "A"
    assert plan.expected == pytest.approx(4.6, rel=1e-12)


@pytest.mark.parametrize(("n", "visits"), [(5, 10), (10, 100), (15, 1000), (20, 1000)])
def test_the_lower_bound_holds_where_gains_hide_below_the_margin(n, visits):
    """A chain of loops, in each of which 'sly' is better by less than any one step can tell; in rationals."""
    q, table = 1 / visits, {"e": {"x": [(0.5, "g", 1), (0.5, "g", 5)]}}
    for i in range(n):
        after, y = i + 1 if i < n - 1 else "e", q / 2 * (1 - 0.9e-13 * visits)
        base = [(1 - q, ("p", i), 0)]
        table[i] = {"dull": [*base, (q / 2, after, 0), (q / 2, "g", 0)], "sly": [*base, (y, after, 0), (q - y, "g", 0)]}
        table["p", i] = {"x": [(1.0, i, 0)] if i == 0 else [(1 - 1e-9, i, 0), (1e-9, 0, 0)]}

    def chances(outcomes):
        total = sum(Fraction(p) for p, _, _ in outcomes)
        return {t: Fraction(p) / total for p, t, _ in outcomes}

    a, b = Fraction(1), Fraction(0)  # the chance to reach e from the next one is a + b * (that from 0)
    for i in range(n - 1, -1, -1):
        out, back = chances(table[i]["sly"]), chances(table["p", i]["x"])
        on, loop = out[i + 1 if i < n - 1 else "e"], out["p", i]
        fall = back.get(0, Fraction(0)) if i else Fraction(0)
        a, b = on * a / (1 - loop * back[i]), (on * b + loop * fall) / (1 - loop * back[i])
    reach = a / (1 - b)
    alpha = float(0.75 * reach)
    plan = prudent.solve(prudent.build(0, table), alpha)
    assert Fraction(plan.lower) <= 1 + reach * 2 / Fraction(alpha)


def test_a_long_way_in_one_large_component():
    n = 1500

    def actions(state):
        if state == n:
            return {}
        options = {"jump": [(1.0, n, 2000)], "step": [(1.0, state + 1, 1)]}
        return {**options, "back": [(1.0, 0, 1)]} if state else options

    plan = prudent.solve(prudent.build(0, actions), 1.0, method="expected")
    assert plan.expected == pytest.approx(n)
    assert plan.status == "optimal"


@pytest.mark.parametrize("n", [200, 300])  # in a dense and in a large component
def test_chances_that_vanish_beside_1_still_lead_out(n):
    model = prudent.build(0, lambda s: {} if s == "g" else {"a": [(1.0, (s + 1) % n, 0), (1e-17, "g", 1)]})
    plan = prudent.solve(model, 0.5)
    assert (plan.cvar, plan.expected, plan.status) == (1, 1, "optimal")
    assert plan.lower <= 1 <= plan.upper < 1 + 1e-12


def test_a_cvar_is_never_above_the_largest_cost():
    chance = 1e-6 + 0.9e-12  # VaR forgives the rest; CVaR must not
    model = prudent.build("s", {"s": {"x": [(1 - chance, "g", 0), (chance, "g", 100)]}})
    for method in ("exact", "worst-case"):
        plan = prudent.solve(model, 1e-6, method=method)
        assert plan.cvar == pytest.approx(100, rel=1e-12)
        assert plan.cvar <= plan.upper
    assert prudent.evaluate(model, plan.policy).cvar(1e-6) <= 100


def test_costs_that_cancel_keep_their_rounding_in_the_bounds():
    cost = [0.3, -0.1, -0.2]
    model = prudent.build(0, lambda s: {"a": [(1.0, s + 1, cost[s % 3])]} if s < 900 else {})
    plan = prudent.solve(model, 0.5)
    truth = 300 * sum(Fraction(c) for c in cost)
    assert Fraction(plan.lower) <= truth <= Fraction(plan.upper)


def test_a_slow_loop_with_costs():
    model = prudent.build("s", {"s": {"a": [(1 - 1e-5, "s", 1), (1e-5, "g", 1)]}})
    plan = prudent.solve(model, 1.0, method="expected")
    assert plan.expected == pytest.approx(1e5, rel=1e-10)
    leave, stay = Fraction(1e-5), Fraction(1 - 1e-5)
    assert Fraction(plan.lower) <= (leave + stay) / leave <= Fraction(plan.upper)


def zigzag(seed):
    """One component of 66 to 74 states, nearly all moves free: values are 0 in places, and small in others."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(66, 75))
    table = {n: {}}
    for s in range(n):
        table[s] = {}
        for action in range(2):
            ahead = s + 1 if action == 0 else int(np.clip(s + rng.integers(-10, 11), 0, n))
            other = int(np.clip(s + rng.integers(-10, 11), 0, n))
            costs = (rng.random(2) < 0.1).astype(float).tolist()
            table[s][action] = [(0.5, ahead, costs[0]), (0.5, other, costs[1])]
    return prudent.build(0, table)


@pytest.mark.parametrize(("seed", "truth"), [(16, 2.0281), (545, 2.26455), (977, 0.0), (5481, 1.17155)])
def test_free_moves_in_a_large_component(seed, truth):
    plan = prudent.solve(zigzag(seed), 1.0, method="expected")
    assert plan.status == "optimal"
    assert plan.expected == pytest.approx(truth, rel=1e-5, abs=0)


def test_a_row_of_many_equal_outcomes_counts_them_all():
    n, eps = 4000, Fraction(np.finfo(float).eps)
    chance = np.full(n, 1 / n)
    chance[: n // 2] *= 1 + 1.6 * n * float(eps)  # the sum is as far from 1 as is allowed
    model = prudent.from_arrays([0, 1, 1], [0, n], chance, [0] * (n // 2) + [1] * (n // 2), [1.0] * n)
    plan = prudent.solve(model, 1.0, method="expected")
    total = sum(map(Fraction, chance.tolist()))
    truth = total / sum(map(Fraction, chance[n // 2 :].tolist()))
    assert plan.lower <= truth <= plan.upper
