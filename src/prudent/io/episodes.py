"""Logged runs: from a table of steps to an estimated model.

A row is one step: in this episode, in this state, this action led to that state at this cost.  The steps of an episode
stand in order, each beginning where the last one led.  The table is a CSV file, a data frame, columns by name or a list
of rows.  Nothing is guessed: an empty cell or an invalid number raises an error that names the row, a gap in an episode
raises an error, and so does an episode that does not end in a goal.
"""

import csv
import io
import math
from collections.abc import Hashable, Iterable, Mapping
from decimal import Decimal
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from prudent.errors import PrudentError, as_number, naming, numeral, whole_number
from prudent.models.build import goal_set
from prudent.models.estimate import Estimate
from prudent.models.rows import offsets, starts
from prudent.models.ssp import SSP
from prudent.runtime.atomic_files import read_bytes

NAMED = 3
"""The most actions that a note names."""

UNSEEN = 0.5
"""What is added to the count of each outcome that is known to be possible, so that none has probability 0."""

Counts = dict[tuple[Hashable, Hashable], dict[tuple[Hashable, float], float]]
"""How often (state, action) led to (next state, cost)."""

LIKE = 0.5
"""How much alike a column's name must be to be offered: next is, for next_state."""


def from_episodes(
    table: Any,
    *,
    episode: str = "episode",
    state: str = "state",
    action: str = "action",
    next_state: str = "next_state",
    cost: str = "cost",
    count: str | None = None,
    initial: Hashable | None = None,
    goals: Iterable[Hashable] | None = None,
    possible: SSP | None = None,
    seldom: int = 10,
    name: str | None = None,
) -> Estimate:
    """Estimate a model from logged runs.

    Parameters
    ----------
    table : path, data frame, mapping of columns or list of rows
        The log, a row for each step: a CSV file, or columns by name.  The steps of an episode stand in order.
    episode, state, action, next_state, cost : str
        The names of its columns; others are left alone.
    count : str, optional
        The column with the number of times that each row was seen.  Rows are then not the steps of runs, and there is
        no column of episodes.
    initial : state, optional
        The state where runs start; by default the first states of the episodes, with their frequencies.
    goals : iterable of states, optional
        The states where runs end; by default those in which no action was ever taken.
    possible : SSP, optional
        A model of all outcomes known to be possible, seen or not; every step of the log must be one of them.  Half an
        observation is added to each of these outcomes, so that none has probability 0.
    seldom : int
        Actions seen fewer times than this are named in a note and in ``seldom_seen``.
    name : str, optional
        The name of the model; by default the name of the file.

    Examples
    --------
    >>> import prudent
    >>> log = [
    ...     {"episode": 1, "state": "shop", "action": "order", "next_state": "done", "cost": 3},
    ...     {"episode": 2, "state": "shop", "action": "order", "next_state": "done", "cost": 8},
    ... ]
    >>> data = prudent.from_episodes(log)
    >>> data.model, data.counts.tolist(), data.seldom_seen
    (<SSP log: 2 states, 1 actions, 2 outcomes>, [1.0, 1.0], (('shop', 'order', 2.0),))
    """
    seldom = whole_number("seldom", seldom, 0)
    wanted = {"state": state, "action": action, "next_state": next_state, "cost": cost}
    wanted |= {"episode": episode} if count is None else {"count": count}
    source = table if isinstance(table, str | PathLike) else None
    if not isinstance(possible, SSP | None):
        raise PrudentError(f"possible is a {type(possible).__name__}; it must be a model, from prudent.build or load")
    if source is not None:
        table = read_bytes(Path(source))
    with naming(source if source is not None else "the log"):
        columns = columns_of(table, wanted)
        columns["cost"] = numbers(columns["cost"], cost, -math.inf)
        if count is None:
            began, ends, episodes = _runs(columns)
            often = [1.0] * len(columns["cost"])
        else:
            began, ends, episodes = {}, {}, 0
            often = numbers(columns["count"], count, 0.0)
        counts = _counted(columns, often, possible)
        start = _initial(initial, began)
        _check_goals(counts, ends, goals)
        model = _model(counts, start, possible, name or (Path(source).name.split(".")[0] if source else "log"))
    notes = []
    if few := Estimate(model, episodes, seldom).seldom_seen:
        some = ", ".join(f"{action!r} in {state!r} ({times:g})" for state, action, times in few[:NAMED])
        more = f" and {len(few) - NAMED:,} more" if len(few) > NAMED else ""
        notes.append(f"seen fewer than {seldom} times: {some}{more}; their probabilities are poorly known")
    if len(start) > 1:
        notes.append(
            "the probabilities of the initial states are their frequencies in the log; no interval covers their error"
        )
    return Estimate(model.noted(*notes), episodes, seldom)


def _runs(columns: dict[str, list[Any]]) -> tuple[dict[Hashable, int], dict[Hashable, Hashable], int]:
    """Return how many episodes start in each state, which episode ends in each state, and how many there are.

    Refuse an episode in which a step does not begin where the last one led.
    """
    last: dict[Hashable, tuple[int, Hashable]] = {}
    began: dict[Hashable, int] = {}
    rows = zip(columns["episode"], columns["state"], columns["next_state"], strict=True)
    for i, (episode, state, after) in enumerate(rows, 1):
        if episode not in last:
            began[state] = began.get(state, 0) + 1
        elif last[episode][1] != state:
            before, led = last[episode]
            raise PrudentError(
                f"episode {episode!r} has a gap: row {before} leads to state {led!r}, but its next step, row {i}, "
                f"begins in state {state!r}; sort its rows, add the missing steps, or leave out the episode"
            )
        last[episode] = i, after
    return began, {state: episode for episode, (_, state) in last.items()}, len(last)


def _counted(columns: dict[str, list[Any]], often: list[float], possible: SSP | None) -> Counts:
    counts: Counts = {}
    if possible is not None:
        for a in range(possible.n_actions):
            place = possible.state(possible.state_of_action(a)), possible.action(a)
            counts[place] = {
                (possible.state(int(possible.successor[o])), float(possible.cost[o])): 0.0 for o in possible.outcomes(a)
            }
    rows = zip(columns["state"], columns["action"], columns["next_state"], columns["cost"], often, strict=True)
    for i, (state, action, after, cost, times) in enumerate(rows, 1):
        if possible is not None and (after, cost) not in counts.get((state, action), {}):
            raise PrudentError(
                f"row {i}: state {state!r}, action {action!r} led to state {after!r} at cost {cost:.12g}, which is not "
                f"among the possible outcomes of {possible.name}; add it to that model, or fix the row"
            )
        outcomes_seen = counts.setdefault((state, action), {})
        outcomes_seen[after, cost] = outcomes_seen.get((after, cost), 0.0) + times
    for (state, action), outcomes_seen in counts.items():
        if possible is None and sum(outcomes_seen.values()) <= 0:
            raise PrudentError(f"state {state!r}, action {action!r} was never seen: all its counts are 0; leave it out")
    return counts


def _initial(initial: Hashable | None, began: dict[Hashable, int]) -> dict[Hashable, float]:
    if initial is not None:
        try:
            return {initial: 1.0}
        except TypeError:
            raise PrudentError(f"initial is {initial!r}; it must be a state, and hashable") from None
    if not began:
        raise PrudentError("initial is missing; counts do not show where runs start: give initial=")
    total = sum(began.values())
    return {state: times / total for state, times in began.items()}


def _check_goals(counts: Counts, ends: dict[Hashable, Hashable], goals: Iterable[Hashable] | None) -> None:
    acting = {state for state, _ in counts}
    listed = goal_set(goals)
    for state in listed or ():
        if state in acting:
            raise PrudentError(
                f"goals has state {state!r}, in which actions are taken; runs end at goals: remove it from goals"
            )
    for state, episode in ends.items():
        if state in acting or (listed is not None and state not in listed):
            why = "in which other steps begin" if state in acting else "which is not among goals"
            raise PrudentError(
                f"episode {episode!r} ends in state {state!r}, {why}: the episode is incomplete; "
                "complete it, or leave it out"
            )
    if listed is not None:
        for (state, action), outcomes in counts.items():
            for after, _ in outcomes:
                if after not in acting and after not in listed:
                    raise PrudentError(
                        f"state {state!r}, action {action!r} led to state {after!r}, in which no action was taken and "
                        "which is not among goals; add it to goals, or leave out its steps"
                    )


def _model(counts: Counts, start: dict[Hashable, float], possible: SSP | None, name: str) -> SSP:
    """Return the model in which the probability of each outcome is its frequency."""
    seen = {
        place: {to: n for to, n in outcomes.items() if n > 0 or possible is not None}
        for place, outcomes in counts.items()
    }
    acting, led_to = [state for state, _ in counts], [to for outcomes in counts.values() for to, _ in outcomes]
    index = {state: i for i, state in enumerate(dict.fromkeys([*start, *acting, *led_to]))}
    known = {*acting, *led_to}
    for state in start:
        if state not in known:
            raise PrudentError(f"initial is {state!r}; the log has no such state")
    actions = sorted(seen, key=lambda place: index[place[0]])
    outcomes = [seen[place] for place in actions]
    size, count = list(map(len, outcomes)), np.array([n for each in outcomes for n in each.values()])
    weight = count + (UNSEEN if possible is not None else 0.0)
    total = np.add.reduceat(weight, offsets(size)[:-1])
    return SSP(
        action_start=starts(np.array([index[state] for state, _ in actions]), len(index)),
        outcome_start=offsets(size),
        probability=weight / np.repeat(total, size),
        successor=np.array([index[to] for each in outcomes for to, _ in each], dtype=np.int64),
        cost=np.array([cost for each in outcomes for _, cost in each]),
        initial_state=np.array([index[state] for state in start]),
        initial_probability=np.array(list(start.values())),
        state_names=tuple(index),
        action_names=[action for _, action in actions],
        name=name,
        count=count,
    )


def columns_of(table: Any, wanted: dict[str, str]) -> dict[str, list[Any]]:
    """Return the wanted columns of a table as lists, by what they mean; a table in bytes is a CSV file's content."""
    for meaning, name in wanted.items():
        if not isinstance(name, str):
            raise PrudentError(f"{meaning} is {name!r}; it must be the name of a column")
    found = _read_csv(table) if isinstance(table, bytes) else _read_table(table)
    for meaning, name in wanted.items():
        if name not in found:
            near = get_close_matches(name, found.keys() - wanted.values(), n=1, cutoff=LIKE)
            hint = f"; pass its name as {meaning}= (--column {meaning}=NAME)"
            if near:
                hint = f"; is it {near[0]!r}? Then pass {meaning}={near[0]!r} (--column {meaning}={near[0]})"
            has = ", ".join(map(repr, found)) or "none"
            raise PrudentError(f"there is no column {name!r}; its columns are {has}{hint}")
    columns = {meaning: found[name] for meaning, name in wanted.items()}
    if len(lengths := {len(column) for column in columns.values()}) > 1:
        raise PrudentError(
            f"its columns have different lengths, {', '.join(map(str, sorted(lengths)))}; they must be equally long"
        )
    if lengths == {0}:
        raise PrudentError("it has no rows")
    for meaning, column in columns.items():
        for i, value in enumerate(column, 1):
            try:
                hash(value)
            except TypeError:
                raise PrudentError(f"row {i}: {wanted[meaning]} is {value!r}; names must be hashable") from None
            if _missing(value):
                raise PrudentError(f"row {i} has no {wanted[meaning]}; fill it in, or leave out its whole episode")
    return columns


def _read_table(table: Any) -> dict[str, list[Any]]:
    if hasattr(table, "columns") and hasattr(table, "to_dict"):  # a data frame
        names = _different(map(str, table.columns))
        return {name: _cells(name, table[own]) for name, own in zip(names, table.columns, strict=True)}
    if isinstance(table, Mapping):
        return {str(name): _cells(name, column) for name, column in table.items()}
    if isinstance(table, list | tuple) and all(isinstance(row, Mapping) for row in table):
        if not table:
            raise PrudentError("it has no rows")
        rows = dict.fromkeys(name for row in table for name in row)
        return {str(name): [row.get(name) for row in table] for name in rows}
    kind = type(table).__name__
    raise PrudentError(f"table is a {kind}; give the path of a CSV file, a data frame, columns by name, or rows")


def _cells(name: object, column: Any) -> list[Any]:
    """Return a column as a list of Python's own numbers and texts."""
    cells = column.tolist() if hasattr(column, "tolist") else column
    if not isinstance(cells, Iterable) or isinstance(cells, str | bytes):
        raise PrudentError(f"column {name!r} is {column!r}; it must be a list or an array, with a cell for each row")
    return list(cells)


def _read_csv(raw: bytes) -> dict[str, list[Any]]:
    try:
        rows = list(csv.reader(io.StringIO(raw.decode("utf-8-sig"), newline=""), strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise PrudentError(f"not a CSV file in UTF-8: {error}") from None
    rows = [row for row in rows if row]
    if not rows:
        raise PrudentError("is empty; its first line must name the columns")
    for mark in ";\t|":
        if len(rows[0]) == 1 and mark in rows[0][0]:
            raise PrudentError(f"its cells are separated by {mark!r}; separate them by commas, and write 2.5, not 2,5")
    head = _different(name.strip() for name in rows[0])
    for i, row in enumerate(rows[1:], 1):
        if len(row) != len(head):
            raise PrudentError(f"row {i} has {len(row)} cells; the first line names {len(head)} columns")
    return {name: [row[i].strip() or None for row in rows[1:]] for i, name in enumerate(head)}


def _different(names: Iterable[str]) -> list[str]:
    """Return the names of columns; refuse two that are the same."""
    head = list(names)
    for name in head:
        if head.count(name) > 1:
            raise PrudentError(f"two columns are called {name!r}; names must differ")
    return head


def _missing(value: Any) -> bool:
    """Return whether a cell is empty: None, or a nan of any kind, which differs from itself."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # that of pandas cannot even be compared
        return True


def numbers(column: list[Any], name: str, least: float) -> list[float]:
    """Return a column of finite numbers, at least ``least``; refuse any other cell."""
    found = []
    for i, value in enumerate(column, 1):
        if isinstance(value, str | Decimal):
            try:
                value = float(numeral(value)) if isinstance(value, str) else float(value)
            except ValueError:
                raise PrudentError(f"row {i}: {name} is {value!r}; it must be a number") from None
        what = "a finite number" if least < 0 else "a number, at least 0"
        found.append(as_number(f"row {i}: {name}", value, what, lambda x: least <= x and abs(x) < math.inf))
    return found
