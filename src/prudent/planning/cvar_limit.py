"""The lowest expected cost within a limit on CVaR."""

from dataclasses import dataclass, replace

import numpy as np

from prudent.engine.prepared import Prepared
from prudent.engine.values.bellman import UNIT
from prudent.errors import PrudentError, as_number
from prudent.kernels.choices import Choices
from prudent.methods.exact import explore, solution_for
from prudent.methods.mean_cvar import Found, Weighing, least_mean_within
from prudent.methods.mixture import Mixture, mixed_mean_within
from prudent.methods.solution import Solution
from prudent.planning.bounds import Bracket, Target, bracket_below
from prudent.planning.driver import Job
from prudent.planning.plans import plan_of, stage_of
from prudent.planning.refine import Stage, chance_step
from prudent.policies.mixed import MixedPolicy
from prudent.policies.own_tail import own_tail
from prudent.policies.policy import BudgetPolicy
from prudent.results.plan import Plan
from prudent.runtime.clock import now
from prudent.runtime.limits import Stopped
from prudent.runtime.tables import certain, number

__all__ = ["Cap", "cap_of", "limited", "solve_within"]

FORGIVEN = 1e-12
"""How far a limit may be below the optimal CVaR, relative to its size: rounding error of floats."""

WEIGHTS = 60
"""The most weights to try."""


@dataclass(frozen=True)
class Cap:
    """How much CVaR the user accepts to lower the expected cost."""

    slack: float | None  # above the optimal CVaR, relative to its size
    more: float | None  # above the optimal CVaR, in the user's units
    most: float | None  # the limit itself
    randomise: bool

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
class _Within:
    """The best solution found within a limit."""

    solution: Solution
    optimum: Solution  # of minimal CVaR
    bracket: Bracket  # on the optimal CVaR
    limit: float  # on CVaR; nan if the solve stopped before it could be used


def solve_within(job: Job, cap: Cap) -> Plan:
    """Return the best plan found with a CVaR up to a limit.

    A gap that the user gives is one of the expected cost.  Part of it may stay open at any step, because the best plan
    need not be optimal for any weight of CVaR.  So without a given gap, the step is as fine as the optimal CVaR needs.
    """
    with job.limits:
        stage = job.refined(
            lambda prepared: _attempt(job, prepared, cap), chance_step, order=1, one_question=False, may_stall=True
        )
    found = stage.found
    solved = replace(stage.holding(found.solution, found.bracket), seconds=job.seconds)
    plan = plan_of(job.model, "exact", job.alpha, solved, job.target, job.limits)
    if np.isnan(found.limit):
        note = "stopped before the limit on CVaR could be used; this is a plan for the minimal CVaR"
        return replace(plan, notes=(*plan.notes, note))
    plan = limited(plan, found.limit, job.target, interrupted=stage.stopped == "interrupted")
    return replace(plan, notes=(*plan.notes, _bought(plan, found.optimum)))


def _attempt(job: Job, prepared: Prepared, cap: Cap) -> Stage[_Within]:
    began, explored = now(), explore(prepared, job.alpha, job.limits)
    optimum = solution_for(explored, job.alpha)
    safest = stage_of(prepared, optimum, job.alpha, began)
    solution, limit = optimum, np.nan
    if not explored.stopped:
        try:
            weighing = Weighing(explored, job.alpha, job.limits)
            limit, solution = _within(weighing, optimum, safest.bracket, cap)
        except Stopped as stopped:  # the plan of minimal CVaR is within every limit
            limit = cap.limit(safest.bracket.upper)
            solution = replace(optimum, expected_lower=explored.least, stopped=stopped.reason)
    asked = safest.bracket
    if job.target.said:
        lower, upper = bracket_below(prepared, solution.expected_lower), prepared.scale.in_units(solution.expected)
        asked = Bracket(lower, upper, prepared.scale.resolution)
    found = _Within(solution, optimum, safest.bracket, limit)
    return Stage(prepared, found, asked, safest.levels, now() - began, solution.stopped)


def limited(plan: Plan, limit: float, target: Target, *, interrupted: bool) -> Plan:
    """Return a plan with a limit on its CVaR; its status follows from the bounds on the expected cost."""
    mean = Bracket(plan.expected_lower, plan.expected, plan.policy.prepared.scale.resolution)
    return replace(plan, max_cvar=limit, status=target.status(mean, aims=True, interrupted=interrupted))


def _within(weighing: Weighing, optimum: Solution, bracket: Bracket, cap: Cap) -> tuple[float, Solution]:
    """Return the limit on CVaR, and the best policy found within it."""
    prepared, explored, safest = weighing.prepared, weighing.explored, weighing.safest
    least = prepared.scale.in_units(safest.cvar)
    limit = cap.limit(least)
    if limit < least - FORGIVEN * bracket.size:
        raise PrudentError(
            f"max_cvar is {limit:.9g}; no plan {'is known to have' if prepared.scale.rounded else 'has'} a CVaR that "
            f"low. The optimal CVaR is {_shown(bracket)}; raise max_cvar"
        )
    # Measured from best luck, which may be far from 0, the limit loses digits.  A plan that exceeds it by at most the
    # margin is accepted, and the bound covers more than the margin.
    margin = 16 * UNIT * (weighing.most + (abs(limit) + abs(prepared.scale.in_units(0))) / prepared.scale.level_size)
    allowed = max(prepared.scale.in_levels(limit), safest.cvar)
    sure = allowed + 2 * margin
    found: Found | Mixture
    if cap.randomise:
        found = mixed_mean_within(weighing, allowed, sure, WEIGHTS)
        policy, bound = _mixed_policy(prepared, found), found.bound
    else:
        found, bound = least_mean_within(weighing, allowed + margin, sure, WEIGHTS)
        policy = BudgetPolicy.of_rows(prepared, found.choice)
    own = own_tail(policy, explored.expected, found.cvar, weighing.alpha)
    return limit, replace(
        optimum,
        policy=policy,
        var=own.var,
        cvar=np.nan if own.notes else min(own.cvar, found.cvar),
        expected=found.expected,
        expected_lower=min(max(bound, explored.least), found.expected),
        steps=own.steps,
        stopped=weighing.stopped,
        notes=(*_drawn(prepared, policy, found), *own.notes),
    )


def _shown(bracket: Bracket) -> str:
    low, high = f"{bracket.lower:.9g}", f"{bracket.upper:.9g}"
    return high if low == high else f"between {low} and {high}"


def _bought(plan: Plan, optimum: Solution) -> str:
    """Describe the CVaR that a limit costs and the expected cost that it saves."""
    prepared = plan.policy.prepared
    cvar, mean = prepared.scale.in_units(optimum.cvar), prepared.scale.in_units(optimum.expected)
    more, saved = max(plan.cvar - cvar, 0.0), max(mean - plan.expected, 0.0)
    share = f" ({saved / abs(mean):.1%})" if mean != 0 else ""
    scale = prepared.scale
    exact, known = (certain(gap, scale.money) for gap in (0.0, plan.upper - plan.lower if scale.rounded else 0.0))
    expected, lowered = number(mean, exact), number(saved, exact)
    if np.isnan(more):
        return f"at the minimal CVaR the expected cost is {expected}; the limit lowers it by {lowered}{share}"
    return (
        f"at the minimal CVaR, {number(cvar, known)}, the expected cost is {expected}; an extra CVaR of "
        f"{number(more, known)} lowers it by {lowered}{share}"
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


def _mixed_policy(prepared: Prepared, found: Mixture) -> BudgetPolicy:
    if found.share in (0.0, 1.0):  # nothing to draw
        return BudgetPolicy.of_rows(prepared, (found.first if found.share == 1.0 else found.second).choice)
    first, second = (Choices.of_rows(each.choice) for each in (found.first, found.second))
    return MixedPolicy(prepared, first, found.first.budget, other=second, share=found.share)
