"""The actions of a sweep on a device: their rows are copied to the host while the sweep continues."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.engine.prepared import choice_type
from prudent.engine.sweep.task import AT_FIRST, Task
from prudent.runtime.gpu import Device
from prudent.runtime.team import copy_together

CHUNK = 2**24
"""Bytes of actions that go to the host at a time, if a row is no longer."""

AHEAD = 2
"""Copies that may be in progress while the sweep continues."""


def policy_bytes(task: Task, span: int = 1, late: int = 0) -> int:
    """Return the memory for actions on the device: ``span`` rows at a time, finished ``late`` levels later."""
    return _rows(task, span, late) * _width(task)


def _width(task: Task) -> int:
    return int(task.prepared.n_states * np.dtype(choice_type(task.prepared)).itemsize)


def _each(task: Task) -> int:
    """Return how many rows go to the host at a time."""
    return max(min(CHUNK // _width(task), task.most + 1), 1)


def _rows(task: Task, span: int, late: int) -> int:
    return 2 * max(_each(task), span) + late


class DevicePolicy:
    """The rows of actions on a device, row b at ``b % rows``, and the table on the host that receives them.

    A sweep writes up to ``span`` rows at a time, and they are finished ``late`` levels later.
    """

    def __init__(self, device: Device, task: Task, span: int = 1, late: int = 0) -> None:
        n, kind = task.prepared.n_states, choice_type(task.prepared)
        self.device, self.late, self.each, self._threads = device, late, _each(task), task.threads
        self.rows = _rows(task, span, late)
        self.ring: Any = device.new((self.rows, n), kind)
        # Memory is taken only when it is written to, so the table may begin long.
        self._most = task.most + 1
        self.table: NDArray[Any] = np.zeros((min(self._most, max(1024, AT_FIRST // n)), n), dtype=kind)
        self.table[0] = task.first_choice[0]
        self.sent = 1  # rows before this one are on their way
        self._under_way: list[tuple[int, int, Callable[[], NDArray[Any]]]] = []  # rows from, to, and how to wait

    def row(self, b: int) -> Any:
        """Return a row, once its previous content is on the host."""
        while self._under_way and self._under_way[0][0] + self.rows <= b:  # its row is reused
            self._arrive()
        return self.ring[b % self.rows]

    def send(self, last: int) -> None:
        """Begin to copy the rows before ``last``: they are finished."""
        if last > len(self.table):
            longer = np.zeros((min(max(2 * len(self.table), last), self._most), self.table.shape[1]), self.table.dtype)
            self.finish()
            longer[: len(self.table)] = self.table
            self.table = longer
        while self.sent < last:
            at = self.sent % self.rows
            end = min(last, self.sent + self.each, self.sent + self.rows - at)
            wait = self.device.down_later(self.ring[at : at + end - self.sent])
            self._under_way.append((self.sent, end, wait))
            self.sent = end
            if len(self._under_way) > AHEAD:
                self._arrive()

    def finish(self) -> None:
        """Wait until everything sent has arrived."""
        while self._under_way:
            self._arrive()

    def _arrive(self) -> None:
        """Wait for the first copy in progress, and write it into the table with all threads."""
        first, last, wait = self._under_way.pop(0)
        copy_together(wait(), self.table[first:last], self._threads)

    def resume(self, table: NDArray[Any]) -> None:
        """Begin with rows that are settled already; the last ``late`` of them may still be written to."""
        self.table = np.ascontiguousarray(table)
        done = len(table)
        self.sent = max(done - self.late, 1)
        for b in range(self.sent, done):
            self.ring[b % self.rows] = self.device.up(self.table[b])
