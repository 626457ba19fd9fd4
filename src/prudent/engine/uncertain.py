"""A prepared model with a set of probabilities for each action: nature chooses from it anew at every visit.

Every outcome keeps a chance, so what preparation prunes, normalises and collapses is the same for all models of the
set.  Intervals of outcomes that preparation merges are added up: nature treats them alike.
"""

from dataclasses import dataclass

import numpy as np

from prudent.engine.prepared import Prepared
from prudent.errors import Defect
from prudent.kernels.robust import Sets, align
from prudent.models.intervals import Intervals
from prudent.models.rows import IntArray

__all__ = ["Uncertain", "uncertain"]


@dataclass(frozen=True, eq=False)
class Uncertain:
    """A prepared model and what nature may choose from."""

    prepared: Prepared
    sets: Sets

    @property
    def fresh_order(self) -> IntArray:
        """The outcomes of each action in any order, to be sorted."""
        return np.arange(len(self.prepared.cost))

    @property
    def rounding(self) -> float:
        """The largest relative error of one backup: rounding, and values that count as alike."""
        most = int(np.diff(self.prepared.outcome_start).max(initial=1))
        return float((most + 6) * np.finfo(float).eps + 1e-13)


def uncertain(prepared: Prepared, intervals: Intervals) -> Uncertain:
    """Return a prepared model with the intervals of its model's outcomes."""
    model, scale, state_of = prepared.model, prepared.scale, prepared.members.state_of
    n, first = len(prepared.cost), prepared.model_action < 0
    sets = Sets(
        prepared.action_start,
        prepared.outcome_start,
        prepared.successor,
        prepared.cost,
        scale.unrounded(prepared.fine),
        np.zeros(n),
        np.zeros(n),
        np.zeros(prepared.n_actions),
        np.zeros(prepared.n_actions),
    )
    known = (state_of[model.outcome_state] >= 0) & (state_of[model.successor] >= 0)
    cost = np.full(model.n_outcomes, -1)
    cost[known] = scale.normalised(model.cost[known], model.outcome_state[known], model.successor[known])
    rows = state_of[model.successor], cost, intervals.low, intervals.high, model.probability
    misfit = align(prepared.model_action, model.outcome_start, *rows, prepared.action_state, prepared.fine, sets)
    if misfit >= 0:
        raise Defect(f"{model.name}: the outcomes of {model.place(int(prepared.model_action[misfit]))} do not fit")
    chance = first[prepared.outcome_action]  # where a run starts is not uncertain
    sets.low[chance] = sets.high[chance] = prepared.probability[chance]
    return Uncertain(prepared, sets)
