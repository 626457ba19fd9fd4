"""The values of a sweep in tiles that are still looked back to.

A model without cycles is settled successors first, all of a tile's levels at once.  Once every node that looks at a row
is done, another node reuses the row.  From tile to tile, a node hands on only the levels that are looked back to.  So
the rows in use stay in the caches.  Otherwise every node has a row of its own, whose levels slide along.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.engine.sweep.tile_layout import Tiling
from prudent.kernels.stretches import Values
from prudent.kernels.tiles import slide
from prudent.models.rows import FloatArray

__all__ = ["Window", "tile_and_width"]

TABLES = 2**28
"""The most bytes of the tables, unless even the shortest tiles need more."""

SHORTEST = 16
"""The shortest tiles that are made to save memory."""

NOTHING = (np.zeros(1), np.zeros(1))
"""Stands for the levels handed on where none are."""


@dataclass
class Window:
    """Tables for the levels of a tile and those that it looks back to, up to ``most``; with ``plan``, of M too."""

    tiling: Tiling
    most: int
    plan: bool
    origin: int = field(default=0, init=False)  # the first level in the tables
    tile: int = field(init=False)  # levels to settle at once, at most
    width: int = field(init=False)  # levels that the tables hold
    tables: list[FloatArray] = field(init=False)  # U, and M, by row and level

    def __post_init__(self) -> None:
        tiling = self.tiling
        self.tile, self._widest = tile_and_width(tiling, self.most)
        self.width = self._widest
        if not tiling.shares_rows and 16 * tiling.rows * self._widest > TABLES:  # the sweep may end early: begin narrow
            self.width = min(self._widest, 2 * self.tile)
        self.tables = [np.zeros(tiling.rows * self.width if used else 1) for used in (True, self.plan)]  # goals stay 0

    @cached_property
    def before(self) -> list[FloatArray]:
        """The values, by node and level, that are handed on from tile to tile where rows are shared."""
        carried = len(self.tiling.work.delay) * self._carried
        return [np.zeros(carried if used else 1) for used in (True, self.plan)]

    @property
    def _carried(self) -> int:
        return self.tiling.back if self.tiling.shares_rows else 0

    @property
    def fits(self) -> int:
        """How many windows fit into ``TABLES`` bytes."""
        return TABLES // (16 * self.tiling.rows * self.width)

    def beside(self) -> "Window":
        """Return a window for another tile settled at the same time; levels are handed on between the two."""
        other = Window(self.tiling, self.most, self.plan)
        other.before = self.before
        return other

    def reach(self, first: int, end: int) -> None:
        """Make room in the tables for the levels ``first:end``; all levels before are settled."""
        tiling = self.tiling
        if tiling.shares_rows:
            self.origin = first - tiling.back
            return
        if end - self.origin > self.width and self.width < self._widest:  # no level was dropped so far
            wider = self.width
            while wider < min(end, self._widest):
                wider = min(apart(2 * wider), self._widest)
            self.tables = [_widened(table, self.width, wider) for table in self.tables]
            self.width = wider
        if end - self.origin > self.width:
            by = max(first - tiling.back, 0) - self.origin
            for table in self.tables[: 2 if self.plan else 1]:
                slide(table, self.width, by, first - self.origin - by)
            self.origin += by

    def values(self, choice: NDArray[Any], *, first: bool, last: bool) -> Values:
        """Return the tables for a kernel; ``first`` and ``last`` say whether its tile is the first one, or the last."""
        row = self.tiling.row * self.width + self.tiling.work.delay - self.origin
        before = self._carried
        taken, handed = 0 if first else before, 0 if last else before
        (excess, mean), (excess_before, mean_before) = self.tables, self.before if taken or handed else NOTHING
        handing = before, taken, handed, excess_before, mean_before
        n = choice.shape[1]
        return Values(row, excess, mean, *handing, choice.reshape(-1), np.arange(n), n)

    def of_start(self, first: int, end: int) -> list[FloatArray]:
        """Return U and M of the start for the levels ``first:end``, the last ones settled."""
        start = int(self.tiling.row[self.tiling.prepared.start]) * self.width - self.origin
        return [table[start + first : start + end] for table in self.tables[: 2 if self.plan else 1]]

    @property
    def kept(self) -> list[FloatArray]:
        """The arrays to resume from: one table of U, one of M."""
        return self.before if self.tiling.shares_rows else self.tables

    def resume(self, kept: list[FloatArray], origin: int) -> None:
        """Resume from kept arrays of the right lengths."""
        if self.tiling.shares_rows:
            self.before = kept
        else:
            self.width, self.tables, self.origin = len(kept[0]) // self.tiling.rows, kept, origin

    def lengths(self, size: int) -> tuple[int, int]:
        """Return the lengths that kept arrays must have, given the size of the first one."""
        if self.tiling.shares_rows:
            return len(self.before[0]), len(self.before[1])
        rows, width = self.tiling.rows, self.width
        while width < self._widest and rows * width < size:
            width = min(apart(2 * width), self._widest)
        return rows * width, rows * width if self.plan else 1


def tile_and_width(tiling: Tiling, most: int) -> tuple[int, int]:
    """Return the length of tiles, and the most levels that tables will hold."""
    fits = TABLES // (16 * tiling.rows) - tiling.back
    if tiling.shares_rows:
        tile = min(tiling.tile, max(fits, SHORTEST), most + 1)
        return tile, apart(tiling.back + tile)
    tile = min(tiling.tile, max(fits // 2, SHORTEST), most + 1)
    return tile, apart(min(tiling.back + max(2 * tile, tiling.back // 2), most + 1) + 1)


def apart(width: int) -> int:
    """Return a width for rows such that they do not begin multiples of 4 kB apart, i.e. in the same set of a cache."""
    return width if width < 512 else -(-width // 512) * 512 + 8


def _widened(table: FloatArray, width: int, wider: int) -> FloatArray:
    """Return a table with wider rows; the placeholder of an unused table is returned unchanged."""
    if len(table) < width:
        return table
    found = np.zeros((len(table) // width, wider))
    found[:, :width] = table.reshape(-1, width)
    return found.ravel()
