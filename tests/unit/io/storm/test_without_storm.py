"""Without the extra ``storm``: everything that needs it says so, and nothing else minds."""

import sys

import pytest

import prudent
from prudent import PrudentError

NEEDS = r"this needs stormpy; install it with: pip install 'prudent\[storm\]'"


@pytest.fixture(autouse=True)
def without_storm(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "stormpy"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "stormpy", None)


@pytest.mark.parametrize("name", ["model.prism", "model.nm", "model.pm", "model.jani", "model.drn", "MODEL.PRISM"])
def test_files_through_storm(name, tmp_path):
    (tmp_path / name).write_text("anything")
    with pytest.raises(PrudentError, match=NEEDS):
        prudent.load(tmp_path / name)


def test_models_of_storm():
    with pytest.raises(PrudentError, match=NEEDS):
        prudent.from_storm(object())


def test_other_files_take_no_property_and_no_constants(tmp_path):
    prudent.save(prudent.domains.figure_2(), tmp_path / "model.json")
    with pytest.raises(
        PrudentError, match=r"model.json: a .json file defines its own costs and goals; .* property= \(--property\)"
    ):
        prudent.load(tmp_path / "model.json", property='R{"cost"}min=? [F "goal"]')
    with pytest.raises(PrudentError, match=r"model.json: a .json file has no undefined constants; leave out"):
        prudent.load(tmp_path / "model.json", constants={"N": 3})
    with pytest.raises(PrudentError, match=r"model.drn: a .drn file has no undefined constants"):
        prudent.load(tmp_path / "model.drn", constants={})


def test_a_chain_is_written(tmp_path):
    prudent.save(prudent.solve(prudent.domains.figure_2(), 0.1).chain(), tmp_path / "chain.drn")
    assert "@type: DTMC" in (tmp_path / "chain.drn").read_text()
