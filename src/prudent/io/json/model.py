"""Models as JSON, plain or gzipped: ``read`` and ``write``.

    {"format": "prudent-ssp", "version": 1, "initial": "s0", "goals": ["g"],
     "transitions": [{"state": "s0", "action": "a", "outcomes": [{"p": 1, "to": "g", "cost": 2.5}]}]}

``initial`` may be an object of probabilities; ``states`` may list all states, to say in which order they are
numbered.  Names are strings: others are written with ``str``, and stay strings when read.  Numbers keep all
their digits both ways.

A file may come from anybody.  Reading it takes time in proportion to its size, and memory of at most 64 times its size
and 1 MiB; of a gzipped file the size is that of its text, which may be 200 times the file and 16 MiB, not more.
"""

import gzip
import math
import zlib
from collections.abc import Iterator
from difflib import get_close_matches
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from prudent.errors import ModelError, PrudentError, printable
from prudent.io.inflate import inflated
from prudent.io.json.parts import checked, document, shown
from prudent.io.json.plain import FORMAT, VERSION, plain_model, text_of
from prudent.models.ssp import SSP, SUM_TOLERANCE
from prudent.runtime.atomic_files import read_bytes, write_bytes

__all__ = ["parse", "read", "write"]

LISTED, LONGEST = 100, 500
"""How many problems are listed, and how many characters of each."""

NAMES, LETTERS, HINTS = 500, 40, 5
"""A wrong name is compared with at most so many others, if it is this short, and only the first few are: it is slow."""


def read(path: Path) -> SSP:
    """Read a model; refuse anything that is not exactly one."""
    return parse(read_bytes(path), path)


def parse(raw: bytes, path: Path) -> SSP:
    """Return the model that a file's bytes are; refuse anything that is not exactly one."""
    try:
        text, name = _text(raw, path), path.name.split(".")[0]
        found = plain_model(text, name)
        if found is None:  # which does not mean that something is wrong
            found = _model(document(text), name)
        return found
    except (OSError, EOFError, zlib.error) as error:
        raise PrudentError(f"{path}: cannot be read: {error}") from None
    except UnicodeDecodeError as error:
        raise PrudentError(f"{path}: is not UTF-8 text: {error.reason} at byte {error.start}") from None
    except ModelError as error:
        raise ModelError([f"{path}: {problem}" for problem in error.problems]) from None
    except PrudentError as error:
        raise PrudentError(f"{path}: {error}") from None


def _text(raw: bytes, path: Path) -> str:
    """Return the text of a file, inflated as far as allowed."""
    if not path.name.lower().endswith(".gz"):
        return raw.decode("utf-8", "surrogatepass")
    with gzip.GzipFile(fileobj=BytesIO(raw)) as file:
        text = inflated(file, len(raw), "inflate it first and give the .json file")
    return text.decode("utf-8", "surrogatepass")


def write(model: SSP, path: Path) -> None:
    """Write a model; refuse names that coincide as strings."""
    raw = text_of(model).encode("utf-8", "surrogatepass")
    write_bytes(path, gzip.compress(raw, mtime=0) if path.name.lower().endswith(".gz") else raw)


class _Problems:
    """Collects what is wrong, so that much of it can be said at once."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self.count = 0

    def __enter__(self) -> "_Problems":
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        if isinstance(error, PrudentError):
            self.add(str(error))
            return True
        return False

    def add(self, problem: str) -> None:
        """Keep one of the first problems, and count the others."""
        self.count += 1
        if self.count <= LISTED:
            self.found.append(problem if len(problem) <= LONGEST else f"{problem[:LONGEST]}...")

    def listed(self) -> Iterator[str]:
        """Yield what was kept, and how much was not."""
        yield from self.found
        if self.count > LISTED:
            yield f"{self.count - LISTED:,} problems more, which are not listed; mend these first"


class _States:
    """The numbers of the states by name, and advice on names that are none of them."""

    def __init__(self, names: list[str]) -> None:
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

    def _hint(self, state: str) -> str:
        if not self.hints or len(state) > LETTERS:
            return ""
        self.hints -= 1
        near = get_close_matches(state, self.index, n=1)
        return f"did you mean {near[0]!r}? If not, " if near else ""


def _model(content: Any, name: str) -> SSP:
    _fields(content, "the document", "format", "version", "initial", "goals", "transitions", optional=("states",))
    if content["format"] != FORMAT:
        raise PrudentError(f"format is {shown(content['format'])}; it must be {shown(FORMAT)}")
    if checked(content["version"], int, "version") != VERSION:
        raise PrudentError(f"version is {shown(content['version'])}; this release reads version {VERSION}")
    problems = _Problems()
    by_state: dict[str, list[tuple[str, Any, int]]] = {}
    for i, row in enumerate(checked(content["transitions"], list, "transitions")):
        at = f"transitions[{i}]"
        with problems:
            _fields(row, at, "state", "action", "outcomes")
            state = checked(row["state"], str, f"{at}.state")
            action = checked(row["action"], str, f"{at}.action")
            outcomes = checked(row["outcomes"], list, f"{at}.outcomes")
            by_state.setdefault(state, []).append((action, outcomes, i))
    goals = checked(content["goals"], list, "goals")
    for i, goal in enumerate(goals):
        with problems:
            if checked(goal, str, f"goals[{i}]") in by_state:
                raise PrudentError(
                    f"goals[{i}]: goal {goal!r} has transitions; a goal absorbs: remove one or the other"
                )
    names = [*by_state, *dict.fromkeys(goal for goal in goals if isinstance(goal, str) and goal not in by_state)]
    if "states" in content:
        with problems:
            names = _ordered(content["states"], names)
    states = _States(names)
    probability, successor, cost, n_outcomes, actions = [], [], [], [], []
    for state in names:
        for action, outcomes, i in by_state.get(state, []):
            who = f"state {state[:LONGEST]!r}, action {action[:LONGEST]!r}"
            read: list[tuple[float, int, float]] = []
            before = problems.count
            for j, outcome in enumerate(outcomes):
                with problems:
                    read.append(_outcome(outcome, f"transitions[{i}].outcomes[{j}]", who, states))
            if problems.count > before:
                read = [(1.0, 0, 0.0)]  # stands in for the row, whose problems are known
            actions.append(action)
            n_outcomes.append(len(read))
            for p, to, price in read:
                probability.append(p)
                successor.append(to)
                cost.append(price)
    initial = {0: 1.0}
    with problems:
        initial = _initial(content["initial"], states)
    try:
        model = SSP(
            action_start=np.concatenate([[0], np.cumsum([len(by_state.get(s, [])) for s in names], dtype=np.int64)]),
            outcome_start=np.concatenate([[0], np.cumsum(n_outcomes, dtype=np.int64)]),
            probability=np.array(probability, dtype=float),
            successor=np.array(successor, dtype=np.int64),
            cost=np.array(cost, dtype=float),
            initial_state=np.array(list(initial), dtype=np.int64),
            initial_probability=np.array(list(initial.values())),
            state_names=names,
            action_names=actions,
            name=name,
        )
    except ModelError as error:
        for problem in error.problems:
            problems.add(problem)
    if problems.count:
        raise ModelError(list(problems.listed()))
    return model


def _ordered(states: Any, names: list[str]) -> list[str]:
    ordered = [checked(state, str, f"states[{i}]") for i, state in enumerate(checked(states, list, "states"))]
    if len(ordered) != len(names) or set(ordered) != set(names):
        raise PrudentError("states must list each state with transitions and each goal exactly once, or be left out")
    return ordered


def _outcome(outcome: Any, at: str, who: str, states: _States) -> tuple[float, int, float]:
    _fields(outcome, at, "p", "to", "cost")
    p = checked(outcome["p"], float, f"{at}.p")
    if not 0 <= p <= 1 + SUM_TOLERANCE:
        raise PrudentError(f"{at}: {who} has an outcome of probability {p}; probabilities lie between 0 and 1")
    price = checked(outcome["cost"], float, f"{at}.cost")
    if not math.isfinite(price):
        raise PrudentError(f"{at}: {who} has an outcome of cost {price}; costs are finite numbers")
    return p, states.number(outcome["to"], f"{at}.to"), price


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


def _fields(value: Any, at: str, *names: str, optional: tuple[str, ...] = ()) -> None:
    checked(value, dict, at)
    for name in names:
        if name not in value:
            raise PrudentError(f"{at} has no {name!r}; it needs {', '.join(names)}")
    for name in value:
        if name not in names and name not in optional:
            raise PrudentError(f"{at} has an unknown field {name!r}; it takes {', '.join(names + optional)}")
