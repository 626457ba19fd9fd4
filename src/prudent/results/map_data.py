"""Data for maps: what a plan plays in each state or cell, at one remaining budget or over its runs.

Also a model as a network: the ways between its states, how often runs take them, and where states lie.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from scipy.sparse.csgraph import shortest_path

from prudent.domains.registry import DOMAINS, Domain
from prudent.domains.treasure import DIRECTIONS, MOVE_COST, TREASURE
from prudent.errors import PrudentError, as_number
from prudent.models.rows import FloatArray, IntArray
from prudent.models.ssp import SSP
from prudent.results.decisions import met_of
from prudent.results.plan import Plan

PLACED = 600
"""The most states that are laid out."""

Cell = tuple[Any, Any]
"""Two parts of a state."""


@dataclass(frozen=True)
class Played:
    """What is played in one cell: in states that share two coordinates."""

    shares: dict[Hashable, float]  # by action: how often it is played there, adding up to 1
    met: bool  # whether runs of the plan can be there
    cost: float  # of the step, expected
    towards: tuple[float, float] | None  # by how much the likeliest outcome changes them, if they are numbers

    @property
    def mean(self) -> float:
        """The mean of the actions, if they are numbers; rounding errors do not change that of equal ones."""
        shares: Any = self.shares
        return float(np.round(sum(share * action for action, share in shares.items()), 9))


def domain_of(model: SSP) -> Domain:
    """Return a model's domain; one drawn as a table if it has none, or its states do not fit the domain's picture."""
    found = DOMAINS.get(model.name, Domain(model.name, lambda: model))
    parts = len(found.parts)
    if (
        (found.drawn == "heat" and not (parts > 1 and _has_parts(model, parts) and _has_numbers(model)))
        or (found.drawn == "sea" and not is_sea(model))
        or (found.drawn == "network" and model.n_states > PLACED)
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


def played_in(plan: Plan, states: Iterable[int], budget: float | None) -> FloatArray:
    """Return how often a run plays each action; with a remaining budget, 1 for what is played in some states."""
    if budget is None:
        return plan.visits().played
    found = np.zeros(plan.model.n_actions)
    for index in states:
        if (action := played_at(plan, index, budget)) is not None:
            found[plan.model.find_action(index, action)] = 1
    return found


def cells_of(
    plan: Plan, budget: float | None, x: int, y: int, where: Mapping[int, Hashable], *, numbers: bool = False
) -> dict[Cell, Played]:
    """Return what is played in each cell with a remaining budget, or, without one, by runs of the plan.

    With ``numbers``, states without a choice are left out, and actions that are not numbers are refused.
    """
    model = plan.model
    places = choices(model, x, y, where) if numbers else states_with(model, x, y, where)
    played = played_in(plan, (index for index, _ in places), budget)
    cells: dict[Cell, dict[int, float]] = {}
    for index, cell in places:
        often = {row: float(played[row]) for row in model.actions(index) if played[row] > 0}
        if budget is not None and often and cell in cells:
            other = model.state(model.state_of_action(next(iter(cells[cell]))))
            raise PrudentError(
                f"states {other!r} and {model.state(index)!r} share a cell; with a budget, fix the others: "
                "where={2: ...}"
            )
        for action in (model.action(row) for row in often if numbers):
            if not is_number(action):
                raise PrudentError(
                    f"action {action!r} of {model.name} is not a number: a heat map has none for it; use budget_strip "
                    "or routes"
                )
        if often:
            cells.setdefault(cell, {}).update(often)
    met = None  # the states that runs meet with this budget; None: those of all cells
    if budget is not None:
        spent, near = plan.policy.whole - budget, 1e-9 * max(1.0, abs(plan.policy.whole))
        rows, always = met_of(plan.policy), plan.policy.budget is None
        met = {row.state for row in rows if always or row.at_least - near <= spent <= row.at_most + near}
    return {cell: _played(model, cell, often, met, x, y) for cell, often in cells.items()}


def _played(model: SSP, cell: Cell, often: dict[int, float], met: set[Hashable] | None, x: int, y: int) -> Played:
    total, shares, cost = sum(often.values()), dict[Hashable, float](), 0.0
    for row, times in often.items():
        action = model.action(row)
        shares[action] = shares.get(action, 0.0) + times / total
        outcomes = slice(*model.outcome_start[row : row + 2])
        cost += times / total * float(model.probability[outcomes] @ model.cost[outcomes])
    most = max(often, key=lambda row: often[row])
    there = met is None or model.state(model.state_of_action(most)) in met
    target, towards = _cell(model.state(int(model.successor[model.likeliest(most)])), x, y, {}), None
    if target is not None and all(map(is_number, (*cell, *target))):
        towards = target[0] - cell[0], target[1] - cell[1]
    return Played(shares, there, cost, towards)


def other_parts(model: SSP) -> dict[int, Hashable]:
    """Return the parts of the start state, except the two on the axes of a heat map."""
    start: Any = next(model.state(s) for s in (*model.initial_state.tolist(), *model.acting) if not model.is_goal[s])
    return dict(enumerate(start[2:], 2))


def arrows_at(plan: Plan, moves: int) -> dict[tuple[int, int, int], str]:
    """Return the direction of Deep Sea Treasure that is played in each state after a number of moves."""
    model, found = plan.model, {}
    for index in model.acting:
        state: Any = model.state(index)
        if state[2] == moves and state[:2] not in TREASURE:
            found[state] = str(plan.policy(state, float(MOVE_COST * moves)))
    return found


def choices(model: SSP, x: int, y: int, where: Mapping[int, Hashable]) -> list[tuple[int, Cell]]:
    """Return the states with more than one way to go on, or with a number for it, and the cell of each."""
    return [each for each in states_with(model, x, y, where) if not _only_way(model, each[0])]


def states_with(model: SSP, x: int, y: int, where: Mapping[int, Hashable]) -> list[tuple[int, Cell]]:
    """Return the states, goals aside, that are tuples with coordinates x and y, and the cell of each."""
    if isinstance(x, bool) or isinstance(y, bool) or not isinstance(x, int) or not isinstance(y, int) or x == y:
        raise PrudentError(f"x is {x!r} and y is {y!r}; they must be two coordinates of the state, counted from 0")
    if not isinstance(where, Mapping) or not all(isinstance(i, int) and i not in (x, y) for i in where):
        raise PrudentError(f"where is {where!r}; it must give values of other coordinates, as in {{2: 10}}")
    found = [(index, cell) for index in model.acting if (cell := _cell(model.state(index), x, y, where))]
    if not found:
        raise PrudentError(
            f"{model.name} has no state that is a tuple with coordinates {x} and {y}"
            + (f" and {dict(where)!r}" if where else "") + "; use budget_strip or routes"
        )  # fmt: skip
    return found


def _cell(name: Hashable, x: int, y: int, where: Mapping[int, Hashable]) -> Cell | None:
    """Return the cell of a state; None if it is no tuple with these coordinates and these values of others."""
    if not isinstance(name, tuple) or max(x, y, *where) >= len(name) or min(x, y, *where) < 0:
        return None
    return (name[x], name[y]) if all(name[i] == value for i, value in where.items()) else None


def _only_way(model: SSP, index: int) -> bool:
    """Return whether a state has one action, and that is not a number: there is nothing to map."""
    actions = model.actions(index)
    return len(actions) == 1 and not is_number(model.action(actions[0]))


def _has_parts(model: SSP, count: int, fits: Callable[[object], bool] = is_number) -> bool:
    """Return whether all states except goals are tuples of this many numbers, or of other parts that fit."""
    names = [model.state(index) for index in model.acting]
    return all(isinstance(name, tuple) and len(name) == count and all(map(fits, name)) for name in names)


def _has_numbers(model: SSP) -> bool:
    """Return whether there is a choice somewhere, and actions are numbers wherever there is one."""
    acting = [index for index in model.acting if not _only_way(model, index)]
    return bool(acting) and all(is_number(model.action(a)) for index in acting for a in model.actions(index))


def goal_cells(model: SSP, x: int, y: int, where: Mapping[int, Hashable]) -> list[Cell]:
    """Return the cells of goals that are tuples as well."""
    cells = (_cell(model.state(index), x, y, where) for index in np.flatnonzero(model.is_goal).tolist())
    return [cell for cell in cells if cell is not None]


def are_pairs(model: SSP) -> bool:
    """Return whether all states except goals are pairs of numbers or texts."""
    return _has_parts(model, 2, lambda part: is_number(part) or isinstance(part, str))


def is_map(model: SSP, x: int, y: int) -> bool:
    """Return whether two coordinates are a place: moves lead back and forth along both, by at most a step each."""
    cells = (_cell(model.state(index), x, y, {}) for index in range(model.n_states))
    place = np.array([cell if cell and all(map(is_number, cell)) else (np.nan, np.nan) for cell in cells], dtype=float)
    moved: FloatArray = place[model.successor] - place[model.outcome_state]
    moved = moved[np.isfinite(moved).all(axis=1)]
    steps = (np.unique(np.abs(moved[:, i][moved[:, i] != 0])) for i in (0, 1))
    back_and_forth = all((moved[:, i] > 0).any() and (moved[:, i] < 0).any() for i in (0, 1))
    return bool(back_and_forth and all(len(each) == 1 for each in steps))


def ways_of(model: SSP, played: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the pairs of states that actions may lead between, (n, 2), and how often a run goes each way, (n,).

    ``played`` gives how often a run plays each action.
    """
    likely = model.probability > 0
    ends = np.column_stack([model.outcome_state, model.successor])[likely]
    pairs, which = np.unique(ends, axis=0, return_inverse=True)
    often = (model.probability * played[model.outcome_action])[likely]
    return pairs, np.bincount(which.ravel(), weights=often, minlength=len(pairs)).astype(np.float64)


def place_states(model: SSP) -> FloatArray:
    """Return positions of states, (n_states, 2), whose distances match the costs between them as a plane allows.

    This is classical multidimensional scaling of shortest-path costs, turned so that the start is left of the goal.
    """
    if model.n_states > PLACED:
        raise PrudentError(
            f"{model.name} has {model.n_states:,} states; {PLACED} are laid out at most: give positions="
        )
    n, likely = model.n_states, model.probability > 0
    key = model.outcome_action * n + model.successor  # an action, and where it may lead
    once, which = np.unique(key[likely], return_inverse=True)
    chance, cost = (np.bincount(which, each[likely]) for each in (model.probability, model.probability * model.cost))
    mean = cost / chance
    arcs = np.full((n, n), np.inf)
    least = 1e-3 * max(float(np.abs(mean).max(initial=0.0)), 1e-9)
    np.minimum.at(arcs, (model.action_state[once // n], once % n), np.maximum(mean, least))
    far = shortest_path(arcs, directed=False)
    far = np.where(np.isfinite(far), far, 1.2 * far[np.isfinite(far)].max(initial=1.0))
    middle = np.eye(n) - 1 / n
    value, vector = np.linalg.eigh(-0.5 * middle @ far**2 @ middle)
    flat = vector[:, :-3:-1] * np.sqrt(np.maximum(value[:-3:-1], 0.0))
    place = flat @ np.array([1, 1j])[: flat.shape[1]]  # as complex numbers, which are easily turned
    place = place * np.exp(-1j * np.angle(place[np.flatnonzero(model.is_goal)[0]] - place[model.initial_state[0]]))
    if place.imag[np.argmax(np.abs(place.imag).round(6))] < 0:  # of two mirror images, always take the same
        place = place.conj()
    return np.column_stack([place.real, place.imag])
