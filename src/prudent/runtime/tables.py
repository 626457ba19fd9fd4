"""Output formats of results: text, HTML and CSV, plain values for JSON, data frames.

:func:`plain` makes what ``to_dict()`` returns and ``--json`` prints; there, unknown and infinite numbers are None.
:class:`Table` is what the command prints, rich shows and a notebook displays.  In a data frame, unknown and infinite
numbers stay nan and infinite.
"""

import html
import math
import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from prudent.errors import printable
from prudent.runtime.optional import needed

if TYPE_CHECKING:
    from pandas import DataFrame
    from rich.console import Console, ConsoleOptions, RenderableType
else:
    DataFrame = "DataFrame"  # for signatures: pandas is imported only where it is used

__all__ = ["DataFrame", "Shown", "Table", "at_least", "csv_text", "frame", "number", "plain", "small"]


def number(value: float) -> str:
    """Return a cost as text."""
    if math.isnan(value):
        return "unknown"
    return f"{value:,.6f}" if math.isfinite(value) else "unbounded"


def small(value: float) -> str:
    """Return a number that may be close to 0, such as a probability, as text: what is not 0 is not shown as 0."""
    return f"{value:.6g}" if 0 < abs(value) < 5e-7 else number(value)


def at_least(value: float) -> str:
    """Return a lower bound as text, with as many decimals as :func:`number`; rounded down where that shows."""
    near = round(value, 6)
    return number(near - 1e-6 if near > value + 1e-9 * max(1.0, abs(value)) else near)


def plain(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return content as JSON knows it: None for unknown and infinite numbers, names as text."""
    return {name: _plain(item) for name, item in content.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return plain(value)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def frame(columns: Mapping[str, Any]) -> DataFrame:
    """Return columns as a data frame; needs pandas."""
    return needed("pandas", "frame").DataFrame(dict(columns))


NUMBER = re.compile(r"[+-]?[0-9]+([.][0-9]*)?([eE][+-]?[0-9]+)?")
FORMULA = tuple("=+-@＝＋－＠'")  # noqa: RUF001  (some spreadsheets take the wide ones for the others)
"""The beginnings of cells that a spreadsheet would compute; and the apostrophe, so that it can be removed again."""


def csv_text(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return rows as CSV (RFC 4180: commas, lines that end in CR LF): text quoted, numbers bare, None empty.

    Names come from model files, which anybody may write.  So text that a spreadsheet would take for a formula gets an
    apostrophe in front, which makes it text there.  Text that begins with an apostrophe gets another, so removing
    one always restores the name; numbers are no formulas and stay as they are.  All text is quoted, since spreadsheets
    split at semicolons where the decimal point is a comma.
    """

    def cell(value: Any) -> str:
        if value is None:
            return ""
        if isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool):
            return str(value)
        text = str(value)
        guard = "'" if _visible(text).startswith(FORMULA) and not NUMBER.fullmatch(text) else ""
        return '"' + guard + text.replace('"', '""') + '"'

    return "".join(",".join(map(cell, row)) + "\r\n" for row in (head, *rows))


def _visible(text: str) -> str:
    """Return a text without its leading blanks, control characters and format characters."""
    for i, letter in enumerate(text):
        if not letter.isspace() and unicodedata.category(letter) not in ("Cc", "Cf"):
            return text[i:]
    return ""


@dataclass(frozen=True)
class Table:
    """Rows of text under a title: aligned in a terminal, escaped in a notebook.

    Examples
    --------
    >>> import prudent
    >>> table = prudent.solve(prudent.domains.figure_2(), alpha=0.1).visits().table()
    >>> table.head, table.rows[0]
    (('state', 'action', 'times'), ('s0', 'a', '1.000000'))
    """

    title: str
    rows: tuple[tuple[str, ...], ...]
    align: str  # for each column: l(eft), r(ight), or w: left, and wrapped where the terminal is narrow
    head: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()  # lines below

    def __str__(self) -> str:
        cells = [tuple(map(printable, row)) for row in ((self.head, *self.rows) if self.head else self.rows)]
        width = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = [
            "  ".join(
                f"{text:>{room}}" if side == "r" else f"{text:<{room}}"
                for text, room, side in zip(row, width, self.align, strict=True)
            ).rstrip()
            for row in cells
        ]
        return "\n".join([*([printable(self.title)] if self.title else []), *lines, *map(printable, self.notes)])

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> Iterator["RenderableType"]:
        yield from self.parts(options.encoding)

    def parts(self, encoding: str) -> list["RenderableType"]:
        """Return the title, the rows and the notes for rich, in characters that the encoding has (internal)."""
        from rich.table import Table as Grid
        from rich.text import Text

        def text(cell: str, style: str = "") -> Text:
            shown = printable(cell)
            if not encoding.lower().startswith("utf"):
                shown = shown.replace("±", "+/-").encode(encoding, "backslashreplace").decode(encoding)
            return Text(shown, style=style)

        grid = Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=bool(self.head))
        for i, side in enumerate(self.align):
            style = "" if self.head or i else "bold"
            name = text(self.head[i]) if self.head else ""
            grid.add_column(name, justify="right" if side == "r" else "left", no_wrap=side != "w", style=style)
        for row in self.rows:
            grid.add_row(*map(text, row))
        title: list[RenderableType] = [text(self.title, "bold")] if self.title else []
        return [*title, *([grid] if self.head or self.rows else []), *(text(note, "dim") for note in self.notes)]

    def _repr_html_(self) -> str:
        """Return HTML that takes its colours from the page, so that it is readable in light and dark themes."""

        def line(cells: tuple[str, ...], tag: str) -> str:
            made = []
            for text, side in zip(cells, self.align, strict=True):
                style = f"text-align:{'right' if side == 'r' else 'left'}"
                made.append(f'<{tag} style="{style}">{_escaped(text)}</{tag}>')
            return f"<tr>{''.join(made)}</tr>"

        head = f"<thead>{line(self.head, 'th')}</thead>" if self.head else ""
        body = "".join(line(row, "td") for row in self.rows)
        title = f'<div style="font-weight:bold">{_escaped(self.title)}</div>' if self.title else ""
        notes = "".join(f'<div style="opacity:0.75">{_escaped(note)}</div>' for note in self.notes)
        table = f"<table>{head}<tbody>{body}</tbody></table>" if head or body else ""
        return f"<div>{title}{table}{notes}</div>"


def _escaped(text: str) -> str:
    return html.escape(printable(text))


class Shown(ABC):
    """A result that is shown as a table, in a terminal by rich and in a notebook as HTML."""

    @abstractmethod
    def table(self) -> Table:
        """Return what the command prints."""

    def __rich__(self) -> Table:
        return self.table()

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()
