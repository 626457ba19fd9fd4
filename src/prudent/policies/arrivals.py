"""The chain that a policy makes of the model, laid out by where its runs arrive."""

import numpy as np

from prudent.engine.places import ENOUGH, PART
from prudent.engine.prepared import Prepared, choice_type
from prudent.kernels.counting import sorted_by
from prudent.kernels.inflow import Arrivals
from prudent.kernels.places import cut
from prudent.models.graph import reachable
from prudent.models.rows import BoolArray, FloatArray, IntArray, offsets, ranges, starts
from prudent.policies.policy import BudgetPolicy


def lanes_of(arrivals: Arrivals, levels: int, threads: int) -> int:
    """Return how many threads are worth starting for so many levels."""
    work = int(arrivals.arc_start[-1]) * levels // ENOUGH
    if min(threads, work) <= 1:
        return 1
    wide = len(arrivals.needed) / len(np.unique(arrivals.needed))
    return int(max(min(threads, work, np.ceil(wide)), 1))


def without_budget(arrivals: Arrivals, without: IntArray) -> Arrivals:
    """Return the chain once no budget is left: with the arcs of the actions that are played then."""
    kept = np.arange(len(arrivals.source)) < np.repeat(arrivals.sure_stop, np.diff(arrivals.arc_start))
    kept |= arrivals.number == without[arrivals.state[arrivals.source]]
    arc_start = offsets(kept)[arrivals.arc_start]
    return arrivals._replace(
        arc_start=arc_start,
        sure_stop=arc_start[1:],
        source=arrivals.source[kept],
        cost=arrivals.cost[kept],
        number=arrivals.number[kept],
        probability=arrivals.probability[kept],
        left_out=None if arrivals.left_out is None else arrivals.left_out[kept],
        changing=arrivals.changing[:0],
        changing_start=np.zeros_like(arrivals.changing_start),
    )


def arrivals_of(policy: BudgetPolicy, played: BoolArray, left_out: FloatArray | None) -> Arrivals:
    """Return a policy's chain, with what rounding left out of each outcome's cost if that is given."""
    prepared = policy.prepared
    arc = np.flatnonzero(played[prepared.outcome_action])
    arcs = prepared.outcome_state[arc], prepared.successor[arc]
    met = reachable(*arcs, prepared.n_states, np.array([prepared.start])) & ~prepared.is_goal
    state, section, alone = _sections(prepared, met)
    place = np.full(prepared.n_states, -1, dtype=np.int32)
    place[state] = np.arange(len(state), dtype=np.int32)
    most = prepared.cost_range[1]
    kind = next(kind for kind in (np.uint8, np.uint16, np.int64) if most <= np.iinfo(kind).max)
    block_start, _, block_of = prepared.free_blocks
    several = np.diff(offsets(played)[prepared.action_start])[state] > 1
    arc, n = ranges(prepared.arc_start, state), len(state)
    source = np.repeat(np.arange(n), np.diff(prepared.arc_start)[state])
    target = place[prepared.successor[arc]]  # below 0 at goals
    # Free moves inside a block are left to its elimination.
    leaves = (prepared.cost[arc] > 0) | (block_of[prepared.successor[arc]] != block_of[state][source])
    kept = np.flatnonzero(played[prepared.outcome_action[arc]] & (leaves | (target < 0)))
    kind_of = 2 * np.where(target < 0, n, target)[kept] + several[source[kept]]
    bounds = starts(kind_of, 2 * n + 2)
    kept = kept[sorted_by(kind_of, bounds)]
    arc, source = arc[kept], source[kept].astype(np.int32)
    arc_start = np.concatenate([bounds[: 2 * n : 2], np.arange(bounds[2 * n], len(arc), PART), bounds[-1:]])
    sure_stop = np.append(bounds[1 : 2 * n : 2], np.clip(bounds[2 * n + 1], arc_start[n:-1], arc_start[n + 1 :]))
    number = prepared.outcome_action[arc] - prepared.action_start[state[source]]
    costs = prepared.cost[arc].astype(kind), number.astype(choice_type(prepared)), prepared.probability[arc]
    by_arc = arc_start, sure_stop, source, *costs, None if left_out is None else left_out[arc]
    part_start, needed = cut(np.append(section, [n, len(arc_start) - 1]), alone, arc_start, PART)
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
    numbers, first = np.unique(section[order], return_index=True)
    return state[order], first, np.append(numbers % 2 == 1, False)
