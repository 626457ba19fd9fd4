"""What a plan tells an agent to do: an action for every state and budget left."""

from collections.abc import Hashable
from dataclasses import dataclass, field
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

__all__ = ["BudgetPolicy", "MixedPolicy", "UnrolledPolicy"]


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
    beyond: int = field(default=0, kw_only=True)  # levels that are counted beyond the budget: the first one of excess
    takes_any_cost: ClassVar[bool] = True  # whether state and cost so far tell what to play

    @classmethod
    def of_states(cls, prepared: Prepared, action: IntArray) -> "BudgetPolicy":
        """Return the policy that plays one action in each prepared state, whatever has been spent.

        :meta private:
        """
        return cls(prepared, (action - prepared.action_start[:-1]).astype(choice_type(prepared))[None])

    @property
    def level(self) -> int:
        """What is left at the start, in levels."""
        return len(self.choice) - 1

    @property
    def budget(self) -> float | None:
        """The total cost that a run had better not exceed, in the user's units; None if it looks at no budget.

        By the plan: about its VaR (least CVaR, with or without a limit), the least worst case, or the budget asked for.
        """
        return self.whole if self.level > 0 else None

    @property
    def whole(self) -> float:
        """The total cost from which what is left is counted: the budget, or best luck if it looks at none.

        :meta private:
        """
        return self.prepared.scale.in_units(self.level - (self.beyond if self.level > 0 else 0))

    def __repr__(self) -> str:
        budget = "no budget" if self.budget is None else f"budget {self.budget:g}, {self.level + 1:,} levels"
        return f"<{type(self).__name__} for {self.prepared.model.name}: {budget}>"

    def check_model(self, model: SSP) -> None:
        """Refuse a model that the policy was not made for.

        :meta private:
        """
        mine = self.prepared.model
        if mine is not model and mine.fingerprint != model.fingerprint:
            raise PrudentError(f"the policy was made for {mine!r}, not for {model!r}; solve this one")

    def first_node(self, state: int) -> int:
        """Return the policy's own state at the start of a run in a model state.

        :meta private:
        """
        return int(self.prepared.members.state_of[state])

    def next_node(self, node: int, action: int, target: int, gain: int) -> int:
        """Return the policy's own state after its action led to a model state at a normalised cost in lattice steps.

        :meta private:
        """
        return int(self.prepared.members.state_of[target])

    def level_left(self, state: int, spent: float) -> int:
        """Return the budget left, in levels, in a model state that the plan covers, having spent so much.

        :meta private:
        """
        self.check_covered(state)
        return max(self.level - self.used(state, spent), 0)

    def check_covered(self, state: int) -> None:
        """Refuse a model state that no run can be in, or from which no plan can be sure of a goal.

        :meta private:
        """
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
        """Return how many levels a run has used in a model state having spent so much; refuse what no run can.

        :meta private:
        """
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

        Where costs are rounded, what is left of the budget is rounded down as a whole, not cost by cost as an agent
        does; the bound on CVaR holds for that, too.
        """
        model = self.prepared.model
        index = model.index(state)
        if model.is_goal[index]:
            raise PrudentError(f"state {state!r} is a goal: the run is over, there is no action to play")
        return model.action(self.model_action(index, self.level_left(index, spent)))

    def model_action(self, state: int, left: int) -> int:
        """Return the model's action for a model state and a budget left in levels.

        :meta private:
        """
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
        for row, column in np.argwhere(owners != acting):  # members of a collapsed cycle that lead to its exit
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


@dataclass(frozen=True, eq=False, repr=False)
class UnrolledPolicy(BudgetPolicy):
    """A policy that remembers more than the cost so far; its memory is unrolled into states of its own.

    ``prepared`` is the model of those states: the plain ones first, then pairs of a plain state and a memory,
    each with the one action that the policy plays there.
    """

    origin: IntArray  # (n_states,)  the plain prepared state behind each
    memory: FloatArray  # (n_states,)  what is remembered there; 0 for the plain states
    resolution: float = 0.0  # memories closer than this count as one
    takes_any_cost: ClassVar[bool] = False

    def next_node(self, node: int, action: int, target: int, gain: int) -> int:
        """Return the policy's own state after its action led to a model state at a normalised cost in lattice steps."""
        prepared, plain = self.prepared, int(self.prepared.members.state_of[target])
        for o in range(int(prepared.outcome_start[action]), int(prepared.outcome_start[action + 1])):
            after = int(prepared.successor[o])
            if self.origin[after] == plain and prepared.fine[o] == gain:
                return after
        return node  # a free loop: nothing has changed

    def first_node(self, state: int) -> int:
        """Return the policy's own state at the start of a run in a model state."""
        prepared, plain = self.prepared, int(self.prepared.members.state_of[state])
        if self.origin[prepared.start] == plain:
            return prepared.start
        # The first chance step is an action of the start, with one outcome for each initial state.
        gain = int(prepared.scale.luck[state]) - prepared.scale.start_luck
        return self.next_node(prepared.start, int(prepared.action_start[prepared.start]), state, gain)

    def __call__(self, state: Hashable, spent: float = 0.0) -> Hashable:
        """Refuse: state and cost so far do not tell what this policy plays."""
        raise PrudentError("this policy remembers more than the cost so far; run it with policy.start()")


@dataclass(frozen=True, eq=False, repr=False)
class MixedPolicy(BudgetPolicy):
    """One of two policies with the same budget, drawn at the start of a run.

    Examples
    --------
    >>> import prudent
    >>> plan = prudent.solve(prudent.domains.figure_2(), alpha=0.1, max_cvar=12, randomise=True)
    >>> [(round(chance, 6), policy("s1")) for chance, policy in plan.policy.parts]
    [(0.555556, 'd'), (0.444444, 'c')]
    """

    other: NDArray[Any]  # (n_levels, n_states)  the choice of the second
    share: float  # the chance of the first

    @property
    def parts(self) -> tuple[tuple[float, BudgetPolicy], ...]:
        """The chance of each policy, and the policy."""
        first, second = BudgetPolicy(self.prepared, self.choice), BudgetPolicy(self.prepared, self.other)
        return (float(self.share), first), (1 - float(self.share), second)

    def __call__(self, state: Hashable, spent: float = 0.0) -> Hashable:
        """Refuse: which of the two is played is drawn once, at the start."""
        raise PrudentError("this policy draws one of two at the start: run it with policy.start(), or take its parts")

    def start(self, state: Hashable | None = None, *, seed: int | None = None) -> Agent:
        """Return an agent at the start of a run, of the policy that the seed draws: another seed for each run.

        Parameters
        ----------
        state : hashable, optional
            The state that the run is in; only needed if there are several initial ones.
        seed : int
            What draws the policy.

        Examples
        --------
        >>> import prudent
        >>> plan = prudent.solve(prudent.domains.figure_2(), alpha=0.1, max_cvar=12, randomise=True)
        >>> for seed in range(3):
        ...     agent = plan.policy.start(seed=seed)
        ...     agent.observe("s1", cost=0)
        ...     print(agent.action)
        c
        d
        d
        """
        if seed is None:
            raise PrudentError("this policy draws one of two: give start(seed=), another number for each run")
        drawn = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed))).random() >= self.share
        return self.parts[int(drawn)][1].start(state)
