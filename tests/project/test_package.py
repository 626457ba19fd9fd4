"""The package as a whole: what importing it loads, what it exports, what its doctests say."""

import doctest
import importlib
import importlib.util
import inspect
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import prudent

ROOT = Path(__file__).parents[2]

HEAVY = ("numba", "scipy", "matplotlib", "pandas", "gymnasium", "starlette", "plotly", "stormpy", "networkx")

NEEDED = {  # by the examples of these modules
    "prudent.io.networkx": "networkx",
    "prudent.io.gymnasium.agents": "gymnasium",
    "prudent.io.gymnasium.environments": "gymnasium",
    "prudent.io.gymnasium.tables": "gymnasium",
    "prudent.io.storm.files": "stormpy",
    "prudent.gym": "gymnasium",
}

MODELS = "import prudent; prudent.domains.inventory_control(); prudent.load; prudent.save"


@pytest.mark.parametrize("statement", ["import prudent", "import prudent.apps.cli.main", MODELS])
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
    if name.startswith("prudent.apps.web"):
        pytest.importorskip("starlette", reason="the server is made of it")
    runner = doctest.DocTestRunner()
    for example in doctest.DocTestFinder().find(importlib.import_module(name)):
        if not example.name.endswith(".to_frame") or importlib.util.find_spec("pandas"):
            runner.run(example)
    assert runner.failures == 0


def listed():
    """Return the names in the reference."""
    return re.findall(r"^   ([A-Za-z0-9_.]+)$", (ROOT / "docs" / "api.md").read_text(), flags=re.MULTILINE)


def documented():
    """Yield everything in the reference by its name: functions, classes, and the classes' methods."""
    for name in listed():
        home, _, last = f"prudent.{name}".rpartition(".")
        each = getattr(importlib.import_module(home), last)
        yield name, each
        if inspect.isclass(each):
            for method in dir(each):
                function = getattr(each, method)
                if not method.startswith("_") and (inspect.isfunction(function) or inspect.ismethod(function)):
                    yield f"{name}.{method}", function


def test_everything_in_the_reference_has_an_example():
    docs = {name: each.__doc__ or "" for name, each in documented()}
    assert len(docs) > 100
    assert [name for name, doc in docs.items() if ">>>" not in doc and "(internal)." not in doc] == []
    assert [name for name, doc in docs.items() if "+SKIP" in doc] == []


def test_the_reference_lists_everything_public():
    public = {name for name in prudent.__all__ if name not in ("domains", "plot", "__version__")}
    public |= {f"domains.{name}" for name in prudent.domains.__all__}
    public |= {f"plot.{name}" for name in prudent.plot.__all__}
    assert public - set(listed()) == set()


def test_the_daily_run_is_the_linters_the_suite_and_the_documentation_once_each():
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    assert (ROOT / ".ci" / "run").read_text().splitlines()[-1] == "make test"
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL")}
    done = subprocess.run(
        ["make", "--dry-run", "test"], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    tools = ("ruff check", "ruff format", "mypy", "lint-imports", "python docs/prose.py", "-m pytest", "-m sphinx")
    found = re.findall("|".join(map(re.escape, tools)), done.stdout)
    assert found == list(tools)


def test_every_requirement_has_a_lowest_version_to_run_with():
    done = subprocess.run([sys.executable, "tests/lowest.py"], cwd=ROOT, capture_output=True, text=True, check=True)
    lowest = sorted(line.partition("==")[0] for line in set(done.stdout.split()))  # a name once: extras agree
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = project["dependencies"], *project["optional-dependencies"].values()
    assert lowest == sorted({re.match(r"[\w-]+", each)[0] for group in groups for each in group} - {"prudent"})
