"""The truth about a policy: the Markov chain it makes of the model.

The chain lives on (state, budget left) until the budget is gone, then on states.  Backwards it gives the
expected cost and the expected excess over the budget, with no tail cut off; forwards, the distribution.
"""

from dataclasses import dataclass, replace

import numpy as np

from prudent.kernels.blocks import Round
from prudent.kernels.sweep import Costs, distribute, follow
from prudent.model import FloatArray
from prudent.policy import BudgetPolicy
from prudent.prepare import Prepared, restrict
from prudent.progress import Progress
from prudent.risk import Distribution
from prudent.values.expected import Expected, least_expected_cost
from prudent.values.rounds import block_rounding, free_round, rounding

__all__ = ["Values", "backward", "costs_of", "expected_steps", "forward", "spent_budget"]

MISSING = 1e-13
"""The probability under way at which a forward pass stops by itself."""

WORK = 2_000_000_000
"""States times levels after which it stops anyway."""


@dataclass(frozen=True)
class Values:
    """Expected values of a policy by budget left and state, in levels."""

    excess: FloatArray  # (n_levels, n_states)  E[(C - b)+]
    mean: FloatArray  # (n_levels, n_states)  E[C]

    def first_row(self) -> "Values":
        """Return the values of the policy that the budget's end leaves."""
        return Values(self.excess[:1], self.mean[:1])


def costs_of(prepared: Prepared, arcs: Round, direction: int = 0) -> Costs:
    """Return the costs for a kernel, sums rounded down (-1), plainly (0) or up (1) by more than they can err."""
    return Costs(
        outcome_start=prepared.outcome_start,
        cost=prepared.cost,
        mean_cost=prepared.mean_cost,
        shrink=1 + direction * rounding(prepared),
        block_shrink=1 + direction * block_rounding(prepared, arcs),
        worst=np.empty(0, dtype=np.int64),
        action_worst=np.empty(0, dtype=np.int64),
    )


def spent_budget(policy: BudgetPolicy) -> Expected:
    """Return what the policy costs from each state once its budget is gone."""
    prepared = policy.prepared
    return least_expected_cost(restrict(prepared, prepared.action_start[:-1] + policy.choice[0]))


def backward(policy: BudgetPolicy, tail: Expected, direction: int = 0) -> Values:
    """Evaluate a policy; ``tail`` is its cost once the budget is gone, ``direction`` as in :func:`costs_of`."""
    prepared = policy.prepared
    arcs = free_round(prepared)
    excess, mean = np.empty(policy.choice.shape), np.empty(policy.choice.shape)
    excess[0] = tail.upper if direction > 0 else tail.value
    mean[0] = tail.value
    room, chosen = np.empty(prepared.n_actions), np.zeros(prepared.n_states, dtype=np.int64)
    follow(arcs, costs_of(prepared, arcs, direction), 1, len(excess), policy.choice, excess, mean, room, chosen)
    return Values(excess=excess, mean=mean)


def expected_steps(policy: BudgetPolicy) -> float:
    """Return the expected number of steps of a run."""
    prepared = policy.prepared
    counting = replace(prepared)
    object.__setattr__(counting, "mean_cost", np.ones(prepared.n_actions))
    tail = spent_budget(policy)
    values = backward(BudgetPolicy(counting, policy.choice), replace(tail, value=tail.steps))
    return float(values.mean[policy.level, prepared.start])


def forward(
    policy: BudgetPolicy, mean: FloatArray, *, most: int | None = None, tolerance: float = MISSING
) -> Distribution:
    """Return the distribution of the total cost, cut when little is under way or after ``most`` levels.

    ``mean`` is the policy's expected cost by budget left and state; it says what the part cut off costs.
    """
    prepared = policy.prepared
    arcs = free_round(prepared)
    costs = costs_of(prepared, arcs)
    window = int(prepared.cost.max(initial=0)) + 1
    mass = np.zeros((window, prepared.n_states))
    mass[0, prepared.start] = 1.0
    chosen, room = np.zeros(prepared.n_states, dtype=np.int64), np.zeros(prepared.n_actions)
    if most is None:
        most = max(WORK // prepared.n_states, window)
    total, levels, missing = np.zeros(0), 0, 1.0
    with Progress("following the policy", unit="levels") as progress:
        while missing > tolerance and levels < most:
            total = np.append(total, np.zeros(min(most - levels, max(levels, 1024))))
            levels, missing = distribute(
                arcs, costs, policy.choice, policy.level, tolerance, levels, mass, total, chosen, room
            )
            progress.at(levels)
    ended = np.flatnonzero(total[:levels])
    missing_mean = 0.0
    if missing > 0:
        spent = levels + (np.arange(window) - levels) % window  # the levels that the rows of mass stand for
        left = np.maximum(policy.level - spent, 0)
        missing_mean = prepared.in_units(float((mass * (spent[:, None] + mean[left])).sum() / missing))
    return Distribution(
        values=prepared.totals(ended),
        probabilities=total[ended],
        mean=prepared.in_units(float(mean[policy.level, prepared.start])),
        missing=float(missing),
        missing_mean=missing_mean,
    )
