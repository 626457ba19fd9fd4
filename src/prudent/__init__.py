"""Prudent: plans for people who must not have a bad day.

First the best bad tail (CVaR of the total cost), then, among all plans that attain it, the best average;
exact, with bounds, on stochastic shortest path problems.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Names are imported when first used: `import prudent` and `prudent --help` load neither numba nor SciPy.
# No module is called like a function here, or importing it would hide the function.
_HOME = {
    "SSP": "prudent.model",
    "CvarEV": "prudent.methods.cvar_expected",
    "CvarWC": "prudent.methods.cvar_game",
    "Distribution": "prudent.risk",
    "ModelError": "prudent.errors",
    "Plan": "prudent.plan",
    "PrudentError": "prudent.errors",
    "build": "prudent.building",
    "domains": "prudent.domains",
    "evaluate": "prudent.evaluation",
    "from_arrays": "prudent.building",
    "from_gymnasium": "prudent.bridges.gymnasium_tables",
    "from_mdptoolbox": "prudent.bridges.arrays",
    "from_networkx": "prudent.bridges.graphs",
    "from_quantecon": "prudent.bridges.arrays",
    "gymnasium_agent": "prudent.bridges.gymnasium_agents",
    "to_gymnasium": "prudent.bridges.gymnasium_tables",
    "from_storm": "prudent.files.storm",
    "load": "prudent.files",
    "load_plan": "prudent.files",
    "save": "prudent.files",
    "simulate": "prudent.simulation",
    "Runs": "prudent.runs",
    "amend": "prudent.amending",
    "check": "prudent.checking",
    "solve": "prudent.solving",
    "curve": "prudent.alphas",
    "Curve": "prudent.alphas",
    "frontier": "prudent.tradeoff",
    "Exceedance": "prudent.objectives",
    "MeanPlusCVaR": "prudent.objectives",
    "ValueAtRisk": "prudent.objectives",
    "WorstCase": "prudent.objectives",
    "Frontier": "prudent.tradeoff",
    "chances": "prudent.staying",
    "Chances": "prudent.staying",
    "plot": "prudent.plot",
}
__all__ = [  # noqa: RUF022 (the order of a first visit)
    "SSP",
    "build",
    "from_arrays",
    "from_gymnasium",
    "from_mdptoolbox",
    "from_networkx",
    "from_quantecon",
    "from_storm",
    "load",
    "save",
    "amend",
    "check",
    "domains",
    "solve",
    "curve",
    "Curve",
    "frontier",
    "Frontier",
    "chances",
    "Chances",
    "Exceedance",
    "ValueAtRisk",
    "MeanPlusCVaR",
    "WorstCase",
    "CvarWC",
    "CvarEV",
    "Plan",
    "load_plan",
    "evaluate",
    "Distribution",
    "simulate",
    "Runs",
    "gymnasium_agent",
    "to_gymnasium",
    "plot",
    "PrudentError",
    "ModelError",
    "__version__",
]

if TYPE_CHECKING:
    from prudent import domains, plot
    from prudent.alphas import Curve, curve
    from prudent.amending import amend
    from prudent.bridges.arrays import from_mdptoolbox, from_quantecon
    from prudent.bridges.graphs import from_networkx
    from prudent.bridges.gymnasium_agents import gymnasium_agent
    from prudent.bridges.gymnasium_tables import from_gymnasium, to_gymnasium
    from prudent.building import build, from_arrays
    from prudent.checking import check
    from prudent.errors import ModelError, PrudentError
    from prudent.evaluation import evaluate
    from prudent.files import load, load_plan, save
    from prudent.files.storm import from_storm
    from prudent.methods.cvar_expected import CvarEV
    from prudent.methods.cvar_game import CvarWC
    from prudent.model import SSP
    from prudent.objectives import Exceedance, MeanPlusCVaR, ValueAtRisk, WorstCase
    from prudent.plan import Plan
    from prudent.risk import Distribution
    from prudent.runs import Runs
    from prudent.simulation import simulate
    from prudent.solving import solve
    from prudent.staying import Chances, chances
    from prudent.tradeoff import Frontier, frontier


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'prudent' has no attribute {name!r}")
    home = import_module(_HOME[name])
    value = globals()[name] = home if name in ("domains", "plot") else getattr(home, name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
