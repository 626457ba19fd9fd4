"""Models as JSON, plain or gzipped: ``parse``; :mod:`prudent.io.json_write` writes them.

    {"format": "prudent-ssp", "version": 1, "initial": "s0", "goals": ["g"],
     "transitions": [{"state": "s0", "action": "a", "outcomes": [{"p": 1, "to": "g", "cost": 2.5}]}]}

An outcome may have a ``count``, how often it was seen, and bounds on its probability, ``low`` and ``high``.  Either
all outcomes of a file have counts or none has.  Without bounds, a probability is taken as exact.

``initial`` may be an object of probabilities; ``states`` may list all states, to fix the order of their numbers.
Names are strings: other names are written with ``str``, and are strings when read back.  Numbers keep all their
digits when written and read.

Files are not trusted.  Reading one takes time in proportion to its size, and memory of at most 64 times its size
plus 1 MiB.  For a gzipped file that is the size of its text, at most 200 times the file plus 16 MiB.

Rows are checked a column at a time, in a third of the time that row by row would take.  Only if a column is wrong does
a loop over its rows find which rows are wrong, and why.  A wrong row is then left out or replaced, so that the rest is
checked as well.
"""

import gc
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from prudent.errors import ModelError, PrudentError, naming, printable
from prudent.io.json_write import FORMAT, VERSION
from prudent.io.untrusted import checked, document, gunzipped, shown, utf8
from prudent.models.intervals import Intervals
from prudent.models.rows import FloatArray, offsets, starts
from prudent.models.ssp import SSP, SUM_TOLERANCE

LISTED, LONGEST = 100, 500
"""How many problems are listed, and how many characters of each."""

NAMES, LETTERS, HINTS = 500, 40, 5
"""Hints on wrong names are slow: they are given among at most this many names, for names this short, this often."""

DOCUMENT = ("format", "version", "initial", "goals", "transitions")
TRANSITION: dict[str, type] = {"state": str, "action": str, "outcomes": list}
OUTCOME: dict[str, type] = {"p": float, "to": str, "cost": float}
"""The fields of the document, and those of its rows, each with its kind."""

MORE = ("count", "low", "high")
"""The fields that an outcome may have besides."""


def parse(raw: bytes, path: Path) -> SSP:
    """Return the model in a file's bytes; refuse anything that is not exactly one model."""
    with naming(path):
        packed = path.name.lower().endswith(".gz")
        plain = gunzipped(raw, "inflate it first and give the .json file") if packed else raw
        text = utf8(plain, "surrogatepass")
        with _uncollected():
            return _model(document(text, _count_fields), path.name.split(".")[0])


@contextmanager
def _uncollected() -> Iterator[None]:
    """Pause the garbage collector: parsed text has no cycles, and the search for them takes longer than parsing."""
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()


class _Problems:
    """Collects problems, so that many can be reported at once."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self.count = 0

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note what is refused inside."""
        try:
            yield
        except PrudentError as error:
            for problem in error.problems if isinstance(error, ModelError) else [str(error)]:
                self.note(problem)

    def note(self, problem: str) -> None:
        """Keep one of the first problems, and count the others."""
        self.count += 1
        if self.count <= LISTED:
            self.found.append(problem if len(problem) <= LONGEST else f"{problem[:LONGEST]}...")

    def refuse(self) -> None:
        """Raise the problems kept, and the number of others, if there are any."""
        more = [f"{self.count - LISTED:,} more problems are not listed; fix these first"]
        if self.count:
            raise ModelError([*self.found, *(more if self.count > LISTED else [])])


class _States:
    """The numbers of the states by name, and hints on unknown names."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self.index = {name: i for i, name in enumerate(names)}
        self.hints = HINTS if len(names) <= NAMES else 0

    def number(self, state: Any, at: str) -> int:
        found = self.index.get(checked(state, str, at))
        if found is None:
            raise PrudentError(
                f"{at}: state {state!r} has no transitions and is not a goal; {self._hint(state)}add it to the goals, "
                "or give it transitions (a dead end leads to itself)"
            )
        return found

    def numbers(self, states: list[str]) -> Any:
        return np.fromiter(map(self.index.__getitem__, states), np.int64, len(states))

    def _hint(self, state: str) -> str:
        if not self.hints or len(state) > LETTERS:
            return ""
        self.hints -= 1
        near = get_close_matches(state, self.index, n=1)
        return f"did you mean {near[0]!r}? If not, " if near else ""


def _model(content: Any, name: str) -> SSP:
    problems = _Problems()
    for problem in _field_problems(content, "the document", DOCUMENT, ("states",)):
        problems.note(problem)
    if not content.keys() >= set(DOCUMENT):
        problems.refuse()
    if content["format"] != FORMAT:
        raise PrudentError(f"format is {shown(content['format'])}; it must be {shown(FORMAT)}")
    if checked(content["version"], int, "version") != VERSION:
        raise PrudentError(f"version is {shown(content['version'])}; this release reads version {VERSION}")
    given = checked(content["transitions"], list, "transitions")
    line: Sequence[int] = range(len(given))  # where each transition stands in the file
    if (transitions := _table(given, TRANSITION)) is None:
        line = _right(given, problems)
        transitions = _table([given[i] for i in line], TRANSITION)
    goals = checked(content["goals"], list, "goals")
    states = _States(_names(content, dict.fromkeys(transitions["state"]), goals, problems))
    number = states.numbers(transitions["state"])
    if (number[1:] < number[:-1]).any():
        order = np.argsort(number, kind="stable").tolist()
        line = [line[i] for i in order]
        transitions = {name: [column[i] for i in order] for name, column in transitions.items()}
    if (outcomes := _outcomes(transitions["outcomes"], states)) is None:
        _mend(transitions, line, states, problems)
        outcomes = _outcomes(
            [[{name: row[name] for name in OUTCOME} for row in rows] for rows in transitions["outcomes"]], states
        )
    initial = {0: 1.0}
    with problems.noted():
        initial = _initial(content["initial"], states)
    with problems.noted():
        model = SSP(
            action_start=starts(number, len(states.names)),
            outcome_start=offsets(list(map(len, transitions["outcomes"]))),
            **outcomes,
            initial_state=np.array(list(initial), dtype=np.int64),
            initial_probability=np.array(list(initial.values())),
            state_names=states.names,
            action_names=transitions["action"],
            name=name,
        )
    problems.refuse()
    return model


def _names(content: Any, acting: dict[str, None], goals: list[Any], problems: _Problems) -> list[str]:
    """Return the names of all states, those with transitions first, or in the order that the document lists them."""
    if not (set(map(type, goals)) <= {str} and acting.keys().isdisjoint(goals)):
        for i, goal in enumerate(goals):
            with problems.noted():
                if checked(goal, str, f"goals[{i}]") in acting:
                    raise PrudentError(
                        f"goals[{i}]: goal {goal!r} has transitions; runs end at goals: remove one or the other"
                    )
        goals = [goal for goal in goals if isinstance(goal, str) and goal not in acting]
    names = [*acting, *dict.fromkeys(goals)]
    if "states" in content:
        with problems.noted():
            listed = checked(content["states"], list, "states")
            ordered = [checked(state, str, f"states[{i}]") for i, state in enumerate(listed)]
            if len(ordered) == len(names) and set(ordered) == set(names):
                return ordered
            raise PrudentError(
                "states must list each state with transitions and each goal exactly once, or be left out"
            )
    return names


def _right(transitions: list[Any], problems: _Problems) -> list[int]:
    """Return which transitions are well-formed, and note what is wrong with the others."""
    right = []
    for i, row in enumerate(transitions):
        with problems.noted():
            _check_fields(row, f"transitions[{i}]", tuple(TRANSITION))
            for name, kind in TRANSITION.items():
                checked(row[name], kind, f"transitions[{i}].{name}")
            right.append(i)
    return right


def _outcomes(rows: list[list[Any]], states: _States) -> Any:
    """Return the arrays of all outcomes; None if one is malformed."""
    flat = list(chain.from_iterable(rows))
    more = _extras(flat)
    if more is None:
        return None
    table = _table([{name: row[name] for name in OUTCOME} for row in flat] if more else flat, OUTCOME)
    if table is None:
        return None
    try:
        probability, cost = (np.array(table[name], dtype=np.float64) for name in ("p", "cost"))
        successor = states.numbers(table["to"])
    except (KeyError, OverflowError):
        return None
    if not ((probability >= 0) & (probability <= 1 + SUM_TOLERANCE) & np.isfinite(cost)).all():
        return None
    found = {"probability": probability, "successor": successor, "cost": cost}
    if "count" in more:
        found["count"] = more["count"]
    if "low" in more:
        low, high = (np.where(np.isnan(more[name]), probability, more[name]) for name in ("low", "high"))
        found["intervals"] = Intervals(low, high)
    return found


def _extras(rows: list[Any]) -> dict[str, FloatArray] | None:
    """Return the counts and the bounds of all outcomes, nan where there are none; None if one is malformed."""
    if set(map(type, rows)) <= {dict} and set(map(len, rows)) <= {len(OUTCOME)}:
        return {}
    found: dict[str, FloatArray] = {}
    try:
        for name in MORE:
            column = [row.get(name) for row in rows]
            if not set(map(type, column)) <= {float, int, type(None)}:
                return None
            found[name] = np.array([math.nan if value is None else float(value) for value in column])
        alike = all(row.keys() <= {*OUTCOME, *MORE} and row.keys() >= OUTCOME.keys() for row in rows)
    except (AttributeError, OverflowError):
        return None
    count, low, high = found.values()
    exact = np.isnan(low) & np.isnan(high)
    counted = np.isnan(count).all() or ((count >= 0) & (count < math.inf)).all()
    if not (alike and counted and (exact | ((low >= 0) & (low <= high) & (high <= 1 + SUM_TOLERANCE))).all()):
        return None
    return {name: values for name, values in found.items() if not np.isnan(values).all()}


def _mend(transitions: dict[str, list[Any]], line: Sequence[int], states: _States, problems: _Problems) -> None:
    """Note what is wrong with outcomes, and replace all outcomes of a transition that has wrong ones."""
    stands_in = [{"p": 1.0, "to": states.names[0], "cost": 0.0}]
    for a, (state, action, outcomes) in enumerate(zip(*transitions.values(), strict=True)):
        who = f"state {state[:LONGEST]!r}, action {action[:LONGEST]!r}"
        before = problems.count
        for j, outcome in enumerate(outcomes):
            with problems.noted():
                _check_outcome(outcome, f"transitions[{line[a]}].outcomes[{j}]", who, states)
        if problems.count > before:
            transitions["outcomes"][a] = stands_in
    if problems.count == 0:
        with problems.noted():
            raise PrudentError(
                "some outcomes have a count and others have none; give a count to all of them, or to none"
            )


def _check_outcome(outcome: Any, at: str, who: str, states: _States) -> None:
    _check_fields(outcome, at, tuple(OUTCOME), optional=MORE)
    p = checked(outcome["p"], float, f"{at}.p")
    if not 0 <= p <= 1 + SUM_TOLERANCE:
        raise PrudentError(f"{at}: {who} has an outcome of probability {p}; probabilities lie between 0 and 1")
    price = checked(outcome["cost"], float, f"{at}.cost")
    if not math.isfinite(price):
        raise PrudentError(f"{at}: {who} has an outcome of cost {price}; costs are finite numbers")
    states.number(outcome["to"], f"{at}.to")
    _check_extras(outcome, at, who)


def _check_extras(outcome: Any, at: str, who: str) -> None:
    count = checked(outcome.get("count", 0), float, f"{at}.count")
    if not 0 <= count < math.inf:
        raise PrudentError(f"{at}: {who} has an outcome of count {count}; counts are finite numbers, at least 0")
    if ("low" in outcome) != ("high" in outcome):
        raise PrudentError(f"{at}: {who} has an outcome with only one of low and high; give both, or neither")
    low, high = (checked(outcome.get(name, 0), float, f"{at}.{name}") for name in ("low", "high"))
    if not 0 <= low <= high <= 1 + SUM_TOLERANCE:
        raise PrudentError(f"{at}: {who} has an outcome of low {low}, high {high}; 0 <= low <= high <= 1 must hold")


def _initial(initial: Any, states: _States) -> dict[int, float]:
    if isinstance(initial, str):
        return {states.number(initial, "initial"): 1.0}
    checked(initial, dict, "initial", "a state or an object of probabilities")
    if not initial:
        raise PrudentError("initial names no state; it must be a state or an object of probabilities")
    return {
        states.number(state, "initial"): checked(p, float, f"initial.{printable(state, 60)}")
        for state, p in initial.items()
    }


def _table(rows: list[Any], fields: dict[str, type]) -> Any:
    """Return rows as columns by name; None unless every row is an object with exactly these fields and types."""
    try:
        alike = set(map(len, rows)) <= {len(fields)}
        table = {name: list(map(itemgetter(name), rows)) for name in fields}
    except (KeyError, TypeError):  # TypeError: what is no object has no fields
        return None
    for name, kind in fields.items():
        alike &= set(map(type, table[name])) <= ({float, int} if kind is float else {kind})
    return table if alike else None


def _check_fields(value: Any, at: str, names: tuple[str, ...], optional: tuple[str, ...] = ()) -> None:
    for problem in _field_problems(value, at, names, optional):
        raise PrudentError(problem)


def _field_problems(value: Any, at: str, names: tuple[str, ...], optional: tuple[str, ...]) -> Iterator[str]:
    """Yield what is wrong with the fields of an object, those that lack first."""
    checked(value, dict, at)
    for name in names:
        if name not in value:
            yield f"{at} has no {name!r}; it needs {', '.join(names)}"
    for name in value:
        if name not in names and name not in optional:
            yield f"{at} has an unknown field {name!r}; it takes {', '.join(names + optional)}"


def _count_fields(content: Any) -> int:
    """Return how many fields a model's document has; 0 if it does not look like a model's."""
    try:
        rows = list(map(itemgetter("outcomes"), content["transitions"]))
        start = {} if isinstance(content["initial"], str) else content["initial"]
    except (KeyError, TypeError):
        return 0
    if not set(map(type, rows)) <= {list}:
        return 0
    objects = [content, *content["transitions"], *chain.from_iterable(rows), start]
    return sum(map(len, objects)) if set(map(type, objects)) == {dict} else 0
