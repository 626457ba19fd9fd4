"""Plans for other objectives than CVaR: the value of each, and bounds on the optimal value."""

from abc import abstractmethod
from contextlib import suppress
from dataclasses import replace
from typing import Any, Generic, TypeVar

import numpy as np

from prudent.engine.prepared import Prepared
from prudent.engine.sweep.question import TIE
from prudent.engine.values.expected_cost import least_expected_cost
from prudent.engine.values.worst_case import UNREACHED, worst_case_of
from prudent.errors import PrudentError
from prudent.methods.exact import explore
from prudent.methods.expected import at_hand
from prudent.methods.mean_cvar import Weighing
from prudent.methods.objectives import Achieved, Exceedance, Excess, MeanPlusCVaR, Objective, ValueAtRisk, WorstCase
from prudent.methods.over_budget import SWEEPING, TINY, exceeding, least_excess
from prudent.methods.solution import Solution
from prudent.methods.worst_case import worst_case
from prudent.planning.bounds import Bracket, Stage, bracket, bracket_below, bracket_of, stage_of
from prudent.planning.driver import Question, answer
from prudent.planning.job import Job
from prudent.planning.plans import planned
from prudent.planning.refine import chance_step, fair_step
from prudent.policies.chain import backward, expected_steps
from prudent.policies.distribution import rarely
from prudent.policies.own_tail import UNKNOWN, own_tail
from prudent.policies.policy import BudgetPolicy
from prudent.results.plan import Plan
from prudent.runtime.limits import UNLIMITED, Limits, Stopped

NEAR = 1e-9
"""The fraction of a level within which a budget counts as a whole level."""

Asked = TypeVar("Asked", bound=Objective)

Reached = tuple[BudgetPolicy, Achieved]
"""A policy and what it achieves."""


def solve_for(job: Job, objective: Objective) -> Plan:
    """Return the best plan for an objective other than CVaR."""
    question = QUESTIONS[type(objective)](job, objective)
    with job.stopping():
        best = answer(question)
        policy, achieved = best.found
        if best.stopped and policy.level == 0:
            solution = at_hand(best.prepared, job.alpha, best.stopped)
        else:
            solution = solution_of(policy, job.alpha, job.limits.for_the_rest)
        stage = replace(stage_of(best.prepared, solution, job.alpha), stopped=best.stopped, notes=best.notes)
        plan = planned(job, stage)
    status = job.target.status(best.bracket, aims=True, interrupted=best.stopped == "interrupted")
    notes = plan.notes
    if isinstance(objective, Exceedance) and achieved.lower == 0 < achieved.upper <= 2 * TINY:
        notes = (*notes, f"the minimal probability is below {TINY:g}; probabilities that small are not distinguished")
    return replace(plan, objective=replace(achieved, lower=best.bracket.lower), status=status, notes=notes)


def solution_of(policy: BudgetPolicy, alpha: float, limits: Limits = UNLIMITED) -> Solution:
    """Return a policy with its values; the lowest expected cost and the policy's CVaR bound the optimal CVaR.

    What the limits do not allow is unknown.
    """
    prepared = policy.prepared
    expected = least_expected_cost(prepared)
    own, mean = UNKNOWN, np.nan
    with suppress(Stopped):
        own = own_tail(policy, expected, None, alpha, limits=limits)
        mean = backward(policy, expected, limits).mean if own.notes else own.mean
    cvar = own.cvar if np.isfinite(own.cvar) else np.nan
    return Solution.unswept(
        policy, limits, var=own.var, cvar=cvar, expected=mean, upper=own.upper, steps=own.steps, notes=own.notes
    )


class BestFor(Question[Reached], Generic[Asked]):
    """The best policy for an objective; its gap is about in proportion to the step, but part of it may be ties."""

    order, may_stall, step_for = 1, True, staticmethod(chance_step)

    def __init__(self, job: Job, objective: Asked) -> None:
        super().__init__(job)
        self.objective = objective

    @abstractmethod
    def achieve(self, prepared: Prepared, limits: Limits) -> Reached:
        """Return the best policy, and the value it achieves, in the user's units."""

    @abstractmethod
    def unswept(self, prepared: Prepared, hand: Solution) -> Achieved:
        """Return what is known of the value of the policy at hand, and of the optimum, without a sweep."""

    def attempt(self, prepared: Prepared, limits: Limits) -> Stage[Reached]:
        """Find the best policy."""
        policy, achieved = self.achieve(prepared, limits)
        step = 0.0 if isinstance(self.objective, Exceedance) else prepared.scale.resolution
        return Stage(prepared, (policy, achieved), Bracket(achieved.lower, achieved.upper, step), policy.level)

    def at_hand(self, stopped: Stopped) -> Stage[Reached]:
        """Return the policy of lowest expected cost."""
        prepared = self.job.prepared(self.job.step)
        hand = at_hand(prepared, self.job.alpha, stopped.reason)
        achieved = self.unswept(prepared, hand)
        found, bounds = (hand.policy, achieved), Bracket(achieved.lower, achieved.upper)
        return Stage(prepared, found, bounds, stopped=stopped.reason)

    def value(self, value: float, lower: float, upper: float) -> Achieved:
        """Return a value of the objective with its bounds."""
        return Achieved(self.objective.name, value, lower, upper, self.objective.parameter)


def _mean(prepared: Prepared, hand: Solution) -> Bracket:
    """Return bounds on the lowest expected cost."""
    most = float(least_expected_cost(prepared).upper[prepared.start])
    return bracket_of(prepared, replace(hand, upper=max(most, hand.lower)), 1.0)


class LeastChance(BestFor[Exceedance]):
    """The minimal probability of exceeding a budget."""

    def achieve(self, prepared: Prepared, limits: Limits) -> Reached:
        """Sweep the budgets up to the one asked for."""
        w = prepared.scale.level_within(self.objective.budget)
        choice = least_expected_cost(prepared).choice
        most = worst_case_of(prepared, choice, limits)[prepared.start]  # UNREACHED if unbounded
        if w < 0 or w >= most:  # best luck exceeds the budget, or the policy of least expected cost never does
            chance = float(w < 0)
            return BudgetPolicy.of_states(prepared, choice), self.value(chance, chance, chance)
        found = exceeding(prepared, w, limits)
        chance, low, high = (float(chances[w]) for chances in (found.chance, found.low, found.high))
        return found.policy(w), self.value(chance, low, high)

    def unswept(self, prepared: Prepared, hand: Solution) -> Achieved:
        """Return that it is a probability."""
        return self.value(np.nan, 0.0, 1.0)


class LeastExcess(BestFor[Excess]):
    """The minimal expected excess over a budget."""

    def achieve(self, prepared: Prepared, limits: Limits) -> Reached:
        """Sweep the budgets up to the one asked for."""
        scale, least, start = prepared.scale, least_expected_cost(prepared), prepared.start
        budget = self.objective.budget
        w = scale.level_within(budget)
        if w >= worst_case_of(prepared, least.choice, limits)[start]:  # that of least expected cost never does
            return BudgetPolicy.of_states(prepared, least.choice), self.value(0.0, 0.0, 0.0)
        if w < 0:  # best luck exceeds it, so all further cost is excess
            policy, low = BudgetPolicy.of_states(prepared, least.choice), float(least.lower[start])
            high, above, value = float(least.upper[start]), budget, scale.in_units(float(least.value[start])) - budget
        else:
            part = scale.in_levels(budget) - w
            policy, found, least_found, upto = least_excess(prepared, w, part if part > NEAR else 0.0, limits)
            low, above = upto + least_found, scale.in_units(upto)
            high, value = w + part + found.above, found.excess * scale.level_size
        # A budget plus the expected excess over it is the expected larger of cost and budget, bounded like an expected
        # cost.
        steps = float(expected_steps(policy, limits)[-1]) if np.isinf(scale.relative) else 0.0
        lower, upper = bracket_below(prepared, low) - above, bracket(prepared, 0.0, high, steps, 1.0).upper - budget
        return policy, self.value(value, max(min(lower, value), 0.0), max(upper, value))

    def unswept(self, prepared: Prepared, hand: Solution) -> Achieved:
        """Return the excess of the lowest expected cost, and the expected cost above best luck."""
        mean, budget = _mean(prepared, hand), self.objective.budget
        return self.value(np.nan, max(mean.lower - budget, 0.0), mean.upper - min(bracket_below(prepared, 0.0), budget))


class LeastVaR(BestFor[ValueAtRisk]):
    """The minimal VaR."""

    def achieve(self, prepared: Prepared, limits: Limits) -> Reached:
        """Sweep the budgets up to the optimal CVaR, which no minimal VaR exceeds."""
        alpha = self.job.alpha
        explored = explore(prepared, alpha, limits).finished(SWEEPING)
        f = np.arange(len(explored.swept.excess)) + explored.swept.excess / alpha
        for tie in (TIE, 0.0):  # if ties raise the plan's own VaR, sweep again without tolerance
            found = exceeding(prepared, int(np.ceil(f.min())), limits, tie)
            # The least VaR found, and a lower bound on the least one.
            w, sure = (int(np.argmax(rarely(np.append(each, 0.0), alpha))) for each in (found.chance, found.low))
            value, lower = (prepared.scale.total(level) for level in (w, sure))
            own = own_tail(found.policy(w), found.expected, None, alpha, limits=limits).var
            if not own > value + prepared.scale.level_size / 2:
                break
        else:
            value = own
        if prepared.scale.deviation > 0:
            lower = bracket_below(prepared, float(sure))
        return found.policy(w), self.value(value, min(lower, value), value)

    def unswept(self, prepared: Prepared, hand: Solution) -> Achieved:
        """Return the cost of best luck, and the CVaR of the policy at hand."""
        return self.value(np.nan, bracket_below(prepared, 0.0), bracket_of(prepared, hand, self.job.alpha).upper)


class LeastMeanPlusCVaR(BestFor[MeanPlusCVaR]):
    """The minimal sum of the expected cost and a weight times CVaR; its gap shrinks as that of CVaR."""

    order, step_for = 2, staticmethod(fair_step)

    def achieve(self, prepared: Prepared, limits: Limits) -> Reached:
        """Sweep for CVaR, then for the weight."""
        alpha, weight = self.job.alpha, self.objective.weight
        weighing = Weighing(explore(prepared, alpha, limits), alpha, limits)
        found = weighing.weigh(weight)
        value = prepared.scale.in_units(found.expected) + weight * prepared.scale.in_units(found.cvar)
        lower = (1 + weight) * bracket_below(prepared, weighing.lines[-1][1] / (1 + weight))
        return BudgetPolicy.of_rows(prepared, found.choice), self.value(value, min(lower, value), value)

    def unswept(self, prepared: Prepared, hand: Solution) -> Achieved:
        """Return a bound by the lowest expected cost alone, since CVaR is at least that."""
        mean, weight = _mean(prepared, hand), self.objective.weight
        upper = mean.upper + weight * bracket_of(prepared, hand, self.job.alpha).upper
        return self.value(np.nan, (1 + weight) * mean.lower, upper)


class LeastWorstCase(BestFor[WorstCase]):
    """The minimal worst-case cost."""

    def achieve(self, prepared: Prepared, limits: Limits) -> Reached:
        """Run the method for the worst case."""
        found = worst_case(prepared, self.job.alpha, limits)
        kept = prepared.scale.in_units(float(found.policy.level))  # above the minimum if costs were rounded up
        return found.policy, self._bounded(prepared, found, kept)

    def unswept(self, prepared: Prepared, hand: Solution) -> Achieved:
        """Return the minimum and the worst case of the policy at hand, both known."""
        own = worst_case_of(prepared, least_expected_cost(prepared).choice)[prepared.start]
        return self._bounded(prepared, hand, prepared.scale.in_units(float(own)) if own < UNREACHED else np.inf)

    def _bounded(self, prepared: Prepared, found: Solution, kept: float) -> Achieved:
        if not np.isfinite(found.worst):
            raise PrudentError("no policy bounds the cost, so no worst-case cost is finite; choose another objective")
        return self.value(kept, prepared.scale.in_units(found.worst), kept)


QUESTIONS: dict[type[Objective], type[BestFor[Any]]] = {
    Exceedance: LeastChance,
    Excess: LeastExcess,
    ValueAtRisk: LeastVaR,
    MeanPlusCVaR: LeastMeanPlusCVaR,
    WorstCase: LeastWorstCase,
}
"""The question for each objective."""
