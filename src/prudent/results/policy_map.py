"""Data for maps: what a plan plays in every state at one remaining budget, or its mean over the runs."""

from collections.abc import Hashable, Mapping
from numbers import Real
from typing import Any

import numpy as np

from prudent.domains.registry import DOMAINS, Domain
from prudent.domains.treasure import DIRECTIONS, MOVE_COST, TREASURE
from prudent.errors import PrudentError, as_number
from prudent.models.ssp import SSP
from prudent.results.network import MOST
from prudent.results.plan import Plan

__all__ = [
    "arrows_at",
    "cells_at",
    "domain_of",
    "is_number",
    "is_sea",
    "mean_cells",
    "other_parts",
    "played_at",
    "states_with",
]

Cell = tuple[Any, Any]
"""Two parts of a state."""


def domain_of(model: SSP) -> Domain:
    """Return a model's domain; one drawn as a table if it has none, or its states do not fit the domain's picture."""
    found = DOMAINS.get(model.name, Domain(model.name, lambda: model))
    parts = len(found.parts)
    if (
        (found.drawn == "heat" and not (parts > 1 and _has_parts(model, parts) and _has_numbers(model)))
        or (found.drawn == "sea" and not is_sea(model))
        or (found.drawn == "network" and model.n_states > MOST)
    ):
        return Domain(found.title, found.make)
    return found


def is_number(name: object) -> bool:
    """Return whether a name is a number."""
    return isinstance(name, Real) and not isinstance(name, bool)


def is_sea(model: SSP) -> bool:
    """Return whether a model has the states and the actions of Deep Sea Treasure."""
    return _has_parts(model, 3) and {model.action(i) for i in range(model.n_actions)} <= {"stop", *DIRECTIONS}


def played_at(plan: Plan, state: int, budget: float) -> Hashable | None:
    """Return what is played in a model state at a remaining budget; None where no run can have that much left.

    A budget between two levels counts as the lower one; a plan without a budget plays the same at any.
    """
    policy, prepared, model = plan.policy, plan.policy.prepared, plan.model
    budget = as_number("budget", budget, "a finite number", np.isfinite)
    policy.refuse_as("is no map")
    if prepared.members.state_of[state] < 0:
        return None
    if policy.level == 0:
        return model.action(policy.model_action(state, 0))
    used = prepared.scale.measured(state, policy.whole - budget, -1)
    if used < prepared.least_spent[prepared.members.state_of[state]]:
        return None
    return model.action(policy.model_action(state, max(policy.level - used, 0)))


def cells_at(
    plan: Plan, budget: float, x: int, y: int, where: Mapping[int, Hashable]
) -> dict[Cell, tuple[Hashable, Any]]:
    """Return, by parts x and y of the state, the state and the number played there at a remaining budget.

    The number is None where no run can have that much left.  ``where`` fixes other parts.
    """
    cells: dict[Cell, tuple[Hashable, Any]] = {}
    for index, cell in _choices(plan.model, x, y, where):
        if plan.policy.prepared.members.state_of[index] < 0:
            continue
        state = plan.model.state(index)
        if cell in cells:
            raise PrudentError(
                f"states {cells[cell][0]!r} and {state!r} share a cell; with a budget, fix the others: where={{2: ...}}"
            )
        action = played_at(plan, index, budget)
        cells[cell] = state, None if action is None else _number(plan.model, action)
    return cells


def mean_cells(plan: Plan, x: int, y: int, where: Mapping[int, Hashable]) -> dict[Cell, float]:
    """Return, by parts x and y of the state, the mean of the numbers that runs play there."""
    model, played = plan.model, plan.visits().played
    sums: dict[Cell, list[float]] = {}
    for index, cell in _choices(model, x, y, where):
        for action in _actions(model, index):
            if played[action] > 0:
                both = sums.setdefault(cell, [0.0, 0.0])
                both[0] += played[action] * _number(model, model.action(action))
                both[1] += played[action]
    # Rounding errors must not change the mean of equal actions.
    return {cell: float(np.round(total / times, 9)) for cell, (total, times) in sums.items()}


def other_parts(model: SSP) -> dict[int, Hashable]:
    """Return the parts of the start state, except the two on the axes of a heat map."""
    acting = np.append(model.initial_state, np.flatnonzero(~model.is_goal))
    start: Any = model.state(int(acting[~model.is_goal[acting]][0]))
    return dict(enumerate(start[2:], 2))


def arrows_at(plan: Plan, moves: int) -> dict[tuple[int, int, int], str]:
    """Return the direction of Deep Sea Treasure that is played in each state after a number of moves."""
    model, found = plan.model, {}
    for index in np.flatnonzero(~model.is_goal).tolist():
        state: Any = model.state(index)
        if state[2] == moves and state[:2] not in TREASURE:
            found[state] = str(plan.policy(state, float(MOVE_COST * moves)))
    return found


def _choices(model: SSP, x: int, y: int, where: Mapping[int, Hashable]) -> list[tuple[int, Cell]]:
    """Return the states with a number among their actions, and the cell of each."""
    return [each for each in states_with(model, x, y, where) if not _only_way(model, each[0])]


def states_with(model: SSP, x: int, y: int, where: Mapping[int, Hashable]) -> list[tuple[int, Cell]]:
    """Return the states, goals aside, that are tuples with coordinates x and y, and the cell of each."""
    if isinstance(x, bool) or isinstance(y, bool) or not isinstance(x, int) or not isinstance(y, int) or x == y:
        raise PrudentError(f"x is {x!r} and y is {y!r}; they must be two coordinates of the state, counted from 0")
    if not isinstance(where, Mapping) or not all(isinstance(i, int) and i not in (x, y) for i in where):
        raise PrudentError(f"where is {where!r}; it must give values of other coordinates, as in {{2: 10}}")
    found = []
    for index in np.flatnonzero(~model.is_goal).tolist():
        name = model.state(index)
        if not isinstance(name, tuple) or max(x, y, *where, 0) >= len(name) or min(x, y, *where, 0) < 0:
            continue
        if all(name[i] == value for i, value in where.items()):
            found.append((index, (name[x], name[y])))
    if not found:
        raise PrudentError(
            f"{model.name} has no state that is a tuple with coordinates {x} and {y}"
            + (f" and {dict(where)!r}" if where else "") + "; use budget_strip or routes"
        )  # fmt: skip
    return found


def _only_way(model: SSP, index: int) -> bool:
    """Return whether a state has one action, and that is not a number: there is nothing to map."""
    actions = _actions(model, index)
    return len(actions) == 1 and not is_number(model.action(actions[0]))


def _actions(model: SSP, index: int) -> range:
    return range(int(model.action_start[index]), int(model.action_start[index + 1]))


def _number(model: SSP, action: Hashable) -> Any:
    if not is_number(action):
        raise PrudentError(
            f"action {action!r} of {model.name} is not a number: a heat map has none for it; use budget_strip or routes"
        )
    return action


def _has_parts(model: SSP, count: int) -> bool:
    """Return whether all states except goals are tuples of this many numbers."""
    names = [model.state(index) for index in np.flatnonzero(~model.is_goal).tolist()]
    return all(isinstance(name, tuple) and len(name) == count and all(map(is_number, name)) for name in names)


def _has_numbers(model: SSP) -> bool:
    """Return whether there is a choice somewhere, and actions are numbers wherever there is one."""
    acting = [index for index in np.flatnonzero(~model.is_goal).tolist() if not _only_way(model, index)]
    return bool(acting) and all(is_number(model.action(a)) for index in acting for a in _actions(model, index))
