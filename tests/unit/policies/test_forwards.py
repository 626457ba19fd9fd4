"""Mass pulled to where it arrives, on any number of threads, is the mass pushed on from where it is."""

import numpy as np
import pytest
from hypothesis import given, settings

import prudent
from prudent.policies import arrivals, forwards
from prudent.policies.forwards import followed, most_spent
from prudent.runtime.limits import Limits
from strategies import Case, cases, examples, random_raw, solved

DIRECT = {"MANY": 0, "FEW": 2**62}
"""Mass is pulled, level by level, whatever the size."""


def pulled(call, **constants):
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (DIRECT | constants).items():
            patch.setattr(forwards, name, value)
        return call()


def assert_same(plan):
    for _, policy in plan.policy.parts:
        layers, weight = 3 if policy.prepared.scale.rounded else 1, np.arange(1.0, policy.prepared.n_states + 1)
        weight[policy.prepared.is_goal] = 0.0
        for most, tolerance in [(None, 1e-13), (policy.level + 2, 1e-13), (3, 0.0), (0, 0.0), (None, 1e-3)]:

            def both(policy=policy, layers=layers, most=most, tolerance=tolerance, weight=weight):
                return followed(policy, layers, most, tolerance, weight), most_spent(policy)

            (one, longest), (other, found) = pulled(both, MANY=2**62), pulled(both)
            assert (other.levels, found) == (one.levels, longest)
            assert other.total == pytest.approx(one.total, rel=1e-13, abs=1e-15)
            assert other.played == pytest.approx(one.played, rel=1e-13, abs=1e-15)
            assert other.missing == pytest.approx(one.missing, rel=1e-12, abs=1e-300)
            assert (other.missing == 0) == (one.missing == 0)
            acting = ~policy.prepared.is_goal
            assert other.there[acting] == pytest.approx(one.there[acting], rel=1e-12, abs=1e-15)
            for name in ("arriving", "ahead"):
                long, short = getattr(one, name), getattr(other, name)
                n = min(long.shape[-1], short.shape[-1])
                assert short[..., :n] == pytest.approx(long[..., :n], rel=1e-12, abs=1e-15)
                assert not long[..., n:].any() and not short[..., n:].any()


@settings(max_examples=examples(60))
@given(cases())
def test_pulled_and_pushed_tell_the_same(case):
    assert_same(solved(case, 0.3))


@settings(max_examples=examples(20))
@given(cases(free=True, acyclic=False))
def test_round_free_cycles_as_well(case):
    assert_same(solved(case, 0.1))


@pytest.mark.parametrize("step", [None, 7])
def test_with_moments_of_what_rounding_left_out(step):
    assert_same(prudent.solve(prudent.domains.inventory_control(stages=3), 0.1, step=step))


@pytest.mark.parametrize("least_cost", [0, 1])
def test_any_number_of_threads_finds_the_same_bits(monkeypatch, least_cost):
    monkeypatch.setattr(forwards, "MANY", 0)
    monkeypatch.setattr(arrivals, "ENOUGH", 1)
    monkeypatch.setattr(arrivals, "PART", 16)
    rng = np.random.default_rng(1)
    plan = prudent.solve(Case(random_raw(rng, 300, least_cost=least_cost), {0: 1.0}, 1.0).model, 0.1)
    found = []
    for threads in (1, 2, 5):
        limits = Limits.of(None, None, threads=threads)
        each = followed(plan.policy, 1, 300, 1e-13, limits=limits)
        found.append([each.total.tobytes(), each.played.tobytes(), each.missing, most_spent(plan.policy, limits)])
    assert found[0] == found[1] == found[2]
