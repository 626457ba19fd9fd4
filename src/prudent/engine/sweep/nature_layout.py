"""A model laid out for sweeps against nature, and the levels settled: in all states, for any question.

As in a sweep of one model, an outcome list that several actions share, intervals included, becomes a node of its own,
to which they lead by one sure step: nature chooses for all of them at once.

Without cycles levels are settled in long tiles, each state no further than a run can have left there.  With cycles a
tile is as long as the least cost above 0, so that states look only at earlier tiles, or at states at no cost from them.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from prudent.engine.sweep.nodes import Nodes
from prudent.engine.uncertain import Uncertain, with_spare
from prudent.kernels.nature import Sets
from prudent.kernels.nature_levels import AHEAD, Dense, Scratch
from prudent.kernels.nature_sweep import RobustGiven, RobustPlan, settle_backwards, settle_blocks
from prudent.kernels.team import new_counters
from prudent.models.rows import ranges
from prudent.runtime.team import side_by_side

AT_ONCE, LONGEST, BATCH = 16, 1024, 2**26
"""The fewest and the most levels that are settled at once, and the most outcomes times levels: some tenths of a second.
"""

ENOUGH = 250_000
"""Outcomes times levels for each thread to be worth starting: about a millisecond."""

CYCLES = 1e-9
"""The addition to the error if there are free cycles."""


def shared(model: Uncertain) -> Uncertain:
    """Return the same with a node for each list that actions share, if there are no cycles."""
    prepared, sets = model.prepared, model.sets
    if not prepared.acyclic or prepared.scale.rounded or sets.loop_high.any():
        return model
    nodes, n, start = Nodes.sharing(replace(prepared, probability=sets.low)), prepared.n_actions, sets.outcome_start
    target = nodes.successor[nodes.outcome_start[:n]] - prepared.n_states
    sharing, own = np.flatnonzero(target >= 0), np.flatnonzero(target < 0)
    if (sets.high[ranges(start, sharing)] != sets.high[ranges(start, nodes.heads[target[sharing]])]).any():
        return model  # lists alike but for an upper bound
    high, none = np.ones(len(nodes.cost)), np.zeros(len(nodes.mean_cost))
    high[ranges(nodes.outcome_start, own)] = sets.high[ranges(start, own)]
    high[nodes.outcome_start[n] :] = sets.high[ranges(start, nodes.heads)]
    rows = nodes.action_start, nodes.outcome_start, nodes.successor, nodes.cost, nodes.cost.astype(np.float64)
    return Uncertain(prepared, with_spare(Sets(*rows, nodes.probability, high, none, none, none)))


@dataclass
class Levels:
    """Settles levels of a model for a question, with up to so many threads."""

    model: Uncertain
    threads: int
    at_once: int = field(init=False)  # the most levels to settle in one call
    _scratch: list[Scratch] = field(init=False)  # of each thread

    def __post_init__(self) -> None:
        prepared = self.model.prepared
        width = LONGEST if prepared.acyclic else min(prepared.cost_range[0], LONGEST)
        width = max(min(width, BATCH // max(len(self.model.sets.cost), 1)), 1)
        self.at_once = max(width, AT_ONCE)
        width = self.at_once if prepared.acyclic else width
        lanes = max(min(self.threads, self.model.order.width), 1) if prepared.acyclic else 1
        self._scratch = [_scratch(self.model, width) for _ in range(lanes)]

    def settle(self, question: RobustPlan | RobustGiven, first: int, last: int) -> None:
        """Settle the levels from ``first`` to ``last``."""
        model, prepared, sets = self.model, self.model.prepared, self.model.sets
        if not prepared.acyclic:
            settle_blocks(*prepared.free_blocks[:2], first, last, question, sets, self._scratch[0])
            return
        counters, about = new_counters(), (model.order.backwards, first, last, model.least_spent, question, sets)
        lanes = max(min(len(self._scratch), (last - first) * len(sets.cost) // ENOUGH), 1)
        side_by_side(lanes, lambda lane: settle_backwards(counters, *about, self._scratch[lane]))


def _scratch(model: Uncertain, width: int) -> Scratch:
    """Return the arrays for one thread."""
    most_actions = int(np.diff(model.sets.action_start).max(initial=1))
    most_outcomes = int(np.diff(model.sets.outcome_start).max(initial=1))
    sizes = [most_outcomes] * 2 + [AHEAD] * 5 + [width] * 3 + [(most_actions, width)]
    return Scratch(*map(np.empty, sizes), dense=_dense(model))  # type: ignore[misc, arg-type]


def largest_block(model: Uncertain) -> int:
    """Return the largest number of states with free cycles among them."""
    return 1 if model.prepared.acyclic else int(np.diff(model.prepared.free_blocks[0]).max(initial=1))


def _dense(model: Uncertain) -> Dense:
    size = largest_block(model)
    rank = np.zeros(1, dtype=np.int64)
    if size > 1:
        start, states = model.prepared.free_blocks[:2]
        rank = np.empty(len(states), dtype=np.int64)
        rank[states] = np.arange(len(states)) - np.repeat(start[:-1], np.diff(start))
    return Dense(rank, np.zeros(size, dtype=np.int64), np.empty((size, size)), *np.empty((3, size)))


def error_of(model: Uncertain, levels: int) -> float:
    """Return a bound on the relative error of values up to a level."""
    prepared = model.prepared
    if prepared.acyclic:
        return 2 * (prepared.longest + 1) * model.rounding
    sums = (int(prepared.free_depth.max(initial=0)) + 1) * (levels + 1)
    return 2 * (sums + 1) * model.rounding + (CYCLES if largest_block(model) > 1 else 0.0)
