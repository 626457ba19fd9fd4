"""Models as JSON, plain or gzipped: ``read`` and ``write``.

    {"format": "prudent-ssp", "version": 1, "initial": "s0", "goals": ["g"],
     "transitions": [{"state": "s0", "action": "a", "outcomes": [{"p": 1, "to": "g", "cost": 2.5}]}]}

``initial`` may be an object of probabilities.  Names are strings.  Numbers keep all their digits both ways.
"""

import gzip
import json
import zlib
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
        if path.name.endswith(".gz"):
            raw = gzip.decompress(raw)
        document = json.loads(raw.decode("utf-8"), object_pairs_hook=_object, parse_constant=_constant)
    except FileNotFoundError:
        raise PrudentError(f"{path}: no such file") from None
    except (OSError, EOFError, zlib.error) as error:
        raise PrudentError(f"{path}: cannot be read: {error}") from None
    except UnicodeDecodeError as error:
        raise PrudentError(f"{path}: is not UTF-8 text: {error}") from None
    except json.JSONDecodeError as error:
        raise PrudentError(f"{path}: line {error.lineno}, column {error.colno}: {error.msg}") from None
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
    document = {
        "format": FORMAT,
        "version": VERSION,
        "initial": next(iter(initial)) if len(initial) == 1 else initial,
        "goals": [state[s] for s in np.flatnonzero(model.is_goal)],
        "transitions": transitions,
    }
    raw = json.dumps(document, ensure_ascii=False, indent=1).encode("utf-8")
    write_bytes(path, gzip.compress(raw, mtime=0) if path.name.endswith(".gz") else raw)


def _model(document: Any, name: str) -> SSP:
    _fields(document, "the document", "format", "version", "initial", "goals", "transitions")
    if document["format"] != FORMAT:
        raise PrudentError(f"format is {document['format']!r}; it must be {FORMAT!r}")
    if document["version"] != VERSION:
        raise PrudentError(f"version is {document['version']!r}; this release reads version {VERSION}")
    goals = _checked(document["goals"], list, "goals")
    by_state: dict[str, list[tuple[str, list[Any], str]]] = {}
    for i, row in enumerate(_checked(document["transitions"], list, "transitions")):
        at = f"transitions[{i}]"
        _fields(row, at, "state", "action", "outcomes")
        state = _checked(row["state"], str, f"{at}.state")
        action = _checked(row["action"], str, f"{at}.action")
        outcomes = _checked(row["outcomes"], list, f"{at}.outcomes")
        by_state.setdefault(state, []).append((action, outcomes, f"{at}.outcomes"))
    for i, goal in enumerate(goals):
        if _checked(goal, str, f"goals[{i}]") in by_state:
            raise PrudentError(f"goals[{i}]: goal {goal!r} has transitions; a goal absorbs: remove one or the other")
    states = [*by_state, *dict.fromkeys(goals)]
    index = {state: i for i, state in enumerate(states)}

    def number(state: Any, at: str) -> int:
        found = index.get(_checked(state, str, at))
        if found is None:
            raise PrudentError(f"{at}: state {state!r} has no transitions and is not a goal; add one or the other")
        return found

    probability, successor, cost, n_outcomes = [], [], [], []
    for rows in by_state.values():
        for _, outcomes, at in rows:
            n_outcomes.append(len(outcomes))
            for j, outcome in enumerate(outcomes):
                _fields(outcome, f"{at}[{j}]", "p", "to", "cost")
                probability.append(_checked(outcome["p"], float, f"{at}[{j}].p"))
                cost.append(_checked(outcome["cost"], float, f"{at}[{j}].cost"))
                successor.append(number(outcome["to"], f"{at}[{j}].to"))
    initial = document["initial"]
    if isinstance(initial, str):
        initial = {initial: 1.0}
    _checked(initial, dict, "initial", "a state or an object of probabilities")
    n_actions = [len(rows) for rows in by_state.values()] + [0] * (len(states) - len(by_state))
    return SSP(
        action_start=np.concatenate([[0], np.cumsum(n_actions, dtype=np.int64)]),
        outcome_start=np.concatenate([[0], np.cumsum(n_outcomes, dtype=np.int64)]),
        probability=np.array(probability, dtype=float),
        successor=np.array(successor, dtype=np.int64),
        cost=np.array(cost, dtype=float),
        initial_state=np.array([number(s, "initial") for s in initial], dtype=np.int64),
        initial_probability=np.array([_checked(p, float, f"initial.{s}") for s, p in initial.items()]),
        state_names=states,
        action_names=[action for rows in by_state.values() for action, _, _ in rows],
        name=name,
    )


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


def _fields(value: Any, at: str, *names: str) -> None:
    _checked(value, dict, at)
    for name in names:
        if name not in value:
            raise PrudentError(f"{at} has no {name!r}; it needs {', '.join(names)}")
    for name in value:
        if name not in names:
            raise PrudentError(f"{at} has an unknown field {name!r}; it takes {', '.join(names)}")


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
