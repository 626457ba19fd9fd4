"""Lines for a terminal: text breaks only between words, and a table that is too wide goes on below itself."""

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from shutil import get_terminal_size
from typing import TextIO

GAP, INDENT = "  ", "    "
"""What stands between columns; and before what a line is continued with."""

WORD = re.compile(r"\s*\S+")

Row = Sequence[str]


def cells(text: str) -> int:
    """Return how many columns of a terminal a text takes: some characters take two, some none."""
    from rich.cells import cell_len

    return len(text) if text.isascii() else cell_len(text)


def wrapped(text: str, width: int | None, indent: str = "") -> list[str]:
    """Return a text as lines; only a word that is wider than a line makes it wider than ``width``."""
    if width is None or cells(text) <= width:
        return [text]
    lines = [""]
    for word in WORD.findall(text):
        if cells(lines[-1] + word) <= width:
            lines[-1] += word
            continue
        word = word.lstrip()
        before = indent if lines[-1] and cells(indent + word) <= width else ""
        lines[len(lines) if lines[-1] else 0 :] = [before + word]
    return lines


def for_stream(text: str, stream: TextIO) -> str:
    """Return a text as it is printed: in several lines, if the stream is a terminal and the text is too long."""
    return "\n".join(wrapped(text, get_terminal_size().columns if stream.isatty() else None))


def padded(text: str, room: int, side: str) -> str:
    """Return a text with blanks up to a width: before it for sides r and d, else after it."""
    blanks = " " * (room - cells(text))
    return blanks + text if side in "rd" else text + blanks


def grid(rows: Sequence[Row], align: str, width: int, *, split: bool) -> Iterator[tuple[int, str, int]]:
    """Yield the lines of a table: the number of the row, the line, and how much of it is the first column.

    Columns of side ``w`` become narrower if need be, as narrow as their longest word.  With ``split``, a table that is
    still too wide is cut between columns, and the rest, with the first column again, stands below.
    """
    columns = list(zip(*rows, strict=True))
    least = [max(map(_longest if side == "w" else cells, column)) for column, side in zip(columns, align, strict=True)]
    for part in _cut(least, width) if split else [list(range(len(align)))]:
        if part[:2] != [0, 1] and len(align) > 1:
            yield 0, "", 0
        room = {i: max(map(cells, columns[i])) for i in part}
        while sum(room.values()) + len(GAP) * (len(part) - 1) > width:
            loose = [i for i in part if room[i] > least[i]]
            if not loose:
                break
            room[max(loose, key=room.__getitem__)] -= 1
        for r, row in enumerate(rows):
            inside = [wrapped(row[i], room[i] if align[i] == "w" else None) for i in part]
            for texts in zip_longest(*inside, fillvalue=""):
                line = GAP.join(padded(text, room[i], align[i]) for i, text in zip(part, texts, strict=True)).rstrip()
                for j, piece in enumerate(wrapped(line, width if split else None, INDENT)):
                    yield r, piece, 0 if j else len(texts[0])


def _longest(text: str) -> int:
    return max(map(cells, text.split()), default=0)


def _cut(least: list[int], width: int) -> list[list[int]]:
    """Return which columns stand side by side, each time with the first."""
    parts = [[0]]
    for i, room in enumerate(least[1:], 1):
        if len(parts[-1]) > 1 and sum(least[j] + len(GAP) for j in parts[-1]) + room > width:
            parts.append([0])
        parts[-1].append(i)
    return parts
