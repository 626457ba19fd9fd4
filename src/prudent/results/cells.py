"""What a plan does in each cell: states that share two coordinates, and what is played there."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from prudent.errors import PrudentError
from prudent.models.rows import FloatArray
from prudent.models.ssp import SSP
from prudent.results.decisions import met_of
from prudent.results.plan import Plan
from prudent.results.policy_map import is_number, played_at, states_with

__all__ = ["Played", "are_pairs", "cells_of", "goal_cells", "is_map", "met_with"]


@dataclass(frozen=True)
class Played:
    """What is played in one cell."""

    shares: dict[Hashable, float]  # by action: how often it is played there, adding up to 1
    met: bool  # whether runs of the plan can be there
    cost: float  # of the step, expected
    towards: tuple[float, float] | None  # by how much the likeliest outcome changes the coordinates


def cells_of(
    plan: Plan, budget: float | None, x: int, y: int, where: Mapping[int, Hashable]
) -> dict[tuple[Any, Any], Played]:
    """Return what is played in each cell with a remaining budget, or, without one, by runs of the plan."""
    model, visits = plan.model, plan.visits().played
    cells: dict[tuple[Any, Any], dict[int, float]] = {}
    owner: dict[tuple[Any, Any], Hashable] = {}
    for index, cell in states_with(model, x, y, where):
        if budget is None:
            rows = range(int(model.action_start[index]), int(model.action_start[index + 1]))
            often = {row: float(visits[row]) for row in rows if visits[row] > 0}
        else:
            action = played_at(plan, index, budget)
            often = {} if action is None else {model.find_action(index, action): 1.0}
            if often and cell in owner:
                raise PrudentError(
                    f"states {owner[cell]!r} and {model.state(index)!r} share a cell; with a budget, fix the others: "
                    "where={2: ...}"
                )
            owner[cell] = model.state(index)
        if often:
            cells.setdefault(cell, {}).update(often)
    met = met_with(plan, budget) if budget is not None else None
    return {cell: _played(model, cell, often, met, x, y) for cell, often in cells.items()}


def met_with(plan: Plan, budget: float) -> set[Hashable]:
    """Return the states that runs of a plan meet with a remaining budget."""
    spent, near = plan.policy.whole - budget, 1e-9 * max(1.0, abs(plan.policy.whole))
    always = plan.policy.budget is None
    rows = met_of(plan.policy)
    return {row.state for row in rows if always or row.at_least - near <= spent <= row.at_most + near}


def _played(
    model: SSP, cell: tuple[Any, Any], often: dict[int, float], met: set[Hashable] | None, x: int, y: int
) -> Played:
    total, shares, cost = sum(often.values()), dict[Hashable, float](), 0.0
    for row, times in often.items():
        action = model.action(row)
        shares[action] = shares.get(action, 0.0) + times / total
        outcomes = slice(*model.outcome_start[row : row + 2])
        cost += times / total * float(model.probability[outcomes] @ model.cost[outcomes])
    most = max(often, key=lambda row: often[row])
    there = met is None or model.state(model.state_of_action(most)) in met
    return Played(shares, there, cost, _towards(model, most, cell, x, y))


def _towards(model: SSP, row: int, cell: tuple[Any, Any], x: int, y: int) -> tuple[float, float] | None:
    """Return by how much the likeliest outcome of an action changes two coordinates that are numbers."""
    first, last = model.outcome_start[row : row + 2]
    next_state: Any = model.state(int(model.successor[first + np.argmax(model.probability[first:last])]))
    if not isinstance(next_state, tuple) or max(x, y) >= len(next_state):
        return None
    ends = (*cell, next_state[x], next_state[y])
    return (next_state[x] - cell[0], next_state[y] - cell[1]) if all(map(is_number, ends)) else None


def goal_cells(model: SSP, x: int, y: int, where: Mapping[int, Hashable]) -> list[tuple[Any, Any]]:
    """Return the cells of goals that are tuples as well."""
    names: list[Any] = [model.state(index) for index in np.flatnonzero(model.is_goal).tolist()]
    tuples = [name for name in names if isinstance(name, tuple) and len(name) > max(x, y, *where, 0)]
    return [(name[x], name[y]) for name in tuples if all(name[i] == value for i, value in where.items())]


def are_pairs(model: SSP) -> bool:
    """Return whether all states except goals are pairs of numbers or texts."""
    names: list[Any] = [model.state(index) for index in np.flatnonzero(~model.is_goal).tolist()]
    pairs = [name for name in names if isinstance(name, tuple) and len(name) == 2]
    return len(pairs) == len(names) and all(is_number(each) or isinstance(each, str) for p in pairs for each in p)


def is_map(model: SSP, x: int, y: int) -> bool:
    """Return whether two coordinates are a place: moves lead back and forth along both, by at most a step each."""
    place = np.full((model.n_states, 2), np.nan)
    for index in range(model.n_states):
        name: Any = model.state(index)
        if isinstance(name, tuple) and len(name) > max(x, y) and is_number(name[x]) and is_number(name[y]):
            place[index] = name[x], name[y]
    source = np.repeat(model.action_state, np.diff(model.outcome_start))
    moved: FloatArray = place[model.successor] - place[source]
    moved = moved[np.isfinite(moved).all(axis=1)]
    steps = (np.unique(np.abs(moved[:, i][moved[:, i] != 0])) for i in (0, 1))
    back_and_forth = all((moved[:, i] > 0).any() and (moved[:, i] < 0).any() for i in (0, 1))
    return bool(back_and_forth and all(len(each) == 1 for each in steps))
