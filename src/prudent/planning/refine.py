"""The steps to which costs are rounded if they have no common step, or too fine a one: which one first, which one next.

The gap between the bounds shrinks about in proportion to the step, and the work grows as the step shrinks.  So a first,
coarse solve tells which step will do, and costs little compared with the last solve.  A common step that takes more
memory or time than is allowed is merely the finest of these steps: it is tried last, if the gap asked for requires it.
"""

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from prudent.engine.cost_step import COARSEST, finest_step, nice_step
from prudent.engine.prepare import prepare
from prudent.engine.prepared import Prepared
from prudent.engine.sweep.estimate import likely_levels, seconds_per_level, sweep_bytes
from prudent.engine.values.expected_cost import least_expected_cost
from prudent.engine.values.worst_case import least_worst_case
from prudent.models.ssp import SSP
from prudent.planning.bounds import Bracket, Target
from prudent.runtime.limits import Limits

__all__ = ["COMMON", "Found", "Stage", "coarse_step", "finer_step", "in_time", "likely_step"]

Found = TypeVar("Found")
Other = TypeVar("Other")

COARSE = 2000
"""About how many levels the first, coarse solve has."""

AIM = 0.8
"""The fraction of the requested gap that a step aims at."""

FINEST = 1 / 32
"""The smallest ratio of a step to the one before."""

FINER = 0.7
"""The largest ratio of a step to the one before."""

COMMON = 2
"""Steps below so many common steps are not worth rounding to."""

NO_GAP = Bracket(0.0, 0.0, 0.0)
"""The bracket of stages for which no gap is asked."""


@dataclass(frozen=True)
class Stage(Generic[Found]):
    """One attempt, on costs rounded to one step or on exact ones."""

    prepared: Prepared
    found: Found
    bracket: Bracket = NO_GAP  # on the value that is sought
    levels: float = 0.0  # about how many the sweep went through
    seconds: float = 0.0
    stopped: str = ""  # why it ended early: "interrupted", "time", "memory", "digits", or nothing
    notes: tuple[str, ...] = ()  # why costs were rounded that have a common step

    def holding(self, found: Other, bracket: Bracket | None = None) -> "Stage[Other]":
        """Return the same stage with another result, and another bracket if it is given."""
        bracket = bracket or self.bracket
        return Stage(self.prepared, found, bracket, self.levels, self.seconds, self.stopped, self.notes)


def coarse_step(prepared: Prepared, alpha: float) -> float:
    """Return a coarse step to begin with."""
    levels = likely_levels(prepared, least_expected_cost(prepared), least_worst_case(prepared), alpha)
    least = max(levels * prepared.scale.level_size / COARSE, 1e-6 * _largest(prepared))
    return nice_step(min(max(least, 2 * _finest(prepared.model)), COARSEST * float(np.abs(prepared.model.cost).max())))


def likely_step(prepared: Prepared, alpha: float) -> float:
    """Return about the step at which the bounds for alpha are within the default gap."""
    least = least_expected_cost(prepared)
    levels = likely_levels(prepared, least, least_worst_case(prepared), alpha)
    size = max(abs(prepared.scale.in_units(levels)), levels * prepared.scale.level_size)
    step = min(AIM * Target().width(size) / float(least.steps[prepared.start]), _largest(prepared))
    return nice_step(max(step, 2 * _finest(prepared.model)))


def in_time(prepared: Prepared, alpha: float, limits: Limits) -> bool:
    """Return whether a sweep is likely to end in the time that is left, judged by timing a few levels of it."""
    if not np.isfinite(limits.left):
        return True
    least = least_expected_cost(prepared)
    levels = likely_levels(prepared, least, least_worst_case(prepared), alpha)
    return levels * seconds_per_level(prepared, least, int(levels)) <= limits.left


def finer_step(stage: Stage[Any], target: Target, limits: Limits, finest: float = 0.0) -> tuple[float, str]:
    """Return the next step, or the stage's own and why there is no next: "interrupted", "digits", "time", "memory".

    No step is finer than ``finest``, the common step of the costs if they have one; from its double on it is taken.
    """
    prepared, bracket = stage.prepared, stage.bracket
    step = prepared.scale.step
    wanted = AIM * target.width(bracket.size) / bracket.gap if np.isfinite(bracket.gap) else 0.0
    finer = nice_step(step * min(max(wanted, FINEST), FINER))
    if limits.stop:
        return step, limits.stop
    if finer < COMMON * finest:
        finer = finest
    elif finer < _finest(prepared.model):
        return step, "digits"
    if stage.seconds * step / finer > limits.left:  # the time left may still allow a smaller refinement
        finer = max(nice_step(max(step * stage.seconds / max(limits.left, 1e-3), finer)), finest)
        if finer > FINER * step:
            return step, "time"
    if sweep_bytes(prepare(prepared.model, finer), int(stage.levels * step / finer)) > limits.memory:
        return step, "memory"
    return finer, ""


def _largest(prepared: Prepared) -> float:
    """Return the largest normalised cost, in the user's units."""
    return float(prepared.fine.max(initial=1)) * prepared.scale.lattice.step


def _finest(model: SSP) -> float:
    """Return the finest step that the costs have digits for."""
    return finest_step(model.cost, model.n_states + 1)
