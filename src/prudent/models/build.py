"""An SSP from a successor function, a table or arrays; the partial model, explored so far, of a function."""

from array import array
from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from prudent.errors import ModelError, PrudentError
from prudent.models.rows import MOST_LIKELY, by_state
from prudent.models.ssp import SHOWN, SSP, fresh_name
from prudent.runtime.progress import Progress

UNEXPLORED = "unexplored"
"""The goal of runs that leave the explored part; it gets primes if a state has that name."""

MISSING_RETURN = "actions({0}) returned None, and {0} is not among the goals; is a return missing?"
MISSING_ENTRY = "the table has no entry for {0}, which is not among the goals; add its actions, or add it to the goals"
"""The messages for a state without actions that is not a goal."""

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


class PartialModel:
    """States met so far, numbered as they are met, and the actions of those that were expanded."""

    def __init__(
        self,
        initial: Hashable | Mapping[Any, float],
        actions: Successors | Mapping[Any, Mapping[Any, Outcomes]],
        goals: Iterable[Hashable] | None,
        name: str,
    ) -> None:
        missing = MISSING_RETURN
        if isinstance(actions, Mapping):
            actions, missing = actions.get, MISSING_ENTRY
        elif not callable(actions):
            kind = type(actions).__name__
            raise PrudentError(f"actions is of type {kind}; give the initial state first, then a function or a table")
        try:
            start = dict(initial) if isinstance(initial, Mapping) else {initial: 1.0}
        except TypeError:
            raise PrudentError(f"initial is {initial!r}; states must be hashable (a tuple, not a list)") from None
        self.actions, self.goals, self.name, self._missing = actions, goal_set(goals), name, missing
        self.states: list[Hashable] = []
        self._index: dict[Hashable, int] = {}
        self.initial_state = [self._number(state) for state in start]
        self._initial_probability = [_number(p, "initial probability") for p in start.values()]
        self.expanded = array("q")  # the states' numbers, in the order in which they were expanded
        self._row: dict[int, int] = {}  # the position of a state there
        self._action_names: list[Hashable] = []
        self._action_start, self._outcome_start = array("q", [0]), array("q", [0])  # as in SSP, of expanded states
        self.probability, self.successor, self.cost = array("d"), array("q"), array("d")
        self.narrowed: set[int] = set()  # expanded states of which not all actions are kept
        self._problems: list[str] = []

    def is_expanded(self, number: int) -> bool:
        """Return whether a state was expanded."""
        return number in self._row

    def is_goal(self, number: int) -> bool:
        """Return whether a state is known to be a goal: it is listed as one, or it was expanded and has no actions."""
        if self.goals is not None:
            return self.states[number] in self.goals
        row = self._row.get(number)
        return row is not None and self._action_start[row] == self._action_start[row + 1]

    def expand(self, number: int, only: Hashable | None = None) -> None:
        """Ask for the actions of a state; with ``only`` keep that one alone."""
        state = self.states[number]
        options, nothing = self.actions(state), None
        if options is None:
            options, nothing = {}, self._missing
        elif not isinstance(options, Mapping):
            raise PrudentError(
                f"actions({state!r}) returned {type(options).__name__}; "
                "it must return {action: [(probability, next_state, cost), ...]}"
            )
        if self.goals is not None:
            self._problems.extend(goal_problem(state, bool(options), state in self.goals, nothing))
            options = {} if state in self.goals else options
        if only is not None and options:
            if not isinstance(only, Hashable) or only not in options:
                self._refuse_fallback(number, only, list(options))
            if len(options) > 1:
                self.narrowed.add(number)
            options = {only: options[only]}
        self._row[number] = len(self.expanded)
        self.expanded.append(number)
        for action, outcomes in options.items():
            merged = _merged(state, action, outcomes)
            self._action_names.append(action)
            self.successor.extend([self._number(target) for target, _ in merged])
            self.cost.extend([price for _, price in merged])
            self.probability.extend(merged.values())
            self._outcome_start.append(len(self.cost))
        self._action_start.append(len(self._action_names))

    def leads_to(self, number: int, action: Hashable) -> list[int]:
        """Return the states that an action of an expanded state may lead to."""
        row = self._row[number]
        names = self._action_names[slice(*self._action_start[row : row + 2])]
        if action not in names:
            self._refuse_fallback(number, action, names)
        place = self._action_start[row] + names.index(action)
        return list(self.successor[slice(*self._outcome_start[place : place + 2])])

    def _refuse_fallback(self, number: int, action: Hashable, names: list[Hashable]) -> NoReturn:
        raise PrudentError(f"fallback({self.states[number]!r}) is {action!r}; the actions there are {names}")

    def outcomes(self, number: int) -> slice:
        """Return the range of the outcomes of an expanded state, of all its actions together."""
        row = self._row[number]
        return slice(*(self._outcome_start[action] for action in self._action_start[row : row + 2]))

    def place(self, outcome: int) -> str:
        """Return how messages name the action of an outcome."""
        action = bisect_right(self._outcome_start, outcome) - 1
        row = bisect_right(self._action_start, action) - 1
        return f"state {self.states[self.expanded[row]]!r}, action {self._action_names[action]!r}"

    def ssp(self, ends: Mapping[int, float] | None = None, stop: Hashable = "stop") -> SSP:
        """Return the explored part as a model.

        A state that was not expanded has the action ``stop``: at the price in ``ends`` it leads to a goal that stands
        for the unexplored rest; if the price is infinite or missing, the state leads nowhere.  Goals need not be
        expanded.
        """
        if self._problems:
            raise ModelError(self._problems[:SHOWN])
        ends = ends or {}
        rest = [number for number in range(len(self.states)) if number not in self._row]
        leaf = np.array([number for number in rest if not self.is_goal(number)], dtype=np.int64)
        price = np.array([ends.get(number, np.inf) for number in leaf.tolist()])
        end = len(self.states) if np.isfinite(price).any() else -1
        states = self.states if end < 0 else [*self.states, fresh_name(UNEXPLORED, self._index)]
        alone = np.ones(len(leaf), dtype=np.int64)
        state = np.repeat(np.array(self.expanded, dtype=np.int64), np.diff(self._action_start))
        size = np.diff(self._outcome_start).astype(np.int64)
        action_start, outcome_start, action, outcome = by_state(
            np.append(state, leaf), np.append(size, alone), len(states)
        )
        names = [*self._action_names, *[stop] * len(leaf)]
        onwards = np.where(np.isfinite(price), end, leaf)
        return SSP(
            action_start=action_start,
            outcome_start=outcome_start,
            probability=np.append(self.probability, alone)[outcome],
            successor=np.append(self.successor, onwards).astype(np.int64)[outcome],
            cost=np.append(self.cost, np.where(np.isfinite(price), price, 0.0))[outcome],
            initial_state=np.array(self.initial_state, dtype=np.int64),
            initial_probability=np.array(self._initial_probability),
            state_names=tuple(states),
            action_names=tuple([names[i] for i in action.tolist()]),
            name=self.name,
        )

    def _number(self, state: Hashable) -> int:
        found = self._index.setdefault(state, len(self.states))
        if found == len(self.states):
            self.states.append(state)
        return found


def as_function(model: SSP) -> tuple[dict[Hashable, float], Successors]:
    """Return a model's start and its successor function, so that it can be explored like any other."""

    def actions(state: Hashable) -> dict[Hashable, list[tuple[float, Hashable, float]]]:
        return {
            model.action(a): [
                (model.probability[o].item(), model.state(model.successor[o]), model.cost[o].item())
                for o in model.outcomes(a)
            ]
            for a in model.actions(model.index(state))
        }

    first = [model.state(s) for s in model.initial_state.tolist()]
    return dict(zip(first, model.initial_probability.tolist(), strict=True)), actions


def goal_set(goals: Iterable[Hashable] | None) -> set[Hashable] | None:
    """Return the goals that were listed, if any."""
    try:
        return None if goals is None else set(goals)
    except TypeError:
        raise PrudentError(f"goals is {goals!r}; it must be a collection of states") from None


def goal_problem(state: Hashable, has_actions: bool, is_goal: bool, nothing: str | None = None) -> list[str]:
    """Return the problem of a state, if any, given whether it is among the listed goals.

    ``nothing`` is the message if there is not even an empty mapping in place of actions.
    """
    if has_actions and is_goal:
        return [f"goal {state!r} has actions; a goal must have none"]
    if has_actions or is_goal:
        return []
    nothing = nothing or "state {0} has no actions and is not among the goals; add actions, or add it to the goals"
    return [nothing.format(repr(state))]


def _merged(state: Hashable, action: Hashable, outcomes: Outcomes) -> dict[tuple[Hashable, float], float]:
    merged: dict[tuple[Hashable, float], float] = {}
    probability, price = 0.0, 0.0
    try:
        for probability, target, price in outcomes:
            if isinstance(price, str | bytes) or isinstance(probability, str | bytes):
                raise TypeError
            key, chance = (target, float(price)), float(probability)
            if not 0.0 <= chance <= MOST_LIKELY:  # before it is added to others
                raise OverflowError
            merged[key] = merged.get(key, 0.0) + chance
    except PrudentError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        where = f"state {state!r}, action {action!r}"
        _number(price, f"cost at {where}")
        if not 0.0 <= _number(probability, f"probability at {where}") <= MOST_LIKELY:
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
