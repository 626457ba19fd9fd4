"""What is measured: rows of one table, and series for plots."""

from dataclasses import asdict, dataclass, field
from typing import Any

from rich.table import Table

from timing import Spread


@dataclass(frozen=True)
class Row:
    """One number: its median, its quartiles where it was repeated, and what it was to be."""

    part: str
    model: str
    what: str
    value: float | None  # None: there is none, and the note says why
    unit: str = ""
    low: float | None = None
    high: float | None = None
    aim: float | None = None  # at least this
    note: str = ""

    @classmethod
    def of(cls, part: str, model: str, what: str, found: Spread, unit: str, **more: Any) -> "Row":
        """Return a row for repeated measurements."""
        return cls(part, model, what, found.median, unit, found.low, found.high, **more)

    @property
    def met(self) -> bool | None:
        """Whether the aim is met; None where there is none."""
        return None if self.aim is None or self.value is None else self.value >= self.aim

    @property
    def shown(self) -> tuple[str, str, str, str, str, str]:
        """The cells of the table: model, what, value, spread, aim, note."""
        spread = "" if self.low is None or self.high is None else f"{number(self.low)} .. {number(self.high)}"
        aim = "" if self.aim is None else f">= {number(self.aim)}{self.unit}: {verdict(self.met)}"
        value = "-" if self.value is None else f"{number(self.value)}{self.unit}"
        return self.model, self.what, value, spread, aim, self.note

    def to_dict(self) -> dict[str, Any]:
        """Return it for a file."""
        return {**asdict(self), "met": self.met}


@dataclass(frozen=True)
class Series:
    """A line of a log-log plot."""

    plot: str  # the plot's title
    name: str
    x_label: str
    y_label: str
    x: list[float]
    y: list[float]
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)
    marks: dict[str, float] = field(default_factory=dict)  # places on the x axis


@dataclass
class Found:
    """What a part found."""

    rows: list[Row] = field(default_factory=list)
    series: list[Series] = field(default_factory=list)


def verdict(met: bool | None) -> str:
    """Say whether an aim is met."""
    return {True: "met", False: "not met", None: "not measured"}[met]


def number(value: float) -> str:
    """Return a number with three digits, thousands set apart."""
    if value == 0 or 0.001 <= abs(value) < 1000:
        return f"{value:.3g}"
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{value:.3g}"


def rich_table(rows: list[Row]) -> Table:
    """Return the one table, a section for each part."""
    table = Table(title="make bench", title_justify="left", show_lines=False)
    for name in ("model", "what", "value", "quartiles", "aim", "note"):
        table.add_column(name, overflow="fold", justify="right" if name in ("value", "quartiles") else "left")
    part = ""
    for row in rows:
        if row.part != part:
            part = row.part
            table.add_section()
            table.add_row(f"[bold]{part}[/bold]")
        style = {True: "green", False: "yellow", None: ""}[row.met]
        table.add_row(*row.shown, style=style)
    return table
