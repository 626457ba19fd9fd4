"""The minimal probability of finishing within a budget, whatever the policy: a model checker's Pmin.

All policies count here, including those that never reach a goal.  With b the remaining budget, and Q(s, b) the least
probability of reaching a goal from s at a cost of at most b:

    Q(s, b)    = 0                                                    for b < 0, and in an end component, for any b
    Q(goal, b) = 1                                                    for b >= 0
    Q(s, b)    = min over a of  sum over outcomes of  p Q(s', b - c)   for b >= 0

In an *end component* a policy can stay forever, at whatever cost, and never reach a goal.  No probability is below 0,
so such states end a run.  Without them every policy ends every run, at a goal or not, and the equations have one
solution.  A goal becomes a state with one action, which counts one *arrival* and costs one level.  Q is then the least
expected number of arrivals within the budget, found by the sweep of the exact method with row b + 1 for budget b.
As b grows, Q(start, b) rises to the least probability of reaching a goal at all, where the sweep may stop.

*Guarantee.*  The sweep also carries a lower bound on Q.  Costs without a common step are rounded up for the lower bound
(a run that finishes within a budget then truly does) and down for the upper bound.  If Q may be below 1e-300 and not 0,
the bounds are 0 and 1e-300.
"""

from dataclasses import dataclass, replace

import numpy as np

from prudent.engine.prepare import prepare
from prudent.engine.prepared import Prepared
from prudent.engine.sweep.bounded import without_safety
from prudent.engine.sweep.driver import budget_sweep
from prudent.engine.values.expected_cost import least_expected_cost
from prudent.kernels.sweep import Base, Terms
from prudent.methods.over_budget import SWEEPING, TINY, surely_below
from prudent.models.amend import with_exits
from prudent.models.graph import end_components
from prudent.models.rows import BoolArray, FloatArray, offsets
from prudent.models.ssp import SSP
from prudent.runtime.limits import Limits, Stopped

ARRIVALS = Terms(accrual=1.0, slope=0.0)

SETTLED = 1e-12
"""The relative distance to the probability of reaching a goal at all that is close enough to stop."""


@dataclass(frozen=True)
class Finishing:
    """Least probabilities of finishing within each budget from 0 up, in levels; the last holds for all beyond it."""

    chance: FloatArray  # (n_budgets,)  an upper bound where costs were rounded
    low: FloatArray  # (n_budgets,)
    high: FloatArray  # (n_budgets,)
    stopped: str = ""  # why the sweep ended early, if it did


def with_arrivals(model: SSP) -> tuple[SSP, BoolArray]:
    """Return the model whose runs end in end components and arrive at goals, and a mask of the states in the former.

    One state is added, the last: all goals lead to it, at no cost.
    """
    n, goals = model.n_states, np.flatnonzero(model.is_goal)
    possible = model.probability > 0
    component, _ = end_components(
        model.action_state,
        offsets(possible)[model.outcome_start],
        model.successor[possible],
        n,
        np.ones(model.n_actions, dtype=bool),
    )
    endless = component >= 0
    names = None if model.state_names is None else [*model.state_names, object()]
    return with_exits(model, ~endless[model.action_state], goals, 0.0, names), endless


def finishing(prepared: Prepared, most: int, limits: Limits) -> Finishing:
    """Sweep the budgets from 0 to ``most``, or until larger ones do not matter; ``prepared`` has arrivals."""
    chance, low, high, stopped = _swept(prepared, most, limits)
    if prepared.scale.rounded:
        below = prepare(prepared.model, prepared.scale.step, limits, down=True)
        chance, _, high, later = _swept(below, most, limits)
        stopped = stopped or later
        n = max(len(low), len(chance))
        chance, low, high = (np.append(part, np.full(n - len(part), part[-1])) for part in (high, low, high))
    return Finishing(chance, low, high, stopped)


def _swept(prepared: Prepared, most: int, limits: Limits) -> tuple[FloatArray, FloatArray, FloatArray, str]:
    """Return the least expected number of arrivals within each budget, bounds on it, and why the sweep ended early."""
    counted, none = _counting_arrivals(prepared), np.zeros(prepared.n_states)
    ever = least_expected_cost(counted, limits)
    enough, most_ever = (float(value[counted.start]) for value in (ever.value * (1 - SETTLED), ever.upper))
    swept = budget_sweep(
        counted,
        Base(none, none, none),
        counted.proper_choice(),
        without_safety(counted),
        limits,
        most=most + 1,
        terms=ARRIVALS,
        until=lambda chance: chance >= enough,
    )
    if swept.stopped and (len(swept.excess) == 1 or swept.stopped != "time"):
        raise Stopped(swept.stopped, SWEEPING)
    if len(swept.excess) == 1:  # a run ends at its start, which is not a goal
        return none[:1], none[:1], none[:1], ""
    chance = swept.excess[1:]
    high = surely_below(counted, chance)
    if chance[-1] >= enough or swept.stopped:
        high[-1] = max(high[-1], most_ever)  # it stands for larger budgets, too
    low = np.where(swept.low[1:] < TINY, 0.0, swept.low[1:])
    high = np.where(high > TINY, np.minimum(high, min(most_ever, 1.0)), high)
    return np.minimum(chance, 1.0), low, high, swept.stopped


def _counting_arrivals(prepared: Prepared) -> Prepared:
    """Return the prepared model whose mean cost counts arrivals only, and whose arrivals cost one level."""
    arrival = prepared.successor == prepared.members.state_of[-1]  # the added state; -1 if it cannot be reached
    action = prepared.outcome_action[arrival]
    free_stop = prepared.free_stop.copy()
    free_stop[action] = prepared.outcome_start[action]
    return replace(
        prepared,
        fine=np.where(arrival, prepared.scale.stride, 0),
        cost=np.where(arrival, 1, prepared.cost),
        free_stop=free_stop,
    )
