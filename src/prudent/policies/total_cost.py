"""The exact distribution of the total cost of a policy of states and budgets, or of a table of actions."""

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from prudent.engine.cost_step import nice_step
from prudent.engine.prepare import prepare
from prudent.errors import PrudentError, TooLarge
from prudent.models.rows import offsets
from prudent.models.ssp import SSP
from prudent.policies.chain import backward, forward, spent_budget
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
    result = replace(result, most=scale.in_units(most) if scale.rounded or np.isinf(most) else scale.total(int(most)))
    if policy.remembers or (prepared.acyclic and result.missing == 0):
        return result
    return replace(result, mean=scale.in_units(backward(policy, tail, limits).mean))


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
    """Return the model of the states that a table's policy visits, with the table's actions alone."""
    rank = {int(s): i for i, s in enumerate(model.initial_state)}
    visited, acts, outcome, count = list(rank), [], [], []
    for state in visited:  # grows while it is read
        if model.action_start[state] == model.action_start[state + 1]:
            acts.append(-1)
            continue
        name = model.state(state)
        if name not in table:
            raise PrudentError(f"policy: there is no action for state {name!r}, which it can reach; add one")
        action = model.find_action(state, table[name])
        acts.append(action)
        possible = np.arange(model.outcome_start[action], model.outcome_start[action + 1])
        possible = possible[model.probability[possible] > 0]
        outcome.append(possible)
        count.append(len(possible))
        for target in model.successor[possible].tolist():
            if target not in rank:
                rank[target] = len(visited)
                visited.append(target)
    acting = np.array(acts) >= 0
    taken = np.concatenate([*outcome, np.empty(0, dtype=np.int64)])
    source = np.repeat(np.flatnonzero(acting), count)
    target = np.array([rank[s] for s in model.successor[taken].tolist()], dtype=np.int64)
    refuse_stuck(model, np.array(visited), source, target, ~acting)
    return SSP(
        action_start=offsets(acting),
        outcome_start=offsets(count),
        probability=model.probability[taken],
        successor=target,
        cost=model.cost[taken],
        initial_state=np.arange(len(model.initial_state)),
        initial_probability=model.initial_probability,
        state_names=[model.state(s) for s in visited],
        action_names=[model.action(a) for a in acts if a >= 0],
        name=model.name,
        **model.known_of(taken),
    )
