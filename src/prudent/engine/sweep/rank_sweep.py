"""A sweep on several ranks: the messages by which rank 0 leads it, and the loop in which the others follow.

Rank 0 has the sweep of one process, with its checks and checkpoints.  But all ranks settle the levels: each has a
:class:`Part` of what rank 0 has laid out, and at each message all do the same step of their parts.  Rank 0
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
from prudent.engine.sweep.task import Backend, Shapes
from prudent.engine.sweep.tiles import TileSweep
from prudent.errors import Defect
from prudent.models.rows import FloatArray
from prudent.runtime.limits import Arrays, own_cores
from prudent.runtime.ranks import End, Ranks


@dataclass(frozen=True)
class Begin:
    """Begin a sweep: what rank 0 has laid out follows."""


@dataclass(frozen=True)
class Advance:
    """Settle the levels before ``last``; ``final``: whether no further levels follow."""

    last: int
    final: bool


@dataclass(frozen=True)
class Collect:
    """Move the actions of the settled levels to rank 0, or copy the ``values`` that are needed to resume."""

    values: bool


class Part(Protocol):
    """One rank's part of a sweep; all ranks call the same method at the same time."""

    def begin(self, ranks: Ranks, whole: Any = None) -> None:
        """Take this rank's part of what rank 0 has laid out; rank 0 gives its sweep of one process."""

    def advance(self, last: int, *, final: bool) -> FloatArray | None:
        """Settle the levels before ``last``; return U, its lower bound and M of the start by level, on rank 0."""

    def actions(self, whole: Any) -> list[float] | None:
        """Move the actions to rank 0's table; return there what each choice may lose, at most, by rank."""

    def values(self) -> Arrays | None:
        """Return on rank 0 the arrays that resume the sweep of one process."""


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
    def _laid_out(self) -> Part:
        """Return what any rank needs to know to begin its part where the sweep of one process is."""

    @classmethod
    def outcomes(cls, prepared: Prepared) -> int:
        """Return how many outcomes are added up on a level, as for one process."""
        return cls.kind.outcomes(prepared)

    def _advance(self, last: int, *, final: bool) -> None:
        with self.ranks.at_once():  # once others are told, they would wait for rank 0
            if self._part is None:
                laid_out = self._laid_out()
                self.ranks.tell(Begin())
                self._part = self.ranks.shared(laid_out, self.task.prepared.threads)
                self._part.begin(self.ranks, self.whole)
            self.ranks.tell(Advance(last, final))
            found = self._part.advance(last, final=final)
        assert found is not None, "rank 0 has the values of the start"
        self.whole.take_over(found)
        self.found = self.whole.found

    def _collect(self) -> None:
        """Move the actions of all ranks here."""
        if self._part is None or self._collected == self.done:
            return
        with self.ranks.at_once():
            self.ranks.tell(Collect(values=False))
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

    def _state(self) -> Arrays:
        """Return the arrays from which any number of ranks can resume."""
        values = None
        if self._part is not None:
            with self.ranks.at_once():
                self.ranks.tell(Collect(values=True))
                values = self._part.values()
        return self.whole._state() | (values or {})

    def _wanted(self, kept: Arrays, done: int) -> Shapes:
        return self.whole._wanted(kept, done)

    def _restore(self, kept: Arrays) -> None:
        self.whole.done, self.whole.found = self.done, self.found
        self.whole._restore(kept)


def follow(ranks: Ranks, threads: object) -> None:
    """Do this rank's part of all sweeps of rank 0, until it ends; Ctrl-C is left to rank 0."""
    ranks.threads = threads if isinstance(threads, int) and threads > 0 else own_cores(ranks)
    part: Any = None
    with _deaf():
        while True:
            with ranks.at_once():
                match message := ranks.hear():
                    case End():
                        break
                    case Begin():
                        part = None  # its tables are not needed any longer
                        part = ranks.shared(None, ranks.threads)
                        part.begin(ranks)
                    case Advance(last, final):
                        part.advance(last, final=final)
                    case Collect(values=True):
                        part.values()
                    case Collect():
                        part.actions(None)
                    case _:
                        raise Defect(f"no rank knows what {message} means")
    ranks.part(message.error)


def collected(ranks: Ranks, mine: list[tuple[int, NDArray[Any]]]) -> Iterator[tuple[int, int, NDArray[Any]]]:
    """Move numbered arrays of all ranks to rank 0; there, yield each one's rank, its number and itself."""
    about = ranks.gathered([(number, array.shape, array.dtype) for number, array in mine])
    for rank, arrays in enumerate(about or []):
        for i, (number, shape, kind) in enumerate(arrays):
            array = mine[i][1] if rank == 0 else np.empty(shape, dtype=kind)
            if rank > 0:
                ranks.receive(array, rank)
            yield rank, number, array
    if about is None:
        for _, array in mine:
            ranks.send(np.ascontiguousarray(array), 0)
        ranks.finish()


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
