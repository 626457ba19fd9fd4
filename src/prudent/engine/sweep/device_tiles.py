"""The backend that sweeps in tiles on a device: models without cycles.

Nodes, layers and the known values at both ends of the budget axis are those of
:mod:`prudent.engine.sweep.tile_layout`, and so is the guarantee: a device's sums have the same terms, each rounded
once.  A launch settles the nodes of one layer for all levels of a tile (``prudent/kernels/cuda/tiles.cu``).  Every node
has a row of its own, whose columns levels reuse in turn.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from prudent.engine.device_rows import resident
from prudent.engine.prepared import Prepared, choice_type
from prudent.engine.sweep.device_policy import DevicePolicy, DeviceSweep, policy_bytes
from prudent.engine.sweep.task import Shapes, Task
from prudent.engine.sweep.tile_layout import Tiling, known_of, tiling_of, work_for
from prudent.models.rows import owner
from prudent.runtime.gpu import BLOCK, Device
from prudent.runtime.limits import Arrays, room_on

TILE, SHORTEST, SHARE = 2048, BLOCK, 0.5
"""The most levels of a tile, and the fewest; the most of the free memory that tables take for tiles longer than that.
"""

OUTCOME = np.dtype([("probability", np.float64), ("successor", np.int32), ("back", np.int32)])


@dataclass
class DeviceTileSweep(DeviceSweep):
    """A sweep in tiles on a device."""

    first: ClassVar[int] = 511

    layout: Tiling = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        task, prepared, device, question = self.task, self.task.prepared, self.task.device, self.task.question
        tiling = tiling_of(prepared)
        assert device is not None and tiling is not None, "it serves only tasks that have both"
        model = resident(device, prepared, brought)
        assert model is not None, "a tiling always fits"
        self.layout, self._model, work = tiling, model, tiling.work
        self.rounding = tiling.rounding
        n, aims, known = tiling.n_nodes, question.aims, known_of(prepared, tiling, question)
        late = int(work.delay[: prepared.n_states].max(initial=0))
        most, fits = int(min(task.most, task.levels)) + 1, int(SHARE * device.free) // (16 * n) - tiling.back
        self.tile = max(min(fits, TILE, most), min(SHORTEST, most))
        self._width = tiling.back + self.tile + 1  # levels that rows hold: those of a tile, and before it
        need = 8 * n * self._width * (2 if aims.plan else 1) + 40 * n + 8 * len(known.action_worst)
        room_on(device, need + (policy_bytes(task, self.tile, late) if aims.plan else 0), "the tables")
        kind = choice_type(prepared)
        self._kernels = device.kernels("tiles", CHOICE=kind)
        self._base = device.up(known.excess), device.up(known.mean)
        self._rows = model.rows
        if question.mean_cost is not None:
            self._rows = *model.rows[:3], device.up(work_for(tiling, question).mean_cost)
        ends = known.worst, known.action_worst, known.calm, known.choice.astype(kind)
        self._ends = tuple(device.up(each) for each in ends)
        self._tables = [device.new(n * self._width if used else 1, np.float64) for used in (True, aims.plan)]
        self._lost = device.new(1, np.float64)
        self._policy = DevicePolicy(device, task, self.tile, late) if aims.plan else None
        past, about = tiling.back, (question.terms.slope, aims.plan, self._model.delay)
        self._kernels.each("fill_past", n * past, 1 - past, past, self._width, *about, *self._base, *self._tables)

    @classmethod
    def serves(cls, task: Task, levels: float) -> bool:
        """Return whether there is a device, and a model without cycles."""
        prepared = task.prepared
        if task.device is None or task.keep or prepared.between or not prepared.acyclic:
            return False
        if task.question.policy is not None:  # threads are as fast
            return False
        tiling = tiling_of(prepared)
        return tiling is not None and tiling.back < 2**30 and len(tiling.work.cost) < 2**32

    def _advance(self, last: int, *, final: bool) -> None:
        for first in range(self.done, last, self.tile):
            self._settle(first, min(first + self.tile, last))

    def _settle(self, first: int, last: int) -> None:
        """Settle a tile."""
        task, question, model = self.task, self.task.question, self._model
        width, policy = self._width, self._policy
        ring, rows = (self._tables[1], 1) if policy is None else (policy.ring, policy.rows)
        if policy is not None:
            policy.row(last - 1)
        about = first, last, width, rows, task.prepared.n_states, *question.terms, question.tie, question.aims.plan
        known = *self._base, *self._ends, *self._tables, ring, self._lost
        for begin, end in zip(model.layer[:-1], model.layer[1:], strict=True):
            grid = end - begin, -(-(last - first) // BLOCK)
            self._kernels.blocks("settle_nodes", grid, *about, model.node[begin:end], *self._rows, model.delay, *known)
        if policy is not None:
            policy.send(max(last - policy.late, policy.sent))
        begin, column, found = task.prepared.start * width, np.arange(first, last) % width, np.zeros((3, last - first))
        for row, table in zip((0, 2) if question.aims.plan else (0,), self._tables, strict=False):
            found[row] = model.device.down(table[begin : begin + width])[column]
        self._note(first, found)

    def _state(self) -> Arrays:
        excess, mean = (self._model.device.down(table) for table in self._tables)
        return {"excess": excess, "mean": mean, "lost": np.array([self._lost_each])}

    def _wanted(self, kept: Arrays, done: int) -> Shapes:
        sizes = {"excess": self.layout.n_nodes * self._width, "mean": len(self._tables[1]), "lost": 1}
        return {name: ((size,), np.float64) for name, size in sizes.items()}

    def _restore(self, kept: Arrays) -> None:
        up = self._model.device.up
        self._lost = up(kept["lost"])
        if "excess" in kept:
            self._tables = [up(kept["excess"]), up(kept["mean"])]
        if self._policy is not None:
            self._policy.resume(kept["choice"])


@dataclass(frozen=True, eq=False)
class _Model:
    """A model without cycles on a device."""

    device: Device
    node: Any  # (n_nodes,)  int32, by layer
    layer: list[int]  # (n_layers + 1,)  where layers begin
    rows: tuple[Any, Any, Any, Any]  # action_start, outcome_start (uint32), outcomes, mean_cost
    delay: Any  # (n_nodes,)  int32


def brought(device: Device, prepared: Prepared) -> _Model | None:
    """Bring the tiling of a model to a device."""
    tiling = tiling_of(prepared)
    assert tiling is not None, "only models that are laid out for tiles come here"
    work, up = tiling.work, device.up
    room_on(device, 16 * len(work.cost) + 16 * len(work.mean_cost) + 16 * tiling.n_nodes, "the model")
    source = owner(work.outcome_start[work.action_start])
    outcome = np.empty(len(work.cost), dtype=OUTCOME)
    outcome["probability"], outcome["successor"] = work.probability, work.successor
    outcome["back"] = work.cost + work.delay[source] - work.delay[work.successor]
    starts = (up(start.astype(np.uint32)) for start in (work.action_start, work.outcome_start))
    node = work.group_node[work.group_start[:-1]]
    rows = *starts, up(outcome.view(np.float64)), up(work.mean_cost)
    delay = up(work.delay.astype(np.int32))
    return _Model(device, up(node.astype(np.int32)), tiling.layer_start.tolist(), rows, delay)
