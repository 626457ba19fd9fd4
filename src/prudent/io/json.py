"""Models as JSON, plain or gzipped: ``parse`` reads a file, ``content_of`` writes one.

    {"format": "prudent-ssp", "version": 1, "initial": "s0", "goals": ["g"],
     "transitions": [{"state": "s0", "action": "a", "outcomes": [{"p": 1, "to": "g", "cost": 2.5}]}]}

An outcome may have a ``count``, how often it was seen, and bounds on its probability, ``low`` and ``high``.  Either
all outcomes of a file have counts or none has.  Without bounds, a probability is taken as exact.

``initial`` may be an object of probabilities; ``states`` may list all states, to fix the order of their numbers.
Names are strings: other names are written with ``str``, and are strings when read back.  Numbers keep all their
digits when written and read.

Files are not trusted; :mod:`prudent.io.untrusted` says what reading one takes.  Rows are read a column at a time, in a
third of the time that row by row would take, and checked by the model itself.  Only if a file is refused does a loop
over its rows find which rows are wrong, and why.  A wrong row is left out or replaced, so that the rest is checked.
"""

import gc
import json
import math
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from itertools import chain, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from prudent.errors import Defect, ModelError, PrudentError, naming, printable
from prudent.io.untrusted import checked, document, gunzipped, shown, utf8
from prudent.models.intervals import Intervals
from prudent.models.rows import MOST_LIKELY, offsets, owner, starts
from prudent.models.ssp import LARGEST, SSP, repeated

FORMAT, VERSION = "prudent-ssp", 1

LISTED, LONGEST = 100, 500
"""How many problems are listed, and how many characters of each."""

NAMES, LETTERS, HINTS = 500, 40, 5
"""Hints are slow: they are given among at most this many names, for names this short, in this many first problems."""

DOCUMENT = ("format", "version", "initial", "goals", "transitions")
TRANSITION: dict[str, type] = {"state": str, "action": str, "outcomes": list}
OUTCOME: dict[str, type] = {"p": float, "to": str, "cost": float}
"""The fields of the document, and those of its rows, each with its kind."""

MORE: dict[str, type] = dict.fromkeys(("count", "low", "high"), float)
"""The fields that an outcome may have besides."""

RANGES = {
    "p": ("probability", 0, MOST_LIKELY, "probabilities lie between 0 and 1"),
    "cost": ("cost", -LARGEST, LARGEST, "costs are finite numbers"),
    "count": ("count", 0, LARGEST, "counts are finite numbers, at least 0"),
}
"""What numbers of an outcome mean, the least and the largest one, and how messages put it."""

_quoted = json.JSONEncoder(ensure_ascii=False).encode


def parse(raw: bytes, path: Path) -> SSP:
    """Return the model in a file's bytes; refuse anything that is not exactly one model."""
    with naming(path):
        packed = path.name.lower().endswith(".gz")
        plain = gunzipped(raw, "inflate it first and give the .json file") if packed else raw
        text = utf8(plain, "surrogatepass")
        collecting = gc.isenabled()
        gc.disable()  # parsed text has no cycles, and the search for them takes longer than parsing
        try:
            return _model(checked(document(text), dict, "the document"), path.name.split(".")[0])
        finally:
            if collecting:
                gc.enable()


class _Problems(list[str]):
    """Collects problems, so that many can be reported at once: the first as they are, and "" for each of the others."""

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note what is refused inside."""
        try:
            yield
        except PrudentError as error:
            for problem in error.problems if isinstance(error, ModelError) else [str(error)]:
                short = problem if len(problem) <= LONGEST else f"{problem[:LONGEST]}..."
                self.append(short if len(self) < LISTED else "")

    def refuse(self) -> None:
        """Raise the first problems, and the number of others, if there are any."""
        more = [f"{len(self) - LISTED:,} more problems are not listed; fix these first"] if self[LISTED:] else []
        if self:
            raise ModelError([*self[:LISTED], *more])


def _model(content: Any, name: str) -> SSP:
    problems = _Problems()
    with problems.noted():
        _check_fields(content, "the document", DOCUMENT, ("states",))
    if not content.keys() >= set(DOCUMENT):
        problems.refuse()
    if content["format"] != FORMAT:
        raise PrudentError(f"format is {shown(content['format'])}; it must be {shown(FORMAT)}")
    if checked(content["version"], int, "version") != VERSION:
        raise PrudentError(f"version is {shown(content['version'])}; this release reads version {VERSION}")
    rows, goals = (checked(content[part], list, part) for part in ("transitions", "goals"))
    with suppress(PrudentError):
        table = _columns(rows, TRANSITION)
        index = _index(dict.fromkeys(table["state"]), goals, content)
        model = _assembled(table, index, _initial(content["initial"], index), name)
        problems.refuse()
        return model
    with problems.noted():
        _assembled(*_mended(content, problems), name)
    problems.refuse()
    raise Defect("a model was refused for no reason")


def _assembled(table: dict[str, list[Any]], index: dict[str, int], initial: dict[int, float], name: str) -> SSP:
    """Return the model of columns, given the number of each state; refuse one that is malformed."""
    number = np.fromiter(map(index.__getitem__, table["state"]), np.int64, len(table["state"]))
    if (number[1:] < number[:-1]).any():
        order = np.argsort(number, kind="stable").tolist()
        table = {name: [column[i] for i in order] for name, column in table.items()}
    return SSP(
        action_start=starts(number, len(index)),
        outcome_start=offsets(list(map(len, table["outcomes"]))),
        **_outcomes(list(chain.from_iterable(table["outcomes"])), index),
        initial_state=np.array(list(initial), dtype=np.int64),
        initial_probability=np.array(list(initial.values())),
        state_names=list(index),
        action_names=table["action"],
        name=name,
    )


def _index(acting: dict[str, None], goals: list[Any], content: Any) -> dict[str, int]:
    """Return the number of every state: those with transitions come first, unless the document lists the states."""
    if not (set(map(type, goals)) <= {str} and acting.keys().isdisjoint(goals)):
        raise PrudentError("a goal is malformed")
    names = ordered = [*acting, *dict.fromkeys(goals)]
    if "states" in content:
        listed = checked(content["states"], list, "states")
        ordered = [checked(state, str, f"states[{i}]") for i, state in enumerate(listed)]
        if len(ordered) != len(names) or set(ordered) != set(names):
            raise PrudentError(
                "states must list each state with transitions and each goal exactly once, or be left out"
            )
    return {name: i for i, name in enumerate(ordered)}


def _number(index: dict[str, int], state: Any, at: str, hint: bool = True) -> int:
    """Return the number of a state; refuse an unknown one, with a hint if asked."""
    found = index.get(checked(state, str, at))
    if found is None:
        short = hint and len(index) <= NAMES and len(state) <= LETTERS
        near = get_close_matches(state, index, n=1) if short else []
        raise PrudentError(
            f"{at}: state {state!r} has no transitions and is not a goal; "
            f"{f'did you mean {near[0]!r}? If not, ' if near else ''}add it to the goals, "
            "or give it transitions (a dead end leads to itself)"
        )
    return found


def _outcomes(rows: list[Any], index: dict[str, int]) -> dict[str, Any]:
    """Return the arrays of all outcomes, with counts and bounds if there are any."""
    fields = OUTCOME
    try:
        if not (set(map(type, rows)) <= {dict} and set(map(len, rows)) <= {len(OUTCOME)}):
            fields = OUTCOME | MORE
            none = dict.fromkeys(MORE, math.nan)
            rows = [none | {name: value for name, value in row.items() if value is not None} for row in rows]
        table = _columns(rows, fields)
        array = {name: np.array(table[name], dtype=np.float64) for name, kind in fields.items() if kind is float}
        found: dict[str, Any] = {"probability": array.pop("p"), "cost": array.pop("cost")}
        found["successor"] = np.fromiter(map(index.__getitem__, table["to"]), np.int64, len(rows))
    except (AttributeError, KeyError, OverflowError):
        raise PrudentError("an outcome is malformed") from None
    if not array:
        return found
    count, low, high = array.values()
    exact = np.isnan(low) & np.isnan(high)
    if not (exact | ((low >= 0) & (low <= high) & (high <= MOST_LIKELY))).all():
        raise PrudentError("a bound is malformed")
    if not exact.all():
        found["intervals"] = Intervals(*(np.where(exact, found["probability"], ends) for ends in (low, high)))
    if np.isnan(count).any() and not np.isnan(count).all():
        raise PrudentError("some outcomes have a count and others have none; give a count to all of them, or to none")
    return found if np.isnan(count).any() else found | {"count": count}


def _mended(content: Any, problems: _Problems) -> tuple[dict[str, list[Any]], dict[str, int], dict[int, float]]:
    """Return columns without the rows that are wrong, the states and the start; note what is wrong with the others.

    All outcomes of a transition that has wrong ones are replaced.
    """
    right: dict[int, dict[str, Any]] = {}  # by their place in the file
    for i, row in enumerate(content["transitions"]):
        with problems.noted():
            _check_fields(row, f"transitions[{i}]", tuple(TRANSITION))
            for name, kind in TRANSITION.items():
                checked(row[name], kind, f"transitions[{i}].{name}")
            right[i] = row
    acting, goals = dict.fromkeys(row["state"] for row in right.values()), []
    for i, goal in enumerate(content["goals"]):
        with problems.noted():
            if checked(goal, str, f"goals[{i}]") in acting:
                raise PrudentError(
                    f"goals[{i}]: goal {goal!r} has transitions; runs end at goals: remove one or the other"
                )
            goals.append(goal)
    index, table = _index(acting, goals, {}), {name: [row[name] for row in right.values()] for name in TRANSITION}
    with problems.noted():
        index = _index(acting, goals, content)
    for a, (i, row) in enumerate(right.items()):
        who = f"state {row['state'][:LONGEST]!r}, action {row['action'][:LONGEST]!r}"
        before = len(problems)
        for j, outcome in enumerate(row["outcomes"]):
            with problems.noted():
                _check_outcome(outcome, f"transitions[{i}].outcomes[{j}]", who, index, len(problems) < HINTS)
        if len(problems) > before:
            table["outcomes"][a] = [{"p": 1.0, "to": next(iter(index)), "cost": 0.0}]
    if problems:  # then counts may be missing, which is no problem of the file's
        table["outcomes"] = [[{name: each[name] for name in OUTCOME} for each in rows] for rows in table["outcomes"]]
    initial = {0: 1.0}
    with problems.noted():
        initial = _initial(content["initial"], index)
    return table, index, initial


def _check_outcome(outcome: Any, at: str, who: str, index: dict[str, int], hint: bool) -> None:
    _check_fields(outcome, at, tuple(OUTCOME), optional=tuple(MORE))
    for name, (what, least, most, rule) in RANGES.items():
        value = checked(outcome.get(name, 0), float, f"{at}.{name}")
        if not least <= value <= most:
            raise PrudentError(f"{at}: {who} has an outcome of {what} {value}; {rule}")
    _number(index, outcome["to"], f"{at}.to", hint)
    if ("low" in outcome) != ("high" in outcome):
        raise PrudentError(f"{at}: {who} has an outcome with only one of low and high; give both, or neither")
    low, high = (checked(outcome.get(name, 0), float, f"{at}.{name}") for name in ("low", "high"))
    if not 0 <= low <= high <= MOST_LIKELY:
        raise PrudentError(f"{at}: {who} has an outcome of low {low}, high {high}; 0 <= low <= high <= 1 must hold")


def _initial(initial: Any, index: dict[str, int]) -> dict[int, float]:
    if isinstance(initial, str):
        return {_number(index, initial, "initial"): 1.0}
    checked(initial, dict, "initial", "a state or an object of probabilities")
    if not initial:
        raise PrudentError("initial names no state; it must be a state or an object of probabilities")
    return {
        _number(index, state, "initial"): checked(p, float, f"initial.{printable(state, 60)}")
        for state, p in initial.items()
    }


def _columns(rows: list[Any], fields: dict[str, type]) -> dict[str, list[Any]]:
    """Return rows as columns by name; refuse rows that are no objects with exactly these fields and types."""
    try:
        alike = set(map(len, rows)) <= {len(fields)}
        table = {name: list(map(itemgetter(name), rows)) for name in fields}
    except (KeyError, TypeError):  # TypeError: what is no object has no fields
        raise PrudentError("a row is malformed") from None
    for name, kind in fields.items():
        alike &= set(map(type, table[name])) <= ({float, int} if kind is float else {kind})
    if not alike:
        raise PrudentError("a row is malformed")
    return table


def _check_fields(value: Any, at: str, names: tuple[str, ...], optional: tuple[str, ...] = ()) -> None:
    """Refuse what is no object, or lacks a field, or has an unknown one."""
    checked(value, dict, at)
    every = (*names, *optional)
    problems = [f"{at} has no {name!r}; it needs {', '.join(names)}" for name in names if name not in value]
    problems += [
        f"{at} has an unknown field {name!r}; it takes {', '.join(every)}" for name in value if name not in every
    ]
    if problems:
        raise ModelError(problems)


def content_of(model: SSP) -> bytes:
    """Return the bytes of a file, indented as ``json.dumps`` does; refuse names that coincide as strings."""
    state, action = written_names(model)
    quoted, goals = list(map(_quoted, state)), np.flatnonzero(model.is_goal)
    initial = {state[s]: p for s, p in zip(model.initial_state, model.initial_probability.tolist(), strict=True)}
    head = {
        "format": FORMAT,
        "version": VERSION,
        "initial": initial if len(initial) > 1 else next(iter(initial)),
        "goals": [state[s] for s in goals],
    }
    text = json.dumps(head, indent=1, ensure_ascii=False).removesuffix("\n}")
    text += f',\n "transitions": {_listed(_transitions(model, quoted, action), 2)}'
    if (goals < model.n_states - len(goals)).any():
        text += f',\n "states": {_listed(quoted, 2)}'  # the order, unless goals come last
    return f"{text}\n}}".encode("utf-8", "surrogatepass")


def _transitions(model: SSP, quoted: list[str], action: list[str]) -> list[str]:
    more, sets = [""] * model.n_outcomes, model.intervals
    bounds = (None, None) if sets is None else (sets.low, sets.high)
    for name, values in zip(MORE, (model.count, *bounds), strict=True):
        if values is not None:
            more = [f'{text},\n     "{name}": {value!r}' for text, value in zip(more, values.tolist(), strict=True)]
    columns = model.probability.tolist(), model.successor.tolist(), model.cost.tolist(), more
    outcomes = [
        f'{{\n     "p": {p!r},\n     "to": {quoted[t]},\n     "cost": {c!r}{extra}\n    }}'
        for p, t, c, extra in zip(*columns, strict=True)
    ]
    states, rows, found = owner(model.action_start).tolist(), pairwise(model.outcome_start.tolist()), []
    for s, name, (first, last) in zip(states, action, rows, strict=True):
        names = f'"state": {quoted[s]},\n   "action": {_quoted(name)}'
        found.append(f'{{\n   {names},\n   "outcomes": {_listed(outcomes[first:last], 4)}\n  }}')
    return found


def _listed(items: list[str], indent: int) -> str:
    line = "\n" + " " * indent
    return f"[{line}{f',{line}'.join(items)}{line[:-1]}]" if items else "[]"


def written_names(model: SSP) -> tuple[list[str], list[str]]:
    """Return the names of the states and of the actions as strings; refuse names that are equal as strings."""
    state, action = (list(map(str, names)) for names in model.names)
    own = (action[first:last] for first, last in pairwise(model.action_start.tolist()))
    for s, names in enumerate(chain([state], own), start=-1):
        for name in repeated(names)[:1]:
            what = "states" if s < 0 else f"actions of state {state[s]!r}"
            raise PrudentError(f"two {what} are both written {name!r}; names in a file are strings and must differ")
    return state, action
