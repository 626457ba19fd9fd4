"""Policies followed forwards, state by state and level by level, against matrices written out for each level."""

import numpy as np
import pytest
from hypothesis import given, settings

import prudent
from prudent.engine.values.worst_case import UNREACHED, worst_case_of
from prudent.policies import arrivals, forwards
from prudent.policies.forwards import followed, most_spent
from prudent.runtime.limits import Limits
from strategies import Case, at_the_start, cases, examples, random_raw, solved


def chosen(policy, t):
    """Return the action that each acting state plays with ``t`` levels spent."""
    prepared = policy.prepared
    acting = np.flatnonzero(~prepared.is_goal)
    return acting, prepared.action_start[acting] + policy.choices.each(acting, policy.level - t)


def by_hand(policy, layers, levels, weight):
    """Return what :func:`followed` does, from one matrix of free moves for each level."""
    prepared, n = policy.prepared, policy.prepared.n_states
    window = int(prepared.cost.max(initial=0)) + 1
    mass, played = np.zeros((levels + window, 3, n)), np.zeros(prepared.n_actions)
    mass[0, 0, prepared.start] = 1.0
    total = np.zeros((3, levels))
    for t in range(levels):
        acting, action = chosen(policy, t)
        source = np.repeat(acting, np.diff(prepared.outcome_start)[action])
        outcome = np.concatenate([np.arange(*prepared.outcome_start[a : a + 2]) for a in action])
        p, rest, target = prepared.probability[outcome], prepared.left_out[outcome], prepared.successor[outcome]
        cost, here = prepared.cost[outcome], np.zeros((3, n))

        def moved(some, here=here, p=p, rest=rest, source=source):
            m, mean, square = here[:, source[some]]
            q, r = p[some], rest[some]
            return q * m, q * (mean + m * r), q * (square + r * (2 * mean + m * r))

        free = cost == 0
        stays = np.eye(n)
        np.subtract.at(stays, (target[free], source[free]), p[free])
        for layer in range(3):
            extra = np.zeros(n)  # what free moves add to a moment from those below, found before
            here[layer] = 0.0
            np.add.at(extra, target[free], moved(free)[layer])
            here[layer] = np.linalg.solve(stays, mass[t, layer] + extra)
        total[:, t] = here[:, prepared.is_goal].sum(axis=1)
        played[action] += here[0, acting]
        for layer, each in enumerate(moved(~free)):
            np.add.at(mass[:, layer], (t + cost[~free], target[~free]), each)
    later = mass[levels:]
    return total[:layers], played, later.sum(axis=2).T[:layers], later[:, 0].sum(axis=0), later[:, 0] @ weight


def most_by_hand(policy):
    """Return the most levels that a run can use, from the set of states where it can be on each level."""
    prepared, worst = policy.prepared, worst_case_of(policy.prepared, policy.without_budget)
    here, most = [{prepared.start}] + [set() for _ in range(policy.level)], 0
    for t in range(policy.level):
        action = dict(zip(*(each.tolist() for each in chosen(policy, t)), strict=True))
        waiting = list(here[t])
        while waiting:
            s = waiting.pop()
            most = max(most, t)
            for o in range(*prepared.outcome_start[action[s] : action[s] + 2] if s in action else (0, 0)):
                r, spent = int(prepared.successor[o]), t + int(prepared.cost[o])
                if spent >= policy.level:
                    most = max(most, spent + int(worst[r]))
                elif r not in here[spent]:
                    here[spent].add(r)
                    waiting += [r] if spent == t else []
    return np.inf if most >= UNREACHED else most


def padded(row, n):
    """Return a row with zeros after it."""
    return np.append(row, np.zeros((*row.shape[:-1], max(n - row.shape[-1], 0))), axis=-1)


def assert_same(plan):
    for _, policy in plan.policy.parts:
        prepared = policy.prepared
        layers, weight = 3 if prepared.scale.rounded else 1, np.arange(1.0, prepared.n_states + 1)
        weight[prepared.is_goal] = 0.0
        for most in (policy.level + 2, 3, 0):
            total, played, arriving, there, ahead = by_hand(policy, layers, most, weight)
            found = followed(policy, layers, most, 0.0, weight)
            levels = found.total.shape[1]
            assert levels == most or (found.missing == 0 and levels <= max(most, 1))
            assert padded(found.total, most) == pytest.approx(padded(total, levels), rel=1e-12, abs=1e-15)
            assert found.played == pytest.approx(played, rel=1e-12, abs=1e-15)
            if found.missing == 0:
                assert arriving[0].sum() <= (1e-15 if most else 1)
                continue
            assert found.missing == pytest.approx(arriving[0].sum(), rel=1e-12)
            acting = ~prepared.is_goal
            assert found.there[acting] == pytest.approx(there[acting], rel=1e-12, abs=1e-15)
            for one, other in ((found.arriving, arriving), (found.ahead, ahead)):
                n = max(one.shape[-1], other.shape[-1])
                assert padded(one, n) == pytest.approx(padded(other, n), rel=1e-12, abs=1e-15)
        if policy.level > 0:
            assert most_spent(policy) == most_by_hand(policy)


def by_level(call, *about):
    """Call a function so that policies are followed level by level, whatever the model, if there is any level."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forwards, "_by_state", at_the_start)
        return call(*about)


@settings(max_examples=examples(60))
@given(cases())
def test_by_level_and_by_hand_tell_the_same(case):
    by_level(assert_same, solved(case, 0.3))


@settings(max_examples=examples(40))
@given(cases(acyclic=True))
def test_by_state_and_by_hand_tell_the_same(case):
    assert_same(solved(case, 0.3))


@settings(max_examples=examples(20))
@given(cases(free=True, acyclic=False))
def test_round_free_cycles_as_well(case):
    assert_same(solved(case, 0.1))


@pytest.mark.parametrize("step", [None, 7])
def test_with_moments_of_what_rounding_left_out(step):
    plan = prudent.solve(prudent.domains.inventory_control(stages=3), 0.1, step=step)
    assert_same(plan)
    by_level(assert_same, plan)


@pytest.mark.parametrize("least_cost", [0, 1])
def test_any_number_of_threads_finds_the_same_bits(monkeypatch, least_cost):
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
