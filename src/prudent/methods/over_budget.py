"""The minimal probability of exceeding a budget, the minimal VaR, and the minimal expected excess over one budget.

With b the remaining budget, and P(s, b) the least probability that the cost from s exceeds it:

    P(s, b)    = 1                                                    for b < 0
    P(goal, b) = 0                                                    for b >= 0
    P(s, b)    = min over a of  sum over outcomes of  p P(s', b - c)   for b >= 0,

with the expected cost as second objective.  This is the sweep of the exact method with row b + 1 for budget b, since a
budget of 0 is not exceeded yet, and with value 1 once the budget is exceeded.  P(start, w) for all w comes from one
sweep; the least VaR at alpha is the least w with P(start, w) <= alpha.

The least expected excess U over a budget of w + t levels, w whole and 0 <= t < 1, follows the same equations with

    U(s, b)    = V(s) - b - t                                         for b < 0.

Both sweeps continue beyond budgets that some plan never exceeds, because more budget lowers the expected cost.

*Guarantee.*  As for CVaR: the sweep also carries a lower bound.  Costs without a common step are rounded up for the
plan and down for the bound, which is that of the next level not below the budget.  Where P is below 1e-300, the bounds
are 0 and 1e-300.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from prudent.engine.prepared import Prepared
from prudent.engine.sweep.bounded import bounded_sweep
from prudent.engine.sweep.task import TIE
from prudent.engine.values.bellman import UNIT, largest_rounding
from prudent.engine.values.expected_cost import Expected, least_expected_cost, surely_expected
from prudent.engine.values.worst_case import UNREACHED, WorstCase, least_worst_case
from prudent.kernels.sweep import Base, Terms
from prudent.methods.exact import Explored
from prudent.models.rows import FloatArray
from prudent.policies.distribution import rarely
from prudent.policies.policy import BudgetPolicy
from prudent.runtime.limits import Limits, Stopped

CHANCE = Terms(accrual=0.0, slope=0.0)

SWEEPING = "sweeping the budgets"

TINY = 1e-300
"""Probabilities below this are not distinguished: floats have too few digits for them, or none."""


@dataclass(frozen=True)
class Exceeding:
    """Least probabilities of exceeding each budget from 0 up, in levels."""

    prepared: Prepared
    expected: Expected
    chance: FloatArray  # (n_budgets,)  of the policy found
    low: FloatArray  # (n_budgets,)  a lower bound on the least probability
    high: FloatArray  # (n_budgets,)  an upper bound on that of the policy found
    choice: NDArray[np.generic]  # (n_budgets + 1, n_states)
    stopped: str = ""  # why the sweep ended early, if it did

    def policy(self, budget: int) -> BudgetPolicy:
        """Return the policy for a budget; the budget is used up once one level more is charged."""
        return BudgetPolicy.of_rows(self.prepared, self.choice[: budget + 2].copy(), past_budget=1)

    def value_at_risk(self, alpha: float) -> tuple[int, int]:
        """Return the least VaR found, and a lower bound on the least VaR."""
        found, sure = (rarely(np.append(chance, 0.0), alpha) for chance in (self.chance, self.low))
        return int(np.argmax(found)), int(np.argmax(sure))


@dataclass(frozen=True)
class OverBudget:
    """A policy and its expected excess over a budget, in levels."""

    policy: BudgetPolicy
    excess: float
    high: float  # an upper bound on that
    low: float  # a lower bound on the least excess over ``upto``
    upto: float  # the budget, or the next level where costs are rounded


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
    swept = bounded_sweep(
        prepared,
        base,
        _beyond(prepared, worst),
        limits,
        most=most + 1,
        terms=CHANCE,
        exhausted=1.0,
        tie=tie,
        until=until,
    )
    if swept.stopped and (not partial or len(swept.excess) == 1 or swept.stopped != "time"):
        raise Stopped(swept.stopped, SWEEPING)
    chance = swept.excess[1:]
    low = swept.low if prepared.scale.rounded else swept.low[1:]  # a bound from rounded costs comes without row 0
    sure = np.arange(len(chance)) >= worst.value[prepared.start]  # some plan never exceeds these: exactly 0
    high = np.where(sure, chance, np.minimum(surely_below(prepared, chance), 1.0))
    low = np.append(low, np.zeros(max(len(chance) - len(low), 0)))[: len(chance)]  # 0 beyond the worst case
    low = np.where(low < TINY, 0.0, low)
    return Exceeding(prepared, expected, chance, low, high, swept.choice, swept.stopped)


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


def least_excess(prepared: Prepared, w: int, part: float, limits: Limits) -> OverBudget:
    """Return the policy of least excess over ``w + part`` levels, the part below 1."""
    least, worst = least_expected_cost(prepared, limits), least_worst_case(prepared, limits)
    more, rounded = 1 - part, prepared.scale.rounded
    gone = replace(least, value=least.value + more, lower=(least.lower + more) * (1 - UNIT), upper=least.upper + more)
    base = Base(gone.value, gone.lower, least.value)
    swept = bounded_sweep(prepared, base, _beyond(prepared, worst), limits, most=w + 1 + rounded)
    if swept.stopped:
        raise Stopped(swept.stopped, SWEEPING)
    policy = BudgetPolicy.of_rows(prepared, swept.choice[: w + 2].copy(), past_budget=1)
    sure = float(surely_expected(prepared, limits)[prepared.start])
    values = Explored(prepared, swept, sure, gone).values_of(policy, limits)
    upto, row = float(w + part), w + 1
    if rounded:  # a bound from rounded costs has a row for each budget from 0 up
        upto = row = w + (part > 0)
    low = float(swept.low[row]) if row < len(swept.low) else 0.0  # beyond the worst case
    return OverBudget(policy, values.excess, values.above, max(low, sure - upto), upto)


def _beyond(prepared: Prepared, worst: WorstCase) -> WorstCase:
    """Return the worst case for rows that stand for one level less; at the start all budgets matter."""
    value = np.minimum(worst.value + 1, UNREACHED)
    value[prepared.start] = UNREACHED
    return WorstCase(value, np.minimum(worst.action_value + 1, UNREACHED))
