"""The backend that sweeps level by level on several ranks, each with its share of the states.

:mod:`prudent.engine.sweep.rank_layout` assigns states to ranks and schedules the exchange of values by messages.  Sums
are those of :mod:`prudent.engine.sweep.levels`, in the same order, so values have the same bits.  Checkpoints are those
of one process, too: any number of ranks can resume from them.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.engine.places import sections_of
from prudent.engine.sweep.level_layout import level_layout
from prudent.engine.sweep.levels import LevelSweep
from prudent.engine.sweep.rank_layout import Share, Stretch, share_of
from prudent.engine.sweep.rank_sweep import RankSweep, together
from prudent.engine.sweep.task import Task
from prudent.engine.values.bellman import free_arcs
from prudent.models.rows import FloatArray, IntArray
from prudent.runtime.limits import Arrays

__all__ = ["RankLevelSweep"]


@dataclass
class RankLevelSweep(RankSweep, LevelSweep):
    """A sweep level by level, its states split among ranks."""

    layouts = level_layout, sections_of

    share: Share = field(init=False)

    def __post_init__(self) -> None:
        super(LevelSweep, self).__post_init__()
        free_arcs(self.task.prepared)  # raises an error if free cycles are too large
        self._begin()
        with self.ranks.at_once():
            self.share = share_of(self.task.prepared, self.ranks)
            self._open(self.share.layout, len(self.share.own))
            self._places: list[IntArray] = self.ranks.gathered(self.share.own) or []  # of all ranks, on rank 0

    _new_known = LevelSweep._new_known  # each rank has its own places

    @classmethod
    def serves(cls, task: Task, levels: float) -> bool:
        """Return whether there are ranks; if all values are kept, rank 0 sweeps alone."""
        return task.ranks is not None and not task.keep

    def advance(self, last: int, *, final: bool = False) -> None:
        """Settle the levels before ``last``; ``final``: whether no further levels follow."""
        self._advance(last)

    @together
    def _advance(self, last: int) -> None:
        first = self.done
        self._widen(last)
        self._lengthen(last)
        for begin in range(first, last, self.share.levels):
            end = min(begin + self.share.levels, last)
            for stretch in self.share.stretches:
                if stretch.turns is not None:
                    self._settle(stretch.turns, begin, end)
                self._exchange(stretch, begin, end, last)
        found = self.ranks.gathered(self.found[:, first:last].copy() if self.layout.start >= 0 else None)
        if found is not None:
            self.found[:, first:last] = next(each for each in found if each is not None)
            self._bound(first, last)
        self.done = last

    def _lines(self, last: int) -> FloatArray:
        """Return the table by level, place and field, with room for the levels before ``last``."""
        return self.table.reshape(min(self._furthest, last - 1) + 1, len(self.layout.places.state), self.fields)

    def _exchange(self, stretch: Stretch, begin: int, end: int, last: int) -> None:
        """Send the values that others look at on some levels, and receive those that are looked at here."""
        lines = self._lines(last)
        level = (np.arange(begin, end) % len(lines))[:, None]
        out = {other: lines[level, places] for other, places in stretch.out.items()}
        into = {other: np.empty((end - begin, len(places), self.fields)) for other, places in stretch.into.items()}
        self.ranks.exchange(out, into)
        for other, values in into.items():
            lines[level, stretch.into[other]] = values
        lines[level, self.share.goals] = 0.0

    @property
    def choice(self) -> NDArray[Any]:
        """The actions of the settled levels, from all ranks."""
        return self._all_actions() if self.task.aims.plan else self.task.first_choice

    @together
    def _all_actions(self) -> NDArray[Any]:
        return self._whole(self._actions[:, :, None], by_state=True)[:, :, 0]

    @property
    def _actions(self) -> NDArray[Any]:
        """The actions of the settled levels that this rank has."""
        return self._choice.reshape(self.done, self._columns)

    def _whole(self, mine: NDArray[Any], *, by_state: bool) -> NDArray[Any]:
        """Return, on rank 0, what each rank has by line, own place and field, by place or by state."""
        lines, _, fields = mine.shape
        found = self._collected(mine, [(lines, len(places), fields) for places in self._places])
        whole = np.empty((lines, self.task.prepared.n_states, fields), dtype=mine.dtype) if found else mine
        state = level_layout(self.task.prepared).places.state
        for part, places in zip(found, self._places, strict=True):
            whole[:, state[places] if by_state else places] = part
        return whole

    def packed(self) -> Arrays:
        """Return the arrays needed to resume from here."""
        found, lost = np.ascontiguousarray(self.found[:, : self.done]), np.array([self._lost_each])
        values, chosen = self._all_values()
        return {"found": found, "choice": self.choice, "values": values, "lost": lost, "chosen": chosen}

    @together
    def _all_values(self) -> tuple[NDArray[Any], NDArray[Any]]:
        own = len(self.share.own)
        lines = self._lines(self.done)[:, :own]
        chosen = self._free.workspace.chosen[self.share.state]
        return self._whole(lines, by_state=False).ravel(), self._whole(chosen[None, :, None], by_state=True).ravel()

    def resume(self, kept: Arrays) -> None:
        """Resume from packed arrays, or from the kept result of a finished sweep."""
        alone = LevelSweep(self.task)  # it checks whether they fit
        alone.resume(kept)
        with self.ranks.at_once():
            self.ranks.tell(("_take_over",))
            chosen, lost = alone._free.workspace.chosen, np.array([alone._lost_each])
            self._take_over({"chosen": chosen, **kept, "lost": lost})

    def _take_over(self, kept: Arrays | None = None) -> None:
        """Take over this rank's share of what was kept; all ranks call it."""
        ranks, own = self.ranks, self.share.own
        whole = ranks.shared(kept)
        self.found, self.done = np.array(whole["found"]), whole["found"].shape[1]
        if self.task.aims.plan:
            self._lengthen_actions(self.done)
            state, column = self.share.state, self.share.layout.places.column
            self._actions[:, column] = whole["choice"][:, state]
        self._scratch[0].lost[0] = whole["lost"][0]
        self._free.workspace.chosen[:] = whole["chosen"]
        if "values" in whole:
            lines = whole["values"].reshape(-1, self.task.prepared.n_states, self.fields)
            self.table = lines[:, np.concatenate([own, self.share.rim])].flatten()
