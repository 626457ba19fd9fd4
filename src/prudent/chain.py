"""The truth about a policy: the Markov chain it makes of the model.

The chain lives on (state, budget left) until the budget is gone, then on states.  Backwards it gives the
expected cost and the expected excess over the budget, with no tail cut off; forwards, the distribution.
"""

from dataclasses import dataclass

import numpy as np

from prudent.errors import PrudentError
from prudent.kernels.blocks import Round
from prudent.kernels.sweep import Costs, distribute, follow
from prudent.model import FloatArray
from prudent.policy import BudgetPolicy
from prudent.prepare import Prepared, restrict
from prudent.progress import Progress
from prudent.risk import Distribution
from prudent.values.expected import Expected, least_expected_cost
from prudent.values.rounds import block_rounding, free_round, rounding

__all__ = ["Values", "backward", "costs_of", "expected_steps", "forward", "spent_budget", "value_at_risk"]

MISSING = 1e-13
"""The probability under way at which a forward pass stops by itself."""

WORK = 2_000_000_000
"""States times levels after which it stops anyway."""

LEVELS = 20_000_000
"""Levels after which it stops anyway."""

ROOM = 60_000_000
"""The most states times levels under way at once."""


@dataclass(frozen=True)
class Values:
    """Expected values of a policy by budget left and state, in levels."""

    excess: FloatArray  # (n_levels, n_states)  E[(C - b)+]
    mean: FloatArray  # (n_levels, n_states)  E[C]


def costs_of(prepared: Prepared, arcs: Round) -> Costs:
    """Return the costs for a kernel."""
    return Costs(
        outcome_start=prepared.outcome_start,
        cost=prepared.cost,
        mean_cost=prepared.mean_cost,
        rounding=rounding(prepared),
        block_rounding=block_rounding(prepared, arcs),
    )


def spent_budget(policy: BudgetPolicy) -> Expected:
    """Return what the policy costs from each state once its budget is gone."""
    prepared = policy.prepared
    return least_expected_cost(restrict(prepared, prepared.action_start[:-1] + policy.choice[0]))


def backward(policy: BudgetPolicy, tail: Expected, *, up: bool = False) -> Values:
    """Evaluate a policy; ``tail`` is its cost once the budget is gone; ``up`` rounds the excess up, to be a bound."""
    excess = tail.upper if up else tail.value
    return _backward(policy, excess, tail.value, policy.prepared.mean_cost, int(up))


def expected_steps(policy: BudgetPolicy) -> float:
    """Return the expected number of steps of a run."""
    steps = spent_budget(policy).steps
    counted = _backward(policy, steps, steps, np.ones(policy.prepared.n_actions), 0)
    return float(counted.mean[policy.level, policy.prepared.start])


def _backward(
    policy: BudgetPolicy, first_excess: FloatArray, first_mean: FloatArray, mean_cost: FloatArray, direction: int
) -> Values:
    prepared = policy.prepared
    arcs = free_round(prepared)
    costs = costs_of(prepared, arcs)._replace(mean_cost=mean_cost)
    excess, mean = np.empty(policy.choice.shape), np.empty(policy.choice.shape)
    excess[0], mean[0] = first_excess, first_mean
    room, chosen = np.empty(prepared.n_actions), np.zeros(prepared.n_states, dtype=np.int64)
    follow(arcs, costs, direction, 1, len(excess), policy.choice, excess, mean, room, chosen)
    return Values(excess=excess, mean=mean)


def value_at_risk(policy: BudgetPolicy, cvar: float, alpha: float) -> float:
    """Return the policy's VaR in the user's units; it is never above CVaR, so that is how far to look."""
    return forward(policy, most=int(min(cvar, WORK)) + 2).var(alpha)


def forward(
    policy: BudgetPolicy, tail: Expected | None = None, *, most: int | None = None, tolerance: float = MISSING
) -> Distribution:
    """Return the distribution of the total cost, cut when little is under way or after ``most`` levels.

    It is not cut before the budget is gone, so what the part cut off costs is known from ``tail``; without it,
    that part counts as what it has spent.
    """
    prepared = policy.prepared
    window = int(prepared.cost.max(initial=0)) + 1
    if window * prepared.n_states > ROOM:
        raise PrudentError(
            f"following the policy takes room for {window * prepared.n_states:,} numbers; {ROOM:,} are the most: "
            "use prudent.simulate"
        )
    arcs = free_round(prepared)
    costs = costs_of(prepared, arcs)
    mass = np.zeros((window, prepared.n_states))
    mass[0, prepared.start] = 1.0
    chosen, room = np.zeros(prepared.n_states, dtype=np.int64), np.zeros(prepared.n_actions)
    if most is None:
        most = max(min(WORK // prepared.n_states, LEVELS), window, policy.level + 1)
    total, levels, missing = np.zeros(0), 0, 1.0
    with Progress("following the policy", unit="levels") as progress:
        while levels < most and missing > 0 and (missing > tolerance or levels <= policy.level):
            total = np.append(total, np.zeros(min(most - levels, max(levels, 1024))))
            levels, missing = distribute(
                arcs, costs, policy.choice, policy.level, tolerance, levels, mass, total, chosen, room
            )
            progress.at(levels)
    ended = np.flatnonzero(total[:levels])
    spent = levels + (np.arange(window) - levels) % window  # the levels that the rows of mass stand for
    ahead = 0.0 if tail is None else tail.value
    beyond = float((mass * (spent[:, None] + ahead)).sum()) if missing > 0 else 0.0
    return Distribution(
        values=prepared.totals(ended),
        probabilities=total[ended],
        mean=prepared.in_units(float(total[ended] @ ended) + beyond),
        missing=float(missing),
        missing_mean=prepared.in_units(beyond / missing) if missing > 0 else 0.0,
    )
