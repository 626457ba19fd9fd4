"""Models as JSON, plain or gzipped: ``read`` and ``write``.

    {"format": "prudent-ssp", "version": 1, "initial": "s0", "goals": ["g"],
     "transitions": [{"state": "s0", "action": "a", "outcomes": [{"p": 1, "to": "g", "cost": 2.5}]}]}

``initial`` may be an object of probabilities; ``states`` may list all states, to say in which order they are
numbered.  Names are strings: others are written with ``str``, and stay strings when read.  Numbers keep all
their digits both ways.
"""

import gzip
import json
import zlib
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from prudent.errors import ModelError, PrudentError
from prudent.files.atomic import write_bytes
from prudent.model import SSP

__all__ = ["read", "write"]

FORMAT, VERSION = "prudent-ssp", 1
KINDS = {dict: "an object", list: "a list", str: "a string", float: "a number", int: "a whole number"}


def read(path: Path) -> SSP:
    """Read a model; refuse anything that is not exactly one."""
    try:
        raw = path.read_bytes()
        if path.name.lower().endswith(".gz"):
            raw = gzip.decompress(raw)
        document = json.loads(raw.decode("utf-8", "surrogatepass"), object_pairs_hook=_object, parse_constant=_constant)
    except FileNotFoundError:
        raise PrudentError(f"{path}: no such file") from None
    except (OSError, EOFError, zlib.error) as error:
        raise PrudentError(f"{path}: cannot be read: {error}") from None
    except UnicodeDecodeError as error:
        raise PrudentError(f"{path}: is not UTF-8 text: {error}") from None
    except json.JSONDecodeError as error:
        raise PrudentError(f"{path}: not valid JSON: line {error.lineno}, column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise PrudentError(f"{path}: is nested too deeply for a model") from None
    except ValueError as error:
        raise PrudentError(f"{path}: {error}") from None
    try:
        return _model(document, path.name.split(".")[0])
    except ModelError as error:
        raise ModelError([f"{path}: {problem}" for problem in error.problems]) from None
    except PrudentError as error:
        raise PrudentError(f"{path}: {error}") from None


def write(model: SSP, path: Path) -> None:
    """Write a model; refuse names that coincide as strings."""
    state = [str(model.state(s)) for s in range(model.n_states)]
    _refuse_twins(state, "states")
    transitions = []
    for s in range(model.n_states):
        actions = range(int(model.action_start[s]), int(model.action_start[s + 1]))
        names = [str(model.action(a)) for a in actions]
        _refuse_twins(names, f"actions of state {state[s]!r}")
        for a, name in zip(actions, names, strict=True):
            rows = slice(int(model.outcome_start[a]), int(model.outcome_start[a + 1]))
            numbers = (
                model.probability[rows].tolist(),
                model.successor[rows].tolist(),
                model.cost[rows].tolist(),
            )
            outcomes = [{"p": p, "to": state[t], "cost": c} for p, t, c in zip(*numbers, strict=True)]
            transitions.append({"state": state[s], "action": name, "outcomes": outcomes})
    initial: Any = {state[s]: p for s, p in zip(model.initial_state, model.initial_probability.tolist(), strict=True)}
    acting = [s for s in range(model.n_states) if not model.is_goal[s]]
    goals = np.flatnonzero(model.is_goal).tolist()
    document: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "initial": next(iter(initial)) if len(initial) == 1 else initial,
        "goals": [state[s] for s in goals],
        "transitions": transitions,
    }
    if acting + goals != list(range(model.n_states)):
        document["states"] = state  # the order, where it is not the one above
    raw = json.dumps(document, ensure_ascii=False, indent=1).encode("utf-8", "surrogatepass")
    write_bytes(path, gzip.compress(raw, mtime=0) if path.name.lower().endswith(".gz") else raw)


class _Problems:
    """Collects what is wrong, so that all of it can be said at once."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def __enter__(self) -> "_Problems":
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        if isinstance(error, PrudentError):
            self.found.append(str(error))
            return True
        return False


def _model(document: Any, name: str) -> SSP:
    _fields(document, "the document", "format", "version", "initial", "goals", "transitions", optional=("states",))
    if document["format"] != FORMAT:
        raise PrudentError(f"format is {document['format']!r}; it must be {FORMAT!r}")
    if document["version"] != VERSION:
        raise PrudentError(f"version is {document['version']!r}; this release reads version {VERSION}")
    problems = _Problems()
    by_state: dict[str, list[tuple[str, Any, str]]] = {}
    for i, row in enumerate(_checked(document["transitions"], list, "transitions")):
        at = f"transitions[{i}]"
        with problems:
            _fields(row, at, "state", "action", "outcomes")
            state = _checked(row["state"], str, f"{at}.state")
            action = _checked(row["action"], str, f"{at}.action")
            outcomes = _checked(row["outcomes"], list, f"{at}.outcomes")
            by_state.setdefault(state, []).append((action, outcomes, f"{at}.outcomes"))
    goals = _checked(document["goals"], list, "goals")
    for i, goal in enumerate(goals):
        with problems:
            if _checked(goal, str, f"goals[{i}]") in by_state:
                raise PrudentError(
                    f"goals[{i}]: goal {goal!r} has transitions; a goal absorbs: remove one or the other"
                )
    names = [*by_state, *dict.fromkeys(goal for goal in goals if isinstance(goal, str) and goal not in by_state)]
    if "states" in document:
        with problems:
            names = _ordered(document["states"], names)
    index = {state: i for i, state in enumerate(names)}
    probability, successor, cost, n_outcomes, actions = [], [], [], [], []
    for rows in (by_state.get(state, []) for state in names):
        for action, outcomes, at in rows:
            read: list[tuple[float, int, float]] = []
            before = len(problems.found)
            for j, outcome in enumerate(outcomes):
                with problems:
                    read.append(_outcome(outcome, f"{at}[{j}]", index))
            if len(problems.found) > before:
                read = [(1.0, 0, 0.0)]  # stands in for the row, whose problems are known
            actions.append(action)
            n_outcomes.append(len(read))
            for p, to, price in read:
                probability.append(p)
                successor.append(to)
                cost.append(price)
    initial: dict[str, float] = {}
    with problems:
        initial = _initial(document["initial"], index)
    try:
        model = SSP(
            action_start=np.concatenate([[0], np.cumsum([len(by_state.get(s, [])) for s in names], dtype=np.int64)]),
            outcome_start=np.concatenate([[0], np.cumsum(n_outcomes, dtype=np.int64)]),
            probability=np.array(probability, dtype=float),
            successor=np.array(successor, dtype=np.int64),
            cost=np.array(cost, dtype=float),
            initial_state=np.array([index[s] for s in initial] or [0], dtype=np.int64),
            initial_probability=np.array(list(initial.values()) or [1.0]),
            state_names=names,
            action_names=actions,
            name=name,
        )
    except ModelError as error:
        problems.found += error.problems
    if problems.found:
        raise ModelError(problems.found)
    return model


def _ordered(states: Any, names: list[str]) -> list[str]:
    ordered = [_checked(state, str, f"states[{i}]") for i, state in enumerate(_checked(states, list, "states"))]
    if len(ordered) != len(names) or set(ordered) != set(names):
        raise PrudentError("states must list each state with transitions and each goal exactly once, or be left out")
    return ordered


def _outcome(outcome: Any, at: str, index: dict[str, int]) -> tuple[float, int, float]:
    _fields(outcome, at, "p", "to", "cost")
    p = _checked(outcome["p"], float, f"{at}.p")
    price = _checked(outcome["cost"], float, f"{at}.cost")
    return p, _number(outcome["to"], f"{at}.to", index), price


def _number(state: Any, at: str, index: dict[str, int]) -> int:
    found = index.get(_checked(state, str, at))
    if found is None:
        near = get_close_matches(state, index, n=1)
        hint = f"did you mean {near[0]!r}? If not, " if near else ""
        raise PrudentError(
            f"{at}: state {state!r} has no transitions and is not a goal; {hint}add it to the goals, or give it "
            "transitions (a dead end leads to itself)"
        )
    return found


def _initial(initial: Any, index: dict[str, int]) -> dict[str, float]:
    if isinstance(initial, str):
        initial = {initial: 1.0}
    _checked(initial, dict, "initial", "a state or an object of probabilities")
    for state in initial:
        _number(state, "initial", index)
    return {state: _checked(p, float, f"initial.{state}") for state, p in initial.items()}


def _checked(value: Any, kind: type, at: str, wanted: str | None = None) -> Any:
    good = isinstance(value, kind) or (kind is float and isinstance(value, int))
    if not good or isinstance(value, bool):
        shown = json.dumps(value) if not isinstance(value, dict | list) else KINDS[type(value)]
        raise PrudentError(f"{at} is {shown[:60]}; it must be {wanted or KINDS[kind]}")
    if kind is float:
        try:
            return float(value)
        except OverflowError:
            raise PrudentError(f"{at} is too large for a number") from None
    return value


def _fields(value: Any, at: str, *names: str, optional: tuple[str, ...] = ()) -> None:
    _checked(value, dict, at)
    for name in names:
        if name not in value:
            raise PrudentError(f"{at} has no {name!r}; it needs {', '.join(names)}")
    for name in value:
        if name not in names and name not in optional:
            raise PrudentError(f"{at} has an unknown field {name!r}; it takes {', '.join(names + optional)}")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twin = next(name for name in names if names.count(name) > 1)
        raise PrudentError(f"an object has the field {twin!r} twice")
    return found


def _constant(text: str) -> NoReturn:
    raise PrudentError(f"{text} is not a number that a model can have")


def _refuse_twins(names: list[str], what: str) -> None:
    if len(set(names)) < len(names):
        twin = next(name for name in names if names.count(name) > 1)
        raise PrudentError(f"two {what} are both written {twin!r}; names in a file are strings and must differ")
