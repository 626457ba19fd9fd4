"""The nodes that tiles are laid out for: states, and the outcome lists that actions share up to a shift of costs."""

from dataclasses import dataclass

import numpy as np

from prudent.engine.prepared import Prepared
from prudent.kernels.sharing import compare_rows, copy_lists, count_rows, first_mixed, mix_rows, share, tell_apart
from prudent.models.rows import BoolArray, FloatArray, IntArray, offsets
from prudent.runtime.team import copy_together, cut, in_parts

FEW = 3
"""The fewest outcomes of a list that is worth sharing."""


@dataclass(frozen=True, eq=False)
class Nodes:
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
        return cls(
            prepared.action_start,
            prepared.outcome_start,
            prepared.probability,
            prepared.successor,
            prepared.cost,
            prepared.mean_cost,
            np.empty(0, dtype=np.int64),
        )

    @classmethod
    def sharing(cls, prepared: Prepared) -> "Nodes":
        """Return the states of a model, and each list that actions share."""
        n, start = prepared.n_actions, prepared.outcome_start
        lists = prepared.successor, prepared.cost, prepared.probability
        like, shift, shared = actions_alike(start, *lists, prepared.threads)
        heads = np.flatnonzero(shared)
        if len(heads) == 0:
            return cls.of(prepared)
        part, lists_from = cut(start), offsets(start[heads + 1] - start[heads])
        count = np.empty(len(part) - 1, dtype=np.int64)
        in_parts(prepared.threads, count_rows, n, part, start, like, shared, count)
        begin = offsets(count)
        node = np.zeros(n, dtype=np.int64)
        node[heads] = prepared.n_states + np.arange(len(heads))
        first, total = np.empty(n + len(heads) + 1, dtype=np.int64), int(begin[-1] + lists_from[-1])
        after, costs, chances = np.empty(total, dtype=np.int64), np.empty(total, dtype=np.int64), np.empty(total)
        into = first, after, costs, chances
        in_parts(prepared.threads, share, len(lists[0]), part, begin, start, *lists, like, shift, node, into)
        first[n:] = begin[-1] + lists_from
        in_parts(
            prepared.threads, copy_lists, lists_from[-1], cut(lists_from), heads, start, *lists, shift, first[n:], into
        )
        mean = np.zeros(n + len(heads))
        copy_together(prepared.mean_cost, mean[:n], prepared.threads)
        return cls(
            action_start=np.concatenate([prepared.action_start, n + 1 + np.arange(len(heads))]),
            outcome_start=first,
            probability=chances,
            successor=after,
            cost=costs,
            mean_cost=mean,
            heads=heads,
        )


def actions_alike(
    start: IntArray, successor: IntArray, cost: IntArray, probability: FloatArray, threads: int
) -> tuple[IntArray, IntArray, BoolArray]:
    """Return for each action the first one with the same outcomes up to a shift, the shift, and if it is shared.

    Outcomes are sorted by cost.  Actions with less than ``FEW`` of them share nothing.
    """
    n, rows, lists = len(start) - 1, (cut(start), start), (successor, cost, probability.view(np.uint64))
    shift, mixed, like = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.uint64), np.empty(n, dtype=np.int64)
    in_parts(threads, mix_rows, len(cost), *rows, *lists, FEW, shift, mixed)
    # Zeros that are never written to take no memory.
    slots = np.zeros(max(16, 2 ** (2 * n - 1).bit_length()), dtype=np.int32 if n < 2**31 else np.int64)
    first_mixed(start, FEW, mixed, slots, like)
    shared, told = np.zeros(n, dtype=bool), np.ones(1, dtype=bool)
    in_parts(threads, compare_rows, len(cost), *rows, *lists, shift, like, shared, told)
    if not told[0]:  # actions with the same hash, but not the same outcomes
        tell_apart(start, *lists, shift, like, shared)
    return like, shift, shared
