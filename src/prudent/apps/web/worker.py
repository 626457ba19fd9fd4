"""A process that computes: frames in on stdin, frames out on stdout, one task at a time.

A frame is a line of JSON and as many bytes as its ``size`` says.  Replies have a status of HTTP; a solve that takes
long sends what it has so far before its answer.  SIGTERM stops the task at hand, as Ctrl-C stops the command, and
leaves what is kept in place; on Windows it ends the process, which is replaced.  The process ends with its stdin.

A worker keeps a session for each of its latest models: the model, one sweep for every alpha, and the latest plans.
"""

import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import cached_property
from types import FrameType
from typing import Any, BinaryIO, TypeVar

import prudent
from prudent.apps.web.tasks import ALPHA_MIN, TASKS, YARDSTICK, Asked, as_json, so_far
from prudent.domains.registry import make
from prudent.engine.cost_step import find_lattice
from prudent.errors import ModelError, PrudentError
from prudent.io.formats import parse
from prudent.methods.registry import METHODS
from prudent.models.ssp import SSP
from prudent.planning.curve import Curve
from prudent.planning.refine import modest
from prudent.planning.solve import solve_aloud
from prudent.policies.distribution import Distribution
from prudent.results.plan import Plan
from prudent.runtime.limits import cores

SO_FAR, ANSWERED, REFUSED, STOPPED, FAILED = 102, 200, 400, 499, 500
"""What a reply says; only the first is followed by another."""

SESSIONS = 4  # the most models that a worker keeps, with their sweeps
PLANS = 3  # of one model, kept by a worker; each holds the model as it was prepared for it
PIECES = 24  # other results of one model: curves for several sets of models; distributions
SILENCE = 0.4  # seconds of a solve before it tells what it has so far: finer steps take about as long again, or longer
WHILE = 0.25  # the most seconds of a solve that the page waits for while the slider moves
FILES = ("traffic",)  # parameters that are paths: requests open no files

Kept = TypeVar("Kept")


def framed(about: dict[str, Any], raw: bytes) -> bytes:
    """Return a frame."""
    return json.dumps({**about, "size": len(raw)}).encode() + b"\n" + raw


class Bounded(dict[Hashable, Any]):
    """The values asked for last, at most ``most`` of them, or as many as weigh at most ``most`` together."""

    def __init__(self, most: int, weigh: Callable[[Any], int] = lambda value: 1) -> None:
        super().__init__()
        self.most, self.weigh = most, weigh

    def keep(self, key: Hashable, value: Any) -> None:
        """Keep a value as the latest; forget the oldest ones if there are too many."""
        self.pop(key, None)
        self[key] = value
        while sum(map(self.weigh, self.values())) > self.most:
            del self[next(iter(self))]

    def latest(self, key: Hashable) -> Any:
        """Return what is kept under a key; it is then the latest."""
        self[key] = found = self.pop(key)
        return found

    def get_or_make(self, key: Hashable, make: Callable[[], Kept]) -> Kept:
        """Return what is kept under a key, or make it and keep it."""
        if key not in self:
            self.keep(key, make())
        found: Kept = self.latest(key)
        return found


class Session:
    """A model and what was computed of it."""

    def __init__(self, model: SSP, settings: dict[str, str], memory: int) -> None:
        self.model: SSP = model
        self.settings = settings  # the domain's parameters, as text; none for a file
        self.options: dict[str, Any] = {"memory": memory, "threads": max(cores() // 2, 1)}
        self.plans, self.swept, self.curves, self.kept = (Bounded(most) for most in (PLANS, PLANS, PIECES, PIECES))
        self.seconds = 0.0  # what the last exact solve took, if it rounded no costs
        self.tell: Callable[[Plan], None] | None = None  # hears of each plan that is the best so far

    def curve(self, uncertainty: float | str | None = None) -> Curve:
        """Every alpha, from one sweep; with ``uncertainty``, for the worst of a set of models."""
        return self.curves.get_or_make(
            uncertainty,
            lambda: prudent.curve(self.model, alpha_min=ALPHA_MIN, uncertainty=uncertainty, **self.options),
        )

    @cached_property
    def rounded(self) -> bool:
        """Whether costs have no common step, or too fine a one."""
        return find_lattice(self.model.cost) is None or bool(self.curve().notes)

    def plan(self, asked: Asked, *, sure: bool = True) -> Plan:
        """Return the plan that is asked for.

        With ``sure`` it is what :func:`prudent.solve` returns, digit for digit.  Otherwise, if solving takes a while,
        it comes from the sweep that serves every alpha: the same policy and numbers, except for the last digits of the
        bounds, which cover the rounding errors of a longer sweep.
        """
        quick = not sure and asked == Asked(asked.alpha) and asked.alpha >= ALPHA_MIN and self.seconds > WHILE
        if quick and asked not in self.plans and not self.rounded:
            return self.swept.get_or_make(asked.alpha, lambda: self.curve().plan(asked.alpha))
        return self.plans.get_or_make(asked, lambda: self._solve(asked))

    def is_sure(self, plan: Plan) -> bool:
        """Return whether a plan comes from a solve of its own."""
        return any(each is plan for each in self.plans.values())

    def _solve(self, asked: Asked) -> Plan:
        plan = solve_aloud(self.model, tell=self.tell, **asked._asdict(), **self.options)
        if plan.status == "interrupted":
            raise KeyboardInterrupt
        if asked.method == YARDSTICK and asked.uncertainty is None:
            self.seconds = 0.0 if plan.policy.prepared.scale.rounded else plan.seconds
        return plan

    def refines(self, plan: Plan) -> bool:
        """Return whether the gap asked for can make a difference: for this plan, or for another alpha of the slider."""
        prepared = plan.policy.prepared
        return plan.method == YARDSTICK and (prepared.scale.rounded or not modest(prepared, ALPHA_MIN))

    def distribution(self, plan: Plan, asked: Asked) -> Distribution:
        """Return the distribution of a plan's total cost; for method ``expected`` one serves every alpha of a step."""
        key = asked if METHODS[asked.method].for_alpha else asked.method
        return self.kept.get_or_make(("distribution", key, plan.step), plan.total_cost)


def open_session(about: dict[str, Any], raw: bytes, memory: int) -> Session:
    """Return a session for a domain with its parameters, or for the bytes of an uploaded file."""
    if "name" in about:
        return Session(parse(raw, about["name"]), {}, memory)
    settings = dict(item.partition("=")[::2] for item in about["set"])
    for name in FILES:
        if name in settings:
            raise PrudentError(f"--set {name}={settings[name]}: the page opens no files; use the command instead")
    return Session(make(about["model"], tuple(about["set"])), settings, memory)


class Worker:
    """Answers frames until there are no more."""

    def __init__(self, source: BinaryIO, sink: BinaryIO, memory: int) -> None:
        self.source, self.sink, self.memory = source, sink, memory
        self.sessions = Bounded(SESSIONS)
        self.busy = self.stopped = False

    def stop(self, number: int, frame: FrameType | None) -> None:
        """Stop the task at hand, if there is one."""
        self.stopped = True  # a solve that is told to stop returns what it has so far
        if self.busy:
            signal.raise_signal(signal.SIGINT)

    def interrupt(self, number: int, frame: FrameType | None) -> None:
        """Take Ctrl-C where no solve takes it: at rest it is for the server, where the terminal sends it to all."""
        if self.busy:
            raise KeyboardInterrupt

    def run(self) -> None:
        """Answer until stdin ends."""
        signal.signal(signal.SIGINT, self.interrupt)
        signal.signal(signal.SIGTERM, self.stop)
        for line in self.source:
            about = json.loads(line)
            raw = self.source.read(about["size"])
            reply = stopped = STOPPED, as_json({"error": "the task was stopped"})
            self.stopped = False
            try:
                self.busy = True
                reply = self.answer(about, raw)
                self.busy = False
            except KeyboardInterrupt:
                self.busy = False
            if self.stopped:  # the result may be unfinished
                self.sessions.pop(about["key"], None)
                reply = stopped
            self.send(*reply)

    def send(self, status: int, body: bytes) -> None:
        """Write a frame."""
        self.sink.write(framed({"status": status}, body))
        self.sink.flush()

    def answer(self, about: dict[str, Any], raw: bytes) -> tuple[int, bytes]:
        """Return the status and the body of a reply."""
        try:
            session = self.sessions.get_or_make(about["key"], lambda: open_session(about, raw, self.memory))
            self.began, session.tell = time.monotonic(), self.tell if about["task"] == "solve" else None
            return ANSWERED, TASKS[about["task"]].answer(session, about["values"])
        except PrudentError as error:
            problems = error.problems if isinstance(error, ModelError) else (str(error),)
            return REFUSED, as_json({"error": str(error), "problems": problems, "exit": 2})
        except MemoryError:
            self.sessions.clear()
            message = "this takes more memory than this server allows; solve it with the command, which has --memory"
            return REFUSED, as_json({"error": message, "problems": [message], "exit": 2})
        except Exception as error:  # a fault of ours must not end the worker; the server reports it
            traceback.print_exc()
            return FAILED, as_json({"error": f"{type(error).__name__}: {error}"})

    def tell(self, plan: Plan) -> None:
        """Send the best plan so far, once a solve takes long."""
        if time.monotonic() - self.began >= SILENCE:
            body = so_far(plan)
            self.busy = False  # a signal must not break the frame
            self.send(SO_FAR, body)
            self.busy = True
            if self.stopped:
                signal.raise_signal(signal.SIGINT)


def warm_up() -> None:
    """Compile what every task needs, or read it from the cache, before anybody waits for it."""
    cycle = prudent.build("s", {"s": {"go": [(0.5, "s", 1), (0.5, "g", 1)]}})
    for model in (cycle, prudent.domains.figure_2()):
        session = Session(model, {}, 10**9)
        for method in (name for name, about in METHODS.items() if about.shown):
            TASKS["solve"].answer(session, {"alpha": "0.1", "method": method})
        p = model.probability
        session.model = replace(model, intervals=prudent.Intervals(0.9 * p, 0.9 * p + 0.1))
        for task in ("solve", "play"):
            TASKS[task].answer(session, {"alpha": "0.1", "uncertainty": "own"})
    for task in ("curve", "frontier", "policy", "play", "decisions.csv"):
        TASKS[task].answer(session, {"alpha": "0.1"})


def main() -> None:
    """Take over stdin and stdout, warm up, report ready, and work."""
    memory, niceness = int(sys.argv[1]), int(sys.argv[2])
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints must not get between the frames
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if niceness and hasattr(os, "nice"):
        os.nice(niceness)
    warm_up()
    if sys.platform == "linux":  # protect the machine: allocations beyond this fail
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (2 * memory + 2**30,) * 2)
    worker = Worker(source, sink, memory)
    worker.send(ANSWERED, b"")
    worker.run()


if __name__ == "__main__":
    main()
