"""The compiled loops: arrays in, arrays out, no Python objects.

Only modules in this package import numba, and they import nothing else but numpy and each other.  Related
arrays are passed as named tuples.  Compiled code is kept in numba's cache.  The cache does not notice a change in a
kernel that is compiled into another one, or in a tuple's name.  So files in the cache that are older than the newest
source are removed when the package is imported.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Lock, Timer

from numba.core.event import Event, Listener, register

__all__ = ["Compiler", "cache_folder", "compiler", "drop_stale"]

PURPOSES = {
    "graphs": "models with cycles",
    "inflow": "models with cycles",
    "levels": "models with cycles",
    "game": "the paper's methods",
    "episodes": "simulated runs",
}
"""The purpose of the kernels of a module; all other modules serve planning."""

READING = 0.3
"""Seconds after which another compiler does more than read its cache."""

LOCK, COMPILE = "numba:compiler_lock", "numba:compile"


def drop_stale(folder: Path) -> None:
    """Remove the files of numba's cache for the sources in a folder that are older than the newest of them."""
    with contextlib.suppress(OSError):  # a folder without write access has no such files
        newest = max((source.stat().st_mtime for source in folder.glob("*.py")), default=0.0)
        for compiled in (folder / "__pycache__").glob("*.nb[ci]"):
            if compiled.stat().st_mtime < newest:
                compiled.unlink(missing_ok=True)


drop_stale(Path(__file__).parent)


def cache_folder() -> str:
    """Return the folder in which compiled kernels are kept."""
    from prudent.kernels.team import draw

    return str(draw.stats.cache_path)


class Compiler(Listener):
    """The time that numba has compiled, or read compiled code, so far; and who is told when it compiles.

    Numba reports when it takes the lock under which it compiles, and when it begins to compile a function.
    """

    def __init__(self) -> None:
        self.tell: Callable[[str], None] = lambda message: None
        self._told: set[str] = set()
        self._guard, self._depth, self._since, self._before = Lock(), 0, 0.0, 0.0
        self._inside = 0  # how many functions are being compiled, each for the previous one
        for kind in (LOCK, COMPILE):
            register(kind, self)

    @property
    def seconds(self) -> float:
        """The seconds so far, all threads together."""
        with self._guard:
            return self._before + (time.perf_counter() - self._since if self._depth else 0.0)

    def on_start(self, event: Event) -> None:
        """Start the clock, or announce what is compiled."""
        if event.kind == COMPILE:
            self._inside += 1
            if self._inside == 1:
                package, _, name = event.data["dispatcher"].py_func.__module__.rpartition(".")
                if package == __name__:
                    self._announce(PURPOSES.get(name, "planning"))
            return
        self._start()

    def on_end(self, event: Event) -> None:
        """Stop the clock."""
        if event.kind == COMPILE:
            self._inside -= 1
            return
        self._stop()

    @contextlib.contextmanager
    def at_work(self, purpose: str) -> Iterator[None]:
        """Count the time inside as compilation; announce its purpose, unless the compiler only reads a cache."""
        timer = Timer(READING, self._announce, [purpose])
        timer.daemon = True
        timer.start()
        self._start()
        try:
            yield
        finally:
            timer.cancel()
            self._stop()

    def _start(self) -> None:
        with self._guard:
            if self._depth == 0:
                self._since = time.perf_counter()
            self._depth += 1

    def _stop(self) -> None:
        with self._guard:
            self._depth -= 1
            if self._depth == 0:
                self._before += time.perf_counter() - self._since

    def _announce(self, purpose: str) -> None:
        """Announce the purpose of kernels, once."""
        if purpose not in self._told:
            self._told.add(purpose)
            self.tell(f"compiling kernels for {purpose}, once; this may take a minute")


compiler = Compiler()
