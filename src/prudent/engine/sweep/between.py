"""The backend for lower bounds if costs lie between levels: any model, on all threads.

:mod:`prudent.kernels.between` proves the bound.
"""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from prudent.engine.places import lanes_of, turns_of
from prudent.engine.prepared import Prepared
from prudent.engine.sweep.task import EACH_LEVEL, MISFIT, Backend, Shapes, Task
from prudent.engine.values.bellman import arcs_for_bounds, costs_of, longest_stay, rounding
from prudent.errors import PrudentError
from prudent.kernels.between import FAR, PAD, TOGETHER, Scratch, Work, bound_levels
from prudent.kernels.levels import Ends, Span
from prudent.kernels.questions import Aims
from prudent.kernels.stretches import slide
from prudent.kernels.team import new_counters
from prudent.models.rows import FloatArray, owner
from prudent.runtime.limits import Arrays
from prudent.runtime.team import side_by_side

FEW = 128
"""How many levels are settled in one call at least, if that is not much work."""

OPERATIONS = 4
"""The operations of a sum with values between levels, as a multiple of those of a plain weighted sum."""


@dataclass
class BetweenSweep(Backend):
    """A sweep level by level for a lower bound on U, with costs between levels."""

    batch: ClassVar[int] = 10_000_000
    each_level: ClassVar[int] = EACH_LEVEL
    least: ClassVar[float] = -np.inf

    table: FloatArray = field(init=False)  # (n_states, width)
    work: Work = field(init=False)
    origin: int = field(default=-PAD, init=False)  # the level of the table's first column

    def __post_init__(self) -> None:
        super().__post_init__()
        task, prepared = self.task, self.task.prepared
        question = task.question
        base, slope = question.base.low, question.terms.slope
        arcs = arcs_for_bounds(prepared)
        # The states of a block in the order of their expected costs, as runs go through them.
        state = arcs.block_state[np.lexsort((base[arcs.block_state], owner(arcs.block_start)))]
        arcs = arcs._replace(block_state=state, rank=np.argsort(state).astype(arcs.rank.dtype))
        costs = costs_of(prepared, arcs)
        parts = np.asarray(prepared.cost - prepared.scale.unrounded(prepared.fine))
        ends = Ends(question.worst.value, question.worst.action_value, longest_stay(prepared, arcs))
        size = base + PAD * slope
        largest = np.maximum(size[prepared.successor], base[prepared.successor] + slope * prepared.cost)
        total = np.bincount(
            prepared.outcome_action, weights=prepared.probability * largest, minlength=prepared.n_actions
        )
        error = OPERATIONS * rounding(prepared) * (total + question.terms.accrual * prepared.mean_cost)
        far = prepared.cost >= TOGETHER + FAR - 1
        near = prepared.outcome_start[1:] - np.bincount(
            prepared.outcome_action, weights=far, minlength=prepared.n_actions
        ).astype(np.int64)  # outcomes are sorted by cost
        self._turns = turns_of(prepared)
        self.work = Work(arcs, costs, ends, question.terms, parts, near, error, size, base)
        self._scratch = Scratch(task.workspace(), np.empty((prepared.n_actions, TOGETHER)), np.ones(1, dtype=bool))
        self.table = base[:, None] + slope * np.arange(PAD, -1, -1.0)
        self._settle(0, 1)

    @classmethod
    def serves(cls, task: Task, levels: float) -> bool:
        """Return whether costs lie between levels."""
        return task.prepared.between

    @classmethod
    def table_bytes(cls, prepared: Prepared, levels: int, aims: Aims, *, keep: bool) -> int:
        """Return the memory of the values."""
        if not prepared.between:
            return 0
        most = levels if keep else min(levels, _held(prepared))
        return 8 * prepared.n_states * (most + 1 + PAD)

    def _advance(self, last: int, *, final: bool) -> None:
        while self.done < last:  # a few levels at a time, for which the table has room
            end = min(self.done + _at_once(self.task.prepared), last)
            self._reach(end)
            self._settle(self.done, end)
            self.done = end

    def _settle(self, first: int, last: int) -> None:
        if self.sound:
            span = Span(first, last, self.task.prepared.start, self.found[1:2, first:last])
            about = self.work, self._turns, self.table, -self.origin, span, self._scratch, new_counters()
            lanes = lanes_of(self._turns, len(self.work.parts) * (last - first), self.task.threads)
            side_by_side(lanes, lambda lane: bound_levels(*about))
        if not self.sound:  # then the bound is 0
            self.found[1, first:last] = -np.inf

    @property
    def sound(self) -> bool:
        """Whether values are large enough for the rounding errors."""
        return bool(self._scratch.sound[0])

    def _reach(self, last: int) -> None:
        """Make room for the levels before ``last``; drop those that no outcome looks back to."""
        (n, width), first = self.table.shape, self.origin
        if last - first <= width:
            return
        looked = _looked_back(self.task.prepared)
        if not self.task.keep and self.done - looked > first:
            first = self.done - looked
        kept, dropped = self.done - first, first - self.origin
        if last - first <= width:
            slide(self.table.reshape(-1), width, dropped, kept)
        else:
            # Memory is taken only when it is written to; where all levels are kept, the last one is known.
            held = 0 if self.task.keep else min(_held(self.task.prepared), self.task.most + 1 + PAD)
            wider = np.empty((n, max(last - first, held)))
            wider[:, :kept] = self.table[:, dropped : dropped + kept]
            self.table = wider
        self.origin = first

    def _state(self) -> Arrays:
        return {
            "low": np.ascontiguousarray(self.table[:, : self.done - self.origin]),
            "origin": np.array([self.origin]),
        }

    def _wanted(self, kept: Arrays, done: int) -> Shapes:
        origin = kept.get("origin", np.empty(0))
        first = int(origin[0]) if origin.shape == (1,) and origin.dtype == np.int64 else done
        return {"low": ((self.task.prepared.n_states, done - first), np.float64), "origin": ((1,), np.int64)}

    def _restore(self, kept: Arrays) -> None:
        if "low" in kept:
            self.table, self.origin = kept["low"], int(kept["origin"][0])
            if not -PAD <= self.origin < self.done or not np.isfinite(self.table).all():
                raise PrudentError(MISFIT)


def _looked_back(prepared: Prepared) -> int:
    """Return how many levels back a level looks at most."""
    return int(prepared.cost.max(initial=0)) + PAD


def _at_once(prepared: Prepared) -> int:
    """Return how many levels are settled in one call."""
    few = min(BetweenSweep.batch // BetweenSweep.outcomes(prepared) + 1, FEW)
    return max(_looked_back(prepared) // 2, few)


def _held(prepared: Prepared) -> int:
    """Return for how many levels the table has room: those looked back to, and some that are settled before a shift."""
    return _looked_back(prepared) + 2 * _at_once(prepared)
