"""The plain case of a JSON model, at speed: a text that is a model without any fault, and the text of a model.

What is not plain is None here, and is read again by :mod:`prudent.io.json.model`, which says what is wrong with it.
"""

import gc
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from operator import itemgetter
from typing import Any

import numpy as np

from prudent.io.names import written_names
from prudent.models.ssp import SSP, SUM_TOLERANCE

__all__ = ["FORMAT", "VERSION", "plain_model", "text_of"]

FORMAT, VERSION = "prudent-ssp", 1
FIELDS = {"format", "version", "initial", "goals", "transitions"}
NUMBERS = {int, float}
_quoted = json.JSONEncoder(ensure_ascii=False).encode


class _NotPlain(Exception):
    """Something is unusual, right or wrong."""


def plain_model(text: str, name: str) -> SSP | None:
    """Return the model that a text plainly is; None where it takes a closer look."""
    try:
        with _uncollected():
            return _model(text, name)
    except (_NotPlain, KeyError, TypeError, ValueError, OverflowError, RecursionError):
        return None


def _model(text: str, name: str) -> SSP:
    document = json.loads(text, parse_constant=_constant)
    _need(type(document) is dict and document.keys() - {"states"} == FIELDS)
    _need(document["format"] == FORMAT and type(document["version"]) is int and document["version"] == VERSION)
    transitions, goals, initial = document["transitions"], document["goals"], document["initial"]
    _need(type(transitions) is list and type(goals) is list and set(map(len, transitions)) == {3})
    state = _column(transitions, "state", {str})
    _need(set(map(type, goals)) <= {str})
    acting = dict.fromkeys(state)
    names = [*acting, *dict.fromkeys(goals)]
    _need(acting.keys().isdisjoint(goals))
    if "states" in document:
        _need(len(document["states"]) == len(names) and set(document["states"]) == set(names))
        names = list(document["states"])
    index = {name: i for i, name in enumerate(names)}
    number = np.fromiter(map(index.__getitem__, state), np.int64, len(state))
    if (number[1:] < number[:-1]).any():
        transitions = [transitions[i] for i in np.argsort(number, kind="stable").tolist()]
    rows = _column(transitions, "outcomes", {list})
    outcomes = list(chain.from_iterable(rows))
    _need(set(map(len, outcomes)) == {3})
    probability = np.array(_column(outcomes, "p", NUMBERS), dtype=np.float64)
    cost = np.array(_column(outcomes, "cost", NUMBERS), dtype=np.float64)
    _need(bool(((probability >= 0) & (probability <= 1 + SUM_TOLERANCE) & np.isfinite(cost)).all()))
    start = {initial: 1.0} if type(initial) is str else initial
    _need(type(start) is dict and set(map(type, start.values())) <= NUMBERS)
    n_fields = len(document) + 3 * (len(transitions) + len(outcomes)) + (len(start) if start is initial else 0)
    _need(_no_field_twice(text, n_fields))
    return SSP(
        action_start=_starts(np.bincount(number, minlength=len(names))),
        outcome_start=_starts(np.fromiter(map(len, rows), np.int64, len(rows))),
        probability=probability,
        successor=np.fromiter(map(index.__getitem__, map(itemgetter("to"), outcomes)), np.int64, len(outcomes)),
        cost=cost,
        initial_state=np.array([index[s] for s in start], dtype=np.int64),
        initial_probability=np.array(list(start.values()), dtype=np.float64),
        state_names=names,
        action_names=_column(transitions, "action", {str}),
        name=name,
    )


@contextmanager
def _uncollected() -> Iterator[None]:
    """Pause the search for garbage in cycles: parsed text has none, and the search takes longer than parsing."""
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()


def _need(plain: bool) -> None:
    if not plain:
        raise _NotPlain


def _column(rows: list[dict[str, Any]], name: str, kinds: set[type]) -> list[Any]:
    found = list(map(itemgetter(name), rows))
    _need(set(map(type, found)) <= kinds)
    return found


def _no_field_twice(text: str, n_fields: int) -> bool:
    """Return whether as many fields were written as there are: of two with one name in an object, one is left.

    Each comes with a colon of its own, after a quotation mark.  Names may hold more of them, which proves nothing.
    """
    return text.count(":") == n_fields or sum(1 for _ in re.finditer(r'"\s*:', text)) == n_fields


def _starts(count: Any) -> Any:
    return np.concatenate([[0], np.cumsum(count, dtype=np.int64)])


def _constant(text: str) -> None:
    raise _NotPlain


def text_of(model: SSP) -> str:
    """Return a model as text, indented as ``json.dumps`` does; refuse names that coincide as strings."""
    state, action = written_names(model)
    quoted, is_goal = list(map(_quoted, state)), model.is_goal.tolist()
    goals = [s for s, goal in enumerate(is_goal) if goal]
    initial = dict(zip(model.initial_state.tolist(), model.initial_probability.tolist(), strict=True))
    start = _listed([f"{quoted[s]}: {p!r}" for s, p in initial.items()], 2, "{}")
    parts = [
        f'{{\n "format": {_quoted(FORMAT)},\n "version": {VERSION},\n',
        f' "initial": {quoted[next(iter(initial))] if len(initial) == 1 else start},\n',
        f' "goals": {_listed([quoted[s] for s in goals], 2)},\n',
        ' "transitions": ',
        _listed(_transitions(model, quoted, action), 2),
    ]
    if [s for s, goal in enumerate(is_goal) if not goal] + goals != list(range(model.n_states)):
        parts.append(f',\n "states": {_listed(quoted, 2)}')  # the order, where it is not the one above
    return "".join([*parts, "\n}"])


def _transitions(model: SSP, quoted: list[str], action: list[str]) -> list[str]:
    outcomes = [
        f'{{\n     "p": {p!r},\n     "to": {quoted[t]},\n     "cost": {c!r}\n    }}'
        for p, t, c in zip(model.probability.tolist(), model.successor.tolist(), model.cost.tolist(), strict=True)
    ]
    action_start, outcome_start = model.action_start.tolist(), model.outcome_start.tolist()
    found = []
    for s in range(model.n_states):
        first, last = action_start[s], action_start[s + 1]
        for a in range(first, last):
            rows = _listed(outcomes[outcome_start[a] : outcome_start[a + 1]], 4)
            names = f'"state": {quoted[s]},\n   "action": {_quoted(action[a])}'
            found.append(f'{{\n   {names},\n   "outcomes": {rows}\n  }}')
    return found


def _listed(items: list[str], indent: int, marks: str = "[]") -> str:
    if not items:
        return marks
    line = "\n" + " " * indent
    return f"{marks[0]}{line}{f',{line}'.join(items)}\n{' ' * (indent - 1)}{marks[1]}"
