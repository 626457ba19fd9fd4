"""An SSP from a successor function, a table or arrays."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from prudent.errors import ModelError, PrudentError
from prudent.models.partial import LARGEST, Outcomes, PartialModel, Successors, goal_problem, goal_set
from prudent.models.rows import BoolArray, FloatArray, IntArray
from prudent.models.ssp import SHOWN, SSP
from prudent.runtime.progress import Progress


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
        The first state, or ``{state: probability}`` if it is random.
    actions : callable or mapping
        ``actions(state)`` returns ``{action: [(probability, next_state, cost), ...]}``, and ``{}`` or ``None`` at a
        goal.  A mapping is the whole table ``{state: {action: [...]}}``; goals are left out or empty.  Outcomes with
        equal next state and cost are merged.
    goals : iterable of states, optional
        If given, a state without actions that is not among them is an error, and so is a goal with actions.  This finds
        a function that forgets to return the actions of a state.
    name : str
        The name of the model in messages and reports.
    max_states : int
        The largest number of states to explore, since a model may have infinitely many.

    Examples
    --------
    >>> import prudent
    >>> def actions(state):
    ...     if state == "home":
    ...         return {}
    ...     return {"walk": [(1.0, "home", 30)], "bus": [(0.9, "home", 10), (0.1, "home", 60)]}
    >>> prudent.build("work", actions)
    <SSP model: 2 states, 2 actions, 3 outcomes>
    >>> def forgetful(state):
    ...     if state == "work":
    ...         return {"walk": [(0.9, "home", 30), (0.1, "bar", 20)]}
    >>> prudent.build("work", forgetful, goals=["home"])
    Traceback (most recent call last):
    prudent.errors.ModelError: actions('bar') returned None, and 'bar' is not among the goals; is a return missing?
    """
    partial = PartialModel(initial, actions, goals, name)
    states, expand = partial.states, partial.expand
    with Progress(f"exploring {name}", unit="states") as progress:
        for number, _ in enumerate(states):  # grows while it is read
            expand(number)
            progress.at(number + 1)
            if len(states) > max_states:
                raise PrudentError(
                    f"{name} has more than {max_states:,} states, for example {states[-1]!r}; check that the number of "
                    "states is finite, then raise max_states="
                )
    return partial.ssp()


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

    The actions of state ``s`` are ``action_start[s]:action_start[s + 1]``; the outcomes of action ``a`` are
    ``outcome_start[a]:outcome_start[a + 1]``.  If ``goals`` is given, exactly these states must have no actions.

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
        wanted, is_goal = goal_set(goals) or set(), model.is_goal
        if wanted != set(np.flatnonzero(is_goal).tolist()):
            each = (goal_problem(model.state(s), not goal, s in wanted) for s, goal in enumerate(is_goal.tolist()))
            if problems := list(chain.from_iterable(each))[:SHOWN]:
                raise ModelError(problems)
    return model


def merge_outcomes(
    action: IntArray, successor: IntArray, cost: FloatArray, probability: FloatArray
) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Add up the probabilities of outcomes with equal action, successor and cost; return outcomes in this order."""
    order, new = _sorted_by(action, successor, cost)
    action, successor, cost, probability = action[order], successor[order], cost[order], probability[order]
    # Invalid probabilities are not added up, so that the model rejects them.
    if new.all() or not (probability.min() >= 0 and probability.max() <= LARGEST):
        return action, successor, cost, probability
    first = np.flatnonzero(new)
    return action[first], successor[first], cost[first], np.add.reduceat(probability, first)


def _sorted_by(action: IntArray, successor: IntArray, cost: FloatArray) -> tuple[IntArray, BoolArray]:
    """Return the order by action, then successor, then cost, and where in that order one of them changes.

    One key is enough if costs are small whole numbers.
    """
    low, high = float(cost.min(initial=0.0)), float(cost.max(initial=0.0))
    n_successors, n_costs, keys = int(successor.max(initial=0)) + 1, high - low + 1, [action, successor, cost]
    if (int(action.max(initial=0)) + 1) * n_successors * n_costs < 2**62 and (cost == np.rint(cost)).all():
        keys = [(action * n_successors + successor) * int(n_costs) + (cost - low).astype(np.int64)]
    order, new = np.lexsort(keys[::-1]), np.zeros(len(action), dtype=bool)
    new[:1] = True
    for key in keys:
        ordered = key[order]
        new[1:] |= ordered[1:] != ordered[:-1]
    return order, new
