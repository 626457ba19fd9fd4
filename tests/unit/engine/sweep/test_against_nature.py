"""Against nature: outcome lists that actions share, threads, and budgets that are skipped."""

import numpy as np
import pytest

import prudent
from prudent.engine.prepare import prepare
from prudent.engine.sweep import against_nature
from prudent.engine.sweep.against_nature import shared
from prudent.engine.uncertain import uncertain
from prudent.methods.robust import swept_against
from prudent.runtime.limits import Limits

MODEL = prudent.domains.inventory_control(stages=4, capacity=6, demand=4)


def laid_out(width: float = 0.4):
    p = MODEL.probability
    spare = width * p * (1 - p)
    plain = uncertain(prepare(MODEL), prudent.Intervals(p - spare, p + spare))
    return plain, shared(plain)


def swept(model, threads: int = 1):
    return swept_against(model, 0.1, Limits.of(None, None, threads=threads)).swept


def test_lists_that_actions_share_change_nothing():
    plain, short = laid_out()
    assert short.n_nodes > plain.n_nodes
    assert len(short.sets.cost) < len(plain.sets.cost) / 2
    one, other = swept(plain), swept(short)
    for name in ("excess", "low", "mean"):
        assert getattr(other, name) == pytest.approx(getattr(one, name), rel=1e-12, abs=1e-12), name


def test_any_number_of_threads_gives_the_same_bits(monkeypatch):
    monkeypatch.setattr(against_nature, "ENOUGH", 1)
    model = laid_out()[1]
    one, other = swept(model), swept(model, threads=3)
    for name in ("excess", "low", "mean", "choice"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name


def test_lists_alike_but_for_an_upper_bound_are_not_shared():
    table = {
        "s": {"a": [(0.3, "g", 1), (0.3, "g", 2), (0.4, "g", 3)], "b": [(0.3, "g", 2), (0.3, "g", 3), (0.4, "g", 4)]}
    }
    model = prudent.build("s", table)
    p = model.probability
    high = p + np.array([0.1, 0.1, 0.1, 0.2, 0.1, 0.1])
    apart = uncertain(prepare(model), prudent.Intervals(p - 0.1, high))
    assert shared(apart) is apart
    alike = uncertain(prepare(model), prudent.Intervals(p - 0.1, p + 0.1))
    assert shared(alike).n_nodes == alike.n_nodes + 1
