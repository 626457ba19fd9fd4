"""Prudent: risk-averse plans with guarantees.

Prudent solves stochastic shortest path problems.  It first minimises the CVaR of the total cost, the mean cost of the
worst runs; among all plans that attain the optimal CVaR, it then minimises the expected cost.  Results are exact and
come with bounds.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

# Names are imported when first used: `import prudent` and `prudent --help` load neither numba nor SciPy.
# No module is called like a function here, or importing it would hide the function.
_HOME = {  # in the order of a first visit
    "SSP": "prudent.models.ssp",
    "build": "prudent.models.build",
    "from_arrays": "prudent.models.build",
    "from_events": "prudent.models.events",
    "from_gymnasium": "prudent.io.gymnasium.tables",
    "from_mdptoolbox": "prudent.io.arrays",
    "from_networkx": "prudent.io.networkx",
    "from_quantecon": "prudent.io.arrays",
    "from_storm": "prudent.io.storm.files",
    "from_episodes": "prudent.io.episodes",
    "Estimate": "prudent.models.estimate",
    "Intervals": "prudent.models.intervals",
    "load": "prudent.io.formats",
    "save": "prudent.io.formats",
    "amend": "prudent.models.amend",
    "check": "prudent.planning.check",
    "domains": "prudent.domains",
    "solve": "prudent.planning.solve",
    "search": "prudent.planning.search",
    "curve": "prudent.planning.curve",
    "Curve": "prudent.planning.curve",
    "frontier": "prudent.planning.frontier",
    "Frontier": "prudent.planning.frontier",
    "chances": "prudent.planning.chances",
    "Chances": "prudent.planning.chances",
    "study": "prudent.planning.study",
    "Study": "prudent.results.study",
    "replan": "prudent.planning.replan",
    "Exceedance": "prudent.methods.objectives",
    "Excess": "prudent.methods.objectives",
    "ValueAtRisk": "prudent.methods.objectives",
    "MeanPlusCVaR": "prudent.methods.objectives",
    "WorstCase": "prudent.methods.objectives",
    "CvarWC": "prudent.methods.cvar_wc",
    "CvarEV": "prudent.methods.cvar_ev",
    "Plan": "prudent.results.plan",
    "load_plan": "prudent.io.formats",
    "evaluate": "prudent.planning.evaluate",
    "Distribution": "prudent.policies.distribution",
    "simulate": "prudent.planning.simulate",
    "stress": "prudent.planning.stress",
    "Stress": "prudent.results.stress",
    "Runs": "prudent.results.runs",
    "gymnasium_agent": "prudent.io.gymnasium.agents",
    "to_gymnasium": "prudent.io.gymnasium.agents",
    "plot": "prudent.plot",
    "PrudentError": "prudent.errors",
    "ModelError": "prudent.errors",
}

if TYPE_CHECKING:
    from prudent import domains as domains
    from prudent import plot as plot
    from prudent.errors import ModelError as ModelError
    from prudent.errors import PrudentError as PrudentError
    from prudent.io.arrays import from_mdptoolbox as from_mdptoolbox
    from prudent.io.arrays import from_quantecon as from_quantecon
    from prudent.io.episodes import from_episodes as from_episodes
    from prudent.io.formats import load as load
    from prudent.io.formats import load_plan as load_plan
    from prudent.io.formats import save as save
    from prudent.io.gymnasium.agents import gymnasium_agent as gymnasium_agent
    from prudent.io.gymnasium.agents import to_gymnasium as to_gymnasium
    from prudent.io.gymnasium.tables import from_gymnasium as from_gymnasium
    from prudent.io.networkx import from_networkx as from_networkx
    from prudent.io.storm.files import from_storm as from_storm
    from prudent.methods.cvar_ev import CvarEV as CvarEV
    from prudent.methods.cvar_wc import CvarWC as CvarWC
    from prudent.methods.objectives import Exceedance as Exceedance
    from prudent.methods.objectives import Excess as Excess
    from prudent.methods.objectives import MeanPlusCVaR as MeanPlusCVaR
    from prudent.methods.objectives import ValueAtRisk as ValueAtRisk
    from prudent.methods.objectives import WorstCase as WorstCase
    from prudent.models.amend import amend as amend
    from prudent.models.build import build as build
    from prudent.models.build import from_arrays as from_arrays
    from prudent.models.estimate import Estimate as Estimate
    from prudent.models.events import from_events as from_events
    from prudent.models.intervals import Intervals as Intervals
    from prudent.models.ssp import SSP as SSP
    from prudent.planning.chances import Chances as Chances
    from prudent.planning.chances import chances as chances
    from prudent.planning.check import check as check
    from prudent.planning.curve import Curve as Curve
    from prudent.planning.curve import curve as curve
    from prudent.planning.evaluate import evaluate as evaluate
    from prudent.planning.frontier import Frontier as Frontier
    from prudent.planning.frontier import frontier as frontier
    from prudent.planning.replan import replan as replan
    from prudent.planning.search import search as search
    from prudent.planning.simulate import simulate as simulate
    from prudent.planning.solve import solve as solve
    from prudent.planning.stress import stress as stress
    from prudent.planning.study import study as study
    from prudent.policies.distribution import Distribution as Distribution
    from prudent.results.plan import Plan as Plan
    from prudent.results.runs import Runs as Runs
    from prudent.results.stress import Stress as Stress
    from prudent.results.study import Study as Study
else:  # computed, so that type checkers go by the imports above
    __all__ = [*_HOME, "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'prudent' has no attribute {name!r}")
    home = import_module(_HOME[name])
    value = globals()[name] = home if name in ("domains", "plot") else getattr(home, name)
    return value


def __dir__() -> list[str]:
    return sorted([*_HOME, "__version__"])
