"""The nodes that tiles are laid out for: states, and the outcome lists that actions share up to a shift of costs."""

from typing import NamedTuple

import numpy as np

from prudent.engine.prepared import Prepared
from prudent.kernels.sharing import compare_rows, first_mixed, mix_rows, share
from prudent.models.rows import BoolArray, FloatArray, IntArray, offsets
from prudent.runtime.team import cut, in_parts

FEW = 3
"""The fewest outcomes of a list that is worth sharing."""


class Nodes(NamedTuple):
    """States, then shared outcome lists, as a graph: an action with a shared list is one sure step to it."""

    action_start: IntArray  # (n_nodes + 1,)  a list has one action
    outcome_start: IntArray  # (n_actions + 1,)
    probability: FloatArray  # (n_outcomes,)
    successor: IntArray  # (n_outcomes,)
    cost: IntArray  # (n_outcomes,)
    mean_cost: FloatArray  # (n_actions,)
    heads: IntArray  # for each list, the first of the model's actions that has it

    @property
    def n_nodes(self) -> int:
        """The number of states and shared lists."""
        return len(self.action_start) - 1

    @classmethod
    def of(cls, prepared: Prepared) -> "Nodes":
        """Return the states of a model: no list is shared."""
        starts, where = (prepared.action_start, prepared.outcome_start), (prepared.successor, prepared.cost)
        return cls(*starts, prepared.probability, *where, prepared.mean_cost, np.empty(0, dtype=np.int64))

    @classmethod
    def sharing(cls, prepared: Prepared) -> "Nodes":
        """Return the states of a model, and each list that actions share."""
        n, start = prepared.n_actions, prepared.outcome_start
        lists = prepared.successor, prepared.cost, prepared.probability
        like, shift, shared = actions_alike(start, *lists, prepared.threads)
        heads = np.flatnonzero(shared)
        if len(heads) == 0:
            return cls.of(prepared)
        node = np.zeros(n, dtype=np.int64)
        node[heads] = np.arange(len(heads))
        # The rows are those of all actions, then those of the lists.
        target = np.append(np.where(shared[like], prepared.n_states + node[like], -1), np.full(len(heads), -1))
        row, shift = np.append(np.arange(n), heads), np.append(np.where(shared[like], shift, 0), shift[heads])
        first = offsets(np.where(target >= 0, 1, np.diff(start)[row]))
        after, costs, chances = (np.empty(first[-1], dtype=each.dtype) for each in lists)
        old, new = (start, *lists), (first, after, costs, chances)
        in_parts(prepared.threads, share, len(after), cut(first), row, target, shift, old, new)
        return cls(
            action_start=np.append(prepared.action_start, n + 1 + np.arange(len(heads))),
            outcome_start=first,
            probability=chances,
            successor=after,
            cost=costs,
            mean_cost=np.append(prepared.mean_cost, np.zeros(len(heads))),
            heads=heads,
        )


def actions_alike(
    start: IntArray, successor: IntArray, cost: IntArray, probability: FloatArray, threads: int
) -> tuple[IntArray, IntArray, BoolArray]:
    """Return for each action the first one with the same outcomes up to a shift, the shift, and if it is shared.

    Outcomes are sorted by cost.  Actions with less than ``FEW`` of them share nothing, nor does one whose outcomes only
    have the hash of others.
    """
    n, rows, lists = len(start) - 1, (cut(start), start), (successor, cost, probability.view(np.uint64))
    shift, mixed, like = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.uint64), np.empty(n, dtype=np.int64)
    in_parts(threads, mix_rows, len(cost), *rows, *lists, FEW, shift, mixed)
    # Zeros that are never written to take no memory.
    slots = np.zeros(max(16, 2 ** (2 * n - 1).bit_length()), dtype=np.int32 if n < 2**31 else np.int64)
    first_mixed(start, FEW, mixed, slots, like)
    shared = np.zeros(n, dtype=bool)
    in_parts(threads, compare_rows, len(cost), *rows, lists, shift, like, shared)
    return like, shift, shared
