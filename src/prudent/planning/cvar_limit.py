"""The lowest expected cost within a limit on CVaR.

First the optimal CVaR is bounded, as by a plain solve, whose plan is the start and the fallback.  The limit counts from
these bounds.  Then expected cost is weighed against CVaR (:mod:`prudent.methods.mean_cvar`) at the step of the plain
solve; if there are many levels, the weights are sought with costs rounded to a coarser step.

*Guarantee.*  The CVaR of the returned policy, bounded from above by its own distribution, is within the limit, or a
note says that it may not be.  The lower bound on the expected cost holds whatever the step.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from prudent.engine.prepared import Prepared
from prudent.engine.values.bellman import UNIT
from prudent.engine.values.expected_cost import surely_expected
from prudent.errors import Defect, PrudentError, TooLarge, as_number
from prudent.kernels.choices import Choices
from prudent.methods.exact import Explored, explore, solution_for
from prudent.methods.expected import at_hand
from prudent.methods.mean_cvar import TASK, Found, Single, Weighing
from prudent.methods.mixture import Mixing, Mixture
from prudent.methods.solution import Solution
from prudent.planning.bounds import Bracket, Target, bracket_below
from prudent.planning.driver import Job
from prudent.planning.plans import plan_of, stage_of
from prudent.planning.refine import Stage, finer_step, first_step, short_step
from prudent.policies.mixed import MixedPolicy
from prudent.policies.own_tail import own_tail
from prudent.policies.policy import BudgetPolicy
from prudent.results.plan import Plan
from prudent.runtime.clock import now
from prudent.runtime.limits import Limits, Stopped, in_force
from prudent.runtime.tables import certain, number

__all__ = ["Cap", "cap_of", "limited", "solve_within"]

FORGIVEN = 1e-12
"""How far a limit may be below the optimal CVaR, relative to its size: rounding error of floats."""

WEIGHTS, TRIES = 60, 6
"""The most weights, and the most policies of the last sweep, to try."""

SEARCHED, COARSER = 1500, 16
"""About how many levels are enough to seek weights; and how many times as coarse a step for that may be."""

PLAIN = 0.4
"""The part of the time limit for the minimal CVaR."""

SHARE, NARROWER = 0.25, 1 / 16
"""The largest gap on the optimal CVaR, as a part of what a limit adds to it; and the narrowest one that is tried, as a
part of the first."""

STEEPER = 1.25
"""The factor by which the weight of CVaR grows while no policy is found within the limit."""

GAIN = 1e-3
"""The part of what a limit has saved that another policy must save to be tried as well."""


@dataclass(frozen=True)
class Cap:
    """How much CVaR the user accepts to lower the expected cost."""

    slack: float | None  # above the optimal CVaR, relative to its size
    more: float | None  # above the optimal CVaR, in the user's units
    most: float | None  # the limit itself
    randomise: bool

    def limits(self, optimum: Bracket) -> tuple[float, float]:
        """Return the lowest and the highest limit on CVaR that the bounds on the optimal one allow for."""
        at = [optimum.lower, optimum.upper, *([0.0] if optimum.straddles else [])]
        found = [self.limit(value) for value in at]
        return min(found), max(found)

    def limit(self, optimum: float) -> float:
        """Return the limit on CVaR, given the optimal one."""
        if self.most is not None:
            return self.most
        return optimum + (self.more if self.more is not None else (self.slack or 0.0) * abs(optimum))


def cap_of(
    method: str, slack: float | None, absolute_slack: float | None, max_cvar: float | None, randomise: bool
) -> Cap | None:
    """Return the limit on CVaR that the arguments give, or None."""
    asked = [value is not None for value in (slack, absolute_slack, max_cvar)]
    if not any(asked):
        if randomise:
            raise PrudentError(
                "randomise needs a limit on CVaR, without which it gains nothing; give slack, absolute_slack or "
                "max_cvar"
            )
        return None
    if sum(asked) > 1:
        raise PrudentError("slack, absolute_slack and max_cvar exclude each other; give only one of them")
    if method != "exact":
        raise PrudentError(f"slack, absolute_slack and max_cvar need method 'exact', not {method!r}")
    if slack is not None:
        slack = as_number("slack", slack, "a number, at least 0, such as 0.01 for 1%", lambda x: 0 <= x < np.inf)
    if absolute_slack is not None:
        absolute_slack = as_number("absolute_slack", absolute_slack, "a cost, at least 0", lambda x: 0 <= x < np.inf)
    if max_cvar is not None:
        max_cvar = as_number("max_cvar", max_cvar, "a finite number", lambda x: abs(x) < np.inf)
    return Cap(slack, absolute_slack, max_cvar, bool(randomise))


@dataclass(frozen=True)
class _Safest:
    """The plan of minimal CVaR, and the sweeps that found it."""

    found: Explored | None  # None: stopped before any sweep
    solution: Solution

    @property
    def explored(self) -> Explored:
        """The sweeps; only a plan that was not stopped may be asked."""
        if self.found is None:
            raise Defect("a plan at hand was asked for its sweeps")
        return self.found


@dataclass(frozen=True)
class _Limit:
    """The limit on CVaR, in the user's units."""

    allowed: float  # what a policy's CVaR may be
    upto: float  # what the limit may be, for all that is known of the optimal CVaR
    randomise: bool


def solve_within(job: Job, cap: Cap) -> Plan:
    """Return the best plan found with a CVaR up to a limit.

    A gap that the user gives is one of the expected cost.  Part of it may stay open at any step, because the best plan
    need not be optimal for any weight of CVaR.  So without a given gap, the step is as fine as the optimal CVaR needs.
    """
    safest = _plain(job, cap)
    bracket, optimum = safest.bracket, safest.found.solution
    most, upto = cap.limits(bracket)
    exact = bracket.closed and not safest.prepared.scale.rounded
    if exact:  # then the plan attains the optimum
        most = upto = cap.limit(safest.prepared.scale.in_units(optimum.cvar))
    if most < bracket.lower - FORGIVEN * bracket.size:
        raise PrudentError(
            f"max_cvar is {most:.9g}; no plan has a CVaR that low. The optimal CVaR is {_shown(bracket)}; raise "
            "max_cvar"
        )
    kept = most >= bracket.upper or (bracket.closed and not optimum.stopped)
    least = float(surely_expected(safest.prepared)[safest.prepared.start])
    found = _stage(safest, replace(optimum, expected_lower=least), safest.stopped)
    if kept and not optimum.stopped and safest.stopped != "interrupted":
        limit = _Limit(most if exact else max(most, bracket.upper), upto, cap.randomise)
        with job.limits, in_force(job.limits.without_time):
            found = _attempt(job, safest, limit)
            if job.target.said and job.step is None and not (found.stopped or job.target.reached(found.bracket)):
                found = _finer(job, found, limit)
    stage = replace(found.holding(found.found, bracket), seconds=job.seconds)
    plan = plan_of(job.model, "exact", job.alpha, stage, Target(), job.limits)
    plan = limited(plan, most, job.target, interrupted=found.stopped == "interrupted")
    if not kept:
        note = (
            f"the limit on CVaR, {most:.9g}, may not be kept: the optimal CVaR is {_shown(bracket)}, and the CVaR of "
            f"this plan is at most {bracket.upper:.9g}"
        )
        status = plan.status if plan.status == "interrupted" else "gap_not_reached"
        plan = replace(plan, status=status, notes=(*plan.notes, note))
    if found.found.policy is optimum.policy and (found.stopped or not kept):
        note = "stopped before the limit on CVaR could be used; " if found.stopped else ""
        aim = "lowest expected cost" if safest.found.found is None else "minimal CVaR"
        return replace(plan, notes=(*plan.notes, f"{note}this is a plan for the {aim}"))
    return replace(plan, notes=(*plan.notes, _bought(plan, optimum, safest.prepared, known=Target().reached(bracket))))


def _plain(job: Job, cap: Cap) -> Stage[_Safest]:
    """Bound the optimal CVaR as a plain solve does, in part of the time; more closely if the limit needs it."""
    time = job.limits.time_limit
    limits = job.limits if time is None else replace(job.limits, time_limit=PLAIN * time)

    def attempt(prepared: Prepared) -> Stage[_Safest]:
        began, explored = now(), explore(prepared, job.alpha, limits)
        solution = solution_for(explored, job.alpha, limits=limits.for_the_rest)
        return stage_of(prepared, solution, job.alpha, began).holding(_Safest(explored, solution))

    def unfinished(prepared: Prepared, stopped: str) -> Stage[_Safest]:
        stage = stage_of(prepared, at_hand(prepared, job.alpha, stopped), job.alpha, now())
        return stage.holding(_Safest(None, stage.found))

    def bounded(target: Target) -> Stage[_Safest]:
        def first(prepared: Prepared, alpha: float) -> float:
            return first_step(prepared, alpha, target, limits)

        return replace(job, target=target, limits=limits).refined(attempt, first, at_hand=unfinished)

    with limits:
        stage = bounded(job.target if job.target.exact else Target())
        above = cap.limits(stage.bracket)[0] - stage.bracket.lower
        if stage.stopped or job.step is not None or not 0 < above < stage.bracket.gap / SHARE:
            return stage
        finer = bounded(Target(gap=max(SHARE * above, NARROWER * stage.bracket.gap)))
        return finer if finer.bracket.gap < stage.bracket.gap else stage


def _attempt(job: Job, safest: Stage[_Safest], limit: _Limit) -> Stage[Solution]:
    """Find the best policy within the limit at one step; ``safest`` is the plan of minimal CVaR at that step."""
    explored, optimum = safest.found.explored, safest.found.solution
    here, least = _Room.of(job, explored, limit, safest.bracket.upper), explored.least
    stopped = _stopped(lambda: _search(job, here, limit, safest))
    found = here.chosen(optimum, job.limits.for_the_rest)
    least = here.search.bound_so_far(here.sure)
    if not stopped and found.expected > least:
        bounds = list[float]()
        stopped = _stopped(lambda: bounds.append(here.search.least_expected(here.sure)))
        least = max([least, *bounds])
    found = replace(found, expected_lower=min(max(least, explored.least), found.expected))
    return _stage(safest, found, stopped or safest.stopped)


def _search(job: Job, here: "_Room", limit: _Limit, safest: Stage[_Safest]) -> None:
    """Try the weights that decide; if there are many levels, seek them with costs rounded to a coarser step."""
    levels, scale = len(safest.found.explored.swept.excess), safest.prepared.scale
    if here.search.begin(here.cap):
        return None
    if levels <= 2 * SEARCHED:
        return here.search.search(here.cap, WEIGHTS)
    coarse = job.prepared(short_step(scale.level_size * min(levels / SEARCHED, COARSER), safest.prepared))
    there = _Room.of(job, explore(coarse, job.alpha, job.limits, bounded=False), limit, safest.bracket.upper)
    there.search.begin(there.cap)
    there.search.search(there.cap, WEIGHTS)
    for weight in there.search.weights:
        here.search.take(weight, here.cap)


def _finer(job: Job, before: Stage[Solution], limit: _Limit) -> Stage[Solution]:
    """Refine the step until the expected cost is as close to its bound as asked for."""

    def attempt(prepared: Prepared) -> Stage[Solution]:
        began, explored = now(), explore(prepared, job.alpha, job.limits)
        if explored.stopped:
            raise Stopped(explored.stopped, TASK)
        solution = solution_for(explored, job.alpha, limits=job.limits)
        stage = stage_of(prepared, solution, job.alpha, began).holding(_Safest(explored, solution))
        if prepared.scale.rounded and stage.bracket.upper > limit.allowed:  # then nothing at this step surely keeps it
            return before
        return replace(_attempt(job, stage, limit), seconds=now() - began)

    base = job.prepared(None)
    finest = 0.0 if base.scale.rounded else base.scale.level_size
    step, stopped, _ = finer_step(before, job.target, job.limits, finest, 1, base=base)
    if stopped:
        return replace(before, stopped=stopped)
    try:
        after = job.refined(attempt, lambda prepared, alpha: step, order=1, may_stall=True)
    except Stopped as error:
        return replace(before, stopped=error.reason)
    lower = max(before.bracket.lower, after.bracket.lower)
    best = after if after.bracket.upper <= before.bracket.upper else before
    return replace(best, bracket=replace(best.bracket, lower=lower), stopped=after.stopped)


@dataclass(frozen=True)
class _Room:
    """The limit in the levels of one prepared model, and the search there."""

    weighing: Weighing
    search: Single | Mixing
    allowed: float  # the limit
    margin: float  # its rounding error: measured from best luck, which may be far from 0, it loses digits
    sure: float  # more than the limit may be
    charged: float  # what rounding adds to the CVaR of the costs charged, for the plan of minimal CVaR

    @classmethod
    def of(cls, job: Job, explored: Explored, limit: _Limit, upper: float) -> "_Room":
        """Convert the limit; ``upper`` bounds the CVaR of the plan of minimal CVaR from above."""
        scale, levels = explored.prepared.scale, np.arange(len(explored.swept.excess))
        least = float((levels + explored.swept.excess / job.alpha).min())
        charged = least - scale.in_levels(upper) if scale.rounded else 0.0
        allowed = max(scale.in_levels(limit.allowed), 0.0 if scale.rounded else least)
        size = (abs(limit.allowed) + abs(scale.in_units(0))) / scale.level_size
        margin = 16 * UNIT * (allowed + abs(charged) + size)
        sure = max(allowed, scale.in_levels(limit.upto)) + 2 * margin
        weighing = Weighing(explored, job.alpha, job.limits, sure + max(charged, 0.0))
        return cls(weighing, (Mixing if limit.randomise else Single)(weighing), allowed, margin, sure, charged)

    @property
    def cap(self) -> float:
        """The limit for costs as charged."""
        return self._cap(self.charged)

    def _cap(self, charged: float) -> float:
        return self.allowed + charged + (self.margin if isinstance(self.search, Single) else 0.0)

    def chosen(self, optimum: Solution, limits: Limits) -> Solution:
        """Return the best policy found whose own CVaR is within the limit; ``optimum`` is."""
        prepared, expected = self.weighing.prepared, self.weighing.explored.expected
        best, charged, worth = optimum, self.charged, 0.0
        for _ in range(TRIES):
            found = self.search.best(self._cap(charged))
            if found is None and best is optimum and isinstance(self.search, Single) and self.search.weights:
                weight = STEEPER * max(self.search.weights)
                if _stopped(partial(self.search.take, weight, self._cap(charged))):
                    break
                continue
            if found is None or found.expected >= best.expected - worth:
                break
            policy = _policy(prepared, found)
            try:
                own = own_tail(policy, expected, found.cvar, self.weighing.alpha, limits=limits)
            except Stopped:
                break
            upper = min(own.upper, found.cvar) if prepared.scale.rounded else found.cvar
            if upper <= self.allowed + self.margin:
                best = replace(
                    optimum,
                    policy=policy,
                    var=own.var,
                    cvar=np.nan if own.notes else min(own.cvar, found.cvar),
                    expected=found.expected,
                    steps=own.steps,
                    notes=(*_drawn(prepared, policy, found), *own.notes),
                )
            worth = GAIN * (optimum.expected - best.expected)
            charged = found.cvar - upper - max(upper - self.allowed, 0.0) / 4  # somewhat less, to come inside
        return best


def _policy(prepared: Prepared, found: Found | Mixture) -> BudgetPolicy:
    if isinstance(found, Found):
        return BudgetPolicy.of_rows(prepared, found.choice)
    if found.share in (0.0, 1.0):  # nothing to draw
        return BudgetPolicy.of_rows(prepared, (found.first if found.share == 1.0 else found.second).choice)
    first, second = (Choices.of_rows(each.choice) for each in (found.first, found.second))
    return MixedPolicy(prepared, first, found.first.budget, other=second, share=found.share)


def _stopped(work: Callable[[], object]) -> str:
    """Work; return why it stopped early, or an empty text."""
    try:
        work()
    except Stopped as error:
        return error.reason
    except TooLarge:
        return "memory"
    return ""


def _stage(safest: Stage[_Safest], solution: Solution, stopped: str) -> Stage[Solution]:
    """Return a solution as a stage, with its bracket on the expected cost."""
    prepared, expected = safest.prepared, safest.prepared.scale.in_units(solution.expected)
    lower = min(bracket_below(prepared, solution.expected_lower), expected)
    return replace(
        safest.holding(solution, Bracket(lower, expected, prepared.scale.resolution)), stopped=stopped, needs=np.nan
    )


def limited(plan: Plan, limit: float, target: Target, *, interrupted: bool) -> Plan:
    """Return a plan with a limit on its CVaR; its status follows from the bounds on the expected cost."""
    mean = Bracket(plan.expected_lower, plan.expected, plan.policy.prepared.scale.resolution)
    return replace(plan, max_cvar=limit, status=target.status(mean, aims=True, interrupted=interrupted))


def _shown(bracket: Bracket) -> str:
    low, high = f"{bracket.lower:.9g}", f"{bracket.upper:.9g}"
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


def _drawn(prepared: Prepared, policy: BudgetPolicy, found: Found | Mixture) -> tuple[str, ...]:
    """Describe what a randomised plan draws."""
    if len(policy.parts) == 1 or not isinstance(found, Mixture):
        return ()
    parts = (found.first, found.share), (found.second, 1 - found.share)
    scale = prepared.scale
    costs = [number(scale.in_units(part.expected), certain(0.0, scale.money)) for part, _ in parts]
    shown = [f"with probability {p:.6g} one of expected cost {cost}" for (_, p), cost in zip(parts, costs, strict=True)]
    return (f"randomised: draws a policy at the start of a run, {' and '.join(shown)}",)
