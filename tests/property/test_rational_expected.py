"""Bounds on the least expected cost of small, hard models against exact rational policy iteration."""

import numpy as np
import pytest

import prudent
from brackets import brackets, widest
from oracles import Raw, rational_expected
from prudent.engine.values import bellman as rounds
from strategies import examples


def model_of(raw: Raw) -> prudent.SSP:
    """Build a raw model with its states in order (the first chance step reaches all of them)."""
    table = {s: {i: o for i, o in enumerate(actions)} for s, actions in raw.items()}
    acting = [s for s in raw if raw[s]]
    return prudent.build({s: 1 / len(acting) for s in acting}, table.__getitem__)


def width(raw: Raw) -> float:
    model, truth = model_of(raw), rational_expected(raw)
    names = [model.state(i) for i in range(model.n_states)]
    return widest(*brackets(model), [truth[s] for s in names])


def sticky(rng: np.random.Generator, n: int, chance: float) -> Raw:
    """Every action leads to the goal, but with about this chance only; some actions are nearly equal."""
    raw: Raw = {n: []}
    for s in range(n):
        raw[s] = []
        for _ in range(rng.integers(1, 4)):
            targets = rng.choice(n, size=min(n, 2), replace=False)
            leave = chance * float(rng.choice([1.0, 1.0, 1 + 1e-6, 1.5]))
            share = [1 - leave] if len(targets) == 1 else [p := float(rng.choice([0.5, 0.25, 1e-3])), 1 - leave - p]
            costs = rng.integers(1, 5, size=3)
            stays = [(p, int(t), int(c)) for p, t, c in zip(share, targets, costs, strict=False)]
            raw[s].append([*stays, (leave, n, int(costs[2]))])
    return raw


def uphill(rng: np.random.Generator, n: int, chance: float) -> Raw:
    """A chain that falls back unless luck has it climb, with this chance; a second action is slightly different."""
    raw: Raw = {n: []}
    for s in range(n):
        first = [(1 - chance, max(s - 1, 0), 1), (chance, s + 1, int(rng.integers(1, 4)))]
        up = chance * float(rng.choice([1.0, 1 + 1e-9, 0.9]))
        raw[s] = [first, [(1 - up, 0, 1), (up, s + 1, int(rng.integers(1, 4)))]]
    return raw


@pytest.fixture(params=[256, 1], ids=["dense", "band"])
def room(request, monkeypatch):
    monkeypatch.setattr(rounds, "DENSE", request.param)


@pytest.mark.usefixtures("room")
@pytest.mark.parametrize("chance", [1e-3, 1e-6, 1e-9, 1e-12])
def test_loops_that_are_hardly_ever_left(chance):
    rng = np.random.default_rng(7)
    widths = [width(sticky(rng, int(rng.integers(2, 7)), chance)) for _ in range(examples(25))]
    assert max(widths) < 1e-12


@pytest.mark.usefixtures("room")
@pytest.mark.parametrize(("n", "chance"), [(6, 0.3), (6, 0.1), (6, 0.01), (4, 1e-3), (2, 1e-6), (2, 1e-9), (2, 1e-12)])
def test_ways_uphill(n, chance):
    rng = np.random.default_rng(8)
    assert max(width(uphill(rng, n, chance)) for _ in range(examples(10))) < 1e-11


@pytest.mark.usefixtures("room")
@pytest.mark.parametrize(("n", "chance"), [(3, 1e-9), (4, 1e-9), (6, 1e-5), (6, 1e-9), (3, 1e-12)])
def test_beyond_what_two_floats_hold_the_bounds_still_hold(n, chance):
    rng = np.random.default_rng(9)
    for _ in range(examples(2)):  # values from 1e27 on: bounds may be wide, never wrong
        raw = uphill(rng, n, chance)
        model, truth = model_of(raw), rational_expected(raw)
        lower, upper = brackets(model)
        names = [model.state(i) for i in range(model.n_states)]
        assert truth[0] > 10**26
        widest(lower, upper, [truth[s] for s in names])
        assert all(low >= n - s for s, low in zip(names, lower, strict=True))  # as many steps as luck needs
