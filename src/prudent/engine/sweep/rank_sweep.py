"""A sweep on several ranks: the messages by which rank 0 leads it, and the loop in which the others follow.

Rank 0 has the sweep of one process, with its checks and checkpoints.  But all ranks settle the levels: each has a
:class:`Part`, made from the same :class:`Outline`, and at each message all do the same step of their parts.  Rank 0
alone knows the user's model, finds the values without budget, keeps the clock and decides how far to sweep.  So all
ranks sweep the same numbers, whatever their machines, and none can take another turn than the others.
"""

import signal
import threading
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from prudent.engine.prepared import Prepared
from prudent.engine.sweep.levels import LevelSweep
from prudent.engine.sweep.task import Backend
from prudent.engine.sweep.tiles import TileSweep
from prudent.errors import Defect
from prudent.kernels.questions import Aims
from prudent.models.rows import FloatArray
from prudent.runtime.limits import Arrays, own_cores
from prudent.runtime.ranks import End, Ranks


@dataclass(frozen=True)
class Begin:
    """Begin a sweep, whose outline follows."""


@dataclass(frozen=True)
class Advance:
    """Settle the levels before ``last``; ``final``: whether no further levels follow."""

    last: int
    final: bool


@dataclass(frozen=True)
class Actions:
    """Move the actions of the settled levels to rank 0."""


@dataclass(frozen=True)
class Values:
    """Copy the values that are needed to resume to rank 0."""


class Part(Protocol):
    """One rank's part of a sweep; all ranks call the same method at the same time."""

    def advance(self, last: int, *, final: bool) -> FloatArray | None:
        """Settle the levels before ``last``; return U, its lower bound and M of the start by level, on rank 0."""

    def actions(self, whole: NDArray[Any] | None) -> list[float] | None:
        """Move the actions to rank 0's table; return there what each choice may lose, at most, by rank."""

    def values(self) -> Arrays | None:
        """Return on rank 0 the arrays that resume the sweep of one process."""


class Outline(Protocol):
    """What ranks need to know for a sweep: rows laid out, the values at both ends, and how far it is settled."""

    def part(self, ranks: Ranks) -> Part:
        """Return this rank's part; all ranks call it."""


class RankSweep(Backend):
    """A sweep on several ranks, as rank 0 sees it."""

    kind: ClassVar[type[LevelSweep | TileSweep]]  # of the sweep of one process

    def __post_init__(self) -> None:
        super().__post_init__()
        assert self.task.ranks is not None, "it serves only tasks that have some"
        self.ranks = self.task.ranks
        self.whole = self._whole()
        self._part: Part | None = None
        self._collected = 0  # levels whose actions rank 0 has

    @abstractmethod
    def _whole(self) -> LevelSweep | TileSweep:
        """Return the sweep of one process, which settles no levels by itself."""

    @abstractmethod
    def _outline(self) -> Outline:
        """Return what ranks need to know to sweep on."""

    def _own_part(self, outline: Any) -> Part:
        """Return the part of rank 0."""
        part: Part = outline.part(self.ranks)
        return part

    @classmethod
    def table_bytes(cls, prepared: Prepared, levels: int, aims: Aims, *, keep: bool) -> int:
        """Return the memory that one process takes."""
        return cls.kind.table_bytes(prepared, levels, aims, keep=keep)

    @classmethod
    def outcomes(cls, prepared: Prepared) -> int:
        """Return how many outcomes are added up on a level, as for one process."""
        return cls.kind.outcomes(prepared)

    def advance(self, last: int, *, final: bool = False) -> None:
        """Settle the levels before ``last``; ``final``: whether no further levels follow."""
        with self.ranks.at_once():  # once others are told, they would wait for rank 0
            if self._part is None:
                outline = self._outline()
                self.ranks.tell(Begin())
                self._part = self._own_part(self.ranks.shared(outline, self.task.prepared.threads))
            self.ranks.tell(Advance(last, final))
            found = self._part.advance(last, final=final)
        assert found is not None, "rank 0 has the values of the start"
        self.whole.note(found)
        self.done, self.found = self.whole.done, self.whole.found

    def _collect(self) -> None:
        """Move the actions of all ranks here."""
        if self._part is None or self._collected == self.done:
            return
        with self.ranks.at_once():
            self.ranks.tell(Actions())
            lost = self._part.actions(self.whole.room_for_actions())
        here = self.whole.tables.scratch[0].lost
        here[0] = np.max([here[0], *(lost or [])])
        self._collected = self.done

    @property
    def choice(self) -> NDArray[Any]:
        """The actions of the settled levels."""
        self._collect()
        return self.whole.choice

    @property
    def lost(self) -> float | FloatArray:
        """Bound on the relative increase of U, as for one process."""
        self._collect()
        return self.whole.lost

    def packed(self) -> Arrays:
        """Return the arrays needed to resume from here, on any number of ranks."""
        self._collect()
        if self._part is None:
            return self.whole.packed()
        with self.ranks.at_once():
            self.ranks.tell(Values())
            values = self._part.values()
        return self.whole.packed() | (values or {})

    def resume(self, kept: Arrays) -> None:
        """Resume from packed arrays, or from the kept result of a finished sweep."""
        self.whole.resume(kept)
        self.done, self.found = self.whole.done, self.whole.found


def follow(ranks: Ranks, threads: object) -> None:
    """Do this rank's part of all sweeps of rank 0, until it ends; Ctrl-C is left to rank 0."""
    ranks.threads = threads if isinstance(threads, int) and threads > 0 else own_cores(ranks)
    part: Part | None = None
    with _deaf():
        while True:
            with ranks.at_once():
                message = ranks.hear()
                if isinstance(message, End):
                    break
                if isinstance(message, Begin):
                    part = None  # its tables are not needed any longer
                    part = ranks.shared(None, ranks.threads).part(ranks)
                else:
                    _take_step(part, message)
    ranks.part(message.error)


def _take_step(part: Part | None, message: object) -> None:
    """Do what a message says."""
    match part, message:
        case None, _:
            raise Defect(f"{message} came before a sweep began")
        case _, Advance(last, final):
            part.advance(last, final=final)
        case _, Actions():
            part.actions(None)
        case _, Values():
            part.values()
        case _:
            raise Defect(f"no rank knows what {message} means")


@contextmanager
def _deaf() -> Iterator[None]:
    """Ignore Ctrl-C inside."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
