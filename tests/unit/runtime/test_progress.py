"""Progress is shown if work takes long, on a terminal or in a notebook, and nothing of it is left."""

import io
import sys
import types

import pytest

from prudent.runtime import progress
from prudent.runtime.progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def cell(monkeypatch):
    """Stand in for a notebook's cell; return what it has shown, one list for each display."""
    shown = []

    class Display:
        def __init__(self, data):
            shown.append([data["text/plain"]])
            self.own = shown[-1]

        def update(self, data, *, raw):
            self.own.append(data["text/plain"])

    module = types.ModuleType("IPython.display")
    module.display = lambda data, *, raw, display_id: Display(data)
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    monkeypatch.setattr(progress, "_in_notebook", lambda: True)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    return shown


def test_a_notebook_shows_a_line_that_is_empty_in_the_end(cell):
    with pytest.raises(KeyboardInterrupt), Progress("simulating", total=400, unit="runs", patience=0) as shown:
        shown.at(100)
        raise KeyboardInterrupt
    with Progress("exploring", patience=0) as shown:
        shown.at(2000)
    assert cell == [
        ["simulating", "simulating: 100 of 400 runs (25%), 0 s", ""],
        ["exploring", "exploring: 2,000, 0 s", ""],
    ]


def test_work_inside_other_work_that_is_shown_is_silent(cell):
    with Progress("outside", patience=0) as outside:
        outside.at(1)
        with Progress("inside", patience=0) as inside:
            inside.at(1)
    with Progress("after", patience=0) as after:
        after.at(1)
    assert [lines[0] for lines in cell] == ["outside", "after"]


def test_what_is_soon_done_is_not_shown(cell):
    with Progress("brief") as brief:
        brief.at(1)
    assert cell == []


def test_a_terminal_shows_a_bar_and_a_file_nothing(monkeypatch):
    for stream, begins in ((Terminal(), "sweeping 3 levels"), (io.StringIO(), "")):
        monkeypatch.setattr(sys, "stderr", stream)
        with Progress("sweeping", total=9, unit="levels", patience=0) as shown:
            shown.at(3)
        assert begins in stream.getvalue()
        assert (begins == "") == (stream.getvalue() == "")


def test_a_notebook_is_told_from_a_script(monkeypatch):
    assert not progress._in_notebook()
    monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    assert not progress._in_notebook()  # it is loaded, but no cell is run
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert progress._in_notebook()
