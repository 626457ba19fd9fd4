"""The backend that sweeps level by level on a device: models with cycles, none of them free.

The order is that of :mod:`prudent.engine.places`; a launch settles one layer on one level
(``prudent/kernels/cuda/levels.cu``).  The rest is as in :mod:`prudent.engine.sweep.levels`.  Its bounds hold here, too,
since a device's sums have the same terms in the same order, each rounded once.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from prudent.engine.device_rows import DeviceRows, device_rows
from prudent.engine.places import places_of
from prudent.engine.prepared import choice_type
from prudent.engine.sweep.device_policy import DevicePolicy, DeviceSweep, policy_bytes
from prudent.engine.sweep.levels import rounding_by_level, window_of
from prudent.engine.sweep.question import CLOSE
from prudent.engine.sweep.task import Shapes, Task
from prudent.engine.values.bellman import rounding
from prudent.runtime.limits import Arrays, room_on

LANES = 2
"""Threads for each state, as in the kernel."""


@dataclass
class DeviceLevelSweep(DeviceSweep):
    """A sweep level by level on a device."""

    rows: DeviceRows = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        task, prepared, device = self.task, self.task.prepared, self.task.device
        assert device is not None, "it serves only tasks that have one"
        rows = device_rows(device, prepared)
        assert rows is not None, "it serves only models without free cycles"
        question = task.question
        self.rows, base, aims = rows, question.base, question.aims
        self._start = int(places_of(prepared)[0].place[prepared.start])
        self.rounding = rounding_by_level(prepared)
        self.bounded = aims.bound and not (aims.plan and self.rounding.within(task.levels, CLOSE))
        self._window = window_of(prepared, task.most)
        n, pairs = rows.n_states, self._window * rows.n_states
        need = pairs * ((16 if aims.plan else 0) + (8 if self.bounded else 0)) + 16 * n + 16 * rows.n_actions
        room_on(device, need + (policy_bytes(task) if question.chooses else 0), "the tables")
        self._worst = rows.by_place(question.worst.value)
        self._kernels = device.kernels("levels", COST=rows.kind, CHOICE=choice_type(prepared))
        self._table: Any = None  # U and M, by line and place
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
        if self.bounded:
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

    def _advance(self, last: int, *, final: bool) -> None:
        question, rows, first, policy = self.task.question, self.rows, self.done, self._policy
        values, bounds = (rows.device.new((last - first, fields), np.float64) for fields in (2, 1))
        model = *rows.graph, rows.cost, self._mean_cost, self._worst
        for b in range(first, last):
            value, bound = values[b - first], bounds[b - first]
            level = rows.n_states, self._start, b, self._window, *question.terms, *model
            if policy is not None:
                known = self._action_worst, self._fallback, self._table, value, policy.row(b), self._lost
                rows.launch(self._kernels, "settle_plan", LANES, *level, question.tie, rows.state, *known)
            elif question.aims.plan:
                rows.launch(self._kernels, "settle_given", 1, *level, *self._looked_up, self._table, value)
            if self.bounded:
                rows.launch(self._kernels, "settle_bound", 1, *level, self._rounding, self._low, bound)
            if policy is not None and (b + 1 == last or b + 1 - policy.sent >= policy.each):
                policy.send(b + 1)
        excess, mean = rows.device.down(values).T
        self._note(first, np.stack([excess, rows.device.down(bounds)[:, 0], mean]))

    def _fields(self) -> list[Any]:
        """Return the tables of fields: U with M, and the bound; each by line, place and field."""
        fields = [self._table] if self.task.question.aims.plan else []
        return [*fields, self._low[:, None]] if self.bounded else fields

    def _state(self) -> Arrays:
        """Return the arrays from which a sweep on the CPU can resume, too."""
        lines = min(self._window, self.done) * self.rows.n_states
        values = np.concatenate([self.rows.device.down(table[:lines]) for table in self._fields()], axis=1).ravel()
        return {"values": values, "lost": np.array([self._lost_each]), "chosen": self.task.question.choice}

    def _wanted(self, kept: Arrays, done: int) -> Shapes:
        n, fields = self.rows.n_states, (2 if self.task.question.aims.plan else 0) + (1 if self.bounded else 0)
        size = min(self._window, done) * n * fields
        return {"values": ((size,), np.float64), "lost": ((1,), np.float64), "chosen": ((n,), np.int64)}

    def _restore(self, kept: Arrays) -> None:
        up = self.rows.device.up
        if "values" in kept:
            tables, at = self._fields(), 0
            values = kept["values"].reshape(-1, sum(table.shape[1] for table in tables))
            for table in tables:
                table[: len(values)] = up(np.ascontiguousarray(values[:, at : at + table.shape[1]]))
                at += table.shape[1]
        if self._policy is not None:
            self._lost = up(kept["lost"])
            self._policy.resume(kept["choice"])
