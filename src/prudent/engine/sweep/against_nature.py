"""The backend that sweeps where nature chooses probabilities from intervals at every visit: a plan, or a given policy.

As in a sweep of one model, an outcome list that several actions share, intervals included, becomes a node of its own,
to which they lead by one sure step: nature chooses for all of them at once.

Without cycles levels are settled in long tiles, each state no further than a run can have left there.  With cycles a
tile is as long as the least cost above 0, so that states look only at earlier tiles, or at states at no cost from them.
The values of all levels are kept, by state: :mod:`prudent.kernels.nature_sweep` settles many levels of one at a time.
"""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from prudent.engine.prepared import choice_type
from prudent.engine.sweep.nodes import Nodes
from prudent.engine.sweep.question import TIE, Question
from prudent.engine.sweep.task import Backend, Shapes, Tables, Task
from prudent.engine.uncertain import Uncertain, with_spare
from prudent.engine.values.worst_case import UNREACHED, worst_case_of
from prudent.kernels.nature import Sets
from prudent.kernels.nature_levels import AHEAD, Dense, Scratch
from prudent.kernels.nature_sweep import RobustGiven, RobustPlan, settle_backwards, settle_blocks
from prudent.kernels.team import new_counters
from prudent.models.rows import FloatArray, IntArray, ranges
from prudent.runtime.limits import Arrays
from prudent.runtime.team import side_by_side

AT_ONCE, LONGEST, WORK = 16, 1024, 2**26
"""The fewest and the most levels that are settled at once, and the most outcomes times levels: some tenths of a second.
"""

ENOUGH = 250_000
"""Outcomes times levels for each thread to be worth starting: about a millisecond."""

CYCLES = 1e-9
"""The addition to the error if there are free cycles."""

LONGER = 1.5
"""How long new tables of a plan are, as a multiple of the levels that are surely needed."""


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
    rows = nodes.action_start, nodes.outcome_start, nodes.successor, nodes.cost
    sets = with_spare(Sets(*rows, nodes.probability, high, none, none, none))
    return Uncertain(prepared, sets, nodes.cost.astype(np.float64))


def nature_bytes(question: Question, levels: int) -> int:
    """Return the memory of so many levels, which no other sweep has: of a plan, also while its tables become longer."""
    model = question.nature
    assert model is not None, "asked of sweeps against nature only"
    if question.policy is not None:
        return 8 * model.n_nodes * levels
    size = 3 * 8 + 2 * np.dtype(choice_type(model.prepared)).itemsize
    return 2 * size * model.n_nodes * levels + 8 * largest_block(model) ** 2


@dataclass
class NatureSweep(Backend):
    """A sweep against nature."""

    batch: ClassVar[int] = 2**34
    beyond: ClassVar[int] = 2  # the cell above the best budget counts, too

    model: Uncertain = field(init=False)
    tables: list[NDArray[Any]] = field(init=False)  # U, its bound, M and actions, or U alone: (n_nodes, n_levels)

    def __post_init__(self) -> None:
        super().__post_init__()
        prepared, question, threads = self.task.prepared, self.task.question, self.task.threads
        assert question.nature is not None, "other backends serve questions about one model"
        self.model = model = question.nature
        width = LONGEST if prepared.acyclic else min(prepared.cost_range[0], LONGEST)
        width = max(min(width, WORK // max(len(model.sets.cost), 1)), 1)
        self._at_once = max(width, AT_ONCE)
        lanes, width = (min(threads, model.order.width), self._at_once) if prepared.acyclic else (1, width)
        self._scratch = [_scratch(model, width) for _ in range(max(lanes, 1))]
        if question.policy is not None:
            base, levels = question.base.excess[:, None], np.arange(self.task.most + 1)
            table = np.where(prepared.is_goal[:, None], np.maximum(base - question.terms.slope * levels, 0), 0)
            self.tables = [table.astype(np.float64)]
            return
        choice = question.choice - model.sets.action_start[:-1]
        self.tables = [column[:, None] for column in (*question.base, choice.astype(choice_type(prepared)))]
        self._order, self._safe = _worst_first(model, question), np.full(model.n_nodes, UNREACHED)
        if prepared.acyclic:
            self._safe = _worst_case(model, question.choice) + 1
        self._mean_order = self._order.copy()

    @classmethod
    def serves(cls, task: Task, levels: float) -> bool:
        """Return whether nature chooses."""
        return task.question.nature is not None

    def _advance(self, last: int, *, final: bool) -> None:
        known, sure = self.tables[0].shape[1], self.task.question.base.excess[self.task.prepared.start]
        for i, table in enumerate(self.tables if last > known else []):  # one after the other: no two copies of all
            self.tables[i] = np.zeros((len(table), int(LONGER * max(last, sure))), table.dtype)
            self.tables[i][:, :known] = table
        question = self._in_kernel()
        for first in range(self.done, last, self._at_once):
            self._settle(question, first, min(first + self._at_once, last))
        for found, table in zip(self.found, self.tables, strict=False):  # actions are not among what is found
            found[self.done : last] = table[self.task.prepared.start, self.done : last]

    def _in_kernel(self) -> RobustPlan | RobustGiven:
        """Return the question for kernels, with its tables as long as they are now."""
        question, model = self.task.question, self.model
        if question.policy is not None:
            values = model.values(question.base.excess, self.tables[0], slope=question.terms.slope)
            return RobustGiven(values, question.policy, question.behind)
        base, (u, low, m, choice) = question.base, self.tables
        excess = model.values(base.excess, u, slope=1.0, order=self._order)._replace(falls=True)
        below = model.values(base.low, low, slope=1.0, order=self._order)
        mean = model.values(base.mean, m, order=self._mean_order)
        return RobustPlan(excess, below, mean, choice.ravel(), self._safe, TIE)

    def _settle(self, question: RobustPlan | RobustGiven, first: int, last: int) -> None:
        model, prepared, sets = self.model, self.task.prepared, self.model.sets
        if not prepared.acyclic:
            settle_blocks(*prepared.free_blocks[:2], first, last, question, sets, self._scratch[0])
            return
        counters, about = new_counters(), (model.order.backwards, first, last, model.least_spent, question, sets)
        lanes = max(min(len(self._scratch), (last - first) * len(sets.cost) // ENOUGH), 1)
        side_by_side(lanes, lambda lane: settle_backwards(counters, *about, self._scratch[lane]))

    @property
    def choice(self) -> NDArray[Any]:
        """The actions of the settled levels, if they are chosen."""
        if self.task.question.policy is not None:
            return super().choice
        return np.ascontiguousarray(self.tables[3][: self.task.prepared.n_states, : self.done].T)

    @property
    def values(self) -> Tables | None:
        """The values of all levels if the task keeps them, else None."""
        return Tables(self.tables[0], *np.zeros((2, 1, 1))) if self.task.keep else None

    def _state(self) -> Arrays:
        return {f"table {i}": np.ascontiguousarray(table[:, : self.done]) for i, table in enumerate(self.tables)}

    def _wanted(self, kept: Arrays, done: int) -> Shapes:
        return {f"table {i}": ((len(table), done), table.dtype) for i, table in enumerate(self.tables)}

    def _restore(self, kept: Arrays) -> None:
        self.tables = [kept.get(f"table {i}", table) for i, table in enumerate(self.tables)]


def _worst_case(model: Uncertain, choice: IntArray) -> IntArray:
    """Return the largest cost of runs from each node, whatever nature does, under the choices; without cycles."""
    prepared, sets = model.prepared, model.sets
    worst = worst_case_of(prepared, choice[: prepared.n_states])
    lists = sets.outcome_start[prepared.n_actions : -1]  # which lead to states
    ahead = sets.cost + np.append(worst, np.zeros(len(lists), dtype=np.int64))[sets.successor]
    return np.append(worst, np.maximum.reduceat(ahead, lists)) if len(lists) else worst


def _worst_first(model: Uncertain, question: Question) -> IntArray:
    """Return the outcomes of each action in the order in which nature fills them without budget.

    Where values tie, as where no excess is left, the order of the level before stays: nature's choice is then also the
    worst one for budgets between the two levels.
    """
    sets = model.sets
    action = np.repeat(np.arange(len(sets.outcome_start) - 1), np.diff(sets.outcome_start))
    return np.lexsort((-(sets.cost + question.base.excess[sets.successor]), action))


def _scratch(model: Uncertain, width: int) -> Scratch:
    """Return the arrays for one thread."""
    most_actions = int(np.diff(model.sets.action_start).max(initial=1))
    most_outcomes = int(np.diff(model.sets.outcome_start).max(initial=1))
    sizes = [most_outcomes] * 2 + [AHEAD] * 5 + [width] * 3 + [(most_actions, width)]
    size, rank = largest_block(model), np.zeros(1, dtype=np.int64)
    if size > 1:
        start, states = model.prepared.free_blocks[:2]
        rank = np.empty(len(states), dtype=np.int64)
        rank[states] = np.arange(len(states)) - np.repeat(start[:-1], np.diff(start))
    dense = Dense(rank, np.zeros(size, dtype=np.int64), np.empty((size, size)), *np.empty((3, size)))
    return Scratch(*map(np.empty, sizes), dense=dense)  # type: ignore[misc, arg-type]


def largest_block(model: Uncertain) -> int:
    """Return the largest number of states with free cycles among them."""
    return 1 if model.prepared.acyclic else int(np.diff(model.prepared.free_blocks[0]).max(initial=1))


def error_of(model: Uncertain, level: IntArray) -> FloatArray:
    """Return bounds on the relative errors of values at some levels."""
    prepared = model.prepared
    sums = (int(prepared.free_depth.max(initial=0)) + 1) * (level + 1)
    sums = np.full_like(level, prepared.longest) if prepared.acyclic else sums
    return np.asarray(2 * (sums + 1) * model.rounding + (CYCLES if largest_block(model) > 1 else 0.0))
