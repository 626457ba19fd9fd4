"""The backend that sweeps level by level on a device: models with cycles, none of them free.

The order is that of :mod:`prudent.engine.places`; a launch settles one layer on one level
(``prudent/kernels/cuda/levels.cu``).  The rest is as in :mod:`prudent.engine.sweep.levels`.  Its bounds hold here, too,
since a device's sums have the same terms in the same order, each rounded once.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from prudent.engine.device_rows import DeviceRows, device_rows
from prudent.engine.prepared import Prepared, choice_type
from prudent.engine.sweep.device_policy import DevicePolicy, policy_bytes
from prudent.engine.sweep.level_layout import LevelLayout, level_layout
from prudent.engine.sweep.levels import window_of
from prudent.engine.sweep.task import Backend, Task, kept_levels
from prudent.engine.values.bellman import rounding
from prudent.kernels.questions import Aims
from prudent.models.rows import FloatArray
from prudent.runtime.limits import Arrays, room_on

LANES = 2
"""Threads for each state, as in the kernel."""


@dataclass
class DeviceLevelSweep(Backend):
    """A sweep level by level on a device."""

    batch: ClassVar[int] = 10_000_000_000
    device: ClassVar[str] = "gpu"

    layout: LevelLayout = field(init=False)
    rows: DeviceRows = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        task, prepared, device = self.task, self.task.prepared, self.task.device
        assert device is not None, "it serves only tasks that have one"
        rows = device_rows(device, prepared)
        assert rows is not None, "it serves only models without free cycles"
        question = task.question
        self.rows, self.layout, base, aims = rows, level_layout(prepared), question.base, question.aims
        self._close = aims.plan and self.layout.close(task.levels)
        self._window = window_of(prepared, task.most)
        n, bounded = rows.n_states, aims.bound and not self._close
        pairs, need = self._window * n, 16 * n + 16 * rows.n_actions
        need += (
            (16 * pairs if aims.plan else 0)
            + (policy_bytes(task) if question.chooses else 0)
            + (8 * pairs if bounded else 0)
        )
        room_on(device, need, "the tables")
        self._worst = rows.by_place(question.worst.value)
        self._kernels = device.kernels("levels", COST=rows.kind, CHOICE=choice_type(prepared))
        self._table: Any = None  # U and M, by line and place
        self._action_worst = self._fallback = self._lost = None
        if aims.plan:
            self._table = device.new((pairs, 2), np.float64)
            self._table[:n, 0], self._table[:n, 1] = rows.by_place(base.excess), rows.by_place(base.mean)
        if question.chooses:
            self._action_worst = rows.by_action_place(question.worst.action_value)
            self._fallback = rows.by_place(task.first_choice[0])
            self._lost = device.new(1, np.float64)
            self._policy = DevicePolicy(device, task)
        if (policy := question.policy) is not None:
            kind, up = choice_type(prepared), device.up
            ranges = (up(each) for each in (policy.first, policy.low, policy.high))
            entry, without = up(policy.entry.astype(kind, copy=False)), up(policy.without.astype(kind))
            self._looked_up = rows.state, entry, *ranges, policy.stride, without
        self._mean_cost = rows.mean_cost if question.mean_cost is None else rows.by_action_place(question.mean_cost)
        self._sure = question.sure
        if bounded:
            self._low = device.new(pairs, np.float64)
            self._low[:n] = rows.by_place(base.low)
            self._rounding = rows.by_action_place(rounding(prepared))

    @classmethod
    def serves(cls, task: Task, levels: float) -> bool:
        """Return whether there is a device, and a model with cycles, none of them free."""
        prepared = task.prepared
        if task.device is None or task.keep or prepared.between or prepared.acyclic:
            return False
        return device_rows(task.device, prepared) is not None

    @classmethod
    def table_bytes(cls, prepared: Prepared, levels: int, aims: Aims, *, keep: bool) -> int:
        """Return 0: the values are on the device."""
        return 0

    def advance(self, last: int, *, final: bool = False) -> None:
        """Settle the levels before ``last``; ``final``: whether no further levels follow."""
        question, rows, first = self.task.question, self.rows, self.done
        chooses, bounded = question.chooses, question.aims.bound and not self._close
        self._widen(last)
        values, bounds = (rows.device.new((last - first, fields), np.float64) for fields in (2, 1))
        model = *rows.graph, rows.cost, self._mean_cost, self._worst
        for b in range(first, last):
            value, bound = values[b - first], bounds[b - first]
            level = rows.n_states, self.layout.start, b, self._window, *question.terms, *model
            if chooses:
                known = self._action_worst, self._fallback, self._table, value, self._policy.row(b), self._lost
                rows.launch(self._kernels, "settle_plan", LANES, *level, question.tie, rows.state, *known)
            elif question.aims.plan:
                rows.launch(self._kernels, "settle_given", 1, *level, *self._looked_up, self._table, value)
            if bounded:
                rows.launch(self._kernels, "settle_bound", 1, *level, self._rounding, self._low, bound)
            if chooses and (b + 1 == last or b + 1 - self._policy.sent >= self._policy.each):
                self._policy.send(b + 1)
        if question.aims.plan:
            self.found[0, first:last], self.found[2, first:last] = rows.device.down(values).T
        if bounded:
            self.found[1, first:last] = rows.device.down(bounds)[:, 0]
        elif question.aims.bound:
            error = self.layout.error(np.arange(first, last))
            self.found[1, first:last] = question.bound(self.found[0, first:last], self._sure, error)
        self.done = last

    @property
    def _lost_each(self) -> float:
        """The largest relative increase of U by one choice among actions that tie."""
        return float(self.rows.device.down(self._lost)[0])

    @property
    def lost(self) -> float | FloatArray:
        """Bound on the relative increase of U, by level, by choices among ties and rounding; nan if it is not small."""
        return self.layout.lost(self._lost_each, self.done) if self.task.question.chooses else np.nan

    @property
    def choice(self) -> NDArray[Any]:
        """The actions of the settled levels."""
        if not self.task.question.chooses:
            return self.task.first_choice
        self._policy.finish()
        return self._policy.table[: self.done]

    def packed(self) -> Arrays:
        """Return the arrays needed to resume from here; a sweep on the CPU can resume from them, too."""
        lines, down, aims = min(self._window, self.done), self.rows.device.down, self.task.question.aims
        fields = [down(self._table[: lines * self.rows.n_states])] if aims.plan else []
        if aims.bound and not self._close:
            fields.append(down(self._low[: lines * self.rows.n_states])[:, None])
        return {
            "found": np.ascontiguousarray(self.found[:, : self.done]),
            "choice": self.choice,
            "values": np.concatenate(fields, axis=1).ravel(),
            "lost": np.array([self._lost_each if aims.plan else 0.0]),
            "chosen": self.task.question.choice,
        }

    def resume(self, kept: Arrays) -> None:
        """Resume from packed arrays, or from the kept result of a finished sweep."""
        n, done, aims, up = self.rows.n_states, kept_levels(kept), self.task.question.aims, self.rows.device.up
        fields = (2 if aims.plan else 0) + (1 if aims.bound and not self._close else 0)
        wanted, finished = dict[str, tuple[tuple[int, ...], Any]](), "chosen" not in kept
        if not finished:
            size = min(self._window, done) * n * fields
            wanted = {"values": ((size,), np.float64), "lost": ((1,), np.float64), "chosen": ((n,), np.int64)}
        self._check(kept, wanted)
        lost = np.array([np.nan])  # of a finished sweep it was not kept
        if not finished:
            table, lost = kept["values"].reshape(-1, fields), kept["lost"]
            if aims.plan:
                self._table[: len(table)] = up(np.ascontiguousarray(table[:, :2]))
            if aims.bound and not self._close:
                self._low[: len(table)] = up(np.ascontiguousarray(table[:, -1]))
        if aims.plan:
            self._lost = up(lost)
            self._policy.resume(kept["choice"])
        self.done, self.found = done, kept["found"]
