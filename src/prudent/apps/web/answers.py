"""A cache of answers, and of questions under way, for which several requests may wait."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

Take = Callable[[bytes], None]
Work = Callable[[Take, Take], Awaitable[bytes]]
"""Computes an answer.  It passes an answer that comes when nobody waits any more to the first function, and what it has
so far to the second."""


@dataclass
class _Question:
    work: "asyncio.Task[bytes]"
    waiting: int = 0
    so_far: bytes | None = None


class Answers:
    """Answers by question, at most ``most`` bytes of them.

    Work is cancelled when nobody waits for it any more.
    """

    def __init__(self, most: int) -> None:
        self.most, self.size = most, 0
        self.kept: OrderedDict[str, bytes] = OrderedDict()
        self.open: dict[str, _Question] = {}

    async def get(self, question: str, work: Work) -> bytes:
        """Return the answer to a question: kept, under way, or computed now."""
        if (body := self.kept.get(question)) is not None:
            self.kept.move_to_end(question)
            return body
        found = self.open.get(question)
        if found is None:
            found = self.open[question] = _Question(asyncio.ensure_future(self._worked(question, work)))
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

    async def _worked(self, question: str, work: Work) -> bytes:
        this = asyncio.current_task()

        def tell(body: bytes) -> None:
            if question in self.open and self.open[question].work is this:
                self.open[question].so_far = body

        try:
            body = await work(lambda late: self._keep(question, late), tell)
        finally:
            if question in self.open and self.open[question].work is this:
                del self.open[question]
        self._keep(question, body)
        return body

    def _keep(self, question: str, body: bytes) -> None:
        if len(body) > self.most // 4:
            return
        self.size += len(body) - len(self.kept.pop(question, b""))
        self.kept[question] = body
        while self.size > self.most:
            self.size -= len(self.kept.popitem(last=False)[1])
