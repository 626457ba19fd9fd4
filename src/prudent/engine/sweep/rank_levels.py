"""The backend that sweeps level by level on several ranks, each with its share of the states.

Every section of the places is cut into ranges of about the same work, one for each rank.  A rank has its own places
first, then the places of others that it looks at, its *rim*: their values come by messages.

If all moves between ranks, except those to goals, cost at least ``c``, a level looks at levels of others ``c`` back or
more.  So ranks settle ``c`` levels between two exchanges.  If some such moves are free, they exchange values after
every section of a level.

Sums are those of :mod:`prudent.engine.sweep.levels`, in the same order, so values have the same bits.  Checkpoints are
those of one process, too: any number of ranks can resume from them.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from prudent.engine.places import Sections, sections_of, turns_among
from prudent.engine.sweep.levels import LevelSweep, LevelTables
from prudent.engine.sweep.rank_sweep import RankSweep, collected
from prudent.engine.sweep.task import Task
from prudent.kernels.levels import Places, Turns
from prudent.models.rows import FloatArray, IntArray, offsets, ranges
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


@dataclass(frozen=True, eq=False)
class Stretch:
    """Places that a rank settles without data from others, and its exchange after that; it numbers places by itself."""

    turns: Turns | None  # None if there are none
    out: dict[int, IntArray]  # by rank: the places that it looks at
    into: dict[int, IntArray]  # by rank: its places that are looked at here


@dataclass(frozen=True, eq=False)
class Share:
    """One rank's share of the places."""

    places: Places  # the rows of its own places, then those of its rim
    action: IntArray  # (n_own_actions,)  its actions, as the whole model numbers them by place
    own: IntArray  # (n_own,)  its places, as the whole model numbers them
    rim: IntArray  # (n_rim,)  those of others that it looks at, in their order
    goals: IntArray  # the goals in its rim, by its own numbers: their values are 0, and nobody sends them
    stretches: list[Stretch]  # settled one after the other
    levels: int  # how many levels are settled between two exchanges


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

    def advance(self, last: int, *, final: bool) -> FloatArray | None:
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


def share_of(whole: Places, sections: Sections, furthest: int, ranks: Ranks) -> Share:
    """Return this rank's share of places that look back at most ``furthest`` levels; all ranks call it."""
    n_places = len(whole.state)
    cuts = _cuts(whole, sections, ranks.size)
    owner = np.empty(n_places, dtype=np.int64)
    for section in cuts:
        for rank in range(ranks.size):
            owner[section[rank] : section[rank + 1]] = rank
    mine = [np.arange(section[ranks.rank], section[ranks.rank + 1]) for section in cuts]
    own = np.concatenate(mine)
    places, action, rim = _local(whole, own, owner, ranks.rank)
    work = places.outcome_start[places.action_start]
    goal = np.diff(whole.action_start) == 0
    foreign = places.cost[np.append(np.zeros(len(own), dtype=bool), ~goal[rim])[places.successor]]
    levels = min(ranks.comm.allgather(int(foreign.min(initial=furthest))))
    begins = offsets([len(each) for each in mine])
    number = np.full(n_places, -1)
    number[own] = np.arange(len(own))
    at = number[sections.cycle_start]
    inside = at >= 0
    here = Sections(places.state, begins, sections.alone, sections.cycle[inside], at[inside])
    wanted = [rim[(owner[rim] == other) & ~goal[rim]] for other in range(ranks.size)]
    given = ranks.comm.alltoall(wanted)
    number[rim] = len(own) + np.arange(len(rim))
    stretches = []
    for first, last in [(0, len(begins) - 1)] if levels > 0 else [(i, i + 1) for i in range(len(begins) - 1)]:
        used = np.flatnonzero(np.diff(begins[first : last + 1])) + first  # sections that have places here
        part = here._replace(start=np.append(begins[used], begins[last]), alone=here.alone[used])
        low, high = sections.start[first], sections.start[last]
        out, into = (
            {
                other: number[some]
                for other, each in enumerate(lists)
                if len(some := each[(each >= low) & (each < high)])
            }
            for lists in (given, wanted)
        )
        stretches.append(Stretch(turns_among(part, work) if len(used) else None, out, into))
    goals = len(own) + np.flatnonzero(goal[rim])
    return Share(places, action, own, rim, goals, stretches, max(levels, 1))


def _cuts(places: Places, sections: Sections, size: int) -> list[IntArray]:
    """Cut each section into a range for each rank, of about the same work; free cycles stay whole."""
    work = places.outcome_start[places.action_start] + np.arange(len(places.state) + 1)
    cuts = []
    for begin, end, alone in zip(sections.start[:-1], sections.start[1:], sections.alone, strict=True):
        aims = work[begin] + (work[end] - work[begin]) * np.arange(size + 1) // size
        at = np.searchsorted(work, aims)
        if alone:
            starts = np.append(
                sections.cycle_start[(sections.cycle_start >= begin) & (sections.cycle_start < end)], end
            )
            at = starts[np.searchsorted(starts, at)]
        at[0], at[-1] = begin, end
        cuts.append(at)
    return cuts


def _local(places: Places, own: IntArray, owner: IntArray, rank: int) -> tuple[Places, IntArray, IntArray]:
    """Return the rows of a rank's own places, their actions, and its rim."""
    action = ranges(places.action_start, own)
    outcome = ranges(places.outcome_start, action)
    successor = places.successor[outcome]
    looked_at = np.zeros(len(places.state), dtype=bool)
    looked_at[successor] = True
    rim = np.flatnonzero(looked_at & (owner != rank))
    number = np.full(len(places.state), -1, dtype=np.int32)
    number[own] = np.arange(len(own))
    number[rim] = len(own) + np.arange(len(rim))
    both = np.concatenate([own, rim])
    place = np.full(len(places.state), -1, dtype=np.int32)
    place[places.state[both]] = np.arange(len(both))
    local = Places(
        state=places.state[both],
        place=place,
        action_start=offsets(np.diff(places.action_start)[own]),
        action=places.action[own],
        outcome_start=offsets(np.diff(places.outcome_start)[action]),
        probability=places.probability[outcome],
        successor=number[successor],
        cost=places.cost[outcome],
        column=np.arange(len(own)),
    )
    return local, action, rim
