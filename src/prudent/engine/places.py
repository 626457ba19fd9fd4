"""The order in which the states of a level are settled, and the rows of a model in that order.

States are numbered by *place*, in layers: the free moves of a layer lead to earlier layers.  So on one level the states
of a layer can be settled in parallel, once the earlier layers are done.  Free cycles of a layer follow its other states
and are solved one after the other.

Rows are copied in the order of places, as compact as possible: a sweep reads all of them once for each level.
"""

from typing import NamedTuple

import numpy as np

from prudent.engine.prepared import Prepared, once
from prudent.kernels.levels import Places, Turns
from prudent.kernels.places import breadth_first, cut
from prudent.models.rows import BoolArray, IntArray, offsets, ranges

PART = 4096
"""Outcomes in a part: some 20 microseconds of one thread."""

MANY, NEAR = 2**16, 2**12
"""The number of states above which their order matters, since their values outgrow the caches; and a close distance."""

ENOUGH = 250_000
"""Outcomes times levels for which a further thread is worth starting: about a millisecond."""


def lanes_of(turns: Turns, work: float, threads: int) -> int:
    """Return how many threads are worth starting for an amount of work, in outcomes times levels."""
    wide = len(turns.needed) / max(len(np.unique(turns.needed)), 1)  # parts side by side
    return int(max(min(threads, work // ENOUGH, np.ceil(wide)), 1))


@once
def places_of(prepared: Prepared) -> tuple[Places, IntArray]:
    """Return the rows of a model by place, and the model's actions in their order."""
    state = turns_of(prepared).state
    place = np.empty(prepared.n_states, dtype=np.int32)
    place[state] = np.arange(prepared.n_states, dtype=np.int32)
    action = ranges(prepared.action_start, state)
    outcome = ranges(prepared.outcome_start, action)
    kind = next(kind for kind in (np.uint8, np.uint16, np.int64) if prepared.cost_range[1] <= np.iinfo(kind).max)
    places = Places(
        state=state,
        place=place,
        action_start=offsets(np.diff(prepared.action_start)[state]),
        action=prepared.action_start[:-1][state],
        outcome_start=offsets(np.diff(prepared.outcome_start)[action]),
        probability=prepared.probability[outcome],
        successor=place[prepared.successor[outcome]],
        cost=prepared.cost[outcome].astype(kind),
        column=state,
    )
    return places, action


class Sections(NamedTuple):
    """The layers, each with two sections: its free cycles are the second."""

    state: IntArray  # (n_states,)  the state at each place
    start: IntArray  # (n_sections + 1,)  the first place of each
    alone: BoolArray  # (n_sections,)  whether its states form free cycles
    cycle: IntArray  # the blocks of the free arcs that are cycles, by place
    cycle_start: IntArray  # the first place of each


@once
def sections_of(prepared: Prepared) -> Sections:
    """Return the order of places, and the sections that follow each other on a level."""
    block_start, block_state, block_of = prepared.free_blocks
    size, depth = np.diff(block_start), prepared.free_depth
    cyclic = bool((size > 1).any())
    section = (2 * depth + (size > 1))[block_of] if cyclic else depth[block_of]
    kind = np.int16 if section.max(initial=0) < 2**15 else np.int64
    state = block_state if cyclic else _nearby(prepared)  # the states of a cycle stay together
    state = state[np.argsort(section[state].astype(kind), kind="stable")]
    numbers = np.unique(section)
    start = np.searchsorted(section[state], [*numbers, numbers[-1] + 1])
    alone = numbers % 2 == 1 if cyclic else np.zeros(len(numbers), dtype=bool)
    blocks, place = np.flatnonzero(size > 1), np.empty(prepared.n_states, dtype=np.int64)
    place[state] = np.arange(prepared.n_states)
    first = place[block_state[block_start[blocks]]]
    order = np.argsort(first)
    return Sections(state, start, alone, blocks[order], first[order])


@once
def turns_of(prepared: Prepared) -> Turns:
    """Return the order in which the states of a level are settled.

    A move is free here if its successor is looked up on the same level: with costs between levels, these are the moves
    that cost less than one level.
    """
    found = sections_of(prepared)
    return turns_among(found, offsets(np.diff(prepared.arc_start)[found.state]))


def turns_among(sections: Sections, work: IntArray) -> Turns:
    """Cut sections into parts; ``work`` is the running total of outcomes by place."""
    part_start, needed = cut(sections.start, sections.alone, work, PART)
    cycle_start = np.searchsorted(sections.cycle_start, part_start)
    return Turns(sections.state, part_start, needed, cycle_start, sections.cycle)


def _nearby(prepared: Prepared) -> IntArray:
    """Return the states in an order in which successors are close: their own, if it is close or none can be."""
    n, graph = prepared.n_states, (prepared.arc_start, prepared.successor)
    order, inside = np.arange(n), np.zeros(n, dtype=bool)
    if n < MANY:
        return order
    middle = slice((n - NEAR) // 2, (n + NEAR) // 2)
    inside[middle] = True
    if _share_inside(prepared, order[middle], inside) > 0.5:
        return order
    found = np.empty(n, dtype=np.int64)
    ball = found[: breadth_first(*graph, prepared.start, NEAR, found)].copy()
    inside[middle], inside[ball] = False, True
    if _share_inside(prepared, ball, inside) < 0.75 or breadth_first(*graph, prepared.start, n, found) < n:
        return order
    return found


def _share_inside(prepared: Prepared, state: IntArray, inside: BoolArray) -> float:
    """Return the share of the outcomes of some states that lead to states inside."""
    successor = prepared.successor[ranges(prepared.arc_start, state)]
    return float(inside[successor].sum() / max(len(successor), 1))
