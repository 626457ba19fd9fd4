"""From a solution to a plan, in the user's units and words."""

import math
from dataclasses import replace

from prudent.engine.prepared import Prepared
from prudent.methods.exact import SECOND
from prudent.methods.solution import Solution
from prudent.models.intervals import Intervals
from prudent.models.ssp import SSP
from prudent.planning.bounds import OPTIMAL_GAP, Bracket, Stage, Stop, Target, bracket_below
from prudent.planning.job import Job
from prudent.policies.distribution import GROUPED
from prudent.results.plan import Plan
from prudent.runtime.limits import Limits, shown_bytes


def plan_of(
    model: SSP,
    method: str,
    alpha: float,
    stage: Stage[Solution],
    target: Target | None = None,
    limits: Limits | None = None,
    intervals: Intervals | None = None,
) -> Plan:
    """Return a solution as a plan, in the user's units; ``intervals`` is its set of models, if any."""
    prepared, solution, bracket = stage.prepared, stage.found, stage.bracket
    cvar, interrupted = prepared.scale.in_units(solution.cvar), stage.stopped == Stop.INTERRUPTED
    second = _second(prepared, solution, finished=method == "exact" and not stage.stopped)
    status = (target or Target()).status(bracket, aims=method == "exact", interrupted=interrupted, second=second)
    return Plan(
        model=model,
        policy=solution.policy,
        method=method,
        alpha=alpha,
        step=prepared.scale.step,
        status=status,
        cvar=max(cvar, bracket.lower) if prepared.scale.rounded else cvar,
        var=solution.var,
        expected=prepared.scale.in_units(solution.expected),
        expected_lower=bracket_below(prepared, solution.expected_lower),
        lower=bracket.lower,
        upper=bracket.upper,
        worst_case=prepared.scale.in_units(solution.worst),
        seconds=stage.seconds,
        nominal=None if solution.nominal is None else solution.nominal.in_units(prepared.scale),
        intervals=intervals,
        notes=(*model.notes, *solution.notes, *_notes(stage, limits, status)),
        device="cpu" if limits is None or limits.device is None else "gpu",
    )


def planned(job: Job, stage: Stage[Solution], method: str = "exact", intervals: Intervals | None = None) -> Plan:
    """Return a job's solution as a plan, with the seconds that it took."""
    timed = replace(stage, seconds=job.seconds)
    return plan_of(job.model, method, job.alpha, timed, job.target, job.limits, intervals)


def _second(prepared: Prepared, solution: Solution, *, finished: bool) -> bool:
    """Return whether surely no plan of optimal CVaR has a lower expected cost; ``finished``: the sweep was."""
    scale = prepared.scale
    expected, lower = scale.in_units(solution.expected), solution.expected_lower
    if not finished or scale.rounded:
        return Bracket(bracket_below(prepared, lower), expected, scale.resolution).closed
    # Actions were compared exactly, so only budgets can tie; the rest of the bound is room for rounding errors.
    return expected - scale.in_units(lower / (1 - SECOND)) <= OPTIMAL_GAP * max(abs(expected), scale.resolution)


def _notes(stage: Stage[Solution], limits: Limits | None, status: str) -> list[str]:
    prepared, stopped, notes = stage.prepared, stage.stopped, list[str]()
    deviation = prepared.scale.deviation
    if prepared.scale.rounded:
        notes += [f"{note}; the bounds account for it" for note in prepared.scale.notes]
        own = stage.found.nominal
        if own is None and not math.isnan(stage.found.cvar):
            notes.append(GROUPED)
        elif own is not None:
            notes.append("the worst-case CVaR is that of costs rounded up, an upper bound on the policy's own")
            notes += [] if math.isnan(own.cvar) else [f"in the model itself, {GROUPED}"]
        notes += stage.notes
    elif status == "within_gap" and not stopped and deviation > 0:
        notes.append(f"the bounds account for costs that are off their common step by up to {deviation:.1g}")
    if limits is not None and limits.device is not None and len(prepared.free_blocks[0]) <= prepared.n_states:
        notes.append("the sweep ran on the CPU: the GPU does not sweep models with cycles at no cost")
    if stopped == Stop.MEMORY and limits is not None:
        would = "" if math.isnan(stage.needs) else f" to about {shown_bytes(stage.needs)}"
        notes.append(f"stopped at the {shown_bytes(limits.memory)} limit; raise memory={would} or set step=")
    if stopped == Stop.WORK:
        notes.append("no step of rounded costs closes the gap, and the next one is much work; time_limit= allows more")
    if stopped == Stop.DIGITS:
        notes.append("a finer step is below the floating-point precision of the costs")
    if stopped == Stop.TIME and limits is not None:
        notes.append(stopped_late(limits, stage.needs))
    return notes


def stopped_late(limits: Limits, needs: float = math.nan) -> str:
    """Report that the time limit was reached, and about how many seconds would be enough, if that is known."""
    would = "" if math.isnan(needs) else f" to about {needs:.2g} seconds"
    return f"stopped at the time limit of {limits.time_limit:g} seconds; raise time_limit={would} (--time-limit)"
