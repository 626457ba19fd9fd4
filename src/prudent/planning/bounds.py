"""The bracket on the optimal CVaR in the user's units, the gap asked for, and the attempts that lead there."""

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Generic, TypeVar

import numpy as np

from prudent.engine.prepared import Prepared
from prudent.engine.values.bellman import UNIT
from prudent.errors import Defect, TooLarge
from prudent.methods.solution import Solution
from prudent.policies.chain import expected_steps
from prudent.runtime.limits import Stopped

Found = TypeVar("Found")

OPTIMAL_GAP = 1e-8
"""Relative gap up to which a plan is called optimal."""

DEFAULT_GAP = 1e-3
"""Relative gap aimed at by default."""


@dataclass(frozen=True)
class Bracket:
    """Bounds on an optimal value, mostly the CVaR; ``upper`` also bounds the returned policy's own value.

    A relative gap is relative to the bounds themselves, not to the range of the model's costs: one rare large refund
    would make every gap look small.
    """

    lower: float
    upper: float
    step: float = 0.0  # the least difference between total costs; 0 if costs are rounded

    @property
    def gap(self) -> float:
        """The distance between the bounds."""
        return self.upper - self.lower

    @property
    def straddles(self) -> bool:
        """Whether the value may be 0, so that a relative gap says nothing about it."""
        return self.lower <= 0 <= self.upper

    @property
    def size(self) -> float:
        """What a relative gap is relative to: the larger of both bounds, without their signs."""
        return max(abs(self.lower), abs(self.upper))

    @property
    def closed(self) -> bool:
        """Whether the value is known, up to rounding errors; those of 0 are relative to a cost step."""
        size = max(self.size, self.step) if self.straddles else self.size
        return bool(np.isfinite(self.gap)) and self.gap <= OPTIMAL_GAP * size


@dataclass(frozen=True)
class Target:
    """The largest gap allowed between the bounds: absolute, relative to the larger of them, or either."""

    gap: float | None = None
    relative_gap: float | None = None

    @property
    def said(self) -> bool:
        """Whether the user gave a gap."""
        return self.gap is not None or self.relative_gap is not None

    @property
    def exact(self) -> bool:
        """Whether the user insists on the optimum."""
        return self.said and not (self.gap or self.relative_gap)

    def width(self, size: float) -> float:
        """Return the largest gap allowed for a value of this size."""
        if not self.said:
            return DEFAULT_GAP * size
        asked = [self.gap, None if self.relative_gap is None else self.relative_gap * size]
        return max(width for width in asked if width is not None)

    def reached(self, bracket: Bracket) -> bool:
        """Return whether bounds are as close as asked for; an infinite bound never is."""
        return bool(np.isfinite(bracket.gap)) and bracket.gap <= self.width(bracket.size)

    def status(self, bracket: Bracket, *, aims: bool, interrupted: bool, second: bool = True) -> str:
        """Return the status; ``aims``: to close the bracket; ``second``: the second objective is surely optimal."""
        if bracket.closed and second:
            return "optimal"
        if interrupted:
            return "interrupted"
        if not aims and not self.said:
            return "approximate"
        return "within_gap" if bracket.closed or self.reached(bracket) else "gap_not_reached"


NO_GAP = Bracket(0.0, 0.0)
"""The bracket of stages without a gap to reach."""


class Stop(StrEnum):
    """Why work ended before its gap was reached."""

    NOT = ""
    INTERRUPTED = "interrupted"  # by Ctrl-C
    TIME = "time"
    MEMORY = "memory"
    WORK = "work"  # the next step is more work than is done unasked
    DIGITS = "digits"  # the next step is below the precision of the costs

    @classmethod
    def of(cls, error: BaseException) -> "Stop":
        """Return what an error says that ended an attempt."""
        if isinstance(error, TooLarge):
            return cls.MEMORY
        return cls(error.reason) if isinstance(error, Stopped) else cls.INTERRUPTED


@dataclass(frozen=True)
class Stage(Generic[Found]):
    """One attempt, with costs rounded to one step or exact."""

    prepared: Prepared
    found: Found
    bracket: Bracket = NO_GAP  # on the value sought
    levels: float = 0.0  # about how many the sweep went through
    seconds: float = 0.0
    stopped: str = Stop.NOT  # why it ended early
    needs: float = math.nan  # about the seconds or bytes that would be enough, if they were lacking
    notes: tuple[str, ...] = ()  # why costs with a common step were rounded

    def better(self, other: "Stage[Found]") -> "Stage[Found]":
        """Return this stage, or another one if its upper bound is smaller, with the larger of both lower bounds."""
        best = self if self.bracket.upper <= other.bracket.upper else other
        lower = max(self.bracket.lower, other.bracket.lower)
        return replace(best, bracket=replace(best.bracket, lower=lower))


def stage_of(prepared: Prepared, solution: Solution, alpha: float) -> Stage[Solution]:
    """Return a solution as a stage, with its bracket on the optimal CVaR."""
    bounds = bracket_of(prepared, solution, alpha)
    levels = prepared.scale.in_levels(bounds.upper if np.isfinite(bounds.upper) else bounds.lower)
    return Stage(prepared, solution, bounds, levels, stopped=solution.stopped)


def bracket_of(prepared: Prepared, solution: Solution, alpha: float) -> Bracket:
    """Return a solution's bounds in the user's units."""
    steps = 0.0
    if np.isinf(prepared.scale.relative) and np.isfinite(solution.upper):
        steps = solution.steps
        if np.isnan(steps) and prepared.finite:
            steps = prepared.longest * float(prepared.plays.max(initial=1.0))
        elif np.isnan(steps):
            try:
                steps = float(expected_steps(solution.policy)[-1])
            except Stopped:
                steps = np.inf
    return bracket(prepared, solution.lower, solution.upper, steps, alpha)


def bracket_below(prepared: Prepared, lower: float) -> float:
    """Convert a lower bound in levels to the user's units; see :func:`bracket`."""
    base, step, deviation = prepared.scale.in_units(0), prepared.scale.level_size, prepared.scale.deviation
    least = base + step * lower - 4 * UNIT * (abs(base) + step * lower)
    if np.isfinite(prepared.scale.relative):
        least -= prepared.scale.relative * abs(least)
    else:
        n = prepared.longest + 1
        least -= n * deviation
        if prepared.scale.slip == 0:
            least -= min((2 * n + 1) * deviation / prepared.scale.lattice.step, 1.0) * step * lower
    return least


def bracket(prepared: Prepared, lower: float, upper: float, steps: float, alpha: float) -> Bracket:
    """Convert bounds in levels to the user's units, widened by the distance of the costs from the lattice.

    If no cost is negative, each total, and so each CVaR, is off the lattice by at most the ``relative`` distance of a
    cost.

    Otherwise each cost may be off the lattice by ``deviation``, best luck by n deviations, and each normalised cost by
    2n + 1 of them; n is the largest number of actions that visit no state twice.  Normalised costs, rounded or true,
    are at least 0, so from below the error is a fraction of their size; it is 0 if costs were lowered by the slip when
    they were rounded down.  From above each of a run's expected ``steps`` adds one deviation, divided by alpha.
    """
    base, step = prepared.scale.in_units(0), prepared.scale.level_size
    least = bracket_below(prepared, lower)
    most = base + step * upper + 4 * UNIT * (abs(base) + step * upper)
    relative = prepared.scale.relative
    if np.isfinite(relative):
        most += relative * abs(most) if np.isfinite(most) else 0.0
    else:
        most += prepared.scale.deviation * steps / alpha
    if not least <= most:
        raise Defect(f"{prepared.model.name}: the lower bound {least!r} is above the upper bound {most!r}")
    return Bracket(least, most, prepared.scale.resolution)
