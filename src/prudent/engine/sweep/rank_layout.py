"""The places of a model split among ranks, for sweeping level by level.

Every section of the places is cut into ranges of about the same work, one for each rank.  A rank's layout has its own
places first, then the places of others that it looks at, its *rim*: their values come by messages.

If all moves between ranks, except those to goals, cost at least ``c``, a level looks at levels of others ``c`` back or
more.  So ranks settle ``c`` levels between two exchanges.  If some such moves are free, they exchange values after
every section of a level.
"""

from dataclasses import dataclass

import numpy as np

from prudent.engine.places import Sections, turns_among
from prudent.kernels.levels import Places, Turns
from prudent.models.rows import IntArray, offsets, ranges
from prudent.runtime.ranks import Ranks


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
