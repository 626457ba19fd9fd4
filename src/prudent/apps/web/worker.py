"""A process that computes: frames in on stdin, frames out on stdout, one task at a time.

A frame is two lengths (four bytes each, big-endian), a JSON object and raw bytes.  A solve that takes long sends what
it has so far, in frames of the kind "so far", before its answer.  SIGINT stops the task at hand, as Ctrl-C stops the
command, and leaves what is kept in place; the process ends with its stdin.
"""

import json
import os
import signal
import struct
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from types import FrameType
from typing import Any, BinaryIO

from prudent.apps.web.sessions import Bounded, Session, open_session
from prudent.errors import ModelError, PrudentError
from prudent.results.plan import Plan

LENGTHS = struct.Struct(">II")
SESSIONS = 4
"""The most models that a worker keeps, with their sweeps."""

SILENCE = 0.4
"""Seconds of a solve before it reports what it has so far: finer steps then take about as long again, or longer."""


class Worker:
    """Answers frames until there are no more."""

    def __init__(self, source: BinaryIO, sink: BinaryIO, memory: int) -> None:
        self.source, self.sink, self.memory = source, sink, memory
        self.sessions = Bounded(SESSIONS)
        self.busy = False
        # Every signal is written to this pipe, whoever handles it: a solve told to stop returns what it has so far.
        self.bell = -1
        if os.name == "posix":  # elsewhere a task is not asked to stop, its process is replaced
            self.bell, ring = os.pipe()
            os.set_blocking(self.bell, False)
            os.set_blocking(ring, False)
            signal.set_wakeup_fd(ring, warn_on_full_buffer=False)

    def interrupt(self, number: int, frame: FrameType | None) -> None:
        """Stop the task at hand, if there is one."""
        if self.busy:
            raise KeyboardInterrupt

    def rang(self) -> bool:
        """Return whether a signal came since this was asked last."""
        try:
            return self.bell >= 0 and bool(os.read(self.bell, 4096))
        except BlockingIOError:
            return False

    def run(self) -> None:
        """Answer until stdin ends."""
        signal.signal(signal.SIGINT, self.interrupt)
        while len(head := self.source.read(LENGTHS.size)) == LENGTHS.size:
            size, extra = LENGTHS.unpack(head)
            about, raw = json.loads(self.source.read(size)), self.source.read(extra)
            self.rang()
            reply: dict[str, Any] = {"kind": "stopped"}
            body = b""
            try:
                self.busy = True
                reply, body = self.answer(about, raw)
                self.busy = False
            except KeyboardInterrupt:
                self.busy = False
            if self.rang():  # the result may be unfinished
                self.sessions.pop(about["key"], None)
                reply, body = {"kind": "stopped"}, b""
            self.send(reply, body)

    def send(self, reply: dict[str, Any], body: bytes) -> None:
        """Write a frame."""
        text = json.dumps(reply).encode()
        self.sink.write(LENGTHS.pack(len(text), len(body)) + text + body)
        self.sink.flush()

    def answer(self, about: dict[str, Any], raw: bytes) -> tuple[dict[str, Any], bytes]:
        """Return a reply and its body."""
        from prudent.apps.web.tasks import perform

        try:
            session = self.session(about, raw)
            if session is None:
                return {"kind": "unknown"}, b""
            listener = self.listener() if about["task"] == "solve" else None
            return {"kind": "answer"}, perform(session, about["task"], about["values"], listener)
        except PrudentError as error:
            problems = list(error.problems) if isinstance(error, ModelError) else [str(error)]
            return {"kind": "refused", "error": str(error), "problems": problems}, b""
        except MemoryError:
            self.sessions.clear()
            message = "this takes more memory than this server allows; solve it with the command, which has --memory"
            return {"kind": "refused", "error": message, "problems": [message]}, b""
        except Exception as error:  # a fault of ours must not end the worker; the server reports it
            traceback.print_exc()
            return {"kind": "failed", "error": f"{type(error).__name__}: {error}"}, b""

    def listener(self) -> Callable[[Plan], None]:
        """Return what sends the best plan so far, once a solve that begins now takes long."""
        from prudent.apps.web.tasks import so_far

        began = time.monotonic()

        def send(plan: Plan) -> None:
            if time.monotonic() - began < SILENCE:
                return
            body = so_far(plan)
            self.busy = False  # a signal must not break the frame; the bell keeps it
            self.send({"kind": "so far"}, body)
            self.busy = True

        return send

    def session(self, about: dict[str, Any], raw: bytes) -> Session | None:
        """Return the session of a model, or nothing for an upload whose bytes are needed first."""
        uploaded = about.get("name") is not None
        if uploaded and about["key"] not in self.sessions and not about.get("sent"):
            return None
        return self.sessions.get_or_make(
            about["key"], lambda: open_session(about, raw if uploaded else None, self.memory)
        )


def limit_memory(most: int) -> None:
    """Make allocations beyond this many bytes fail, where the system can, to protect the machine."""
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def warm_up() -> None:
    """Compile what every task needs, or read it from the cache, before anybody waits for it."""
    import prudent
    from prudent.apps.web.tasks import perform
    from prudent.methods.registry import METHODS

    cycle = prudent.build("s", {"s": {"go": [(0.5, "s", 1), (0.5, "g", 1)]}})
    for model in (cycle, prudent.domains.figure_2()):
        session = Session(model, {}, 10**9)
        for method in (name for name, about in METHODS.items() if about.shown):
            perform(session, "solve", {"alpha": "0.1", "method": method})
        p = model.probability
        session.model = replace(model, intervals=prudent.Intervals(0.9 * p, 0.9 * p + 0.1))
        for task in ("solve", "play"):
            perform(session, task, {"alpha": "0.1", "uncertainty": "own"})
    for task in ("curve", "frontier", "policy", "play", "decisions.csv"):
        perform(session, task, {"alpha": "0.1"})


def main() -> None:
    """Take over stdin and stdout, warm up, report ready, and work."""
    memory, niceness = int(sys.argv[1]), int(sys.argv[2])
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints must not get between the frames
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if niceness and hasattr(os, "nice"):
        os.nice(niceness)
    warm_up()
    limit_memory(2 * memory + 2**30)
    sink.write(LENGTHS.pack(2, 0) + b"{}")
    sink.flush()
    Worker(source, sink, memory).run()


if __name__ == "__main__":
    main()
