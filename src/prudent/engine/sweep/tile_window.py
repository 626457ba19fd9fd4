"""The values of a sweep in tiles that are still looked back to.

A model without cycles is settled successors first, all of a tile's levels at once.  Once every node that looks at a row
is done, another node reuses the row.  From tile to tile, a node hands on only the levels that are looked back to.  So
the rows in use stay in the caches.  Otherwise every node has a row of its own, whose levels slide along.
"""

from dataclasses import InitVar, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.engine.sweep.tile_layout import Tiling
from prudent.kernels.stretches import LANES, Parts, Scratch, Tiles, Values, slide
from prudent.kernels.team import new_counters
from prudent.models.rows import FloatArray

TABLES = 2**28
"""The most bytes of the tables, unless even the shortest tiles need more."""

AT_ONCE = 2**26
"""The most numbers for which room is made beforehand."""

SHORTEST = 16
"""The shortest tiles that are made to save memory."""

STRIP, SHORT = 512, 128
"""The most levels that a node is settled for at once: a few such vectors fit into the fastest cache; and the fewest
that a tile is cut into to keep more threads busy."""

HELD = 32
"""Nodes whose actions are written together."""

BUSY = 4
"""Parts of a layer for each thread that keep it busy."""

BEHIND, LITTLE = 4, 0.125
"""If several tiles are in work at the same time: the fewest layers for each of them, since the last begins as many
layers late as there are others; and the most that they hand on, as a share of their length."""

NEAR = 2**20
"""Bytes of a table of a tile that stay in the cache of one core, if several tiles are in work."""

ROUND = 64
"""The most tiles of a stream that are settled in one call."""


@dataclass
class Window:
    """Tables for the levels of tiles and those that they look back to, up to ``most``; with ``plan``, of M too.

    About ``levels`` will be asked for.
    """

    tiling: Tiling
    most: int
    plan: bool
    threads: int = 1
    levels: InitVar[float] = np.inf
    origin: int = field(default=0, init=False)  # the first level in the tables, where rows are not shared
    streams: int = field(init=False)  # tiles in work at the same time, at most
    tile: int = field(init=False)  # levels in a tile, at most
    strip: int = field(init=False)  # levels of a node that one thread settles at once, at most
    width: int = field(init=False)  # levels that the tables hold
    kept: int = field(default=0, init=False)  # levels that nodes hand on so far, where rows are shared
    tables: list[FloatArray] = field(init=False)  # U, and M, by stream, row and level
    before: list[FloatArray] = field(init=False)  # the levels handed on, by node; level t at t modulo ``kept``
    _parts: dict[tuple[int, int], Parts] = field(default_factory=dict, init=False)  # by levels and threads

    def __post_init__(self, levels: float) -> None:
        tiling = self.tiling
        self.streams, self.tile, self._widest = shape_of(tiling, self.most, self.threads, levels)
        self.width = self._widest
        if not tiling.shares_rows and 16 * tiling.rows * self._widest > TABLES:  # the sweep may end early: begin narrow
            self.width = min(self._widest, 2 * self.tile)
        size = self.streams * tiling.rows * self.width + LANES
        self.tables = [np.zeros(size if used else 1) for used in (True, self.plan)]
        self.before = [np.zeros(LANES), np.zeros(LANES)]
        self.strip = self.tile
        if tiling.shares_rows:
            team = -(-self.threads // self.streams)
            parts = -(-BUSY * team * tiling.n_layers // tiling.n_nodes) if team > 1 else 1
            self.strip = min(max(-(-self.tile // parts), SHORT), STRIP, self.tile)

    def rounds(self, first: int, last: int) -> list[tuple[int, int]]:
        """Cut the levels ``first:last`` into ranges that are settled in one call each."""
        length = self.tile * (self.streams * ROUND if self.tiling.shares_rows else 1)
        return [(begin, min(begin + length, last)) for begin in range(first, last, length)]

    def tiles(self, first: int, last: int, *, final: bool) -> tuple[Tiles, Parts, int]:
        """Make room for the levels ``first:last``, none of them settled; unless ``final`` also for handing them on.

        Return the tiles, the parts in which they are settled, and how many threads are worth starting.
        """
        tiling, levels = self.tiling, last - first
        each = -(-levels // (self.tile * self.streams)) * self.streams  # each stream has as many tiles, about as long
        tile = min(max(-(-levels // (each * LANES)) * LANES, min(SHORT, self.tile)), self.tile)
        n = -(-levels // tile)
        self.reach(first, last, final=final and n == 1)
        streams, strip = min(self.streams, n), min(self.strip, tile, levels)
        cut = strip, -(-self.threads // streams)
        if (parts := self._parts.get(cut)) is None:  # cutting takes longer than settling a short tile
            parts = self._parts[cut] = tiling.parts(*cut)
        lanes = tiling.lanes(parts, levels, strip, self.threads)
        streams = min(streams, lanes)
        found, counters = np.zeros((2, levels)), new_counters(n)
        about = tiling.rows * self.width, counters, tiling.start, tiling.start_group
        return Tiles(first, last, tile, strip, streams, *about, *found), parts, lanes

    def reach(self, first: int, end: int, *, final: bool) -> None:
        """Make room for the levels ``first:end``, unless ``final`` also for handing them on."""
        tiling = self.tiling
        if tiling.shares_rows:
            if not final and self.kept < min(tiling.back, end):  # so far, the place of a level is its number
                self.hold(min(tiling.back, -(-end // tiling.block) * tiling.block))
            return
        if end - self.origin > self.width and self.width < self._widest:  # no level was dropped so far
            wider = self.width
            while wider < min(end, self._widest):
                wider = min(apart(2 * wider), self._widest)
            for i, table in enumerate(self.tables[: 2 if self.plan else 1]):
                self.tables[i] = np.zeros(tiling.rows * wider + LANES)
                rows = self.tables[i][:-LANES].reshape(tiling.rows, wider)
                rows[:, : self.width] = table[: tiling.rows * self.width].reshape(tiling.rows, -1)
            self.width = wider
        if end - self.origin > self.width:
            by = max(first - tiling.back, 0) - self.origin
            for table in self.tables[: 2 if self.plan else 1]:
                slide(table, self.width, by, first - self.origin - by)
            self.origin += by

    def hold(self, levels: int) -> None:
        """Make room for handing on so many levels.

        Make it at once for as many as may be needed, since unused memory is not taken.  Blocks of levels follow each
        other, so nothing is rearranged.
        """
        self.kept, tiling = levels, self.tiling
        size, most = tiling.handed_on(levels), tiling.handed_on(min(self.tiling.back, self.most))
        for i in range(2 if self.plan else 1):
            if size > len(self.before[i]):
                longer = np.zeros(max(size, min(most, AT_ONCE)))
                longer[: len(self.before[i])] = self.before[i]
                self.before[i] = longer

    def values(self, choice: NDArray[Any], final: int) -> Values:
        """Return the tables for a kernel; the tile that ends with the level ``final`` hands nothing on."""
        row = self.tiling.row * self.width + self.tiling.work.delay - self.origin
        front = self.tiling.back if self.tiling.shares_rows else -1
        (excess, mean), (excess_before, mean_before), n = self.tables, self.before, choice.shape[1]
        handing = self.tiling.looked_back, self.kept, self.tiling.block, final, excess_before, mean_before
        return Values(row, excess, mean, front, *handing, choice.reshape(-1), np.arange(n), n)

    @property
    def saved(self) -> list[FloatArray]:
        """The arrays to resume from: one table of U, one of M."""
        if not self.tiling.shares_rows:
            return self.tables
        return [table[: self.tiling.handed_on(self.kept)] for table in self.before]

    def resume(self, saved: list[FloatArray], origin: int) -> None:
        """Resume from saved arrays of the right lengths."""
        if self.tiling.shares_rows:
            self.before = saved
            self.kept = min((len(saved[0]) - LANES) // self.tiling.n_nodes, self.tiling.back)
        else:
            self.width, self.tables, self.origin = (len(saved[0]) - LANES) // self.tiling.rows, saved, origin

    def lengths(self, size: int, done: int) -> tuple[int, int]:
        """Return the lengths that saved arrays must have, given the size of the first one and the levels settled."""
        if self.tiling.shares_rows:
            n, most = self.tiling.n_nodes, self.tiling.back
            kept = min(max((size - LANES) // n, min(done, most) if done > 1 else 0), most)
            size = self.tiling.handed_on(kept)
            return size, size if self.plan else LANES
        rows, width = self.tiling.rows, self.width
        while width < self._widest and rows * width + LANES < size:
            width = min(apart(2 * width), self._widest)
        return rows * width + LANES, rows * width + LANES if self.plan else 1


def new_scratch(tiling: Tiling, strip: int) -> Scratch:
    """Return the arrays that a thread works in, for strips of so many levels."""
    actions = int(np.diff(tiling.work.action_start).max(initial=1))
    length = -(-strip // LANES) * LANES
    least, next_least, m, mean = np.empty((4, length + LANES))
    return Scratch(
        k=np.empty(-(-actions // 4) * 4 * length + LANES),  # sums run on to whole lanes
        ready=np.empty((strip, 0 if tiling.groups is None else tiling.scratch_rows)),
        least=least,
        next_least=next_least,
        m=m,
        mean=mean,
        chosen=np.zeros(length + LANES, dtype=np.int64),
        p=np.empty(tiling.longest),
        at=np.empty(tiling.longest, dtype=np.int64),
        picked=np.empty(HELD * length, dtype=tiling.number),
        to=np.empty(HELD, dtype=np.int64),
        many=np.empty(HELD, dtype=np.int64),
        held=np.zeros(1, dtype=np.int64),
        lost=np.zeros(1),
    )


def shape_of(tiling: Tiling, most: int, threads: int, levels: float = np.inf) -> tuple[int, int, int]:
    """Return how many tiles are in work at once, how long they are, and the most levels that their tables will hold.

    Several are in work if they hand on few levels, so that each thread reads only what it has itself settled.
    """
    fits = TABLES // (16 * tiling.rows) - tiling.back
    if not tiling.shares_rows:
        tile = min(tiling.tile, max(fits // 2, SHORTEST), most + 1)
        return 1, tile, apart(min(tiling.back + max(2 * tile, tiling.back // 2), most + 1) + 1)
    tile, short = min(tiling.tile, max(fits, SHORTEST), most + 1), short_tile(tiling, most, threads, levels)
    streams = min(threads, -(-(int(min(levels, most)) + 1) // short))
    room = 16 * tiling.rows * streams * (short + tiling.back)
    late, little = BEHIND * streams > tiling.n_layers, tiling.back <= LITTLE * short
    if streams == 1 or late or not little or room > TABLES:
        return 1, tile, apart(tiling.back + tile)
    return streams, short, apart(tiling.back + short)


def short_tile(tiling: Tiling, most: int, turns: int, levels: float) -> int:
    """Return the length of tiles such that this many in turn, or a multiple of it, cover all levels."""
    tile = min(tiling.tile, max(TABLES // (16 * tiling.rows) - tiling.back, SHORTEST), most + 1)
    near = min(max(NEAR // (16 * tiling.rows) - tiling.back, SHORT), tile)
    levels = int(min(levels, most)) + 1
    each = -(-levels // (turns * near))  # tiles of each
    return min(max(-(-levels // (each * turns * LANES)) * LANES, SHORT), near)


def apart(width: int) -> int:
    """Return a width for rows that is an odd number of cache lines, so that rows begin in different sets of a cache."""
    return width if width < 128 else (width + 15) // 16 * 16 + 8
