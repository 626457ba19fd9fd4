"""The least probabilities of exceeding a budget and of finishing within it, and the least expected excess over it.

*Exceeding.*  With b the remaining budget, and P(s, b) the least probability that the cost from s exceeds it:

    P(s, b)    = 1                                                    for b < 0
    P(goal, b) = 0                                                    for b >= 0
    P(s, b)    = min over a of  sum over outcomes of  p P(s', b - c)   for b >= 0,

with the expected cost as second objective.  This is the sweep of the exact method with row b + 1 for budget b, since a
budget of 0 is not exceeded yet, and with value 1 once the budget is exceeded.  P(start, w) for all w comes from one
sweep; the least VaR at alpha is the least w with P(start, w) <= alpha.

The least expected excess U over a budget of w + t levels, w whole and 0 <= t < 1, follows the same equations with

    U(s, b)    = V(s) - b - t                                         for b < 0.

Both sweeps continue beyond budgets that some plan never exceeds, because more budget lowers the expected cost.

*Finishing*, whatever the policy: a model checker's Pmin.  Here all policies count, including those that never reach a
goal.  With Q(s, b) the least probability of reaching a goal from s at a cost of at most b:

    Q(s, b)    = 0                                                    for b < 0, and in an end component, for any b
    Q(goal, b) = 1                                                    for b >= 0
    Q(s, b)    = min over a of  sum over outcomes of  p Q(s', b - c)   for b >= 0

In an *end component* a policy can stay forever and never reach a goal, so such states end a run.  Without them every
policy ends every run, at a goal or not, and the equations have one solution.  A goal becomes a state with one action,
which counts one *arrival* and costs one level.  Q is then the least expected number of arrivals within the budget,
found by the same sweep.  As b grows, Q(start, b) rises to the least probability of reaching a goal at all, where the
sweep may stop.

*Guarantee.*  As for CVaR: each sweep also carries a lower bound.  For P and U, costs without a common step are rounded
up for the plan and down for the bound, which is that of the next level not below the budget.  For Q they are rounded up
for the lower bound and down for the upper bound.  If P or Q may be below 1e-300 and not 0, the bounds are 0 and 1e-300.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from prudent.engine.prepare import prepare
from prudent.engine.prepared import Prepared
from prudent.engine.sweep.bounded import bounded_sweep
from prudent.engine.sweep.driver import budget_sweep
from prudent.engine.sweep.question import TIE, Question, without_safety
from prudent.engine.sweep.task import Swept
from prudent.engine.values.bellman import UNIT, largest_rounding
from prudent.engine.values.expected_cost import Expected, least_expected_cost, surely_expected
from prudent.engine.values.worst_case import UNREACHED, WorstCase, least_worst_case
from prudent.kernels.questions import Base, Terms
from prudent.methods.exact import Explored
from prudent.models.amend import with_exits
from prudent.models.graph import end_components
from prudent.models.rows import BoolArray, FloatArray, offsets
from prudent.models.ssp import SSP
from prudent.policies.chain import Values
from prudent.policies.policy import BudgetPolicy
from prudent.runtime.limits import Limits, Stopped

CHANCE, ARRIVALS = Terms(accrual=0.0, slope=0.0), Terms(accrual=1.0, slope=0.0)

SWEEPING = "sweeping the budgets"

TINY = 1e-300
"""Probabilities below this are not distinguished: floats have too few digits for them, or none."""

SETTLED = 1e-12
"""The relative distance to the probability of reaching a goal at all that is close enough to stop."""


@dataclass(frozen=True)
class LeastChances:
    """Least probabilities for each budget from 0 up, in levels; the last of finishing holds for all beyond it."""

    chance: FloatArray  # (n_budgets,)  of the policy found; of finishing an upper bound where costs were rounded
    low: FloatArray  # (n_budgets,)  a lower bound on the least probability
    high: FloatArray  # (n_budgets,)  an upper bound on that of the policy found
    stopped: str  # why the sweep ended early, if it did


@dataclass(frozen=True)
class Exceeding(LeastChances):
    """Least probabilities of exceeding each budget, with the policies that attain them."""

    prepared: Prepared
    expected: Expected
    choice: NDArray[np.generic]  # (n_budgets + 1, n_states)

    def policy(self, budget: int) -> BudgetPolicy:
        """Return the policy for a budget; the budget is used up once one level more is charged."""
        return BudgetPolicy.of_rows(self.prepared, self.choice[: budget + 2].copy(), past_budget=1)


def exceeding(
    prepared: Prepared,
    most: int,
    limits: Limits,
    tie: float = TIE,
    *,
    least: float | None = None,
    partial: bool = False,
) -> Exceeding:
    """Sweep the budgets from 0 to ``most``, or until the probability is at most ``least``, if that is given.

    Probabilities within the relative tolerance ``tie`` count as equal.  If ``partial``, limits may end the sweep early.
    """
    expected, worst = least_expected_cost(prepared, limits), least_worst_case(prepared, limits)
    one = np.ones(prepared.n_states)
    base = Base(one, one, expected.value)
    until = None if least is None else lambda chance: chance <= least
    question = Question(base, expected.choice, _beyond(prepared, worst), terms=CHANCE, tie=tie)
    swept = bounded_sweep(prepared, question, limits, most=most + 1, exhausted=1.0, until=until)
    _check_answers(swept, partial=partial)
    chance = swept.excess[1:]
    low = swept.low if prepared.scale.rounded else swept.low[1:]  # a bound from rounded costs comes without row 0
    sure = np.arange(len(chance)) >= worst.value[prepared.start]  # some plan never exceeds these: exactly 0
    high = np.where(sure, chance, np.minimum(surely_below(prepared, chance), 1.0))
    low = np.append(low, np.zeros(max(len(chance) - len(low), 0)))[: len(chance)]  # 0 beyond the worst case
    low = np.where(low < TINY, 0.0, low)
    return Exceeding(chance, low, high, swept.stopped, prepared, expected, swept.choice)


def _check_answers(swept: Swept, *, partial: bool) -> None:
    """Reject a sweep that was stopped; if ``partial``, not one that the time limit stopped after some budgets."""
    if swept.stopped and not (partial and swept.stopped == "time" and len(swept.excess) > 1):
        raise Stopped(swept.stopped, SWEEPING)


def surely_below(prepared: Prepared, chance: FloatArray) -> FloatArray:
    """Return upper bounds on the values of a sweep for each budget from 0 up, without its rounding errors."""
    levels = np.arange(2, len(chance) + 2)
    # Each level may add the error of one sum for every state that is passed at no cost.
    depth = levels * (1 + np.diff(prepared.free_blocks[0]).size)
    high = chance * (1 + depth * largest_rounding(prepared))
    # A value other than 0 is at least the probability of a path, which has at most this many steps.
    steps = prepared.longest if prepared.finite else levels * prepared.n_states
    smallest = steps * np.log(float(prepared.probability.min(initial=1.0)))
    return np.where((chance < TINY) & (smallest < np.log(TINY)), TINY, high)


def least_excess(prepared: Prepared, w: int, part: float, limits: Limits) -> tuple[BudgetPolicy, Values, float, float]:
    """Return the policy of least expected excess over ``w + part`` levels, the part below 1, with its values.

    Also return a lower bound on the least excess over a budget, and that budget: the next level if costs are rounded.
    """
    least, worst = least_expected_cost(prepared, limits), least_worst_case(prepared, limits)
    more, rounded = 1 - part, prepared.scale.rounded
    gone = replace(least, value=least.value + more, lower=(least.lower + more) * (1 - UNIT), upper=least.upper + more)
    base = Base(gone.value, gone.lower, least.value)
    question = Question(base, least.choice, _beyond(prepared, worst))
    swept = bounded_sweep(prepared, question, limits, most=w + 1 + rounded)
    _check_answers(swept, partial=False)
    policy = BudgetPolicy.of_rows(prepared, swept.choice[: w + 2].copy(), past_budget=1)
    sure = float(surely_expected(prepared, limits)[prepared.start])
    values = Explored(prepared, swept, sure, gone).values_of(policy, limits)
    upto, row = float(w + part), w + 1
    if rounded:  # a bound from rounded costs has a row for each budget from 0 up
        upto = row = w + (part > 0)
    low = float(swept.low[row]) if row < len(swept.low) else 0.0  # beyond the worst case
    return policy, values, max(low, sure - upto), upto


def _beyond(prepared: Prepared, worst: WorstCase) -> WorstCase:
    """Return the worst case for rows that stand for one level less; at the start all budgets matter."""
    value = np.minimum(worst.value + 1, UNREACHED)
    value[prepared.start] = UNREACHED
    return WorstCase(value, np.minimum(worst.action_value + 1, UNREACHED))


def with_arrivals(model: SSP) -> tuple[SSP, BoolArray]:
    """Return the model whose runs end in end components and arrive at goals, and a mask of the states in the former.

    One state is added, the last: all goals lead to it, at no cost.
    """
    possible = model.probability > 0
    component, _ = end_components(
        model.action_state,
        offsets(possible)[model.outcome_start],
        model.successor[possible],
        model.n_states,
        np.ones(model.n_actions, dtype=bool),
    )
    endless = component >= 0
    names = None if model.state_names is None else [*model.state_names, object()]
    goals = np.flatnonzero(model.is_goal)
    return with_exits(model, ~endless[model.action_state], goals, 0.0, names), endless


def finishing(prepared: Prepared, most: int, limits: Limits) -> LeastChances:
    """Sweep the budgets from 0 to ``most``, or until larger ones do not matter; ``prepared`` has arrivals."""
    up = _arriving(prepared, most, limits)
    if not prepared.scale.rounded:
        return up
    down = _arriving(prepare(prepared.model, prepared.scale.step, limits, down=True), most, limits)
    n = max(len(up.low), len(down.high))
    low, high = (np.append(part, np.full(n - len(part), part[-1])) for part in (up.low, down.high))
    return LeastChances(high, low, high, up.stopped or down.stopped)


def _arriving(prepared: Prepared, most: int, limits: Limits) -> LeastChances:
    """Return the least expected number of arrivals within each budget, for costs as they were rounded."""
    counted, none = _counting_arrivals(prepared), np.zeros(prepared.n_states)
    ever = least_expected_cost(counted, limits)
    enough, most_ever = (float(value[counted.start]) for value in (ever.value * (1 - SETTLED), ever.upper))
    question = Question(Base(none, none, none), counted.proper_choice(), without_safety(counted), terms=ARRIVALS)
    swept = budget_sweep(counted, question, limits, most=most + 1, until=lambda chance: chance >= enough)
    _check_answers(swept, partial=True)
    if len(swept.excess) == 1:  # a run ends at its start, which is not a goal
        return LeastChances(none[:1], none[:1], none[:1], "")
    chance = swept.excess[1:]
    high = surely_below(counted, chance)
    if chance[-1] >= enough or swept.stopped:
        high[-1] = max(high[-1], most_ever)  # it stands for larger budgets, too
    low = np.where(swept.low[1:] < TINY, 0.0, swept.low[1:])
    high = np.where(high > TINY, np.minimum(high, min(most_ever, 1.0)), high)
    return LeastChances(np.minimum(chance, 1.0), low, high, swept.stopped)


def _counting_arrivals(prepared: Prepared) -> Prepared:
    """Return the prepared model whose mean cost counts arrivals only, and whose arrivals cost one level."""
    arrival = prepared.successor == prepared.members.state_of[-1]  # the added state; -1 if it cannot be reached
    action = prepared.outcome_action[arrival]
    free_stop = prepared.free_stop.copy()
    free_stop[action] = prepared.outcome_start[action]
    return replace(
        prepared,
        fine=np.where(arrival, prepared.scale.stride, 0),
        cost=np.where(arrival, 1, prepared.cost),
        free_stop=free_stop,
    )
