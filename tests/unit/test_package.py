"""The package as a whole: what importing it loads, what it exports, what its doctests say."""

import doctest
import importlib
import pkgutil
import subprocess
import sys

import pytest

import prudent

HEAVY = ("numba", "scipy", "matplotlib", "pandas", "gymnasium", "starlette", "plotly", "stormpy", "networkx")

NEEDED = {  # by the examples of these modules
    "prudent.bridges.graphs": "networkx",
    "prudent.bridges.gymnasium_agents": "gymnasium",
    "prudent.bridges.gymnasium_envs": "gymnasium",
    "prudent.bridges.gymnasium_tables": "gymnasium",
    "prudent.gym": "gymnasium",
}

MODELS = "import prudent; prudent.domains.inventory_control(); prudent.load; prudent.save"


@pytest.mark.parametrize("statement", ["import prudent", "import prudent.cli", MODELS])
def test_importing_loads_nothing_heavy(statement):
    code = f"{statement}; import sys; print([m for m in {HEAVY} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout.strip() == "[]"


def test_everything_exported_is_there_and_documented():
    for name in prudent.__all__:
        assert getattr(prudent, name).__doc__ or name == "__version__"
    assert set(prudent.__all__) <= set(dir(prudent))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        prudent.nothing  # noqa: B018


def modules():
    return [m.name for m in pkgutil.walk_packages(prudent.__path__, "prudent.")]


@pytest.mark.parametrize("name", modules())
def test_doctests(name):
    if name in NEEDED:
        pytest.importorskip(NEEDED[name])
    if name.startswith("prudent.plot"):
        pytest.importorskip("matplotlib", reason="the examples draw")
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


def test_every_export_has_an_example():
    every = [n for n in prudent.__all__ if n.startswith(("from_", "to_"))]
    every += ["build", "load", "solve", "evaluate", "gymnasium_agent"]
    missing = [n for n in every if ">>>" not in getattr(prudent, n).__doc__]
    assert missing == []
