"""Text, HTML, CSV and plain values: what is in a name does no harm in any of them."""

import csv
import io
import json
from fractions import Fraction
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from prudent.runtime.tables import Table, at_least, csv_text, number, plain

HOSTILE = '<script>alert("1")</script>'
TABLE = Table(
    "a & b", ((HOSTILE, "1.5", "[red]why[/red]"), ("\x1b[31m", "22", "±")), "lrw", ("", "n", "x"), ("<b>note</b>",)
)


class Reader(HTMLParser):
    """Tags and texts of a page, as a browser would take them."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.texts = [], set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data):
        self.texts.append(data)


def test_html_is_escaped_and_needs_nothing_from_outside():
    found = Reader(TABLE._repr_html_())
    assert set(found.tags) == {"div", "table", "thead", "tbody", "tr", "th", "td"}
    assert found.attributes == {"style"}
    assert found.texts == ["a & b", "n", "x", HOSTILE, "1.5", "[red]why[/red]", r"'\x1b[31m'", "22", "±", "<b>note</b>"]
    for what in ("http", "url(", "color", "background"):  # its colours are the page's, light or dark
        assert what not in TABLE._repr_html_()


def printed(table, **options):
    out = io.StringIO()
    Console(file=out, width=100, **options).print(table)
    return out.getvalue()


def test_rich_shows_the_same_cells_and_takes_no_markup_from_them():
    shown = printed(TABLE)
    for text in (HOSTILE, "[red]why[/red]", "<b>note</b>", "a & b", r"'\x1b[31m'"):
        assert text in shown
    assert "\x1b" not in shown


def test_characters_that_the_terminal_has_not():
    raw = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    Console(file=raw, width=100).print(Table("é", (("±", "2"),), "lr"))
    raw.seek(0)
    assert raw.read().split() == [r"\xe9", "+/-", "2"]


def test_text_lines_up():
    table = Table("", (("a", "1"), ("bcd", "22")), "lr", ("name", "n"))
    assert str(table).splitlines() == ["name   n", "a      1", "bcd   22"]
    assert str(Table("only a title", (), "lr")) == "only a title"


def test_numbers():
    assert [number(x) for x in (1234.5, np.inf, np.nan)] == ["1,234.500000", "unbounded", "unknown"]
    assert [at_least(x) for x in (0.12345678, 0.12345612)] == ["0.123456", "0.123456"]


def test_plain_values_are_what_json_knows():
    mixed = {"a": np.float64(np.inf), "b": (np.int64(3), np.array([1.5, np.nan])), "c": Fraction(1, 3), "d": np.True_}
    assert plain(mixed) == {"a": None, "b": [3, [1.5, None]], "c": "1/3", "d": True}
    json.dumps(plain(mixed), allow_nan=False)


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("@sum", "'@sum"),
        ("-2+3", "'-2+3"),
        ("+x", "'+x"),
        ("\t=1", "'\t=1"),
        ("\x00=1", "'\x00=1"),
        ("\ufeff\u200b \x1f=1", "'\ufeff\u200b \x1f=1"),
        ("\u2028\u202e@x", "'\u2028\u202e@x"),
        ("\u200b'quoted", "'\u200b'quoted"),
        ("\u200b", "\u200b"),
        ("＝1", "'＝1"),  # noqa: RUF001
        ("'quoted", "''quoted"),
        ("-1", "-1"),
        ("+2.5e3", "+2.5e3"),
        (-3, "-3"),
        ("left", "left"),
        ((0, -1), "(0, -1)"),
    ],
)
def test_a_formula_is_written_as_text(name, cell):
    assert list(csv.reader(io.StringIO(csv_text(["name"], [[name]]), newline=""))) == [["name"], [cell]]


def test_text_is_quoted_and_numbers_are_bare():
    """A spreadsheet that splits at semicolons keeps a name whole."""
    rows = [["a;b", 1.5, None], ['say "x"', -2, np.float64(0.25)], ["-1", True, np.int64(3)]]
    text = '"name","x","y"\r\n"a;b",1.5,\r\n"say ""x""",-2,0.25\r\n"-1","True",3\r\n'
    assert csv_text(["name", "x", "y"], rows) == text


@given(st.lists(st.tuples(st.text("=+-@'\t\x00\u200b\ufeff ,;\"\r\nab1", max_size=6), st.text(max_size=4)), max_size=5))
def test_csv_leads_back_to_every_name(rows):
    found = list(csv.reader(io.StringIO(csv_text(["a", "b"], rows), newline="")))
    assert found[0] == ["a", "b"]
    assert [tuple(cell.removeprefix("'") for cell in row) for row in found[1:]] == rows
    for row in found[1:]:
        for cell in row:
            begins = cell.strip("\t\x00\u200b\ufeff \r\n")[:1]
            assert begins not in ("=", "@")
            if begins in ("+", "-"):
                float(cell)
