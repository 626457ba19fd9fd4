"""Compilation is announced once for each purpose and counted in no clock."""

import threading
import time

import pytest
from numba import njit
from numba.core import event

import prudent
from prudent.engine.prepare import prepare
from prudent.kernels import Compiler, compiler
from prudent.planning import job
from prudent.runtime.limits import now


@pytest.fixture
def later(monkeypatch):
    """Move the clocks of the machine on."""
    ahead = [0.0]
    for name, clock_of in (("perf_counter", time.perf_counter), ("monotonic", time.monotonic)):
        monkeypatch.setattr(time, name, lambda real=clock_of: real() + ahead[0])

    def move(seconds: float) -> None:
        ahead[0] += seconds

    return move


def test_the_clock_stands_still_while_numba_compiles(later):
    before = now()
    with event.trigger_event("numba:compiler_lock"):
        later(1000)
        with event.trigger_event("numba:compiler_lock"):  # a kernel that calls another, or a thread that waits
            later(1000)
        assert now() - before < 100
    assert now() - before < 100
    later(1000)
    assert 1000 <= now() - before < 1100


def test_a_plan_does_not_count_it_and_a_time_limit_neither(later, monkeypatch):
    def slowly(model, *about):
        with event.trigger_event("numba:compiler_lock"):
            later(1000)
        return prepare(model, *about)

    monkeypatch.setattr(job, "prepare", slowly)
    plan = prudent.solve(prudent.domains.figure_2(), 0.1, time_limit=100)
    assert plan.seconds < 100
    assert plan.status == "optimal"
    assert prudent.chances(prudent.domains.figure_2(), [3], time_limit=100).seconds < 100
    assert prudent.study("figure-2", {}, [0.1], workers=1).seconds < 100


def test_each_purpose_is_told_once(monkeypatch):
    said, heard = [], threading.Event()
    monkeypatch.setattr(compiler, "tell", lambda message: (said.append(message), heard.set()))
    monkeypatch.setattr(compiler, "_told", set())

    def compiled(module, inner="prudent.kernels.episodes"):
        def add_one(x):
            return x + 1

        def add_two(x):
            return called(called(x))

        add_one.__module__, add_two.__module__ = inner, module
        called = njit(add_one)  # it is compiled for the other one, not for what its own module is for
        assert njit(add_two)(1) == 3

    for module in ("prudent.kernels.game", "prudent.kernels.graphs", "prudent.kernels.levels", "a.user", "game"):
        compiled(module)
    about = "compiling kernels for {}, once; this may take a minute"
    assert said == [about.format("the paper's methods"), about.format("models with cycles")]
    compiled("prudent.kernels.tiles")
    assert said[2:] == [about.format("planning")]
    with compiler.at_work("the GPU"):  # it reads what it had compiled before
        pass
    assert len(said) == 3
    heard.clear()
    monkeypatch.setattr("prudent.kernels.READING", 0.0)
    for _ in range(2):
        with compiler.at_work("the GPU"):
            assert heard.wait(10)
    assert said[3:] == [about.format("the GPU")]


def test_real_compilation_is_measured():
    before = compiler.seconds
    njit(lambda x: x + 1)(1)
    assert compiler.seconds > before
    assert isinstance(compiler, Compiler)
