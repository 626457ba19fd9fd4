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
from prudent.engine.sweep.question import Question, Rounding
from prudent.engine.values.bellman import costs_of, longest_stay
from prudent.errors import PrudentError
from prudent.kernels.blocks import Arcs
from prudent.kernels.choices import Choices
from prudent.kernels.levels import Ends, Free, Workspace
from prudent.kernels.questions import Aims
from prudent.models.rows import FloatArray
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

Shapes = dict[str, tuple[tuple[int, ...], Any]]
"""The shape and the type of arrays, by name."""

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
        if not (np.diff(arcs.block_start) > 1).any():
            return None
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
    lost: float | FloatArray = np.nan  # how far, relatively, the policies' U is above the least, at most; nan: unknown
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
    rounding: Rounding = field(init=False)  # of its values
    bounded: bool = field(default=False, init=False)  # whether the bound has a field of its own

    batch: ClassVar[int]  # outcomes times levels between two checks of the clock and of Ctrl-C
    sample: ClassVar[int] = SAMPLE  # outcomes times levels that are swept to time them
    first: ClassVar[int] = 63  # levels that are swept before the first check of how far to go
    each_level: ClassVar[int] = 0  # outcomes that take as long to add up as beginning a level does
    least: ClassVar[float] = 0.0  # no value is below it
    beyond: ClassVar[int] = 0  # levels above the best budget that count
    device: ClassVar[str] = "cpu"  # what it sweeps on

    def __post_init__(self) -> None:
        question = self.task.question
        self.found[:, 0] = [values[self.task.prepared.start] for values in question.base]
        self._sure = question.sure

    @classmethod
    @abstractmethod
    def serves(cls, task: Task, levels: float) -> bool:
        """Return whether this backend should sweep a task of about this many levels."""

    @classmethod
    def table_bytes(cls, prepared: Prepared, levels: int, aims: Aims, *, keep: bool) -> int:
        """Return the memory that the values of a sweep of so many levels take; 0 if another backend counts them."""
        return 0

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
        """Return how many outcomes are added up on a level, or take as long as beginning it."""
        return max(len(prepared.cost) + cls.each_level, 1)

    def advance(self, last: int, *, final: bool = False) -> None:
        """Settle the levels before ``last``; ``final``: whether no further levels follow."""
        self._widen(last)
        self._advance(last, final=final)
        self.done = last

    def _widen(self, last: int) -> None:
        if last > (known := self.found.shape[1]):
            wider = np.zeros((3, max(last, 2 * known)))
            wider[:, :known] = self.found
            self.found = wider

    @abstractmethod
    def _advance(self, last: int, *, final: bool) -> None:
        """Settle the levels before ``last``, for which there is room in ``found``."""

    def _note(self, first: int, found: FloatArray) -> None:
        """Record U, its bound and M of the start from a level on; the bound follows from U if it is no field."""
        question, last = self.task.question, first + found.shape[1]
        self.found[:, first:last] = found
        if question.aims.bound and not self.bounded:
            error = self.rounding.error(np.arange(first, last))
            self.found[1, first:last] = question.bound(found[0], self._sure, error)
        if not question.aims.plan:
            self.found[0, first:last] = 0.0

    def take_over(self, found: FloatArray) -> None:
        """Record U, its lower bound and M of the start on the next levels, which others have settled."""
        first, self.done = self.done, self.done + found.shape[1]
        self._widen(self.done)
        self._note(first, found)

    @property
    def choice(self) -> NDArray[Any]:
        """The actions of the settled levels, (n_levels, n_states); those for no budget if none are chosen."""
        return self.task.first_choice

    @property
    def values(self) -> Tables | None:
        """The values of all levels if the task keeps them, else None."""
        return None

    @property
    def lost(self) -> float | FloatArray:
        """Bound on the relative increase of U, by level or for all, by choices among ties and rounding; else nan."""
        each = self._lost_each if self.task.question.chooses else np.nan
        return each if np.isnan(each) else self.rounding.lost(each, self.done)

    @property
    def _lost_each(self) -> float:
        """The largest relative increase of U by one choice among actions that tie."""
        return np.nan

    def packed(self) -> Arrays:
        """Return the arrays needed to resume from here."""
        return {"found": np.ascontiguousarray(self.found[:, : self.done]), "choice": self.choice, **self._state()}

    @abstractmethod
    def _state(self) -> Arrays:
        """Return what resuming needs besides the result so far."""

    @abstractmethod
    def _wanted(self, kept: Arrays, done: int) -> Shapes:
        """Return the shape and the type of each of these arrays if so many levels are settled."""

    @abstractmethod
    def _restore(self, kept: Arrays) -> None:
        """Take over the actions and, unless the sweep was finished, the state."""

    def resume(self, kept: Arrays) -> None:
        """Resume from packed arrays, or from the kept result of a finished sweep.

        Reject arrays that cannot come from a sweep of this task.
        """
        prepared, done = self.task.prepared, kept["found"].shape[-1] if "found" in kept and kept["found"].ndim else 0
        wanted = {} if kept.keys() <= {"found", "choice"} else self._wanted(kept, done)
        shape = (done if self.task.question.chooses else 1, prepared.n_states)
        wanted |= {"found": ((3, done), np.float64), "choice": (shape, choice_type(prepared))}
        fits = kept.keys() == wanted.keys() and all(
            kept[name].shape == shape and kept[name].dtype == kind for name, (shape, kind) in wanted.items()
        )
        if not fits or done < 1:
            raise PrudentError(MISFIT)
        count, values = np.maximum(np.diff(prepared.action_start), 1), [n for n in kept if wanted[n][1] is np.float64]
        number = kept.get("chosen", self.task.question.choice) - prepared.action_start[:-1]
        sane = [(0 <= each).all() and (each < count).all() for each in (kept["choice"], number)]
        sane += [(kept["choice"][0] == self.task.first_choice[0]).all()]
        sane += [((kept[name] >= self.least) & (kept[name] <= HUGE)).all() for name in values]
        if not all(sane):
            raise PrudentError(MISFIT)
        self.done, self.found = done, kept["found"]
        self._restore({"lost": np.array([np.nan])} | kept)  # of a finished sweep it was not kept


def long_choice(task: Task) -> NDArray[Any]:
    """Return a table of actions by level and state, with those for no budget.

    It may begin long: memory is taken only when it is written to.
    """
    n = task.prepared.n_states
    rows = min(task.most + 1, max(1024, AT_FIRST // n)) if task.question.chooses else 1
    table = np.zeros((rows, n), dtype=choice_type(task.prepared))
    table[0] = task.first_choice[0]
    return table


def lengthened_choice(table: NDArray[Any], last: int, task: Task) -> NDArray[Any]:
    """Return the table with room for the actions of the levels before ``last``."""
    if not task.question.chooses or last <= len(table):
        return table
    longer = np.zeros((min(max(2 * len(table), last), task.most + 1), table.shape[1]), dtype=table.dtype)
    longer[: len(table)] = table
    return longer
