"""Asked for the mean, it gives the mean: what the distribution would take is no reason to refuse."""

import math

import numpy as np
import pytest

import prudent
from prudent.engine.prepare import prepare
from prudent.engine.values.expected_cost import least_expected_cost
from prudent.methods.exact import SECOND
from prudent.policies.chain import forward
from prudent.policies.own_tail import UNFOLLOWED, own_tail
from prudent.policies.policy import BudgetPolicy
from prudent.runtime.limits import Limits, Stopped

COIN = prudent.build("s", {"s": {"try": [(0.5, "s", 3), (0.5, "g", 1)], "pay": [(1, "g", 9)]}})
"""Tries of mean 4; the worst quarter of runs fails twice and costs 6 + 4 on average."""


def afford(monkeypatch, work):
    for module in ("policies.own_tail", "methods.expected"):
        monkeypatch.setattr(f"prudent.{module}.AFFORDED", work)


def ring(size):
    """States that lead round and round at no cost, until chance ends it."""
    return prudent.build(
        0, lambda s: {} if s == "g" else {"go": [(0.5, (s + 1) % size, 0), (0.4, (s - 1) % size, 0), (0.1, "g", 1)]}
    )


def unknown(plan):
    return math.isnan(plan.cvar) and math.isnan(plan.var) and UNFOLLOWED in plan.notes


def test_a_free_cycle_of_any_size_has_a_mean():
    plan = prudent.solve(ring(5000), 0.1, method="expected")
    assert plan.expected == pytest.approx(1, rel=1e-12)
    assert unknown(plan)


@pytest.mark.parametrize("memory", [1, "0.01kB"])
def test_memory_is_needed_for_the_tail_alone(memory, tmp_path):
    plan = prudent.solve(COIN, 0.25, method="expected", memory=memory)
    assert plan.expected == pytest.approx(4, rel=1e-12)
    assert unknown(plan)
    assert plan.lower <= prudent.solve(COIN, 0.25).cvar and plan.upper >= 10
    assert plan.to_dict()["cvar"] is None and plan.to_dict()["var"] is None
    assert plan.table().rows[0][1] == "unknown"
    prudent.save(plan, tmp_path / "plan.safetensors")
    assert unknown(prudent.load_plan(tmp_path / "plan.safetensors", COIN))
    assert prudent.solve(COIN, 0.25, method="expected").cvar == pytest.approx(10, rel=1e-9)


def test_what_takes_too_much_work_is_left_out(monkeypatch):
    """Neither following the policy nor a sweep of its own is begun, or gone on with, beyond what is afforded."""
    afford(monkeypatch, 12)  # outcomes times levels
    monkeypatch.setattr("prudent.methods.expected.exact", lambda *_, **__: pytest.fail("was swept"))
    plan = prudent.solve(COIN, 0.01, method="expected")
    assert unknown(plan)
    assert plan.expected == pytest.approx(4, rel=1e-12)
    assert plan.upper >= prudent.evaluate(COIN, plan.policy).cvar(0.01)


def test_elimination_in_free_cycles_counts_as_work(monkeypatch):
    model = ring(60)
    assert not unknown(prudent.solve(model, 0.5, method="expected"))
    afford(monkeypatch, 60**3 // 3)
    assert unknown(prudent.solve(model, 0.5, method="expected"))


@pytest.mark.parametrize("reason", ["time", "interrupted"])
def test_stopped_in_the_distribution_the_mean_is_returned(reason, monkeypatch):
    def stopped(*_, **__):
        raise Stopped(reason, "following")

    monkeypatch.setattr("prudent.methods.expected.own_tail", stopped)
    plan = prudent.solve(COIN, 0.25, method="expected", time_limit=60)
    assert plan.expected == pytest.approx(4, rel=1e-12)
    assert math.isnan(plan.cvar) and math.isnan(plan.var)
    assert plan.status == ("interrupted" if reason == "interrupted" else "approximate")
    assert (reason == "time") == any("time limit of 60 seconds" in note for note in plan.notes)


def test_following_a_policy_looks_at_the_limits():
    prepared = prepare(COIN)
    least = least_expected_cost(prepared)
    policy = BudgetPolicy.of_states(prepared, least.choice)
    with pytest.raises(Stopped, match="following the policy takes longer than the time limit"):
        own_tail(policy, least, None, 0.25, limits=Limits(10**9, time_limit=1.0, began=-np.inf))
    assert own_tail(policy, least, None, 0.25, limits=Limits(10)).notes == (UNFOLLOWED,)


def test_large_costs_are_no_reason_to_doubt_a_distribution():
    """What is cut off has an error in proportion to the costs, and so has CVaR."""
    model = prudent.build("s", {"s": {"try": [(0.5, "s", 3 * 10**5), (0.5, "t", 10**5)]}, "t": {"b": [(1, "g", 7)]}})
    prepared = prepare(model)
    least = least_expected_cost(prepared)
    own = own_tail(BudgetPolicy.of_states(prepared, least.choice), least, None, 0.25, 0.25)
    assert own.error < SECOND
    assert own.cvar <= own.upper == pytest.approx(own.cvar, rel=1e-9)


def test_a_plan_of_unknown_tail_is_drawn_from_runs(monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr("prudent.policies.forwards.NUMBERS", 1)
    afford(monkeypatch, 1)
    plan = prudent.solve(COIN, 0.25, method="expected")
    assert unknown(plan)
    ax = prudent.plot.distribution(plan)
    assert "(simulated)" in ax.get_legend().get_texts()[0].get_text()


@pytest.mark.parametrize("goal", ["sure", "likeliest"])
def test_very_long_runs_of_a_small_model_are_not_followed_for_a_tail_that_nobody_asked_for(goal, monkeypatch):
    """A chain of Haddad and Monmege: halves of chance end at the middle again, so a run takes 1.5 million actions."""
    n, followed = 20, []

    def actions(s):
        if s in (0, 2 * n):
            return {}
        return {"go": [(0.5, s - 1 if s <= n else s + 1, 1), (0.5, n if s != n else n + 1, 1)]}

    def counted(policy, tail, **options):
        found = forward(policy, tail, **options)
        followed.append(options["most"] * len(policy.prepared.cost))
        return found

    monkeypatch.setattr("prudent.policies.own_tail.forward", counted)
    plan = prudent.solve(prudent.build(n, actions), 0.05, method="expected", goal=goal)
    assert plan.expected == pytest.approx(1_572_862, rel=1e-12) and unknown(plan)
    assert 0 < sum(followed) < 2**27  # 2^31 took 40 seconds and 2 GB
