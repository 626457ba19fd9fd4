"""An SSP from a successor function, a table or arrays."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from prudent.errors import ModelError, PrudentError
from prudent.models.rows import FloatArray, IntArray, offsets
from prudent.models.ssp import SHOWN, SSP
from prudent.runtime.progress import Progress

__all__ = ["build", "from_arrays", "merge_outcomes"]

LARGEST = 1 + 1e-9
"""The largest probability that counts as 1."""

Outcomes = Iterable[tuple[float, Hashable, float]]
Successors = Callable[[Any], Mapping[Any, Outcomes] | None]


def build(
    initial: Hashable | Mapping[Any, float],
    actions: Successors | Mapping[Any, Mapping[Any, Outcomes]],
    goals: Iterable[Hashable] | None = None,
    *,
    name: str = "model",
    max_states: int = 1_000_000,
) -> SSP:
    """Explore a model from its start and return it as an :class:`~prudent.SSP`.

    Parameters
    ----------
    initial : hashable or mapping
        The first state, or ``{state: probability}`` for a first chance step.
    actions : callable or mapping
        ``actions(state)`` returns ``{action: [(probability, next_state, cost), ...]}``, and ``{}`` or
        ``None`` at a goal.  Or the whole table ``{state: {action: [...]}}``, goals left out or empty.
        Outcomes with equal next state and cost are merged.
    goals : iterable of states, optional
        When given, a state without actions that is not among them is an error, and so is a goal with
        actions.
    name : str
        What messages and reports call the model.
    max_states : int
        The most states to explore, since a model may have infinitely many.

    Examples
    --------
    >>> import prudent
    >>> def actions(state):
    ...     if state == "home":
    ...         return {}
    ...     return {"walk": [(1.0, "home", 30)], "bus": [(0.9, "home", 10), (0.1, "home", 60)]}
    >>> prudent.build("work", actions)
    <SSP model: 2 states, 2 actions, 3 outcomes>
    """
    if isinstance(actions, Mapping):
        actions = actions.get
    elif not callable(actions):
        raise PrudentError(
            f"actions is a {type(actions).__name__}; build takes the initial state, then a function or a table"
        )
    try:
        start = dict(initial) if isinstance(initial, Mapping) else {initial: 1.0}
    except TypeError:
        raise PrudentError(f"initial is {initial!r}; states must be hashable (a tuple, not a list)") from None
    goal_set = _goals(goals)
    index: dict[Hashable, int] = {}
    queue: list[Hashable] = []

    def number(state: Hashable) -> int:
        found = index.get(state)
        if found is None:
            found = index[state] = len(queue)
            queue.append(state)
        return found

    first = [number(state) for state in start]
    action_count: list[int] = []
    outcome_count: list[int] = []
    action_names: list[Hashable] = []
    probability: list[float] = []
    successor: list[int] = []
    cost: list[float] = []
    problems: list[str] = []

    with Progress(f"exploring {name}", unit="states") as progress:
        for state in queue:  # grows while it is read
            options = actions(state)
            if options is None:
                options = {}
            elif not isinstance(options, Mapping):
                raise PrudentError(
                    f"actions({state!r}) returned {type(options).__name__}; "
                    "it must return {action: [(probability, next_state, cost), ...]}"
                )
            if goal_set is not None:
                problems.extend(_goal_problem(state, bool(options), state in goal_set))
            action_count.append(len(options))
            for action, outcomes in options.items():
                action_names.append(action)
                merged = _merged(state, action, outcomes)
                outcome_count.append(len(merged))
                successor += [number(target) for target, _ in merged]
                cost += [price for _, price in merged]
                probability += merged.values()
            progress.at(len(action_count))
            if len(queue) > max_states:
                raise PrudentError(
                    f"{name} has more than {max_states:,} states, among them {queue[-1]!r}; is there no end to them? "
                    "If there is, raise max_states="
                )
    if problems:
        raise ModelError(problems[:SHOWN])
    return SSP(
        action_start=offsets(action_count),
        outcome_start=offsets(outcome_count),
        probability=np.array(probability),
        successor=np.array(successor, dtype=np.int64),
        cost=np.array(cost),
        initial_state=np.array(first, dtype=np.int64),
        initial_probability=np.array([_number(p, "initial probability") for p in start.values()]),
        state_names=tuple(queue),
        action_names=tuple(action_names),
        name=name,
    )


def from_arrays(
    action_start: ArrayLike,
    outcome_start: ArrayLike,
    probability: ArrayLike,
    successor: ArrayLike,
    cost: ArrayLike,
    *,
    initial: int | Mapping[int, float] = 0,
    goals: Iterable[int] | None = None,
    state_names: Sequence[Hashable] | None = None,
    action_names: Sequence[Hashable] | None = None,
    name: str = "model",
) -> SSP:
    """Return an :class:`~prudent.SSP` from compressed row arrays, state -> action -> outcome.

    The actions of state ``s`` are ``action_start[s]:action_start[s + 1]``, the outcomes of action ``a``
    are ``outcome_start[a]:outcome_start[a + 1]``.  With ``goals`` given, exactly those states must be
    without actions.

    Examples
    --------
    >>> import prudent
    >>> prudent.from_arrays([0, 1, 1], [0, 2], [0.5, 0.5], [0, 1], [1.0, 2.0])
    <SSP model: 2 states, 1 actions, 2 outcomes>
    """
    if not isinstance(initial, Mapping | int | np.integer):
        raise PrudentError(f"initial is {initial!r}; it must be a state's number, or {{number: probability}}")
    start = dict(initial) if isinstance(initial, Mapping) else {initial: 1.0}
    model = SSP(  # it checks and copies its arguments
        action_start=action_start,  # type: ignore[arg-type]
        outcome_start=outcome_start,  # type: ignore[arg-type]
        probability=probability,  # type: ignore[arg-type]
        successor=successor,  # type: ignore[arg-type]
        cost=cost,  # type: ignore[arg-type]
        initial_state=np.array(list(start)),
        initial_probability=np.array(list(start.values())),
        state_names=state_names,
        action_names=action_names,
        name=name,
    )
    if goals is not None:
        wanted, is_goal = _goals(goals) or set(), model.is_goal
        if wanted != set(np.flatnonzero(is_goal).tolist()):
            each = (_goal_problem(model.state(s), not goal, s in wanted) for s, goal in enumerate(is_goal.tolist()))
            if problems := list(chain.from_iterable(each))[:SHOWN]:
                raise ModelError(problems)
    return model


def merge_outcomes(
    action: IntArray, successor: IntArray, cost: FloatArray, probability: FloatArray
) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Add up the probabilities of outcomes with equal action, successor and cost; return outcomes sorted by these."""
    order = _sorted_by(action, successor, cost)
    action, successor, cost = action[order], successor[order], cost[order]
    new = np.ones(len(order), dtype=bool)
    new[1:] = (np.diff(action) != 0) | (np.diff(successor) != 0) | (np.diff(cost) != 0)
    if not ((probability >= 0) & (probability <= LARGEST)).all():
        new[:] = True  # not added up, so that the model refuses them
    first = np.flatnonzero(new)
    return action[first], successor[first], cost[first], np.add.reduceat(probability[order], first)


def _sorted_by(action: IntArray, successor: IntArray, cost: FloatArray) -> IntArray:
    """Return the order by action, then successor, then cost; by one key where costs are small whole numbers."""
    low, high = float(cost.min(initial=0.0)), float(cost.max(initial=0.0))
    n_successors, n_costs = int(successor.max(initial=0)) + 1, high - low + 1
    if (int(action.max(initial=0)) + 1) * n_successors * n_costs < 2**62 and (cost == np.rint(cost)).all():
        key = (action * n_successors + successor) * int(n_costs) + (cost - low).astype(np.int64)
        return np.argsort(key, kind="stable")
    return np.lexsort((cost, successor, action))


def _merged(state: Hashable, action: Hashable, outcomes: Outcomes) -> dict[tuple[Hashable, float], float]:
    merged: dict[tuple[Hashable, float], float] = {}
    probability, price = 0.0, 0.0
    try:
        for probability, target, price in outcomes:
            if isinstance(price, str | bytes) or isinstance(probability, str | bytes):
                raise TypeError
            key, chance = (target, float(price)), float(probability)
            if not 0.0 <= chance <= LARGEST:  # before it is added to others
                raise OverflowError
            merged[key] = merged.get(key, 0.0) + chance
    except PrudentError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        where = f"state {state!r}, action {action!r}"
        _number(price, f"cost at {where}")
        if not 0.0 <= _number(probability, f"probability at {where}") <= LARGEST:
            raise PrudentError(f"probability at {where} is {probability!r}; it must lie between 0 and 1") from None
        raise PrudentError(f"outcomes of {where} must be (probability, next_state, cost): {error}") from None
    return merged


def _number(value: Any, what: str) -> float:
    if isinstance(value, str | bytes):  # float() would accept some texts
        raise PrudentError(f"{what} is the text {value!r}; it must be a number")
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise PrudentError(f"{what} is {value!r}; it must be a number") from None


def _goal_problem(state: Hashable, has_actions: bool, is_goal: bool) -> list[str]:
    if has_actions and is_goal:
        return [f"goal {state!r} has actions; a goal absorbs: give it none"]
    if not has_actions and not is_goal:
        return [f"state {state!r} has no actions and is not among the goals; add actions, or add it to the goals"]
    return []


def _goals(goals: Iterable[Hashable] | None) -> set[Hashable] | None:
    try:
        return None if goals is None else set(goals)
    except TypeError:
        raise PrudentError(f"goals is {goals!r}; it must be a collection of states") from None
