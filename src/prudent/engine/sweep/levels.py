"""The backend that sweeps level by level: any model, one thread.

It keeps the values of only as many levels as the largest cost looks back (:mod:`prudent.kernels.sweep`).
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from prudent.engine.prepared import Prepared, choice_type
from prudent.engine.sweep.task import Backend, Task, kept_levels
from prudent.engine.values.bellman import costs_of, free_arcs, longest_stay
from prudent.engine.values.worst_case import UNREACHED
from prudent.kernels.sweep import Aims, Ends, Tables, Workspace, sweep
from prudent.runtime.limits import Arrays

__all__ = ["LevelSweep", "window_of"]

NAMES = ("excess", "low", "mean")


def window_of(prepared: Prepared, most: int) -> int:
    """Return how many levels of values a sweep to level ``most`` has to keep."""
    return min(int(prepared.cost.max(initial=0)), most) + 1


@dataclass
class LevelSweep(Backend):
    """A sweep level by level: any model."""

    batch: ClassVar[int] = 20_000_000

    parts: list[NDArray[Any]] = field(default_factory=list)  # the actions of the settled levels
    tables: Tables = field(init=False)  # widened as levels are settled, up to the window
    workspace: Workspace = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        task, prepared = self.task, self.task.prepared
        wanted, unused = self._wanted, np.zeros((1, 1))
        rows = [first[:, None].copy() if used else unused for first, used in zip(task.base, wanted, strict=True)]
        self.tables = Tables(rows[0], rows[1], rows[2], np.empty((0, prepared.n_states), dtype=choice_type(prepared)))
        self.workspace = task.workspace()
        self.parts = [task.first_choice]
        arcs = free_arcs(prepared)
        ends = Ends(task.worst.value, task.worst.action_value, longest_stay(prepared, arcs))
        self._arguments = arcs, costs_of(prepared, arcs), ends, task.terms

    @classmethod
    def serves(cls, task: Task, levels: float) -> bool:
        """Return True: any model can be swept level by level."""
        return True

    @classmethod
    def table_bytes(cls, prepared: Prepared, levels: int, aims: Aims, *, keep: bool) -> int:
        """Return the memory of the values and a copy of one table; evaluating the plan afterwards takes no more."""
        if prepared.between or (prepared.acyclic and not keep):
            return 0  # such a model is not swept level by level, or evaluated so
        window = levels + 1 if keep else window_of(prepared, levels)
        return 8 * prepared.n_states * window * (4 if aims.plan else 2)

    @property
    def values(self) -> Tables | None:
        """The values of all levels if the task keeps them, else None."""
        return self.tables if self.task.keep else None

    @property
    def _wanted(self) -> tuple[bool, bool, bool]:
        return self.task.aims.plan, self.task.aims.bound, self.task.aims.plan

    @property
    def _furthest(self) -> int:
        return UNREACHED if self.task.keep else int(self.task.prepared.cost.max(initial=0))

    def advance(self, last: int, *, final: bool = False) -> None:
        """Settle the levels before ``last``; ``final`` says that no more will be asked for."""
        task = self.task
        self._widen(last)
        self._reach(last)
        n, kind = self.tables.choice.shape[1], self.tables.choice.dtype
        part = np.empty((last - self.done if task.aims.plan else 0, n), dtype=kind)
        tables = self.tables._replace(choice=part)
        about = task.tie, task.aims, self.done, last, task.base, tables, task.prepared.start
        sweep(*self._arguments, *about, self.found, self.workspace)
        if task.aims.plan:
            self.parts.append(part)
        self.done = last

    def _reach(self, last: int) -> None:
        """Widen the tables for the levels before ``last``, up to the window; narrower tables hold all levels so far."""
        window = min(self._furthest, last - 1) + 1
        for name, used in zip(NAMES, self._wanted, strict=True):  # one by one, so that only one is held twice
            table = getattr(self.tables, name)
            if used and table.shape[1] < window:
                longer = np.zeros((len(table), window))
                longer[:, : table.shape[1]] = table
                self.tables = self.tables._replace(**{name: longer})

    @property
    def choice(self) -> NDArray[Any]:
        """The actions of the settled levels."""
        return np.concatenate(self.parts)

    def packed(self) -> Arrays:
        """Return the arrays needed to resume from here."""
        names = {"excess": self.tables.excess, "low": self.tables.low, "mean": self.tables.mean}
        found = np.ascontiguousarray(self.found[:, : self.done])
        return {"found": found, "choice": self.choice, **names, "chosen": self.workspace.chosen}

    def resume(self, kept: Arrays) -> None:
        """Resume from packed arrays, or from the kept result of a finished sweep."""
        n, done, wanted = self.task.prepared.n_states, kept_levels(kept), dict[str, tuple[tuple[int, ...], Any]]()
        rows, unused = (n, min(self._furthest, done - 1) + 1), (1, 1)
        finished = "chosen" not in kept  # then only its result was kept
        if not finished:
            shapes = {name: rows if used else unused for name, used in zip(NAMES, self._wanted, strict=True)}
            wanted = {name: (shape, np.float64) for name, shape in shapes.items()} | {"chosen": ((n,), np.int64)}
        self._check(kept, wanted)
        if not finished:
            self.tables = Tables(kept["excess"], kept["low"], kept["mean"], self.tables.choice)
            self.workspace = self.workspace._replace(chosen=self._chosen(kept))
        self.done, self.found, self.parts = done, kept["found"], [kept["choice"]]
