"""Focus: what is swept where an optimal plan can be is the same, number by number, as in a sweep of everything."""

from dataclasses import replace

import numpy as np
import pytest

import prudent
from prudent.engine.prepare import prepare
from prudent.engine.sweep import focus
from prudent.engine.values.expected_cost import least_expected_cost
from prudent.engine.values.worst_case import least_worst_case
from prudent.methods.exact import exact
from prudent.models.rows import offsets
from prudent.runtime.limits import Limits
from strategies import examples, priced_model

FIELDS = ("cvar", "expected", "lower", "upper", "var", "worst")


class Poison:
    """NumPy, but fresh arrays hold what no sweep may use."""

    def __getattr__(self, name):
        return getattr(np, name)

    def empty(self, shape, dtype=np.float64):
        kind = np.dtype(dtype)
        return np.full(shape, np.nan if kind.kind == "f" else np.iinfo(kind).max, dtype=kind)


@pytest.fixture(autouse=True)
def poisoned(monkeypatch):
    """Whatever is looked at outside of the focus is not a number: each state has room of its own, with gaps between."""

    def rows(prepared, tiling, size, room):
        gap = int(prepared.cost.max(initial=0)) + 2
        whole = offsets(size + 2 * gap) + room + gap
        return whole[:-1], int(whole[-1]) + gap

    monkeypatch.setattr(focus, "np", Poison())
    monkeypatch.setattr(focus, "_rows", rows)


def met(policy):
    """The action of every pair of prepared state and budget left that runs meet."""
    prepared = policy.prepared
    queue, played = [(prepared.start, policy.level)], {}
    for s, b in queue:
        if (s, b) in played or prepared.is_goal[s]:
            continue
        a = int(prepared.action_start[s]) + policy.choices.at(s, b)
        played[s, b] = a
        outcomes = range(int(prepared.outcome_start[a]), int(prepared.outcome_start[a + 1]))
        queue += [(int(prepared.successor[o]), max(b - int(prepared.cost[o]), 0)) for o in outcomes]
    return played


def check(rng, kind, most_states):
    model = priced_model(rng, kind, acyclic=True, most_states=most_states)
    prepared, limits = prepare(model), Limits(10**9)
    if not prepared.cost.any():
        return
    largest = int(prepared.cost.max())
    for alpha in rng.choice([1.0, 0.99, 0.6, 0.3, 0.1, 0.01], 2, replace=False).tolist():
        whole = exact(prepared, alpha, limits)
        for ratio in (2, int(rng.integers(3, 40)), int(rng.integers(40, 400)), 7 * largest + 3):
            upper = whole.cvar * (1 + rng.choice([1e-12, 1e-3, 0.1, 1.0])) + rng.choice([0, 1e-9, 1, 30])
            found = focus.focus_on(prepared, alpha, float(upper), ratio, limits)
            if found is None:  # the coarse bounds are of no use
                assert ratio > 20
                continue
            part = exact(prepared, alpha, limits, focus=found)
            for name in FIELDS:
                assert getattr(part, name) == pytest.approx(getattr(whole, name), rel=1e-11, abs=1e-11), name
            assert part.policy.level == whole.policy.level and met(part.policy) == met(whole.policy)


@pytest.mark.parametrize("kind", ["cents", "thousandths", "sevenths"])
@pytest.mark.parametrize("seed", range(examples(4)))
def test_focused_and_whole_sweeps_are_equal(seed, kind):
    for number in range(8):
        check(np.random.default_rng([seed, number]), kind, most_states=5)
    check(np.random.default_rng([seed, 99]), kind, most_states=30)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cents", "thousandths", "sevenths"])
@pytest.mark.parametrize("seed", range(1000, 1170))
def test_focused_and_whole_sweeps_are_equal_on_five_hundred_models(seed, kind):
    check(np.random.default_rng(seed), kind, most_states=40)


def test_a_focus_without_a_budget_that_matters_would_be_noticed():
    prepared, limits = (
        prepare(priced_model(np.random.default_rng(3), "cents", acyclic=True, most_states=30)),
        Limits(10**9),
    )
    whole = exact(prepared, 0.1, limits)
    found = focus.focus_on(prepared, 0.1, whole.cvar * 1.01, 2, limits)
    assert found is not None
    s, b = next((s, b) for s, b in met(whole.policy) if s != prepared.start and found.low[s] <= b <= found.high[s])
    sweep = least_expected_cost(prepared), least_worst_case(prepared)
    assert not np.isnan(focus.focused_sweep(prepared, *sweep, found, limits).excess).any()
    less = replace(found, high=np.where(np.arange(prepared.n_states) == s, b - 1, found.high))
    assert np.isnan(focus.focused_sweep(prepared, *sweep, less, limits).excess).any()


@pytest.mark.parametrize("seed", range(examples(6)))
def test_a_gap_of_0_is_the_optimum_found_without_focus(seed, monkeypatch):
    """More than modest work is done only where the optimum can be."""
    rng = np.random.default_rng([seed, 7])
    model, alpha = priced_model(rng, "thousandths", acyclic=True, most_states=12), float(rng.choice([0.5, 0.1, 0.02]))
    whole = prudent.solve(model, alpha, gap=0)
    monkeypatch.setattr(prudent.planning.driver, "modest", lambda *_: False)
    part = prudent.solve(model, alpha, gap=0)
    for name in ("cvar", "expected", "lower", "upper", "var", "worst_case"):
        assert getattr(part, name) == pytest.approx(getattr(whole, name), rel=1e-11, abs=1e-11), name
    assert part.status == whole.status == "optimal"
