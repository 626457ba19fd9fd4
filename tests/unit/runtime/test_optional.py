"""A missing extra says what to install; one that is broken says what is broken."""

import sys

import pytest

from prudent.errors import PrudentError, needed


def test_what_is_missing_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(PrudentError, match=r"needs networkx; install it with: pip install 'prudent\[graph\]'"):
        needed("networkx", "graph")


def test_what_is_there_is_imported():
    import json

    assert needed("json", "none") is json


def test_what_is_there_but_broken_is_not_called_missing(tmp_path, monkeypatch):
    (tmp_path / "half_there.py").write_text("import surely_not_there\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="surely_not_there"):
        needed("half_there", "any")
