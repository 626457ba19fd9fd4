"""The lowest expected cost within a limit on CVaR.

First the optimal CVaR is bounded, as by a plain solve, whose plan is the start and the fallback.  The limit counts from
these bounds.  Then expected cost is weighed against CVaR (:mod:`prudent.methods.mean_cvar`) at the step of the plain
solve; if there are many levels, the weights are sought with costs rounded to a coarser step.

*Guarantee.*  The CVaR of the returned policy, bounded from above by its own distribution, is within the limit, or a
note says that it may not be.  The lower bound on the expected cost holds whatever the step.
"""

from dataclasses import replace

import numpy as np

from prudent.engine.prepared import Prepared
from prudent.engine.values.expected_cost import surely_expected
from prudent.errors import PrudentError
from prudent.methods.exact import explore
from prudent.methods.expected import evaluated
from prudent.methods.mean_cvar import TASK
from prudent.methods.solution import Solution
from prudent.methods.within_limit import Limit, Room, stopping
from prudent.planning.bounds import Bracket, Stage, Target, bracket_below, stage_of
from prudent.planning.cvar import LeastCVaR
from prudent.planning.driver import Question, answer
from prudent.planning.job import Job
from prudent.planning.options import Options
from prudent.planning.plans import planned
from prudent.planning.refine import finer_step, short_step
from prudent.results.plan import Plan
from prudent.runtime.limits import Limits, Stopped
from prudent.runtime.tables import certain, number

FORGIVEN = 1e-12
"""How far a limit may be below the optimal CVaR, relative to its size: rounding error of floats."""

WEIGHTS = 60
"""The most weights to try."""

SEARCHED, COARSER = 1500, 16
"""About how many levels are enough to seek weights; and how many times as coarse a step for that may be."""

PLAIN = 0.4
"""The part of the time left, once the lowest expected cost is known, for the minimal CVaR."""

SHARE, NARROWER = 0.25, 1 / 16
"""The largest gap on the optimal CVaR, as a part of what a limit adds to it; and the narrowest one that is tried, as a
part of the first."""


def solve_within(job: Job, asked: Options) -> Plan:
    """Return the best plan found with a CVaR up to a limit.

    A gap that the user gives is one of the expected cost.  Part of it may stay open at any step, because the best plan
    need not be optimal for any weight of CVaR.  So without a given gap, the step is as fine as the optimal CVaR needs.
    """
    with job.limits:
        job = replace(job, base=job.prepared(job.step))
    safest = _plain(job, asked, PLAIN)
    if safest.stopped == "time" and _limits(asked, safest.bracket)[0] < safest.bracket.upper:
        safest = _plain(job, asked, 2 * PLAIN)  # a finer step may keep the limit
    bracket, optimum = safest.bracket, safest.found
    most, upto = _limits(asked, bracket)
    exact = bracket.closed and not safest.prepared.scale.rounded and optimum.explored is not None
    if exact:  # then the plan attains the optimum
        most = upto = _limit(asked, safest.prepared.scale.in_units(optimum.cvar))
    if most < bracket.lower - FORGIVEN * (bracket.size if np.isfinite(bracket.size) else abs(bracket.lower)):
        raise PrudentError(
            f"max_cvar is {most:.9g}; no plan has a CVaR that low. The optimal CVaR is {_shown(bracket)}; raise "
            "max_cvar"
        )
    kept = most >= bracket.upper or (bracket.closed and not optimum.stopped)
    least = float(surely_expected(safest.prepared)[safest.prepared.start])
    found = _stage(safest, replace(optimum, expected_lower=least), safest.stopped)
    cheapest = found.bracket.closed  # then no plan has a lower expected cost
    if kept and not (cheapest or optimum.stopped or safest.stopped == "interrupted"):
        limit = Limit(most if exact else max(most, bracket.upper), upto, asked.randomise)
        with job.limits:
            found = _attempt(job, safest, limit)
            if job.target.said and job.step is None and not (found.stopped or job.target.reached(found.bracket)):
                found = _finer(job, found, limit)
    plan = planned(replace(job, target=Target()), replace(found, bracket=bracket))
    plan = limited(plan, most, job.target, interrupted=found.stopped == "interrupted")
    if not kept:
        own = f"the CVaR of this plan is at most {bracket.upper:.9g}"
        if np.isinf(bracket.upper):
            own = "no upper bound on the CVaR of this plan is known"
        note = f"the limit on CVaR, {most:.9g}, may not be kept: the optimal CVaR is {_shown(bracket)}, and {own}"
        status = plan.status if plan.status == "interrupted" else "gap_not_reached"
        plan = replace(plan, status=status, notes=(*plan.notes, note))
    if found.found.policy is optimum.policy and (found.stopped or not kept):
        note = "stopped before the limit on CVaR could be used; " if found.stopped else ""
        aim = "lowest expected cost" if optimum.explored is None else "minimal CVaR"
        return replace(plan, notes=(*plan.notes, f"{note}this is a plan for the {aim}"))
    return replace(plan, notes=(*plan.notes, _bought(plan, optimum, safest.prepared, known=Target().reached(bracket))))


def _limits(asked: Options, optimum: Bracket) -> tuple[float, float]:
    """Return the lowest and the highest limit on CVaR that the bounds on the optimal one allow for."""
    at = [optimum.lower, optimum.upper, *([0.0] if optimum.straddles else [])]
    found = [_limit(asked, value) for value in at]
    return min(found), max(found)


def _limit(asked: Options, optimum: float) -> float:
    """Return the limit on CVaR that the options give, given the optimal one."""
    if asked.max_cvar is not None:
        return asked.max_cvar
    return optimum + (asked.absolute_slack or (asked.slack or 0.0) * abs(optimum))


class _Plain(LeastCVaR):
    """The plan of minimal CVaR as a plain solve finds it, with the sweeps of all budgets."""

    focuses = False

    def attempt(self, prepared: Prepared, limits: Limits) -> Stage[Solution]:
        """Sweep the budgets; a plan at hand comes without sweeps."""
        explored = explore(prepared, self.job.alpha, limits)
        found = explored.solution(self.job.alpha, limits=limits.for_the_rest)
        found = evaluated(prepared, self.job.alpha, replace(found, explored=explored))
        return stage_of(prepared, found, self.job.alpha)


def _plain(job: Job, asked: Options, share: float) -> Stage[Solution]:
    """Bound the optimal CVaR as a plain solve does, in a share of the time; more closely if the limit needs it."""
    time, spent = job.limits.time_limit, job.seconds
    limits = job.limits if time is None else replace(job.limits, time_limit=spent + share * (time - spent))

    def bounded(target: Target) -> Stage[Solution]:
        return answer(_Plain(replace(job, target=target, limits=limits, tell=None)))

    with limits:
        stage = bounded(job.target if job.target.exact else Target())
        above = _limits(asked, stage.bracket)[0] - stage.bracket.lower
        if limits.interruption.asked:
            return replace(stage, stopped="interrupted")
        if stage.stopped or job.step is not None or not 0 < above < stage.bracket.gap / SHARE:
            return stage
        finer = bounded(Target(gap=max(SHARE * above, NARROWER * stage.bracket.gap)))
        return finer if finer.bracket.gap < stage.bracket.gap else stage


def _attempt(job: Job, safest: Stage[Solution], limit: Limit) -> Stage[Solution]:
    """Find the best policy within the limit at one step; ``safest`` is the plan of minimal CVaR at that step."""
    optimum, explored = safest.found, safest.found.explored
    assert explored is not None, "a plan at hand is not improved upon"
    here = Room.of(explored, job.alpha, job.limits, limit, safest.bracket.upper)
    stopped = stopping(lambda: _search(job, here, limit, safest))
    found = here.chosen(optimum, job.limits.for_the_rest)
    bounds = [explored.least, here.search.bound_so_far(here.sure)]
    if not stopped and found.expected > max(bounds):
        stopped = stopping(lambda: bounds.append(here.search.least_expected(here.sure)))
    found = replace(found, expected_lower=min(max(bounds), found.expected))
    return _stage(safest, found, stopped or safest.stopped)


def _search(job: Job, here: Room, limit: Limit, safest: Stage[Solution]) -> None:
    """Try the weights that decide; if there are many levels, seek them with costs rounded to a coarser step."""
    levels, scale = len(here.weighing.explored.swept.excess), safest.prepared.scale
    near, weights = False, list[float]()
    if levels > 2 * SEARCHED:
        coarse = job.prepared(short_step(scale.level_size * min(levels / SEARCHED, COARSER), safest.prepared))
        rough = explore(coarse, job.alpha, job.limits, bounded=False)
        there = Room.of(rough, job.alpha, job.limits, limit, safest.bracket.upper)
        near = there.search.begin(there.cap + max(there.charged, 0.0))
        there.search.search(there.cap, WEIGHTS)
        weights = there.search.weights
    if (near or not weights) and here.search.begin(here.cap):
        return
    for weight in weights:
        here.search.take(weight, here.cap)
    if not weights:
        here.search.search(here.cap, WEIGHTS)


class _Finer(Question[Solution]):
    """The best policy within the limit, at a step and finer ones; ``before`` is the best one so far."""

    order, may_stall = 1, True

    def __init__(self, job: Job, before: Stage[Solution], limit: Limit, step: float) -> None:
        super().__init__(job)
        self.before, self.limit, self.step = before, limit, step

    def first_step(self, prepared: Prepared) -> float:
        """Return the step after that of the best policy so far."""
        return self.step

    def attempt(self, prepared: Prepared, limits: Limits) -> Stage[Solution]:
        """Find the plan of minimal CVaR, and from there the best one within the limit."""
        job = replace(self.job, limits=limits)
        explored = explore(prepared, job.alpha, limits).finished(TASK)
        solution = replace(explored.solution(job.alpha, limits=limits), explored=explored)
        stage = stage_of(prepared, solution, job.alpha)
        if prepared.scale.rounded and stage.bracket.upper > self.limit.allowed:  # nothing at this step surely keeps it
            return self.before
        return _attempt(job, stage, self.limit)


def _finer(job: Job, before: Stage[Solution], limit: Limit) -> Stage[Solution]:
    """Refine the step until the expected cost is as close to its bound as asked for."""
    base = job.prepared(None)
    step, stopped, _ = finer_step(before, job.target, job.limits, base.scale.resolution, 1, base=base)
    if stopped:
        return replace(before, stopped=stopped)
    try:
        after = answer(_Finer(job, before, limit, step))
    except Stopped as error:
        return replace(before, stopped=error.reason)
    return replace(after.better(before), stopped=after.stopped)


def _stage(safest: Stage[Solution], solution: Solution, stopped: str) -> Stage[Solution]:
    """Return a solution as a stage, with its bracket on the expected cost."""
    prepared, expected = safest.prepared, safest.prepared.scale.in_units(solution.expected)
    lower = min(bracket_below(prepared, solution.expected_lower), expected)
    mean = Bracket(lower, expected, prepared.scale.resolution)
    return replace(safest, found=solution, bracket=mean, stopped=stopped, needs=np.nan)


def limited(plan: Plan, limit: float, target: Target, *, interrupted: bool) -> Plan:
    """Return a plan with a limit on its CVaR; its status follows from the bounds on the expected cost."""
    mean = Bracket(plan.expected_lower, plan.expected, plan.policy.prepared.scale.resolution)
    return replace(plan, max_cvar=limit, status=target.status(mean, aims=True, interrupted=interrupted))


def _shown(bracket: Bracket) -> str:
    low, high = f"{bracket.lower:.9g}", f"{bracket.upper:.9g}"
    if np.isinf(bracket.upper):
        return f"at least {low}"
    return high if low == high else f"between {low} and {high}"


def _bought(plan: Plan, optimum: Solution, prepared: Prepared, *, known: bool) -> str:
    """Describe the CVaR that a limit costs and the expected cost that it saves; ``known``: the minimal CVaR is."""
    cvar, mean = prepared.scale.in_units(optimum.cvar), prepared.scale.in_units(optimum.expected)
    more, saved = max(plan.cvar - cvar, 0.0), max(mean - plan.expected, 0.0)
    share = f" ({saved / abs(mean):.1%})" if mean != 0 else ""
    scale = prepared.scale
    exact, near = (certain(gap, scale.money) for gap in (0.0, plan.upper - plan.lower if scale.rounded else 0.0))
    expected, lowered = number(mean, exact), number(saved, exact)
    lowest = "minimal CVaR" if known else "lowest CVaR found"
    if np.isnan(more):
        return f"at the {lowest} the expected cost is {expected}; the limit lowers it by {lowered}{share}"
    return (
        f"at the {lowest}, {number(cvar, near)}, the expected cost is {expected}; an extra CVaR of "
        f"{number(more, near)} lowers it by {lowered}{share}"
    )
