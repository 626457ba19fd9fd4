"""The work of the server: answers that are kept or under way, and the processes that compute them.

A task is handed out, waited for, and stopped when nobody waits for it any more.  A process that does not stop is
replaced.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from prudent.apps.web.worker import LENGTHS, Bounded, framed

Take = Callable[[bytes], None]
Work = Callable[[Take, Take], Awaitable[bytes]]
"""Computes an answer.  It passes an answer that comes when nobody waits any more to the first function, and what it has
so far to the second."""

GRACE = 0.3
"""Seconds that a task continues after it was given up: if it is done by then, its answer is kept."""

PATIENCE = 1.5
"""Seconds that a task has to stop after a signal, and again after a second one; then its process is replaced."""


@dataclass
class _UnderWay:
    work: "asyncio.Task[bytes]" = field(init=False)
    waiting: int = 0
    so_far: bytes | None = None


class Answers:
    """Answers by question, at most ``most`` bytes of them.

    Work is cancelled when nobody waits for it any more.
    """

    def __init__(self, most: int) -> None:
        self.kept = Bounded(most, len)
        self.open: dict[str, _UnderWay] = {}

    async def get(self, question: str, work: Work) -> bytes:
        """Return the answer to a question: kept, under way, or computed now."""
        if question in self.kept:
            kept: bytes = self.kept.latest(question)
            return kept
        found = self.open.get(question)
        if found is None:
            found = self.open[question] = _UnderWay()
            found.work = asyncio.ensure_future(self._worked(question, work, found))
        found.waiting += 1
        try:
            return await asyncio.shield(found.work)
        finally:
            found.waiting -= 1
            if not found.waiting and not found.work.done():
                self.open.pop(question, None)
                found.work.cancel()

    def so_far(self, question: str) -> bytes | None:
        """Return what is known so far of the answer to a question under way, if anything is."""
        found = self.open.get(question)
        return None if found is None else found.so_far

    async def _worked(self, question: str, work: Work, this: _UnderWay) -> bytes:
        def tell(body: bytes) -> None:
            this.so_far = body

        try:
            body = await work(lambda late: self._keep(question, late), tell)
        finally:
            if self.open.get(question) is this:
                del self.open[question]
        self._keep(question, body)
        return body

    def _keep(self, question: str, body: bytes) -> None:
        if len(body) <= self.kept.most // 4:
            self.kept.keep(question, body)


class Busy(Exception):
    """All workers are at work and the queue is full."""


class TooLong(Exception):
    """A task took more time than it may."""


class Failed(Exception):
    """A worker could not answer, by no fault of the user."""


class Refused(Exception):
    """A task was refused for a reason that the user can fix."""

    def __init__(self, reply: dict[str, Any]) -> None:
        super().__init__(reply["error"])
        self.reply = reply


def _ignore(body: bytes) -> None:
    """Take what nobody waits for."""


@dataclass(eq=False)
class _Process:
    process: asyncio.subprocess.Process
    keys: set[str] = field(default_factory=set)  # the models it has seen
    reading: "asyncio.Task[tuple[dict[str, Any], bytes]] | None" = None

    async def send(self, about: dict[str, Any], raw: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(framed(about, raw))
        await self.process.stdin.drain()

    async def receive(self) -> tuple[dict[str, Any], bytes]:
        """Return the next frame; a caller that gives up waiting leaves it whole for the next caller."""
        if self.reading is None:
            self.reading = asyncio.get_running_loop().create_task(self._read())
        try:
            return await asyncio.shield(self.reading)
        finally:
            if self.reading.done():
                self.reading = None

    async def _read(self) -> tuple[dict[str, Any], bytes]:
        assert self.process.stdout is not None
        size, extra = LENGTHS.unpack(await self.process.stdout.readexactly(LENGTHS.size))
        reply = json.loads(await self.process.stdout.readexactly(size))
        return reply, await self.process.stdout.readexactly(extra)

    async def reply(self, tell: Callable[[bytes], None]) -> tuple[dict[str, Any], bytes]:
        """Return the frame that ends a task; those before it have what is known so far."""
        while True:
            reply, body = await self.receive()
            if reply.get("kind") != "so far":
                return reply, body
            tell(body)

    def signal(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            if os.name == "posix":
                self.process.send_signal(signal.SIGINT)
            else:
                self.process.kill()

    async def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        await self.process.wait()
        if self.reading is not None:
            await asyncio.gather(self.reading, return_exceptions=True)


class Crew:
    """A fixed number of workers and a bounded queue of tasks; when it is full, the oldest one is refused as busy."""

    def __init__(self, size: int, *, waiting: int, limit: float, memory: int, niceness: int = 0) -> None:
        self.size, self.waiting, self.limit, self.memory, self.niceness = size, waiting, limit, memory, niceness
        self.idle: list[_Process] = []
        self.all: set[_Process] = set()
        self.queue: deque[asyncio.Future[_Process]] = deque()
        self.tasks: set[asyncio.Task[None]] = set()  # the loop keeps only weak references
        self.counts = {"answered": 0, "stopped": 0, "replaced": 0, "refused as busy": 0}
        self.closed = False

    async def start(self) -> None:
        """Start every worker; return when all of them are warm."""
        await asyncio.gather(*(self._hire() for _ in range(self.size)))

    async def _hire(self) -> None:
        command = (sys.executable, "-m", "prudent.apps.web.worker", str(self.memory), str(self.niceness))
        pipe = asyncio.subprocess.PIPE
        # A session of its own: Ctrl-C at the terminal is for the server.
        process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, start_new_session=True)
        worker = _Process(process)
        self.all.add(worker)
        try:
            await worker.receive()
        except asyncio.IncompleteReadError:
            self.all.discard(worker)
            raise Failed("a worker process did not start; its message is on the server's stderr") from None
        self._release(worker)

    def _release(self, worker: _Process) -> None:
        """Give a worker to the newest task in the queue, since older ones may be given up; else it is idle."""
        while self.queue:
            turn = self.queue.pop()
            if not turn.done():
                turn.set_result(worker)
                return
        self.idle.append(worker)

    async def _take(self, key: str) -> _Process:
        """Return an idle worker, one that knows the model if there is one; else wait for one."""
        if self.idle:
            found = next((worker for worker in self.idle if key in worker.keys), self.idle[0])
            self.idle.remove(found)
            return found
        turn: asyncio.Future[_Process] = asyncio.get_running_loop().create_future()
        self.queue.append(turn)
        if len(self.queue) > self.waiting:
            oldest = self.queue.popleft()
            if not oldest.done():
                self.counts["refused as busy"] += 1
                oldest.set_exception(Busy())
        try:
            async with asyncio.timeout(self.limit):
                return await turn
        except (TimeoutError, asyncio.CancelledError) as error:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self._release(turn.result())
            if isinstance(error, TimeoutError):
                raise Busy from None
            raise
        finally:
            if turn in self.queue:
                self.queue.remove(turn)

    async def run(
        self,
        about: dict[str, Any],
        raw: bytes | None,
        keep: Callable[[bytes], None] = _ignore,
        tell: Callable[[bytes], None] = _ignore,
    ) -> bytes:
        """Return the answer to a task; if cancelled, stop the task unless it is nearly done.

        Parameters
        ----------
        about : dict
            The task; ``key`` identifies the model, ``name`` is an uploaded file's.
        raw : bytes, optional
            That file, sent only to a worker that does not have it.
        keep : callable, optional
            Takes the answer if it comes after the task was given up.
        tell : callable, optional
            Takes what is known so far, while the task runs.
        """
        worker = await self._take(about["key"])
        try:
            async with asyncio.timeout(self.limit):
                await worker.send(about, b"")
                reply, body = await worker.reply(tell)
                if reply["kind"] == "unknown" and raw is not None:
                    await worker.send({**about, "sent": True}, raw)
                    reply, body = await worker.reply(tell)
        except (TimeoutError, asyncio.CancelledError) as error:
            self._later(self._stop(worker, about["key"], keep))
            if isinstance(error, TimeoutError):
                raise TooLong from None
            raise
        except (asyncio.IncompleteReadError, ConnectionError):
            self._later(self._replace(worker))
            raise Failed("a worker process ended; try again, with a new worker") from None
        worker.keys.add(about["key"])
        self._release(worker)
        if reply["kind"] == "refused":
            raise Refused(reply)
        if reply["kind"] != "answer":
            raise Failed(reply.get("error", "the task was stopped"))
        self.counts["answered"] += 1
        return body

    def _later(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _stop(self, worker: _Process, key: str, keep: Callable[[bytes], None]) -> None:
        """Wait a moment, then stop a worker's task."""
        for patience in (GRACE, PATIENCE, PATIENCE):
            try:
                async with asyncio.timeout(patience):
                    reply, body = await worker.reply(_ignore)
            except TimeoutError:
                worker.signal()
                continue
            except (asyncio.IncompleteReadError, ConnectionError):
                break
            if reply["kind"] == "answer":
                worker.keys.add(key)
                keep(body)
            self.counts["answered" if reply["kind"] == "answer" else "stopped"] += 1
            self._release(worker)
            return
        await self._replace(worker)

    async def _replace(self, worker: _Process) -> None:
        await worker.end()
        self.all.discard(worker)
        self.counts["replaced"] += 1
        if not self.closed:
            await self._hire()

    def told(self) -> dict[str, int]:
        """Return what was done since the start, and how many are at work now."""
        return {**self.counts, "at work": len(self.all) - len(self.idle), "waiting": len(self.queue)}

    async def close(self) -> None:
        """End every worker."""
        self.closed = True
        for worker in list(self.all):
            await worker.end()
