"""The file in which a study keeps its rows: lines of JSON, one added as soon as a combination is done.

The first line identifies the study; a file of another study raises an error and is never overwritten.  A line that is
incomplete, because the process or the machine died, is dropped when the file is opened again.  Numbers that JSON does
not have are kept as text: ``"inf"``, ``"-inf"``, ``"nan"``.
"""

import json
import re
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from prudent.errors import PrudentError, naming
from prudent.io.plan import NUMBERS, from_json, in_json
from prudent.io.untrusted import checked, document, utf8
from prudent.results.study import FIELDS, Row
from prudent.runtime.atomic_files import append_bytes, check_place, read_bytes, write_bytes
from prudent.runtime.tables import plain

FORMAT, VERSION = "prudent-study", 1

ADDRESS = re.compile(r"\bat 0x[0-9a-fA-F]+")
"""The memory address in the text of an object, another in each run."""


class StudyFile:
    """The rows of a study that are done, in a file."""

    def __init__(self, path: str | PathLike[str], about: dict[str, Any], parameters: Sequence[str]) -> None:
        check_place(path, ".jsonl", "a study's rows are kept")
        self.path, self.parameters = Path(path), tuple(parameters)
        self.rows: dict[str, Row] = {}
        header = {"format": FORMAT, "version": VERSION, **about, "parameters": list(self.parameters)}
        raw, whole = b"", json.dumps(header, allow_nan=False).encode() + b"\n"
        if self.path.exists():
            raw = read_bytes(self.path)
            if raw:  # a first line is whole even without its end: it is not added to others
                whole = raw[: raw.rfind(b"\n") + 1] or raw + b"\n"
            found, rows = parse(whole, self.path)
            for name in (*header, *found):
                if (there := found.get(name)) != (wanted := header.get(name)):
                    raise PrudentError(
                        f"{path}: belongs to another study: its {name} is {there!r}, not {wanted!r}; repeat that "
                        "study, or name another file"
                    )
            self.rows = {key_of(row, self.parameters): row for row in rows}
        if raw != whole:
            write_bytes(self.path, whole)

    def add(self, row: Row) -> None:
        """Keep a row."""
        kept = {name: in_json(row[name]) for name in FIELDS}
        own = plain({name: in_json(row[name]) for name in self.parameters})
        append_bytes(self.path, json.dumps({**own, **kept}, allow_nan=False).encode() + b"\n")


def key_of(row: Row, parameters: Sequence[str]) -> str:
    """Return what identifies a combination: its parameters and alpha, as text."""
    return json.dumps(list(plain({name: in_json(row[name]) for name in (*parameters, "alpha")}).values()))


def check_lasting(name: str, value: Any) -> None:
    """Refuse a parameter's value whose text changes in each run, so that its row would never be found again."""
    if not isinstance(value, str) and ADDRESS.search(key_of({name: value, "alpha": 0}, [name])):
        raise PrudentError(
            f"grid[{name!r}] has {value!r:.200}, whose text holds a memory address, which changes in each run, so that "
            "keep= would never find its row again; give its class a __repr__ without the address, or put a name in "
            "grid and create the object in make"
        )


def parse(raw: bytes, path: Path) -> tuple[dict[str, Any], list[Row]]:
    """Return the first line and the rows in a file's bytes; refuse anything that is not a study."""
    with naming(path):
        first, *lines = utf8(raw).split("\n")
        header = checked(document(first), dict, "the first line")
        if header.get("format") != FORMAT or header.get("version") != VERSION:
            raise PrudentError(
                f"is not a study of this version; its first line must have format {FORMAT!r} and version {VERSION}"
            )
        names = checked(header.get("parameters"), list, "parameters")
        parameters = [checked(name, str, "a name in parameters") for name in names]
        return header, [_row(line, f"line {i}", parameters) for i, line in enumerate(lines, 2) if line]


def _row(line: str, at: str, parameters: Sequence[str]) -> Row:
    with naming(at):
        row: Row = checked(document(line), dict, "a row")
        if row.keys() != {*parameters, *FIELDS}:
            raise PrudentError(f"must have the fields {', '.join((*parameters, *FIELDS))}")
        for name, kind in FIELDS.items():
            value = row[name]
            if kind == "texts":
                row[name] = tuple(checked(text, str, name) for text in checked(value, list, name))
            elif kind == "number" and value is not None:
                row[name] = from_json(value, name, NUMBERS[name])
            elif value is not None:
                row[name] = checked(value, {"text": str, "count": int}[kind], name)
        for name in parameters:
            if isinstance(row[name], float):
                from_json(row[name], name, NUMBERS["cvar"])
        if row["error"] is None and None in (row[name] for name, kind in FIELDS.items() if name != "error"):
            raise PrudentError("has neither all its numbers nor an error")
        return row
