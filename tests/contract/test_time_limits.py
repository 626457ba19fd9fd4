"""A time limit is a promise of an answer: on models with cycles of any size, and in time; Ctrl-C ends all work soon."""

import signal
import subprocess
import sys
import time
from math import inf, isnan
from pathlib import Path

import numpy as np
import pytest

import prudent
from cycles import spread, walk
from prudent.engine.prepare import prepare
from prudent.engine.values.expected_cost import least_expected_cost
from prudent.runtime.limits import Limits, now

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import limits as benchmark

SLACK = 6.0
"""Seconds beyond a limit that a busy machine may take."""


@pytest.fixture(scope="module")
def slow():
    """A walk whose lowest expected cost takes longer than most limits here."""
    return walk(20_000, 100)


@pytest.mark.parametrize("limit", [1e-9, 0.05, 0.5])
def test_a_solve_whose_lowest_expected_cost_takes_too_long_has_a_proper_plan_and_bounds(slow, limit):
    began = now()
    plan = prudent.solve(slow, 0.05, time_limit=limit)
    assert now() - began < limit + SLACK
    assert plan.status == "gap_not_reached"
    assert any("stopped at the time limit" in note for note in plan.notes)
    assert plan.lower < plan.upper
    prepared = plan.policy.prepared
    arc = prepared.playing(plan.policy.without_budget)[prepared.outcome_action]
    closer = prepared.is_goal.copy()
    while True:  # from every state the plan may reach a goal, so it surely does
        now_closer = closer.copy()
        now_closer[prepared.outcome_state[arc][closer[prepared.successor[arc]]]] = True
        if (now_closer == closer).all():
            break
        closer = now_closer
    assert closer.all()


@pytest.mark.parametrize("share", [0.0, 0.02, 0.1, 0.3, 0.6])
@pytest.mark.parametrize("make", [walk, spread])
def test_bounds_on_an_expected_cost_that_was_not_finished_hold(make, share):
    model = make(3000, whole=False)
    began = now()
    exact = least_expected_cost(prepare(model))
    prepared = prepare(model)
    found = least_expected_cost(prepared, Limits(10**9, max(share * (now() - began), 1e-9)))
    assert (found.lower <= exact.upper * (1 + 1e-12)).all() and (exact.lower <= found.upper * (1 + 1e-12)).all()
    alone = prepared.playing(found.choice)
    assert alone.any() and np.isfinite(found.value).all()


def test_a_plan_at_hand_does_not_say_what_it_does_not_know(slow):
    plan = prudent.solve(slow, 0.05, time_limit=1e-9)
    assert isnan(plan.cvar) and isnan(plan.var) and isnan(plan.expected) and plan.upper == inf
    assert any("surely reaches a goal" in note for note in plan.notes)
    assert plan.to_dict()["expected"] is None
    assert "unknown" in str(plan)


def test_a_coarse_step_of_our_own_joins_no_states_that_are_too_many():
    model = spread(8000)
    plan = prudent.solve(model, 0.05, step=300)
    assert plan.lower > plan.expected_lower and plan.upper < 1.2 * plan.lower
    found = prudent.solve(model, 0.05, objective=prudent.Exceedance(20_000), step=300).objective
    assert 0.0 <= found.lower <= found.upper <= 1.0
    simulated = prudent.simulate(model, plan, episodes=20_000, seed=1)
    assert simulated.cvar(0.05) > plan.lower - 5 * simulated.cvar_se(0.05)


def test_bounds_on_large_free_cycles_are_those_of_small_ones_solved_as_equations(monkeypatch):
    for model in (spread(200), walk(200, 10)):
        solved = prudent.solve(model, 0.05, step=300)
        with monkeypatch.context() as patch:
            patch.setattr("prudent.engine.values.bellman.SOLVED", 2)
            passed = prudent.solve(model, 0.05, step=300)
        assert abs(passed.lower - solved.lower) <= 1e-6 * solved.lower
        exact = prudent.solve(model, 0.05)
        assert passed.lower <= exact.upper and exact.lower <= passed.upper


def test_budgets_beyond_the_largest_asked_for_do_not_make_work():
    model = prudent.build("s", {"s": {"a": [(0.99998, "s", 1000), (0.00002, "g", 7)]}})
    unlimited, limited = (prudent.chances(model, [20, 48, 100], time_limit=limit) for limit in (None, 2))
    assert unlimited.step is None and limited.step is None
    assert (unlimited.chance == limited.chance).all()


def test_chances_at_the_time_limit_are_bounded(slow):
    for worst in (False, True):
        found = prudent.chances(slow, [100.0, 60_000.0, 1e6], worst=worst, time_limit=0.2)
        assert (found.lower >= 0).all() and (found.upper <= 1).all() and (found.lower <= found.upper).all()
        assert found.upper[0] == 0.0  # best luck exceeds it
    assert any("stopped at the time limit" in note for note in prudent.chances(slow, [6e4], time_limit=0.2).notes)


def test_few_states_with_many_levels_are_not_modest_work():
    table = {
        "a": {"x": [(0.5, "b", 0.19), (0.5, "c", 3.080091)], "y": [(1, "c", 0.8)]},
        "b": {"x": [(0.6, "a", 0.8), (0.4, "g", 4.3)]},
        "c": {"x": [(0.7, "a", 0.19), (0.3, "g", 0.8)]},
    }
    began = now()
    plan = prudent.solve(prudent.build("a", table), 0.05)
    assert now() - began < SLACK
    assert plan.status in ("optimal", "within_gap") and plan.step > 1e-4


def test_the_optimum_of_costs_without_a_common_step_is_sought_up_to_rounding_errors():
    table = {"s": {"a": [(0.5, "s", 2**0.5), (0.5, "g", 3**0.5)], "b": [(0.9, "g", 5**0.5), (0.1, "s", 7**0.5)]}}
    plan = prudent.solve(prudent.build("s", table), 0.05, gap=0)
    assert plan.status in ("optimal", "gap_not_reached") and 0 <= plan.upper - plan.lower <= 1e-6


ASK = """
import sys; sys.path[:0] = [{tests!r}]
import cycles, prudent
model = getattr(cycles, {kind!r})({n}, whole={whole})
{warm}
print("ready", flush=True)
try:
    {ask}
except KeyboardInterrupt:
    pass
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGINT for another process")
@pytest.mark.parametrize(
    "ask",
    [
        "prudent.solve(model, 0.05, relative_gap=1e-12)",
        "prudent.solve(model, 0.05, objective=prudent.Exceedance(30_000.0), relative_gap=1e-9)",
    ],
)
def test_ctrl_c_ends_a_solve_soon(ask):
    warm = ask.replace("model", "cycles.walk(300, whole=False)")[:-1] + ", time_limit=1)"
    script = ASK.format(tests=str(Path(__file__).parents[1]), kind="walk", n=5000, whole=False, warm=warm, ask=ask)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with subprocess.Popen([sys.executable, "-c", script], **pipes) as child:
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(timeout=1)
        child.send_signal(signal.SIGINT)
        began = time.monotonic()
        child.communicate(timeout=60)
        assert time.monotonic() - began < 2 + SLACK


@pytest.mark.parametrize("most", [1000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_every_verb_answers_within_its_limit(most):
    found = list(benchmark.answers(most))
    assert len(found) == (18 if most == 1000 else 45)
    for answer in found:
        assert answer.lower <= answer.upper, answer
        assert answer.seconds < 1.2 * answer.limit + SLACK, answer
