"""The backend that sweeps in tiles of many levels at once: models laid out for it, on all threads.

:mod:`prudent.engine.sweep.tile_layout` shows which models these are and why the values are right,
:mod:`prudent.engine.sweep.tile_window` which values are kept.
"""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from prudent.engine.prepared import Prepared
from prudent.engine.sweep.question import BOTH
from prudent.engine.sweep.task import MISFIT, SAMPLE, Backend, Shapes, Task, lengthened_choice, long_choice
from prudent.engine.sweep.tile_layout import SURE, Tiling, known_of, tiling_of, work_for
from prudent.engine.sweep.tile_window import Window, new_scratch, shape_of
from prudent.errors import PrudentError
from prudent.kernels.questions import Aims, Bound, Given, Plan, PlanAndBound
from prudent.kernels.stretches import LANES, NEVER, Parts, Scratch, Tiles, Values, Work
from prudent.kernels.tiles import settle
from prudent.runtime.limits import Arrays
from prudent.runtime.team import side_by_side


@dataclass
class TileTables:
    """The values at some levels, and all that settles them: nothing here depends on the rest of a model."""

    work: Work
    question: Plan | Bound | PlanAndBound | Given
    window: Window
    scratch: list[Scratch] = field(init=False)  # for each thread

    def __post_init__(self) -> None:
        self.scratch = [new_scratch(self.window.tiling, self.window.strip)]

    def settle(self, tiles: Tiles, values: Values, parts: Parts, lanes: int) -> None:
        """Settle some parts of tiles, on so many threads."""
        while len(self.scratch) < lanes:
            self.scratch.append(new_scratch(self.window.tiling, self.window.strip))
        about = self.question, self.work, self.window.tiling.groups, tiles, values, parts
        side_by_side(lanes, lambda lane: settle(*about, self.scratch[lane], lane))

    @property
    def lost(self) -> float:
        """The largest relative increase of U by one choice among actions that tie."""
        return max(float(scratch.lost[0]) for scratch in self.scratch)


@dataclass
class TileSweep(Backend):
    """A sweep in tiles."""

    layout: Tiling = field(default=cast(Tiling, None), kw_only=True)  # the model's own, unless another is given
    tables: TileTables = field(init=False)
    batch: ClassVar[int] = 3_000_000_000
    sample: ClassVar[int] = 20 * SAMPLE  # as vectors that takes about as long
    first: ClassVar[int] = 511  # about a tile

    @classmethod
    def serves(cls, task: Task, levels: float) -> bool:
        """Return whether the model is laid out for tiles that serve the task, with rounding errors within ``SURE``."""
        found = None if task.keep else tiling_of(task.prepared)
        question = task.question
        if found is None or found.groups is None:
            return found is not None
        return question.policy is None and (question.aims != BOTH or found.rounding.within(levels, SURE))

    @classmethod
    def table_bytes(cls, prepared: Prepared, levels: int, aims: Aims, *, keep: bool) -> int:
        """Return the memory that the values take; 0 where a model is not laid out for tiles."""
        tiling = None if keep or prepared.between else tiling_of(prepared)
        if tiling is None:
            return 0
        streams, tile, width = shape_of(tiling, levels, prepared.threads, levels)
        carried = tiling.handed_on(min(tiling.back, levels + 1)) - LANES if tiling.shares_rows else 0
        return 16 * (streams * tiling.rows * width + carried) + 8 * tiling.scratch_rows * tile

    @classmethod
    def trial(cls, task: Task, levels: int) -> "TileSweep":
        """Return a sweep in which, if rows are too long to be shared, all nodes are settled from the first level on."""
        tiling = tiling_of(task.prepared)
        if tiling is None or not tiling.wide:
            return cls(task)
        back = int(tiling.work.cost.max(initial=0))
        if not tiling.shares_rows:  # rows that are shared hold all levels that are looked back to
            back = min(back, 2 * levels + 1)
        work = tiling.work._replace(delay=np.zeros_like(tiling.work.delay))
        looked_back = np.full_like(tiling.looked_back, back)
        return cls(task, layout=replace(tiling, work=work, back=back, looked_back=looked_back))

    @classmethod
    def trial_bytes(cls, prepared: Prepared, levels: int) -> int:
        """Return the memory of a trial beyond the tables of a sweep: its rows hold all its levels, and those before."""
        tiling = tiling_of(prepared)
        if tiling is None or not tiling.wide:
            return 0
        before = 16 * tiling.rows * int(tiling.work.cost.max(initial=0)) if tiling.shares_rows else 0
        return 32 * tiling.n_nodes * levels + before

    def __post_init__(self) -> None:
        super().__post_init__()
        task, prepared, question = self.task, self.task.prepared, self.task.question
        found = self.layout or tiling_of(prepared)
        assert found is not None, "it serves only models that are laid out for it"
        self.layout, self.rounding, self._choice = found, found.rounding, long_choice(task)
        self.tables = TileTables(
            work=work_for(found, question),
            question=question.in_kernel(known_of(prepared, found, question), bounded=False),
            window=Window(found, task.most, question.aims.plan, task.threads, task.levels),
        )

    @classmethod
    def outcomes(cls, prepared: Prepared) -> int:
        """Return how many outcomes are added up on a level: those of lists that actions share once."""
        tiling = tiling_of(prepared)
        return super().outcomes(prepared) if tiling is None else max(len(tiling.work.cost), 1)

    def _advance(self, last: int, *, final: bool) -> None:
        window = self.tables.window
        self._choice = lengthened_choice(self._choice, last, self.task)
        for first, end in window.rounds(self.done, last):
            ends = final and end == last
            tiles, parts, lanes = window.tiles(first, end, final=ends)
            self.tables.settle(tiles, window.values(self._choice, end if ends else NEVER), parts, lanes)
            self._note(first, np.stack([tiles.excess, np.zeros(end - first), tiles.mean]))

    def room_for_actions(self) -> NDArray[Any]:
        """Return the table of actions, with room for all levels that others have settled."""
        self._choice = lengthened_choice(self._choice, self.done, self.task)
        return self._choice

    @property
    def _lost_each(self) -> float:
        return self.tables.lost if self.layout.groups is None else np.nan

    @property
    def choice(self) -> NDArray[Any]:
        """The actions of the settled levels."""
        return self._choice[: self.done if self.task.question.chooses else 1]

    def _state(self) -> Arrays:
        window = self.tables.window
        excess, mean = window.saved
        about = {"from_level": np.array([window.origin]), "lost": np.array([self.tables.lost])}
        about |= {"chosen": self.task.question.choice}  # once, free cycles were solved beginning with these actions
        return {"excess": excess, "mean": mean, **about}

    def _wanted(self, kept: Arrays, done: int) -> Shapes:
        excess, mean = self.tables.window.lengths(kept.get("excess", np.empty(0)).size, done)
        wanted: Shapes = {"excess": ((excess,), np.float64), "mean": ((mean,), np.float64), "lost": ((1,), np.float64)}
        return wanted | {"from_level": ((1,), np.int64), "chosen": ((self.task.prepared.n_states,), np.int64)}

    def _restore(self, kept: Arrays) -> None:
        self._choice, self.tables.scratch[0].lost[0] = kept["choice"], kept["lost"][0]
        if "from_level" not in kept:
            return
        window, origin = self.tables.window, int(kept["from_level"][0])
        window.resume([kept["excess"], kept["mean"]], origin)
        least, most = max(self.done - window.width, 0), max(self.done - self.layout.back, 0)
        if not self.layout.shares_rows and not least <= origin <= most:
            raise PrudentError(MISFIT)
