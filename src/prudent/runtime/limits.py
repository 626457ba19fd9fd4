"""Limits of a solve: memory, time, threads, the device and ranks; Ctrl-C; and the interface for checkpoints.

The clock stops while kernels are compiled or read from the cache, and the compilation is announced.
"""

import math
import os
import re
import signal
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from threading import Lock
from types import FrameType
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from prudent.errors import PrudentError, TooLarge, as_number
from prudent.kernels import compiler
from prudent.runtime.gpu import Device, device_named
from prudent.runtime.progress import announce
from prudent.runtime.ranks import Ranks

REST, AT_LEAST, AT_ONCE = 0.1, 0.1, 1.0
"""Extra time, relative to the limit, for evaluating what was swept in time; the same in seconds; and after Ctrl-C."""

UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}

Arrays = dict[str, NDArray[Any]]

AT_A_TIME, PART, LEAST = 0.8, 0.25, 0.1
"""The seconds between two checks; at most this part of the time left; and the least time left that is counted."""

FIRST, GROWTH = 64, 4
"""The first stretch is so many times smaller than expected; how much larger each may be than the one before."""

compiler.tell = announce


def now() -> float:
    """Return seconds on a clock that does not count compilation; only differences are meaningful."""
    return time.perf_counter() - compiler.seconds


class Keeper(Protocol):
    """Saves checkpoints of a long sweep, so that it can be resumed after a kill."""

    def load(self, key: str) -> Arrays | None:
        """Return the arrays saved under a key, or None."""

    def save(self, key: str, content: Arrays, *, final: bool = False) -> None:
        """Save arrays under a key, beside those saved as ``final``; drop all others."""

    def due(self) -> bool:
        """Return whether it is time to save again."""


class Stopped(PrudentError):
    """Raised if work that is useless unfinished was stopped early."""

    def __init__(self, reason: str, what: str) -> None:
        self.reason, self.what = reason, what
        more = {
            "time": "takes longer than the time limit; raise time_limit= (--time-limit)",
            "memory": "takes more memory than the limit; raise memory= (--memory), or set a larger step=",
        }
        super().__init__(f"{what} {more.get(reason, 'was interrupted')}")

    def __reduce__(self) -> tuple[type["Stopped"], tuple[str, str]]:
        return type(self), (self.reason, self.what)  # as it comes from another process


class Interruption:
    """Whether Ctrl-C was pressed, for all limits of one call.

    Inside its context, Ctrl-C asks for the best answer so far; a second Ctrl-C interrupts at once.
    """

    def __init__(self, asked: bool = False) -> None:
        self.asked = asked
        self._depth, self._lock, self._before = 0, Lock(), cast(Any, None)

    def __reduce__(self) -> tuple[type["Interruption"], tuple[()]]:
        return type(self), ()  # another process has a Ctrl-C of its own

    def __enter__(self) -> None:
        with self._lock:  # sweeps may run side by side
            self._depth += 1
        if self._depth == 1 and threading.current_thread() is threading.main_thread():
            before = signal.getsignal(signal.SIGINT)
            if callable(before):  # not if Ctrl-C is ignored
                self._before = before
                signal.signal(signal.SIGINT, self._interrupt)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True

    def __exit__(self, *raised: object) -> None:
        with self._lock:
            self._depth -= 1
        if self._depth == 0 and self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            self._before = None


class Uninterrupted(Interruption):
    """For work without an answer before its end: Ctrl-C interrupts it at once, as it does outside, and is forgotten."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *raised: object) -> None:
        pass


@dataclass(frozen=True)
class Limits:
    """What a call may use, and where: memory, time, threads, the device and the ranks.

    It is passed on as an argument.  Who wants other limits makes a record of its own, which the same Ctrl-C reaches.
    Inside its context, Ctrl-C asks a solve to stop and return its best answer; a second Ctrl-C interrupts it at once.
    """

    memory: int  # bytes
    time_limit: float | None = None  # seconds, without compilation
    keeper: Keeper | None = None
    threads: int = 1  # apart from work that ranks share, for which they have their own threads
    device: Device | None = None  # the device to compute on; None: the CPU
    ranks: Ranks | None = None  # the processes that share sweeps; None: only this one
    partial: bool = True  # whether a stopped sweep is useful; if not, it raises Stopped
    began: float = field(default_factory=now)
    interruption: Interruption = field(default_factory=Interruption, repr=False)

    @classmethod
    def of(
        cls,
        memory: int | float | str | None,
        time_limit: float | None,
        threads: int | None = None,
        device: str = "cpu",
        ranks: Ranks | None = None,
    ) -> "Limits":
        """Return the limits from a user's arguments; the default memory is 0.8 of the available memory."""
        if ranks is not None and device != "cpu":
            raise PrudentError(f"device is {device!r}, but ranks (comm=) sweep on CPUs only; remove device= or comm=")
        if time_limit is not None:
            time_limit = as_number("time_limit", time_limit, "a number of seconds above 0", lambda x: x > 0)
        available = available_memory() if ranks is None else ranks.memory
        most = int(0.8 * available) if memory is None else in_bytes(memory)
        if threads is None:
            threads = own_cores(ranks)
        elif isinstance(threads, bool) or not isinstance(threads, int | np.integer) or not 1 <= threads <= 1024:
            raise PrudentError(f"threads is {threads!r}; it must be a whole number from 1 to 1024")
        if ranks is not None:  # while others wait for rank 0, it may use their cores, if it is not bound to its own
            ranks.threads = int(threads)
            threads = max(min(ranks.threads * ranks.here, cores()), ranks.threads)
        return cls(most, time_limit, None, int(threads), device_named(device), ranks)

    @property
    def left(self) -> float:
        """The seconds left."""
        return np.inf if self.time_limit is None else self.began + self.time_limit - now()

    @property
    def stop(self) -> str:
        """Why to stop now: ``"interrupted"``, ``"time"``, or empty."""
        if self.interruption.asked:
            return "interrupted"
        return "time" if self.left <= 0 else ""

    @property
    def for_the_rest(self) -> "Limits":
        """The same limits with some more time: for completing an answer after a sweep, also after Ctrl-C."""
        if self.interruption.asked:
            return replace(self, time_limit=now() - self.began + AT_ONCE, interruption=Interruption())
        if self.time_limit is None:
            return self
        return replace(self, time_limit=max((1 + REST) * self.time_limit, now() - self.began + AT_LEAST))

    @property
    def without_time(self) -> "Limits":
        """The same limits without one on time, also after Ctrl-C: for values that an answer needs."""
        return replace(self, time_limit=None, keeper=None, ranks=None, interruption=Interruption())

    @property
    def whole(self) -> "Limits":
        """The same limits for work that is useless unfinished: if it is stopped, it raises Stopped."""
        return replace(self, partial=False)

    def check(self, need: int, what: str, advice: str) -> None:
        """Reject work that exceeds the memory limit, before it takes any memory."""
        if need > self.memory:
            limit = shown_bytes(self.memory)
            raise TooLarge(f"{what} would take {shown_bytes(need)} of memory; the limit is {limit}; {advice}")

    def __enter__(self) -> "Limits":
        self.interruption.__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        self.interruption.__exit__(*raised)


UNLIMITED = Limits(memory=sys.maxsize, interruption=Uninterrupted())
"""For work that takes little: one thread, on the CPU, until it is done.  All calls share it, so it keeps nothing."""


def go_on(limits: Limits, what: str) -> None:
    """Raise Stopped if limits ask work that is useless unfinished to stop; cheap in loops."""
    if why := limits.stop:
        raise Stopped(why, what)


def room_on(device: Device, need: int, what: str) -> None:
    """Reject work that needs more of a device's memory than is free, before it takes any."""
    if need > (free := device.free):
        raise TooLarge(
            f"{what} would take {shown_bytes(need)} of the GPU's memory, but {shown_bytes(free)} are free; round costs "
            "to a larger step (step=, --step), or remove device= (--device)"
        )


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def own_cores(ranks: Ranks | None) -> int:
    """Return how many cores this process may use: its part of the cores it is bound to, if ranks share them."""
    return cores() if ranks is None else max(cores() // ranks.sharing, 1)


def available_memory() -> int:
    """Return the bytes of memory available now, or of all memory if the system does not report it."""
    with suppress(OSError, ValueError, IndexError), open("/proc/meminfo", encoding="ascii") as file:
        for line in file:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    with suppress(OSError, ValueError, AttributeError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return 8 * 10**9


def in_bytes(memory: int | float | str) -> int:
    """Return a number of bytes, given as a number or as text such as ``"24GB"``."""
    if isinstance(memory, str):
        found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?)B?\s*", memory.upper())
        value = float(found[1]) * UNITS[found[2]] if found else np.nan
    else:
        number = isinstance(memory, int | float | np.number) and not isinstance(memory, bool)
        value = float(memory) if number else np.nan
    if not 0 < value < np.inf:
        raise PrudentError(f"memory is {memory!r}; it must be a number of bytes above 0, such as 2000000000 or '2GB'")
    return int(value)


def shown_bytes(amount: float) -> str:
    """Return a number of bytes as text, such as ``24 GB``."""
    for unit, size in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6)):
        if amount >= size:
            return f"{amount / size:.3g} {unit}"
    return f"{amount / 1000:.3g} kB"


class Pace:
    """How many levels to take between two checks of the limits: as many as the last ones show to be in time.

    There are at most ``most``.
    """

    def __init__(self, most: float, limits: Limits) -> None:
        self.most, self.limits = max(most, 1.0), limits
        self.size = self.most / FIRST
        self.done, self.at = 0, math.nan

    def next(self, done: int) -> int:
        """Return how many levels to take after the first ``done``; those since the last call took the time since."""
        levels, seconds, self.done, self.at = done - self.done, now() - self.at, done, now()
        if seconds > 0 and levels > 0:  # not at first
            wanted = min(AT_A_TIME, PART * max(self.limits.left, LEAST)) * levels / seconds
            self.size = min(wanted, GROWTH * self.size, self.most)
        return max(int(self.size), 1)
