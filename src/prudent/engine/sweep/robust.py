"""The sweep over rising budgets against nature, which chooses probabilities from intervals at every visit.

:mod:`prudent.kernels.robust` settles states; here is how far it goes.  Without cycles levels are swept in long tiles,
each state no further than a run can have left there.  With cycles a tile is as long as the least cost above 0, so that
states look only at earlier tiles, or at states at no cost from them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.engine.cost_step import nice_step
from prudent.engine.prepared import choice_type
from prudent.engine.sweep.question import TIE
from prudent.engine.sweep.robust_layout import error_of, largest_block, new_scratch, tile_of
from prudent.engine.uncertain import Uncertain
from prudent.engine.values.robust_cost import WorstMean
from prudent.kernels.acyclic import worst_of
from prudent.kernels.robust import Tables, settle, settle_backwards
from prudent.kernels.team import new_counters
from prudent.models.rows import FloatArray, IntArray
from prudent.runtime.limits import Limits, Stopped
from prudent.runtime.progress import Progress
from prudent.runtime.team import in_parts, side_by_side

__all__ = ["RobustSweep", "robust_sweep"]

MARGIN = 2
"""The factor by which a step is advised that is larger than needed: rounding adds levels."""

FURTHER = 1.3
"""The length of the first tables, as a multiple of the levels surely needed."""

AT_ONCE = 16
"""The fewest levels that a kernel settles at once."""

ENOUGH = 250_000
"""Outcomes times levels for each thread to be worth starting: about a millisecond."""


@dataclass(frozen=True)
class RobustSweep:
    """The result, by budget of the start; entry 0 is for no budget."""

    excess: FloatArray  # (n_levels,)  the worst-case excess of the policy with this budget
    below: FloatArray  # (n_levels,)  lower bound on the least worst-case excess over one level less
    mean: FloatArray  # (n_levels,)  its worst-case expected cost
    choice: NDArray[Any]  # (n_levels, n_states)  the action's number within its state
    error: float  # relative error of all of these
    stopped: str = ""  # why it ended early: "interrupted", "time", "memory", or nothing


def robust_sweep(model: Uncertain, worst: WorstMean, alpha: float, limits: Limits) -> RobustSweep:
    """Sweep rising budgets until no larger one can be optimal for alpha."""
    prepared, start, sure = model.prepared, model.prepared.start, float(worst.value[model.prepared.start])
    limits.check(_bytes(model, int(sure) + 2), "the tables of a robust plan", _advice(model, sure, limits.memory))
    tile = max(tile_of(model), AT_ONCE)
    advance = (_without_cycles if prepared.acyclic else _with_cycles)(model, worst, tile, limits)
    tables = _tables(model, worst, int(FURTHER * sure) + 34)
    done, best, seen, stopped = 1, np.inf, 0, ""
    with limits, Progress("sweeping budgets", total=None, unit="levels") as progress:
        while True:
            row = start * tables.stride
            f = np.arange(seen, done) + tables.excess[row + seen : row + done] / alpha
            best, seen = min(best, float(f.min(initial=np.inf))), done
            if done > best + 2:  # the cell above the best budget counts, too
                break
            last = int(min(done + tile, max(FURTHER * sure, done * 1.1, done + 16) + 1, best + 4))
            stopped = limits.stop
            if not stopped and last > tables.stride:
                if _bytes(model, 2 * last) > limits.memory:
                    stopped = "memory"
                else:
                    tables = _tables(model, worst, 2 * last, tables)
            if stopped and not limits.partial:
                raise Stopped(stopped, "the sweep")
            if stopped:
                break
            advance(done, last, tables)
            done = last
            progress.at(done, best)
    excess, below, mean = (table[row : row + done].copy() for table in tables[:3])
    choice = np.ascontiguousarray(tables.choice.reshape(-1, tables.stride)[: prepared.n_states, :done].T)
    return RobustSweep(excess, below, mean, choice, error_of(model, done), stopped)


Advance = Callable[[int, int, Tables], None]
"""Settles the levels from one to another."""


def _without_cycles(model: Uncertain, worst: WorstMean, tile: int, limits: Limits) -> Advance:
    base, sets, order, safe = worst.base, model.sets, model.order, _worst_case(model, worst.choice) + 1
    orders, most = _worst_first(model, worst), max(min(limits.threads, order.width), 1)
    scratch = [new_scratch(model, orders, tile) for _ in range(most)]

    def advance(first: int, last: int, tables: Tables) -> None:
        counters, ahead = new_counters(), model.least_spent
        lanes = max(min(most, (last - first) * len(sets.cost) // ENOUGH), 1)
        about = first, last, ahead, safe, sets, base, tables, TIE
        side_by_side(lanes, lambda lane: settle_backwards(counters, *order.backwards, *about, scratch[lane]))

    return advance


def _worst_case(model: Uncertain, choice: IntArray) -> IntArray:
    """Return the largest cost of runs from each node, whatever nature does, under the choices."""
    sets, order, most = model.sets, model.order, np.empty(model.n_nodes, dtype=np.int64)
    rows = sets.action_start, choice, sets.outcome_start, sets.successor, sets.cost
    in_parts(model.prepared.threads, worst_of, len(sets.cost), *order.backwards, *rows, most, most=order.width)
    return most


def _with_cycles(model: Uncertain, worst: WorstMean, _: int, limits: Limits) -> Advance:
    blocks, base = model.prepared.free_blocks[:2], worst.base
    scratch = new_scratch(model, _worst_first(model, worst), tile_of(model))
    return lambda first, last, tables: settle(*blocks, first, last, model.sets, base, tables, TIE, scratch)


def _worst_first(model: Uncertain, worst: WorstMean) -> tuple[IntArray, IntArray]:
    """Return the outcomes of each action in the order in which nature fills them without budget, once for each table.

    Where values tie, as where no excess is left, the order of the level before stays: nature's choice is then also the
    worst one for budgets between the two levels.
    """
    sets = model.sets
    action = np.repeat(np.arange(len(sets.outcome_start) - 1), np.diff(sets.outcome_start))
    order = np.lexsort((-(sets.cost + worst.base.upper[sets.successor]), action))
    return order, order.copy()


def _advice(model: Uncertain, sure: float, memory: int) -> str:
    """Return advice for a sweep that needs more memory than there is: a step at which its first tables fit."""
    prepared = model.prepared
    fixed, each = _bytes(model, 0), _bytes(model, 1) - _bytes(model, 0)
    fewer = (memory - fixed) / (MARGIN * each)
    step = nice_step(prepared.scale.level_size * (sure + 2) / fewer) if fewer > 2 else np.inf
    if step > float(np.abs(prepared.model.cost).max(initial=0.0)):
        return "raise memory= (--memory)"
    return f"raise memory= (--memory), or set a larger step (step=, --step), from about {step:g} on"


def _bytes(model: Uncertain, levels: int) -> int:
    size = 3 * 8 + 2 * np.dtype(choice_type(model.prepared)).itemsize
    return 2 * size * model.n_nodes * levels + 8 * largest_block(model) ** 2


def _tables(model: Uncertain, worst: WorstMean, levels: int, before: Tables | None = None) -> Tables:
    """Return tables of this many levels, with the values known so far."""
    size, kind = model.n_nodes * levels, choice_type(model.prepared)
    tables = Tables(np.zeros(size), np.zeros(size), np.zeros(size), np.zeros(size, kind), levels)
    columns = *worst.base, worst.choice - model.sets.action_start[:-1]
    old = columns if before is None else before[:4]
    for flat, column, kept in zip(tables[:4], columns, old, strict=True):
        table = flat.reshape(-1, levels)
        table[:, 0] = column
        if before is not None:
            table[:, : before.stride] = kept.reshape(-1, before.stride)
    return tables
