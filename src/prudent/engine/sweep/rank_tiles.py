"""The backend that sweeps in tiles on several ranks: models without cycles.

Budgets are a pipeline.  From the previous tile, a tile needs only the levels that each node hands on.  So tiles go
round among the ranks: while one rank settles some nodes of a tile, the previous rank settles the next nodes of its own
tile.  After each *piece*, some nodes in their order, a rank sends the levels that they hand on.  Actions stay with the
rank that found them, tile by tile, until rank 0 asks for them.

Sums are those of :mod:`prudent.engine.sweep.tiles`, so values have the same bits.
"""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from prudent.engine.sweep.rank_sweep import RankSweep, collected
from prudent.engine.sweep.task import Task
from prudent.engine.sweep.tile_layout import LEAST, Tiling, tiling_of, work_for
from prudent.engine.sweep.tile_window import Window, short_tile
from prudent.engine.sweep.tiles import TileSweep, TileTables
from prudent.kernels.questions import Bound, Given, Plan, PlanAndBound
from prudent.kernels.stretches import NEVER, Parts, Tiles, Values
from prudent.kernels.team import new_counters
from prudent.kernels.tiles import pass_on, put_back
from prudent.models.rows import FloatArray, IntArray
from prudent.runtime.limits import Arrays
from prudent.runtime.ranks import Ranks

EACH, SMALLEST = 8, 2**18
"""Pieces of a tile for each rank, since the last rank begins as many pieces late as there are others; and the fewest
outcomes times levels in a piece: about the time needed to send it."""


class Piece(NamedTuple):
    """Some nodes in their order, which are settled and handed on together."""

    parts: Parts
    node: IntArray
    back: IntArray  # how many levels back each is looked at, at most
    work: int  # outcomes


class RankTileSweep(RankSweep):
    """A sweep in tiles that go round among ranks."""

    kind = TileSweep
    batch, first = TileSweep.batch, TileSweep.first
    whole: TileSweep

    @classmethod
    def serves(cls, task: Task, levels: float) -> bool:
        """Return whether there are ranks, and a model without cycles."""
        return task.ranks is not None and task.prepared.acyclic and TileSweep.serves(task, levels)

    def _whole(self) -> TileSweep:
        task, found = replace(self.task, threads=1), tiling_of(self.task.prepared)
        assert found is not None, "it serves only models that are laid out for it"
        tile = short_tile(found, task.most, self.ranks.size, task.levels)
        work = work_for(found, task.question)
        return TileSweep(task, layout=replace(found, work=work, shares_rows=True, tile=tile))

    def _laid_out(self) -> "TilePart":
        task, tables = self.task, self.whole.tables
        about = task.question.chooses, task.most, task.levels, task.prepared.n_states
        return TilePart(self.whole.layout, tables.question, *about, self.done, tables.window.kept)


@dataclass
class TilePart:
    """Every so many-th tile: those of one rank, one at a time."""

    tiling: Tiling
    question: Plan | Bound | PlanAndBound | Given
    plan: bool  # whether actions are chosen
    most: int  # the largest level that can matter
    levels: float  # about how many levels will be swept
    n_states: int
    done: int  # levels settled
    kept: int  # levels that nodes hand on so far

    def begin(self, ranks: Ranks, whole: TileSweep | None = None) -> None:
        """Begin with no tile settled; rank 0 works in the tables of its sweep of one process."""
        window = Window(self.tiling, self.most, self.plan, 1, self.levels) if whole is None else whole.tables.window
        window.hold(self.kept)
        self.tables = TileTables(self.tiling.work, self.question, window)
        self.ranks = ranks
        self._last = 0  # the rank of the last tile, which has what is handed on
        self._kept: list[tuple[int, NDArray[Any]]] = []  # actions that are still here, by level and state: tile by tile
        self._pieces = self._cut()

    def _cut(self) -> list[Piece]:
        """Cut the nodes into pieces of about the same work."""
        tiling, size = self.tiling, self.ranks.size
        window = self.tables.window
        parts, total = tiling.parts(window.strip, self.ranks.threads), int(tiling.weight[-1])
        number = int(max(min(EACH * size, total * window.tile // SMALLEST, tiling.n_nodes), 1))
        # Ranks may have different numbers of threads: where pieces end is the same for all.
        ends = tiling.weight.searchsorted(total * np.arange(1, number) // number)
        cuts = np.unique(np.concatenate([[0], ends, [len(tiling.work.cyclic)]])).tolist()
        return [self._piece(parts, begin, end) for begin, end in pairwise(cuts)]

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

    def advance(self, last: int, *, final: bool) -> FloatArray | None:
        """Settle the levels before ``last``; return U and M of the start by level, on rank 0."""
        ranks, first, window = self.ranks, self.done, self.tables.window
        begins = range(first, last, window.tile)
        window.reach(first, last, final=final and len(begins) == 1)
        settled = []
        for k, begin in enumerate(begins):
            if (self._last + k) % ranks.size == ranks.rank:
                end = min(begin + window.tile, last)
                tiles = self._settle_tile(begin, end, k > 0, end < last, final and end == last)
                settled.append((begin - first, end - first, tiles.excess, tiles.mean))
        ranks.finish()
        self._last = (self._last + len(begins) - 1) % ranks.size
        self.done, gathered = last, ranks.gathered(settled)
        if gathered is None:
            return None
        found = np.zeros((3, last - first))
        for each in gathered:
            for begin, end, excess, mean in each:
                found[0, begin:end], found[2, begin:end] = excess, mean
        return found

    def _settle_tile(self, begin: int, end: int, receives: bool, sends: bool, final: bool) -> Tiles:
        """Settle a tile, piece by piece: each once it has come from the rank before."""
        window, tiling, ranks = self.tables.window, self.tiling, self.ranks
        found, strip = np.zeros((2, end - begin)), min(window.strip, end - begin)
        about = begin, end, window.tile, strip, 1, 0, new_counters(1), tiling.start, tiling.start_group, *found
        values, tiles = self._values(begin, end, final), Tiles(*about)
        ranks.finish()
        for piece in self._pieces:
            if receives:
                message = self._message(piece)
                ranks.receive(message, (ranks.rank - 1) % ranks.size)
                self._pass_on(piece, begin, message, pack=False)
            lanes = int(max(min(ranks.threads, piece.work * (end - begin) // LEAST, len(piece.parts.group) - 1), 1))
            self.tables.settle(tiles._replace(counters=new_counters(1)), values, piece.parts, lanes)
            if sends:
                message = self._message(piece)
                self._pass_on(piece, end, message, pack=True)
                ranks.send(message, (ranks.rank + 1) % ranks.size)
        return tiles

    def _values(self, begin: int, end: int, final: bool) -> Values:
        """Return the tables for a tile; its actions have one of their own, by level and state."""
        plan, n = self.plan, self.n_states
        choice = np.zeros((end - begin if plan else 1, n), dtype=self.tiling.number)
        if plan:
            self._kept.append((begin, choice))
        late = np.minimum(self.tiling.work.delay[:n], end) - begin
        values = self.tables.window.values(choice, end if final else NEVER)
        return values._replace(place=np.arange(n) + late * n)

    def _pass_on(self, piece: Piece, end: int, message: FloatArray, *, pack: bool) -> None:
        """Copy the levels that the nodes of a piece hand on after a tile to a message, or back."""
        window = self.tables.window
        levels, ring = (
            np.minimum(piece.back, window.kept),
            (window.kept, self.tiling.block, self.tiling.n_nodes * self.tiling.block),
        )
        for table, part in zip(window.before, message, strict=False):
            pass_on(table, ring, piece.node, levels, end, part, pack)

    def _message(self, piece: Piece) -> FloatArray:
        """Return room for the levels that the nodes of a piece hand on, of U and of M."""
        size = int(np.minimum(piece.back, self.tables.window.kept).sum())
        return np.zeros((2 if self.plan else 1, size))

    def actions(self, whole: Any) -> list[float] | None:
        """Move the actions to rank 0's table; return there what each choice may lose, at most, by rank."""
        for _, first, part in collected(self.ranks, self._kept):
            put_back(part, first, self.tiling.work.delay[: self.n_states], whole)
        self._kept.clear()
        return self.ranks.gathered(self.tables.lost)

    def values(self) -> Arrays | None:
        """Give rank 0 the levels that are handed on: there they are those of the sweep of one process."""
        for table in self.tables.window.saved if self._last > 0 else []:
            if self.ranks.rank == self._last:
                self.ranks.send(table, 0)
            elif self.ranks.rank == 0:
                self.ranks.receive(table, self._last)
        self.ranks.finish()
        self._last = 0
        return None
