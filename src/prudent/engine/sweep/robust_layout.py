"""The layout of a model for sweeps against nature.

As in a sweep of one model, an outcome list that several actions share, intervals included, becomes a node of its own,
to which they lead by one sure step: nature chooses for all of them at once.
"""

from dataclasses import replace

import numpy as np

from prudent.engine.sweep.nodes import Nodes
from prudent.engine.uncertain import Uncertain, with_spare
from prudent.kernels.free_cycles import Dense
from prudent.kernels.nature import Sets
from prudent.kernels.robust_levels import AHEAD, Scratch
from prudent.models.rows import IntArray, ranges

__all__ = ["error_of", "largest_block", "new_scratch", "shared", "tile_of"]

LONGEST, BATCH = 1024, 2**26
"""The most levels of a tile, and its most outcomes times levels: some tenths of a second."""

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


def tile_of(model: Uncertain) -> int:
    """Return how many levels are settled at once."""
    prepared = model.prepared
    tile = LONGEST if prepared.acyclic else min(prepared.cost_range[0], LONGEST)
    return max(min(tile, BATCH // max(len(model.sets.cost), 1)), 1)


def new_scratch(model: Uncertain, orders: tuple[IntArray, IntArray], tile: int) -> Scratch:
    """Return the arrays for one thread; threads share the orders, since only one thread at a time has an action."""
    most_actions = int(np.diff(model.sets.action_start).max(initial=1))
    most_outcomes = int(np.diff(model.sets.outcome_start).max(initial=1))
    sizes = [most_outcomes] * 2 + [AHEAD] * 5 + [most_actions * tile] + [tile] * 3
    return Scratch(*orders, *map(np.empty, sizes), dense=_dense(model), width=tile)  # type: ignore[misc, arg-type]


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
