"""Estimates of what a solve takes: levels, memory, time, and the gap that rounding leaves.

The number of levels comes from :func:`prudent.engine.sweep.estimate.likely_levels`, which overestimates rather than
underestimates; for large models simulated runs may lower it.  If costs are not rounded, the time is measured on a few
levels of the model itself and multiplied by their number.  If they are, a coarse solve is measured.  Its gap shrinks
about with the square of the step, and its time grows as the step shrinks.  From these follow the step for a requested
gap, or the gap at a given step.
"""

from dataclasses import dataclass

import numpy as np

from prudent.engine.prepare import prepare
from prudent.engine.prepared import Prepared
from prudent.engine.sweep.estimate import advised_device, likely_levels, seconds_per_level, solve_bytes
from prudent.engine.values.expected_cost import at_step, least_expected_cost
from prudent.engine.values.worst_case import UNREACHED, least_worst_case
from prudent.errors import PrudentError, TooLarge
from prudent.methods.exact import exact
from prudent.models.ssp import SSP
from prudent.planning.bounds import Target, stage_of
from prudent.planning.job import Job
from prudent.planning.refine import AIM, coarse_step, modest, short_step
from prudent.planning.simulate import simulate
from prudent.policies.policy import BudgetPolicy
from prudent.runtime.limits import Limits, go_on, now

ESTIMATING = "an estimate of the solve"

LITTLE = 1e8
"""Outcomes times levels, above which the number of levels is estimated more closely than by a bound."""

TAIL, ACTIONS = 200, 10**7
"""Simulated runs in the tail; and the most actions in all runs."""

PER_OUTCOME = 80
"""Bytes per outcome while a model is prepared, measured on large models."""


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
    step: float  # the unit that costs are counted in, or rounded to
    levels: int
    memory: int  # bytes
    seconds: float
    gap: float  # between the bounds; 0 if costs are exact
    device: str = "cpu"  # the advised device: "gpu" if there is one and it is at least twice as fast


def forecast(model: SSP, alpha: float, step: float | None, limits: Limits) -> Forecast:
    """Estimate what a solve takes with a given step, or with the step that ``solve`` would choose."""
    go_on(limits, ESTIMATING)
    job, began = Job(model, alpha, step, Target(), limits), now()
    prepared = job.prepared(step)
    least_worst_case(prepared, limits)
    go_on(limits, ESTIMATING)
    if prepared.scale.rounded or not (step is not None or modest(prepared, alpha, limits=limits)):
        return _rounded(job, prepared, now() - began)
    before = now() - began
    levels = _levels(prepared, alpha, limits)
    seconds = before + levels * seconds_per_level(prepared, least_expected_cost(prepared, limits), levels, limits)
    memory = solve_bytes(prepared, levels) + PER_OUTCOME * model.n_outcomes
    device = advised_device(prepared, levels, seconds)
    return Forecast(alpha, _level(prepared), levels, memory, seconds, 0.0, device)


def _levels(prepared: Prepared, alpha: float, limits: Limits) -> int:
    """Estimate the levels of a sweep, which ends at the optimal CVaR: take that of the policy of least expected cost.

    The policy is simulated; if that would take long, a bound is used.
    """
    least = least_expected_cost(prepared, limits)
    likely = likely_levels(prepared, least, least_worst_case(prepared, limits), alpha, limits)
    episodes = int(min(TAIL / alpha, ACTIONS / max(float(least.steps(limits)[prepared.start]), 1.0)))
    if likely * len(prepared.cost) < LITTLE or episodes * alpha < 1:
        return int(likely)
    try:
        policy = BudgetPolicy.of_states(prepared, least.choice)
        runs = simulate(prepared.model, policy, episodes=episodes, max_steps=ACTIONS)
    except PrudentError:  # runs are too long
        return int(likely)
    return int(min(likely, prepared.scale.in_levels(runs.cvar(alpha)) + 1))


def _rounded(job: Job, prepared: Prepared, before: float) -> Forecast:
    """Estimate a solve with rounded costs from a coarse one; ``before`` is the number of seconds spent so far."""
    model = job.model
    step = max(coarse_step(prepared, job.alpha, job.limits), job.step or 0.0)
    if step == job.step:
        coarse = prepared
    else:
        coarse = at_step(prepare(model, None, job.limits), step, job.limits) if job.step else job.prepared(step)
    began = now()
    try:
        stage = stage_of(coarse, exact(coarse, job.alpha, job.limits), job.alpha)
    except TooLarge:
        return _unknown(coarse, job.alpha, job.limits)
    seconds = now() - began
    gap, least = stage.bracket.gap, 0.0 if prepared.scale.rounded else prepared.scale.level_size
    wanted = step * min(np.sqrt(AIM * job.target.width(stage.bracket.size) / gap), 1.0) if gap > 0 else step
    final = job.step or max(short_step(wanted, prepared), least)
    finer = step / final
    other = prepared if job.step else at_step(prepared, final, job.limits)
    levels = int(min(stage.levels * finer, UNREACHED))
    return Forecast(
        alpha=job.alpha,
        step=_level(other),
        levels=levels,
        memory=solve_bytes(other, levels) + PER_OUTCOME * model.n_outcomes,
        seconds=before + seconds * (finer if job.step else 1 + finer),
        gap=gap / finer**2 if other.scale.rounded else 0.0,
    )


def _unknown(prepared: Prepared, alpha: float, limits: Limits) -> Forecast:
    """Return the estimate for a solve that is too large even with coarse steps."""
    least, worst = least_expected_cost(prepared, limits), least_worst_case(prepared, limits)
    levels = int(likely_levels(prepared, least, worst, alpha, limits))
    return Forecast(alpha, _level(prepared), levels, solve_bytes(prepared, levels), np.nan, np.nan)


def _level(prepared: Prepared) -> float:
    """Return the size of a level: the step that costs are rounded to, or else what all normalised costs share."""
    return prepared.scale.resolution or prepared.scale.step
