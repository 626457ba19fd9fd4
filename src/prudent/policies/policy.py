"""Policies with a budget: an action for every state and budget left."""

from collections.abc import Hashable
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from prudent.engine.prepared import Prepared, choice_type
from prudent.errors import PrudentError
from prudent.models.graph import reachable
from prudent.models.rows import FloatArray, IntArray, owner
from prudent.models.ssp import SSP
from prudent.policies.agent import Agent

__all__ = ["BudgetPolicy", "Walk", "checked_choice"]


@dataclass(frozen=True)
class Walk:
    """What simulated runs walk over: the model itself, or the states that a policy with a memory is unrolled into."""

    outcome_start: IntArray
    probability: FloatArray
    successor: IntArray
    charge: IntArray  # (n_outcomes,)  in levels
    cost: FloatArray  # (n_outcomes,)
    first_state: IntArray
    first_probability: FloatArray
    first_charge: IntArray
    level: int
    table: NDArray[Any]  # (n_levels, n_columns)
    column: IntArray  # (n_states,)  of the table; -1 in goals
    offset: IntArray  # (n_states,)  what to add to the table's entry
    lookup: IntArray  # the action that the sum stands for

    def arrays(self) -> tuple[Any, ...]:
        """Return what the kernel takes, in its order."""
        return tuple(getattr(self, item.name) for item in fields(self))


@dataclass(frozen=True, eq=False, repr=False)
class BudgetPolicy:
    """Actions by state and budget left.

    A run starts with a budget and pays its costs from it.  Row ``b`` of ``choice`` is played with ``b`` levels left,
    row 0 when none is left.  A policy that looks at the state alone has only that row.  Where costs are rounded, an
    agent charges itself each cost rounded up, while true costs accrue.

    Call it with a state, and with what has been spent on the way there.

    Examples
    --------
    >>> import prudent
    >>> trip = {
    ...     "home": {"bus": [(0.5, "work", 2), (0.5, "work", 8)]},
    ...     "work": {"bus": [(0.5, "back", 2), (0.5, "back", 8)], "taxi": [(1, "back", 6)]},
    ... }
    >>> plan = prudent.solve(prudent.build("home", trip.get, goals=["back"]), alpha=0.3)
    >>> plan.policy("work", spent=2), plan.policy("work", spent=8), plan.policy.budget
    ('bus', 'taxi', 14.0)
    """

    prepared: Prepared
    choice: NDArray[Any]  # (n_levels, n_states)  the action's number within its prepared state, in a small type
    past_budget: int = field(default=0, kw_only=True)  # levels that are counted past the budget
    remembers: ClassVar[bool] = False  # whether it looks at more than the state and the budget left
    tensors: ClassVar[dict[str, tuple[int, str]]] = {"choice": (2, "iu")}  # in a file: dimensions and kinds

    @classmethod
    def of_states(cls, prepared: Prepared, action: IntArray) -> "BudgetPolicy":
        """Return the policy that plays one action in each prepared state, whatever has been spent (internal)."""
        return cls(prepared, (action - prepared.action_start[:-1]).astype(choice_type(prepared))[None])

    @property
    def level(self) -> int:
        """The budget at the start, in levels."""
        return len(self.choice) - 1

    @property
    def budget(self) -> float | None:
        """The total cost that a run should not exceed, in the user's units; None if the policy looks at no budget.

        By kind of plan: about its VaR (least CVaR, with or without a limit), the least worst case, or the budget given.
        """
        return self.whole if self.level > 0 else None

    @property
    def whole(self) -> float:
        """The total cost from which the budget left is counted: the budget, or best luck without one (internal)."""
        return self.prepared.scale.in_units(self.level - (self.past_budget if self.level > 0 else 0))

    def __repr__(self) -> str:
        budget = "no budget" if self.budget is None else f"budget {self.budget:g}, {self.level + 1:,} levels"
        return f"<{type(self).__name__} for {self.prepared.model.name}: {budget}>"

    def check_model(self, model: SSP) -> None:
        """Refuse a model that the policy was not made for (internal)."""
        mine = self.prepared.model
        if mine is not model and mine.fingerprint != model.fingerprint:
            raise PrudentError(f"the policy was made for {mine!r}, not for {model!r}; solve this one")

    @property
    def parts(self) -> "tuple[tuple[float, BudgetPolicy], ...]":
        """The policies to draw one from at the start of a run, each with its probability: itself alone (internal)."""
        return ((1.0, self),)

    @property
    def without_budget(self) -> IntArray:
        """The prepared action of each state once the budget is gone (internal)."""
        return np.asarray(self.prepared.action_start[:-1] + self.choice[0])

    @property
    def plain_state(self) -> IntArray:
        """The plain prepared state behind each of the policy's own states (internal)."""
        return np.arange(self.prepared.n_states)

    def refuse_as(self, what: str) -> None:
        """Refuse unless state and budget left determine the action; ``what`` ends the message (internal)."""

    def packed(self) -> dict[str, NDArray[Any]]:
        """Return the arrays from which the policy can be made again; see ``tensors`` (internal)."""
        return {"choice": self.choice}

    @classmethod
    def unpacked(cls, prepared: Prepared, packed: dict[str, NDArray[Any]], past_budget: int) -> "BudgetPolicy":
        """Make a policy again from its arrays and the prepared model; refuse arrays that do not fit it (internal)."""
        return cls(prepared, checked_choice(prepared, packed["choice"]), past_budget=past_budget)

    def walk(self) -> Walk:
        """Return what simulated runs walk over (internal)."""
        prepared, model, scale = self.prepared, self.prepared.model, self.prepared.scale
        state_of = prepared.members.state_of
        table, offset, lookup = self.choice, prepared.action_start[state_of], prepared.model_action
        column = np.where(model.is_goal, -1, state_of)
        if len(prepared.members.inner_action):  # some states move to others at no cost before they play their choice
            table, offset, lookup = self.model_actions, np.zeros(model.n_states, np.int64), np.arange(model.n_actions)
            column = np.where(column < 0, -1, np.arange(model.n_states))
        return Walk(
            outcome_start=model.outcome_start,
            probability=model.probability,
            successor=model.successor,
            charge=scale.charged(model.cost, model.outcome_state, model.successor),
            cost=model.cost,
            first_state=model.initial_state,
            first_probability=model.initial_probability,
            first_charge=scale.first_charge(model.initial_state),
            level=self.level,
            table=table,
            column=column,
            offset=offset,
            lookup=lookup,
        )

    def walked(self, charged: IntArray, paid: FloatArray) -> FloatArray:
        """Return the total costs of walks, from the levels charged and from the sums of the walk's costs (internal)."""
        return paid if self.prepared.scale.rounded else self.prepared.scale.totals(charged)

    def named(self, steps: list[tuple[int, int, int]]) -> tuple[tuple[Hashable, Hashable, float], ...]:
        """Return a walk by its states, actions and costs in the user's words (internal)."""
        model = self.prepared.model
        return tuple((model.state(s), model.action(a), float(model.cost[o])) for s, a, o in steps)

    def first_node(self, state: int) -> int:
        """Return the policy's own state at the start of a run in a model state (internal)."""
        return int(self.prepared.members.state_of[state])

    def next_node(self, node: int, action: int, target: int, gain: int) -> int:
        """Return the policy's own state after its action led to a model state at a normalised cost (internal)."""
        return int(self.prepared.members.state_of[target])

    def level_left(self, state: int, spent: float) -> int:
        """Return the budget left in levels in a model state that the plan covers, from the cost so far (internal)."""
        self.check_covered(state)
        return max(self.level - self.used(state, spent), 0)

    def check_covered(self, state: int) -> None:
        """Refuse a model state that no run can be in, or from which no plan can be sure of a goal (internal)."""
        if self.prepared.members.state_of[state] >= 0:
            return
        model = self.prepared.model
        arc = np.flatnonzero(model.probability > 0)
        source, target = owner(model.action_start)[owner(model.outcome_start)[arc]], model.successor[arc]
        starts = model.initial_state[model.initial_probability > 0].tolist()
        if any(reachable(source, target, model.n_states, start)[state] for start in starts):
            why = "no plan that may come there reaches a goal with probability 1"
        else:
            why = "nothing leads to it from the start"
        raise PrudentError(f"no run of any plan reaches state {model.state(state)!r}: {why}")

    def used(self, state: int, spent: float) -> int:
        """Return the levels used by a run in a model state that has spent so much; refuse if none can (internal)."""
        prepared, inside = self.prepared, int(self.prepared.members.state_of[state])
        least = int(prepared.least_spent[inside]) if inside >= 0 else 0
        found = prepared.scale.used(state, spent, least)
        if found is None or (self.level > 0 and found < least):
            lowest = prepared.scale.total(least, state)
            more = f", and more goes in steps of {prepared.scale.level_size:g}" if spent > lowest else ""
            raise PrudentError(
                f"no run can be in state {prepared.model.state(state)!r} having spent {spent:g}; "
                f"the least is {lowest:g}{more}"
            )
        return found

    def __call__(self, state: Hashable, spent: float = 0.0) -> Hashable:
        """Return the action to play in a state when so much has been spent.

        Where costs are rounded, the budget left is rounded down as a whole, while an agent rounds cost by cost; the
        bound on CVaR holds for both.
        """
        model = self.prepared.model
        index = model.index(state)
        if model.is_goal[index]:
            raise PrudentError(f"state {state!r} is a goal: the run is over, there is no action to play")
        return model.action(self.model_action(index, self.level_left(index, spent)))

    def model_action(self, state: int, left: int) -> int:
        """Return the model's action for a model state and a budget left in levels (internal)."""
        prepared = self.prepared
        inside = int(prepared.members.state_of[state])
        action = int(prepared.model_action[prepared.action_start[inside] + self.choice[left, inside]])
        return prepared.members.route(state, action)

    @cached_property
    def model_actions(self) -> NDArray[np.int32]:
        """The model's action by budget left and model state, (n_levels, model.n_states); -1 where there is none."""
        prepared, model = self.prepared, self.prepared.model
        acting = np.flatnonzero((prepared.members.state_of >= 0) & ~model.is_goal)
        inside = prepared.members.state_of[acting]
        table = np.full((len(self.choice), model.n_states), -1, dtype=np.int32)
        played = prepared.model_action[prepared.action_start[inside] + self.choice[:, inside]]
        table[:, acting] = played
        owners = np.searchsorted(model.action_start, played, side="right") - 1
        for row, column in np.argwhere(owners != acting):  # members of an end component that lead to its exit
            state = int(acting[column])
            table[row, state] = prepared.members.route(state, int(played[row, column]))
        return table

    def start(self, state: Hashable | None = None, *, seed: int | None = None) -> Agent:
        """Return an agent at the start of a run.

        Parameters
        ----------
        state : hashable, optional
            The state that the run is in; only needed if there are several initial ones.
        seed : int, optional
            Only needed by policies that randomise, another one for each run.

        Examples
        --------
        >>> import prudent
        >>> plan = prudent.solve(prudent.domains.figure_2(), alpha=0.1)
        >>> plan.policy.start()
        <Agent in 's0', spent 0, budget 9, next 'a'>
        """
        return Agent(self, self.prepared.model.first(state))


def checked_choice(prepared: Prepared, choice: NDArray[Any]) -> NDArray[Any]:
    """Return a table of actions in a small type; refuse one with actions that its states do not have."""
    if len(choice) == 0 or choice.shape[1] != prepared.n_states:
        raise PrudentError(f"tensor choice has shape {choice.shape}; the prepared model has {prepared.n_states} states")
    n_actions = np.diff(prepared.action_start)
    wrong = (choice.min(axis=0) < 0) | (choice.max(axis=0) >= np.maximum(n_actions, 1))  # the entry of a goal is 0
    if wrong.any():
        raise PrudentError(f"tensor choice has an action that prepared state {np.flatnonzero(wrong)[0]} has not")
    return choice.astype(choice_type(prepared))
