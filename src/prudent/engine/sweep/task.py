"""The task of a sweep, the interface of a backend, and the result of a sweep.

A *backend* is one way to sweep: it settles rising budgets, keeps the values that are still looked back to, and can be
saved in a checkpoint and resumed from it.  A checkpoint that does not fit the task is rejected.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from prudent.engine.prepared import Prepared, choice_type
from prudent.engine.sweep.question import Question
from prudent.engine.values.bellman import costs_of, longest_stay
from prudent.errors import PrudentError
from prudent.kernels.blocks import Arcs
from prudent.kernels.choices import Choices
from prudent.kernels.levels import Ends, Free, Workspace
from prudent.kernels.questions import Aims
from prudent.models.rows import FloatArray, IntArray
from prudent.runtime.gpu import Device
from prudent.runtime.limits import Arrays
from prudent.runtime.ranks import Ranks

HUGE = 1e100
"""Larger than any value in a table."""

SAMPLE = 10_000_000
"""Outcomes times levels that are swept, level by level, to time them: some hundredths of a second."""

EACH_LEVEL = 500
"""Outcomes that take as long to add up as beginning a level does, if a sweep goes level by level, as with cycles."""

AT_FIRST = 2**30
"""States times levels that a table of actions may hold at first; beyond, it grows as needed."""

MISFIT = "the checkpoint does not fit this solve; delete it, or give another file"


@dataclass(frozen=True, eq=False)
class Task:
    """The task of one sweep."""

    prepared: Prepared
    question: Question
    most: int  # the largest level that can matter
    keep: bool = False  # whether to keep the values of all levels
    threads: int = 1
    levels: float = np.inf  # about how many levels will be swept at most
    device: Device | None = None  # the device to sweep on; None: the CPU
    ranks: Ranks | None = None  # the processes that share the sweep; None: only this one

    @cached_property
    def first_choice(self) -> NDArray[Any]:
        """The actions for no budget, by their numbers within their states: (1, n_states)."""
        kind, first = choice_type(self.prepared), self.prepared.action_start[:-1]
        return np.subtract(self.question.choice, first, dtype=kind, casting="unsafe")[None]  # exact: overflows cancel

    def free(self, arcs: Arcs) -> Free | None:
        """Return what free cycles need to be solved, with a workspace; None if there are none."""
        return self.in_cycles(arcs) if (np.diff(arcs.block_start) > 1).any() else None

    def in_cycles(self, arcs: Arcs) -> Free:
        """Return what nodes that wait for each other need."""
        prepared, question = self.prepared, self.question
        costs = costs_of(prepared, arcs)
        if question.mean_cost is not None:
            costs = costs._replace(mean_cost=question.mean_cost)
        ends = Ends(question.worst.value, question.worst.action_value, longest_stay(prepared, arcs))
        return Free(arcs, costs, ends, self.workspace())

    def workspace(self) -> Workspace:
        """Return a workspace for solving free cycles."""
        prepared = self.prepared
        allowed, row = np.ones(prepared.n_actions, dtype=bool), np.empty(prepared.n_states)
        return Workspace(np.empty(prepared.n_actions), allowed, self.question.choice.copy(), row)


class Tables(NamedTuple):
    """Values by state and budget; those that were not asked for are (1, 1)."""

    excess: FloatArray  # (n_states, n_levels)  U
    low: FloatArray  # (n_states, n_levels)  lower bound on U
    mean: FloatArray  # (n_states, n_levels)  M


@dataclass(frozen=True)
class Swept:
    """The result of a sweep, by budget; row 0 is for no budget."""

    excess: FloatArray  # (n_levels,)  U of the start
    low: FloatArray  # (n_levels,)  lower bound on U of the start
    mean: FloatArray  # (n_levels,)  M of the start
    choice: NDArray[Any]  # (n_levels, n_states)  the action's number within its state
    tables: Tables | None  # the values of all levels, if they were kept
    stopped: str  # why it ended early: "interrupted", "time", "memory", or nothing
    lost: float | FloatArray = (
        np.nan
    )  # how far, relatively, the policies' U is above the least, at most; nan if unknown
    focused: Choices | None = None  # the actions where only part was swept; ``choice`` has the first row then

    @property
    def measured(self) -> bool:
        """Whether the sweep bounds how far the policies' U is above the least."""
        return not np.isnan(self.lost).any()


@dataclass
class Backend(ABC):
    """One way to sweep, and its progress."""

    task: Task
    done: int = 1  # levels settled
    found: FloatArray = field(default_factory=lambda: np.zeros((3, 64)))  # of the start: U, its bound, M

    batch: ClassVar[int]  # outcomes times levels between two checks of the clock and of Ctrl-C
    sample: ClassVar[int] = SAMPLE  # outcomes times levels that are swept to time them
    first: ClassVar[int] = 63  # levels that are swept before the first check of how far to go
    least: ClassVar[float] = 0.0  # no value is below it
    beyond: ClassVar[int] = 0  # levels above the best budget that count
    device: ClassVar[str] = "cpu"  # what it sweeps on

    def __post_init__(self) -> None:
        self.found[:, 0] = [values[self.task.prepared.start] for values in self.task.question.base]

    @classmethod
    @abstractmethod
    def serves(cls, task: Task, levels: float) -> bool:
        """Return whether this backend should sweep a task of about this many levels."""

    @classmethod
    @abstractmethod
    def table_bytes(cls, prepared: Prepared, levels: int, aims: Aims, *, keep: bool) -> int:
        """Return the memory that the values of a sweep of so many levels take."""

    @classmethod
    def trial(cls, task: Task, levels: int) -> "Backend":
        """Return a sweep to be timed: each of its first ``2 * levels`` levels takes as long as a later one."""
        return cls(task)

    @classmethod
    def trial_bytes(cls, prepared: Prepared, levels: int) -> int:
        """Return the memory that such a trial takes beyond the tables of a sweep."""
        return 0

    @classmethod
    def outcomes(cls, prepared: Prepared) -> int:
        """Return how many outcomes are added up on a level."""
        return max(len(prepared.cost), 1)

    @abstractmethod
    def advance(self, last: int, *, final: bool = False) -> None:
        """Settle the levels before ``last``; ``final``: whether no further levels follow."""

    @property
    @abstractmethod
    def choice(self) -> NDArray[Any]:
        """The actions of the settled levels, (n_levels, n_states)."""

    @abstractmethod
    def packed(self) -> Arrays:
        """Return the arrays needed to resume from here."""

    @abstractmethod
    def resume(self, kept: Arrays) -> None:
        """Resume from packed arrays, or from the kept result of a finished sweep."""

    @property
    def values(self) -> Tables | None:
        """The values of all levels if the task keeps them, else None."""
        return None

    @property
    def lost(self) -> float | FloatArray:
        """Bound on the relative increase of U, by level or for all, by choices among ties and rounding; else nan."""
        return np.nan

    def _widen(self, last: int) -> None:
        known = self.found.shape[1]
        if last > known:
            wider = np.zeros((3, max(last, 2 * known)))
            wider[:, :known] = self.found
            self.found = wider

    def _check(self, kept: Arrays, wanted: dict[str, tuple[tuple[int, ...], Any]]) -> None:
        """Reject arrays that cannot come from a sweep of this task."""
        prepared, done = self.task.prepared, kept_levels(kept)
        shape = (done if self.task.question.chooses else 1, prepared.n_states)
        wanted |= {"found": ((3, done), np.float64), "choice": (shape, choice_type(prepared))}
        fits = kept.keys() == wanted.keys() and all(
            kept[name].shape == shape and kept[name].dtype == kind for name, (shape, kind) in wanted.items()
        )
        if not fits or done < 1:
            raise PrudentError(MISFIT)
        count = np.maximum(np.diff(prepared.action_start), 1)
        sane = [
            (kept["choice"] >= 0).all() and (kept["choice"] < count).all(),
            (kept["choice"][0] == self.task.first_choice[0]).all(),
            *(
                ((kept[n] >= self.least) & (kept[n] <= HUGE)).all()
                for n, (_, kind) in wanted.items()
                if kind is np.float64
            ),
        ]
        if not all(sane):
            raise PrudentError(MISFIT)

    def _chosen(self, kept: Arrays) -> IntArray:
        """Return the kept action of each state; reject actions of other states."""
        prepared, chosen = self.task.prepared, kept["chosen"]
        first, count = prepared.action_start[:-1], np.maximum(np.diff(prepared.action_start), 1)
        if not ((chosen >= first) & (chosen < first + count)).all():
            raise PrudentError(MISFIT)
        return chosen


def kept_levels(kept: Arrays) -> int:
    """Return how many levels a kept sweep has settled."""
    return kept["found"].shape[-1] if "found" in kept and kept["found"].ndim else 0
