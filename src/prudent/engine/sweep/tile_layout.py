"""The layout of models for sweeping budgets in tiles.

Acyclic models are laid out whatever their costs.  Cyclic models are laid out if tiles seem faster: at least half of the
outcomes must look back a whole tile.  Others are swept level by level (:mod:`prudent.engine.sweep.levels`).

*Less work.*  An outcome list that several actions share, up to a shift of its costs, is added up once.  Three ranges of
budgets are skipped: those larger than a run can have left in a state, those for which U is 0, and, for M, those that
the policy of least expected cost never exceeds.

*Guarantee.*  The lower bound on U is U reduced by its rounding error (:class:`~prudent.engine.sweep.question.Rounding`)
and that of V.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.engine.prepared import Prepared, choice_type, once
from prudent.engine.sweep.nodes import Nodes
from prudent.engine.sweep.question import Question, Rounding
from prudent.engine.values.bellman import largest_rounding
from prudent.engine.values.worst_case import UNREACHED, worst_case_of
from prudent.kernels.counting import sorted_by
from prudent.kernels.layout import clear_beyond, layers, node_layers, share_rows
from prudent.kernels.stretches import LANES, Groups, Known, Parts, Work
from prudent.models.graph import Blocks, ordered_blocks
from prudent.models.rows import BoolArray, IntArray, offsets, owner, starts
from prudent.runtime.team import in_parts

PART = 2**15
"""Outcomes times levels in the smallest parts of the work: some microseconds."""

EACH = 8
"""Parts of a layer for each thread, if they are no smaller than that."""

LEAST = 2**22
"""Outcomes times levels for each thread to be worth starting: about a millisecond."""

SURE = 1e-11
"""The most that rounding may take off a lower bound, relatively; beyond it the sweep goes level by level."""

BLOCK = 128
"""Levels of a node that are handed on side by side."""

MOST_SCRATCH = 2**27
"""The most bytes of scratch for the actions of one group."""


@dataclass(frozen=True)
class Rules:
    """The lengths of tiles, and when tiles are worth it."""

    long: int = 512  # the tile of a model without cycles: a few such vectors fit into the fastest cache
    tiles: tuple[int, ...] = (128, 64, 32)  # tiles to try on a model with cycles
    crowded: float = 0.5  # a tile is tried if no larger part of the outcomes looks back less than it
    by_level: float = 2.0  # about how long an outcome takes level by level, in nanoseconds


@dataclass(frozen=True, eq=False)
class Tiling:
    """A model laid out for tiles: its states, then the outcome lists that actions share."""

    work: Work
    start: int
    number: type[Any]  # the type that holds an action's number within its state
    rounding: Rounding  # of its values
    tile: int
    heads: IntArray  # for each shared list, the first action that has it
    row: IntArray  # (n_nodes,)  where each node's values are, while they are needed
    rows: int
    shares_rows: bool  # whether nodes hand their rows on to others; else each has its own
    scratch_rows: int  # rows of scratch
    longest: int  # the most outcomes of an action
    back: int  # how many levels back an outcome looks at most
    looked_back: IntArray  # (n_nodes,)  the same by the node that is looked at; empty with cycles
    groups: Groups | None  # None without cycles
    layer_start: IntArray  # (n_layers + 1,)  the groups of each layer, none of which waits for another

    @property
    def n_nodes(self) -> int:
        """The number of states and shared outcome lists."""
        return len(self.work.delay)

    @property
    def n_layers(self) -> int:
        """The number of layers."""
        return len(self.layer_start) - 1

    @property
    def block(self) -> int:
        """How many of the levels that a node hands on from tile to tile lie side by side."""
        return max(min(BLOCK, self.back), 1)

    def handed_on(self, levels: int) -> int:
        """Return the length of a table that hands on so many levels of each node, in whole blocks."""
        return -(-levels // self.block) * self.block * self.n_nodes + LANES

    @property
    def wide(self) -> bool:
        """Whether there are no cycles, but some outcomes look back further than tiles are long for other models."""
        return self.groups is None and self.back > Rules.long

    @cached_property
    def start_group(self) -> int:
        """The start's group."""
        place = int(np.flatnonzero(self.work.group_node == self.start)[0])
        return int(np.searchsorted(self.work.group_start, place, side="right")) - 1

    @cached_property
    def weight(self) -> IntArray:
        """The number of outcomes in all groups before each group."""
        work = self.work
        size = np.diff(work.outcome_start[work.action_start])[work.group_node]
        return np.asarray(offsets(size)[work.group_start])

    def parts(self, levels: int, threads: int) -> Parts:
        """Cut the groups, in their order, into pieces of about the same work, some for each thread in a layer."""
        size = max(PART // levels, int(self.weight[-1]) // (self.n_layers * threads * EACH), 1)  # in outcomes
        piece = self.weight[:-1] - np.repeat(self.weight[self.layer_start[:-1]], np.diff(self.layer_start))
        piece //= size
        cut = np.append(True, piece[1:] != piece[:-1]) | self.work.cyclic
        cut[1:] |= self.work.cyclic[:-1]
        cut[self.layer_start[:-1]] = True
        begins = np.append(np.flatnonzero(cut), len(cut))
        return Parts(np.searchsorted(begins, self.layer_start), begins)

    def lanes(self, parts: Parts, levels: int, strip: int, threads: int) -> int:
        """Return how many threads are worth starting for so many levels: few where layers have few parts."""
        each = len(parts.group) * -(-levels // strip) // self.n_layers + 1  # parts of a layer
        scratch = MOST_SCRATCH // (8 * self.scratch_rows * levels) if self.groups is not None else threads
        return int(max(min(threads, self.weight[-1] * levels // LEAST, each, scratch), 1))


def work_for(tiling: Tiling, question: Question) -> Work:
    """Return the work, with the costs that M adds up for a question."""
    if question.mean_cost is None:
        return tiling.work
    return tiling.work._replace(mean_cost=np.append(question.mean_cost, np.zeros(len(tiling.heads))))


@once
def tiling_of(prepared: Prepared) -> Tiling | None:
    """Return a model laid out for tiles, or None if sweeping level by level is better."""
    return lay_out(prepared, Rules())


def lay_out(prepared: Prepared, rules: Rules) -> Tiling | None:
    """Lay out a model for tiles; return None if the rules show that it is not worth it."""
    if prepared.acyclic:
        return _long(prepared, Nodes.sharing(prepared), rules)
    if len(prepared.free_blocks[0]) <= prepared.n_states:  # free cycles are solved level by level
        return None
    nodes, delay = Nodes.of(prepared), prepared.least_spent
    back = nodes.cost + delay[prepared.outcome_state] - delay[nodes.successor]
    found: list[tuple[float, Tiling | None]] = [(nodes.cost.size * rules.by_level, None)]
    found += [_cyclic(prepared, nodes, back, tile, rules) for tile in rules.tiles]
    return min(found, key=lambda each: each[0])[1]


@once
def plain_tiling(prepared: Prepared) -> Tiling:
    """Return a model without cycles laid out for tiles, each action with its own outcomes."""
    return _long(prepared, Nodes.of(prepared), Rules())


def _long(prepared: Prepared, nodes: Nodes, rules: Rules) -> Tiling:
    """Lay out a model without cycles."""
    n, arc_start = nodes.n_nodes, nodes.outcome_start[nodes.action_start]
    source = owner(arc_start)
    delay = np.append(prepared.least_spent, np.full(len(nodes.heads), UNREACHED))
    if len(nodes.heads) > 0:
        np.minimum.at(delay, nodes.successor, delay[source] + nodes.cost)
    layer, looked_back = np.full(n, -1), np.zeros(n, dtype=np.int64)
    node_layers(prepared.blocks[1], arc_start, nodes.successor, layer)
    last = layer.copy()  # the last layer that looks at it
    np.maximum.at(last, nodes.successor, layer[source])
    np.maximum.at(looked_back, nodes.successor, nodes.cost + delay[source] - delay[nodes.successor])
    back = int(looked_back.max())
    depth = int(layer.max()) + 1
    layer_start = starts(layer, depth)
    order = sorted_by(layer, layer_start)
    row, goals = np.empty(n, dtype=np.int64), np.flatnonzero(np.diff(nodes.action_start) == 0)
    since, row[goals] = np.unique(delay[goals], return_inverse=True)  # rows are by level
    leaving = sorted_by(last, starts(last, depth))
    rows = share_rows(nodes.action_start, layer, order, last, leaving, len(since), row)
    # Longer tiles compensate for handing on more levels; together they must take no more room than separate rows.
    fits = max(2 * rules.long, back // 2) * n // rows - back
    shares_rows = not back > rules.long > fits
    return Tiling(
        work=_work(nodes, np.arange(n + 1), order, np.zeros(n, dtype=bool), delay),
        start=prepared.start,
        number=choice_type(prepared),
        rounding=Rounding(depth + 1, 0, largest_rounding(prepared)),
        tile=max(rules.long, min(back, fits)) if shares_rows else rules.long,
        heads=nodes.heads,
        row=row if shares_rows else np.arange(n),
        rows=rows if shares_rows else n,
        shares_rows=shares_rows,
        scratch_rows=int(np.diff(nodes.action_start).max(initial=1)),
        longest=int(np.diff(nodes.outcome_start).max(initial=1)),
        back=back,
        looked_back=looked_back,
        groups=None,
        layer_start=layer_start,
    )


def _cyclic(prepared: Prepared, nodes: Nodes, back: IntArray, tile: int, rules: Rules) -> tuple[float, Tiling | None]:
    """Lay out a model with cycles, given how many levels each outcome looks back.

    Return about how long a level takes, in nanoseconds, and the layout; infinity and None if it is not worth it.
    """
    source, n, short = prepared.outcome_state, prepared.n_states, back < tile
    if short.mean() > rules.crowded:
        return np.inf, None
    blocks = start, _, group_of = _groups(source, nodes.successor, short, n)
    size = np.diff(start)
    inner = short & (group_of[source] == group_of[nodes.successor])
    cyclic = size > 1
    cyclic[group_of[source[inner]]] = True
    late = inner | (cyclic[group_of[source]] & (back == 0))
    actions = np.bincount(group_of, weights=np.diff(nodes.action_start), minlength=len(size))
    rows = int(actions.max())
    if 8 * rows * tile > MOST_SCRATCH:
        return np.inf, None
    takes = (len(late) - late.sum()) * (0.2 + 10 / tile) + 3.0 * late.sum() + 2.0 * actions[cyclic].sum()
    # Groups by layer; within a group, successors at the same level first.
    layer, rank = np.empty(len(size), dtype=np.int64), np.empty(n, dtype=np.int64)
    layers(blocks, nodes.action_start, nodes.outcome_start, nodes.successor, back, tile, layer)
    rank[_groups(source, nodes.successor, back == 0, n)[1]] = np.arange(n)
    order = np.lexsort((rank, group_of, layer[group_of]))
    by_layer = np.argsort(layer, kind="stable")
    group_start = offsets(size[by_layer])
    outcome = np.lexsort((~late, prepared.outcome_action))
    ready = nodes.outcome_start[:-1] + np.bincount(prepared.outcome_action, weights=late, minlength=prepared.n_actions)
    late_first = nodes._replace(
        probability=nodes.probability[outcome],
        successor=nodes.successor[outcome],
        cost=nodes.cost[outcome],
    )
    work = _work(late_first, group_start, order, cyclic[by_layer], prepared.least_spent)
    groups = _cyclic_groups(prepared, work, ready.astype(np.int64))
    found = Tiling(
        work=work,
        start=prepared.start,
        number=choice_type(prepared),
        rounding=Rounding(int(prepared.free_depth.max()) + 1, prepared.cost_range[0], largest_rounding(prepared)),
        tile=tile,
        heads=nodes.heads,
        row=np.arange(n),
        rows=n,
        shares_rows=False,
        scratch_rows=int((groups.scratch + np.diff(nodes.action_start)).max(initial=1)),
        longest=int(np.diff(nodes.outcome_start).max(initial=1)),
        back=int(back.max(initial=0)),
        looked_back=np.empty(0, dtype=np.int64),
        groups=groups,
        layer_start=starts(layer, int(layer.max()) + 1),
    )
    return float(takes), found


def _groups(source: IntArray, target: IntArray, used: BoolArray, n: int) -> Blocks:
    return ordered_blocks(starts(source[used], n), target[used])[0]


def _work(nodes: Nodes, group_start: IntArray, group_node: IntArray, cyclic: BoolArray, delay: IntArray) -> Work:
    rows = nodes.action_start, nodes.outcome_start, nodes.probability, nodes.successor, nodes.cost, nodes.mean_cost
    return Work(group_start, group_node, cyclic, *rows, np.zeros(len(nodes.mean_cost), dtype=bool), delay)


def _cyclic_groups(prepared: Prepared, work: Work, ready: IntArray) -> Groups:
    """Return what cyclic groups need; outcomes from ``ready`` on are known before a tile."""
    group_start, group_node, action_node = work.group_start, work.group_node, prepared.action_state
    before = offsets(np.diff(work.action_start)[group_node])  # a group numbers its rows of scratch from 0
    scratch, group_of = np.empty(len(group_node), dtype=np.int64), np.empty(len(group_node), dtype=np.int64)
    scratch[group_node] = before[:-1] - np.repeat(before[group_start[:-1]], np.diff(group_start))
    group_of[group_node] = owner(group_start)
    queue = np.lexsort((work.successor[work.outcome_start[1:] - 1], group_of[action_node]))
    return Groups(ready, scratch, before[group_start], queue, action_node)


def known_of(prepared: Prepared, tiling: Tiling, question: Question) -> Known:
    """Return the values at both ends of the budget axis."""
    work, goals, worst = tiling.work, prepared.is_goal, question.worst
    excess, mean = question.base.excess if question.aims.plan else question.base.low, question.base.mean
    calm, number = np.full(prepared.n_states, UNREACHED), np.zeros(prepared.n_states, dtype=np.int64)
    if question.chooses and not question.terms.at_goals:  # then no action is better than those for no budget
        never = worst_case_of(prepared, question.choice)
        calm = np.minimum(never + int(worst.value[goals].max(initial=0)), UNREACHED)
        number = np.where(goals, 0, question.choice - prepared.action_start[:-1])
    if len(tiling.heads) == 0:
        return Known(excess, mean, worst.value, worst.action_value, calm, number)
    first = int(work.outcome_start[prepared.n_actions])
    starts = work.outcome_start[prepared.n_actions : -1] - first
    chance, after, cost = work.probability[first:], work.successor[first:], work.cost[first:]
    needs = np.maximum.reduceat(np.minimum(cost + worst.value[after], UNREACHED), starts)
    return Known(
        excess=np.append(excess, np.add.reduceat(chance * (excess[after] + question.terms.slope * cost), starts)),
        mean=np.append(mean, np.add.reduceat(chance * mean[after], starts)),
        worst=np.append(worst.value, needs),
        action_worst=np.append(worst.action_value, needs),
        calm=np.append(calm, np.maximum.reduceat(np.minimum(cost + calm[after], UNREACHED), starts)),
        choice=np.append(number, np.zeros(len(tiling.heads), dtype=np.int64)),
    )


def clear_waste(prepared: Prepared, choice: NDArray[Any]) -> None:
    """Set choices to the first action for budgets that no run has left if it begins with the largest budget."""
    tiling = tiling_of(prepared)
    if tiling is not None:
        most = np.clip(len(choice) - 1 - tiling.work.delay[: prepared.n_states], 0, None)  # the most left in each
        in_parts(prepared.threads, clear_beyond, choice.size / 8, choice, most, int(most.min()) + 1)
