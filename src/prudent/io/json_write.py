"""Models as JSON, plain or gzipped; :mod:`prudent.io.json_read` describes the format."""

import json
from itertools import pairwise

from prudent.errors import PrudentError
from prudent.models.rows import FloatArray, owner
from prudent.models.ssp import SSP, repeated

FORMAT, VERSION = "prudent-ssp", 1
_quoted = json.JSONEncoder(ensure_ascii=False).encode


def content_of(model: SSP) -> bytes:
    """Return the bytes of a file; refuse names that coincide as strings."""
    return text_of(model).encode("utf-8", "surrogatepass")


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


def extras_of(model: SSP) -> dict[str, FloatArray]:
    """Return what else a file holds for each outcome: counts, and bounds on probabilities, if the model has them."""
    found = {} if model.count is None else {"count": model.count}
    return found if model.intervals is None else found | {"low": model.intervals.low, "high": model.intervals.high}


def _transitions(model: SSP, quoted: list[str], action: list[str]) -> list[str]:
    more = [""] * model.n_outcomes
    for name, values in extras_of(model).items():
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


def _listed(items: list[str], indent: int, marks: str = "[]") -> str:
    if not items:
        return marks
    line = "\n" + " " * indent
    return f"{marks[0]}{line}{f',{line}'.join(items)}\n{' ' * (indent - 1)}{marks[1]}"


def written_names(model: SSP) -> tuple[list[str], list[str]]:
    """Return the names of the states and of the actions as strings; refuse names that are equal as strings."""
    state, action = (list(map(str, names)) for names in model.names)
    _refuse_twins(state, "states")
    for s, (first, last) in enumerate(pairwise(model.action_start.tolist())):
        _refuse_twins(action[first:last], f"actions of state {state[s]!r}")
    return state, action


def _refuse_twins(names: list[str], what: str) -> None:
    for name in repeated(names)[:1]:
        raise PrudentError(f"two {what} are both written {name!r}; names in a file are strings and must differ")
