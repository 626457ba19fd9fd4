"""Limits of a solve: memory, time, threads, the device and ranks; Ctrl-C; and the interface for checkpoints."""

import os
import re
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from threading import Lock
from types import FrameType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from prudent.errors import PrudentError, TooLarge, as_number
from prudent.runtime.clock import now
from prudent.runtime.gpu import Device, device_named
from prudent.runtime.ranks import Ranks

__all__ = [
    "UNLIMITED",
    "Keeper",
    "Limits",
    "Stopped",
    "available_memory",
    "cores",
    "device_in_force",
    "go_on",
    "in_bytes",
    "in_force",
    "limits_in_force",
    "own_cores",
    "room_on",
    "shown_bytes",
    "threads_in_force",
]

REST, AT_LEAST, AT_ONCE = 0.1, 0.1, 1.0
"""Extra time, relative to the limit, for evaluating what was swept in time; the same in seconds; and after Ctrl-C."""

UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}

Arrays = dict[str, NDArray[Any]]


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


@dataclass
class Limits:
    """Memory, time, threads, the device and the ranks that a solve may use.

    Inside its context, Ctrl-C asks a solve to stop and return its best answer; a second Ctrl-C interrupts it at once.
    """

    memory: int  # bytes
    time_limit: float | None = None  # seconds, without compilation
    keeper: Keeper | None = None
    threads: int = 1  # apart from work that ranks share, for which they have their own threads
    device: Device | None = None  # the device to compute on; None: the CPU
    ranks: Ranks | None = None  # the processes that share sweeps; None: only this one
    interrupted: bool = False
    partial: bool = True  # whether a stopped sweep is useful; if not, it raises Stopped
    began: float = field(default_factory=now)
    above: "Limits | None" = None  # the limits that Ctrl-C reaches, if these are only for the rest of their work
    _depth: int = field(default=0, init=False)
    _lock: Lock = field(default_factory=Lock, init=False, repr=False)
    _before: Any = field(default=None, init=False)

    @classmethod
    def of(
        cls,
        memory: int | float | str | None,
        time_limit: float | None,
        keeper: Keeper | None = None,
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
        return cls(most, time_limit, keeper, int(threads), device_named(device), ranks)

    @property
    def left(self) -> float:
        """The seconds left."""
        return np.inf if self.time_limit is None else self.began + self.time_limit - now()

    @property
    def stop(self) -> str:
        """Why to stop now: ``"interrupted"``, ``"time"``, or empty."""
        if self.interrupted or (self.above is not None and self.above.interrupted):
            return "interrupted"
        return "time" if self.left <= 0 else ""

    @property
    def for_the_rest(self) -> "Limits":
        """The same limits with some more time: for completing an answer after a sweep, also after Ctrl-C."""
        if self.interrupted:
            return replace(self, time_limit=now() - self.began + AT_ONCE, interrupted=False)
        if self.time_limit is None:
            return replace(self, above=self)
        more = max((1 + REST) * self.time_limit, now() - self.began + AT_LEAST)
        return replace(self, time_limit=more, above=self)

    @property
    def without_time(self) -> "Limits":
        """The same memory, threads and device, without a time limit: for values that an answer needs."""
        return Limits(self.memory, threads=self.threads, device=self.device)

    def check(self, need: int, what: str, advice: str) -> None:
        """Reject work that exceeds the memory limit, before it takes any memory."""
        if need > self.memory:
            refused = TooLarge(
                f"{what} would take {shown_bytes(need)} of memory; the limit is {shown_bytes(self.memory)}; {advice}"
            )
            refused.need = need
            raise refused

    def __enter__(self) -> "Limits":
        with self._lock:  # sweeps may run side by side
            self._depth += 1
        if self._depth == 1 and threading.current_thread() is threading.main_thread():
            before = signal.getsignal(signal.SIGINT)
            if callable(before):  # not if Ctrl-C is ignored
                self._before = before
                signal.signal(signal.SIGINT, self._interrupt)
        return self

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if self.interrupted:
            raise KeyboardInterrupt
        self.interrupted = True

    def __exit__(self, *raised: object) -> None:
        with self._lock:
            self._depth -= 1
        if self._depth == 0 and self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            self._before = None


UNLIMITED = Limits(memory=sys.maxsize)
"""For work that takes little: one thread, on the CPU, until it is done."""


def go_on(limits: Limits | None, what: str) -> None:
    """Raise Stopped if limits ask work that is useless unfinished to stop; cheap in loops."""
    if limits is not None and (why := limits.stop):
        raise Stopped(why, what)


_in_force: ContextVar[Limits | None] = ContextVar("limits in force", default=None)


@contextmanager
def in_force(limits: Limits) -> Iterator[None]:
    """Apply limits to all work inside, even if they are not passed on: in values that are computed once."""
    token = _in_force.set(limits)
    try:
        yield
    finally:
        _in_force.reset(token)


def limits_in_force() -> Limits | None:
    """Return the limits that hold here, if any."""
    return _in_force.get()


def threads_in_force() -> int:
    """Return how many threads work here may use: 1 without limits in force."""
    limits = limits_in_force()
    return 1 if limits is None else limits.threads


def device_in_force() -> Device | None:
    """Return the device that work here uses, None for the CPU."""
    limits = limits_in_force()
    return None if limits is None else limits.device


def room_on(device: Device, need: int, what: str) -> None:
    """Reject work that needs more of a device's memory than is free, before it takes any."""
    if need > (free := device.free):
        refused = TooLarge(
            f"{what} would take {shown_bytes(need)} of the GPU's memory, but {shown_bytes(free)} are free; round costs "
            "to a larger step (step=, --step), or remove device= (--device)"
        )
        refused.need = need
        raise refused


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def own_cores(ranks: Ranks | None) -> int:
    """Return how many cores this process may use: its part of the cores it is bound to, if ranks share them."""
    return cores() if ranks is None else max(cores() // ranks.sharing, 1)


def available_memory() -> int:
    """Return the bytes of memory available now, or of all memory if the system does not report it."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
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
