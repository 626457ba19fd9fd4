"""Study: the numbers of many plans in one tidy table, a row for each combination of parameters and alpha."""

from collections.abc import Hashable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np

from prudent.results import plan
from prudent.runtime.atomic_files import check_place, write_bytes
from prudent.runtime.tables import Framed, Numbers, Table, certain, csv_text, in_hundredths, number, plain

OTHERWISE = ("max_cvar", "objective", "goal_probability")
"""Fields of plans that no study asks for."""

FIELDS: dict[str, Literal["text", "number", "count", "texts"]] = {
    **{name: kind for name, kind in plan.FIELDS.items() if name not in OTHERWISE},
    "notes": "texts",
    "error": "text",
}
"""The columns of a row besides the parameters: the fields of a plan, and the error if there is no plan."""

NEGLIGIBLE = 1e-8
"""The gap, relative to the size of CVaR, up to which a plan is optimal."""

Row = dict[str, Any]
"""The parameters and the fields by name; a field without a value is None."""


@dataclass(frozen=True, eq=False, repr=False)
class Study(Numbers, Framed):
    """What :func:`prudent.study` returns.

    ``rows`` has a dict for each finished combination, in the order requested: the parameters and the fields of
    :class:`prudent.Plan`.  If a combination failed, ``error`` has the message, and the numbers are None.

    Examples
    --------
    >>> import prudent
    >>> study = prudent.study("betting-game", {"stages": [2, 4]}, alphas=[0.1, 1], workers=1)
    >>> [(row["stages"], row["alpha"], round(row["cvar"], 3)) for row in study.rows]
    [(2, 0.1, 95.0), (2, 1.0, 86.7), (4, 0.1, 95.0), (4, 1.0, 79.783)]
    >>> study.complete, study.failed
    (True, ())
    """

    make: str  # the domain, or the function's name
    parameters: tuple[str, ...]
    rows: tuple[Row, ...]
    asked: int  # the number of combinations requested
    seconds: float  # of this call, without rows that were kept from earlier calls

    @property
    def complete(self) -> bool:
        """Whether every combination is finished: the study was not interrupted."""
        return len(self.rows) == self.asked

    @property
    def failed(self) -> tuple[Row, ...]:
        """The rows that have an ``error``."""
        return tuple(row for row in self.rows if row["error"] is not None)

    def __repr__(self) -> str:
        return f"<Study of {self.make}: {len(self.rows):,} of {self.asked:,} finished, {len(self.failed):,} failed>"

    def values(self, name: str) -> list[Hashable]:
        """Return the different values of a column, in the order in which they come (internal)."""
        return list(dict.fromkeys(row[name] for row in self.rows))

    def _content(self) -> dict[str, Any]:
        about = {"make": self.make, "parameters": self.parameters, "asked": self.asked, "seconds": self.seconds}
        return {**about, "rows": list(self.rows)}

    def _columns(self) -> dict[str, Any]:
        columns: dict[str, Any] = {name: [row[name] for row in self.rows] for name in (*self.parameters, *FIELDS)}
        columns |= {name: np.array(columns[name], dtype=float) for name, kind in FIELDS.items() if kind == "number"}
        return {**columns, "notes": ["\n".join(row["notes"]) for row in self.rows]}

    @overload
    def to_csv(self) -> str: ...
    @overload
    def to_csv(self, path: str | PathLike[str]) -> None: ...
    def to_csv(self, path: str | PathLike[str] | None = None) -> str | None:
        """Return the rows as CSV, or write them to a file (``.csv``, UTF-8), whole or not at all.

        Text is quoted, numbers are not; cells for unknown and infinite numbers are empty.

        Examples
        --------
        >>> import prudent
        >>> prudent.study("figure-2", {}, alphas=[0.1], workers=1).to_csv()[:30]
        '"model","method","alpha","step'
        """
        head = (*self.parameters, *FIELDS)
        rows = [plain({**row, "notes": "\n".join(row["notes"])}) for row in self.rows]
        text = csv_text(head, [[row[name] for name in head] for row in rows])
        if path is None:
            return text
        check_csv_path(path)
        write_bytes(Path(path), text.encode())
        return None

    def _table(self) -> Table:
        rows = []
        for row in self.rows:
            about = (*(str(row[name]) for name in self.parameters), f"{row['alpha']:g}")
            if row["error"] is None:
                rows.append((*about, *_numbers(row), row["status"], f"{row['seconds']:.3g}"))
            else:
                rows.append((*about, "", "", "", f"failed: {row['error']}", ""))
        notes = []
        if self.failed:
            notes.append(f"{len(self.failed):,} of {self.asked:,} combinations failed")
        if not self.complete:
            notes.append(
                f"interrupted: {self.asked - len(self.rows):,} of {self.asked:,} combinations are not finished"
            )
        head = (*self.parameters, "alpha", "CVaR", "VaR", "expected cost", "status", "seconds")
        title = f"{self.make}: {self.asked:,} combinations, {self.seconds:.3g} s"
        return Table(title, tuple(rows), "l" * (len(self.parameters) + 1) + "dddwd", head=head, notes=tuple(notes))


def _numbers(row: Row) -> tuple[str, str, str]:
    """Return CVaR, VaR and expected cost as text; where costs were rounded, a CVaR lies between it and the bound."""
    gap, money = max(row["upper"] - row["cvar"], 0.0), in_hundredths(row["step"])
    digits = certain(gap if gap > NEGLIGIBLE * abs(row["upper"]) else 0.0, money)
    return number(row["cvar"], digits), number(row["var"], digits), number(row["expected"], certain(0.0, money))


def check_csv_path(path: str | PathLike[str]) -> None:
    """Refuse a path where no CSV file can be written, before anything is computed."""
    check_place(path, ".csv", "a study's table is written")
