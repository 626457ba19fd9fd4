"""Least expected costs of awkward models against rational arithmetic, closed forms and Storm's exact engine.

At alpha 1 the CVaR is the mean, so that all of a plan's bounds are about the same number.
"""

import importlib
from collections.abc import Callable
from fractions import Fraction
from math import inf, isfinite, nextafter

import pytest

import prudent
from awkward import (
    asynchronous_election,
    detours,
    doors,
    election,
    election_mean,
    exploding_blocks,
    fallback,
    fallback_mean,
    gambler,
    gambler_mean,
    shared_coin,
    sticky,
    uphill,
)
from brackets import brackets, widest
from rational_truth import certify, least_values, policy_values, rational_rows

CLOSE = Fraction(1, 10**9)
MORE, LESS = nextafter(0.5, 1), nextafter(0.5, 0)

# Small enough for elimination in fractions, or of a simple shape.
ELIMINATED: dict[str, Callable[[], prudent.SSP]] = {
    "coin, 2 processes, K=1": lambda: shared_coin(2, 1),
    "coin, 2 processes, K=4": lambda: shared_coin(2, 4),
    "election in step": lambda: election(3, 4),
    "election in any order": lambda: election(3, 3, ordered=False),
    "asynchronous election": lambda: asynchronous_election(3),
    "uphill": lambda: uphill(30),
    "uphill, steep": lambda: uphill(20, 0.1),
    "uphill, choices": lambda: uphill(40, choices=True),
    "uphill, choices, long": lambda: uphill(100, choices=True),
    "loops left with 1e-3": lambda: sticky(70, 1e-3),
    "loops left with 1e-6": lambda: sticky(20, 1e-6),
    "loops left with 1e-9": lambda: sticky(70, 1e-9),
    "fallback, side by side": lambda: fallback(),
    "fallback, in turn": lambda: fallback(in_turn=True),
    "gambler, fair": lambda: gambler(100, 0.5),
    "gambler, unfair": lambda: gambler(100, 0.47),
    "gambler, bold": lambda: gambler(45, 0.45, bold=True),
    "3 blocks": lambda: exploding_blocks(3, 80, seed=11),
    "3 slippery blocks": lambda: exploding_blocks(3, 5000, slip=0.25, seed=11),
    "doors": lambda: doors(8, 12, 3),
    "doors, an ulp better": lambda: doors(8, 12, 3, nudge=MORE),
    "doors, an ulp worse": lambda: doors(8, 12, 3, nudge=LESS),
    "detours": lambda: detours(10, 4),
    "detours, long": lambda: detours(35, 5),
}

# Larger ones: values are proved to be within 1e-9.
CERTIFIED: dict[str, Callable[[], prudent.SSP]] = {
    **{f"coin, 2 processes, K={k}": lambda k=k: shared_coin(2, k) for k in (2, 3, 5, 6, 7, 8, 9)},
    "coin, 3 processes, K=1": lambda: shared_coin(3, 1),
    "coin, 3 processes, K=2": lambda: shared_coin(3, 2),
    "election in step, 4 processes": lambda: election(4, 4),
    "election in any order, 4 processes": lambda: election(4, 2, ordered=False),
    "asynchronous election, 4 processes": lambda: asynchronous_election(4),
    **{f"blocks, price {p}": lambda p=p: exploding_blocks(4, p, seed=7) for p in (80, 1020, 5000)},
    **{f"slippery blocks, price {p}": lambda p=p: exploding_blocks(4, p, slip=0.25, seed=3) for p in (80, 5000)},
    "doors": lambda: doors(20, 40, 4),
    "doors, an ulp better": lambda: doors(20, 40, 4, nudge=MORE),
    "doors, an ulp worse": lambda: doors(20, 40, 4, nudge=LESS),
}
LARGE: dict[str, Callable[[], prudent.SSP]] = {
    **{f"coin, 3 processes, K={k}": lambda k=k: shared_coin(3, k) for k in range(3, 10)},
    **{f"coin, 4 processes, K={k}": lambda k=k: shared_coin(4, k) for k in (1, 2, 3, 4)},
    **{f"election, 4 processes, {k} ids": lambda k=k: election(4, k, ordered=False) for k in (3, 4)},
    **{f"5 blocks, price {p}": lambda p=p: exploding_blocks(5, p, slip=0.1, seed=1) for p in (80, 5000)},
    "doors, many": lambda: doors(60, 100, 5, nudge=MORE),
}
SMALL = ("coin, 2 processes, K=1", "asynchronous election", "3 blocks", "3 slippery blocks", "doors", "detours")


@pytest.fixture(autouse=True)
def mean_alone(monkeypatch):
    """Let nobody wait for distributions of very long runs."""
    for module in ("policies.own_tail", "methods.expected"):
        monkeypatch.setattr(importlib.import_module(f"prudent.{module}"), "AFFORDED", 2**22)


def planned(model: prudent.SSP) -> tuple[prudent.Plan, list[int]]:
    """Return the plan for the least mean, and the number of its action in every state."""
    plan = prudent.solve(model, 1.0, method="expected")
    return plan, (plan.policy.model_actions[0] - model.action_start[:-1]).tolist()


def is_true_of(plan: prudent.Plan, low: Fraction, high: Fraction) -> None:
    """Check mean, bounds and status of a plan for alpha 1 against an optimum between these numbers."""
    assert low * (1 - CLOSE) <= plan.expected <= high * (1 + CLOSE)
    assert 0 < plan.expected_lower <= high and 0 < plan.lower <= high
    assert low <= plan.upper < inf
    gap = (plan.upper - plan.lower) / plan.upper
    assert plan.status == ("optimal" if gap <= 1e-8 else "approximate")


@pytest.mark.parametrize("name", ELIMINATED)
def test_elimination_in_fractions(name):
    model = ELIMINATED[name]()
    plan, choice = planned(model)
    rows = rational_rows(model)
    truth = least_values(rows, choice)
    is_true_of(plan, truth[model.first()], truth[model.first()])
    assert widest(*brackets(model), truth) < 1e-6
    own = policy_values(rows, choice)
    assert all(mine <= least * (1 + CLOSE) for mine, least in zip(own, truth, strict=True))


def proved(model: prudent.SSP) -> None:
    plan, choice = planned(model)
    lower, upper = brackets(model)
    value = [(low + high) / 2 for low, high in zip(lower, upper, strict=True)]
    certify(rational_rows(model), choice, value, CLOSE)
    least = value[model.first()]
    is_true_of(plan, least * (1 - CLOSE), least * (1 + CLOSE))
    assert all(high - low <= CLOSE * high for low, high in zip(lower, upper, strict=True))


@pytest.mark.parametrize("name", CERTIFIED)
def test_certificates_in_fractions(name):
    proved(CERTIFIED[name]())


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_certificates_of_large_models(name):
    proved(LARGE[name]())


CLOSED = {
    **{f"coin, {n} processes, K={k}": (shared_coin, (n, k), 3 * (n * k) ** 2) for n, k in ((2, 9), (3, 3), (4, 1))},
    **{f"election, {n}, {k}": (election, (n, k), election_mean(n, k)) for n, k in ((3, 2), (3, 3), (4, 2), (4, 3))},
    "fallback": (fallback, (), fallback_mean()),
    "fallback, longer": (fallback, (70, 0.25), fallback_mean(70, 0.25)),
    "gambler, fair": (gambler, (200, 0.5), gambler_mean(200, 0.5, 100)),
    "gambler, unfair": (gambler, (200, 0.4), gambler_mean(200, 0.4, 100)),
    "loops": (sticky, (30, 1e-7), Fraction(2 * 30) / Fraction(1e-7)),
    "doors": (doors, (30, 30, 3), 30 * 31),
}


@pytest.mark.parametrize("name", CLOSED)
def test_closed_forms(name):
    make, arguments, mean = CLOSED[name]
    plan, _ = planned(make(*arguments))
    assert plan.expected == pytest.approx(float(mean), rel=1e-12)


def test_expected_steps_are_as_many_as_described():
    assert float(fallback_mean()) == pytest.approx(8.5298e9, rel=1e-4)
    assert float(fallback_mean(in_turn=True)) == pytest.approx(1.6790e19, rel=1e-4)


@pytest.mark.parametrize(
    ("make", "arguments", "states"),
    [
        (shared_coin, (2, 2), 272),
        (shared_coin, (2, 4), 528),
        (shared_coin, (2, 8), 1_040),
        (asynchronous_election, (3,), 364),
        (asynchronous_election, (4,), 3_172),
        pytest.param(shared_coin, (4, 2), 22_656, marks=pytest.mark.slow),
        pytest.param(asynchronous_election, (5,), 27_299, marks=pytest.mark.slow),
    ],
)
def test_as_many_states_as_in_prisms_case_studies(make, arguments, states):
    assert make(*arguments).n_states == states  # prismmodelchecker.org/casestudies


@pytest.mark.parametrize("name", SMALL)
def test_the_exact_method_finds_the_same_mean(name):
    model = ELIMINATED[name]()
    least, _ = planned(model)
    plan = prudent.solve(model, 1.0, time_limit=5)
    assert plan.expected == pytest.approx(least.expected, rel=1e-9)
    tail = prudent.solve(model, 0.5, method="exact", time_limit=5)
    cheap = prudent.solve(model, 0.5, method="expected")
    assert tail.expected >= least.expected * (1 - 1e-9)
    assert cheap.expected == pytest.approx(least.expected, rel=1e-9)
    assert cheap.lower <= tail.upper and tail.lower <= cheap.upper
    assert isfinite(tail.upper)


@pytest.mark.parametrize(
    "name", ["coin, 2 processes, K=5", "asynchronous election, 4 processes", "blocks, price 1020", "doors"]
)
def test_storms_exact_engine(name, tmp_path):
    stormpy = pytest.importorskip("stormpy")
    model = CERTIFIED[name]()
    prudent.save(model, tmp_path / "model.drn")
    storm = stormpy.build_model_from_drn[stormpy.Rational](tmp_path / "model.drn")
    asked = stormpy.parse_properties('R{"cost"}min=? [F "goal"]')[0]
    exact = stormpy.model_checking(storm, asked, only_initial_states=True).get_value(storm.initial_states[0])
    assert planned(model)[0].expected == pytest.approx(float(exact), rel=1e-12)
