"""Memory that all ranks of one machine see.

It is a file in memory that never has a name, so nothing of it remains, however the ranks end.  The other ranks open the
file that rank 0 has open.
"""

import mmap
import os
import platform
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.errors import TooLarge
from prudent.kernels.team import arrive, arrived, new_counters

__all__ = ["CommonMemory", "common_memory", "machine", "wait_until"]

FOLDER = "/dev/shm"
"""The folder of files in memory, on systems that have one."""

ENOUGH = 0.25
"""The least room there, as a part of the available memory: some containers have little."""

NOBODY = 3
"""A tag that no message has."""

LOOKS, REST, LONGEST = 200, 1e-4, 2e-3
"""How often a waiting rank checks before it yields its core; how long it then sleeps, and at most."""


class CommonMemory:
    """Arrays that all ranks of a communicator see, and a place to meet."""

    def __init__(self, comm: Any, counters: NDArray[np.int64]) -> None:
        self._comm, self._counters, self._met = comm, counters, 0

    @property
    def room(self) -> int:
        """How many more bytes fit."""
        return int(_room())

    def zeros(self, shape: int | tuple[int, ...], dtype: Any = np.float64) -> NDArray[Any]:
        """Return an array; all ranks call it.  Memory is taken only when it is written to."""
        kind = np.dtype(dtype)
        size = int(np.prod(shape)) * kind.itemsize
        found = _mapped(self._comm, max(size, 1), size)
        if found is None:
            raise TooLarge(f"ranks need {size:,} bytes of memory in {FOLDER}, which has less; enlarge it")
        return np.asarray(found[:size].view(kind).reshape(shape))

    @property
    def meetings(self) -> int:
        """How often the ranks have met."""
        return self._met // int(self._comm.Get_size())

    def meet(self) -> None:
        """Wait until all ranks are here; each then sees what the others have written before."""
        self._met += self._comm.Get_size()
        if not arrive(self._counters, self._met):
            # Asking for messages lets those in transit arrive.
            wait_until(lambda: arrived(self._counters, self._met) or self._comm.Iprobe(source=0, tag=NOBODY))


def common_memory(comm: Any, available: int) -> CommonMemory | None:
    """Return memory that all ranks see; None if they share none, or too little."""
    if len(set(comm.allgather(machine()))) > 1:
        return None
    counters = _mapped(comm, new_counters().nbytes, ENOUGH * available)
    return None if counters is None else CommonMemory(comm, counters.view(np.int64))


def machine() -> str:
    """Return a name that no other machine has, as far as the system reports."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return f"{platform.node()} {file.read().strip()}"
    except OSError:
        return platform.node()


def wait_until(done: Callable[[], bool]) -> None:
    """Check whether something is done until it is, less and less often."""
    looks = 0
    while not done():
        looks += 1
        if looks > LOOKS:
            time.sleep(0.0 if looks < 2 * LOOKS else min(REST * looks / (2 * LOOKS), LONGEST))


def _mapped(comm: Any, size: int, room: float) -> NDArray[np.uint8] | None:
    """Return bytes that all ranks see; None if some cannot, or rank 0 finds less room."""
    told, handle, memory = None, -1, None
    first = comm.Get_rank() == 0
    if first and _room() >= room:
        with suppress(OSError):  # some file systems have no files without a name
            handle = os.open(FOLDER, os.O_TMPFILE | os.O_RDWR, 0o600)
            os.ftruncate(handle, size)
            told = f"/proc/{os.getpid()}/fd/{handle}", _identity(handle)
    told = comm.bcast(told, root=0)
    try:
        if told is not None:
            handle = handle if first else os.open(told[0], os.O_RDWR)
            if _identity(handle) == told[1]:  # otherwise the ranks have separate process numbers
                memory = np.frombuffer(mmap.mmap(handle, size), dtype=np.uint8)
    except OSError:
        pass  # it is on another machine, after all
    finally:
        if handle >= 0 and not first:
            os.close(handle)
    seen = all(comm.allgather(memory is not None))
    if first and handle >= 0:
        os.close(handle)
    return memory if seen else None


def _identity(handle: int) -> tuple[int, int]:
    """Return what distinguishes an open file from others."""
    found = os.fstat(handle)
    return found.st_dev, found.st_ino


def _room() -> float:
    """Return how many bytes files in memory may take."""
    try:
        found = os.statvfs(FOLDER)
    except (AttributeError, OSError):
        return 0.0
    return float(found.f_bavail * found.f_frsize)
