"""Plan for a set of models: from the driver to :mod:`prudent.methods.robust`."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from prudent.engine.prepared import Prepared
from prudent.methods.robust import robust
from prudent.methods.solution import Nominal, Solution
from prudent.models.intervals import Intervals
from prudent.planning.bounds import bracket_below
from prudent.planning.driver import Job
from prudent.planning.plans import plan_of, stage_of
from prudent.planning.refine import Stage, modest
from prudent.results.plan import Plan
from prudent.runtime.clock import now

__all__ = ["solve_robust"]


def solve_robust(job: Job, intervals: Intervals, nominal: Callable[[], Stage[Solution]]) -> Plan:
    """Return the plan of minimal worst-case CVaR.

    If costs have to be rounded, or the common step is much work, ``nominal`` first plans for the model itself, which
    gives the step and a lower bound.  Otherwise it does so afterwards, if the lower bound is not close.
    """
    if not (intervals.high > intervals.low).any():  # then the set is a single model
        stage = nominal()
        own = stage.found
        same = replace(own, nominal=Nominal(own.cvar, own.var, own.expected))
        return _plan(job, replace(stage, found=same), intervals)
    prepared, lower = job.prepared(job.step), -np.inf
    if prepared.scale.rounded or not modest(prepared, job.alpha):
        stage = nominal()
        prepared, lower = stage.prepared, stage.bracket.lower
    began = now()
    with job.stopping():
        solution = robust(prepared, intervals, job.alpha, job.limits, _levels(prepared, lower))
    stage = stage_of(prepared, solution, job.alpha, began)
    if not (np.isfinite(lower) or solution.stopped or job.target.reached(stage.bracket)):
        lower = max(stage.bracket.lower, nominal().bracket.lower)
        stage = replace(stage, bracket=replace(stage.bracket, lower=min(lower, stage.bracket.upper)))
    return _plan(job, stage, intervals)


def _plan(job: Job, stage: Stage[Solution], sets: Intervals) -> Plan:
    return plan_of(job.model, "exact", job.alpha, replace(stage, seconds=job.seconds), job.target, job.limits, sets)


def _levels(prepared: Prepared, lower: float) -> float:
    """Convert a lower bound from the user's units to levels, so that it still holds in the user's units."""
    if not np.isfinite(lower):
        return 0.0
    levels = max(prepared.scale.in_levels(lower), 0.0)
    return levels if bracket_below(prepared, levels) <= lower else levels * (1 - 1e-12)
