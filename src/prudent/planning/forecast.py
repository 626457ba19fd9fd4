"""Estimates of what a solve takes: levels, memory, time, and the gap that rounding leaves.

The levels are those of :func:`prudent.engine.sweep.estimate.likely_levels`, rather too many than too few.  The time is
measured on a few levels of the model itself and multiplied by their number.  Each cost of a run is rounded by up to one
step, so the gap is about one step for each action of a run.
"""

from dataclasses import dataclass

from prudent.engine.prepare import prepare
from prudent.engine.sweep.estimate import likely_levels, seconds_per_level, sweep_bytes
from prudent.engine.sweep.task import BOTH, PLAN
from prudent.engine.values.expected_cost import least_expected_cost
from prudent.engine.values.worst_case import least_worst_case
from prudent.models.ssp import SSP
from prudent.planning.refine import fair_step
from prudent.runtime.limits import Limits, go_on, in_force

__all__ = ["Forecast", "forecast"]

ESTIMATING = "an estimate of the solve"

PER_OUTCOME = 250
"""Bytes for each outcome while a model is prepared, measured on a large one."""

ROUNDED = 1.5
"""The time of two sweeps, on costs rounded up and down, relative to one sweep for plan and bound."""


@dataclass(frozen=True)
class Forecast:
    """Estimates of what a solve takes.

    Examples
    --------
    >>> import prudent
    >>> forecast = prudent.check(prudent.domains.figure_2(), alpha=0.1).forecast
    >>> forecast.levels, forecast.memory < 10_000, forecast.gap
    (11, True, 0.0)
    """

    alpha: float
    step: float  # what costs are counted in, or rounded to
    levels: int
    memory: int  # bytes
    seconds: float
    gap: float  # between the bounds; 0 where costs are exact


def forecast(model: SSP, alpha: float, step: float | None, limits: Limits) -> Forecast:
    """Estimate what a solve takes with a given step, or with the one that ``solve`` would end up with."""
    go_on(limits, ESTIMATING)
    prepared = prepare(model, step)
    with in_force(limits):
        least_expected_cost(prepared)
    if prepared.scale.rounded and step is None:
        prepared = prepare(model, fair_step(prepared, alpha))
    go_on(limits, ESTIMATING)
    least, worst = least_expected_cost(prepared), least_worst_case(prepared)
    go_on(limits, ESTIMATING)
    levels = likely_levels(prepared, least, worst, alpha)
    aims = PLAN if prepared.scale.rounded else BOTH
    each = seconds_per_level(prepared, least, int(levels))
    return Forecast(
        alpha=alpha,
        step=prepared.scale.step,
        levels=int(levels),
        memory=sweep_bytes(prepared, int(levels), aims) + PER_OUTCOME * model.n_outcomes,
        seconds=levels * each * (ROUNDED if prepared.scale.rounded else 1.0),
        gap=float(least.steps[prepared.start]) * prepared.scale.step if prepared.scale.rounded else 0.0,
    )
