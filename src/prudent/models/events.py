"""An SSP from a step function on arrays: the successor and cost of a state, an action and an event.

A few states are processed at a time, so that their arrays stay in the processor's caches.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prudent.errors import PrudentError, whole_number
from prudent.models.build import from_arrays
from prudent.models.rows import BoolArray, FloatArray, IntArray, by_state, merge_outcomes, offsets, ranges, starts
from prudent.models.ssp import SSP, fresh_name
from prudent.runtime.progress import Progress

AT_ONCE = 2**15
"""About how many outcomes are made at once."""

END = "end"
"""The goal of runs that the step function ends; it gets primes if a state has that name."""

TOO_MANY = 2**31
"""The number of states or actions that is too large."""

Size = int | Sequence[int]
Parts = tuple[IntArray, ...]


class _Expanded(NamedTuple):
    """The actions and outcomes of some states, in their order."""

    state: IntArray  # the states' numbers in the grid
    action_count: IntArray  # (len(state),)
    action: IntArray  # their numbers in the grid of actions
    outcome_count: IntArray  # (len(action),)
    successor: IntArray  # numbers in the grid of states; one past the last: the run ends
    cost: FloatArray
    probability: FloatArray


NONE = _Expanded(*(np.zeros(0, dtype=np.int64),) * 5, *(np.zeros(0),) * 2)
"""The rows of no states."""


def from_events(
    states: Size,
    actions: Size,
    chances: ArrayLike,
    step: Callable[[Any, Any, IntArray], tuple[Any, ...]],
    *,
    initial: Any = None,
    allowed: ArrayLike | None = None,
    goals: Iterable[Any] | BoolArray | None = None,
    action_names: Sequence[Hashable] | None = None,
    name: str = "model",
) -> SSP:
    """Return a model from a step function that works on arrays; ten million outcomes take seconds.

    Parameters
    ----------
    states : int or sequence of int
        The number of states, or the shape of a grid of states; then a state is a tuple of numbers.
    actions : int or sequence of int
        The same for actions.
    chances : array
        The probability of each event, ``chances[..., event]``.  Before the events there may be an axis for each part of
        a state, and then one for each part of an action; each has the size of its part or size 1.
    step : callable
        ``step(state, action, event)`` returns ``(next_state, cost)``, or ``(next_state, cost, ends)``: if ``ends`` is
        true, the run is over, at the goal ``"end"``.  The arguments are arrays; a state or an action of a grid is a
        tuple of arrays.  Outcomes with equal next state and cost are merged.
    initial : state or {state: probability}, optional
        The start of runs; by default the first state.  Only states that can be reached are in the model.
    allowed : array of bool, optional
        Which actions a state has: an axis for each part of a state, then one for each part of an action; each has the
        size of its part or size 1.  A state without actions is a goal.
    goals : iterable of states or array of bool, optional
        The states at which runs end; an array is a mask of all states.
    action_names : sequence of hashable, optional
        The names of the actions; by default their numbers.
    name : str
        The name of the model in messages and reports.

    Examples
    --------
    >>> import numpy as np, prudent
    >>> def step(stock, order, demand):  # order first, then sell up to the demand
    ...     left = np.maximum(stock + order - demand, 0)
    ...     return np.minimum(left, 2), 5 + order - 3 * np.minimum(stock + order, demand), demand == 2
    >>> prudent.from_events(3, 2, [0.2, 0.5, 0.3], step)
    <SSP model: 4 states, 6 actions, 17 outcomes>
    """
    events = _Events(_shape("states", states), _shape("actions", actions), chances, step, allowed, goals)
    origin = (0,) * len(events.states) if initial is None else initial
    start = list(initial.items()) if isinstance(initial, Mapping) else [(origin, 1.0)]
    first = [events.number(state, "initial") for state, _ in start]
    rows, met = events.explored(first, name)
    return events.model(rows, met, dict(zip(first, (chance for _, chance in start), strict=True)), action_names, name)


class _Events:
    """The arguments of :func:`from_events`, checked."""

    def __init__(
        self,
        states: tuple[int, ...],
        actions: tuple[int, ...],
        chances: ArrayLike,
        step: Callable[[Any, Any, IntArray], tuple[Any, ...]],
        allowed: ArrayLike | None,
        goals: Iterable[Any] | BoolArray | None,
    ) -> None:
        if not callable(step):
            raise PrudentError(f"step is a {type(step).__name__}; it must be a function of state, action and event")
        self.states, self.actions, self.step = states, actions, step
        self.n_states, self.n_actions = prod(states), prod(actions)
        for each, number in (("states", self.n_states), ("actions", self.n_actions)):
            if number >= TOO_MANY:
                raise PrudentError(
                    f"there are {number:.3g} {each}, too many to build; use prudent.search, which explores only part "
                    "of them"
                )
        self.allowed = None
        if allowed is not None:
            mask = _given("allowed", allowed, "iub", "an array of bool")
            self.allowed = self._grid("allowed", mask, states + actions)
        self.is_goal = np.zeros(self.n_states, dtype=bool)
        if isinstance(goals, np.ndarray) and goals.dtype == bool:
            self.is_goal[:] = self._grid("goals", goals, self.states).ravel()
        elif goals is not None:
            if not isinstance(goals, Iterable):
                raise PrudentError(f"goals is {goals!r}; it must be a collection of states, or a mask of all states")
            self.is_goal[[self.number(state, "goals") for state in goals]] = True
        chance = _given("chances", chances, "iufb", "an array with the probability of each event").astype(np.float64)
        if chance.ndim == 0 or chance.size == 0:
            raise PrudentError(f"chances is {chances!r}; it must be an array with the probability of each event")
        row = np.arange(chance[..., 0].size).reshape(chance.shape[:-1])
        self.by_action = row.ndim > len(states)  # whether probabilities depend on the action
        self.row = self._grid("chances", row, states + actions if self.by_action else states)
        at, self.event = np.nonzero(chance.reshape(-1, chance.shape[-1]))
        self.event_start, self.chance = starts(at, row.size), chance.reshape(-1, chance.shape[-1])[at, self.event]

    @staticmethod
    def _grid(what: str, values: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
        """Broadcast an array to one entry for each state, or for each state and action."""
        if values.ndim > 0:
            values = values.reshape(values.shape + (1,) * (len(shape) - values.ndim))
        try:
            return np.broadcast_to(values, shape)
        except ValueError:
            before = " before its events" if what == "chances" else ""
            raise PrudentError(
                f"{what} has the shape {values.shape}{before}; it must have the shape {shape}, or broadcast to it"
            ) from None

    def number(self, state: Any, what: str) -> int:
        """Return a state's number in the grid."""
        parts = state if isinstance(state, tuple) else (state,)
        if len(parts) != len(self.states):
            kind = f"a tuple of {len(self.states)} whole numbers" if len(self.states) > 1 else "one whole number"
            raise PrudentError(f"{what}: state is {state!r}; it must be {kind}")
        for part, size in zip(parts, self.states, strict=True):
            place = f"{what}: a part of state {state!r}" if len(parts) > 1 else f"{what}: state"
            whole_number(place, part, 0, size - 1)
        return int(np.ravel_multi_index(parts, self.states))

    def explored(self, first: list[int], name: str) -> tuple[list[_Expanded], BoolArray]:
        """Return the rows of all states that can be reached, in the order in which they are found, and their numbers.

        One more state stands for the end of a run.
        """
        met = np.zeros(self.n_states + 1, dtype=bool)
        met[first] = True
        here, rows, count = np.unique(np.array(first)), [NONE], len(first)
        each = self.n_actions * -(-len(self.event) // (len(self.event_start) - 1))  # outcomes of a state, about
        at_once = max(AT_ONCE // max(each, 1), 1)
        with Progress(f"exploring {name}", unit="states") as progress:
            while len(here):
                new = [np.zeros(0, dtype=np.int64)]
                acting = here[~self.is_goal[here]]
                for begin in range(0, len(acting), at_once):
                    rows.append(self._rows(acting[begin : begin + at_once]))
                    found = rows[-1].successor[~met[rows[-1].successor]]
                    new.append(np.unique(found))
                    met[found] = True
                    count += len(new[-1])
                    progress.at(count)
                here = np.sort(np.concatenate(new))
                here = here[here < self.n_states]
        return rows, met

    def _rows(self, state: IntArray) -> _Expanded:
        """Return the actions and outcomes of some states."""
        at = np.unravel_index(state, self.states)
        if self.allowed is None:
            place, action = (part.ravel() for part in np.indices((len(state), self.n_actions)))
        else:
            place, action = np.nonzero(self.allowed[at].reshape(len(state), -1))
        row = self.row[at].reshape(len(state), -1)[place, action] if self.by_action else self.row[at][place]
        entry, size = ranges(self.event_start, row), np.diff(self.event_start)[row]
        event, probability = self.event[entry], self.chance[entry]
        who = tuple(np.repeat(part[place], size) for part in at)
        what = tuple(np.repeat(part, size) for part in np.unravel_index(action, self.actions))
        for part in (*who, *what, event):
            part.flags.writeable = False  # messages name the states and actions in these arrays
        successor, cost = self._after(who, what, event)
        kept, successor, cost, probability = merge_outcomes(
            np.repeat(np.arange(len(action)), size), successor, cost, probability
        )
        count = size if len(kept) == len(event) else np.bincount(kept, minlength=len(action))
        return _Expanded(state, np.bincount(place, minlength=len(state)), action, count, successor, cost, probability)

    def _after(self, who: Parts, what: Parts, event: IntArray) -> tuple[IntArray, FloatArray]:
        """Return the successors' numbers and the costs, as the step function gives them."""
        try:
            answer = self.step(_name(who), _name(what), event)
        except ValueError as error:
            if "read-only" not in str(error):
                raise
            raise PrudentError(
                f"step changes its arguments, which are read-only ({error}); change a copy, for example with "
                "state = state + 1 instead of state += 1"
            ) from error
        if not isinstance(answer, tuple) or len(answer) not in (2, 3):
            raise PrudentError(
                f"step returned {type(answer).__name__!r}; it must return the tuple (next_state, cost) or "
                "(next_state, cost, ends)"
            )
        after, n = answer[0] if isinstance(answer[0], tuple) else (answer[0],), len(event)
        if len(after) != len(self.states):
            raise PrudentError(
                f"step returned a next state with {len(after)} parts; states have {len(self.states)} parts"
            )
        parts = [_array("next state", part, n) for part in after]
        cost, ends = _array("cost", answer[1], n), _array("ends", answer[2] if len(answer) == 3 else False, n) != 0
        some_end, successor = ends.any(), np.zeros(n, dtype=np.int64)
        for value, size in zip(parts, self.states, strict=True):
            if some_end:
                value = np.where(ends, 0, value)
            whole = value.dtype.kind in "iub" or (value == np.floor(value)).all()
            if not (whole and value.min(initial=0) >= 0 and value.max(initial=0) < size):
                good = (value >= 0) & (value < size) & (value == np.floor(value))
                odd = int(np.argmin(np.broadcast_to(good, n)))
                to = _name(tuple(np.broadcast_to(part, n)[odd].item() for part in parts))
                state, action = (_name(tuple(part[odd].item() for part in place)) for place in (who, what))
                raise PrudentError(
                    f"step({state!r}, {action!r}, {event[odd]}) leads to {to!r}; "
                    f"next states must be whole numbers of at least 0 and below {self.states}"
                )
            successor *= size
            successor += value.astype(np.int64, copy=False)
        if some_end:
            successor[np.broadcast_to(ends, n)] = self.n_states
        return successor, np.broadcast_to(cost.astype(np.float64, copy=False), n)

    def model(
        self,
        rows: list[_Expanded],
        met: BoolArray,
        start: dict[int, float],
        action_names: Sequence[Hashable] | None,
        name: str,
    ) -> SSP:
        """Return the model of all states met, in the order of the grid."""
        names = _names(self.states, np.flatnonzero(met[:-1]))
        if met[-1]:
            names.append(fresh_name(END, set(names)))
        number = np.cumsum(met) - 1
        for part in rows:
            part.successor[:] = number[part.successor]
        columns = [list(column) for column in zip(*rows, strict=True)]
        rows.clear()  # so that each array is released as soon as it is copied
        joined = (np.concatenate(columns.pop(0)) for _ in _Expanded._fields)
        state, action_count, action, outcome_count, successor, cost, probability = joined
        state_of = np.repeat(number[state], action_count)
        action_start, outcome_start = starts(state_of, len(names)), offsets(outcome_count)
        if (state[1:] < state[:-1]).any():
            _, outcome_start, acts, outs = by_state(state_of, outcome_count, len(names))
            action, successor, cost, probability = action[acts], successor[outs], cost[outs], probability[outs]
        for each in (successor, cost, probability):
            each.flags.writeable = False  # so that the model uses them without a copy
        return from_arrays(
            action_start,
            outcome_start,
            probability,
            successor,
            cost,
            initial={int(number[s]): p for s, p in start.items()},
            state_names=names if len(self.states) > 1 or met[-1] or not met[:-1].all() else None,
            action_names=self._action_names(action, action_start, action_names),
            name=name,
        )

    def _action_names(
        self, action: IntArray, action_start: IntArray, given: Sequence[Hashable] | None
    ) -> Sequence[Hashable] | None:
        """Return the names of the actions; None if each is named by its number within its state."""
        if given is None:
            place = np.arange(len(action)) - np.repeat(action_start[:-1], np.diff(action_start))
            return None if len(self.actions) == 1 and np.array_equal(action, place) else _names(self.actions, action)
        names = list(given) if isinstance(given, Iterable) else [given]
        if len(names) != self.n_actions:
            raise PrudentError(f"action_names has {len(names)} names; there are {self.n_actions} actions")
        return [names[a] for a in action.tolist()]


def _given(what: str, values: Any, kinds: str, must: str) -> NDArray[Any]:
    """Return an argument as an array whose type is one of some kinds."""
    try:
        array = np.asarray(values)
    except ValueError:  # its rows differ in length
        array = np.array(None)
    if array.dtype.kind not in kinds:
        raise PrudentError(f"{what} is {values!r:.200}; it must be {must}")
    return array


def _array(what: str, values: Any, n: int) -> NDArray[Any]:
    """Return one result of a step function as an array: one entry per outcome, or one value for all."""
    array = np.asarray(values)
    if array.shape not in ((), (n,)) or array.dtype.kind not in "iufb":
        raise PrudentError(
            f"step returned a {what} of shape {array.shape} and type {array.dtype}; it must be one number, or an array "
            f"of {n} numbers, as many as its arguments have"
        )
    return array


def _name(parts: tuple[Any, ...]) -> Any:
    """Return states or actions as users write them."""
    return parts if len(parts) > 1 else parts[0]


def _names(shape: tuple[int, ...], number: IntArray) -> list[Hashable]:
    if len(shape) == 1:
        return list(number.tolist())
    return list(zip(*(part.tolist() for part in np.unravel_index(number, shape)), strict=True))


def _shape(what: str, size: Size) -> tuple[int, ...]:
    parts = (size,) if isinstance(size, int | np.integer) else tuple(size) if isinstance(size, Iterable) else ()
    if not parts:
        raise PrudentError(f"{what} is {size!r}; it must be a whole number, or the shape of a grid")
    return tuple(whole_number(what, part, 1) for part in parts)
