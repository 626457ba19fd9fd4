"""The backend that sweeps level by level on several ranks, each with its share of the states.

:mod:`prudent.engine.sweep.rank_layout` assigns states to ranks and schedules the exchange of values by messages.  Sums
are those of :mod:`prudent.engine.sweep.levels`, in the same order, so values have the same bits.  Checkpoints are those
of one process, too: any number of ranks can resume from them.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from prudent.engine.places import Sections, sections_of
from prudent.engine.sweep.levels import LevelSweep, LevelTables
from prudent.engine.sweep.rank_layout import Stretch, share_of
from prudent.engine.sweep.rank_sweep import RankSweep, collected
from prudent.engine.sweep.task import Task
from prudent.models.rows import FloatArray
from prudent.runtime.limits import Arrays
from prudent.runtime.ranks import Ranks


class RankLevelSweep(RankSweep):
    """A sweep level by level, its states split among ranks."""

    kind = LevelSweep
    batch, first = LevelSweep.batch, LevelSweep.first
    whole: LevelSweep

    @classmethod
    def serves(cls, task: Task, levels: float) -> bool:
        """Return whether there are ranks; if all values are kept, rank 0 sweeps alone."""
        return task.ranks is not None and not task.keep

    def _whole(self) -> LevelSweep:
        return LevelSweep(replace(self.task, threads=1))

    def _laid_out(self) -> "LevelPart":
        return LevelPart(self.whole.tables, sections_of(self.task.prepared), self.done)


@dataclass
class LevelPart:
    """The states of one rank; before it begins, all of them."""

    tables: LevelTables
    sections: Sections
    done: int  # levels settled

    def begin(self, ranks: Ranks, whole: Any = None) -> None:
        """Take this rank's part of the states."""
        whole, self.ranks = self.tables, ranks
        self.share = share = share_of(whole.places, self.sections, whole.furthest, ranks)
        self._n_own, self._state = len(share.own), whole.places.state
        self._places = ranks.gathered(share.own) or []  # of all ranks, on rank 0
        known, both = whole.question.known, np.concatenate([share.own, share.rim])
        known = known._replace(
            mean_cost=known.mean_cost[share.action], worst=known.worst[both], default=known.default[both]
        )
        at = np.flatnonzero(both[: self._n_own] == whole.start)
        self.tables = replace(
            whole,
            places=share.places,
            question=whole.question._replace(known=known),
            start=int(at[0]) if len(at) else -1,
            threads=ranks.threads,
            table=whole.lines(self.done)[:, both].flatten(),
            columns=self._n_own,
            choice=whole.rows(self.done)[:, share.places.state[: self._n_own]].flatten(),
        )

    def advance(self, last: int, final: bool) -> FloatArray | None:
        """Settle the levels before ``last``; return U, its lower bound and M of the start by level, on rank 0."""
        first, tables, found = self.done, self.tables, np.zeros((3, last))
        tables.lengthen(last)
        each = 1 if tables.question.terms.at_goals else self.share.levels
        for begin in range(first, last, each):
            end = min(begin + each, last)
            tables.fill_goals(begin, end, self.share.goals)
            for stretch in self.share.stretches:
                if stretch.turns is not None:
                    tables.settle(stretch.turns, begin, end, found)
                self._exchange(stretch, begin, end, last)
        self.done = last
        gathered = self.ranks.gathered(found[:, first:] if tables.start >= 0 else None) or []
        return next((each for each in gathered if each is not None), None)

    def _exchange(self, stretch: Stretch, begin: int, end: int, last: int) -> None:
        """Send the values that others look at on some levels, and receive those that are looked at here."""
        lines = self.tables.lines(last)
        level = (np.arange(begin, end) % len(lines))[:, None]
        out = {other: lines[level, places] for other, places in stretch.out.items()}
        into = {other: np.empty((end - begin, len(places), lines.shape[2])) for other, places in stretch.into.items()}
        self.ranks.exchange(out, into)
        for other, values in into.items():
            lines[level, stretch.into[other]] = values

    def actions(self, whole: Any) -> list[float] | None:
        """Move the actions to rank 0's table; return there what each choice may lose, at most, by rank."""
        mine = [(0, self.tables.rows(self.done))] if self.tables.chooses else []
        for rank, _, part in collected(self.ranks, mine):
            whole[:, self._state[self._places[rank]]] = part
        return self.ranks.gathered(self.tables.lost)

    def values(self) -> Arrays | None:
        """Return on rank 0 the arrays that resume the sweep of one process."""
        lines, n = self.tables.lines(self.done), len(self._state)
        table, chosen = np.empty((len(lines), n, lines.shape[2])), np.empty(n, dtype=np.int64)
        mine = lines[:, : self._n_own], self.tables.chosen[self.share.places.state[: self._n_own]]
        for rank, number, part in collected(self.ranks, list(enumerate(mine))):
            if number == 0:
                table[:, self._places[rank]] = part
            else:
                chosen[self._state[self._places[rank]]] = part
        return {"values": table.ravel(), "chosen": chosen} if self.ranks.rank == 0 else None
