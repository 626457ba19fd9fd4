"""An SSP from a step function on arrays: what follows a state, an action and an event.

States are taken in pieces, so that what a piece needs stays in the processor's caches.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prudent.errors import PrudentError, whole_number
from prudent.models.build import from_arrays, merge_outcomes
from prudent.models.rows import BoolArray, FloatArray, IntArray, offsets, ranges, starts
from prudent.models.ssp import SSP, fresh_name
from prudent.runtime.progress import Progress

__all__ = ["from_events"]

PIECE = 2**16
"""About how many outcomes are made at once."""

END = "end"
"""The name of the goal where runs end that the step function says end, with primes where a state has that name."""

Size = int | Sequence[int]


class _Rows(NamedTuple):
    """The actions and outcomes of some states, in their order."""

    state: IntArray  # the states' numbers in the grid
    action_count: IntArray  # (len(state),)
    action: IntArray  # their numbers in the grid of actions
    outcome_count: IntArray  # (len(action),)
    successor: IntArray  # numbers in the grid of states; one past the last: the run ends
    cost: FloatArray
    probability: FloatArray


def from_events(
    states: Size,
    actions: Size,
    chances: ArrayLike,
    step: Callable[[Any, Any, IntArray], tuple[Any, ...]],
    *,
    initial: Any = 0,
    allowed: ArrayLike | None = None,
    goals: Iterable[Any] | BoolArray | None = None,
    action_names: Sequence[Hashable] | None = None,
    name: str = "model",
) -> SSP:
    """Return a model from a step function that works on arrays: ten million outcomes take seconds.

    Parameters
    ----------
    states : int or sequence of int
        How many states there are; or the size of a grid of states: then a state is a tuple of numbers.
    actions : int or sequence of int
        The same for actions.
    chances : array
        The probability of each event, ``chances[..., event]``.  Before the events there may be an axis for each part of
        a state, and then one for each part of an action, of its size or of size 1.
    step : callable
        ``step(state, action, event)`` returns ``(next_state, cost)``, or ``(next_state, cost, ends)``: where ``ends``
        holds, the run is over, at the goal ``"end"``.  It is called with arrays; a state or an action of a grid is a
        tuple of arrays.  Outcomes with equal next state and cost are merged.
    initial : state or {state: probability}
        Where runs start.  Only states that can be reached are in the model.
    allowed : array of bool, optional
        Which actions a state has: an axis for each part of a state, then one for each part of an action, of its size or
        of size 1.
    goals : iterable of states or array of bool, optional
        States at which runs end; an array is a mask of all states.
    action_names : sequence of hashable, optional
        What actions are called; by default by their numbers.
    name : str
        What messages and reports call the model.

    Examples
    --------
    >>> import numpy as np, prudent
    >>> def step(stock, order, demand):  # sell what is asked for; order before you know
    ...     left = np.maximum(stock + order - demand, 0)
    ...     return np.minimum(left, 2), 5 + order - 3 * np.minimum(stock + order, demand), demand == 2
    >>> prudent.from_events(3, 2, [0.2, 0.5, 0.3], step)
    <SSP model: 4 states, 6 actions, 17 outcomes>
    """
    events = _Events(_shape("states", states), _shape("actions", actions), chances, step, allowed, goals)
    start = initial if isinstance(initial, Mapping) else {initial: 1.0}
    first = [events.number(state, "initial") for state in start]
    rows, met = events.explored(first, name)
    return events.model(rows, met, dict(zip(first, start.values(), strict=True)), action_names, name)


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
        self.n_states, self.n_actions = int(np.prod(states)), int(np.prod(actions))
        self.allowed = None if allowed is None else self._grid("allowed", np.asarray(allowed), states + actions)
        self.is_goal = self._goals(goals)
        chance = np.asarray(chances, dtype=np.float64)
        if chance.ndim == 0:
            raise PrudentError(f"chances is {chances!r}; it must be an array with the probability of each event")
        row = np.arange(chance[..., 0].size).reshape(chance.shape[:-1])
        self.by_action = row.ndim > len(states)  # whether chances depend on the action
        self.row = self._grid("chances", row, states + actions if self.by_action else states)
        at, self.event = np.nonzero(chance.reshape(-1, chance.shape[-1]))
        self.event_start, self.chance = starts(at, row.size), chance.reshape(-1, chance.shape[-1])[at, self.event]

    @staticmethod
    def _grid(what: str, values: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
        """Return an array as one for each state, or for each state and action."""
        if values.ndim > 0:
            values = values.reshape(values.shape + (1,) * (len(shape) - values.ndim))
        try:
            return np.broadcast_to(values, shape)
        except ValueError:
            raise PrudentError(f"{what} has the shape {values.shape}; it must have, or extend to, {shape}") from None

    def _goals(self, goals: Iterable[Any] | BoolArray | None) -> BoolArray:
        mask = np.zeros(self.n_states, dtype=bool)
        if isinstance(goals, np.ndarray) and goals.dtype == bool:
            mask[:] = self._grid("goals", goals, self.states).ravel()
        elif goals is not None:
            mask[[self.number(state, "goals") for state in goals]] = True
        return mask

    def number(self, state: Any, what: str) -> int:
        """Return a state's number in the grid."""
        parts = state if isinstance(state, tuple) else (state,)
        if len(parts) != len(self.states):
            raise PrudentError(f"{what}: state {state!r} has not {len(self.states)} parts")
        for part, size in zip(parts, self.states, strict=True):
            whole_number(f"{what}: state {state!r}", part, 0, size - 1, what="made of whole numbers")
        return int(np.ravel_multi_index(parts, self.states))

    def explored(self, first: list[int], name: str) -> tuple[list[_Rows], BoolArray]:
        """Return the rows of all states that can be reached, in the order in which they are found, and which they are.

        One more state stands for the end of a run.
        """
        met = np.zeros(self.n_states + 1, dtype=bool)
        met[first] = True
        here, rows = np.unique(np.array(first)), list[_Rows]()
        with Progress(f"exploring {name}", unit="states") as progress:
            while len(here):
                new = np.zeros(0, dtype=np.int64)
                for piece in self._pieces(here[~self.is_goal[here]]):
                    rows.append(self._rows(piece))
                    found = rows[-1].successor[~met[rows[-1].successor]]
                    if len(found):
                        found = np.unique(found)
                        met[found] = True
                        new = np.append(new, found)
                    progress.at(int(np.count_nonzero(met)))
                here = np.sort(new[new < self.n_states])
        return rows, met

    def _pieces(self, state: IntArray) -> Iterable[IntArray]:
        """Cut states into pieces of about so many outcomes."""
        each = self.n_actions * -(-len(self.event) // (len(self.event_start) - 1))
        size = max(PIECE // max(each, 1), 1)
        return (state[begin : begin + size] for begin in range(0, len(state), size))

    def _rows(self, state: IntArray) -> _Rows:
        """Return the actions and outcomes of some states."""
        at = np.unravel_index(state, self.states)
        if self.allowed is None:
            place, action = (part.ravel() for part in np.indices((len(state), self.n_actions)))
        else:
            place, action = np.nonzero(self.allowed[at].reshape(len(state), -1))
        if self.by_action:
            row = self.row[at].reshape(len(state), -1)[place, action]
        else:
            row = self.row[at][place]
        size = np.diff(self.event_start)[row]
        entry = ranges(self.event_start, row)
        event, probability, owner = self.event[entry], self.chance[entry], np.repeat(np.arange(len(action)), size)
        successor, cost = self._stepped(state, place[owner], action[owner], event)
        owner, successor, cost, probability = merge_outcomes(owner, successor, cost, probability)
        count = np.bincount(owner, minlength=len(action))
        return _Rows(state, np.bincount(place, minlength=len(state)), action, count, successor, cost, probability)

    def _stepped(
        self, state: IntArray, place: IntArray, action: IntArray, event: IntArray
    ) -> tuple[IntArray, FloatArray]:
        """Call the step function; return the successors' numbers and the costs."""
        at, n = state[place], len(place)
        states = tuple(part[place] for part in np.unravel_index(state, self.states))
        moves = np.unravel_index(action, self.actions)
        who, what = (part if len(part) > 1 else part[0] for part in (states, moves))
        answer = self.step(who, what, event)
        if not isinstance(answer, tuple) or len(answer) not in (2, 3):
            raise PrudentError("step must return (next_state, cost), or (next_state, cost, ends)")
        after = answer[0] if isinstance(answer[0], tuple) else (answer[0],)
        if len(after) != len(self.states):
            raise PrudentError(f"step returned a next state of {len(after)} parts; states have {len(self.states)}")
        ends = np.broadcast_to(np.asarray(answer[2] if len(answer) == 3 else False, dtype=bool), n)
        successor = np.zeros(n, dtype=np.int64)
        for part, size in zip(after, self.states, strict=True):
            value = np.asarray(part)
            good = (value >= 0) & (value < size) & (value == np.floor(value)) | ends
            if not good.all():
                odd = int(np.argmin(np.broadcast_to(good, n)))
                here, move = self._name(at[odd], self.states), self._name(action[odd], self.actions)
                found = tuple(np.broadcast_to(each, n)[odd].item() for each in after)
                raise PrudentError(
                    f"step({here!r}, {move!r}, {event[odd]}) leads to {found if len(found) > 1 else found[0]!r}; "
                    f"next states must be whole numbers from 0, below {self.states}"
                )
            successor = successor * size + value.astype(np.int64, copy=False)
        return np.where(ends, self.n_states, successor), np.array(np.broadcast_to(answer[1], n), dtype=np.float64)

    @staticmethod
    def _name(number: int, shape: tuple[int, ...]) -> Hashable:
        parts = tuple(int(part) for part in np.unravel_index(number, shape))
        return parts if len(parts) > 1 else parts[0]

    def model(
        self,
        rows: list[_Rows],
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
        state, action_count, action, outcome_count, successor, cost, probability = (
            np.concatenate(column) if len(column) > 1 else column[0] for column in zip(*rows, strict=True)
        )
        if (state[1:] < state[:-1]).any():
            order = np.argsort(state, kind="stable")
            acts = ranges(offsets(action_count), order)
            outs = ranges(offsets(outcome_count), acts)
            state, action_count = state[order], action_count[order]
            action, outcome_count = action[acts], outcome_count[acts]
            successor, cost, probability = successor[outs], cost[outs], probability[outs]
        count = np.zeros(len(names), dtype=np.int64)
        count[number[state]] = action_count
        return from_arrays(
            offsets(count),
            offsets(outcome_count),
            probability,
            successor,
            cost,
            initial={int(number[s]): p for s, p in start.items()},
            state_names=names if len(self.states) > 1 or met[-1] or not met[:-1].all() else None,
            action_names=self._action_names(action, count, action_names),
            name=name,
        )

    def _action_names(
        self, action: IntArray, count: IntArray, given: Sequence[Hashable] | None
    ) -> Sequence[Hashable] | None:
        """Return what the actions are called; None if each is called by its number within its state."""
        if given is not None and len(given) != self.n_actions:
            raise PrudentError(f"action_names has {len(given)} names; there are {self.n_actions} actions")
        if given is None and len(self.actions) == 1:
            first = np.repeat(np.cumsum(count) - count, count)
            if np.array_equal(action, np.arange(len(action)) - first):
                return None
            return list(map(int, action.tolist()))
        names = list(given) if given is not None else list(product(*map(range, self.actions)))
        return [names[a] for a in action.tolist()]


def _names(shape: tuple[int, ...], number: IntArray) -> list[Hashable]:
    if len(shape) == 1:
        return list(number.tolist())
    return list(zip(*(part.tolist() for part in np.unravel_index(number, shape)), strict=True))


def _shape(what: str, size: Size) -> tuple[int, ...]:
    parts = (size,) if isinstance(size, int | np.integer) else tuple(size)
    if not parts:
        raise PrudentError(f"{what} is {size!r}; it must be a number, or the size of a grid")
    return tuple(whole_number(what, part, 1) for part in parts)
