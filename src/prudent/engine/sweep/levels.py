"""The backend that sweeps level by level: any model, on all threads.

:mod:`prudent.engine.sweep.level_layout` gives the order, :mod:`prudent.kernels.sweep` describes how values are kept.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from prudent.engine.places import lanes_of
from prudent.engine.prepared import Prepared
from prudent.engine.sweep.level_layout import CLOSE, LevelLayout, level_layout
from prudent.engine.sweep.task import EACH_LEVEL, Backend, Tables, Task, kept_levels
from prudent.engine.values.bellman import arcs_for_bounds, costs_of, free_arcs, longest_stay
from prudent.engine.values.worst_case import UNREACHED
from prudent.kernels.sweep import Aims, Ends, Free, Known, Scratch, Turns, Values, sweep
from prudent.kernels.team import new_counters
from prudent.models.rows import FloatArray
from prudent.runtime.limits import Arrays
from prudent.runtime.team import side_by_side

__all__ = ["LevelSweep", "lengthened", "new_table", "window_of"]


def window_of(prepared: Prepared, most: int) -> int:
    """Return how many levels of values a sweep to level ``most`` has to keep."""
    return min(prepared.cost_range[1], most) + 1


def new_table(layout: LevelLayout, *fields: FloatArray) -> FloatArray:
    """Return a table whose one line has these values without budget, given by state."""
    return np.stack([each[layout.places.state] for each in fields], axis=1).ravel()


def lengthened(table: FloatArray, size: int) -> FloatArray:
    """Return a table of at least this many numbers, with zeros at the end.

    It is a new one: memory of a resized array has no huge pages, without which looking up takes twice as long.
    """
    if size <= len(table):
        return table
    longer = np.zeros(size)
    longer[: len(table)] = table
    return longer


@dataclass
class LevelSweep(Backend):
    """A sweep level by level: any model."""

    batch: ClassVar[int] = 50_000_000

    layout: LevelLayout = field(init=False)
    table: FloatArray = field(init=False)  # lengthened as levels are settled, up to the window

    def __post_init__(self) -> None:
        super().__post_init__()
        self._open(level_layout(self.task.prepared), self.task.prepared.n_states)

    def _open(self, layout: LevelLayout, columns: int) -> None:
        """Begin with no budget, at the places of a layout; rows of the policy have this many columns."""
        task, prepared = self.task, self.task.prepared
        self.layout = layout
        base, aims = task.base, task.aims
        self._close = aims.plan and bool(layout.error(np.array([min(task.levels, UNREACHED)]))[0] <= CLOSE)
        fields = [base.excess, base.mean] if aims.plan else []
        self.table = new_table(layout, *fields, *([] if self._close or not aims.bound else [base.low]))
        places = layout.places
        first = task.first_choice[0][places.state]  # by place
        self._columns, self._choice = columns, np.zeros(0, first.dtype)
        self._lengthen_actions(1)
        self._choice[places.column] = first[: len(places.column)]
        arcs = free_arcs(prepared) if aims.plan else arcs_for_bounds(prepared)
        ends = Ends(task.worst.value, task.worst.action_value, longest_stay(prepared, arcs))
        self._free = Free(arcs, costs_of(prepared, arcs), ends, base, task.workspace())
        self._known = self._new_known()
        most = int(np.diff(prepared.action_start).max(initial=1))
        self._scratch = [Scratch(np.empty(most), np.empty(most), np.zeros(1)) for _ in range(self.task.threads)]
        self._sure = task.sure

    def _new_known(self) -> Known:
        """Return the values known before the sweep."""
        task, state = self.task, self.layout.places.state
        about = task.prepared.mean_cost[self.layout.action], task.worst.value[state], task.first_choice[0][state]
        return Known(*about)

    @classmethod
    def outcomes(cls, prepared: Prepared) -> int:
        """Return how many outcomes are added up on a level, or take as long as beginning it."""
        return len(prepared.cost) + EACH_LEVEL

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
        sweep.table = np.tile(sweep.table, lines)
        sweep.found, sweep.done = np.zeros((3, lines)), lines
        return sweep

    @property
    def fields(self) -> int:
        """How many values a state has on a level."""
        return (2 if self.task.aims.plan else 0) + (1 if self.task.aims.bound and not self._close else 0)

    @property
    def values(self) -> Tables | None:
        """The values of all levels if the task keeps them, else None."""
        if not self.task.keep:
            return None
        aims, n = self.task.aims, self.task.prepared.n_states
        lines = self.table.reshape(-1, n, self.fields)[: self.done]
        used = [aims.plan, aims.bound and not self._close, aims.plan]
        order = [0, self.fields - 1, 1]
        place = self.layout.places.place
        return Tables(
            *(lines[:, place, at].T if use else np.zeros((1, 1)) for at, use in zip(order, used, strict=True))
        )

    @property
    def _furthest(self) -> int:
        return UNREACHED if self.task.keep else self.task.prepared.cost_range[1]

    def advance(self, last: int, *, final: bool = False) -> None:
        """Settle the levels before ``last``; ``final``: whether no further levels follow."""
        first = self.done
        self._widen(last)
        self._lengthen(last)
        self._settle(self.layout.turns, first, last)
        self._bound(first, last)
        self.done = last

    def _settle(self, turns: Turns, first: int, last: int) -> None:
        """Settle some levels at the places of some turns."""
        task, layout, places = self.task, self.layout, self.layout.places
        values = Values(self.table, len(self.table) // (len(places.state) * self.fields), self.fields)
        choice, counters = self._choice.reshape(-1, self._columns), new_counters()
        about = turns, places, self._known, self._free, task.terms, task.tie, task.aims
        range_of = first, last, values, choice[first if task.aims.plan else 0 :], layout.start, self.found
        lanes = lanes_of(turns, len(places.cost) * (last - first), task.threads)
        side_by_side(lanes, lambda lane: sweep(*about, *range_of, self._scratch[lane], counters))

    def _bound(self, first: int, last: int) -> None:
        """Note the lower bound on U of the start on some levels, where it has no field of its own."""
        if self.task.aims.bound and self._close:
            error = self.layout.error(np.arange(first, last))
            self.found[1, first:last] = self.found[0, first:last] * (self._sure * (1 - error))

    def _lengthen(self, last: int) -> None:
        """Make room for the levels before ``last``: in the table up to the window, and for the actions."""
        size = (min(self._furthest, last - 1) + 1) * len(self.layout.places.state) * self.fields
        self.table = lengthened(self.table, size)
        if self.task.aims.plan:
            self._lengthen_actions(last)

    def _lengthen_actions(self, last: int) -> None:
        """Make room for the actions of the levels before ``last``."""
        self._choice.resize(last * self._columns, refcheck=False)

    @property
    def _lost_each(self) -> float:
        """The largest relative increase of U by one choice among actions that tie."""
        return max(float(scratch.lost[0]) for scratch in self._scratch)

    @property
    def lost(self) -> float | FloatArray:
        """Bound on the relative increase of U, by level, by choices among ties and rounding; nan if it is not small."""
        return self.layout.lost(self._lost_each, self.done) if self.task.aims.plan else np.nan

    @property
    def choice(self) -> NDArray[Any]:
        """The actions of the settled levels."""
        rows = self.done if self.task.aims.plan else 1
        return self._choice[: rows * self._columns].reshape(rows, self._columns)

    def packed(self) -> Arrays:
        """Return the arrays needed to resume from here."""
        found = np.ascontiguousarray(self.found[:, : self.done])
        lost, chosen = np.array([self._lost_each]), self._free.workspace.chosen
        return {"found": found, "choice": self.choice, "values": self.table, "lost": lost, "chosen": chosen}

    def resume(self, kept: Arrays) -> None:
        """Resume from packed arrays, or from the kept result of a finished sweep."""
        n, done, wanted = self.task.prepared.n_states, kept_levels(kept), dict[str, tuple[tuple[int, ...], Any]]()
        finished = "chosen" not in kept  # then only its result was kept
        if not finished:
            size = (min(self._furthest, done - 1) + 1) * n * self.fields
            wanted = {"values": ((size,), np.float64), "lost": ((1,), np.float64), "chosen": ((n,), np.int64)}
        self._check(kept, wanted)
        if finished:
            self._scratch[0].lost[0] = np.nan  # it was not kept
        else:
            self.table, self._scratch[0].lost[0] = kept["values"], kept["lost"][0]
            self._free = self._free._replace(workspace=self._free.workspace._replace(chosen=self._chosen(kept)))
        self.done, self.found, self._choice = done, kept["found"], kept["choice"].flatten()
