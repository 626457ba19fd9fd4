"""A policy's own tail: what it costs, what it surely costs at most, and when that is not known."""

import importlib
from fractions import Fraction
from math import ceil

import numpy as np
import pytest

import prudent
from prudent.engine.prepare import prepare
from prudent.engine.values.expected_cost import least_expected_cost
from prudent.policies.own_tail import UNFOLLOWED, own_tail
from prudent.policies.policy import BudgetPolicy

LOOP = prudent.build("s", {"s": {"try": [(0.5, "s", 1), (0.5, "g", 1)]}})
REAL = prudent.build(
    "s", {"s": {"a": [(0.5, "t", 0.3), (0.5, "t", 1.9)]}, "t": {"b": [(0.75, "g", 0.4), (0.25, "g", 2.7)]}}
)


def tail_of(model, alpha, most=None, step=None):
    prepared = prepare(model, step)
    least = least_expected_cost(prepared)
    return prepared.scale, own_tail(BudgetPolicy.of_states(prepared, least.choice), least, most, alpha)


@pytest.mark.parametrize("most", [None, 4.0, 1e30])
def test_tries_of_one_half_have_a_known_tail(most):
    """The worst quarter fails twice, and needs two more tries on average."""
    scale, own = tail_of(LOOP, 0.25, most)
    assert (scale.in_units(own.cvar), own.var) == (pytest.approx(4, rel=1e-12), 2)
    assert scale.in_units(own.mean) == pytest.approx(2, rel=1e-12)
    assert own.cvar < own.upper == pytest.approx(own.cvar, rel=1e-12)
    assert 0 < own.error < 1e-12
    assert own.steps >= 2 * (1 - 1e-9)


def cvar_of(totals, alpha):
    rest, found = Fraction(alpha), Fraction(0)
    for cost, chance in sorted(totals, reverse=True):
        found, rest = found + cost * min(chance, rest), rest - min(chance, rest)
    return float(found / Fraction(alpha))


@pytest.mark.parametrize("alpha", [1.0, 0.3, 0.125, 0.05])
@pytest.mark.parametrize("step", [0.5, 0.3])
def test_rounded_costs_are_bounded_by_what_is_charged_at_most(alpha, step):
    """Above the best of luck, 0.7, the first action costs 0 or 1.6, and the second 0 or 2.3: each run is a group."""
    luck, size = Fraction(7, 10), Fraction(str(step))
    each = [((Fraction(c) / 10, Fraction(d) / 10), Fraction(p, 8)) for c in (0, 16) for d, p in ((0, 3), (23, 1))]
    truth = cvar_of([(luck + sum(costs), p) for costs, p in each], alpha)
    charged = cvar_of([(luck + size * sum(ceil(cost / size) for cost in costs), p) for costs, p in each], alpha)
    scale, own = tail_of(REAL, alpha, step=step)
    assert scale.rounded
    assert scale.in_units(own.cvar) <= truth + 1e-9
    assert truth < scale.in_units(own.upper) == pytest.approx(truth, rel=1e-4)
    assert scale.in_units(own.upper) < charged
    assert scale.in_units(own.mean) == pytest.approx(0.5 * 2.2 + 0.75 * 0.4 + 0.25 * 2.7, rel=1e-9)


def test_a_lie_about_the_most_is_seen_through():
    assert tail_of(LOOP, 0.01, most=1.0)[1].cvar == pytest.approx(tail_of(LOOP, 0.01)[1].cvar, rel=1e-12)


def test_what_cannot_be_followed_far_enough_is_unknown(monkeypatch):
    monkeypatch.setattr(importlib.import_module("prudent.policies.own_tail"), "AFFORDED", 6)
    _, own = tail_of(LOOP, 0.01)
    assert np.isnan([own.var, own.mean, own.steps]).all() and own.cvar == own.upper == np.inf
    assert own.notes == (UNFOLLOWED,)


def test_a_draw_of_two_has_the_tail_of_both():
    plan = prudent.solve(prudent.domains.figure_2(), alpha=0.1, max_cvar=12, randomise=True)
    prepared = plan.policy.prepared
    own = own_tail(plan.policy, least_expected_cost(prepared), None, 0.1)
    parts = [own_tail(part, least_expected_cost(prepared), None, 0.1) for _, part in plan.policy.parts]
    shares = [share for share, _ in plan.policy.parts]
    assert own.mean == pytest.approx(sum(share * part.mean for share, part in zip(shares, parts, strict=True)))
    assert own.steps == pytest.approx(sum(share * part.steps for share, part in zip(shares, parts, strict=True)))
    assert prepared.scale.in_units(own.cvar) == pytest.approx(12)
