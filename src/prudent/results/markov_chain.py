"""The Markov chain that a policy makes of its model, as a model with one action in each state.

A state of the chain is a state of the model, with the remaining budget if the policy depends on it, and with the
policy's memory if it has one; the chain has those that a run can meet.  Costs are the model's own, so the total cost
has the same distribution as under the policy.
"""

from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np

from prudent.kernels.episodes import Walk
from prudent.models.rows import IntArray, offsets
from prudent.models.ssp import SSP
from prudent.policies.policy import BudgetPolicy
from prudent.runtime.limits import Limits


class _Met(NamedTuple):
    """The states of the chain, in the order of discovery; outcomes and actions are those of what runs walk over."""

    state: IntArray  # (n,)
    left: IntArray  # (n,)  the remaining budget, in levels; 0 at goals, where it does not matter
    action: IntArray  # (n,)  -1 at goals
    size: IntArray  # (n,)  how many outcomes the action has
    outcome: IntArray  # those outcomes
    target: IntArray  # the chain's state that each outcome leads to
    first: IntArray  # the chain's state at each start


def chain_of(policy: BudgetPolicy) -> SSP:
    """Return the chain of a policy; a randomised policy draws in the first chance step."""
    model, names, count, found = policy.prepared.model, list[Hashable](), 0, list[dict[str, Any]]()
    parts = [(share, part) for share, part in policy.parts if share > 0]
    for i, (share, part) in enumerate(parts, 1):
        walk = part.walk()
        met = _met(part, walk)
        own, acting = _names(part, walk, met), met.action >= 0
        names += own if len(parts) == 1 else [f"{name}, policy {i}" for name in own]
        found.append(
            {
                "action_start": acting,
                "outcome_start": met.size[acting],
                "probability": walk.probability[met.outcome],
                "successor": met.target + count,
                "cost": walk.cost[met.outcome],
                "initial_state": met.first + count,
                "initial_probability": walk.first_probability[walk.first_probability > 0] * share,
                "action_names": walk.action[met.action[acting]],
            }
        )
        count += len(own)
    if len(set(names)) < len(names):
        names = [f"{name} ({i})" for i, name in enumerate(names)]
    joined: dict[str, Any] = {name: np.concatenate([each[name] for each in found]) for name in found[0]}
    for name in ("action_start", "outcome_start"):  # so far these are counts
        joined[name] = offsets(joined[name])
    joined["action_names"] = [model.action(a) for a in joined["action_names"].tolist()]
    return SSP(**joined, state_names=names, name=f"{model.name}-chain")


def _met(policy: BudgetPolicy, walk: Walk) -> _Met:
    """Follow a policy over what its runs walk over, all states of a front at once."""
    n, is_goal, level = len(walk.offset), walk.offset < 0, policy.level
    pairs = (level + 1) * n
    Limits.of(None, None).check(8 * pairs, "the chain of the policy", "plan with a coarser step= (--step)")
    place, likely = np.full(pairs, -1, dtype=np.int64), walk.first_probability > 0
    state = walk.first_state[likely]
    start = np.where(is_goal[state], 0, np.maximum(level - walk.first_charge[likely], 0)) * n + state
    front, count = np.unique(start), 0
    found: list[list[IntArray]] = []  # place, action, number of outcomes; outcomes and where they lead
    while len(front):
        place[front] = count + np.arange(len(front))
        count += len(front)
        left, state = front // n, front % n
        acting, action = ~is_goal[state], np.full(len(front), -1, dtype=np.int64)
        action[acting] = walk.offset[state[acting]] + walk.choices.each(state[acting], left[acting])
        begin, size = walk.begin[action], np.where(action < 0, 0, walk.end[action] - walk.begin[action])
        source = np.repeat(np.arange(len(front)), size)
        outcome = np.arange(len(source)) + (begin - np.cumsum(size) + size)[source]
        likely = walk.probability[outcome] > 0
        source, outcome = source[likely], outcome[likely]
        target = walk.successor[outcome]
        key = np.where(is_goal[target], 0, np.maximum(left[source] - walk.charge[outcome], 0)) * n + target
        found.append([front, action, np.bincount(source, minlength=len(front)), outcome, key])
        front = np.unique(key[place[key] < 0])
    key, action, size, outcome, target = (np.concatenate(each) for each in zip(*found, strict=True))
    return _Met(key % n, key // n, action, size, outcome, place[target], place[start])


def _names(policy: BudgetPolicy, walk: Walk, met: _Met) -> list[Hashable]:
    """Return readable names: the model's own where the policy looks at the state alone."""
    scale, model, state = policy.prepared.scale, policy.prepared.model, walk.state[met.state]
    names = [model.state(s) for s in state.tolist()]
    acting = np.flatnonzero(met.action >= 0).tolist()
    if policy.level > 0:
        spent = scale.lattice.value(scale.start_luck - scale.luck[state])
        left = policy.whole - (spent + (policy.level - met.left) * scale.level_size)
        for i in acting:
            names[i] = f"{names[i]}, {left[i]:.12g} left" if met.left[i] > 0 else f"{names[i]}, budget gone"
    if policy.remembers:
        for i in acting:
            names[i] = f"{names[i]}, memory {walk.memory[met.state[i]]:.12g}"
    return names
