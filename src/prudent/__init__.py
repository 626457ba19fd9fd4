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
    "SSP": "prudent.models.ssp",
    "CvarEV": "prudent.methods.cvar_ev",
    "CvarWC": "prudent.methods.cvar_wc",
    "Distribution": "prudent.policies.distribution",
    "ModelError": "prudent.errors",
    "Plan": "prudent.results.plan",
    "PrudentError": "prudent.errors",
    "build": "prudent.models.build",
    "domains": "prudent.domains",
    "evaluate": "prudent.policies.evaluate",
    "from_arrays": "prudent.models.build",
    "from_gymnasium": "prudent.io.gymnasium.tables",
    "from_mdptoolbox": "prudent.io.arrays",
    "from_networkx": "prudent.io.networkx",
    "from_quantecon": "prudent.io.arrays",
    "gymnasium_agent": "prudent.io.gymnasium.agents",
    "to_gymnasium": "prudent.io.gymnasium.play",
    "from_storm": "prudent.io.storm.files",
    "load": "prudent.io.formats",
    "load_plan": "prudent.io.formats",
    "save": "prudent.io.formats",
    "simulate": "prudent.policies.simulate",
    "Runs": "prudent.policies.runs",
    "amend": "prudent.models.amend",
    "check": "prudent.planning.check",
    "solve": "prudent.planning.solve",
    "curve": "prudent.planning.curve",
    "Curve": "prudent.planning.curve",
    "frontier": "prudent.planning.frontier",
    "Exceedance": "prudent.methods.objectives",
    "MeanPlusCVaR": "prudent.methods.objectives",
    "ValueAtRisk": "prudent.methods.objectives",
    "WorstCase": "prudent.methods.objectives",
    "Frontier": "prudent.planning.frontier",
    "chances": "prudent.planning.chances",
    "Chances": "prudent.planning.chances",
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
    from prudent.errors import ModelError, PrudentError
    from prudent.io.arrays import from_mdptoolbox, from_quantecon
    from prudent.io.formats import load, load_plan, save
    from prudent.io.gymnasium.agents import gymnasium_agent
    from prudent.io.gymnasium.play import to_gymnasium
    from prudent.io.gymnasium.tables import from_gymnasium
    from prudent.io.networkx import from_networkx
    from prudent.io.storm.files import from_storm
    from prudent.methods.cvar_ev import CvarEV
    from prudent.methods.cvar_wc import CvarWC
    from prudent.methods.objectives import Exceedance, MeanPlusCVaR, ValueAtRisk, WorstCase
    from prudent.models.amend import amend
    from prudent.models.build import build, from_arrays
    from prudent.models.ssp import SSP
    from prudent.planning.chances import Chances, chances
    from prudent.planning.check import check
    from prudent.planning.curve import Curve, curve
    from prudent.planning.frontier import Frontier, frontier
    from prudent.planning.solve import solve
    from prudent.policies.distribution import Distribution
    from prudent.policies.evaluate import evaluate
    from prudent.policies.runs import Runs
    from prudent.policies.simulate import simulate
    from prudent.results.plan import Plan


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'prudent' has no attribute {name!r}")
    home = import_module(_HOME[name])
    value = globals()[name] = home if name in ("domains", "plot") else getattr(home, name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
