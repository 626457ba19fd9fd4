"""Lines for a terminal: no word is cut, and no line is wider than the terminal unless a word is."""

import io
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from prudent.runtime.lines import cells, for_stream, grid, wrapped
from prudent.runtime.tables import Table

WORD = st.text("ab-/é日_.", min_size=1, max_size=12)
TEXT = st.lists(WORD, max_size=9).map(" ".join)


def words(*texts):
    return Counter(word for text in texts for word in text.split())


@given(TEXT, st.integers(1, 40))
def test_a_text_breaks_between_words(text, width):
    lines = wrapped(text, width, "  ")
    assert words(*lines) == words(text)
    assert all(cells(line) <= width or line in text.split() for line in lines)
    assert wrapped(text, None) == [text]


@given(
    st.integers(1, 5).flatmap(
        lambda n: st.tuples(
            st.text("lrdw", min_size=n, max_size=n), st.lists(st.tuples(*[TEXT] * n), min_size=1, max_size=4)
        )
    ),
    st.integers(1, 60),
    st.booleans(),
)
def test_a_table_loses_no_word(table, width, split):
    align, rows = table
    lines = list(grid(rows, align, width, split=split))
    longest = max((cells(word) for row in rows for text in row for word in text.split()), default=0)
    blocks = 1 + sum(line == "" and r == 0 and i > 0 for i, (r, line, _) in enumerate(lines))
    for r, row in enumerate(rows):
        found = words(*(line for number, line, _ in lines if number == r))
        assert found.keys() == words(*row).keys()
        assert not words(*row) - found
        assert blocks > 1 or split or found == words(*row)
    if split:
        assert all(cells(line) <= max(width, longest) for _, line, _ in lines)
    else:
        assert "" not in [line for _, line, _ in lines] or any(not "".join(row).strip() for row in rows)


def test_columns_that_find_no_room_stand_below_with_the_first_again():
    rows = (("exact", "10", "9", "optimal"), ("expected", "14.5", "10", "approximate"))
    table = Table("two plans", rows, "lddl", head=("method", "CVaR", "VaR", "status"), notes=("the note " * 5,))
    shown = io.StringIO()
    Console(file=shown, width=24, force_terminal=True, no_color=True).print(table)
    lines = [
        line.replace("\x1b[1m", "").replace("\x1b[2m", "").replace("\x1b[0m", "")
        for line in shown.getvalue().split("\n")
    ]
    assert lines == [
        "two plans",
        "method    CVaR  VaR",
        "exact     10      9",
        "expected  14.5   10",
        "",
        "method    status",
        "exact     optimal",
        "expected  approximate",
        "the note the note the",
        "note the note the note",
        "",
    ]


@pytest.mark.parametrize("isatty", [True, False])
def test_only_a_terminal_gets_several_lines(isatty, monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    stream = io.StringIO()
    stream.isatty = lambda: isatty
    assert for_stream("a message of many words", stream).count("\n") == isatty
