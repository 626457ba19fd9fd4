"""The chain that a policy makes of the model, laid out by where its runs arrive."""

import numpy as np

from prudent.engine.places import ENOUGH, PART
from prudent.engine.prepared import Prepared, choice_type
from prudent.kernels.arrivals import Arrivals, collect, keep_played, mark_changing, mark_met
from prudent.kernels.choices import mark_played
from prudent.kernels.places import cut
from prudent.models.rows import BoolArray, FloatArray, IntArray
from prudent.policies.policy import BudgetPolicy

__all__ = ["arrivals_of", "lanes_of", "played_anywhere", "without_budget"]


def played_anywhere(policy: BudgetPolicy) -> BoolArray:
    """Return a mask of the actions that a policy plays in some state with some budget."""
    played = np.zeros(policy.prepared.n_actions + 1, dtype=bool)  # a last goal points past the end
    mark_played(policy.prepared.action_start, policy.choices, played)
    return played


def lanes_of(arrivals: Arrivals, levels: int, threads: int) -> int:
    """Return how many threads are worth starting for so many levels."""
    work = int(arrivals.arc_start[-1]) * levels // ENOUGH
    if min(threads, work) <= 1:
        return 1
    wide = len(arrivals.needed) / len(np.unique(arrivals.needed))
    return int(max(min(threads, work, np.ceil(wide)), 1))


def without_budget(arrivals: Arrivals, without: IntArray) -> Arrivals:
    """Return the chain once no budget is left; it takes the memory of this one."""
    arc_start = keep_played(arrivals, arrivals.left_out, without)
    none = arrivals.changing[:0], np.zeros_like(arrivals.changing_start)
    return arrivals._replace(arc_start=arc_start, sure_stop=arc_start[1:], changing=none[0], changing_start=none[1])


def arrivals_of(policy: BudgetPolicy, played: BoolArray, left_out: FloatArray | None) -> Arrivals:
    """Return a policy's chain, with what rounding left out of each outcome's cost if that is given."""
    prepared = policy.prepared
    rows = prepared.action_start, prepared.outcome_start, prepared.successor
    met = np.zeros(prepared.n_states, dtype=bool)
    mark_met(rows, played, prepared.start, met)
    met &= ~prepared.is_goal
    state, starts, alone = _sections(prepared, met)
    place = np.full(prepared.n_states, -1, dtype=np.int32)
    place[state] = np.arange(len(state), dtype=np.int32)
    most = prepared.cost_range[1]
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
    cycle, first = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    if len(block_start) <= prepared.n_states:
        circling = np.flatnonzero(np.diff(block_start)[block_of[state]] > 1)
        cycle, first = np.unique(block_of[state[circling]], return_index=True)
        order = np.argsort(first)
        cycle, first = cycle[order], circling[first[order]]
    changing = np.flatnonzero(several)
    parts = part_start, needed, np.searchsorted(changing, part_start), np.searchsorted(first, part_start), cycle
    return Arrivals._make((state, place, changing, *by_arc, *parts, int(place[prepared.start])))


def _sections(prepared: Prepared, met: BoolArray) -> tuple[IntArray, IntArray, BoolArray]:
    """Return states such that free moves lead to later ones, where sections begin that can be followed side by side.

    Also return which of them are free cycles, to be left alone; a last one is for the goals.
    """
    if not (prepared.free_stop > prepared.outcome_start[:-1]).any():
        return np.flatnonzero(met), np.zeros(1, dtype=np.int64), np.zeros(2, dtype=bool)
    block_start, block_state, block_of = prepared.free_blocks
    size, depth = np.diff(block_start), prepared.free_depth
    state = block_state[met[block_state]]  # the states of a cycle stay together
    # The deepest come first; a layer has two sections, its free cycles being the first.
    section = -(2 * depth + (size > 1))[block_of[state]]
    order = np.argsort(section, kind="stable")
    numbers, starts = np.unique(section[order], return_index=True)
    return state[order], starts, np.append(numbers % 2 == 1, False)
