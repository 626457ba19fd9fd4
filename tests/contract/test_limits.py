"""Limits: refused before anything is taken, or stopped with bounds that hold; and a way to go on."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
import tracemalloc
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

import prudent
from plans import same_policy
from prudent.engine.prepare import prepare
from prudent.engine.sweep.backends import BACKENDS
from prudent.engine.sweep.estimate import sweep_bytes
from prudent.engine.sweep.tiles import TileSweep
from prudent.methods.exact import exact
from prudent.runtime.limits import Limits, in_bytes, shown_bytes

GB = 10**9


@pytest.fixture(scope="module")
def game():
    return prudent.domains.betting_game()


@pytest.fixture(scope="module")
def roads():
    return prudent.domains.autonomous_navigation()


def same(one: prudent.Plan, other: prudent.Plan) -> bool:
    """Whether two plans are the same to the last bit."""
    alike = {**one.to_dict(), "seconds": 0} == {**other.to_dict(), "seconds": 0}
    return alike and same_policy(one.policy, other.policy)


@pytest.mark.parametrize(
    ("given", "number"), [(5, 5), ("5", 5), ("2kb", 2000), ("1.5GB", 1.5 * GB), (" 24 G ", 24 * GB), (1e6, 10**6)]
)
def test_memory_is_read(given, number):
    assert in_bytes(given) == number


@pytest.mark.parametrize("given", ["", "GB", "-1", 0, -5, float("nan"), "1e9", "5 parsecs", True])
def test_memory_that_means_nothing_is_refused(given):
    with pytest.raises(prudent.PrudentError, match="it must be a number of bytes above 0"):
        in_bytes(given)


def test_bytes_for_people():
    assert [shown_bytes(n) for n in (500, 2_000_000, 3.21e9, 2e14)] == ["0.5 kB", "2 MB", "3.21 GB", "200 TB"]


def test_what_needs_too_much_memory_is_refused_before_it_is_taken():
    # Two states, but costs of ten million steps: the tables would need tens of gigabytes.
    table = {"s": {"a": [(0.5, "t", 1), (0.5, "t", 10**7)]}, "t": {"b": [(0.5, "s", 10**7), (0.5, "g", 3)]}}
    model = prudent.build("s", table)
    prudent.solve(prudent.domains.figure_2(), 0.5)  # the kernels are there
    tracemalloc.start()
    with pytest.raises(prudent.PrudentError, match=r"would take .* of memory; the limit is 10 MB; round costs"):
        prudent.solve(model, 0.05, memory="10MB", gap=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5 * 10**6
    rough = prudent.solve(model, 0.05, memory="10MB", step=5_000_000)
    assert rough.status == "gap_not_reached"
    assert rough.lower <= prudent.solve(model, 0.05, step=5000).upper
    assert rough.upper >= prudent.solve(model, 0.05, step=5000).lower
    automatic = prudent.solve(model, 0.05, memory="10MB")  # who does not insist on the optimum gets the gap
    assert automatic.status == "within_gap"
    assert max(rough.lower, automatic.lower) <= min(rough.upper, automatic.upper)


@pytest.mark.parametrize("memory", ["100kB", "500kB", "3MB"])
@pytest.mark.parametrize("how", [{"gap": 0}, {"slack": 0.01, "gap": 0}, {"objective": prudent.ValueAtRisk()}])
def test_a_step_that_is_advised_fits(memory, how):
    model = prudent.domains.inventory_control()
    with pytest.raises(prudent.PrudentError, match="the tables would take") as refused:
        prudent.solve(model, 0.02, memory=memory, **how)
    advised = re.search(r"--step; (\S+) would fit", str(refused.value))
    if memory == "100kB":  # whatever the step
        assert advised is None
        assert re.search(r"even with costs rounded to 80 the tables take about \d+ kB", str(refused.value))
        return
    step = float(advised[1])
    assert step <= model.cost.max()
    plan = prudent.solve(model, 0.02, memory=memory, step=step, **how)
    assert not any("memory" in note for note in plan.notes)
    assert plan.lower <= 386.3986 <= plan.upper


def test_more_memory_is_advised_only_if_a_machine_may_have_it():
    def loop(leave, price=1):
        return prudent.build("s", {"s": {"a": [(leave, "g", 1), (1 - leave, "s", price)]}})

    for model, more in ((loop(1e-9), True), (loop(1e-15), False), (loop(1e-13, 10**6), False)):
        with pytest.raises(prudent.PrudentError, match=r"the tables would take .* the limit is 1 MB; ") as refused:
            prudent.solve(model, 0.05, memory="1MB", gap=0)
        assert ("raise memory= (--memory)" in str(refused.value)) == more
        assert ("no machine has that much" in str(refused.value)) == (not more)
        assert (
            "; plan for the expected cost only (method='expected', --method expected), or limit" in str(refused.value)
        ) != more


def test_memory_that_runs_out_stops_no_sooner_than_it_must():
    model = prudent.build("s", {"s": {"a": [(0.5, "s", 10), (0.5, "g", 1)]}})
    whole, prepared = prudent.solve(model, 0.1), prepare(model)
    levels = round(prepared.scale.in_levels(whole.upper)) + 2
    assert levels < prepared.scale.in_levels(whole.expected) / 0.1  # which is all that is known at first
    assert same(prudent.solve(model, 0.1, memory=sweep_bytes(prepared, levels)), whole)


def test_memory_that_runs_out_stops_with_bounds(game):
    truth, prepared = prudent.solve(game, 0.2), prepare(game)
    few = round(prepared.scale.in_levels(truth.upper)) - 2
    plan = prudent.solve(game, 0.2, memory=sweep_bytes(prepared, few))
    assert plan.status == "gap_not_reached"
    assert "memory" in plan.notes[-1]
    assert plan.lower <= truth.cvar <= plan.upper
    assert plan.upper == pytest.approx(prudent.evaluate(game, plan.policy).cvar(0.2))


def test_time_that_runs_out_stops_with_bounds(game, roads):
    truth = prudent.solve(game, 0.2)
    plan = prudent.solve(game, 0.2, time_limit=1e-9)
    assert plan.status == "gap_not_reached"
    assert plan.notes == ("stopped at the time limit of 1e-09 seconds; raise time_limit= (--time-limit)",)
    assert plan.lower <= truth.cvar <= plan.upper
    assert plan.expected_lower <= truth.expected
    plan = prudent.solve(roads, 0.2, gap=1e-9, time_limit=3)  # refines as far as the time allows
    assert plan.status == "gap_not_reached"
    assert plan.upper - plan.lower < 0.1 * plan.upper
    with pytest.raises(prudent.PrudentError, match="seconds above 0"):
        prudent.solve(game, 0.2, time_limit=0)


@dataclass
class Interrupter:
    """Presses Ctrl-C at one of the moments at which a sweep asks whether to save."""

    after: int

    def load(self, key):
        return None

    def save(self, key, content, *, final=False):
        pass

    def due(self):
        self.after -= 1
        if self.after == 0:
            signal.raise_signal(signal.SIGINT)
        return False


@pytest.mark.parametrize("after", [1, 2, 3])
def test_ctrl_c_stops_with_bounds(game, after, monkeypatch):
    monkeypatch.setattr(TileSweep, "batch", 200_000)
    truth = prudent.solve(game, 0.2).cvar
    before = signal.getsignal(signal.SIGINT)
    found = exact(prepare(game), 0.2, Limits(GB, keeper=Interrupter(after)))
    assert found.stopped == "interrupted"
    assert found.lower <= truth <= found.upper
    assert signal.getsignal(signal.SIGINT) is before
    evaluated = prudent.evaluate(game, found.policy)
    assert evaluated.cvar(0.2) == pytest.approx(found.cvar, rel=1e-9)
    assert evaluated.mean == pytest.approx(found.expected, rel=1e-9)


def test_a_second_ctrl_c_breaks_off():
    with pytest.raises(KeyboardInterrupt), Limits(GB) as limits:
        signal.raise_signal(signal.SIGINT)
        assert limits.stop == "interrupted"
        signal.raise_signal(signal.SIGINT)


def used(empty, *shape, **kind):
    """Return memory that has held other things."""
    found = empty(*shape, **kind)
    if found.dtype.kind == "f":
        found.fill(np.nan)
    return found


@pytest.mark.parametrize("kind", ["game", "roads"])
def test_a_resumed_solve_gives_the_identical_answer(kind, request, tmp_path, monkeypatch):
    model, options = request.getfixturevalue(kind), {} if kind == "game" else {"relative_gap": 0.01}
    truth = prudent.solve(model, 0.2, **options)
    for backend in BACKENDS:
        monkeypatch.setattr(backend, "batch", 100_000 if kind == "game" else 1_500_000)
    monkeypatch.setattr("prudent.io.checkpoint.EVERY", 0.0)
    monkeypatch.setattr("numpy.empty", partial(used, np.empty))
    file, stops = tmp_path / "solve.checkpoint", 0
    asked = 0

    def stop(self):
        nonlocal asked
        asked += sys._getframe(1).f_code.co_name == "step"  # of a sweep, not before it
        return "interrupted" if asked > 5 else ""

    with monkeypatch.context() as patch:
        patch.setattr(Limits, "stop", property(stop))
        while True:
            asked = 0
            plan = prudent.solve(model, 0.2, checkpoint=file, **options)
            if plan.status != "interrupted":
                break
            assert plan.lower <= truth.upper and truth.lower <= plan.upper
            assert file.exists()
            stops += 1
            assert stops < 100
    assert stops >= 1
    assert same(plan, truth)
    assert not file.exists()  # finished


def test_a_checkpoint_belongs_to_one_solve(game, tmp_path, monkeypatch):
    file = tmp_path / "solve.checkpoint"
    monkeypatch.setattr(Limits, "stop", property(lambda self: "interrupted"))
    assert prudent.solve(game, 0.2, checkpoint=file).status == "interrupted"
    kept = file.read_bytes()
    for other in ({"alpha": 0.1}, {"step": 2.0}, {"method": "expected"}, {"model": prudent.domains.figure_2()}):
        options = {"model": game, "alpha": 0.2, **other}
        with pytest.raises(prudent.PrudentError, match=r"belongs to another solve; give the same model"):
            prudent.solve(checkpoint=file, **options)
    for damage in (kept[:-1], kept[:2000] + bytes([kept[2000] ^ 1]) + kept[2001:], b""):
        file.write_bytes(damage)
        with pytest.raises(prudent.PrudentError, match="is damaged or is not a checkpoint; delete it to start again"):
            prudent.solve(game, 0.2, checkpoint=file)
        assert file.read_bytes() == damage  # never overwritten
    with pytest.raises(prudent.PrudentError, match="there is no folder"):
        prudent.solve(game, 0.2, checkpoint=tmp_path / "none" / "c")


CHILD = """
import sys
import prudent, prudent.engine.sweep.tiles, prudent.io.checkpoint
prudent.engine.sweep.tiles.TileSweep.batch = 300_000
prudent.io.checkpoint.EVERY = 0.0
plan = prudent.solve(prudent.domains.betting_game(), 0.2, checkpoint=sys.argv[1])
prudent.save(plan, sys.argv[2])
"""


def test_killed_at_any_moment_it_goes_on(game, tmp_path):
    file, saved = tmp_path / "solve.checkpoint", tmp_path / "plan.safetensors"
    rng, killed = random.Random(0), 0
    for _ in range(40):
        child = subprocess.Popen([sys.executable, "-c", CHILD, str(file), str(saved)])
        if killed < 3:
            began = time.monotonic()
            while not list(tmp_path.glob("*solve.checkpoint*")) and child.poll() is None:
                assert time.monotonic() - began < 120
                time.sleep(0.001)
            time.sleep(rng.random() * 0.02)
            child.send_signal(signal.SIGKILL)
            killed += child.wait() == -signal.SIGKILL
        else:
            assert child.wait(timeout=300) == 0
        if saved.exists():
            break
    assert killed >= 1
    assert same(prudent.load_plan(saved, game), prudent.solve(game, 0.2))


COMMAND = """
import sys
from prudent.runtime.limits import Limits
from prudent.apps.cli.main import main
from prudent.engine.sweep.tiles import TileSweep
TileSweep.batch = 1_000_000  # the clock is looked at often
entered = Limits.__enter__
Limits.__enter__ = lambda self: print("sweeping", file=sys.stderr, flush=True) or entered(self)
main(["solve", "inventory-control", "--set", "capacity=60", "--alpha", "0.2", "--json"])
"""


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGINT for another process")
def test_ctrl_c_on_the_command_line_prints_what_is_known():
    child = subprocess.Popen([sys.executable, "-c", COMMAND], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while "sweeping" not in (line := child.stderr.readline()):
        assert line, "it ended before it swept"
    time.sleep(0.2)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=300)
    assert child.returncode == 130
    assert "Traceback" not in err
    plan = json.loads(out)
    assert plan["status"] == "interrupted"
    assert plan["lower"] <= plan["upper"]
    assert plan["cvar"] is None or plan["lower"] <= plan["cvar"] <= plan["upper"] * (1 + 1e-9)


def test_stopped_with_the_optimal_cvar_but_not_the_least_mean():
    """The last budget has the same CVaR and a lower mean; memory does not reach to it."""
    risky, calm = [(0.4, "g", 0), (0.6, "g", 512)], [(0.5, "g", 401), (0.5, "g", 512)]
    model = prudent.build("s", {"s": {"calm": calm, "risky": risky}})
    whole = prudent.solve(model, 0.5)
    assert (whole.status, whole.cvar, whole.expected) == ("optimal", 512, pytest.approx(307.2))
    for levels, status, mean in ((511, "gap_not_reached", 456.5), (512, "within_gap", 456.5), (513, "optimal", 307.2)):
        plan = prudent.solve(model, 0.5, memory=sweep_bytes(prepare(model), levels), step=1)
        assert (plan.status, plan.cvar, plan.expected) == (status, 512, pytest.approx(mean))
        assert plan.expected_lower <= whole.expected


def first_actions(model):
    """Return the table that plays each state's first action."""
    return {model.state(s): model.action(int(model.action_start[s])) for s in np.flatnonzero(~model.is_goal).tolist()}


def as_function(model):
    return lambda state, spent: first_actions(model)[state]


VERBS = {
    "curve": lambda model, **limit: prudent.curve(model, alpha_min=0.2, **limit),
    "frontier": lambda model, **limit: prudent.frontier(model, 0.2, **limit),
    "chances": lambda model, **limit: prudent.chances(model, [50, 90], **limit),
    "cvar-wc": lambda model, **limit: prudent.solve(model, 0.2, method="cvar-wc", **limit),
    "cvar-ev": lambda model, **limit: prudent.solve(model, 0.2, method="cvar-ev", **limit),
    "worst-case": lambda model, **limit: prudent.solve(model, 0.2, method="worst-case", **limit),
    "evaluate": lambda model, **limit: prudent.evaluate(model, first_actions(model), **limit),
    "evaluate, a function": lambda model, **limit: prudent.evaluate(model, as_function(model), **limit),
    "simulate": lambda model, **limit: prudent.simulate(model, first_actions(model), **limit),
    "simulate, a function": lambda model, **limit: prudent.simulate(model, as_function(model), **limit),
}


ANSWERS = ("curve", "frontier", "chances", "cvar-wc", "cvar-ev", "worst-case")


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_keeps_a_time_limit(verb, game):
    if verb in ANSWERS:
        found = VERBS[verb](game, time_limit=1e-9)
        if verb != "frontier":  # which bounds how far plans may lie below its points
            bounds = [found.at(0.2)] if verb == "curve" else [found]
            assert all((np.asarray(each.lower) <= np.asarray(each.upper)).all() for each in bounds)
        assert any("raise time_limit= (--time-limit)" in note for note in found.notes)
    else:
        with pytest.raises(prudent.PrudentError, match=r"raise time_limit= \(--time-limit\)"):
            VERBS[verb](game, time_limit=1e-9)
    with pytest.raises(prudent.PrudentError, match="time_limit is -1; it must be a number of seconds above 0"):
        VERBS[verb](game, time_limit=-1)


def test_a_check_that_runs_out_of_time_leaves_out_the_estimates(game):
    report = prudent.check(game, time_limit=1e-9)
    assert report.ok and report.forecast is None
    assert report.worst_case == 95
    assert report.notes[-1].startswith("an estimate of the solve takes longer than the time limit; raise time_limit=")


def test_a_frontier_that_runs_out_of_time_keeps_its_points(game, monkeypatch):
    whole = prudent.frontier(game, 0.2)
    asked = 0

    def stop(self):
        nonlocal asked
        asked += 1
        return "time" if asked > 12 else ""

    monkeypatch.setattr(Limits, "stop", property(stop))
    found = prudent.frontier(game, 0.2, time_limit=60)
    assert found.status == "gap_not_reached"
    assert 2 <= len(found.points) < len(whole.points)
    assert found.notes == ("stopped at the time limit of 60 seconds; raise time_limit= (--time-limit)",)
