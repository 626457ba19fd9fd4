"""The Markov chain that a policy makes of its model, as a model with one action in each state.

A state of the chain is a state of the model, with the remaining budget if the policy depends on it, and with the
policy's memory if it has one; the chain has those that a run can meet.  Costs are the model's own, so the total cost
has the same distribution as under the policy.
"""

from collections.abc import Hashable
from typing import NamedTuple

import numpy as np

from prudent.models.rows import FloatArray, IntArray, offsets
from prudent.models.ssp import SSP
from prudent.policies.policy import BudgetPolicy
from prudent.policies.unrolled import UnrolledPolicy
from prudent.runtime.limits import Limits


class _Walk(NamedTuple):
    """The places that a policy can meet, in the order of discovery."""

    state: IntArray  # (n,)  the model's
    left: IntArray  # (n,)  the remaining budget, in levels; 0 at goals, where it does not matter
    memory: FloatArray  # (n,)  what the policy remembers
    action: IntArray  # (n,)  the model's; -1 at goals
    size: IntArray  # (n,)  how many outcomes the action has
    outcome: IntArray  # the model's outcomes, by place
    target: IntArray  # the place that each outcome leads to
    first: IntArray  # the place of each initial state of the model
    weight: FloatArray  # the probability of each initial state


def chain_of(policy: BudgetPolicy) -> SSP:
    """Return the chain of a policy; a randomised policy draws in the first chance step."""
    model = policy.prepared.model
    parts = [(share, part) for share, part in policy.parts if share > 0]
    walks = [_remembering(part) if isinstance(part, UnrolledPolicy) else _walk(part) for _, part in parts]
    offset = np.cumsum([0] + [len(walk.state) for walk in walks])[:-1].tolist()
    names: list[Hashable] = []
    for i, (walk, (_, part)) in enumerate(zip(walks, parts, strict=True)):
        found = _names(part, walk)
        names += found if len(walks) == 1 else [f"{name}, policy {i + 1}" for name in found]
    if len(set(names)) < len(names):
        names = [f"{name} ({i})" for i, name in enumerate(names)]
    outcome = np.concatenate([walk.outcome for walk in walks])
    action = np.concatenate([walk.action for walk in walks])
    return SSP(
        action_start=offsets(action >= 0),
        outcome_start=offsets(np.concatenate([walk.size for walk in walks])[action >= 0]),
        probability=model.probability[outcome],
        successor=np.concatenate([walk.target + by for walk, by in zip(walks, offset, strict=True)]),
        cost=model.cost[outcome],
        initial_state=np.concatenate([walk.first + by for walk, by in zip(walks, offset, strict=True)]),
        initial_probability=np.concatenate(
            [walk.weight * share for walk, (share, _) in zip(walks, parts, strict=True)]
        ),
        state_names=names,
        action_names=[model.action(a) for a in action[action >= 0].tolist()],
        name=f"{model.name}-chain",
    )


def _begin(policy: BudgetPolicy) -> tuple[IntArray, IntArray, FloatArray]:
    """Return the initial states, the remaining budget in each, and their probabilities."""
    model, prepared = policy.prepared.model, policy.prepared
    likely = model.initial_probability > 0
    state = model.initial_state[likely]
    left = np.maximum(policy.level - prepared.scale.first_charge(state), 0)
    return state, np.where(model.is_goal[state], 0, left), model.initial_probability[likely]


def _walk(policy: BudgetPolicy) -> _Walk:
    """Follow a policy that depends on state and remaining budget, all places of a front at once."""
    model, prepared = policy.prepared.model, policy.prepared
    n, is_goal = model.n_states, model.is_goal
    pairs = (policy.level + 1) * n
    Limits.of(None, None).check(8 * pairs, "the chain of the policy", "plan with a coarser step= (--step)")
    charge = prepared.scale.charged(model.cost, model.outcome_state, model.successor)
    place = np.full(pairs, -1, dtype=np.int64)
    state, left, weight = _begin(policy)
    start = left * n + state
    front, count = np.unique(start), 0
    found: list[list[IntArray]] = []  # place, action, number of outcomes; outcomes and where they lead
    while len(front):
        place[front] = count + np.arange(len(front))
        count += len(front)
        left, state = front // n, front % n
        acting, action = ~is_goal[state], np.full(len(front), -1, dtype=np.int64)
        action[acting] = policy.model_actions_at(state[acting], left[acting])
        begin, end = model.outcome_start[action], model.outcome_start[action + 1]
        size = np.where(action < 0, 0, end - begin)
        source = np.repeat(np.arange(len(front)), size)
        outcome = np.arange(len(source)) + (begin - np.cumsum(size) + size)[source]
        likely = model.probability[outcome] > 0
        source, outcome = source[likely], outcome[likely]
        target = model.successor[outcome]
        key = np.where(is_goal[target], 0, np.maximum(left[source] - charge[outcome], 0)) * n + target
        found.append([front, action, np.bincount(source, minlength=len(front)), outcome, key])
        front = np.unique(key[place[key] < 0])
    key, action, size, outcome, target = (np.concatenate(each) for each in zip(*found, strict=True))
    memory = np.zeros(len(key))
    return _Walk(key % n, key // n, memory, action, size, outcome, place[target], place[start], weight)


def _remembering(policy: UnrolledPolicy) -> _Walk:
    """Follow a policy with a memory, place by place."""
    model, prepared = policy.prepared.model, policy.prepared
    is_goal, scale = model.is_goal.tolist(), prepared.scale
    begin, left, weight = _begin(policy)
    places: dict[tuple[int, int, int], int] = {}  # (state, left, the policy's own state) -> number
    queue: list[tuple[int, int, int]] = []

    def number(state: int, left: int, node: int) -> int:
        place = (state, 0, -1) if is_goal[state] else (state, left, node)
        if place not in places:
            places[place] = len(queue)
            queue.append(place)
        return places[place]

    first = [number(s, b, policy.first_node(s)) for s, b in zip(begin.tolist(), left.tolist(), strict=True)]
    actions, sizes, outcomes, targets = list[int](), list[int](), list[int](), list[int]()
    for state, budget, node in queue:  # grows while it is read
        if is_goal[state]:
            actions.append(-1)
            sizes.append(0)
            continue
        own = int(prepared.action_start[node] + policy.choices.at(node, budget))
        played = prepared.members.route(state, int(prepared.model_action[own]))
        every = range(int(model.outcome_start[played]), int(model.outcome_start[played + 1]))
        likely = [o for o in every if model.probability[o] > 0]
        for o in likely:
            reached = int(model.successor[o])
            gain = int(scale.normalised(model.cost[o], state, reached))
            after = policy.next_node(node, own, reached, gain) if played == prepared.model_action[own] else node
            targets.append(number(reached, max(budget - scale.up(gain), 0), after))
        actions.append(played)
        sizes.append(len(likely))
        outcomes += likely
    met, rest, own_state = np.array(queue).T
    memory = np.where(own_state >= 0, policy.memory[own_state], 0.0)
    action, size, outcome, target = (np.array(each, dtype=np.int64) for each in (actions, sizes, outcomes, targets))
    return _Walk(met, rest, memory, action, size, outcome, target, np.array(first), weight)


def _names(policy: BudgetPolicy, walk: _Walk) -> list[Hashable]:
    """Return readable names: the model's own where the policy looks at the state alone."""
    prepared, model = policy.prepared, policy.prepared.model
    names = [model.state(s) for s in walk.state.tolist()]
    acting = np.flatnonzero(~model.is_goal[walk.state]).tolist()
    if policy.level > 0:
        spent = prepared.scale.lattice.value(prepared.scale.start_luck - prepared.scale.luck[walk.state])
        left = policy.whole - (spent + (policy.level - walk.left) * prepared.scale.level_size)
        for i in acting:
            names[i] = f"{names[i]}, {left[i]:.12g} left" if walk.left[i] > 0 else f"{names[i]}, budget gone"
    if policy.remembers:
        for i in acting:
            names[i] = f"{names[i]}, memory {walk.memory[i]:.12g}"
    return names
