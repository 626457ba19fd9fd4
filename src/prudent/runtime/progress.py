"""Progress of long work on stderr: nothing for the first two seconds, then one line that is updated."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer

from prudent.runtime.lines import for_stream

PATIENCE = 2.0
"""Seconds of silence before progress is shown."""


def announce(message: str) -> None:
    """Print a message on stderr; on a terminal it breaks only between words."""
    print(for_stream(f"prudent: {message}", sys.stderr), file=sys.stderr, flush=True)


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
    """A line that shows the progress of work, if it takes long: on a terminal, or in a notebook.

    Only one line is shown at a time: work inside other work that is shown stays silent.
    """

    _shown: "Progress | None" = None  # the one whose line is shown

    def __init__(self, label: str, *, total: float | None = None, unit: str = "", patience: float = PATIENCE) -> None:
        self.label, self.total, self.unit = label, total, unit
        self._line: _Bar | _Cell | None = None
        self._began = time.monotonic()
        self._next = self._began + patience

    def __enter__(self) -> "Progress":
        return self

    def at(self, done: float, total: float | None = None) -> None:
        """Show how much is done, and the total if it is better known now; cheap enough for loops."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + 0.2
        if self._line is None and Progress._shown is None:
            self._line = self._opened()
            Progress._shown = None if self._line is None else self
        if self._line is not None:
            self._line.update(done, self.total if total is None else total)

    def _opened(self) -> "_Bar | _Cell | None":
        if sys.stderr.isatty():
            return _Bar(self.label, self.total, self.unit)
        return _Cell(self.label, self.unit, self._began) if _in_notebook() else None

    def __exit__(self, *raised: object) -> None:
        if self._line is not None:
            self._line.end()
            self._line = Progress._shown = None


class _Bar:
    """A line on a terminal, which is removed at the end."""

    def __init__(self, label: str, total: float | None, unit: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        done = (TextColumn("{task.description}"), TextColumn(f"{{task.completed:,.0f}} {unit}"))
        left = () if total is None else (BarColumn(), TimeRemainingColumn())
        self._bar = Bar(*done, *left, TimeElapsedColumn(), console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task(label, total=total)
        self._bar.start()

    def update(self, done: float, total: float | None) -> None:
        self._bar.update(self._task, completed=done, total=total)

    def end(self) -> None:
        self._bar.stop()


class _Cell:
    """A line below a notebook's cell, which is empty at the end.

    rich would need ipywidgets for that; IPython alone can show a text and change it.
    """

    def __init__(self, label: str, unit: str, began: float) -> None:
        from IPython.display import display

        self._label, self._unit, self._began = label, unit, began
        self._display = display({"text/plain": label}, raw=True, display_id=True)

    def update(self, done: float, total: float | None) -> None:
        of = "" if not total else f"of {total:,.0f}"
        share = "" if not total else f"({min(done / total, 1):.0%})"
        words = filter(None, (f"{self._label}: {done:,.0f}", of, self._unit, share))
        self._show(f"{' '.join(words)}, {time.monotonic() - self._began:,.0f} s")

    def end(self) -> None:
        self._show("")

    def _show(self, text: str) -> None:
        self._display.update({"text/plain": text}, raw=True)


def _in_notebook() -> bool:
    """Return whether the code runs in a notebook's cell, which displays output."""
    if "ipykernel" not in sys.modules:
        return False
    from rich.console import Console

    return Console().is_jupyter
