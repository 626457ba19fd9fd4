"""How far a sweep over budgets is, and how it goes on: level by level, or in tiles.

A place can be kept in a checkpoint and resumed; what does not fit is refused, whoever wrote it.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Condition
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.engine.prepared import Prepared, choice_type
from prudent.engine.sweep.tile_layout import Tiling, known_of
from prudent.engine.sweep.tile_window import Window
from prudent.engine.values.bellman import costs_of, free_round, longest_stay
from prudent.engine.values.worst_case import UNREACHED, WorstCase
from prudent.errors import PrudentError
from prudent.kernels.stretches import Free, Known, Scratch
from prudent.kernels.sweep import Aims, Base, Ends, Room, Tables, Terms, sweep
from prudent.kernels.tiles import settle
from prudent.models.rows import FloatArray, IntArray
from prudent.runtime.limits import Arrays

__all__ = ["TIE", "LevelPlace", "Place", "Task", "TilePlace"]

TIE = 1e-11
"""Relative difference within which actions, and budgets, count as equally good: more than rounding, far less than
anyone would notice."""

HUGE = 1e100
"""A value that no table has."""

MISFIT = "the checkpoint does not fit this solve; delete it, or name another file"

PART = 1_000_000
"""Outcomes times levels between two looks at how far the tile before has come: a few tenths of a millisecond."""

MOST_PARTS = 64
"""More are not needed to keep threads busy."""

LEAST = 8
"""So many parts for each thread, or it is not worth it."""

SHORT = 128
"""So many levels for each thread, or tiles would be too short."""

AT_FIRST = 2**30
"""States times levels that there is room for at first; beyond that, room grows as it is needed."""


@dataclass(frozen=True, eq=False)
class Task:
    """What is to be swept."""

    prepared: Prepared
    base: Base
    choice: IntArray  # a proper policy for no budget; where there is a plan, the one whose mean the base has
    worst: WorstCase
    aims: Aims
    terms: Terms
    keep: bool = False  # the values of all levels
    threads: int = 1

    @property
    def first_choice(self) -> NDArray[Any]:
        """The actions for no budget, by their numbers within their states: (1, n_states)."""
        number = self.choice - self.prepared.action_start[:-1]
        return np.asarray(number.astype(choice_type(self.prepared))[None])


@dataclass
class Place:
    """How far a sweep is."""

    task: Task
    done: int = 1  # levels settled
    found: FloatArray = field(default_factory=lambda: np.zeros((3, 64)))  # U, surely below it, M of the start

    def __post_init__(self) -> None:
        self.found[:, 0] = [values[self.task.prepared.start] for values in self.task.base]

    def _widen(self, last: int) -> None:
        if last > self.found.shape[1]:
            more = max(last - self.found.shape[1], self.found.shape[1])
            self.found = np.concatenate([self.found, np.zeros((3, more))], axis=1)

    def _check(self, kept: Arrays, wanted: dict[str, tuple[tuple[int, ...], Any]]) -> None:
        """Refuse arrays that no place of this task has."""
        prepared = self.task.prepared
        fits = kept.keys() == wanted.keys() and all(
            kept[name].shape == shape and kept[name].dtype == kind for name, (shape, kind) in wanted.items()
        )
        if not fits or wanted["found"][0][1] < 1:
            raise PrudentError(MISFIT)
        count = np.maximum(np.diff(prepared.action_start), 1)
        sane = [
            (kept["choice"] >= 0).all() and (kept["choice"] < count).all(),
            (kept["choice"][0] == self.task.first_choice[0]).all(),
            *(((kept[n] >= 0) & (kept[n] <= HUGE)).all() for n, (_, kind) in wanted.items() if kind is np.float64),
        ]
        if not all(sane):
            raise PrudentError(MISFIT)

    def _chosen(self, kept: Arrays) -> IntArray:
        """Return one action for each state, as it was kept."""
        prepared, chosen = self.task.prepared, kept["chosen"]
        first, count = prepared.action_start[:-1], np.maximum(np.diff(prepared.action_start), 1)
        if not ((chosen >= first) & (chosen < first + count)).all():
            raise PrudentError(MISFIT)
        return chosen


def room_for(task: Task) -> Room:
    """Return room to solve cycles at no cost in."""
    prepared = task.prepared
    allowed, row = np.ones(prepared.n_actions, dtype=bool), np.empty(prepared.n_states)
    return Room(np.empty(prepared.n_actions), allowed, task.choice.copy(), row)


def kept_levels(kept: Arrays) -> int:
    """Return how many levels a kept place has settled."""
    return kept["found"].shape[-1] if "found" in kept and kept["found"].ndim else 0


@dataclass
class LevelPlace(Place):
    """A sweep level by level: any model."""

    parts: list[NDArray[Any]] = field(default_factory=list)  # the actions of the levels settled
    tables: Tables = field(init=False)  # grows with the levels, as far as a level looks back
    room: Room = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        task, prepared = self.task, self.task.prepared
        wanted, unused = self._wanted, np.zeros((1, 1))
        rows = [first[:, None].copy() if used else unused for first, used in zip(task.base, wanted, strict=True)]
        self.tables = Tables(rows[0], rows[1], rows[2], np.empty((0, prepared.n_states), dtype=choice_type(prepared)))
        self.room = room_for(task)
        self.parts = [task.first_choice]
        arcs = free_round(prepared)
        ends = Ends(task.worst.value, task.worst.action_value, longest_stay(prepared, arcs))
        self._arguments = arcs, costs_of(prepared, arcs), ends, task.terms

    @property
    def _wanted(self) -> tuple[bool, bool, bool]:
        return self.task.aims.plan, self.task.aims.bound, self.task.aims.plan

    @property
    def _furthest(self) -> int:
        return UNREACHED if self.task.keep else int(self.task.prepared.cost.max(initial=0))

    def advance(self, last: int, *, final: bool = False) -> None:
        """Settle the levels up to ``last``; ``final``: none will be asked for after them."""
        task = self.task
        self._widen(last)
        self._reach(last)
        n, kind = self.tables.choice.shape[1], self.tables.choice.dtype
        part = np.empty((last - self.done if task.aims.plan else 0, n), dtype=kind)
        tables = self.tables._replace(choice=part)
        start = task.prepared.start
        sweep(*self._arguments, TIE, task.aims, self.done, last, task.base, tables, start, self.found, self.room)
        if task.aims.plan:
            self.parts.append(part)
        self.done = last

    def _reach(self, last: int) -> None:
        """Make room for the levels before ``last``, as far as a level looks back; none has been used again so far."""
        window = min(self._furthest, last - 1) + 1
        longer = list(self.tables)
        for i, (table, used) in enumerate(zip(self.tables[:3], self._wanted, strict=True)):
            if used and table.shape[1] < window:
                longer[i] = np.zeros((len(table), window))
                longer[i][:, : table.shape[1]] = table
        self.tables = Tables(*longer)

    @property
    def choice(self) -> NDArray[Any]:
        """The actions of the levels settled."""
        return np.concatenate(self.parts)

    def packed(self) -> Arrays:
        """Return what is needed to go on from here."""
        names = {"excess": self.tables.excess, "low": self.tables.low, "mean": self.tables.mean}
        found = np.ascontiguousarray(self.found[:, : self.done])
        return {"found": found, "choice": self.choice, **names, "chosen": self.room.chosen}

    def resume(self, kept: Arrays) -> None:
        """Go on from a kept place."""
        prepared, aims = self.task.prepared, self.task.aims
        n, done = prepared.n_states, kept_levels(kept)
        rows, unused = (n, min(self._furthest, done - 1) + 1), (1, 1)
        wanted: dict[str, tuple[tuple[int, ...], Any]] = {
            "found": ((3, done), np.float64),
            "choice": ((done if aims.plan else 1, n), choice_type(prepared)),
        }
        finished = "chosen" not in kept  # then only what it found was kept
        if not finished:
            shapes = {name: rows if used else unused for name, used in zip(NAMES, self._wanted, strict=True)}
            wanted |= {name: (shape, np.float64) for name, shape in shapes.items()} | {"chosen": ((n,), np.int64)}
        self._check(kept, wanted)
        if not finished:
            self.tables = Tables(kept["excess"], kept["low"], kept["mean"], self.tables.choice)
            self.room = self.room._replace(chosen=self._chosen(kept))
        self.done, self.found, self.parts = done, kept["found"], [kept["choice"]]


NAMES = ("excess", "low", "mean")


@dataclass
class TilePlace(Place):
    """A sweep in tiles: models that are laid out for it."""

    tiling: Tiling = field(kw_only=True)
    most: int = field(kw_only=True)  # levels that can matter

    def __post_init__(self) -> None:
        super().__post_init__()
        task, work, prepared = self.task, self.tiling.work, self.task.prepared
        self._window = Window(self.tiling, self.most, task.aims.plan)
        self._windows = [self._window]  # one for each tile that is settled at the same time
        self._end: int | None = None  # the end of all levels, once it is known
        first = task.base.excess if task.aims.plan else task.base.low
        self._known: Known = known_of(self.tiling, first, task.base.mean, task.worst, task.choice, task.terms.slope)
        self._sure = 1.0
        if task.aims == (True, True):
            whole = task.base.excess > 0
            self._sure = float((task.base.low[whole] / task.base.excess[whole]).min(initial=1.0))
        # What is not written to takes no memory, so there may as well be room.
        rows = min(self.most + 1, max(1024, AT_FIRST // prepared.n_states)) if task.aims.plan else 1
        self._choice = np.zeros((rows, prepared.n_states), dtype=choice_type(prepared))
        self._choice[0] = task.first_choice[0]
        arcs = free_round(prepared)
        ends = Ends(task.worst.value, task.worst.action_value, longest_stay(prepared, arcs))
        self._free = Free(arcs, costs_of(prepared, arcs), ends, room_for(task))
        tile = self._window.tile
        self._scratch = [
            Scratch(
                np.empty(int(np.diff(work.action_start).max(initial=1)) * tile),
                np.empty((tile if work.cyclic.any() else 1, self.tiling.room)),
                np.empty(tile),
                np.empty(tile),
                np.zeros(tile, dtype=np.int64),
                np.zeros(1),
            )
            for _ in range(task.threads)
        ]

    @property
    def lost(self) -> float:
        """What is lost in U, relatively, by taking actions that are as good but for rounding; if it is known."""
        return np.nan if self.tiling.least > 0 else max(float(scratch.lost[0]) for scratch in self._scratch)

    def advance(self, last: int, *, final: bool = False) -> None:
        """Settle the levels up to ``last``; ``final``: none will be asked for after them."""
        self._end = last if final else None
        self._widen(last)
        self._make_room(last)
        lanes = self._lanes(last - self.done)
        tile = min(self._window.tile, -(-(last - self.done) // lanes))
        tiles = [(first, min(first + tile, last)) for first in range(self.done, last, tile)]
        if lanes > 1:
            self._settle_side_by_side(tiles, lanes)
        else:
            groups = 0, len(self.tiling.work.group_start) - 1
            for first, end in tiles:
                self._window.reach(first, end)
                self._settle(first, end, self._window, 0, groups)
                self._note(first, end, self._window)
        self.done = last

    def _lanes(self, levels: int) -> int:
        """Return how many tiles are worth settling at the same time: one where rows are not handed on."""
        if not self.tiling.shares_rows:
            return 1
        work = int(self.tiling.weight[-1]) * levels // PART  # in parts
        return int(max(min(self.task.threads, work // LEAST, levels // SHORT, self._window.fits), 1))

    def _settle_side_by_side(self, tiles: list[tuple[int, int]], lanes: int) -> None:
        """Settle tiles in threads: each follows the one before through the model, part by part.

        A part needs what the same part of the tile before hands on; every sum has its order, so nothing changes.
        """
        while len(self._windows) < lanes:
            self._windows.append(self._window.beside())
        parts = self.tiling.parts(tiles[0][1] - tiles[0][0], PART, MOST_PARTS)
        done, changed = [0] * len(tiles), Condition()  # parts of each tile

        def work(lane: int) -> None:
            window = self._windows[lane]
            for i in range(lane, len(tiles), lanes):
                window.reach(*tiles[i])
                for n, groups in enumerate(parts):
                    with changed:
                        while i > 0 and done[i - 1] <= n:
                            changed.wait()
                    self._settle(*tiles[i], window, lane, groups)
                    with changed:
                        done[i] += 1
                        changed.notify_all()
                self._note(*tiles[i], window)

        def run(lane: int) -> None:
            try:
                work(lane)
            except BaseException:
                with changed:  # let the others come to an end
                    done[:] = [len(parts)] * len(tiles)
                    changed.notify_all()
                raise

        with ThreadPoolExecutor(lanes, thread_name_prefix="prudent") as pool:  # its own: lanes wait for each other
            for each in [pool.submit(run, lane) for lane in range(lanes)]:
                each.result()

    def _settle(self, first: int, end: int, window: Window, lane: int, groups: tuple[int, int]) -> None:
        task, values = self.task, window.values(self._choice, first=first == 1, last=end == self._end)
        about = self.tiling.work, self._known, task.terms, TIE, task.aims.plan, first, end, values
        settle(*about, self._scratch[lane], self._free, *groups)

    def _note(self, first: int, end: int, window: Window) -> None:
        """Take down what a tile has found."""
        aims, (excess, *mean) = self.task.aims, window.of_start(first, end)
        self.found[0, first:end] = excess if aims.plan else 0.0
        if aims.bound:
            self.found[1, first:end] = excess * (self._sure * (1 - self.tiling.slip(np.arange(first, end))))
        if aims.plan:
            self.found[2, first:end] = mean[0]

    def _make_room(self, last: int) -> None:
        levels, n = self._choice.shape
        if self.task.aims.plan and last > levels:
            longer = np.zeros((min(max(2 * levels, last), self.most + 1), n), dtype=self._choice.dtype)
            longer[:levels] = self._choice
            self._choice = longer

    @property
    def choice(self) -> NDArray[Any]:
        """The actions of the levels settled."""
        return self._choice[: self.done if self.task.aims.plan else 1]

    def packed(self) -> Arrays:
        """Return what is needed to go on from here."""
        excess, mean = self._window.kept
        return {
            "found": np.ascontiguousarray(self.found[:, : self.done]),
            "choice": self.choice,
            "excess": excess,
            "mean": mean,
            "origin": np.array([self._window.origin]),
            "lost": np.array([max(float(scratch.lost[0]) for scratch in self._scratch)]),
            "chosen": self._free.room.chosen,
        }

    def resume(self, kept: Arrays) -> None:
        """Go on from a kept place."""
        prepared, aims = self.task.prepared, self.task.aims
        done = kept_levels(kept)
        wanted: dict[str, tuple[tuple[int, ...], Any]] = {
            "found": ((3, done), np.float64),
            "choice": ((done if aims.plan else 1, prepared.n_states), choice_type(prepared)),
        }
        finished = "origin" not in kept  # then only what it found was kept
        if not finished:
            excess, mean = self._window.lengths(kept["excess"].size)
            wanted |= {
                "excess": ((excess,), np.float64),
                "mean": ((mean,), np.float64),
                "origin": ((1,), np.int64),
                "lost": ((1,), np.float64),
                "chosen": ((prepared.n_states,), np.int64),
            }
        self._check(kept, wanted)
        if not finished:
            origin = int(kept["origin"][0])
            self._window.resume([kept["excess"], kept["mean"]], origin)
            if not self.tiling.shares_rows:
                if not max(done - self._window.width, 0) <= origin <= max(done - self.tiling.back, 0):
                    raise PrudentError(MISFIT)
            self._scratch[0].lost[0] = kept["lost"][0]
            self._free = self._free._replace(room=self._free.room._replace(chosen=self._chosen(kept)))
        else:
            self._scratch[0].lost[0] = np.nan  # it was not kept
        self._choice = kept["choice"]
        self.done, self.found = done, kept["found"]
