"""A policy that remembers more than the cost so far, its memory unrolled into states of its own."""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from prudent.engine.prepared import Prepared, of_actions
from prudent.errors import PrudentError
from prudent.kernels.choices import Choices
from prudent.kernels.episodes import Walk
from prudent.models.graph import towards
from prudent.models.rows import FloatArray, IntArray, offsets, ranges
from prudent.policies.policy import BudgetPolicy, packed_choices, unpacked_choices, within

MOST = 1 + 1e-12
"""The largest memory: 1, up to rounding error."""


@dataclass(frozen=True, eq=False, repr=False)
class UnrolledPolicy(BudgetPolicy):
    """A policy that remembers more than the cost so far; its memory is unrolled into states of its own.

    ``prepared`` is the model of those states: the plain ones first, then pairs of a plain state and a memory,
    each with the one action that the policy plays there.
    """

    origin: IntArray  # (n_states,)  the plain prepared state behind each
    memory: FloatArray  # (n_states,)  what is remembered there; 0 for the plain states
    resolution: float = 0.0  # memories closer than this count as one
    remembers: ClassVar[bool] = True
    tensors: ClassVar[dict[str, tuple[int, str]]] = {
        **BudgetPolicy.tensors,
        "node_state": (1, "iu"),
        "node_memory": (1, "f"),
        "node_acts": (1, "iu"),
        "node_action": (1, "iu"),
        "node_successor": (1, "iu"),
        "start": (1, "iu"),
    }

    @property
    def plain_state(self) -> IntArray:
        """The plain prepared state behind each of the policy's own states."""
        return self.origin

    def next_node(self, node: int, action: int, target: int, gain: int) -> int:
        """Return the policy's own state after its action led to a model state at a normalised cost in lattice steps."""
        prepared, plain = self.prepared, int(self.prepared.members.state_of[target])
        for o in range(int(prepared.outcome_start[action]), int(prepared.outcome_start[action + 1])):
            after = int(prepared.successor[o])
            if self.origin[after] == plain and prepared.fine[o] == gain:
                return after
        return node  # a free loop: nothing has changed

    def _next_nodes(self, node: IntArray, outcome: IntArray) -> IntArray:
        """Return :meth:`next_node` for nodes with one action each, and outcomes of it in the model."""
        prepared, model = self.prepared, self.prepared.model
        own = np.arange(prepared.outcome_start[prepared.action_start[(self.memory == 0).sum()]])[::-1]  # first ones win
        action = prepared.outcome_action[own]
        target = prepared.members.state_of[model.successor]
        gain = prepared.scale.normalised(model.cost, model.outcome_state, model.successor)
        mine = np.stack([prepared.model_action[action], prepared.successor[own], prepared.fine[own]], axis=1)
        asked = np.stack([model.outcome_action, target, gain], axis=1)
        kind = np.unique(np.concatenate([mine, asked]), axis=0, return_inverse=True)[1].ravel()
        place = np.full(len(kind), -1, dtype=np.int64)
        place[kind[: len(own)]] = own - prepared.outcome_start[action]
        place = place[kind[len(own) :]][outcome]
        found = prepared.successor[np.maximum(prepared.outcome_start[prepared.action_start[node]] + place, 0)]
        return np.where(place < 0, node, found)

    def first_node(self, state: int) -> int:
        """Return the policy's own state at the start of a run in a model state."""
        prepared, plain = self.prepared, int(self.prepared.members.state_of[state])
        if self.origin[prepared.start] == plain:
            return prepared.start
        # The first chance step is an action of the start, with one outcome for each initial state.
        gain = int(prepared.scale.luck[state]) - prepared.scale.start_luck
        return self.next_node(prepared.start, int(prepared.action_start[prepared.start]), state, gain)

    def __call__(self, state: Hashable, spent: float = 0.0) -> Hashable:
        """Refuse: state and cost so far do not determine the action."""
        raise PrudentError("this policy remembers more than the cost so far; run it with policy.start()")

    @classmethod
    def of_nodes(
        cls,
        prepared: Prepared,
        state: IntArray,
        memory: FloatArray,
        action: IntArray,
        successor: IntArray,
        plain: Choices,
        level: int,
    ) -> "UnrolledPolicy":
        """Append pairs of state and memory, each with its one action, to the plain states.

        ``plain`` has the actions of the plain states by remaining budget, from ``level`` down.
        """
        n, acting = prepared.n_states, action >= 0
        played = action[acting]
        # Between grid points the game may prefer to stay forever; pairs that do are replaced by their plain state.
        source = n + np.repeat(np.flatnonzero(acting), np.diff(prepared.outcome_start)[played])
        is_plain = np.append(np.ones(n, dtype=bool), np.zeros(len(state), dtype=bool))
        stuck = ~is_plain & (towards(source, successor, n + len(state), is_plain) < 0)
        plain_state = np.append(np.arange(n), state)
        successor = np.where(stuck[successor], plain_state[successor], successor)
        every = np.append(np.arange(prepared.n_actions), played)
        unrolled = of_actions(
            prepared,
            every,
            ranges(prepared.outcome_start, every),
            np.append(prepared.action_start, prepared.n_actions + np.cumsum(acting)),
            np.append(prepared.successor, successor),
            start=prepared.start if stuck[n] else n,
        )
        return cls(
            prepared=unrolled,
            choices=plain.with_one_action(len(state)),
            level=level,
            origin=plain_state,
            memory=np.append(np.zeros(n), memory),
        )

    def refuse_as(self, what: str) -> None:
        """Refuse: it looks at more than the state and the remaining budget."""
        raise PrudentError(f"a plan that remembers more than the cost so far {what}; use method='exact'")

    def packed(self) -> dict[str, NDArray[Any]]:
        """Return the arrays from which the policy can be made again."""
        unrolled = self.prepared
        n = int((self.memory == 0).sum())  # the plain states come first; the others have memory above 0
        acting = np.diff(unrolled.action_start)[n:] > 0
        first = unrolled.action_start[n]
        return {
            **packed_choices("choice", self.choices.of(np.arange(n)), self.level),
            "node_state": self.origin[n:],
            "node_memory": self.memory[n:],
            "node_acts": acting.astype(np.int64),
            "node_action": unrolled.model_action[first:],
            "node_successor": unrolled.successor[unrolled.outcome_start[first] :],
            "start": np.array([unrolled.start]),
        }

    @classmethod
    def unpacked(cls, prepared: Prepared, packed: dict[str, NDArray[Any]], past_budget: int) -> "UnrolledPolicy":
        """Make a policy again from its arrays and the prepared model; refuse arrays that do not fit it."""
        n, n_nodes = prepared.n_states, len(packed["node_state"])
        state = within(packed, "node_state", 0, n, n_nodes)
        memory = packed["node_memory"].astype(np.float64)
        if n_nodes == 0 or memory.shape != (n_nodes,) or not ((memory > 0) & (memory <= MOST)).all():
            raise PrudentError("node_memory is not above 0 and at most 1 for each of one or more nodes")
        acting = within(packed, "node_acts", 0, 2, n_nodes) > 0
        if not np.array_equal(acting, np.diff(prepared.action_start)[state] > 0):
            raise PrudentError("node_acts is not 1 exactly where the node's state has actions")
        played = within(packed, "node_action", -1, prepared.model.n_actions, int(acting.sum()))
        rank = np.full(prepared.model.n_actions + 1, -1, dtype=np.int64)  # the last entry is for the first chance step
        rank[prepared.model_action] = np.arange(prepared.n_actions)
        action = np.full(n_nodes, -1, dtype=np.int64)
        action[acting] = rank[played]
        if (rank[played] < 0).any() or not np.array_equal(prepared.action_state[rank[played]], state[acting]):
            raise PrudentError("node_action has an action that its node's state has not")
        outcome = ranges(prepared.outcome_start, rank[played])
        successor = within(packed, "node_successor", 0, n + n_nodes, len(outcome))
        if not np.array_equal(np.append(np.arange(n), state)[successor], prepared.successor[outcome]):
            raise PrudentError("node_successor leads to another state than the action does")
        start = int(within(packed, "start", 0, n + n_nodes, 1)[0])
        if start != prepared.start and (start != n or state[0] != prepared.start):
            raise PrudentError(f"start is node {start}, which is not at the start")
        plain = unpacked_choices("choice", packed, prepared)
        policy = cls.of_nodes(prepared, state, memory, action, successor, *plain)
        return replace(policy, prepared=replace(policy.prepared, start=start))

    def walk(self) -> Walk:
        """Return what simulated runs walk over: after the model's states come those of each node, with its memory."""
        prepared, model, plain = self.prepared, self.prepared.model, super().walk()
        state_of, n, n_model = prepared.members.state_of, int((self.memory == 0).sum()), model.n_states
        # Node by node the states behind it, in the order of ``member``; ``base`` has the place of the first.
        member = np.argsort(state_of, kind="stable")
        begin = np.searchsorted(state_of[member], np.arange(n + 1))
        rank = np.empty(n_model, dtype=np.int64)
        rank[member] = np.arange(n_model) - np.append(0, begin)[state_of[member] + 1]
        node = np.arange(n, prepared.n_states)
        base = n_model + offsets(np.diff(begin)[self.origin[node]])
        state = member[ranges(begin, self.origin[node])]
        node = np.repeat(node, np.diff(base))
        acting = np.flatnonzero(~model.is_goal[state])

        def place(node: IntArray, target: IntArray) -> IntArray:
            """Return the places of model states with the memory of a node; goals and plain states need none."""
            plainly = (node < n) | model.is_goal[target] | (state_of[target] < 0)
            return np.where(plainly, target, base[np.maximum(node - n, 0)] + rank[target])

        inside, here = node[acting], state[acting]
        own = prepared.action_start[inside]
        played = prepared.members.route_each(here, prepared.model_action[own])
        outcome, size = ranges(model.outcome_start, played), np.diff(model.outcome_start)[played]
        source = np.repeat(np.arange(len(acting)), size)
        after = inside[source]  # inside an end component, and on a free loop, nothing changes
        leaves = np.flatnonzero((played == prepared.model_action[own])[source])
        after[leaves] = self._next_nodes(after[leaves], outcome[leaves])
        first = [int(place(np.array([self.first_node(s)]), np.array([s]))[0]) for s in model.initial_state.tolist()]
        end = len(plain.probability) + np.cumsum(size)
        offset = np.full(len(state), -1, dtype=np.int64)
        offset[acting] = len(plain.action) + np.arange(len(acting))
        return plain._replace(
            probability=np.append(plain.probability, model.probability[outcome]),
            successor=np.append(plain.successor, place(after, model.successor[outcome])),
            charge=np.append(plain.charge, plain.charge[outcome]),
            cost=np.append(plain.cost, model.cost[outcome]),
            first_state=np.array(first, dtype=np.int64),
            choices=plain.choices.with_one_action(len(state)),
            offset=np.append(plain.offset, offset),
            begin=np.append(plain.begin, end - size),
            end=np.append(plain.end, end),
            action=np.append(plain.action, played),
            state=np.append(plain.state, state),
            memory=np.append(plain.memory, self.memory[node]),
        )
