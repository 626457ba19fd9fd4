"""From a method's solution to a plan: the user's units, a status, and what should be known."""

import math

from prudent.methods.solution import Solution
from prudent.models.ssp import SSP
from prudent.planning.bounds import Target, bracket_below
from prudent.planning.refine import Stage
from prudent.policies.distribution import GROUPED
from prudent.results.plan import Plan
from prudent.runtime.limits import Limits, shown_bytes

__all__ = ["plan_of"]


def plan_of(
    model: SSP,
    method: str,
    alpha: float,
    stage: Stage[Solution],
    target: Target | None = None,
    limits: Limits | None = None,
) -> Plan:
    """Return the plan that a solution is, in the user's units."""
    prepared, solution, bracket = stage.prepared, stage.found, stage.bracket
    cvar, interrupted = prepared.scale.in_units(solution.cvar), stage.stopped == "interrupted"
    status = (target or Target()).status(bracket, aims=method == "exact", interrupted=interrupted)
    if status == "optimal" and stage.stopped:  # in CVaR; budgets that were not looked at may have a lower mean
        status = "interrupted" if interrupted else "within_gap"
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
        notes=(*solution.notes, *_notes(stage, limits, status)),
    )


def _notes(stage: Stage[Solution], limits: Limits | None, status: str) -> list[str]:
    prepared, stopped, notes = stage.prepared, stage.stopped, list[str]()
    deviation = prepared.scale.deviation
    if prepared.scale.rounded:
        notes += [f"{note}, up for the plan, down for the lower bound" for note in prepared.scale.notes]
        if not math.isnan(stage.found.cvar):
            notes.append(GROUPED)
    elif status == "within_gap" and not stopped and deviation > 0:
        notes.append(f"the bounds allow for costs that are off their common step by up to {deviation:.1g}")
    if stopped == "memory" and limits is not None:
        notes.append(
            f"stopped where {shown_bytes(limits.memory)} of memory would not do: allow more (memory=, --memory)"
        )
    if stopped == "digits":
        notes.append("a finer step would have no digits left in the costs")
    if stopped == "time" and limits is not None:
        limit = f"{limits.time_limit:g} seconds"
        notes.append(f"stopped for the time limit of {limit}: allow more (time_limit=, --time-limit)")
    return notes
