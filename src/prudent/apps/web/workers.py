"""The work of the server: answers that are kept or under way, and the processes that compute them.

A task is handed out, waited for, and stopped when nobody waits for it any more.  A process that does not stop is
replaced.
"""

import asyncio
import contextlib
import json
import sys
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from prudent.apps.web.worker import ANSWERED, SO_FAR, STOPPED, Bounded, framed

Hear = Callable[[int, bytes], None]
"""Hears the status and the body of each frame about a task: what is known so far, and the answer, however late."""

Work = Callable[[Hear], Awaitable[bytes]]
"""Computes an answer."""

GRACE = 0.3  # seconds that a task continues after it was given up: if it is done by then, its answer is kept
PATIENCE = 1.5  # seconds that it has to stop after a signal, and after a second one; then its process is replaced


class NoAnswer(Exception):
    """Why a request has no answer, with its status of HTTP."""

    def __init__(self, status: int, error: str, **more: Any) -> None:
        super().__init__(error)
        self.status, self.content = status, {"error": error, **more}


@dataclass
class _UnderWay:
    work: "asyncio.Future[bytes]" = field(init=False)
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
            return bytes(self.kept.latest(question))
        if question not in self.open:
            this = self.open[question] = _UnderWay()
            this.work = asyncio.ensure_future(work(partial(self._hear, question, this)))
        found = self.open[question]
        found.waiting += 1
        try:
            return await asyncio.shield(found.work)
        finally:
            found.waiting -= 1
            if not found.waiting:
                found.work.cancel()
                del self.open[question]

    def so_far(self, question: str) -> bytes | None:
        """Return what is known so far of the answer to a question under way, if anything is."""
        found = self.open.get(question)
        return None if found is None else found.so_far

    def _hear(self, question: str, found: _UnderWay, status: int, body: bytes) -> None:
        if status == SO_FAR:
            found.so_far = body
        elif status == ANSWERED and len(body) <= self.kept.most // 4:
            self.kept.keep(question, body)


@dataclass(eq=False)
class _Process:
    process: asyncio.subprocess.Process
    keys: set[str] = field(default_factory=set)  # the models it has seen

    async def ask(self, about: dict[str, Any], raw: bytes, hear: Hear) -> tuple[int, bytes]:
        """Send a task; return the status and the body of the frame that ends it."""
        assert self.process.stdin is not None
        self.process.stdin.write(framed(about, raw))
        await self.process.stdin.drain()
        while True:
            status, body = await self.read()
            hear(status, body)
            if status != SO_FAR:
                return status, body

    async def read(self) -> tuple[int, bytes]:
        assert self.process.stdout is not None
        about = json.loads(await self.process.stdout.readuntil())
        return about["status"], await self.process.stdout.readexactly(about["size"])

    def stop(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.terminate()

    async def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        await self.process.wait()


@dataclass(eq=False)
class _Job:
    about: dict[str, Any]
    raw: bytes
    hear: Hear
    answer: "asyncio.Future[bytes]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def end(self, body: bytes | NoAnswer) -> None:
        """Answer, or say why there is no answer, unless nobody waits any more."""
        if self.answer.done():
            return
        if isinstance(body, bytes):
            self.answer.set_result(body)
        else:
            self.answer.set_exception(body)


class Crew:
    """A fixed number of workers and a bounded queue of tasks; when it is full, the oldest one is refused as busy."""

    def __init__(self, size: int, *, waiting: int, limit: float, memory: int, niceness: int = 0) -> None:
        self.size, self.waiting, self.limit, self.memory, self.niceness = size, waiting, limit, memory, niceness
        self.idle: list[_Process] = []
        self.all: set[_Process] = set()
        self.queue: deque[_Job] = deque()
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
            await worker.read()
        except asyncio.IncompleteReadError:
            self.all.discard(worker)
            raise RuntimeError("a worker process did not start; its message is on the server's stderr") from None
        self._free(worker)

    def _free(self, *workers: _Process) -> None:
        """Give workers that are idle, or now free, to the newest tasks in the queue: older ones may be given up.

        A task goes to a worker that knows its model, if there is one.
        """
        self.idle += workers
        while self.idle and self.queue:
            job = self.queue.pop()
            if not job.answer.done():
                chosen = next((each for each in self.idle if job.about["key"] in each.keys), self.idle[0])
                self.idle.remove(chosen)
                task = asyncio.get_running_loop().create_task(self._work(chosen, job))
                self.tasks.add(task)
                task.add_done_callback(self.tasks.discard)

    async def run(self, about: dict[str, Any], raw: bytes, hear: Hear = lambda status, body: None) -> bytes:
        """Return the answer to a task; if cancelled, stop the task unless it is nearly done.

        ``key`` of the task identifies the model; an uploaded one has a ``name``, and its file is ``raw``.
        """
        job = _Job(about, raw, hear)
        self.queue.append(job)
        self._free()
        if len(self.queue) > self.waiting:
            self._refuse(self.queue[0])
        timer = asyncio.get_running_loop().call_later(self.limit, self._refuse, job)
        try:
            return await job.answer
        finally:
            timer.cancel()
            if job in self.queue:
                self.queue.remove(job)

    def _refuse(self, job: _Job) -> None:
        """Refuse a task that still waits for a worker."""
        if job in self.queue:
            self.queue.remove(job)
            self.counts["refused as busy"] += 1
            job.end(NoAnswer(503, "all workers are busy: try again in a second"))

    async def _work(self, worker: _Process, job: _Job) -> None:
        """Let a worker do a task; stop it if it takes too long or was given up, and replace a worker that ended."""
        reply = asyncio.ensure_future(worker.ask(job.about, job.raw, job.hear))
        either: set[asyncio.Future[Any]] = {reply, job.answer}
        await asyncio.wait(either, timeout=self.limit, return_when=asyncio.FIRST_COMPLETED)
        if not reply.done():
            job.end(NoAnswer(504, "this takes longer than this server allows; solve it with the command"))
        for patience in (GRACE, PATIENCE, PATIENCE):
            if (await asyncio.wait({reply}, timeout=patience))[0]:
                break
            worker.stop()
        else:
            await worker.end()
        try:
            status, body = await reply
        except (asyncio.IncompleteReadError, ConnectionError):
            job.end(NoAnswer(500, "a worker process ended; try again, with a new worker"))
            await worker.end()
            self.all.discard(worker)
            self.counts["replaced"] += 1
            if not self.closed:
                await self._hire()
            return
        if status in (ANSWERED, STOPPED):
            self.counts["answered" if status == ANSWERED else "stopped"] += 1
        job.end(body if status == ANSWERED else NoAnswer(status, **json.loads(body)))
        worker.keys.add(job.about["key"])
        self._free(worker)

    def told(self) -> dict[str, int]:
        """Return what was done since the start, and how many are at work now."""
        return {**self.counts, "at work": len(self.all) - len(self.idle), "waiting": len(self.queue)}

    async def close(self) -> None:
        """End every worker."""
        self.closed = True
        for worker in list(self.all):
            await worker.end()
