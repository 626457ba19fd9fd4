"""Progress of long work on stderr: nothing for the first two seconds, then one line that is updated."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer
from typing import Any

__all__ = ["Progress", "announce", "announce_if_long"]

PATIENCE = 2.0
"""Seconds of silence before progress is shown."""


def announce(message: str) -> None:
    """Print a message on stderr."""
    print(f"prudent: {message}", file=sys.stderr, flush=True)


@contextmanager
def announce_if_long(message: str) -> Iterator[None]:
    """Print a message on stderr, terminal or not, if the body of the context takes more than two seconds."""
    timer = Timer(PATIENCE, announce, [message])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class Progress:
    """A line that shows the progress of work, but only if it takes long and stderr is a terminal."""

    def __init__(self, label: str, *, total: float | None = None, unit: str = "") -> None:
        self.label, self.total, self.unit = label, total, unit
        self._bar: Any = None
        self._task: Any = None
        self._next = time.monotonic() + PATIENCE

    def __enter__(self) -> "Progress":
        return self

    def at(self, done: float, total: float | None = None) -> None:
        """Show how much is done, and the total if it is now known better; cheap enough for loops."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + 0.2
        if not sys.stderr.isatty():
            return
        if self._bar is None:
            self._open()
        self._bar.update(self._task, completed=done, total=self.total if total is None else total)

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        done = (TextColumn("{task.description}"), TextColumn(f"{{task.completed:,.0f}} {self.unit}"))
        left = () if self.total is None else (BarColumn(), TimeRemainingColumn())
        self._bar = Bar(*done, *left, TimeElapsedColumn(), console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task(self.label, total=self.total)
        self._bar.start()

    def __exit__(self, *raised: object) -> None:
        if self._bar is not None:
            self._bar.stop()
