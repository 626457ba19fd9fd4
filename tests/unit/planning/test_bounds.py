"""Corners in which bounds once failed to hold, or said more than they knew."""

import numpy as np
import pytest

import prudent
from prudent.engine.prepare import prepare
from prudent.errors import Defect
from prudent.planning.bounds import Bracket, Target, bracket


def loop(stay: float = 0.99, cost: float = 2**0.5) -> prudent.SSP:
    """A loop left with little chance: totals are many times the largest cost."""
    return prudent.build("s", {"s": {"go": [(1 - stay, "g", 1.1), (stay, "s", cost)]}, "g": {}})


@pytest.mark.parametrize("method", ["exact", "expected", "cvar-wc", "cvar-ev"])
def test_totals_far_above_the_largest_cost(method):
    model, alpha = loop(), 0.5
    plan = prudent.solve(model, alpha, method=method, step=None if method == "exact" else 0.05)
    # n rounds with probability 0.01 * 0.99^n, at 1.1 + n * sqrt(2)
    rounds = np.arange(5000)
    chance = 0.01 * 0.99**rounds
    truth = prudent.policies.distribution.Distribution(1.1 + rounds * 2**0.5, chance, mean=1.1 + 99 * 2**0.5)
    assert plan.lower <= truth.cvar(alpha) <= plan.upper
    assert plan.cvar == pytest.approx(truth.cvar(alpha), rel=1e-5)
    assert plan.var == pytest.approx(truth.var(alpha), rel=1e-2)
    assert plan.expected == pytest.approx(truth.mean, rel=1e-12)
    result = prudent.evaluate(model, plan.policy)
    assert result.values.min() == pytest.approx(1.1)
    runs = prudent.simulate(model, plan.policy, episodes=20_000)
    assert abs(runs.mean - truth.mean) <= 4 * runs.mean_se
    stopped = prudent.solve(model, alpha, time_limit=1e-9)
    assert stopped.lower <= truth.cvar(alpha) <= stopped.upper


@pytest.mark.parametrize(("large", "status"), [(1e9, "within_gap"), (1e15, "gap_not_reached")])
def test_a_large_cost_that_no_plan_pays_does_not_widen_what_optimal_means(large, status):
    table = {"s": {"a": [(0.5, "g", 0.1), (0.5, "g", 2**0.5)], "b": [(1, "g", large)]}}
    plan = prudent.solve(prudent.build("s", table), 0.2)
    assert plan.lower <= 2**0.5 <= plan.upper
    assert (plan.upper - plan.lower <= 1e-3 * plan.upper) == (status == "within_gap")
    assert plan.status == status


def test_a_forecast_takes_no_room_of_its_own(monkeypatch):
    model = prudent.build("s", {"s": {"a": [(0.5, "s", 1.0), (0.5, "g", 2**0.5)]}, "g": {}})
    with monkeypatch.context() as patched:
        patched.setattr("prudent.engine.sweep.estimate.TRIAL", 100)  # too little for a single level
        report = prudent.check(prudent.domains.betting_game())
        assert np.isnan(report.forecast.seconds)
        assert ("solving takes", "unknown", "about, at alpha 0.05") in report.table().rows
    assert prudent.check(model, step=1e-9).forecast.seconds > 60
    assert prudent.check(model, step=1e-9).forecast.memory > 10**10
    assert prudent.check(model, alpha=1e-300).ok
    with pytest.raises(prudent.PrudentError, match="step is -1; it must be a number above 0"):
        prudent.check(model, step=-1)


def test_free_loops_are_paid_for_in_the_upper_bound():
    # 0.1 + 0.2 - 0.3 is 5.6e-17 in floats, and a run goes round a thousand million times.
    rare = 1e-9
    table = {
        "A": {"i": [(1, "B", 0.1)]},
        "B": {"i": [(1, "C", 0.2)]},
        "C": {"i": [(1, "A", -0.3)], "x": [(1 - rare, "A", -0.3), (rare, "g", 1.0)]},
    }
    assert prudent.solve(prudent.build("A", table), 1.0).upper >= 1.3 + 2.7755e-8


def test_a_step_of_another_kind_of_number():
    model = prudent.build("s", {"s": {"a": [(0.5, "g", 1.0), (0.5, "g", 2**0.5)]}, "g": {}})
    plan = prudent.solve(model, 0.5, step=np.float32(0.1))
    assert type(plan.upper) is float
    assert plan.upper >= 2**0.5


def test_an_agent_takes_the_outcome_that_is_nearest():
    small = 1e-12
    table = {
        "s": {"a": [(0.5, "t", small), (0.5, "t", 60 * small)]},
        "t": {"bold": [(0.9, "g", small), (0.1, "g", 100 * small)], "safe": [(1, "g", 45 * small)]},
    }
    policy = prudent.solve(prudent.build("s", table), 0.05).policy
    agent = policy.start()
    agent.observe("t", 60 * small)
    assert agent.action == policy("t", 60 * small) == "safe"


def test_a_policy_is_followed_whatever_the_costs_it_never_meets():
    table = {"s": {"a": [(0.5, "g", 1), (0.5, "g", 3)], "b": [(1, "g", 10**9)]}}
    plan = prudent.solve(prudent.build("s", table), 0.2)
    assert plan.var == pytest.approx(3, abs=1e-8)
    assert prudent.evaluate(plan.model, plan.policy).values.tolist() == pytest.approx([1, 3], abs=1e-8)


def test_what_is_known_of_the_mean_bounds_a_solve_that_was_stopped():
    plan = prudent.solve(prudent.domains.betting_game(), 0.2, time_limit=1e-9)
    assert plan.lower == pytest.approx(58.381353, abs=1e-6)
    assert plan.upper == pytest.approx(97.2609, abs=1e-4)


def test_a_total_one_rounding_below_the_least_is_taken_for_it():
    model = prudent.build("s", {"s": {"a": [(1, "t", 0.1 + 2**0.5)]}, "t": {"b": [(0.5, "g", 1.0), (0.5, "g", 2.3)]}})
    policy = prudent.solve(model, 0.5).policy
    assert policy("t", np.nextafter(0.1 + 2**0.5, 0)) == "b"


def test_a_checkpoint_that_cannot_be_written_is_refused_at_once(tmp_path):
    for path, why in (
        *((each, r"^checkpoint is .*; it must be the path of a file$") for each in (5, b"x", "a\0b")),
        ("/proc/none", "^/proc/none: cannot be written"),
        (tmp_path, "cannot be read: it is not a plain file"),
    ):
        with pytest.raises(prudent.PrudentError, match=why):
            prudent.solve(prudent.domains.figure_2(), 0.5, checkpoint=path)


def test_a_model_without_cycles_that_looks_far_back_has_a_forecast(monkeypatch):
    def shop(state):
        week, left = state
        if week == 6:
            return {}
        return {n: [(0.5, (week + 1, k), 1 + (997 * n + 4999 * k) % 5000) for k in (n, left)] for n in range(8)}

    monkeypatch.setattr("prudent.engine.sweep.estimate.TRIAL", 10**6)  # less than all of its levels take
    found = prudent.check(prudent.build((0, 3), shop)).forecast
    assert found.memory > 10**6
    assert 0 < found.seconds < np.inf


def test_bounds_that_cross_are_a_defect_of_ours_and_no_mistake_of_the_users():
    prepared = prepare(prudent.domains.figure_2())
    with pytest.raises(
        Defect, match=r"figure-2: the lower bound .* is above the upper bound .* please report it"
    ) as caught:
        bracket(prepared, 5.0, 4.0, 0.0, 0.5)
    assert isinstance(caught.value, AssertionError) and not isinstance(caught.value, prudent.PrudentError)


@pytest.mark.parametrize("method", ["expected", "worst-case"])
def test_a_distribution_that_ends_before_var_is_not_believed(method, monkeypatch):
    """More than alpha of the runs are under way where following ends: the tail comes from the sweep instead."""
    model = prudent.build("s", {"s": {"go": [(0.01, "g", 1), (0.99, "s", 1)]}, "g": {}})
    truth = prudent.solve(model, 0.2, method=method)
    for limit in ("WORK", "LEVELS"):
        monkeypatch.setattr(f"prudent.policies.forwards.{limit}", 20)
    plan = prudent.solve(model, 0.2, method=method)
    assert plan.upper == pytest.approx(truth.upper, rel=1e-9)
    assert plan.expected == pytest.approx(100, rel=1e-9)


def test_an_infinite_bound_is_within_no_gap():
    bracket = Bracket(48.0, np.inf, np.inf)
    for target in (Target(), Target(relative_gap=0.5), Target(gap=1e9)):
        assert target.status(bracket, aims=True, interrupted=False) == "gap_not_reached"
