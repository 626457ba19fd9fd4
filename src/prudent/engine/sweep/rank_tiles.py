"""The backend that sweeps in tiles on several ranks: models without cycles.

Budgets are a pipeline.  From the previous tile, a tile needs only the levels that each node hands on.  So tiles go
round among the ranks: while one rank settles some nodes of a tile, the previous rank settles the next nodes of its own
tile.  After each *piece*, some nodes in their order, a rank sends the levels that they hand on.  Actions stay with the
rank that found them, tile by tile, until rank 0 asks for them.

Sums are those of :mod:`prudent.engine.sweep.tiles`, so values have the same bits.
"""

from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from prudent.engine.prepared import choice_type
from prudent.engine.sweep.rank_sweep import RankSweep, together
from prudent.engine.sweep.task import Task
from prudent.engine.sweep.tile_layout import LEAST, Tiling, tiling_of
from prudent.engine.sweep.tile_window import Window, short_tile
from prudent.engine.sweep.tiles import TileSweep
from prudent.kernels.stretches import NEVER, Parts, Tiles, Values
from prudent.kernels.team import new_counters
from prudent.kernels.tiles import pass_on, put_back, settle
from prudent.models.rows import FloatArray, IntArray
from prudent.runtime.limits import Arrays
from prudent.runtime.team import side_by_side

__all__ = ["RankTileSweep"]

EACH, SMALLEST = 8, 2**18
"""Pieces of a tile for each rank, since the last rank begins as many pieces late as there are others; and the fewest
outcomes times levels in a piece: about the time needed to send it."""


class Piece(NamedTuple):
    """Some nodes in their order, which are settled and handed on together."""

    parts: Parts
    node: IntArray
    back: IntArray  # how many levels back each is looked at, at most
    work: int  # outcomes


class Settled(NamedTuple):
    """The actions of a tile, by level and state."""

    first: int
    choice: NDArray[Any]


@dataclass
class RankTileSweep(RankSweep, TileSweep):
    """A sweep in tiles that go round among ranks."""

    layouts = (tiling_of,)

    def __post_init__(self, layout: Tiling | None) -> None:
        self._begin()
        with self.ranks.at_once():
            task = self.task
            found = tiling_of(task.prepared)
            assert found is not None, "it serves only models that are laid out for it"
            tile = short_tile(found, task.most, self.ranks.size, task.levels)
            super().__post_init__(replace(found, shares_rows=True, tile=tile))
            self._choice = self._choice[:1].copy()  # of the settled levels up to a checkpoint, on rank 0
            self._kept: list[Settled] = []  # tiles of this rank
            self._last = 0  # the rank of the last tile, which has what is handed on
            self._pieces = self._cut()

    def _new_window(self) -> Window:
        """Return the tables to begin with: those of one tile at a time."""
        return Window(self.tiling, self.task.most, self.task.aims.plan, 1, self.task.levels)

    @classmethod
    def serves(cls, task: Task, levels: float) -> bool:
        """Return whether there are ranks, and a model without cycles."""
        return task.ranks is not None and task.prepared.acyclic and TileSweep.serves(task, levels)

    def _cut(self) -> list[Piece]:
        """Cut the nodes into pieces of about the same work."""
        tiling, size = self.tiling, self.ranks.size
        parts, total = tiling.parts(self._window.strip, self.task.threads), int(tiling.weight[-1])
        number = int(max(min(EACH * size, total * self._window.tile // SMALLEST, tiling.n_nodes), 1))
        # Ranks may have different numbers of threads: where pieces end is the same for all.
        ends = tiling.weight.searchsorted(total * np.arange(1, number) // number)
        return [self._piece(parts, begin, end) for begin, end in _between(ends, len(tiling.work.cyclic))]

    def _piece(self, parts: Parts, begin: int, end: int) -> Piece:
        """Return the groups ``begin:end`` as a piece."""
        tiling = self.tiling
        layers = np.unique(np.clip(tiling.layer_start, begin, end))
        inside = parts.group[(parts.group > begin) & (parts.group < end)]
        group = np.unique(np.concatenate([layers, inside]))
        cut = Parts(np.searchsorted(group, layers), group)
        node = tiling.work.group_node[begin:end]
        goal = np.diff(tiling.work.action_start)[node] == 0  # their values are known
        back = np.where(goal, 0, tiling.looked_back[node])
        return Piece(cut, node, back, int(tiling.weight[end] - tiling.weight[begin]))

    def advance(self, last: int, *, final: bool = False) -> None:
        """Settle the levels before ``last``; ``final``: whether no further levels follow."""
        self._advance(last, final)

    @together
    def _advance(self, last: int, final: bool) -> None:
        ranks, first, tile = self.ranks, self.done, self._window.tile
        self._widen(last)
        begins = range(first, last, tile)
        self._window.reach(first, last, final=final and len(begins) == 1)
        found = []
        for k, begin in enumerate(begins):
            if (self._last + k) % ranks.size == ranks.rank:
                end = min(begin + tile, last)
                found.append(self._settle_tile(begin, end, k > 0, end < last, final and end == last))
        ranks.finish()
        self._last = (self._last + len(begins) - 1) % ranks.size
        for tiles in chain.from_iterable(ranks.gathered(found) or []):
            self._note(tiles)
        self.done = last

    def _settle_tile(self, begin: int, end: int, receives: bool, sends: bool, final: bool) -> Tiles:
        """Settle a tile, piece by piece: each once it has come from the rank before."""
        window, tiling, ranks = self._window, self.tiling, self.ranks
        start, strip = tiling.prepared.start, min(window.strip, end - begin)
        found = np.empty((2, end - begin))
        about = begin, end, window.tile, strip, 1, 0, new_counters(1), start, tiling.start_group, *found
        values, tiles = self._values(begin, end, final), Tiles(*about)
        ranks.finish()
        for piece in self._pieces:
            if receives:
                self._take(piece, begin)
            self._settle_piece(piece, tiles._replace(counters=new_counters(1)), values)
            if sends:
                self._hand_on(piece, end)
        return tiles

    def _values(self, begin: int, end: int, final: bool) -> Values:
        """Return the tables for a tile; its actions have one of their own, by level and state."""
        n, plan = self.task.prepared.n_states, self.task.aims.plan
        choice = np.zeros((end - begin if plan else 1, n), dtype=choice_type(self.task.prepared))
        if plan:
            self._kept.append(Settled(begin, choice))
        late = np.minimum(self.tiling.work.delay[:n], end) - begin
        return self._window.values(choice, end if final else NEVER)._replace(place=np.arange(n) + late * n)

    def _settle_piece(self, piece: Piece, tiles: Tiles, values: Values) -> None:
        """Settle the nodes of a piece on all levels of a tile."""
        task, levels = self.task, tiles.last - tiles.first
        lanes = int(max(min(task.threads, piece.work * levels // LEAST, len(piece.parts.group) - 1), 1))
        self._make_room(lanes)
        about = self.tiling.work, self._known, task.terms, task.tie, task.aims.plan, tiles, values

        def work(lane: int) -> None:
            settle(*about, self._free[lane], piece.parts, self._scratch[lane], lane)

        side_by_side(lanes, work)

    def _pass_on(self, piece: Piece, end: int, message: FloatArray, *, pack: bool) -> None:
        """Copy the levels that the nodes of a piece hand on after a tile to a message, or back."""
        window, levels = self._window, np.minimum(piece.back, self._window.kept)
        ring = window.kept, window.block, self.tiling.n_nodes * window.block
        for table, part in zip(window.before, message, strict=False):
            pass_on(table, ring, piece.node, levels, end, part, pack)

    def _message(self, piece: Piece) -> FloatArray:
        """Return room for the levels that the nodes of a piece hand on, of U and of M."""
        size = int(np.minimum(piece.back, self._window.kept).sum())
        return np.zeros((2 if self.task.aims.plan else 1, size))

    def _hand_on(self, piece: Piece, end: int) -> None:
        """Send to the next rank the levels that the nodes of a piece hand on."""
        message = self._message(piece)
        self._pass_on(piece, end, message, pack=True)
        self.ranks.send(message, (self.ranks.rank + 1) % self.ranks.size)

    def _take(self, piece: Piece, begin: int) -> None:
        """Receive the levels that the previous rank hands on for the nodes of a piece."""
        message = self._message(piece)
        self.ranks.receive(message, (self.ranks.rank - 1) % self.ranks.size)
        self._pass_on(piece, begin, message, pack=False)

    @property
    def choice(self) -> NDArray[Any]:
        """The actions of the settled levels, from all ranks."""
        return self._all_actions() if self.task.aims.plan else self._choice

    @together
    def _all_actions(self) -> NDArray[Any]:
        """Move the actions that ranks have to rank 0."""
        ranks, n = self.ranks, self.task.prepared.n_states
        about = ranks.gathered([(first, len(choice)) for first, choice in self._kept])
        if about is None:
            for _, choice in self._kept:
                ranks.send(choice, 0)
            ranks.finish()
        else:
            whole = np.zeros((self.done, n), dtype=self._choice.dtype)
            whole[: len(self._choice)] = self._choice
            delay = self.tiling.work.delay[:n]
            for rank, tiles in enumerate(about):
                for i, (first, levels) in enumerate(tiles):
                    part = self._kept[i].choice if rank == 0 else np.empty((levels, n), dtype=whole.dtype)
                    if rank > 0:
                        ranks.receive(part, rank)
                    put_back(part, first, delay, whole)
            self._choice = whole
        self._kept.clear()
        return self._choice

    def packed(self) -> Arrays:
        """Return the arrays needed to resume from here."""
        self._fetch()
        return super().packed()

    @together
    def _fetch(self) -> None:
        """Give rank 0 the levels that are handed on."""
        for table in self._window.saved if self._last > 0 else []:
            if self.ranks.rank == self._last:
                self.ranks.send(table, 0)
            elif self.ranks.rank == 0:
                self.ranks.receive(table, self._last)
        self.ranks.finish()
        self._last = 0

    def resume(self, kept: Arrays) -> None:
        """Resume from packed arrays, or from the kept result of a finished sweep."""
        super().resume(kept)
        self._go_on(self.done, self._window.kept)

    @together
    def _go_on(self, done: int, levels: int) -> None:
        """Resume from a checkpoint that rank 0 has."""
        self.done, self._last = done, 0
        if self.ranks.rank > 0:
            self._window.hold(levels)


def _between(ends: IntArray, last: int) -> list[tuple[int, int]]:
    """Return the ranges between some ends, without empty ones."""
    cuts = np.unique(np.concatenate([[0], ends, [last]])).tolist()
    return list(pairwise(cuts))
