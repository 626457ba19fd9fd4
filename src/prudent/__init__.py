"""Prudent: risk-averse plans with guarantees.

Prudent solves stochastic shortest path problems.  It first minimises the CVaR of the total cost, the mean cost of the
worst runs; among all plans that attain the optimal CVaR, it then minimises the expected cost.  Results are exact and
come with bounds.
"""

from importlib import import_module
from pathlib import Path
from typing import Any

__version__ = "0.2.0"

# Names are imported when first used: `import prudent` and `prudent --help` load neither numba nor SciPy.
# No module is called like a function here, or importing it would hide the function.
_LINES = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8").splitlines()
_HOME = {line.split()[-1]: line.split()[1] for line in _LINES if line.startswith("from ")}

__all__ = [*_HOME, "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'prudent' has no attribute {name!r}")
    if _HOME[name] == "prudent":
        return import_module(f"prudent.{name}")
    value = globals()[name] = getattr(import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
