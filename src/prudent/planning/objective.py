"""The best policy for an objective, its value, and bounds on the optimal value."""

from contextlib import nullcontext, suppress
from dataclasses import replace

import numpy as np

from prudent.engine.prepared import Prepared
from prudent.engine.sweep.task import TIE
from prudent.engine.values.expected_cost import least_expected_cost, surely_expected
from prudent.engine.values.worst_case import UNREACHED, true_worst_case, worst_case_of
from prudent.errors import PrudentError
from prudent.methods.exact import explore
from prudent.methods.exceedance import TINY, exceeding
from prudent.methods.excess import least_excess
from prudent.methods.expected import at_hand
from prudent.methods.mean_cvar import Weighing
from prudent.methods.objectives import Achieved, Exceedance, Excess, MeanPlusCVaR, Objective, ValueAtRisk
from prudent.methods.solution import Solution
from prudent.methods.worst_case import worst_case
from prudent.planning.bounds import Bracket, bracket, bracket_below, bracket_of
from prudent.planning.driver import Job
from prudent.planning.plans import plan_of, stage_of
from prudent.planning.refine import Stage, chance_step, fair_step
from prudent.policies.chain import backward, expected_steps
from prudent.policies.own_tail import UNKNOWN, own_tail
from prudent.policies.policy import BudgetPolicy
from prudent.results.plan import Plan
from prudent.runtime.clock import now
from prudent.runtime.limits import Limits, Stopped, in_force

__all__ = ["solution_of", "solve_for"]

UNBOUNDED = "no policy bounds the cost, so no worst-case cost is finite; choose another objective"

NEAR = 1e-9
"""The fraction of a level within which a budget counts as a whole level."""


def solve_for(job: Job, objective: Objective) -> Plan:
    """Return the best plan for an objective other than CVaR."""

    def attempt(prepared: Prepared) -> Stage[tuple[BudgetPolicy, Achieved]]:
        began = now()
        policy, achieved = _achieve(prepared, job.alpha, objective, job.limits)
        step = 0.0 if isinstance(objective, Exceedance) else prepared.scale.resolution
        bracket = Bracket(achieved.lower, achieved.upper, step)
        return Stage(prepared, (policy, achieved), bracket, policy.level, now() - began)

    def unfinished(prepared: Prepared, stopped: str) -> Stage[tuple[BudgetPolicy, Achieved]]:
        hand = at_hand(prepared, job.alpha, stopped)
        achieved = _unswept(prepared, hand, job.alpha, objective)
        return Stage(prepared, (hand.policy, achieved), Bracket(achieved.lower, achieved.upper), stopped=stopped)

    with job.stopping():
        first, order = (fair_step, 2) if isinstance(objective, MeanPlusCVaR) else (chance_step, 1)
        best = job.refined(attempt, first, at_hand=unfinished, order=order, may_stall=True)
        policy, achieved = best.found
        if best.stopped and policy.level == 0:
            solution = at_hand(best.prepared, job.alpha, best.stopped)
        else:
            solution = solution_of(policy, job.alpha, job.limits.for_the_rest)
        stage = stage_of(best.prepared, solution, job.alpha, job.limits.began)
        stage = replace(stage, seconds=job.seconds, stopped=best.stopped, notes=best.notes)
    plan = plan_of(job.model, "exact", job.alpha, stage, job.target, job.limits)
    status = job.target.status(best.bracket, aims=True, interrupted=best.stopped == "interrupted")
    notes = plan.notes
    if isinstance(objective, Exceedance) and achieved.lower == 0 < achieved.upper <= 2 * TINY:
        notes = (*notes, f"the minimal probability is below {TINY:g}; probabilities that small are not distinguished")
    return replace(plan, objective=replace(achieved, lower=best.bracket.lower), status=status, notes=notes)


def solution_of(policy: BudgetPolicy, alpha: float, limits: Limits | None = None) -> Solution:
    """Return a policy with its values; the lowest expected cost and the policy's CVaR bound the optimal CVaR.

    What the limits do not allow is unknown.
    """
    prepared = policy.prepared
    expected = least_expected_cost(prepared)
    own, mean = UNKNOWN, np.nan
    with suppress(Stopped), nullcontext() if limits is None else in_force(limits):
        own = own_tail(policy, expected, None, alpha, limits=limits)
        mean = backward(policy, expected, limits).mean if own.notes else own.mean
    least = float(surely_expected(prepared)[prepared.start])
    return Solution(
        policy=policy,
        var=own.var,
        cvar=own.cvar if np.isfinite(own.cvar) else np.nan,
        expected=mean,
        expected_lower=least,
        lower=least,
        upper=own.upper,
        worst=true_worst_case(prepared),
        steps=own.steps,
        notes=own.notes,
    )


def _unswept(prepared: Prepared, hand: Solution, alpha: float, objective: Objective) -> Achieved:
    """Return what is known of the value of the policy at hand, and of the optimum, without a sweep."""
    scale, base = prepared.scale, bracket_below(prepared, 0.0)
    most = float(least_expected_cost(prepared).upper[prepared.start])
    mean = bracket_of(prepared, replace(hand, upper=max(most, hand.lower)), 1.0)
    if isinstance(objective, Exceedance):
        return Achieved("exceedance", np.nan, 0.0, 1.0, objective.budget)
    if isinstance(objective, Excess):
        least = max(mean.lower - objective.budget, 0.0)
        return Achieved("excess", np.nan, least, mean.upper - min(base, objective.budget), objective.budget)
    if isinstance(objective, ValueAtRisk):
        return Achieved("var", np.nan, base, bracket_of(prepared, hand, alpha).upper)
    if isinstance(objective, MeanPlusCVaR):
        weight, upper = objective.weight, bracket_of(prepared, hand, alpha).upper
        return Achieved("mean-plus-cvar", np.nan, (1 + weight) * mean.lower, mean.upper + weight * upper, weight)
    if not np.isfinite(hand.worst):
        raise PrudentError(UNBOUNDED)
    own = worst_case_of(prepared, least_expected_cost(prepared).choice)[prepared.start]
    kept = scale.in_units(float(own)) if own < UNREACHED else np.inf
    return Achieved("worst-case", kept, scale.in_units(hand.worst), kept)


def _achieve(prepared: Prepared, alpha: float, objective: Objective, limits: Limits) -> tuple[BudgetPolicy, Achieved]:
    """Return the best policy for an objective, and the value it achieves, in the user's units."""
    if isinstance(objective, Exceedance):
        return _exceedance(prepared, objective.budget, limits)
    if isinstance(objective, Excess):
        return _excess(prepared, objective.budget, limits)
    if isinstance(objective, ValueAtRisk):
        return _value_at_risk(prepared, alpha, limits)
    if isinstance(objective, MeanPlusCVaR):
        return _mean_plus_cvar(prepared, alpha, objective.weight, limits)
    found = worst_case(prepared, alpha, limits)
    value = prepared.scale.in_units(found.worst)
    if not np.isfinite(value):
        raise PrudentError(UNBOUNDED)
    kept = prepared.scale.in_units(float(found.policy.level))  # above the minimum if costs were rounded up
    return found.policy, Achieved("worst-case", kept, value, kept)


def _exceedance(prepared: Prepared, budget: float, limits: Limits) -> tuple[BudgetPolicy, Achieved]:
    w = prepared.scale.level_within(budget)
    choice = least_expected_cost(prepared).choice
    most = worst_case_of(prepared, choice)[prepared.start]  # UNREACHED if unbounded
    if w < 0 or w >= most:  # best luck exceeds the budget, or the policy of least expected cost never does
        chance = float(w < 0)
        return BudgetPolicy.of_states(prepared, choice), Achieved("exceedance", chance, chance, chance, budget)
    found = exceeding(prepared, w, limits)
    chance, low, high = (float(chances[w]) for chances in (found.chance, found.low, found.high))
    return found.policy(w), Achieved("exceedance", chance, low, high, budget)


def _excess(prepared: Prepared, budget: float, limits: Limits) -> tuple[BudgetPolicy, Achieved]:
    scale, least, start = prepared.scale, least_expected_cost(prepared), prepared.start
    w = scale.level_within(budget)
    if w >= worst_case_of(prepared, least.choice)[start]:  # the policy of least expected cost never exceeds it
        return BudgetPolicy.of_states(prepared, least.choice), Achieved("excess", 0.0, 0.0, 0.0, budget)
    if w < 0:  # best luck exceeds it, so all further cost is excess
        policy, low = BudgetPolicy.of_states(prepared, least.choice), float(least.lower[start])
        high, above, value = float(least.upper[start]), budget, scale.in_units(float(least.value[start])) - budget
    else:
        part = scale.in_levels(budget) - w
        found = least_excess(prepared, w, part if part > NEAR else 0.0, limits)
        policy, low, above = found.policy, found.upto + found.low, scale.in_units(found.upto)
        high, value = w + part + found.high, found.excess * scale.level_size
    # A budget plus the expected excess over it is the expected larger of cost and budget, bounded like an expected
    # cost.
    steps = float(expected_steps(policy)[-1]) if np.isinf(scale.relative) else 0.0
    lower, upper = bracket_below(prepared, low) - above, bracket(prepared, 0.0, high, steps, 1.0).upper - budget
    return policy, Achieved("excess", value, max(min(lower, value), 0.0), max(upper, value), budget)


def _value_at_risk(prepared: Prepared, alpha: float, limits: Limits) -> tuple[BudgetPolicy, Achieved]:
    explored = explore(prepared, alpha, limits)
    if explored.stopped:
        raise Stopped(explored.stopped, "sweeping the budgets")
    f = np.arange(len(explored.swept.excess)) + explored.swept.excess / alpha
    for tie in (TIE, 0.0):  # if ties raise the plan's own VaR, sweep again without tolerance
        found = exceeding(prepared, int(np.ceil(f.min())), limits, tie)  # VaR is never above CVaR
        w, sure = found.value_at_risk(alpha)
        value, lower = (prepared.scale.total(level) for level in (w, sure))
        own = own_tail(found.policy(w), found.expected, None, alpha).var
        if not own > value + prepared.scale.level_size / 2:
            break
    else:
        value = own
    if prepared.scale.deviation > 0:
        lower = bracket_below(prepared, float(sure))
    return found.policy(w), Achieved("var", value, min(lower, value), value)


def _mean_plus_cvar(prepared: Prepared, alpha: float, weight: float, limits: Limits) -> tuple[BudgetPolicy, Achieved]:
    weighing = Weighing(explore(prepared, alpha, limits), alpha, limits)
    found = weighing.weigh(weight)
    value = prepared.scale.in_units(found.expected) + weight * prepared.scale.in_units(found.cvar)
    lower = (1 + weight) * bracket_below(prepared, weighing.lines[-1][1] / (1 + weight))
    policy = BudgetPolicy.of_rows(prepared, found.choice)
    return policy, Achieved("mean-plus-cvar", value, min(lower, value), value, weight)
