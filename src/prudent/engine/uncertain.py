"""A prepared model with a set of probabilities for each action: nature chooses from it anew at every visit.

Pruning, normalising and collapsing give the same result for all models of the set: they depend on which outcomes are
possible, not on their probabilities.  The probability of an outcome may be 0 as long as nature cannot keep a run from
its goal forever, whatever is played.  Intervals of outcomes that preparation merges are added up: nature treats them
alike.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from prudent.engine.prepared import Prepared
from prudent.errors import Defect, PrudentError
from prudent.kernels.nature import Sets, Values, align, worst_after
from prudent.models.graph import Order, ordered_blocks
from prudent.models.intervals import Intervals, held_actions
from prudent.models.rows import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Uncertain:
    """A prepared model and the sets from which nature chooses."""

    prepared: Prepared
    sets: Sets  # of the model's states, then of the lists that actions share
    paid: FloatArray  # (n_outcomes,)  costs in levels, not rounded

    @property
    def n_nodes(self) -> int:
        """The number of states and shared lists."""
        return len(self.sets.action_start) - 1

    def values(
        self, base: FloatArray, table: FloatArray | None = None, *, slope: float = 0.0, order: IntArray | None = None
    ) -> Values:
        """Return values by state and level, for kernels: with a slope an excess, without one an expected cost."""
        table, order = base[:, None] if table is None else table, np.arange(len(self.paid)) if order is None else order
        added = np.zeros_like(self.paid) if slope else self.paid
        return Values(table.ravel(), table.shape[1], base, slope, added, order)

    def worst_after(self, actions: IntArray, level: int, values: Values) -> tuple[FloatArray, FloatArray]:
        """Return the worst expectation after each of some actions at a level, and nature's probabilities for them."""
        found, nature = np.empty(len(actions)), np.empty(len(self.paid))
        worst_after(actions, level, self.sets, values, found, nature)
        return found, nature

    @property
    def rounding(self) -> float:
        """The largest relative error of one backup: rounding, and values that count as alike."""
        most = int(np.diff(self.sets.outcome_start).max(initial=1))
        return float((most + 6) * np.finfo(float).eps + 1e-13)

    @cached_property
    def order(self) -> Order:
        """The nodes of a model without cycles, successors first."""
        if self.n_nodes == self.prepared.n_states:
            return self.prepared.order
        arcs = self.sets.outcome_start[self.sets.action_start], self.sets.successor
        return ordered_blocks(*arcs, threads=self.prepared.threads)

    @cached_property
    def least_spent(self) -> IntArray:
        """The fewest levels that a run in each node can have used."""
        prepared, sets, n = self.prepared, self.sets, self.prepared.n_states
        least = np.append(prepared.least_spent, np.full(self.n_nodes - n, np.iinfo(np.int64).max))
        step = sets.outcome_start[: prepared.n_actions][sets.successor[sets.outcome_start[: prepared.n_actions]] >= n]
        state = prepared.action_state[np.searchsorted(sets.outcome_start, step)]
        np.minimum.at(least, sets.successor[step], least[state] + sets.cost[step])
        return least


def uncertain(prepared: Prepared, intervals: Intervals, *, down: bool = False) -> Uncertain:
    """Return a prepared model with the intervals of its model's outcomes; ``down``: its costs are rounded down."""
    model, scale, state_of = prepared.model, prepared.scale, prepared.members.state_of
    n, first = len(prepared.cost), prepared.model_action < 0
    arcs = prepared.action_start, prepared.outcome_start, prepared.successor, prepared.cost
    (low, high), (loop_low, loop_high) = np.zeros((2, n)), np.zeros((2, prepared.n_actions))
    sets = Sets(*arcs, low, high, loop_low, loop_high, np.zeros(0))
    known = (state_of[model.outcome_state] >= 0) & (state_of[model.successor] >= 0)
    cost = np.full(model.n_outcomes, -1)
    cost[known] = scale.normalised(model.cost[known], model.outcome_state[known], model.successor[known])
    cost, free_below = (scale.surely(cost), scale.stride) if down else (cost, 1)
    rows = state_of[model.successor], cost, intervals.low, intervals.high, model.probability
    own = prepared.action_state, prepared.fine, free_below
    misfit = align(prepared.model_action, model.outcome_start, *rows, *own, sets)
    if misfit >= 0:
        raise Defect(f"{model.name}: the outcomes of {model.place(int(prepared.model_action[misfit]))} do not match")
    chance = first[prepared.outcome_action]  # the initial state is not uncertain
    sets.low[chance] = sets.high[chance] = prepared.probability[chance]
    refuse_endless(prepared, sets)
    return Uncertain(prepared, with_spare(sets), scale.unrounded(prepared.fine))


def refuse_endless(prepared: Prepared, sets: Sets) -> None:
    """Reject sets from which nature can choose so that some runs never end: their worst case has no bound."""
    doubtful = (sets.low <= 0) & (sets.successor != prepared.outcome_state)
    doubtful = np.bincount(prepared.outcome_action, doubtful, prepared.n_actions) > 0
    if not doubtful.any():
        return
    held = held_actions(prepared, sets, np.ones(prepared.n_actions, dtype=bool), sets.loop_high) & doubtful
    if held.any():  # otherwise nature does not add to what plans can do themselves
        place = prepared.model.place(int(prepared.model_action[np.flatnonzero(held)[0]]))
        raise PrudentError(
            f"uncertainty: {place}: every outcome that leads towards a goal may have probability 0, so runs may never "
            "end and their worst-case cost has no bound; give these outcomes a low above 0, or add an action that "
            "surely leads towards a goal"
        )


def with_spare(sets: Sets) -> Sets:
    """Return the sets with the probability that each leaves nature to choose."""
    least = sets.loop_low + np.add.reduceat(sets.low, sets.outcome_start[:-1])
    return sets._replace(spare=np.maximum(1 - least, 0.0))
