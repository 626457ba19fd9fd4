"""What sweeps on a device have in common: rows of actions are copied to the host while the sweep continues."""

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from prudent.engine.sweep.task import Backend, Task, lengthened_choice, long_choice
from prudent.runtime.gpu import Device
from prudent.runtime.team import copy_together

CHUNK = 2**24
"""Bytes of actions that go to the host at a time, if a row is no longer."""

AHEAD = 2
"""Copies that may be in progress while the sweep continues."""


class DevicePolicy:
    """The rows of actions on a device, row b at ``b % rows``, and the table on the host that receives them.

    A sweep writes up to ``span`` rows at a time, and they are finished ``late`` levels later.
    """

    def __init__(self, device: Device, task: Task, span: int = 1, late: int = 0) -> None:
        self.device, self.late, self.each, self._task = device, late, _each(task), task
        self.rows = _rows(task, span, late)
        self.table = long_choice(task)
        self.ring: Any = device.new((self.rows, self.table.shape[1]), self.table.dtype)
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
            self.finish()
            self.table = lengthened_choice(self.table, last, self._task)
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

    def settled(self, done: int) -> NDArray[Any]:
        """Return the rows before ``done``; those that are not finished will be sent again."""
        sent = self.sent
        self.send(done)
        self.finish()
        self.sent = sent
        return self.table[:done]

    def _arrive(self) -> None:
        """Wait for the first copy in progress, and write it into the table with all threads."""
        first, last, wait = self._under_way.pop(0)
        copy_together(wait(), self.table[first:last], self._task.threads)

    def resume(self, table: NDArray[Any]) -> None:
        """Begin with rows that are settled already; the last ``late`` of them may still be written to."""
        self.table = np.ascontiguousarray(table)
        done = len(table)
        self.sent = max(done - self.late, 1)
        for b in range(self.sent, done):
            self.ring[b % self.rows] = self.device.up(self.table[b])


def policy_bytes(task: Task, span: int = 1, late: int = 0) -> int:
    """Return the memory for actions on the device: ``span`` rows at a time, finished ``late`` levels later."""
    return _rows(task, span, late) * task.first_choice.nbytes


def _each(task: Task) -> int:
    """Return how many rows go to the host at a time."""
    return max(min(CHUNK // task.first_choice.nbytes, task.most + 1), 1)


def _rows(task: Task, span: int, late: int) -> int:
    return 2 * max(_each(task), span) + late


class DeviceSweep(Backend):
    """A sweep on a device, whose actions go to the host while it continues."""

    batch: ClassVar[int] = 10_000_000_000
    device: ClassVar[str] = "gpu"

    _policy: DevicePolicy | None = None  # None if no actions are chosen
    _lost: Any = None  # (1,)  on the device: the largest relative increase of U by one choice among actions that tie

    @property
    def _lost_each(self) -> float:
        assert self.task.device is not None, "it serves only tasks that have one"
        return 0.0 if self._lost is None else float(self.task.device.down(self._lost)[0])

    @property
    def choice(self) -> NDArray[Any]:
        """The actions of the settled levels."""
        return self.task.first_choice if self._policy is None else self._policy.settled(self.done)
