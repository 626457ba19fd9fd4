"""Limits on models with costs as people have them: kept, with bounds that hold and a remedy that works."""

import math
import re
import tracemalloc
from functools import cache

import pytest

import prudent
from cents import grid, machines, maintenance
from prudent.runtime.limits import in_bytes

ALPHA = 0.05
MODELS = {"maintenance": maintenance, "machines": lambda: machines(8, 2), "grid": lambda: grid(8)}
GAPS = {"no gap": {}, "a gap": {"relative_gap": 1e-4}, "no gap at all": {"gap": 0}}
MEMORY = ("300kB", "1MB", "3MB", "10MB")
OTHER = 2_500_000
"""Bytes that are not tables: the model as it is prepared, what is known of its states."""


@cache
def model_of(kind: str) -> prudent.SSP:
    return MODELS[kind]()


@cache
def truth_of(kind: str) -> prudent.Plan:
    """Return the optimum."""
    found = prudent.solve(model_of(kind), ALPHA, gap=0)
    assert found.status == "optimal"
    return found


def holds(plan: prudent.Plan, truth: prudent.Plan) -> bool:
    """Return whether a plan has finite bounds that hold, and a CVaR."""
    known = math.isfinite(plan.lower) and math.isfinite(plan.upper) and math.isfinite(plan.cvar)
    return known and plan.lower <= truth.upper and truth.lower <= plan.upper


def reached(plan: prudent.Plan) -> bool:
    return plan.status in ("optimal", "within_gap")


def traced(work):
    """Return what work results in, and the most bytes that it held."""
    tracemalloc.start()
    try:
        return work(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("gap", GAPS)
@pytest.mark.parametrize("memory", MEMORY)
@pytest.mark.parametrize("kind", MODELS)
def test_memory_is_kept_and_the_amount_that_is_advised_will_do(kind, memory, gap):
    model, truth, how = model_of(kind), truth_of(kind), GAPS[gap]
    try:
        plan, peak = traced(lambda: prudent.solve(model, ALPHA, memory=memory, **how))
    except prudent.PrudentError as refused:
        assert gap == "no gap at all" and kind == "grid"  # nothing smaller than all tables gives the optimum
        step = float(re.search(r"--step; (\S+) would fit", str(refused))[1])
        assert holds(prudent.solve(model, ALPHA, memory=memory, step=step), truth)
        return
    assert holds(plan, truth)
    assert peak <= in_bytes(memory) + OTHER
    if not reached(plan):
        assert plan.status == "gap_not_reached"
        assert f"stopped at the {memory[:-2]} {memory[-2:]} limit; raise memory=" in plan.notes[-1]
        amount = re.search(r"about ([\d.]+ [kMG]B)", plan.notes[-1])
        assert amount or gap == "no gap at all"  # how much the optimum takes is known once bounds are close
        allowed = amount[1] if amount else "1GB"
        assert in_bytes(allowed) > in_bytes(memory)
        assert reached(prudent.solve(model, ALPHA, memory=allowed, **how))


class Clock:
    """A clock on which each look takes a while."""

    def __init__(self, tick: float) -> None:
        self.tick, self.time = tick, 0.0

    def perf_counter(self) -> float:
        self.time += self.tick
        return self.time


@pytest.mark.parametrize("gap", GAPS)
@pytest.mark.parametrize("tick", [0.003, 0.02])
@pytest.mark.parametrize("kind", MODELS)
def test_work_stops_soon_after_the_time_limit(kind, tick, gap, monkeypatch):
    model, truth, clock = model_of(kind), truth_of(kind), Clock(tick)
    monkeypatch.setattr("prudent.runtime.limits.time", clock)
    plan = prudent.solve(model, ALPHA, time_limit=1, **GAPS[gap])
    assert clock.time <= 1.2 + tick
    assert holds(plan, truth)
    if not reached(plan):
        assert "stopped at the time limit of 1 seconds; raise time_limit=" in plan.notes[-1]
        amount = re.search(r"about (\S+) seconds", plan.notes[-1])
        clock.time = 0.0
        again = prudent.solve(model, ALPHA, time_limit=float(amount[1]) if amount else 1000, **GAPS[gap])
        assert reached(again)


def test_a_plan_that_was_focused_is_saved_and_played_like_any_other(tmp_path):
    model = maintenance(6)
    plan = prudent.solve(model, 0.05)
    with pytest.MonkeyPatch.context() as patch:  # as if it were more than modest work
        patch.setattr("prudent.planning.refine.FEW", 10)
        patch.setattr("prudent.planning.refine.LITTLE", 10)
        focused = prudent.solve(model, 0.05)
    assert focused.policy.choices.rows is None and plan.policy.choices.rows is not None
    assert focused.cvar == pytest.approx(plan.cvar, rel=1e-12)
    prudent.save(focused, tmp_path / "plan.safetensors")
    again = prudent.load_plan(tmp_path / "plan.safetensors", model)
    runs = [prudent.simulate(model, each.policy, episodes=2000, seed=1).mean for each in (plan, focused, again)]
    assert runs[0] == runs[1] == runs[2]
    assert prudent.evaluate(model, again.policy).cvar(0.05) == pytest.approx(plan.cvar, rel=1e-12)


def test_ctrl_c_while_the_optimum_is_sought_returns_the_plan_there_is(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("prudent.planning.driver.focus_on", interrupted)
    plan = prudent.solve(maintenance(), 0.05)
    assert plan.status == "interrupted" and plan.upper - plan.lower <= 1e-3 * plan.upper
