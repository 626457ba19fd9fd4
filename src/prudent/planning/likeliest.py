"""The likeliest goal: plans that reach a goal with the maximal probability.

With R(s) the greatest probability that a run from s reaches a goal, and F(s) = 1 - R(s) the least that it fails
(:mod:`prudent.engine.values.reachability`), a plan attains R(start) if and only if, wherever runs can be, it plays only
actions that attain R, and surely reaches a goal or a state from which no goal can be reached: under such actions R of
the state is a martingale.  So these plans are the proper policies of a model with these actions alone, in which a run
that can no longer reach a goal pays a price and ends.

*Ties.*  An action attains R if it loses at most the tolerance, relative to R or to F, whichever is smaller.  Then the
worst of all plans that are left must have the same probability, to 1e-9; if not, the tolerance is lowered.
"""

from dataclasses import replace

import numpy as np

from prudent.engine.prepare import prepare
from prudent.engine.prepared import Prepared
from prudent.engine.values.reachability import Extreme, Reachability
from prudent.errors import PrudentError
from prudent.models.amend import amend
from prudent.models.graph import leading
from prudent.models.rows import BoolArray, FloatArray
from prudent.models.ssp import SSP
from prudent.runtime.limits import UNLIMITED, Limits, go_on
from prudent.runtime.tables import probability

TASK = "finding the maximal probability of reaching a goal"

TIES = (1e-12, 1e-13, 1e-14, 1e-15, -1.0)
"""The most that an equally good action may lose; below 0, exactly what the action found first loses."""

SAME = 1e-9
"""The relative distance within which all plans that are left have the same probability; it is known as closely."""

LEAST = 1e-300
"""The lowest probability of a goal that counts: floats below have too few digits."""


def likeliest(model: SSP, dead_end_cost: float | None, limits: Limits = UNLIMITED) -> tuple[SSP, float]:
    """Return the model restricted to plans that reach a goal with the maximal probability, and this probability.

    A run that can no longer reach a goal pays ``dead_end_cost`` and ends.
    """
    dead = ~model.is_goal & ~leading(model, model.is_goal)
    free = amend(replace(model, cost=np.zeros(model.n_outcomes)), dead_end_cost=1.0)
    prepared = prepare(free, None, limits)
    state_of = prepared.members.state_of[: model.n_states]
    ends = np.zeros(prepared.n_states, dtype=bool)
    ends[state_of[dead & (state_of >= 0)]] = True
    reach, start = Reachability(prepared, ends, limits), prepared.start
    if reach.sure[start]:
        sure = np.append(reach.sure, False)[state_of]  # at -1: a state that the start cannot reach
        leaves = np.bincount(model.outcome_action, ~sure[model.successor] & (model.probability > 0), model.n_actions)
        return model.with_actions(~sure[model.action_state] | (leaves == 0)), 1.0
    wins = reach.extreme(reach.sure, -1.0)
    fails = wins._replace(value=1.0 - wins.value)  # which is as good as long as no run that may fail rather succeeds
    if (wins.value[wins.choice >= 0] > 0.5).any():
        fails = reach.extreme(ends, 1.0)
    small = wins if wins.value[start] <= 0.5 else fails
    known = small.error[start] <= SAME * small.value[start]
    if not known:
        go_on(limits, TASK)
    chance = float(wins.value[start] if small is wins else min(1.0 - fails.value[start], np.nextafter(1.0, 0.0)))
    if chance < LEAST:
        raise PrudentError(
            f"no plan for {model.name} reaches a goal with a probability above {LEAST:g}; add an action that leads to "
            "a goal, or put a price on getting stuck with dead_end_cost= in prudent.amend"
        )
    if dead_end_cost is None:
        raise PrudentError(
            f"no plan for {model.name} reaches a goal with a probability above {probability(chance)}; give the cost of "
            "a failed run with dead_end_cost= (--dead-end-cost)"
        )
    attaining = _attaining(model, reach, wins, fails)
    if attaining is None or not known:
        go_on(limits, TASK)
        raise PrudentError(
            f"the maximal probability of reaching a goal of {model.name}, about {probability(chance)}, is not known "
            "to 9 digits, since cycles are hardly ever left; remove outcomes whose probability does not matter"
        )
    return amend(model.with_actions(attaining), dead_end_cost=dead_end_cost), chance


def _attaining(model: SSP, reach: Reachability, wins: Extreme, fails: Extreme) -> BoolArray | None:
    """Return the actions that attain the maximal probability, or None if plans that play only these might not."""
    prepared, start = reach.prepared, reach.prepared.start
    near = wins.value <= 0.5
    first = np.where(near, wins.choice, fails.choice)
    chosen = prepared.model_action[first[first >= 0]]
    chosen = chosen[chosen >= 0]  # -1: the draw of the initial state
    lost_wins, size_wins = _lost(model, prepared, wins.value, -1.0)
    lost_fails, size_fails = _lost(model, prepared, fails.value, 1.0)
    side = np.append(near, False)[prepared.members.state_of[model.action_state]]
    lost, size = np.where(side, lost_wins, lost_fails), np.where(side, size_wins, size_fails)
    extreme, sought = (wins, (reach.sure, 1.0)) if near[start] else (fails, (reach.dead, -1.0))
    least = np.full(model.n_states, -np.inf)
    least[model.action_state[chosen]] = lost[chosen]
    for tie in TIES:
        kept = (lost <= tie * size) | (lost == least[model.action_state])
        used = np.append(kept, True)[prepared.model_action]
        worst = reach.extreme(*sought, used)
        if abs(worst.value - extreme.value)[start] + worst.error[start] <= SAME * extreme.value[start]:
            return np.asarray(kept)
    return None


def _lost(model: SSP, prepared: Prepared, value: FloatArray, sense: float) -> tuple[FloatArray, FloatArray]:
    """Return how much each action raises the value of its state, or lowers it, and what that is relative to.

    The sum is over differences of values, so it keeps its digits if the action hardly ever leaves its state.
    """
    state_of = prepared.members.state_of
    own = np.append(value, 0.0)[state_of]
    rise = model.probability * (own[model.successor] - own[model.outcome_state])
    moves = model.probability * (state_of[model.successor] != state_of[model.outcome_state])
    lost, away = (np.bincount(model.outcome_action, each, model.n_actions) for each in (sense * rise, moves))
    return np.asarray(lost), np.asarray(own[model.action_state] * away)
