"""Policies with a budget: an action for every state and remaining budget.

In a file, a table by rows, one for each budget from 0 to the policy's own, is one tensor of two dimensions.  Any other
is its entries, state by state, with the least and the largest budget of each state, its action without budget, and the
policy's own budget.
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from prudent.engine.prepared import Prepared, choice_type
from prudent.errors import PrudentError
from prudent.kernels.choices import Choices
from prudent.kernels.episodes import Walk
from prudent.models.graph import met
from prudent.models.rows import BoolArray, IntArray, offsets
from prudent.models.ssp import SSP
from prudent.policies.agent import Agent
from prudent.runtime.limits import Limits

PIECE = 2**20
"""Actions of the model that are looked up at once."""

TABLE = (2, "iu")
"""Dimensions and kinds of numbers of a table by rows."""

PARTS = ("entry", "low", "high", "without", "level")

MOST_LEVELS = 2**28
"""No policy has as many levels: a sweep would take days."""


@dataclass(frozen=True, eq=False, repr=False)
class BudgetPolicy:
    """Actions by state and remaining budget.

    A run starts with a budget of ``level`` and pays its costs from it; a policy that looks at the state alone starts
    with none.  Where costs are rounded, an agent charges itself each cost rounded up, while true costs accrue.  The
    table of actions need have only the budgets that runs can have left in a state: for any other the nearest is played.

    Call it with a state, and with what has been spent on the way there.

    Examples
    --------
    >>> import prudent
    >>> plan = prudent.solve(prudent.domains.figure_2(), alpha=0.1)
    >>> plan.policy("s1", spent=0), plan.policy("s1", spent=1), plan.policy.budget
    ('d', 'e', 9.0)
    """

    prepared: Prepared
    choices: Choices  # the action's number within its prepared state
    level: int  # the budget at the start, in levels
    past_budget: int = field(default=0, kw_only=True)  # levels that are counted past the budget
    remembers: ClassVar[bool] = False  # whether it looks at more than the state and the remaining budget
    tensors: ClassVar[dict[str, tuple[int, str]]] = {"choice": TABLE}  # in a file: dimensions and kinds

    @classmethod
    def of_states(cls, prepared: Prepared, action: IntArray) -> "BudgetPolicy":
        """Return the policy that plays one action in each prepared state, whatever has been spent (internal)."""
        return cls.of_rows(prepared, (action - prepared.action_start[:-1]).astype(choice_type(prepared))[None])

    @classmethod
    def of_rows(cls, prepared: Prepared, rows: NDArray[Any], *, past_budget: int = 0) -> "BudgetPolicy":
        """Return the policy that plays row ``b`` with ``b`` levels left, and starts with the last (internal).

        ``rows``, (n_levels, n_states), has the action's number within its prepared state.
        """
        return cls(prepared, Choices.of_rows(rows), len(rows) - 1, past_budget=past_budget)

    @property
    def budget(self) -> float | None:
        """The total cost that a run should not exceed, in the user's units; None if the policy has no budget.

        By kind of plan: about its VaR (optimal CVaR, with or without a limit), the minimal worst-case cost, or the
        budget given.
        """
        return self.whole if self.level > 0 else None

    @property
    def whole(self) -> float:
        """The total cost that the remaining budget counts from: the budget, or best luck without one (internal)."""
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
        return np.asarray(self.prepared.action_start[:-1] + self.choices.without)

    @property
    def plain_state(self) -> IntArray:
        """The plain prepared state behind each of the policy's own states (internal)."""
        return np.arange(self.prepared.n_states)

    def refuse_as(self, what: str) -> None:
        """Refuse unless state and remaining budget determine the action; ``what`` ends the message (internal)."""

    def packed(self) -> dict[str, NDArray[Any]]:
        """Return the arrays from which the policy can be made again; see ``tensors`` (internal)."""
        return packed_choices("choice", self.choices, self.level)

    @classmethod
    def unpacked(cls, prepared: Prepared, packed: dict[str, NDArray[Any]], past_budget: int) -> "BudgetPolicy":
        """Make a policy again from its arrays and the prepared model; refuse arrays that do not fit it (internal)."""
        return cls(prepared, *unpacked_choices("choice", packed, prepared), past_budget=past_budget)

    def walk(self) -> Walk:
        """Return what simulated runs walk over (internal)."""
        prepared, model, scale = self.prepared, self.prepared.model, self.prepared.scale
        state_of = prepared.members.state_of
        choices, offset, action = self.choices.of(state_of), prepared.action_start[state_of], prepared.model_action
        if len(prepared.members.inner_action):  # some states move to others at no cost before they play their choice
            choices, offset, action = self._routed(), np.zeros(model.n_states, np.int64), np.arange(model.n_actions)
        return Walk(
            probability=model.probability,
            successor=model.successor,
            charge=scale.charged(model.cost, model.outcome_state, model.successor),
            cost=model.cost,
            first_state=model.initial_state,
            first_probability=model.initial_probability,
            first_charge=scale.first_charge(model.initial_state),
            level=self.level,
            choices=choices,
            offset=np.where(model.is_goal, -1, offset),
            begin=model.outcome_start[action],
            end=model.outcome_start[action + 1],
            action=action,
            state=np.arange(model.n_states),
            memory=np.zeros(model.n_states),
        )

    def first_node(self, state: int) -> int:
        """Return the policy's own state at the start of a run in a model state (internal)."""
        return int(self.prepared.members.state_of[state])

    def next_node(self, node: int, action: int, target: int, gain: int) -> int:
        """Return the policy's own state after its action led to a model state at a normalised cost (internal)."""
        return int(self.prepared.members.state_of[target])

    def covered(self, state: Hashable) -> int:
        """Return the number of a model state in which runs act; refuse any other (internal)."""
        model = self.prepared.model
        index = model.index(state)
        if model.is_goal[index]:
            raise PrudentError(f"state {state!r} is a goal: the run is over, there is no action to play")
        if self.prepared.members.state_of[index] < 0:
            why = "nothing leads to it from the start"
            if met(model)[index]:
                why = "no plan that may come there reaches a goal with probability 1"
            raise PrudentError(f"no run of any plan reaches state {state!r}: {why}")
        return index

    def used(self, state: int, spent: float) -> int:
        """Return the levels used by a run in a model state that has spent so much; refuse if none can (internal)."""
        prepared, inside = self.prepared, int(self.prepared.members.state_of[state])
        least = int(prepared.least_spent[inside]) if inside >= 0 else 0
        found = prepared.scale.used(state, spent, least)
        if found is None or (self.level > 0 and found < least):
            lowest = prepared.scale.total(least, state)
            more = f", and higher ones go in steps of {prepared.scale.level_size:g}" if spent > lowest else ""
            raise PrudentError(
                f"no run can be in state {prepared.model.state(state)!r} having spent {spent:g}; "
                f"the lowest cost so far is {lowest:g}{more}"
            )
        return found

    def __call__(self, state: Hashable, spent: float = 0.0) -> Hashable:
        """Return the action to play in a state, given the cost so far.

        If costs are rounded, the remaining budget is rounded down as a whole, while an agent rounds cost by cost and
        may have less left: these are two policies.  A plan's numbers are the agent's; ``plan.decisions().notes`` has
        those of both.  The upper bound on the optimal CVaR holds for both, a limit on CVaR (``max_cvar``) for the agent
        alone.
        """
        index = self.covered(state)
        return self.prepared.model.action(self.model_action(index, self.level - self.used(index, spent)))

    def model_action(self, state: int, left: int) -> int:
        """Return the model's action for a model state and a remaining budget in levels (internal)."""
        return self.moves(int(self.prepared.members.state_of[state]), state, left)[1]

    def moves(self, node: int, state: int, left: int) -> tuple[int, int]:
        """Return what is played in a node, one of the policy's own states, that stands for a model state (internal).

        The node's action comes first, then the model's action that plays it or leads to where it can be played.
        """
        prepared = self.prepared
        action = int(prepared.action_start[node] + self.choices.at(node, left))
        return action, prepared.members.route(state, int(prepared.model_action[action]))

    def model_actions_at(self, state: int | IntArray, left: int | IntArray) -> IntArray:
        """Return the model's action for each of many model states and budgets left; they are broadcast (internal)."""
        prepared = self.prepared
        inside = prepared.members.state_of[state]
        action = np.asarray(prepared.model_action[prepared.action_start[inside] + self.choices.each(inside, left)])
        return prepared.members.route_each(np.broadcast_to(state, action.shape), action)

    @cached_property
    def model_actions(self) -> NDArray[np.int32]:
        """The model's action by remaining budget and model state, (n_levels, model.n_states); -1: none."""
        levels, n = self.level + 1, self.prepared.model.n_states
        Limits.of(None, None).check(4 * levels * n, "a table of all actions", "call the policy with state and spent")
        acting = np.flatnonzero((self.prepared.members.state_of >= 0) & ~self.prepared.model.is_goal)
        table = np.full((levels, n), -1, dtype=np.int32)
        for left, row in enumerate(table):
            row[acting] = self.model_actions_at(acting, left)
        return table

    def _routed(self) -> Choices:
        """Return the model's actions for its own states: a table with the same budgets."""
        model, state_of = self.prepared.model, self.prepared.members.state_of
        acting = (state_of >= 0) & ~model.is_goal
        low = np.where(acting, self.choices.low[state_of], 1)
        high = np.where(acting, self.choices.high[state_of], 0)
        without = np.zeros(model.n_states, dtype=np.int32)
        without[acting] = self.model_actions_at(np.flatnonzero(acting), 0)
        end = offsets(np.maximum(high - low + 1, 0))[1:]
        entry = np.empty(end[-1], dtype=np.int32)
        for begin in range(0, len(entry), PIECE):
            place = np.arange(begin, min(begin + PIECE, len(entry)))
            state = np.searchsorted(end, place, side="right")
            entry[place] = self.model_actions_at(state, high[state] + 1 - (end[state] - place))
        return Choices.of_ranges(entry, low, high, without)

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
        >>> prudent.solve(prudent.domains.figure_2(), alpha=0.1).policy.start()
        <Agent in 's0', spent 0, budget 9, next 'a'>
        """
        return Agent(self, self.prepared.model.first(state))


def tensors_of(declared: Mapping[str, tuple[int, str]], found: Iterable[str]) -> dict[str, tuple[int, str]]:
    """Return the tensors that a file must have, with dimensions and kinds, given those declared and those found."""
    needed = dict[str, tuple[int, str]]()
    for name, form in declared.items():
        by_parts = form == TABLE and f"{name}_entry" in found
        needed |= {f"{name}_{part}": (1, "iu") for part in PARTS} if by_parts else {name: form}
    return needed


def packed_choices(name: str, choices: Choices, level: int) -> dict[str, NDArray[Any]]:
    """Return the tensors of a table."""
    rows = choices.rows
    if rows is not None and len(rows) == level + 1:
        return {name: rows}
    size, step = np.maximum(choices.high - choices.low + 1, 0), choices.stride
    places = zip(choices.first.tolist(), size.tolist(), strict=True)
    entry = np.concatenate([choices.entry[first : first + n * step : step] for first, n in places])
    low, high = np.where(size > 0, choices.low, 1), np.where(size > 0, choices.high, 0)
    parts = entry, low, high, choices.without, np.array([level])
    return {f"{name}_{part}": table for part, table in zip(PARTS, parts, strict=True)}


def unpacked_choices(name: str, packed: Mapping[str, NDArray[Any]], prepared: Prepared) -> tuple[Choices, int]:
    """Return a table in a small type, and the policy's budget; refuse actions and budgets that there cannot be."""
    n, small = prepared.n_states, choice_type(prepared)
    count = np.maximum(np.diff(prepared.action_start), 1)  # the entry of a goal is 0
    if name in packed:
        rows = packed[name]
        if len(rows) == 0 or rows.shape[1] != n:
            raise PrudentError(f"tensor {name} has shape {rows.shape}; the prepared model has {n} states")
        _refuse(name, (rows.min(axis=0) < 0) | (rows.max(axis=0) >= count))
        return Choices.of_rows(rows.astype(small)), len(rows) - 1
    level = int(within(packed, f"{name}_level", 0, MOST_LEVELS, 1)[0])
    low, high = within(packed, f"{name}_low", 0, level + 2, n), within(packed, f"{name}_high", 0, level + 1, n)
    size = np.maximum(high - low + 1, 0)
    entry, without = packed[f"{name}_entry"], packed[f"{name}_without"]
    if (len(entry), len(without)) != (size.sum(), n):
        raise PrudentError(f"{name}_entry and {name}_without have not one entry for each budget and for each state")
    state = np.repeat(np.arange(n), size)
    wrong = (without < 0) | (without >= count)
    wrong[state[(entry < 0) | (entry >= count[state])]] = True
    _refuse(name, wrong)
    return Choices.of_ranges(entry.astype(small), low, high, without.astype(small)), level


def within(packed: Mapping[str, NDArray[Any]], name: str, least: int, end: int, size: int) -> IntArray:
    """Return a tensor of whole numbers from ``least`` up to, but not including, ``end``; refuse any other."""
    table = packed[name]
    if table.shape != (size,):
        raise PrudentError(f"{name} has {len(table)} entries, not {size}")
    if size and not least <= int(table.min()) <= int(table.max()) < end:
        raise PrudentError(f"{name} has entries from {table.min()} to {table.max()}, not from {least} to {end - 1}")
    return table.astype(np.int64)


def _refuse(name: str, wrong: BoolArray) -> None:
    """Refuse a table with actions that its states do not have."""
    if wrong.any():
        raise PrudentError(f"tensor {name} has an action that prepared state {np.flatnonzero(wrong)[0]} has not")
