"""The exact distribution of the total cost of a policy of states and budgets, or of a table of actions."""

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from prudent.engine.cost_step import nice_step
from prudent.engine.prepare import prepare
from prudent.errors import PrudentError, TooLarge
from prudent.models.graph import leading
from prudent.models.ssp import SSP
from prudent.policies.chain import forward, spent_budget
from prudent.policies.distribution import Distribution, mixture
from prudent.policies.forwards import MISSING, most_spent
from prudent.policies.function import Function, refuse_stuck
from prudent.policies.policy import BudgetPolicy
from prudent.runtime.limits import Limits

TO_THE_END = 2**27
"""The most work, in states times levels, for the part of a distribution that is less likely than the tolerance."""

COARSER = 4
"""Each step tried for a table is so many times the one before."""

Policy = BudgetPolicy | Mapping[Any, Hashable] | Function


def total_cost(policy: BudgetPolicy, limits: Limits, tolerance: float = MISSING) -> Distribution:
    """Return the distribution of the total cost of a policy."""
    return mixture([(share, _of_part(part, tolerance, limits)) for share, part in policy.parts])


def _of_part(policy: BudgetPolicy, tolerance: float, limits: Limits) -> Distribution:
    """Return the distribution of the total cost of a policy that draws nothing."""
    prepared, most = policy.prepared, most_spent(policy, limits)
    if prepared.n_states * (most + 1) <= TO_THE_END:
        tolerance = 0.0
    tail = spent_budget(policy, limits)
    result, _ = forward(policy, tail, tolerance=tolerance, limits=limits)
    scale = prepared.scale
    return replace(result, most=scale.in_units(most) if scale.rounded or np.isinf(most) else scale.total(int(most)))


def total_cost_of_table(
    alone: SSP, step: float | None, tolerance: float, limits: Limits
) -> tuple[Distribution, BudgetPolicy]:
    """Evaluate the only policy of a model, at the finest step that the limits allow if none is given."""
    prepared = prepare(alone, step, limits)
    coarsest = float(np.abs(alone.cost).max(initial=0.0))
    while True:
        policy = BudgetPolicy.of_states(prepared, prepared.action_start[:-1])
        coarser = nice_step(COARSER * prepared.scale.level_size)
        last = step is not None or coarser > coarsest
        try:
            result = total_cost(policy, limits, tolerance)
            if last or result.missing <= tolerance:
                return result, policy
        except TooLarge:
            if last:
                raise
        prepared = prepare(alone, coarser, limits)


def restricted(model: SSP, table: Mapping[Any, Hashable]) -> SSP:
    """Return the model with the actions that a table's policy plays, from the start on, alone."""
    played = np.zeros(model.n_actions, dtype=bool)
    visited = model.initial_state.tolist()
    seen = set(visited)
    for state in visited:  # grows while it is read
        if model.is_goal[state]:
            continue
        name = model.state(state)
        if name not in table:
            raise PrudentError(f"policy: there is no action for state {name!r}, which it can reach; add one")
        action = model.find_action(state, table[name])
        played[action] = True
        outcome = slice(model.outcome_start[action], model.outcome_start[action + 1])
        for target in model.successor[outcome][model.probability[outcome] > 0].tolist():
            if target not in seen:
                seen.add(target)
                visited.append(target)
    alone = model.with_actions(played)
    refuse_stuck(model, np.array(visited), leading(alone, model.is_goal)[visited])
    return alone
