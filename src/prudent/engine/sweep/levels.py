"""The backend that sweeps level by level: any model, on all threads.

:mod:`prudent.engine.places` gives the order, :mod:`prudent.kernels.levels` describes how values are kept.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from prudent.engine.places import lanes_of, places_of, turns_of
from prudent.engine.prepared import Prepared
from prudent.engine.sweep.question import CLOSE, Rounding
from prudent.engine.sweep.task import EACH_LEVEL, Backend, Shapes, Tables, Task
from prudent.engine.values.bellman import arcs_for_bounds, free_arcs, largest_rounding, rounding
from prudent.engine.values.worst_case import UNREACHED
from prudent.kernels.levels import Free, Known, Places, Scratch, Span, Turns, Values, sweep
from prudent.kernels.questions import Aims, Bound, Given, Plan, PlanAndBound
from prudent.kernels.team import new_counters
from prudent.models.rows import FloatArray, IntArray
from prudent.runtime.limits import Arrays
from prudent.runtime.team import side_by_side


def window_of(prepared: Prepared, most: int) -> int:
    """Return how many levels of values a sweep to level ``most`` has to keep."""
    return min(prepared.cost_range[1], most) + 1


def rounding_by_level(prepared: Prepared) -> Rounding:
    """Return how rounding changes values that are found level by level."""
    unit = np.inf if len(turns_of(prepared).cycle) else largest_rounding(prepared)
    return Rounding(int(prepared.free_depth.max(initial=0)) + 1, prepared.cost_range[0], unit)


@dataclass
class LevelTables:
    """The values and actions at some places, and all that settles them: nothing here depends on the rest of a model."""

    places: Places
    question: Plan | Bound | PlanAndBound | Given
    free: Free | None  # None without free cycles
    chosen: IntArray  # (n_states,)  the model's actions with which free cycles are solved next
    chooses: bool  # whether actions are chosen
    rows_found: list[int]  # where the values of the start go, by field: U, its bound, M
    furthest: int  # how many levels back an outcome looks at most; the table keeps no more
    start: int  # the place of the start; -1 if it is not among these
    threads: int
    table: FloatArray  # (n_lines * n_places * fields,)  lengthened as levels are settled, up to the window
    columns: int  # actions in a row of the policy
    choice: NDArray[Any]  # (n_levels * columns,)
    scratch: list[Scratch] = field(init=False)  # of each thread

    def __post_init__(self) -> None:
        most = int(np.diff(self.places.action_start).max(initial=1))
        self.scratch = [Scratch(np.empty(most), np.empty(most), np.zeros(1)) for _ in range(self.threads)]

    def shape(self, levels: int) -> tuple[int, int, int]:
        """Return how many lines, places and fields the table has after so many levels."""
        return min(self.furthest, levels - 1) + 1, len(self.places.state), len(self.rows_found)

    def lengthen(self, last: int) -> None:
        """Make room for the levels before ``last``: in the table up to the window, and for the actions."""
        if (size := int(np.prod(self.shape(last)))) > (known := len(self.table)):
            # A new table: a resized one has no huge pages, without which looking up takes twice as long.
            longer = np.zeros(size)
            longer[:known] = self.table
            self.table = longer
        if self.chooses:
            self.choice.resize(last * self.columns, refcheck=False)

    def fill_goals(self, first: int, last: int, goals: IntArray) -> None:
        """Fill in the values of goals that others settle; where they depend on the budget, level by level."""
        level, terms = np.arange(first, last), self.question.terms
        excess = np.where(level <= terms.until, terms.goal + terms.rise * level, 0.0)
        lines = self.lines(last)
        for at, row in enumerate(self.rows_found):
            lines[level[:, None] % len(lines), goals, at] = 0.0 if row == 2 else excess[:, None]

    def lines(self, levels: int) -> FloatArray:
        """Return the table after so many levels, by level, place and field."""
        shape = self.shape(levels)
        return self.table[: int(np.prod(shape))].reshape(shape)

    def rows(self, levels: int) -> NDArray[Any]:
        """Return the actions of so many levels, by level and column."""
        rows = levels if self.chooses else 1
        return self.choice[: rows * self.columns].reshape(rows, self.columns)

    def settle(self, turns: Turns, first: int, last: int, found: FloatArray) -> None:
        """Settle some levels at the places of some turns; ``found`` gets the values of the start."""
        places, fields = self.places, len(self.rows_found)
        window = len(self.table) // (len(places.state) * fields)
        values = Values(self.table, window, fields, self.choice.reshape(-1, self.columns))
        seen, counters = found[self.rows_found, first:last], new_counters()  # the start may have its turn elsewhere
        about = self.question, turns, places, self.free, values, Span(first, last, self.start, seen)
        lanes = lanes_of(turns, len(places.cost) * (last - first), self.threads)
        side_by_side(lanes, lambda lane: sweep(*about, self.scratch[lane], counters))
        found[self.rows_found, first:last] = seen

    @property
    def lost(self) -> float:
        """The largest relative increase of U by one choice among actions that tie."""
        return max(float(scratch.lost[0]) for scratch in self.scratch)


@dataclass
class LevelSweep(Backend):
    """A sweep level by level: any model."""

    batch: ClassVar[int] = 50_000_000
    each_level: ClassVar[int] = EACH_LEVEL

    tables: LevelTables = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        task, prepared, question = self.task, self.task.prepared, self.task.question
        (places, action), base, aims = places_of(prepared), question.base, question.aims
        state, start = places.state, int(places.place[prepared.start])
        self.rounding = rounding_by_level(prepared)
        levels = task.levels if question.policy is None else 0
        self.bounded = aims.bound and not (aims.plan and self.rounding.within(levels, CLOSE))
        fields = [(0, base.excess), (2, base.mean)] if aims.plan else []
        fields += [(1, base.low)] if self.bounded else []
        mean_cost = prepared.mean_cost if question.mean_cost is None else question.mean_cost
        free = task.free(free_arcs(prepared) if aims.plan else arcs_for_bounds(prepared))
        known = Known(
            mean_cost=mean_cost[action],
            rounding=rounding(prepared),
            worst=question.worst.value[state],
            action_worst=question.worst.action_value,
            default=task.first_choice[0][state],
        )
        self.tables = LevelTables(
            places=places,
            question=question.in_kernel(known, bounded=self.bounded),
            free=free,
            chosen=question.choice if free is None else free.workspace.chosen,
            chooses=question.chooses,
            rows_found=[row for row, _ in fields],
            furthest=UNREACHED if task.keep else prepared.cost_range[1],
            start=start,
            threads=task.threads,
            table=np.stack([values[state] for _, values in fields], axis=1).ravel(),
            columns=prepared.n_states,
            choice=task.first_choice[0].copy(),
        )

    @classmethod
    def serves(cls, task: Task, levels: float) -> bool:
        """Return True: any model can be swept level by level."""
        return True

    @classmethod
    def table_bytes(cls, prepared: Prepared, levels: int, aims: Aims, *, keep: bool) -> int:
        """Return the memory of the rows and the values; if all are kept, also of a copy; evaluating takes no more."""
        if prepared.between or (prepared.acyclic and not keep):
            return 0  # such a model is neither swept nor evaluated level by level
        window = levels + 1 if keep else window_of(prepared, levels)
        values = 8 * prepared.n_states * window * (3 if aims.plan else 1)
        return 16 * len(prepared.cost) + values * (2 if keep else 1)

    @classmethod
    def trial(cls, task: Task, levels: int) -> "LevelSweep":
        """Return a sweep to be timed, advanced so far that outcomes look up all lines of the table."""
        sweep = cls(task)
        lines = window_of(task.prepared, min(task.most, 2 * levels))
        sweep.tables.table = np.tile(sweep.tables.table, lines)
        sweep.found, sweep.done = np.zeros((3, lines)), lines
        return sweep

    @property
    def values(self) -> Tables | None:
        """The values of all levels if the task keeps them, else None."""
        if not self.task.keep:
            return None
        lines, place, found = self.tables.lines(self.done), self.tables.places.place, self.tables.rows_found
        return Tables(*(lines[:, place, found.index(row)].T if row in found else np.zeros((1, 1)) for row in range(3)))

    def _advance(self, last: int, *, final: bool) -> None:
        found = np.zeros((3, last))
        self.tables.lengthen(last)
        self.tables.settle(turns_of(self.task.prepared), self.done, last, found)
        self._note(self.done, found[:, self.done :])

    def room_for_actions(self) -> NDArray[Any]:
        """Return a table for the actions of all levels that others have settled."""
        if self.task.question.chooses:
            self.tables.choice = np.zeros(self.tables.columns * self.done, self.tables.choice.dtype)
        return self.choice

    @property
    def _lost_each(self) -> float:
        return self.tables.lost

    @property
    def choice(self) -> NDArray[Any]:
        """The actions of the settled levels."""
        return self.tables.rows(self.done)

    def _state(self) -> Arrays:
        tables = self.tables
        return {"values": tables.table, "lost": np.array([tables.lost]), "chosen": tables.chosen}

    def _wanted(self, kept: Arrays, done: int) -> Shapes:
        size = int(np.prod(self.tables.shape(done)))
        chosen = (self.task.prepared.n_states,), np.int64
        return {"values": ((size,), np.float64), "lost": ((1,), np.float64), "chosen": chosen}

    def _restore(self, kept: Arrays) -> None:
        tables = self.tables
        tables.choice, tables.scratch[0].lost[0] = kept["choice"].flatten(), kept["lost"][0]
        if "values" in kept:
            tables.table, tables.chosen[:] = kept["values"], kept["chosen"]
