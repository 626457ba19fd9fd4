"""The steps to which costs are rounded: which one first, which one next, and whether to round at all.

A first, coarse solve shows the gap between the bounds at its step.  The gap on CVaR shrinks about with the square of
the step (that on a probability with the step itself), and the work grows as the step shrinks.  So the coarse solve
tells which step is fine enough, and costs little compared with the last one, at the common step if there is one.
"""

import math
from typing import Any

import numpy as np

from prudent.engine.cost_step import COARSEST, finest_step, nice_step
from prudent.engine.prepared import Prepared
from prudent.engine.sweep.estimate import (
    likely_levels,
    seconds_per_level,
    solve_bytes,
    within_levels,
    work_per_level,
)
from prudent.engine.sweep.task import EACH_LEVEL, SAMPLE
from prudent.engine.values.expected_cost import at_step, least_expected_cost
from prudent.models.ssp import SSP
from prudent.planning.bounds import Stage, Stop, Target
from prudent.runtime.limits import UNLIMITED, Limits

COARSE, FAIR, FINE = 96, 800, 2400
"""About the least number of levels of the first solve; of one with a gap that is often 0.001; and of one with a gap
that mostly is."""

AT_ONCE = 0.1
"""The largest part of the remaining time that the first solve should take."""

FEW, LITTLE, MODEST = 4096, 2**26, 2**30
"""Levels, and levels times outcomes, up to which the exact optimum is found without rounding first; and levels times
outcomes where it can be, up to which it is found afterwards."""

QUICK = 2**18
"""Levels up to which a stage of little work may be followed by a finer one in any case: that takes seconds at most."""

CELLS = 1500
"""About how many levels the coarse grid has that shows where the exact optimum can be."""

PER_SECOND, SAFELY = 5e7, 0.7
"""Outcomes times levels that are swept in a second, an underestimate; and the part of the remaining time planned for
work that cannot be used unfinished."""

AIM = 0.85
"""The fraction of the requested gap that a step aims at."""

FINEST, FINER = 0.15, 0.7
"""The smallest and the largest ratio of a step to the previous one."""

MARGIN, SLOWER = 1.5, 0.75
"""The factor by which advised time or memory exceeds what is likely enough; and the part of the order with which the
gap surely shrinks while steps are still coarse."""

COMMON = 2
"""Steps below this many common steps are not worth rounding to."""


def modest(prepared: Prepared, alpha: float, most: float = np.inf, limits: Limits = UNLIMITED) -> bool:
    """Return whether a sweep of at most ``most`` levels takes modest work, or so few that rounding hardly saves any."""
    enough = max(FEW, _at_once(prepared) / _work(prepared))
    return most <= enough or within_levels(prepared, alpha, enough, limits)


def first_step(prepared: Prepared, alpha: float, target: Target, limits: Limits) -> float:
    """Return a first step: fair for the requested gap, coarser if time is short."""
    levels = likely_levels(prepared, alpha, limits)
    size = max(abs(prepared.scale.in_units(levels)), levels * prepared.scale.level_size)
    count = FAIR * min(np.sqrt(Target().width(size) / max(target.width(size), 1e-300)), 1.0)
    count = min(count, AT_ONCE * PER_SECOND * max(limits.left, 0.0) / _work(prepared))
    size = levels * prepared.scale.level_size
    step = _step_of(prepared, size / max(count, COARSE))
    while (
        _bytes(prepared, step, size, limits) > limits.memory
        and (coarser := coarser_step(prepared.model, step)) is not None
    ):
        step = _fitting(coarser, prepared)
    return step


def fair_step(prepared: Prepared, alpha: float, limits: Limits = UNLIMITED, count: int = FINE) -> float:
    """Return a step with about ``count`` levels: so many that the bounds on CVaR are mostly within the default gap."""
    return _step_of(prepared, likely_levels(prepared, alpha, limits) / count * prepared.scale.level_size)


def chance_step(prepared: Prepared, alpha: float, limits: Limits = UNLIMITED) -> float:
    """Return about the step at which bounds are within the default gap if each action adds an error of one step."""
    least, levels = least_expected_cost(prepared, limits), likely_levels(prepared, alpha, limits)
    size = max(abs(prepared.scale.in_units(levels)), levels * prepared.scale.level_size)
    step = min(AIM * Target().width(size) / float(least.steps(limits)[prepared.start]), _largest(prepared))
    return nice_step(max(step, 2 * _finest(prepared.model)))


def in_time(prepared: Prepared, alpha: float, limits: Limits, most: float = np.inf) -> bool:
    """Return whether a sweep, of at most ``most`` levels, is likely to take only part of the remaining time.

    The estimate is based on its work, or on the time of a few levels if that is quickly measured.
    """
    if not np.isfinite(limits.left):
        return True
    safe, trial = SAFELY * PER_SECOND * limits.left, 2 * SAMPLE
    if most * _work(prepared) <= safe:
        return True
    levels = min(likely_levels(prepared, alpha, limits), most)
    work = levels * _work(prepared)
    if work <= AT_ONCE * PER_SECOND * limits.left or trial > AT_ONCE * PER_SECOND * limits.left:
        return work <= safe
    return levels * seconds_per_level(prepared, int(levels), limits) <= SAFELY * limits.left


def endless(stage: Stage[Any], target: Target) -> bool:
    """Return whether refining may never end: no step reaches a relative gap if the value sought is 0.

    If it is close to 0, relative to its distance from best luck, that takes long, and happens only if the user
    gave the gap.  What is little work is done in any case, and so are steps until the gap is relative to that distance.
    """
    prepared, bracket = stage.prepared, stage.bracket
    if target.gap or (target.said and not bracket.straddles):
        return False
    near = bracket.gap <= target.width(stage.levels * prepared.scale.level_size)
    return near and stage.levels > min(QUICK, LITTLE / work_per_level(prepared))


def finer_step(
    stage: Stage[Any],
    target: Target,
    limits: Limits,
    finest: float = 0.0,
    order: int = 2,
    *,
    base: Prepared,
) -> tuple[float, str, float]:
    """Return the next step, why there is none, and about the seconds or bytes that would be enough.

    No step is finer than ``finest``, the common step of the costs if there is one.  The gap is about in proportion to
    the step to the power of ``order``.  ``base`` is the model without a given step.
    """
    prepared, bracket = stage.prepared, stage.bracket
    step = prepared.scale.step
    wanted = AIM * target.width(bracket.size) / bracket.gap if np.isfinite(bracket.gap) else 0.0
    ratio = min(wanted ** (1 / order), FINER)
    finer = short_step(step * max(ratio, FINEST), prepared)
    if limits.stop:
        return step, limits.stop, math.nan
    unasked = target.exact and limits.time_limit is None
    if unasked and stage.levels * step / finer * _work(prepared) > _at_once(prepared):
        return step, Stop.WORK, math.nan
    if finer < COMMON * finest:
        finer = finest
    elif finer < _finest(prepared.model):
        return step, Stop.DIGITS, math.nan
    last = min(max(step * ratio ** (1 / SLOWER), finest, _finest(prepared.model)), finer)  # most likely fine enough
    left, takes = SAFELY * limits.left, stage.seconds * step / finer
    if takes > left:  # the time left may still allow a smaller refinement
        finer = max(short_step(max(step * stage.seconds / max(left, 1e-3), finer), prepared), finest)
        if finer > FINER * step:
            needs = (limits.time_limit or 0.0) - limits.left + MARGIN * stage.seconds * step / last / SAFELY
            return step, Stop.TIME, needs
    while _bytes(base, finer, stage.levels * step, limits) > limits.memory:
        larger = short_step(finer / FINER, prepared)
        finer = larger if larger > finer else 2 * finer  # the common step may be as coarse
        if finer > FINER * step:
            return step, Stop.MEMORY, MARGIN * _bytes(base, last, stage.levels * step, limits)
    return finer, Stop.NOT, math.nan


def _bytes(base: Prepared, step: float, size: float, limits: Limits) -> int:
    """Return the memory of a solve with costs rounded to a step, for totals up to this size."""
    return solve_bytes(at_step(base, step, limits), int(size / step))


def coarser_step(model: SSP, step: float) -> float | None:
    """Return a larger step than one that takes too much memory or time, or None if no larger one is useful."""
    largest = float(np.abs(model.cost).max(initial=0.0))
    return nice_step(2 * step) if step < largest else None


def short_step(step: float, prepared: Prepared) -> float:
    """Return the largest number of two digits up to a step, or the nearest multiple of the common step."""
    power = 10.0 ** (np.floor(np.log10(step)) - 1)
    return _fitting(float(f"{np.floor(step / power * 1.000001) * power:.15g}"), prepared)


def _fitting(step: float, prepared: Prepared) -> float:
    """Return a step, or the nearest multiple of the common step, if there is one."""
    lattice = prepared.scale.lattice.step
    return step if prepared.scale.slip > 0 else max(round(step / lattice), 1) * lattice


def _at_once(prepared: Prepared) -> float:
    """Return the work up to which a sweep of all budgets is modest; without cycles, larger ones can be focused."""
    return LITTLE if prepared.acyclic else MODEST


def _work(prepared: Prepared) -> float:
    """Return the work of one level, what it takes to begin one included, counted in outcomes."""
    return work_per_level(prepared) + (0 if prepared.acyclic else EACH_LEVEL)


def _step_of(prepared: Prepared, step: float) -> float:
    """Return a round number near a step, within the steps that costs can be rounded to."""
    least = max(step, 1e-6 * _largest(prepared), 2 * _finest(prepared.model))
    return _fitting(nice_step(min(least, COARSEST * float(np.abs(prepared.model.cost).max()))), prepared)


def _largest(prepared: Prepared) -> float:
    """Return the largest normalised cost, in the user's units."""
    return float(prepared.fine.max(initial=1)) * prepared.scale.lattice.step


def _finest(model: SSP) -> float:
    """Return the finest step that floating-point costs resolve."""
    return finest_step(model.cost, model.n_states + 1)
