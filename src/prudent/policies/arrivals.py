"""The chain that a policy makes of the model, laid out by where its runs arrive."""

from dataclasses import dataclass, replace

import numpy as np

from prudent.engine.places import ENOUGH, PART
from prudent.engine.prepared import Prepared, choice_type
from prudent.kernels.arrivals import Arrivals, collect, keep_played, mark_changing, mark_met
from prudent.kernels.choices import mark_played
from prudent.kernels.layout import layers
from prudent.kernels.places import cut
from prudent.models.rows import BoolArray, FloatArray, IntArray
from prudent.policies.policy import BudgetPolicy

__all__ = ["Chain", "chain_of", "played_anywhere"]


def played_anywhere(policy: BudgetPolicy) -> BoolArray:
    """Return a mask of the actions that a policy plays in some state with some budget."""
    played = np.zeros(policy.prepared.n_actions + 1, dtype=bool)  # a last goal points past the end
    mark_played(policy.prepared.action_start, policy.choices, played)
    return played


@dataclass(frozen=True)
class Chain:
    """A policy's chain by where its runs arrive."""

    arrivals: Arrivals
    start: int  # the place of the start

    @property
    def n_places(self) -> int:
        """The number of places."""
        return len(self.arrivals.arc_start) - 1

    def lanes(self, levels: int, threads: int) -> int:
        """Return how many threads are worth starting for so many levels."""
        needed = self.arrivals.needed
        work, wide = int(self.arrivals.arc_start[-1]) * levels // ENOUGH, len(needed) / len(np.unique(needed))
        return int(max(min(threads, work, np.ceil(wide)), 1))

    def count(self, met: FloatArray, policy: BudgetPolicy, plays: FloatArray) -> None:
        """Add the mass ``met`` at places that play one action to its plays; forget it."""
        state = self.arrivals.state
        met[self.arrivals.changing] = 0.0  # counted already
        plays[policy.prepared.action_start[state] + policy.choices.without[state]] += met
        met[:] = 0.0

    def without_budget(self, without: IntArray) -> "Chain":
        """Return the chain once no budget is left; it takes the memory of this one."""
        old, arc_start = self.arrivals, keep_played(self.arrivals, without)
        none = {"changing": old.changing[:0], "changing_start": np.zeros_like(old.changing_start)}
        return replace(self, arrivals=old._replace(arc_start=arc_start, sure_stop=arc_start[1:], **none))


def chain_of(policy: BudgetPolicy, played: BoolArray, left_out: FloatArray) -> Chain:
    """Return a policy's chain; ``left_out`` is by outcome, or empty."""
    prepared = policy.prepared
    rows = prepared.action_start, prepared.outcome_start, prepared.successor
    met = np.zeros(prepared.n_states, dtype=bool)
    mark_met(rows, played, prepared.start, met)
    met &= ~prepared.is_goal
    state, starts, alone = _sections(prepared, met)
    place = np.full(prepared.n_states, -1, dtype=np.int32)
    place[state] = np.arange(len(state), dtype=np.int32)
    most = int(prepared.cost.max(initial=0))
    kind = next(kind for kind in (np.uint8, np.uint16, np.int64) if most <= np.iinfo(kind).max)
    types = np.empty(0, dtype=choice_type(prepared)), np.empty(0, dtype=kind)
    block_start, _, block_of = prepared.free_blocks
    costs = prepared.cost, prepared.probability
    several = np.empty(len(state), dtype=bool)
    mark_changing(prepared.action_start, played, state, several)
    about = played, state, place, several, block_of
    by_arc = collect(rows, costs, left_out, *about, *types, PART)
    arc_start = by_arc[0]
    part_start, needed = cut(np.append(starts, [len(state), len(arc_start) - 1]), alone, arc_start, PART)
    circling = np.flatnonzero(np.diff(block_start)[block_of[state]] > 1)
    cycle, first = np.unique(block_of[state[circling]], return_index=True)
    order = np.argsort(first)
    cycle_start = np.searchsorted(circling[first[order]], part_start)
    changing = np.flatnonzero(several)
    parts = part_start, needed, np.searchsorted(changing, part_start), cycle_start, cycle[order]
    arrivals = Arrivals._make((state, place, changing, *by_arc, *parts))
    return Chain(arrivals, int(place[prepared.start]))


def _sections(prepared: Prepared, met: BoolArray) -> tuple[IntArray, IntArray, BoolArray]:
    """Return states such that free moves lead to later ones, where sections begin that can be followed side by side.

    Also return which of them are free cycles, to be left alone; a last one is for the goals.
    """
    if not (prepared.free_stop > prepared.outcome_start[:-1]).any():
        return np.flatnonzero(met), np.zeros(1, dtype=np.int64), np.zeros(2, dtype=bool)
    block_start, block_state, block_of = prepared.free_blocks
    size, depth = np.diff(block_start), np.empty(len(block_start) - 1, dtype=np.int64)
    layers(prepared.action_start, prepared.outcome_start, prepared.successor, prepared.cost, 1, block_of, depth)
    state = block_state[met[block_state]]  # the states of a cycle stay together
    # The deepest come first; a layer has two sections, its free cycles being the first.
    section = -(2 * depth + (size > 1))[block_of[state]]
    order = np.argsort(section, kind="stable")
    numbers, starts = np.unique(section[order], return_index=True)
    return state[order], starts, np.append(numbers % 2 == 1, False)
