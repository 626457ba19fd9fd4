"""A log as columns: from a CSV file, a data frame, columns by name or a list of rows.

Nothing is guessed: an empty cell or an invalid number raises an error that names the row.
"""

import csv
import io
import math
from collections.abc import Iterable, Mapping
from decimal import Decimal
from difflib import get_close_matches
from typing import Any

from prudent.errors import PrudentError, as_number, numeral

LIKE = 0.5
"""How much alike a column's name must be to be offered: next is, for next_state."""


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
    _refuse_holes(columns, wanted)
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


def _refuse_holes(columns: dict[str, list[Any]], wanted: dict[str, str]) -> None:
    for meaning, column in columns.items():
        for i, value in enumerate(column, 1):
            try:
                hash(value)
            except TypeError:
                raise PrudentError(f"row {i}: {wanted[meaning]} is {value!r}; names must be hashable") from None
            if _missing(value):
                raise PrudentError(f"row {i} has no {wanted[meaning]}; fill it in, or leave out its whole episode")


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
