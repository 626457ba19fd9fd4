"""SSP: the model that all other modules use.

A stochastic shortest path problem as frozen arrays, state -> action -> outcome.  The cost belongs to the outcome: two
outcomes with the same next state and different costs stay separate, because merging them would change the risk.  A goal
is a state without actions; a run ends there at no cost.
"""

from collections.abc import Container, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from hashlib import sha256
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from prudent.errors import ModelError, PrudentError, must_be_one
from prudent.models.rows import (
    MOST_LIKELY,
    SUM_TOLERANCE,
    BoolArray,
    FloatArray,
    IntArray,
    Rows,
    offsets,
    ranges,
    row_of,
)

if TYPE_CHECKING:
    from prudent.models.intervals import Intervals

LARGEST = float(np.finfo(np.float64).max)
"""The largest finite number."""

SHOWN = 20
"""The most places that a message lists for one kind of problem."""


def check_model(model: object, remedy: str = "make one with prudent.build, from_arrays or load") -> None:
    """Reject an argument that is not a model."""
    if not isinstance(model, SSP):
        raise PrudentError(f"model is a {type(model).__name__}; {remedy}")


@dataclass(frozen=True, eq=False, repr=False)
class SSP(Rows):
    """A stochastic shortest path problem, validated once and immutable.

    States and actions are numbered; an *action* here is one action of one state.  The actions of state ``s`` are
    ``action_start[s]:action_start[s + 1]``; the outcomes of action ``a`` are ``outcome_start[a]:outcome_start[a + 1]``.

    Use :func:`prudent.build`, :func:`prudent.from_arrays` or :func:`prudent.load` to make one.

    Examples
    --------
    >>> import prudent
    >>> model = prudent.domains.figure_2()
    >>> model
    <SSP figure-2: 4 states, 5 actions, 8 outcomes>
    >>> model.state(0), model.n_outcomes, model.is_goal.tolist()
    ('s0', 8, [False, False, False, True])
    """

    action_start: IntArray  # (n_states + 1,)
    outcome_start: IntArray  # (n_actions + 1,)
    probability: FloatArray  # (n_outcomes,)  sums to 1 within each action
    successor: IntArray  # (n_outcomes,)
    cost: FloatArray  # (n_outcomes,)
    initial_state: IntArray  # (n_initial,)
    initial_probability: FloatArray  # (n_initial,)  of the initial states; the draw costs nothing
    state_names: Sequence[Hashable] | None = None  # (n_states,)  None: the state's number
    action_names: Sequence[Hashable] | None = None  # (n_actions,)  None: the action's number within its state
    name: str = "model"
    notes: tuple[str, ...] = ()  # decisions of a reader that its file left open; plans and reports repeat them
    count: FloatArray | None = None  # (n_outcomes,)  how often each outcome was seen, if the model was estimated
    intervals: "Intervals | None" = None  # bounds on the probabilities, if they are part of the model
    deviation: float = field(init=False, default=0.0)  # largest |sum of probabilities - 1| as given
    possible: bool = field(init=False, default=True)  # whether no outcome or initial state has probability 0

    def __post_init__(self) -> None:
        for item in fields(self)[:7]:
            kind = np.float64 if item.type is FloatArray else np.int64
            object.__setattr__(self, item.name, frozen(getattr(self, item.name), kind, item.name))
        if self.count is not None:
            object.__setattr__(self, "count", frozen(self.count, np.float64, "count"))
        for names in ("state_names", "action_names"):
            given = getattr(self, names)
            if given is not None and not isinstance(given, range):
                try:
                    object.__setattr__(self, names, tuple(given))
                    hash(getattr(self, names))
                except TypeError:
                    raise PrudentError(f"{names} must be a sequence of hashable names; use tuples, not lists") from None
        problems = list(_structure_problems(self))
        if not problems:  # the arrays can be read, so that places can be named
            problems = [*_name_problems(self), *_outcome_problems(self), *_end_problems(self)]
        if problems:
            raise ModelError(problems)
        probability, deviation = _normalised(self.probability, self.outcome_start)
        initial, initial_deviation = _normalised(self.initial_probability, np.array([0, len(self.initial_probability)]))
        object.__setattr__(self, "probability", probability)
        object.__setattr__(self, "initial_probability", initial)
        object.__setattr__(self, "deviation", max(deviation, initial_deviation))
        object.__setattr__(self, "possible", bool(min(probability.min(initial=1.0), initial.min()) > 0))

    @property
    def n_outcomes(self) -> int:
        """The number of outcomes of all actions together."""
        return len(self.probability)

    def noted(self, *notes: str) -> Self:
        """Return the same model with more notes (internal)."""
        found = replace(self, notes=(*self.notes, *notes))
        object.__setattr__(found, "deviation", self.deviation)  # of the sums as given, before they were normalised
        return found

    @property
    def names(self) -> tuple[Sequence[Hashable], Sequence[Hashable]]:
        """The names of all states and of all actions; their numbers if they have none (internal)."""
        action = self.action_names
        if action is None:
            action = (np.arange(self.n_actions) - self.action_start[self.action_state]).tolist()
        return range(self.n_states) if self.state_names is None else self.state_names, action

    def state(self, index: int) -> Hashable:
        """Return the name of a state.

        Examples
        --------
        >>> import prudent
        >>> model = prudent.domains.figure_2()
        >>> [model.state(index) for index in model.initial_state]
        ['s0']
        """
        return int(index) if self.state_names is None else self.state_names[index]

    def action(self, index: int) -> Hashable:
        """Return the name of an action.

        Names are unique within a state; other states may use them again.

        Examples
        --------
        >>> import prudent
        >>> model = prudent.domains.figure_2()
        >>> [model.action(index) for index in range(model.action_start[1], model.action_start[2])]
        ['c', 'd', 'e']
        """
        if self.action_names is not None:
            return self.action_names[index]
        return int(index - self.action_start[self.state_of_action(index)])

    def state_of_action(self, index: int) -> int:
        """Return the state that an action belongs to.

        Examples
        --------
        >>> import prudent
        >>> model = prudent.domains.figure_2()
        >>> costly = model.cost.argmax()
        >>> action = model.outcome_start.searchsorted(costly, side="right") - 1
        >>> model.state(model.state_of_action(action)), model.action(action), model.cost[costly].item()
        ('s1', 'c', 20.0)
        """
        return row_of(self.action_start, index)

    def likeliest(self, action: int) -> int:
        """Return the number of an action's likeliest outcome (internal)."""
        outcomes = self.outcomes(action)
        return outcomes[int(np.argmax(self.probability[outcomes.start : outcomes.stop]))]

    def place(self, action: int) -> str:
        """Return how messages name an action (internal)."""
        return f"state {self.state(self.state_of_action(action))!r}, action {self.action(action)!r}"

    def known_of(self, outcome: IntArray) -> dict[str, Any]:
        """Return the counts and intervals of some outcomes, as a model's fields (internal).

        Number -1 stands for an outcome that is certain.
        """
        known: dict[str, Any] = {}
        if self.count is not None:
            known["count"] = np.append(self.count, 0.0)[outcome]
        if (sets := self.intervals) is not None:
            bounds = (np.append(bound, 1.0)[outcome] for bound in (sets.low, sets.high))
            known["intervals"] = type(sets)(*bounds)
        return known

    def with_actions(self, kept: BoolArray, **fields: Any) -> "SSP":
        """Return the model with some of its actions, and other fields where given (internal)."""
        outcome, names = ranges(self.outcome_start, np.flatnonzero(kept)), self.names[1]
        return replace(
            self,
            action_start=offsets(kept)[self.action_start],
            outcome_start=offsets(np.diff(self.outcome_start)[kept]),
            probability=self.probability[outcome],
            successor=self.successor[outcome],
            cost=self.cost[outcome],
            action_names=[names[a] for a in np.flatnonzero(kept).tolist()],
            **self.known_of(outcome),
            **fields,
        )

    def index(self, state: Hashable) -> int:
        """Return the number of the state with this name.

        Examples
        --------
        >>> import prudent
        >>> model = prudent.domains.figure_2()
        >>> model.index("g"), model.is_goal[model.index("g")].item()
        (3, True)
        """
        try:
            return self._state_index[state]
        except (KeyError, TypeError):
            raise PrudentError(f"state {state!r} is not a state of {self.name}; {self._nearby(state)}") from None

    def _nearby(self, state: object) -> str:
        """Return a hint for a name that no state has: the name that is probably meant, or an example of a name."""
        if str(state) in self._state_index:
            return "names in files are strings"
        if self.state_names is None:
            return f"states are numbers, from 0 to {self.n_states - 1}"
        parts = [part.strip() for part in str(state).split(",")]
        length = len(", ".join(parts))  # the same in any order of the parts: few names have it
        for name in self.state_names:
            if isinstance(name, str) and len(name) == length and sorted(name.split(", ")) == sorted(parts):
                return f"did you mean {name!r}?"
        return f"model.state_names lists them, such as {self.state(int(self.initial_state[0]))!r}"

    def first(self, state: Hashable | None = None) -> int:
        """Return the number of the initial state, or of the one named among several (internal)."""
        if state is None:
            if len(self.initial_state) > 1:
                some = ", ".join(repr(self.state(s)) for s in self.initial_state[:5])
                raise PrudentError(
                    f"{self.name} has {len(self.initial_state)} initial states; choose one of them: {some} ..."
                )
            return int(self.initial_state[0])
        found = self.index(state)
        if found not in self.initial_state:
            raise PrudentError(
                f"state {state!r} is not an initial state of {self.name}; build or load the model with that start, or "
                "use plan.policy(state, spent), which accepts any state of a run"
            )
        return found

    def find_action(self, state: int, action: Hashable) -> int:
        """Return the number of the action with this name in a state.

        Parameters
        ----------
        state : int
            The state's number, from :meth:`index`.
        action : hashable
            The action's name.

        Examples
        --------
        >>> import prudent
        >>> model = prudent.domains.figure_2()
        >>> action = model.find_action(model.index("s1"), "d")
        >>> model.cost[model.outcome_start[action] : model.outcome_start[action + 1]].tolist()
        [9.0, 1.0]
        """
        actions = self.actions(state)
        for index in actions:
            if self.action(index) == action:
                return index
        names = ", ".join(repr(self.action(index)) for index in actions) or "none: it is a goal"
        raise PrudentError(f"state {self.state(state)!r} has no action {action!r}; its actions are {names}")

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the arrays and of the names, written as strings: equal models have equal ones."""
        digest = sha256(b"prudent-ssp-1")
        for item in fields(self)[:7]:
            array = getattr(self, item.name)
            digest.update(f"{item.name}:{len(array)};".encode())
            digest.update(array.astype(array.dtype.newbyteorder("<"), copy=False).data)
        for kind, names in zip((b"s%d:%b", b"a%d:%b"), self.names, strict=True):
            texts = (str(name).encode("utf-8", "surrogatepass") for name in names)
            digest.update(b"".join([kind % (len(text), text) for text in texts]))
        return digest.hexdigest()

    @cached_property
    def _state_index(self) -> dict[Hashable, int]:
        return {name: index for index, name in enumerate(self.names[0])}

    def __repr__(self) -> str:
        return f"<SSP {self.name}: {self.n_states:,} states, {self.n_actions:,} actions, {self.n_outcomes:,} outcomes>"


def frozen(values: Any, kind: Any, name: str) -> NDArray[Any]:
    """Return an argument as an array that cannot be written to: a copy, unless it already is one (internal)."""
    try:
        given = np.asarray(values)
        if given.dtype.kind not in "iufb":
            raise TypeError(f"found {given.dtype}")
        frozen = given.base is None and not given.flags.writeable  # then nobody writes to it
        array = np.array(given, dtype=kind, copy=None if frozen else True, order="C")
    except (TypeError, ValueError, OverflowError) as error:
        raise PrudentError(f"{name} must be an array of numbers: {error}") from None
    if array.ndim != 1:
        raise PrudentError(f"{name} has {array.ndim} dimensions; it must have one")
    if kind is np.int64 and given.dtype.kind not in "iu" and not np.array_equal(given, array):
        raise PrudentError(f"{name} must hold whole numbers")
    array.flags.writeable = False
    return array


def _normalised(probability: FloatArray, start: IntArray) -> tuple[FloatArray, float]:
    """Divide each row by its sum, unless the sum is already 1 up to rounding (so that repeating it changes nothing)."""
    size = np.diff(start)
    total = np.add.reduceat(probability, start[:-1]) if len(size) else np.empty(0)
    off = np.abs(total - 1)
    total[off <= size * np.finfo(float).eps] = 1.0
    if not (total == 1.0).all():
        probability = probability / np.repeat(total, size)
        probability.flags.writeable = False
    return probability, float(off.max(initial=0.0))


def _structure_problems(model: SSP) -> Iterator[str]:
    """Yield problems that make the arrays unreadable."""
    levels = (("action_start", "outcome_start", model.n_actions), ("outcome_start", "probability", model.n_outcomes))
    for name, inner, size in levels:
        start = getattr(model, name)
        if len(start) == 0 or start[0] != 0 or (np.diff(start) < 0).any() or start[-1] != size:
            yield f"{name} must rise from 0 to the number of rows of {inner}, {size}"
    if model.n_states == 0:
        yield "the model has no states"
    for name in ("successor", "cost", "count"):
        values = getattr(model, name)
        if values is not None and len(values) != model.n_outcomes:
            yield f"{name} has {len(values)} entries; probability has {model.n_outcomes}"
    if (sets := model.intervals) is not None and len(sets.low) != model.n_outcomes:
        yield f"intervals has {len(sets.low)} entries; probability has {model.n_outcomes}"
    if len(model.initial_state) != len(model.initial_probability) or len(model.initial_state) == 0:
        yield "initial_state and initial_probability must have the same length, at least 1"
    for name, size in (("state_names", model.n_states), ("action_names", model.n_actions)):
        names = getattr(model, name)
        if names is not None and len(names) != size:
            yield f"{name} has {len(names)} entries; the model needs {size}"


def _name_problems(model: SSP) -> Iterator[str]:
    if model.state_names is not None:
        yield from (f"state name {name!r} is given twice; names must be unique" for name in repeated(model.state_names))
    if model.action_names is not None:
        given, start = model.action_names, model.action_start.tolist()
        if any(len(set(given[first:last])) < last - first for first, last in pairwise(start)):
            for state, name in repeated(list(zip(model.action_state.tolist(), given, strict=True))):
                yield f"state {model.state(state)!r} has two actions named {name!r}; names must be unique"


def _outcome_problems(model: SSP) -> Iterator[str]:
    p, c, size = model.probability, model.cost, np.diff(model.outcome_start)

    def places(wrong: BoolArray) -> list[int]:
        return [int(index) for index in np.flatnonzero(wrong)[:SHOWN]]

    def at(outcome: int) -> str:
        return model.place(row_of(model.outcome_start, outcome))

    for action in places(size == 0):
        yield f"{model.place(action)} has no outcomes; give at least one (probability, next state, cost)"
    bad = _outside(p, 0, MOST_LIKELY)
    for o in places(bad):
        yield f"{at(o)} has an outcome of probability {p[o]}; probabilities must lie between 0 and 1"
    for o in places(_outside(c, -LARGEST, LARGEST)):
        yield f"{at(o)} has an outcome of cost {c[o]}; costs must be finite numbers"
    if (count := model.count) is not None:
        for o in places(_outside(count, 0, LARGEST)):
            yield f"{at(o)} has an outcome of count {count[o]}; counts must be finite numbers of at least 0"
    for o in places(_outside(model.successor, 0, model.n_states - 1)):
        yield f"{at(o)} leads to state number {model.successor[o]}; the model has {model.n_states} states"
    filled = np.flatnonzero(size)
    if len(filled):
        start = model.outcome_start[filled]
        total = np.add.reduceat(p, start)
        wrong = np.abs(total - 1) > SUM_TOLERANCE
        if bad.any():
            wrong &= ~np.logical_or.reduceat(bad, start)
        for i in places(wrong):
            yield f"probabilities of {model.place(int(filled[i]))} {must_be_one(total[i])}"


def _outside(values: NDArray[Any], least: float, most: float) -> BoolArray:
    """Return which values are not between two bounds; an empty array if all are, as in most models."""
    if len(values) == 0 or (values.min() >= least and values.max() <= most):
        return np.empty(0, dtype=bool)
    return ~((values >= least) & (values <= most))


def _end_problems(model: SSP) -> Iterator[str]:
    if not model.is_goal.any():
        yield "the model has no goal; give at least one state without actions"
    q, first = model.initial_probability, model.initial_state
    for state in first[(first < 0) | (first >= model.n_states)]:
        yield f"the initial state is number {state}; the model has {model.n_states} states"
    if not (q >= 0).all():
        yield f"an initial probability is {q[~(q >= 0)][0]:g}; probabilities must lie between 0 and 1"
    elif abs(q.sum() - 1) > SUM_TOLERANCE:
        yield f"initial probabilities {must_be_one(q.sum())}"
    if len(set(first.tolist())) < len(first):
        yield "an initial state is given twice; list it once, with the sum of its probabilities"


def repeated(names: Sequence[Any]) -> list[Any]:
    """Return the first names that occur more than once."""
    if len(set(names)) == len(names):
        return []
    seen: set[Any] = set()
    return [name for name in names if name in seen or seen.add(name)][:SHOWN]  # type: ignore[func-returns-value]


def fresh_name(name: str, taken: Container[Hashable]) -> str:
    """Return a name for a state that is added, with primes if it is taken."""
    while name in taken:
        name += "'"
    return name
