"""Graphs of a model: reversed arcs, reachability, components in order, end components, least totals."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

from prudent.kernels.acyclic import Parts, longest_ahead, runs
from prudent.kernels.counting import sorted_by
from prudent.kernels.graphs import ROWS, UNREACHED, among_themselves, best_luck, staying
from prudent.kernels.search import lead_back, look_around, lower_ahead, lower_behind, strong_components
from prudent.models.rows import BoolArray, IntArray, Rows, offsets, owner, starts
from prudent.models.ssp import SSP
from prudent.runtime.limits import UNLIMITED, Limits, go_on
from prudent.runtime.team import cut, in_parts

Blocks = tuple[IntArray, IntArray, IntArray]
"""(block_start, block_state, block_of): states grouped into blocks, successors' blocks first."""

TURNS = 32
"""The most turns over all states that a search in turns may take; deeper graphs are searched state by state."""

AT_ONCE = 2**24
"""Outcomes that a search state by state looks at between two checks of the clock: up to a quarter of a second."""

SMALL, MANY = 2048, 64
"""The fewest arcs in a part of a layer, some microseconds of work, ten times the cost of drawing it; and the most parts
of a layer."""

LARGE = 2**16
"""The fewest arcs of a graph that is searched in turns: other searches of smaller ones take under a millisecond."""


class Order(NamedTuple):
    """The components of a graph in order; without cycles, in layers, cut into parts that threads draw.

    No state of a layer leads to another one of it.  Part ``k`` begins at ``block_state[part[k]]``; the first
    ``after[k]`` parts are those of the previous layers.
    """

    blocks: Blocks
    part: IntArray = np.empty(0, dtype=np.int64)  # (n_parts + 1,)  empty with cycles
    after: IntArray = part  # (n_parts,)

    @property
    def acyclic(self) -> bool:
        """Whether there are no cycles."""
        return len(self.part) > 0

    @property
    def width(self) -> int:
        """About how many parts a layer has: the number of threads that have something to do."""
        return -(-len(self.after) // (1 + int(np.count_nonzero(np.diff(self.after)))))

    @property
    def backwards(self) -> Parts:
        """The parts for kernels that go backwards."""
        return Parts(self.part, self.after, self.blocks[1])

    @property
    def forwards(self) -> Parts:
        """The parts for kernels that go forwards."""
        n = len(self.after)
        first, layer = np.unique(self.after, return_inverse=True)
        later = n - np.append(first[1:], n)[layer]
        return Parts(len(self.blocks[1]) - self.part[::-1], later[::-1].copy(), self.blocks[1][::-1].copy())


def entering(successor: IntArray, n_states: int) -> tuple[IntArray, IntArray]:
    """Return, for each state, the outcomes that lead to it: their starts and the outcomes."""
    enter_start = starts(successor, n_states)
    return enter_start, sorted_by(successor, enter_start)


def reachable(source: IntArray, target: IntArray, n: int, start: IntArray) -> BoolArray:
    """Return which states can be reached from the given ones along the given arcs."""
    found = np.zeros(n, dtype=bool)
    found[start] = True
    return found | (towards(target, source, n, found) >= 0)


def _possible_arcs(model: SSP) -> tuple[IntArray, IntArray, int]:
    arc = np.flatnonzero(model.probability > 0)
    return model.outcome_state[arc], model.successor[arc], model.n_states


def met(model: SSP) -> BoolArray:
    """Return which states some run can reach."""
    return reachable(*_possible_arcs(model), model.initial_state[model.initial_probability > 0])


def leading(model: SSP, marked: BoolArray) -> BoolArray:
    """Return which states are marked, or can reach a marked state."""
    return marked | (towards(*_possible_arcs(model), marked) >= 0)


def towards(source: IntArray, target: IntArray, n: int, marked: BoolArray) -> IntArray:
    """Return for each state the next one on a shortest path to a marked state; -1 at marked ones and without a path."""
    ends = np.flatnonzero(marked)  # a search backwards from one more node, next to all of them
    arcs = np.append(target, np.full(len(ends), n)), np.append(source, ends)
    _, hop = breadth_first_order(csr_array((np.ones(len(arcs[0])), arcs), shape=(n + 1, n + 1)), n)
    return np.where(hop[:n] == n, -1, np.maximum(hop[:n], -1))


def least_ahead(
    arc_start: IntArray, target: NDArray[Any], cost: IntArray | None, least: IntArray, passes: int, threads: int = 1
) -> bool:
    """Lower each state's value to the least of cost plus value along its arcs; return whether the passes suffice.

    Values enter with 0 at the ends and large numbers elsewhere; without ``cost`` they count arcs.
    """
    changed = np.zeros(passes, dtype=bool)
    in_parts(threads, lower_ahead, len(target), cut(arc_start), arc_start, target, cost, least, changed)
    return not changed[-1]


def least_by_state(
    rows: Rows,
    successor: IntArray,
    entering: tuple[IntArray, IntArray],
    cost: IntArray,
    least: IntArray,
    limits: Limits = UNLIMITED,
    forgive: Callable[[list[int], int], bool] = lambda cycle, lack: False,
) -> list[int]:
    """Fill in the least total cost of a path to a goal from each state, which may be negative, state by state.

    Return the outcomes of a cycle of negative cost if there is one.  If ``forgive`` says that the cycle's cost, lower
    than 0 by at least ``lack``, is noise, its first outcome is made more expensive by ``lack``, and the search goes on.
    """
    n, goals, via = rows.n_states, np.flatnonzero(rows.is_goal), np.full(rows.n_states, -1)
    table, place = np.full((ROWS, n), -1), np.array([0, len(goals)])
    least[:] = UNREACHED
    least[goals], table[-1] = 0, 0
    table[-2, : len(goals)], table[-1, goals] = goals, 2
    arcs = rows.action_state, rows.outcome_action, *entering, cost
    while (found := best_luck(*arcs, least, via, table, place, AT_ONCE)) != -1:
        go_on(limits, "looking for cycles of negative cost")
        if found < 0:
            continue
        last, at = (int(s) for s in (rows.outcome_state[found], successor[found]))
        cycle = [found]
        while at != last:
            cycle.append(int(via[at]))
            at = int(successor[cycle[-1]])
        lack = int(least[last] - least[successor[found]] - cost[found])
        if not forgive(cycle, lack):
            return cycle
        cost[found] += lack
    return []


def ordered_blocks(arc_start: IntArray, target: IntArray, start: int = -1, threads: int = 1) -> Order:
    """Return the strongly connected components, ordered so that arcs lead to the same or an earlier one.

    The arcs of state ``s`` lead to ``target[arc_start[s]:arc_start[s + 1]]``.  With a start, states that it cannot
    reach are left out, and are in block -1.
    """
    found = _by_number(arc_start, target, start, threads)
    if found is None and len(target) >= LARGE:
        found = _one_component(arc_start, target, start, threads)
    if found is not None:
        return found
    # SciPy's components need a matrix of distinct arcs; making it takes longer than finding the components.
    block_start, block_of, acyclic = strong_components(arc_start, target, start)
    known = np.flatnonzero(block_of >= 0)
    state = known[sorted_by(block_of[known], block_start)]
    if not acyclic:
        return Order((block_start, state, block_of))
    layer = np.empty(len(block_of), dtype=np.int64)
    longest_ahead(state, arc_start, target, layer)
    layer_start = starts(layer[known], int(layer[known].max()) + 1)
    return _layered(known[sorted_by(layer[known], layer_start)], layer_start, arc_start)


def _layered(state: IntArray, layer_start: IntArray, arc_start: IntArray) -> Order:
    """Return the order without cycles that lists ``state``, in layers."""
    n, layer = len(state), owner(layer_start)
    work = offsets(arc_start[state + 1] - arc_start[state] + 1)
    begin = work[layer_start]
    share = (work[:-1] - begin[layer]) // np.maximum(np.diff(begin) // MANY, SMALL)[layer]
    part = np.flatnonzero(np.append(True, (np.diff(share) != 0) | (np.diff(layer) != 0)))
    after = np.searchsorted(part, layer_start[layer[part]])
    block_of = np.full(len(arc_start) - 1, -1)
    block_of[state] = np.arange(n)
    return Order((np.arange(n + 1), state, block_of), np.append(part, n), after)


def _by_number(arc_start: IntArray, target: IntArray, start: int, threads: int) -> Order | None:
    """Return the order if the states' numbers give it, as in a model by stages, and all are reached.

    The start, which no arc may lead to, can have any number.  All others are reached if arcs lead to all of them: going
    back along arcs never meets a state twice, and so ends at the start.
    """
    n = len(arc_start) - 1
    low, high, entered = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64), np.zeros(n, dtype=bool)
    rising, falling = np.ones(1, dtype=bool), np.ones(1, dtype=bool)
    found, ways = (low, high, entered), (rising, falling)
    in_parts(threads, look_around, len(target), cut(arc_start), arc_start, target, start, found, ways)
    if not (rising[0] or falling[0]):
        return None
    state = np.arange(n)[:: -1 if rising[0] else 1].copy()
    near = n - 1 - low if rising[0] else high  # places in that list; -1 for none
    if start >= 0:
        if entered[start] or entered.sum() < n - 1:
            return None
        place = np.flatnonzero(state == start)[0]
        state = np.append(np.delete(state, place), start)
        near = np.where(near > place, near - 1, near)
        near[start] = n - 1  # a layer of its own
    layer_start = np.empty(n + 1, dtype=np.int64)
    layers = runs(near, state, layer_start)
    return _layered(state, layer_start[: layers + 1], arc_start)


def _one_component(arc_start: IntArray, target: IntArray, start: int, threads: int) -> Order | None:
    """Return the order if all that the start reaches is one component, but for states without arcs; None if unknown."""
    n, leaf = len(arc_start) - 1, np.diff(arc_start) == 0
    root = start if start >= 0 else int(np.argmin(leaf))
    far, lowered, leads = np.full(n, 1), np.full(n, -1, dtype=np.int8), np.zeros(n, dtype=bool)
    far[root], lowered[root], leads[root] = 0, 0, True
    graph, grew = (cut(arc_start), arc_start, target), np.zeros(TURNS, dtype=bool)
    in_parts(threads, lower_behind, len(target), *graph, None, far, lowered, grew)
    found = far == 0
    inside = found & ~leaf
    if grew[-1] or inside.sum() < 2 or (start < 0 and not (inside | leaf).all()):
        return None
    in_parts(threads, lead_back, len(target), *graph, leads, np.zeros(TURNS, dtype=bool))
    if not leads[inside].all():
        return None
    alone, together = np.flatnonzero(leaf & found if start >= 0 else leaf), np.flatnonzero(inside)
    block_of = np.full(n, -1)
    block_of[alone], block_of[together] = np.arange(len(alone)), len(alone)
    block_start = np.append(np.arange(len(alone) + 1), len(alone) + len(together))
    return Order((block_start, np.append(alone, together), block_of))


def almost_sure(rows: Rows, successor: IntArray, inside: BoolArray) -> BoolArray:
    """Keep ``inside`` only actions of policies that reach a goal with probability 1; return the states that do.

    Alternates two steps until nothing changes: find the states that can reach a goal at all, then drop every action
    that may lead to another one, or to a state without actions.
    """
    among_themselves(rows.action_start, rows.outcome_start, successor, inside, True, TURNS)
    while True:
        arc = np.flatnonzero(inside[rows.outcome_action])
        hop = towards(rows.outcome_state[arc], successor[arc], rows.n_states, rows.is_goal)
        reaches: BoolArray = rows.is_goal | (hop >= 0)
        lost = arc[~reaches[successor[arc]]]
        if len(lost) == 0:
            return reaches
        inside[rows.outcome_action[lost]] = False
        staying(rows.action_state, rows.outcome_action, *entering(successor, rows.n_states), rows.is_goal, inside)


def end_components(
    action_state: IntArray, outcome_start: IntArray, successor: IntArray, n_states: int, candidate: BoolArray
) -> tuple[IntArray, BoolArray]:
    """Return the maximal end components made of candidate actions.

    An end component is a set of states and actions inside which a run can stay forever and go from any member to any
    other.  Returns the component of each state (-1: none) and whether an action is inside one.
    """
    inside, action_of = candidate.copy(), owner(outcome_start)
    # A few passes find most actions that cannot be inside one, at far less cost than components.
    among_themselves(starts(action_state, n_states), outcome_start, successor, inside, False, TURNS)
    component = np.full(n_states, -1, dtype=np.int64)
    while inside.any():
        kept = inside[action_of]
        arcs = action_state[action_of[kept]], successor[kept]
        matrix = csr_array((np.ones(kept.sum(), dtype=np.int32), arcs), shape=(n_states, n_states))
        _, label = connected_components(matrix, connection="strong")  # parallel arcs add up
        leaves = label[action_state[action_of]] != label[successor]
        dropped = inside & (np.bincount(action_of, weights=leaves, minlength=len(inside)) > 0)
        if not dropped.any():
            members = np.unique(
                action_state[inside]
            )  # a member must lead back to the others, so it has an inner action
            _, component[members] = np.unique(label[members], return_inverse=True)
            break
        inside &= ~dropped
        staying(action_state, action_of, *entering(successor, n_states), np.zeros(n_states, dtype=bool), inside)
    return component, inside
