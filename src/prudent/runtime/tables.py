"""Output formats of results: text, HTML and CSV, plain values for JSON, data frames.

:func:`plain` makes what ``to_dict()`` returns and ``--json`` prints; there, unknown and infinite numbers are None.
:class:`Table` is what the command prints, rich shows and a notebook displays.  In a data frame, unknown and infinite
numbers stay nan and infinite.
"""

import html
import math
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from unicodedata import category

import numpy as np

from prudent.errors import needed, printable
from prudent.runtime.lines import grid, wrapped

if TYPE_CHECKING:
    from pandas import DataFrame as DataFrame
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.text import Text
else:
    DataFrame = "DataFrame"  # for signatures: pandas is imported only where it is used

DECIMALS = 6
"""The most decimals that are shown of any number."""

RARE = 1e-3
"""Probabilities below this are shown with 6 digits, whatever their decimals."""

MONEY = 2
"""The decimals of costs in hundredths."""

TINY = 0.5 * 10.0**-DECIMALS
"""A number below this is 0 to that many decimals."""

NOISE = 1e-9
"""The floating-point error of a bound, relative to its size, that outward rounding ignores."""


def number(value: float, decimals: int = DECIMALS) -> str:
    """Return a number as text: with these decimals, or with those of the first six that are not trailing zeros.

    Fewer than six decimals are those that are :func:`certain`, so a zero among them is a digit like others and stays.
    """
    if math.isnan(value):
        return "unknown"
    if not math.isfinite(value):
        return "unbounded"
    known = min(decimals, max(sys.float_info.dig - len(f"{abs(value):.0f}"), 0))
    text = f"{value:,.{known}f}"
    if decimals >= DECIMALS and known:
        text = text.rstrip("0").rstrip(".")
    return text.lstrip("-") if set(text) <= set("-0.") else text


def certain(gap: float, money: bool = False) -> int:
    """Return how many decimals of a number are certain, given the gap between its bounds or its standard error.

    Two significant digits of the gap decide; six decimals are the most, and two for money, that is, for costs
    :func:`in_hundredths`.
    """
    most = MONEY if money else DECIMALS
    if not 0 < gap < math.inf:
        return most
    return min(max(1 - math.floor(math.log10(gap)), 0), most)


def in_hundredths(costs: Any) -> bool:
    """Return whether costs, or their common step, are multiples of 0.01 and not all whole: amounts of money."""
    cents = 100 * np.asarray(costs, dtype=np.float64)
    near = np.rint(cents)
    exact = np.abs(cents - near) <= NOISE * np.maximum(np.abs(cents), 1.0)
    return bool(exact.all() and (near % 100 != 0).any())


def small(value: float, decimals: int = DECIMALS) -> str:
    """Return a number that may be close to 0, such as a probability, as text: what is not 0 is not shown as 0."""
    return f"{value:.6g}" if 0 < abs(value) < TINY else number(value, decimals)


def probability(value: float) -> str:
    """Return a probability as text, with 6 digits where it is small: what is not 1 is not shown as 1."""
    shown = f"{value:.6g}" if value < RARE else number(value)
    return f"1 - {1 - value:.2g}" if value < 1 <= float(shown) else shown


def at_least(value: float, decimals: int = DECIMALS) -> str:
    """Return a lower bound as text, rounded down: what is shown is still a lower bound."""
    return number(_outward(value, decimals, -1), decimals)


def at_most(value: float, decimals: int = DECIMALS) -> str:
    """Return an upper bound as text, rounded up: what is shown is still an upper bound."""
    return number(_outward(value, decimals, 1), decimals)


def _outward(value: float, decimals: int, side: int) -> float:
    if not math.isfinite(value):
        return value
    near = round(value, decimals)
    inside = side * (value - near) > NOISE * max(1.0, abs(value))
    return near + side * 10.0**-decimals if inside else near


def bounds(lower: float, upper: float, money: bool = False, *, tiny: bool = False) -> tuple[str, str]:
    """Return two bounds on a number as text, rounded outward; the same text twice if they agree in all digits shown.

    With ``tiny``, bounds that are too close to 0 for six decimals are not shown as 0; see :func:`small`.
    """
    if tiny and 0 < upper < TINY:
        return small(lower), small(upper)
    digits = certain(upper - lower, money)
    near = number(lower, digits)
    return (near, near) if near == number(upper, digits) else (at_least(lower, digits), at_most(upper, digits))


def between(lower: float, upper: float, money: bool = False) -> str:
    """Return in words what two bounds on a number say."""
    low, high = bounds(lower, upper, money)
    if low == high:
        return f"{low}, known to all digits shown"
    return f"at least {low}" if math.isinf(upper) else f"between {low} and {high}"


def percent(share: float) -> str:
    """Return a share of runs as a percentage, with the digits that it has, at most six."""
    return f"{100 * share:.6g}%"


def worst(alpha: float) -> str:
    """Return which runs an alpha is about."""
    return "all runs" if alpha == 1 else f"the worst {percent(alpha)} of runs"


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


NUMERAL = re.compile(r"[+-]?[0-9,]+((?:[.][0-9]+)?(?:e[+-]?[0-9]+)?%?)")
"""A number as tables show it; what follows its whole part is a group."""

DIGIT, POINT = "\u2007", "\u2008"
"""Blanks as wide as a digit, and as a point, in most fonts."""

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
        first = next((each for each in text if not each.isspace() and category(each) not in ("Cc", "Cf")), "")
        guard = "'" if first in FORMULA and not NUMBER.fullmatch(text) else ""
        return '"' + guard + text.replace('"', '""') + '"'

    return "".join(",".join(map(cell, row)) + "\r\n" for row in (head, *rows))


@dataclass(frozen=True)
class Table:
    """Rows of text under a title: aligned in a terminal, escaped in a notebook.

    Examples
    --------
    >>> import prudent
    >>> table = prudent.solve(prudent.domains.figure_2(), alpha=0.1).visits().table()
    >>> table.head, table.rows[0]
    (('state', 'action', 'times'), ('s0', 'a', '1'))
    """

    title: str
    rows: tuple[tuple[str, ...], ...]
    align: str  # for each column: l(eft), r(ight), d(ecimal points below each other), or w: left, and wrapped if narrow
    head: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()  # lines below

    @classmethod
    def of(cls, title: str, columns: Mapping[str, Sequence[str]], align: str, notes: tuple[str, ...] = ()) -> "Table":
        """Return the table of some columns, by their heads (internal)."""
        return cls(title, tuple(zip(*columns.values(), strict=True)), align, tuple(columns), notes)

    def __str__(self) -> str:
        return "\n".join(line.plain for line in self.lines("utf-8", sys.maxsize, piped=True))

    def _lines(self) -> list[tuple[str, ...]]:
        """Return the head, if there is one, and the rows; where points line up, blanks stand for missing decimals."""
        columns = list(zip(*self.rows, strict=True))
        for i, side in enumerate(self.align if columns else ""):
            if side == "d":
                found = [NUMERAL.fullmatch(text) for text in columns[i]]
                most = max((len(each[1]) for each in found if each), default=0)
                columns[i] = tuple(
                    text + " " * (most - len(each[1])) if each else text
                    for text, each in zip(columns[i], found, strict=True)
                )
        return [*([self.head] if self.head else []), *zip(*columns, strict=True)]

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> Iterator["RenderableType"]:
        yield from self.lines(options.encoding, options.max_width)

    def lines(self, encoding: str, width: int, *, piped: bool = False) -> Iterator["Text"]:
        """Yield the lines of title, rows and notes for rich, in characters that the encoding has (internal).

        On a terminal no line is wider than ``width``, unless a word is.  In a file or a pipe a line may be longer:
        titles and notes have one line each, and all columns of a row stand side by side.
        """
        from rich.text import Text

        def text(line: str, style: str = "", bold: int = 0) -> Text:
            found = Text(line, style=style, no_wrap=True, overflow="ignore")
            found.stylize("bold", 0, bold)
            return found

        def shown(cell: str) -> str:
            name = printable(cell)
            if encoding.lower().startswith("utf"):
                return name
            return name.replace("±", "+/-").encode(encoding, "backslashreplace").decode(encoding)

        most = None if piped else width
        if self.title:
            yield from (text(line, "bold") for line in wrapped(shown(self.title), most))
        rows = [tuple(map(shown, row)) for row in self._lines()]
        for r, line, first in grid(rows, self.align, width, split=not piped) if rows else ():
            yield text(line, "bold" if self.head and r == 0 else "", 0 if self.head else first)
        for note in self.notes:
            yield from (text(line, "dim") for line in wrapped(shown(note), most))

    def _repr_html_(self) -> str:
        """Return HTML that takes its colours from the page, so that it is readable in light and dark themes."""

        def line(cells: tuple[str, ...], tag: str) -> str:
            made = []
            for text, side in zip(cells, self.align, strict=True):
                style = "text-align:" + ("left" if side in "lw" else "right")
                style += ";font-variant-numeric:tabular-nums" if side == "d" else ""
                made.append(f'<{tag} style="{style}">{_spaced(text, side)}</{tag}>')
            return f"<tr>{''.join(made)}</tr>"

        lines = self._lines()
        head = f"<thead>{line(lines[0], 'th')}</thead>" if self.head else ""
        body = "".join(line(row, "td") for row in (lines[1:] if self.head else lines))
        title = f'<div style="font-weight:bold">{_escaped(self.title)}</div>' if self.title else ""
        notes = "".join(f'<div style="opacity:0.75">{_escaped(note)}</div>' for note in self.notes)
        table = f"<table>{head}<tbody>{body}</tbody></table>" if head or body else ""
        return f"<div>{title}{table}{notes}</div>"


def _spaced(text: str, side: str) -> str:
    """Return a cell for HTML; what stands for missing decimals is as wide as a point and digits."""
    shown = text.rstrip(" ") if side == "d" else text
    missing = len(text) - len(shown)
    whole = missing and "." not in shown
    return _escaped(shown) + POINT * whole + DIGIT * (missing - whole)


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


class Numbers(Shown):
    """A result whose numbers other programs read, too."""

    @abstractmethod
    def _content(self) -> Mapping[str, Any]: ...

    @abstractmethod
    def _table(self) -> Table: ...

    def table(self) -> Table:
        """Return what the command prints.

        Examples
        --------
        >>> import prudent
        >>> table = prudent.chances(prudent.domains.figure_2(), [1, 9]).table()
        >>> table.head, table.rows
        (('budget', 'probability'), (('1', '0.855'), ('9', '0.9')))
        """
        return self._table()

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as the command prints them with ``--json``: names as text, None where unknown or infinite.

        Examples
        --------
        >>> import prudent
        >>> found = prudent.chances(prudent.domains.figure_2(), [0, 9]).to_dict()
        >>> [point["chance"] for point in found["points"]]
        [0.855, 0.9]
        """
        return plain(self._content())


class Framed(ABC):
    """A result whose numbers are columns."""

    @abstractmethod
    def _columns(self) -> Mapping[str, Any]: ...

    def _kinds(self) -> Mapping[str, str]:
        """Return the types of columns that pandas would not guess."""
        return {}

    def to_frame(self) -> DataFrame:
        """Return a data frame (extra ``frame``): names as they are, unknown numbers missing, infinite ones infinite.

        Examples
        --------
        >>> import prudent
        >>> prudent.chances(prudent.domains.figure_2(), [1, 9]).to_frame()
           budget  chance  lower  upper
        0     1.0   0.855  0.855  0.855
        1     9.0   0.900  0.900  0.900
        """
        return frame(self._columns()).astype(self._kinds())
