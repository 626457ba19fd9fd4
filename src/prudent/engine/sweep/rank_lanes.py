"""The backends that sweep on several ranks of one machine, in tiles and level by level.

All ranks see the same tables and draw their parts from the same counters.  So the threads of all of them are lanes of
one sweep, as those of one process are in :mod:`prudent.engine.sweep.tiles` and :mod:`prudent.engine.sweep.levels`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.engine.sweep.level_layout import level_layout
from prudent.engine.sweep.levels import LevelSweep
from prudent.engine.sweep.rank_sweep import RankSweep, together
from prudent.engine.sweep.task import AT_FIRST, Task
from prudent.engine.sweep.tile_layout import Tiling, tiling_of
from prudent.engine.sweep.tiles import TileSweep
from prudent.engine.values.bellman import free_arcs
from prudent.kernels.stretches import LANES
from prudent.kernels.sweep import Workspace
from prudent.models.rows import FloatArray
from prudent.runtime.common_memory import CommonMemory
from prudent.runtime.limits import Arrays
from prudent.runtime.team import side_by_side

__all__ = ["LaneLevelSweep", "LaneTileSweep"]


class LaneSweep(RankSweep):
    """A sweep whose lanes are the threads of all ranks of one machine."""

    _threads: list[int]  # of each rank

    @property
    def _lanes(self) -> int:
        """How many threads may work on it: those of all ranks."""
        return sum(self._threads)

    @property
    def _near(self) -> CommonMemory:
        assert self.ranks.near is not None, "it serves only ranks that have some"
        return self.ranks.near

    def _zeros(self, shape: int | tuple[int, ...], dtype: Any = np.float64) -> NDArray[Any]:
        """Return a table that all ranks see."""
        return self._near.zeros(shape, dtype)

    def _given(self, array: NDArray[Any], shape: int | tuple[int, ...]) -> NDArray[Any]:
        """Return rank 0's array of this shape in memory that all ranks see once they have met."""
        found = self._zeros(shape, array.dtype)
        if self.ranks.rank == 0:
            found[...] = array
        return found

    def _side_by_side(self, lanes: int, work: Callable[[int], None]) -> None:
        """Do the work of this rank's lanes, while other ranks do theirs."""
        before = sum(self._threads[: self.ranks.rank])
        mine = range(lanes)[before : before + self.task.threads]
        self._near.meet()  # tables may have been lengthened
        if mine:
            side_by_side(len(mine), lambda i: work(mine[i]))
        self._near.meet()

    def advance(self, last: int, *, final: bool = False) -> None:
        """Settle the levels before ``last``; ``final``: whether no further levels follow."""
        self._advance(last, final)

    @together
    def _advance(self, last: int, final: bool) -> None:
        super().advance(last, final=final)  # type: ignore[safe-super]


@dataclass
class LaneTileSweep(LaneSweep, TileSweep):
    """A sweep in tiles whose lanes are those of all ranks: models without cycles."""

    layouts = (tiling_of,)

    def __post_init__(self, layout: Tiling | None) -> None:
        self._begin()
        with self.ranks.at_once():
            found = tiling_of(self.task.prepared)
            assert found is not None, "it serves only models that are laid out for it"
            self._threads = self.ranks.listed(self.task.threads)
            super().__post_init__(replace(found, shares_rows=True))

    @classmethod
    def serves(cls, task: Task, levels: float) -> bool:
        """Return whether there are ranks, on one machine, and a model without cycles."""
        return _near(task) and task.prepared.acyclic and TileSweep.serves(task, levels)

    def resume(self, kept: Arrays) -> None:
        """Resume from packed arrays, or from the kept result of a finished sweep."""
        super().resume(kept)
        self._go_on(self.done, self._window.kept, len(self._choice))

    @together
    def _go_on(self, done: int, levels: int, rows: int) -> None:
        """Let all ranks see what rank 0 has resumed from."""
        window, choice, before = self._window, self._choice, self._window.before
        self.done, self.found = done, np.array(self.ranks.shared(self.found))
        self._choice, window.before = self._given(choice, (rows, choice.shape[1])), [np.zeros(LANES)] * 2
        window.hold(levels)
        if self.ranks.rank == 0:
            for new, old in zip(window.before, before, strict=True):
                new[: len(old)] = old


@dataclass
class LaneLevelSweep(LaneSweep, LevelSweep):
    """A sweep level by level whose lanes are those of all ranks: any model."""

    layouts = (level_layout,)

    def __post_init__(self) -> None:
        super(LevelSweep, self).__post_init__()
        prepared = self.task.prepared
        free_arcs(prepared)  # raises an error if free cycles are too large
        self._begin()
        with self.ranks.at_once():
            self._threads = self.ranks.listed(self.task.threads)
            self.found = self._given(self.found, self.found.shape)
            self._open(level_layout(prepared), prepared.n_states)

    @classmethod
    def serves(cls, task: Task, levels: float) -> bool:
        """Return whether there are ranks, on one machine; if all values are kept, rank 0 sweeps alone."""
        return _near(task) and not task.keep

    def _workspace(self) -> Workspace:
        """Return a workspace in which all ranks see the actions in free cycles, from which solving them begins."""
        own = self.task.workspace()
        return own._replace(chosen=self._given(own.chosen, own.chosen.shape))

    def _longer(self, table: FloatArray, size: int) -> FloatArray:
        """Return a table of at least so many numbers; each rank copies its part."""
        if size <= len(table):
            return table
        longer, ranks = self._zeros(size), self.ranks
        part = slice(len(table) * ranks.rank // ranks.size, len(table) * (ranks.rank + 1) // ranks.size)
        longer[part] = table[part]
        return longer

    def _lengthen_actions(self, last: int) -> None:
        """Make room for the actions of the levels before ``last``."""
        if (size := last * self._columns) > len(self._choice):
            # Memory is taken only when it is written to, so the table may begin long.
            enough = min(self.task.most + 1, max(AT_FIRST // self._columns, 1)) if self.task.aims.plan else 1
            longer = self._zeros(max(size, 2 * len(self._choice), enough * self._columns), self._choice.dtype)
            if self.ranks.rank == 0:
                longer[: len(self._choice)] = self._choice
            self._choice = longer

    def resume(self, kept: Arrays) -> None:
        """Resume from packed arrays, or from the kept result of a finished sweep."""
        super().resume(kept)
        self._go_on(self.done, len(self.table), len(self._choice))

    @together
    def _go_on(self, done: int, size: int, actions: int) -> None:
        """Let all ranks see what rank 0 has resumed from."""
        chosen = self._free.workspace.chosen
        self.done, self.found = done, self._given(self.found, (3, done))
        self.table, self._choice = self._given(self.table, size), self._given(self._choice, actions)
        self._free = self._free._replace(
            workspace=self._free.workspace._replace(chosen=self._given(chosen, chosen.shape))
        )


def _near(task: Task) -> bool:
    """Return whether a task has ranks, and all are on one machine."""
    return task.ranks is not None and task.ranks.near is not None
