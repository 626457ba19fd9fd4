"""Costs without a common step: solve rounded, look at the gap, take a finer step, until it is what was asked for.

The gap shrinks about as the step does, and the work grows as the step shrinks.  So a first, coarse step tells which
one will do, and the coarse solve costs little beside the last.
"""

import time
from dataclasses import dataclass, replace

import numpy as np

from prudent.engine.cost_step import finest_step, nice_step
from prudent.engine.prepare import prepare
from prudent.engine.prepared import Prepared
from prudent.engine.sweep.estimate import likely_levels, sweep_bytes
from prudent.engine.values.expected_cost import least_expected_cost
from prudent.engine.values.worst_case import least_worst_case
from prudent.methods.exact import exact
from prudent.methods.solution import Solution
from prudent.models.ssp import SSP
from prudent.planning.bounds import Bracket, Target, bracket_of
from prudent.runtime.limits import Limits

__all__ = ["Stage", "finest_of", "first_step", "refine", "solve_at"]

COARSE = 2000
"""About how many levels the first, coarse solve has."""

AIM = 0.8
"""The part of the gap asked for that the next step aims at."""

FINEST = 1 / 32
"""The most that one step is finer than the one before, as a factor."""


@dataclass(frozen=True)
class Stage:
    """One solve on costs rounded to one step."""

    prepared: Prepared
    solution: Solution
    bracket: Bracket
    seconds: float


def solve_at(prepared: Prepared, alpha: float, limits: Limits) -> Stage:
    """Solve on a prepared model."""
    began = time.monotonic()
    solution = exact(prepared, alpha, limits)
    return Stage(prepared, solution, bracket_of(prepared, solution, alpha), time.monotonic() - began)


def refine(prepared: Prepared, alpha: float, target: Target, limits: Limits) -> Stage:
    """Solve on finer and finer steps; return the stage of the best policy, with the best bounds of all of them."""
    step = first_step(prepared, alpha)
    best = None
    while True:
        try:
            stage = solve_at(prepare(prepared.model, step), alpha, limits)
        except KeyboardInterrupt:
            if best is None:
                raise
            stopped = "interrupted"
            break
        best = stage if best is None else _better(best, stage)
        stopped = stage.solution.stopped
        if stopped or best.bracket.gap <= target.width(best.bracket.size):
            break
        finer, stopped = _finer(stage, target, limits)
        if stopped:
            break
        step = finer
    return replace(best, solution=replace(best.solution, stopped=stopped))


def first_step(prepared: Prepared, alpha: float) -> float:
    """Return a coarse step to begin with."""
    levels = likely_levels(prepared, least_expected_cost(prepared), least_worst_case(prepared), alpha)
    largest = float(prepared.fine.max(initial=1)) * prepared.scale.lattice.step
    return nice_step(max(levels * prepared.scale.level_size / COARSE, 1e-6 * largest, 2 * finest_of(prepared.model)))


def _better(before: Stage, after: Stage) -> Stage:
    """Return the stage whose policy is surely better, with the better of both lower bounds."""
    best = after if after.bracket.upper <= before.bracket.upper else before
    lower = max(before.bracket.lower, after.bracket.lower)
    return replace(best, bracket=replace(best.bracket, lower=lower))


def _finer(stage: Stage, target: Target, limits: Limits) -> tuple[float, str]:
    """Return the next step, or why there is none."""
    prepared, step, bracket = stage.prepared, stage.prepared.scale.step, stage.bracket
    wanted = AIM * target.width(bracket.size) / bracket.gap if np.isfinite(bracket.gap) else 0.0
    finer = nice_step(step * min(max(wanted, FINEST), 0.7))
    if limits.stop:
        return step, limits.stop
    if finer < finest_of(prepared.model):
        return step, "digits"
    if stage.seconds * step / finer > limits.left:  # what time is left for is perhaps still finer
        finer = nice_step(max(step * stage.seconds / max(limits.left, 1e-3), finer))
        if finer > 0.7 * step:
            return step, "time"
    levels = prepared.scale.in_levels(bracket.upper if np.isfinite(bracket.upper) else bracket.lower)
    need = sweep_bytes(prepare(prepared.model, finer), int(levels * step / finer))
    if need > limits.memory:
        return step, "memory"
    return finer, ""


def finest_of(model: SSP) -> float:
    """Return the finest step that the costs have digits for."""
    return finest_step(model.cost, model.n_states + 1)
