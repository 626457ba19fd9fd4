"""Plan for a set of models: from the driver to :mod:`prudent.methods.robust`."""

from collections.abc import Callable
from dataclasses import replace

from prudent.engine.prepared import Prepared
from prudent.methods.robust import robust
from prudent.methods.solution import Nominal, Solution
from prudent.models.intervals import Intervals
from prudent.planning.driver import Job
from prudent.planning.plans import plan_of, stage_of
from prudent.planning.refine import Stage, first_step
from prudent.results.plan import Plan
from prudent.runtime.clock import now

__all__ = ["solve_robust"]


def solve_robust(job: Job, intervals: Intervals, nominal: Callable[[], Stage[Solution]]) -> Plan:
    """Return the plan of minimal worst-case CVaR, at steps chosen as for a single model.

    The gap of rounded costs is about in proportion to the step.  If it stays open, ``nominal`` plans for the model
    itself, which gives another lower bound.
    """

    def attempt(prepared: Prepared) -> Stage[Solution]:
        began = now()
        return stage_of(prepared, robust(prepared, intervals, job.alpha, job.limits), job.alpha, began)

    def first(prepared: Prepared, alpha: float) -> float:
        return first_step(prepared, alpha, job.target, job.limits)

    if not (intervals.high > intervals.low).any():  # then the set is a single model
        stage = nominal()
        own = stage.found
        same = replace(own, nominal=Nominal(own.cvar, own.var, own.expected))
        return _plan(job, replace(stage, found=same), intervals)
    with job.stopping():
        stage = job.refined(attempt, first, order=1, may_stall=True)
        if not (stage.stopped or job.target.reached(stage.bracket)):
            lower = max(stage.bracket.lower, nominal().bracket.lower)
            stage = replace(stage, bracket=replace(stage.bracket, lower=min(lower, stage.bracket.upper)))
    return _plan(job, stage, intervals)


def _plan(job: Job, stage: Stage[Solution], sets: Intervals) -> Plan:
    return plan_of(job.model, "exact", job.alpha, replace(stage, seconds=job.seconds), job.target, job.limits, sets)
