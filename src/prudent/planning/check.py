"""``check``: the kind of a model, its problems, and an estimate of what solving it takes.

If costs are not rounded, the time is measured on a few levels of the model itself and multiplied by their number.  If
they are, a coarse solve is measured.  Its gap shrinks about with the square of the step, and its time grows as the step
shrinks.  From these follow the step for a requested gap, or the gap at a given step.
"""

from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np

from prudent.engine.prepare import Trapped, prepare
from prudent.engine.prepared import Prepared
from prudent.engine.sweep.estimate import advised_device, likely_levels, seconds_per_level, solve_bytes
from prudent.engine.values.expected_cost import at_step, least_expected_cost
from prudent.engine.values.worst_case import UNREACHED, least_worst_case, true_worst_case
from prudent.errors import ModelError, PrudentError, TooLarge
from prudent.io.formats import load
from prudent.methods.exact import exact
from prudent.models.amend import amend
from prudent.models.graph import leading, met, ordered_blocks
from prudent.models.rows import BoolArray, offsets
from prudent.models.ssp import SSP
from prudent.planning.bounds import Target, stage_of
from prudent.planning.evaluate import simulate
from prudent.planning.job import Job
from prudent.planning.options import Options
from prudent.planning.refine import AIM, COARSE, fair_step, modest, short_step
from prudent.policies.distribution import check_alpha
from prudent.policies.policy import BudgetPolicy
from prudent.results.report import Forecast, Report
from prudent.runtime.limits import Limits, Stopped, go_on, now

NAMED = 5
"""The largest number of states that a note names."""

ESTIMATING = "an estimate of the solve"

LITTLE = 1e8
"""Outcomes times levels, above which the number of levels is estimated more closely than by a bound."""

TAIL, ACTIONS = 200, 10**7
"""Simulated runs in the tail; and the most actions in all runs."""

PER_OUTCOME = 80
"""Bytes per outcome while a model is prepared, measured on large models."""


def check(
    model: SSP | str | PathLike[str],
    *,
    alpha: float = 0.05,
    step: float | None = None,
    time_limit: float | None = None,
) -> Report:
    """Report the kind of a model, all its problems (not only the first), and what solving it takes.

    Parameters
    ----------
    model : SSP or path
        The problem, or its file.
    alpha, step, time_limit : float, optional
        As in :func:`prudent.solve`, whose memory, time and gap are estimated; at the time limit the estimates are left
        out, with a note.

    Examples
    --------
    >>> import prudent
    >>> report = prudent.check(prudent.domains.betting_game())
    >>> report.ok, report.acyclic, report.step, report.worst_case
    (True, True, 1.0, 95.0)
    """
    asked, alpha = Options.of("check", locals()), check_alpha(alpha)
    step, limits = asked.step, asked.limits()
    if not isinstance(model, SSP):
        try:
            model = load(model)
        except PrudentError as error:
            return Report(str(model), problems=error.problems if isinstance(error, ModelError) else (str(error),))
    known: dict[str, Any] = {"notes": model.notes}
    problems: list[str] = []
    try:
        how = "to reach the gap" if step is None else f"to multiples of {step:g}"
        known = _findings(prepare(model, None, limits), how, limits)
        known["forecast"] = forecast(model, alpha, step, limits)
    except Stopped as stopped:
        known["notes"] += (str(stopped),)
    except PrudentError as error:
        problems.append(str(error))
        if isinstance(error, Trapped):
            known["notes"] += (_about(model, ~leading(model, model.is_goal), "lead to no goal"),)
            try:  # with a price on the trap, what else keeps the model from being solved is found
                prepare(amend(model, dead_end_cost=0.0), None, limits)
            except PrudentError as other:
                problems += [] if isinstance(other, Stopped) else [str(other)]
    possible = model.probability > 0
    return Report(
        model=model.name,
        states=model.n_states,
        actions=model.n_actions,
        outcomes=model.n_outcomes,
        goals=int(model.is_goal.sum()),
        acyclic=ordered_blocks(offsets(possible)[model.arc_start], model.successor[possible]).acyclic,
        deviation=model.deviation,
        counts=model.count is not None,
        intervals=model.intervals is not None,
        problems=tuple(problems),
        **known,
    )


def _about(model: SSP, which: BoolArray, what: str) -> str:
    """Say what is true of some states, and name a few of them."""
    some = ", ".join(repr(model.state(int(s))) for s in np.flatnonzero(which)[:NAMED])
    more = ", ..." if which.sum() > NAMED else ""
    return f"{int(which.sum()):,} of the states {what}: {some}{more}"


def _findings(prepared: Prepared, how: str, limits: Limits) -> dict[str, Any]:
    model = prepared.model
    found, pruned = met(model), prepared.members.state_of < 0
    avoided, notes = prepared.avoided, list(model.notes)
    for which, why in (
        (~found, "cannot be reached from the start"),
        (pruned & found, "can be reached, but no plan goes there because a run could get stuck"),
    ):
        if which.any():
            notes.append(_about(model, which, why))
    if avoided.any():
        notes.append(about_avoided(model, avoided))
    if inner := len(prepared.members.inner_action):
        notes.append(
            f"{inner:,} of the actions can only move inside cycles at no cost; the states of such a cycle count as one"
        )
    if prepared.scale.rounded:
        notes.append(f"the costs have no common step; solve rounds them {how}")
    worst = true_worst_case(prepared, limits)
    return {
        "step": None if prepared.scale.rounded else prepared.scale.lattice.step,
        "least_cost": prepared.scale.in_units(0),
        "worst_case": prepared.scale.in_units(worst),
        "pruned_states": int(pruned.sum()),
        "pruned_actions": int(avoided.sum()),
        "notes": tuple(notes),
    }


def about_avoided(model: SSP, avoided: BoolArray) -> str:
    """Report how many actions plans avoid, and why."""
    a, count = int(np.flatnonzero(avoided)[0]), int(avoided.sum())
    place = f"{model.action(a)!r} in {model.state(model.state_of_action(a))!r}"
    return f"{count:,} of the actions may lead to a state from which no goal can be reached, for example {place}"


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
    seconds = before + levels * seconds_per_level(prepared, levels, limits)
    memory = solve_bytes(prepared, levels) + PER_OUTCOME * model.n_outcomes
    device = advised_device(prepared, levels, seconds)
    return Forecast(alpha, _level(prepared), levels, memory, seconds, 0.0, device)


def _levels(prepared: Prepared, alpha: float, limits: Limits) -> int:
    """Estimate the levels of a sweep, which ends at the optimal CVaR: take that of the policy of least expected cost.

    The policy is simulated; if that would take long, a bound is used.
    """
    least, likely = least_expected_cost(prepared, limits), likely_levels(prepared, alpha, limits)
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
    """Estimate a solve with rounded costs from a coarse one, unless that is too large, too.

    ``before`` is the number of seconds spent so far.
    """
    model = job.model
    step = max(fair_step(prepared, job.alpha, job.limits, 4 * COARSE), job.step or 0.0)
    coarse = prepared if step == job.step else (replace(job, step=None) if job.step else job).prepared(step)
    began = now()
    try:
        stage = stage_of(coarse, exact(coarse, job.alpha, job.limits), job.alpha)
    except TooLarge:
        levels = int(likely_levels(coarse, job.alpha, job.limits))
        return Forecast(job.alpha, _level(coarse), levels, solve_bytes(coarse, levels), np.nan, np.nan)
    seconds = now() - began
    gap, least = stage.bracket.gap, prepared.scale.resolution
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


def _level(prepared: Prepared) -> float:
    """Return the size of a level: the step that costs are rounded to, or else what all normalised costs share."""
    return prepared.scale.resolution or prepared.scale.step
