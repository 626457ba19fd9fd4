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

from prudent.runtime.tables import (
    Table,
    at_least,
    at_most,
    between,
    bounds,
    certain,
    csv_text,
    in_hundredths,
    number,
    percent,
    plain,
    small,
    worst,
)

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


def test_points_line_up():
    table = Table("", (("a", "86"), ("b", "91.337584"), ("c", "unknown"), ("d", "1,049.5")), "ld", ("", "CVaR"))
    assert str(table).splitlines() == [
        "           CVaR",
        "a     86",
        "b     91.337584",
        "c       unknown",
        "d  1,049.5",
    ]
    assert [line.rstrip() for line in printed(table).splitlines()] == str(table).splitlines()
    cells = Reader(table._repr_html_()).texts
    assert cells[2:9:2] == ["86\u2008" + 6 * "\u2007", "91.337584", "unknown", "1,049.5" + 5 * "\u2007"]


def test_a_head_is_not_moved_to_the_points_of_its_column():
    table = Table("", (("10", "1.25"),), "dd", ("5%", "25%"))
    assert str(table).splitlines() == ["5%   25%", "10  1.25"]


def test_numbers_have_six_decimals_at_most_and_no_zeros_at_their_end():
    shown = {86.0: "86", 454.5736678: "454.573668", 49.5: "49.5", 1234.5: "1,234.5", -1e-9: "0", 100.0: "100"}
    assert {value: number(value) for value in shown} == shown
    assert [number(np.inf), number(np.nan)] == ["unbounded", "unknown"]
    assert number(123456789012.1234) == "123,456,789,012.123"  # what a float knows
    assert number(1e20) == "100,000,000,000,000,000,000"


def test_a_gap_decides_how_many_decimals_are_certain():
    gaps = {0.030: 3, 0.66: 2, 1.35: 1, 13.0: 0, 1e4: 0, 4e-5: 6, 1e-12: 6, 0.0: 6, np.inf: 6, np.nan: 6}
    assert {gap: certain(gap) for gap in gaps if gap == gap} == {gap: n for gap, n in gaps.items() if gap == gap}
    assert certain(np.nan) == 6
    assert number(176.6944, certain(0.030)) == "176.694"
    assert number(250.9, certain(0.66)) == "250.90"  # that zero is certain
    assert [certain(gap, money=True) for gap in (0.0, 0.003, 0.4, 7.0)] == [2, 2, 2, 1]


def test_bounds_are_rounded_outward():
    assert [at_least(x) for x in (0.12345678, 0.12345612)] == ["0.123456", "0.123456"]
    assert [at_most(x) for x in (0.12345678, 0.12345612)] == ["0.123457", "0.123457"]
    assert (at_least(91.3375839999, 6), at_most(91.3375840001, 6)) == ("91.337584", "91.337584")  # rounding error
    assert (at_least(-2.345, 2), at_most(-2.345, 2)) == ("-2.35", "-2.34")
    assert (at_least(np.nan), at_most(np.inf)) == ("unknown", "unbounded")
    assert bounds(176.685252, 176.715517) == ("176.685", "176.716")
    assert between(176.685252, 176.715517) == "between 176.685 and 176.716"
    assert between(91.337584, 91.337584) == "91.337584, known to all digits shown"
    assert between(3.5, np.inf) == "at least 3.5"


@given(st.floats(-1e6, 1e6), st.floats(1e-5, 1e4))
def test_what_is_shown_of_bounds_is_true(lower, gap):
    low, high = (float(text.replace(",", "")) for text in bounds(lower, lower + gap))
    allowed = 2e-9 * max(1.0, abs(lower) + gap)
    if low == high:
        assert gap < 1e-5
    else:
        assert low <= lower + allowed and lower + gap <= high + allowed
        assert high - low <= 1.3 * gap + 2e-6  # and says nearly as much


def test_money():
    assert [in_hundredths(step) for step in (0.01, 0.05, 12.5, 1.0, 5.0, 0.001, 0.0)] == 3 * [True] + 4 * [False]
    assert in_hundredths([12.5, 190.37, 3]) and not in_hundredths([12.5, 190.375]) and not in_hundredths([1, 2])
    assert [number(x, certain(0.0, money=True)) for x in (12.5, 190.372, 7)] == ["12.50", "190.37", "7.00"]
    assert bounds(190.3721, 190.3741, money=True) == ("190.37", "190.37")


def test_tiny_probabilities_are_not_shown_as_0():
    assert [small(x) for x in (0.0, 3e-9, 0.25)] == ["0", "3e-09", "0.25"]
    assert bounds(1e-9, 2e-9, tiny=True) == ("1e-09", "2e-09")
    assert bounds(1e-9, 2e-9) == ("0", "0")


def test_shares_of_runs():
    assert [percent(share) for share in (1, 0.05, 0.001)] == ["100%", "5%", "0.1%"]
    assert (worst(0.05), worst(1)) == ("the worst 5% of runs", "all runs")


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
