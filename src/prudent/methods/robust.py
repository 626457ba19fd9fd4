"""The exact method against nature: minimal worst-case CVaR first, lowest worst-case expected cost second.

Nature chooses the probabilities of each action from their intervals, anew at every visit and knowing the history.  With
b the remaining budget, U(s, b) the least worst-case expected excess and V the least worst-case expected cost:

    U(s, b)    = V(s) - b                                                              for b <= 0
    U(s, b)    = min over a of  max over p of  sum over outcomes of  p U(s', b - c)    for b > 0
    f(w)       = w + U(start, w) / alpha,      least worst-case CVaR = min over w of f(w).

For a fixed policy the distributions of the cost that nature can cause form a convex set, and w + E[(C - w)+] / alpha is
convex in w and linear in the distribution.  So the maximum over nature and the minimum over w can be exchanged.

*Upper bound.*  The least f at a level, which the returned policy attains, holds for every model in the set.

*Lower bound.*  Because of the maximum, f is no longer concave between levels.  But for fixed choices of nature it is,
so there it is at least the smaller of the values at both ends.  For budgets between w - 1 and w, fix nature's worst
choices at w, wherever that many levels are left.  At w the value is U itself; at w - 1 it comes from a second table,
swept together with U.  The least of these over all w is a lower bound.  The two bounds meet if nature's choices do not
change from one level to the next, and always for intervals of width 0.

*Rounded costs.*  The policy is planned on costs rounded up, so the upper bound holds.  The lower bound is that of costs
rounded down until the budget is used up, and true costs afterwards: no run costs more than before, whatever is played
and whatever nature does.  Row b of that sweep stands for budgets above b - 1, down to their limit, which is what the
second table has.  Both bounds are off by about a step for each action of a run.

*The model itself* gives another lower bound, since its probabilities are among nature's choices.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from prudent.engine.cost_step import nice_step
from prudent.engine.prepare import prepare
from prudent.engine.prepared import Prepared
from prudent.engine.sweep.against_nature import error_of, nature_bytes, shared
from prudent.engine.sweep.driver import budget_sweep
from prudent.engine.sweep.question import Question, without_safety
from prudent.engine.uncertain import Uncertain, uncertain
from prudent.engine.values.bellman import UNIT
from prudent.engine.values.robust_cost import worst_expected_cost
from prudent.kernels.questions import Base
from prudent.methods.exact import Explored
from prudent.methods.solution import Nominal, Solution
from prudent.models.intervals import Intervals
from prudent.models.rows import FloatArray
from prudent.policies.chain import spent_budget
from prudent.policies.own_tail import OwnTail, own_tail
from prudent.policies.policy import BudgetPolicy
from prudent.runtime.limits import UNLIMITED, Limits

MARGIN = 2
"""The factor by which a step is advised that is larger than needed: rounding adds levels."""


@dataclass(frozen=True)
class RobustExplored(Explored):
    """The result of the sweep against nature: excess, mean and what is expected are worst-case ones."""

    model: Uncertain
    nominal: Explored | None = None  # of the model itself, if that was explored, too
    beneath: "RobustExplored | None" = None  # of costs rounded down, if costs are rounded

    @cached_property
    def margin(self) -> FloatArray:
        """Bounds on the relative errors of the sweep's values, by budget."""
        return error_of(self.model, np.arange(len(self.swept.excess)))

    def lower(self, alpha: float) -> float:
        """Return a lower bound on the minimal worst-case CVaR."""
        known = 0.0 if self.nominal is None else self.nominal.lower(alpha)
        if self.beneath is not None:
            return max(known, self.beneath.lower(alpha))
        below = (self.swept.low * (1 - self.margin))[1:]
        return max(known, self._least(below, alpha, len(below)), self.least)

    def policy(self, budget: int, *, last: bool = False) -> BudgetPolicy:
        """Return the policy that starts with a budget; the sweep chose an action wherever no run can be, too."""
        choice = self.swept.choice[: budget + 1]
        return BudgetPolicy.of_rows(self.prepared, choice if last else choice.copy())

    def steps(self, w: int) -> float:
        """Return a bound on the expected number of actions: until the budget is spent, and afterwards."""
        prepared, sets = self.prepared, self.model.sets
        away = np.maximum(1 - sets.loop_high, np.add.reduceat(sets.low, sets.outcome_start[:-1]))
        plays = float((1 / away).max(initial=1.0))
        if prepared.finite:
            return prepared.longest * plays
        after = float(self.expected.steps().max(initial=0.0))
        return float((w + 1) * (prepared.free_depth.max(initial=0) + 1) * plays + after * plays)

    def at(self, alpha: float, w: int, *, first: bool = True, limits: Limits = UNLIMITED) -> OwnTail:
        """Return the worst-case numbers of the policy that starts with a budget, as the sweep has them."""
        excess, mean, error = float(self.swept.excess[w]), float(self.swept.mean[w]), float(self.margin[w])
        lower = self.lower(alpha)
        upper = max((w + excess * (1 + error) / alpha) * (1 + 4 * UNIT), lower)
        return OwnTail(self.prepared.scale.total(w), max(w + excess / alpha, lower), mean, upper, self.steps(w), error)

    def in_model(self, alpha: float, w: int, limits: Limits = UNLIMITED) -> tuple[Nominal, tuple[str, ...]]:
        """Return the policy's numbers in the model itself, in levels except for VaR, and notes on unknown ones."""
        policy, upper = self.policy(w), self.at(alpha, w).upper
        own = own_tail(policy, spent_budget(policy, limits), upper, alpha, limits=limits)
        return Nominal(own.cvar if not own.notes else np.nan, own.var, own.mean), own.notes

    def _own(self, alpha: float, policy: BudgetPolicy, first: bool, limits: Limits) -> tuple[OwnTail, str]:
        """Return what the sweep has: all numbers."""
        return self.at(alpha, policy.level), self.stopped


def explore_against(
    prepared: Prepared, intervals: Intervals, alpha: float, limits: Limits, nominal: Explored | None = None
) -> RobustExplored:
    """Sweep the budgets against nature as far as alpha requires."""
    if not prepared.scale.rounded:
        return swept_against(shared(uncertain(prepared, intervals)), alpha, limits, nominal=nominal)
    below = prepare(prepared.model, prepared.scale.step, limits, down=True)
    beneath = swept_against(uncertain(below, intervals, down=True), alpha, limits)
    beneath = replace(beneath, swept=replace(beneath.swept, choice=beneath.swept.choice[:0].copy()))
    found = swept_against(uncertain(prepared, intervals), alpha, limits, nominal=nominal, beneath=beneath)
    return replace(found, swept=replace(found.swept, stopped=found.stopped or beneath.stopped))


def swept_against(model: Uncertain, alpha: float, limits: Limits, **more: Any) -> RobustExplored:
    """Sweep the budgets as far as alpha requires, for a prepared model and its sets."""
    prepared, worst = model.prepared, worst_expected_cost(model, limits)
    base = Base(worst.upper, worst.lower + 1, worst.value)
    question = Question(base, worst.choice, without_safety(prepared), nature=model)
    sure = float(worst.value[prepared.start])
    need = nature_bytes(question, int(sure) + 2)
    if need > limits.memory:
        limits.check(need, "the tables of a robust plan", _advice(question, sure, limits.memory))
    swept = budget_sweep(prepared, question, limits, alpha=alpha)
    return RobustExplored(prepared, swept, float(worst.lower[prepared.start]), worst, model, **more)


def _advice(question: Question, sure: float, memory: int) -> str:
    """Return advice for a sweep that needs more memory than there is: a step at which its first tables fit."""
    assert question.nature is not None
    prepared, fixed = question.nature.prepared, nature_bytes(question, 0)
    fewer = (memory - fixed) / (MARGIN * (nature_bytes(question, 1) - fixed))
    step = nice_step(prepared.scale.level_size * (sure + 2) / fewer) if fewer > 2 else np.inf
    if step > float(np.abs(prepared.model.cost).max(initial=0.0)):
        return "raise memory= (--memory)"
    return f"raise memory= (--memory), or set a larger step (step=, --step), from about {step:g} on"


def robust(prepared: Prepared, intervals: Intervals, alpha: float, limits: Limits) -> Solution:
    """Return a policy of minimal worst-case CVaR and, among those, lowest worst-case expected cost."""
    with limits:  # after Ctrl-C, evaluate what was swept
        explored = explore_against(prepared, intervals, alpha, limits)
        return explored.solution(alpha, last=True, limits=limits.for_the_rest)
