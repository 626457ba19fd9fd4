"""What users import: every name with its home, in the order of a first visit.

``__init__.py`` reads this list, and so do type checkers.
"""

# isort: off
from prudent.models.ssp import SSP as SSP
from prudent.models.build import build as build
from prudent.models.build import from_arrays as from_arrays
from prudent.models.events import from_events as from_events
from prudent.io.gymnasium.tables import from_gymnasium as from_gymnasium
from prudent.io.arrays import from_mdptoolbox as from_mdptoolbox
from prudent.io.networkx import from_networkx as from_networkx
from prudent.io.arrays import from_quantecon as from_quantecon
from prudent.io.storm.files import from_storm as from_storm
from prudent.io.episodes import from_episodes as from_episodes
from prudent.models.estimate import Estimate as Estimate
from prudent.models.intervals import Intervals as Intervals
from prudent.io.formats import load as load
from prudent.io.formats import save as save
from prudent.models.amend import amend as amend
from prudent.planning.check import check as check
from prudent import domains as domains
from prudent.planning.solve import solve as solve
from prudent.planning.search import search as search
from prudent.planning.curve import curve as curve
from prudent.planning.curve import Curve as Curve
from prudent.planning.frontier import frontier as frontier
from prudent.planning.frontier import Frontier as Frontier
from prudent.planning.chances import chances as chances
from prudent.planning.chances import Chances as Chances
from prudent.planning.study import study as study
from prudent.results.study import Study as Study
from prudent.planning.replan import replan as replan
from prudent.methods.objectives import Exceedance as Exceedance
from prudent.methods.objectives import Excess as Excess
from prudent.methods.objectives import ValueAtRisk as ValueAtRisk
from prudent.methods.objectives import MeanPlusCVaR as MeanPlusCVaR
from prudent.methods.objectives import WorstCase as WorstCase
from prudent.methods.cvar_wc import CvarWC as CvarWC
from prudent.methods.cvar_ev import CvarEV as CvarEV
from prudent.results.plan import Plan as Plan
from prudent.io.formats import load_plan as load_plan
from prudent.planning.evaluate import evaluate as evaluate
from prudent.policies.distribution import Distribution as Distribution
from prudent.planning.evaluate import simulate as simulate
from prudent.planning.stress import stress as stress
from prudent.results.stress import Stress as Stress
from prudent.results.runs import Runs as Runs
from prudent.io.gymnasium.agents import gymnasium_agent as gymnasium_agent
from prudent.io.gymnasium.agents import to_gymnasium as to_gymnasium
from prudent import plot as plot
from prudent.errors import PrudentError as PrudentError
from prudent.errors import ModelError as ModelError

__version__: str
