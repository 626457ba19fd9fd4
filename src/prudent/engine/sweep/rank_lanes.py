"""The backend that sweeps in tiles on several ranks of one machine: models without cycles.

All ranks see the same tables and draw their parts from the same counters.  So the threads of all of them are lanes of
one sweep, as those of one process are in :mod:`prudent.engine.sweep.tiles`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.engine.sweep.rank_sweep import RankSweep, shared, together
from prudent.engine.sweep.task import Task
from prudent.engine.sweep.tile_layout import Tiling, tiling_of
from prudent.engine.sweep.tile_window import Window
from prudent.engine.sweep.tiles import TileSweep
from prudent.kernels.stretches import LANES, Known
from prudent.runtime.common_memory import CommonMemory
from prudent.runtime.limits import Arrays
from prudent.runtime.team import side_by_side

__all__ = ["RankLaneSweep"]


@dataclass
class RankLaneSweep(RankSweep, TileSweep):
    """A sweep in tiles whose lanes are those of all ranks."""

    layouts = (tiling_of,)

    def __post_init__(self, layout: Tiling | None) -> None:
        self._begin()
        with self.ranks.at_once():
            found = tiling_of(self.task.prepared)
            assert found is not None, "it serves only models that are laid out for it"
            self._lanes = self.ranks.listed(self.task.threads)  # of each rank
            super().__post_init__(replace(found, shares_rows=True))

    @classmethod
    def serves(cls, task: Task, levels: float) -> bool:
        """Return whether there are ranks, on one machine, and a model without cycles."""
        ranks = task.ranks
        return ranks is not None and ranks.near is not None and task.prepared.acyclic and TileSweep.serves(task, levels)

    @property
    def _near(self) -> CommonMemory:
        assert self.ranks.near is not None, "it serves only ranks that have some"
        return self.ranks.near

    def _new_window(self) -> Window:
        """Return the tables to begin with, which all ranks see."""
        task, lanes = self.task, sum(self._lanes)
        return Window(self.tiling, task.most, task.aims.plan, lanes, task.levels, self._near.zeros)

    def _new_known(self) -> Known:
        """Return what is known before the sweep, as rank 0 finds it."""
        found: Known = shared(self.ranks, super()._new_known() if self.ranks.rank == 0 else None)
        return found

    def _zeros(self, shape: tuple[int, int], dtype: Any) -> NDArray[Any]:
        """Return a table of actions, which all ranks see."""
        return self._near.zeros(shape, dtype)

    def _side_by_side(self, lanes: int, work: Callable[[int], None]) -> None:
        """Do the work of this rank's lanes, while others do that of theirs."""
        before = sum(self._lanes[: self.ranks.rank])
        mine = range(lanes)[before : before + self.task.threads]
        self._near.meet()  # tables may have been lengthened
        if mine:
            side_by_side(len(mine), lambda i: work(mine[i]))
        self._near.meet()

    def advance(self, last: int, *, final: bool = False) -> None:
        """Settle the levels before ``last``; ``final`` says that no more will be asked for."""
        self._advance(last, final)

    @together
    def _advance(self, last: int, final: bool) -> None:
        super().advance(last, final=final)

    @property
    def _lost_each(self) -> float:
        """The largest relative increase of U by one choice among actions that tie, on any rank."""
        return self._most_lost()

    @together
    def _most_lost(self) -> float:
        here = max(float(scratch.lost[0]) for scratch in self._scratch)
        return float(np.max(self.ranks.gathered(here) or [np.nan]))

    def resume(self, kept: Arrays) -> None:
        """Resume from packed arrays, or from the kept result of a finished sweep."""
        super().resume(kept)
        self._go_on(self.done, self._window.kept, len(self._choice))

    @together
    def _go_on(self, done: int, levels: int, rows: int) -> None:
        """Let all ranks see what rank 0 has resumed from."""
        window, choice, before = self._window, self._choice, self._window.before
        self.done, self.found = done, np.array(self.ranks.shared(self.found))
        self._choice, window.before = self._zeros((rows, choice.shape[1]), choice.dtype), [np.zeros(LANES)] * 2
        window.hold(levels)
        if self.ranks.rank == 0:
            self._choice[:] = choice
            for new, old in zip(window.before, before, strict=True):
                new[: len(old)] = old
