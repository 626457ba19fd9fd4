"""The sweep over rising budgets against nature, which chooses probabilities from intervals at every visit.

:mod:`prudent.kernels.robust` settles states; here is how far it goes.  Without cycles levels are swept in long tiles,
each state no further than a run can have left there.  With cycles a tile is as long as the least cost above 0, so that
states look only at tiles before, or at states at no cost from them.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.engine.prepared import choice_type
from prudent.engine.sweep.task import TIE
from prudent.engine.uncertain import Uncertain
from prudent.engine.values.robust_cost import WorstMean
from prudent.kernels.robust import AHEAD, Scratch, Tables, settle
from prudent.models.rows import FloatArray
from prudent.runtime.limits import Limits, Stopped
from prudent.runtime.progress import Progress

__all__ = ["RobustSweep", "robust_sweep"]

LONGEST, BATCH = 1024, 2**26
"""The most levels of a tile, and its most outcomes times levels: some tenths of a second."""

FURTHER = 1.3
"""How far the first tables go, as a multiple of the levels that are surely needed."""

CYCLES = 1e-9
"""What is added to the error where values of free cycles are found by passes."""


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
    prepared, base, start = model.prepared, worst.base, model.prepared.start
    costly = prepared.cost[prepared.cost > 0]
    blocks = (prepared.blocks if prepared.acyclic else prepared.free_blocks)[:2]
    tile = LONGEST if prepared.acyclic else int(min(costly.min(initial=LONGEST), LONGEST))
    tile = max(min(tile, BATCH // max(len(prepared.cost), 1)), 1)
    ahead = prepared.least_spent if prepared.acyclic else np.zeros(prepared.n_states, dtype=np.int64)
    most_actions = int(np.diff(prepared.action_start).max(initial=1))
    most_outcomes = int(np.diff(prepared.outcome_start).max(initial=1))
    rows = np.empty(most_outcomes), np.empty(most_outcomes)
    lines = np.empty(most_actions * tile), np.empty(tile), np.empty(tile), np.empty(tile)
    ahead_of = (np.empty(AHEAD) for _ in range(5))
    scratch = Scratch(model.fresh_order, model.fresh_order, *rows, *ahead_of, *lines, tile)
    sure = float(worst.value[start])
    limits.check(
        _bytes(model, int(sure) + 2), "the tables of a robust plan",
        "allow more (memory=, --memory), or give a larger step= (--step)",
    )  # fmt: skip
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
            settle(*blocks, done, last, ahead, model.sets, base, tables, TIE, scratch)
            done = last
            progress.at(done, best)
    sums = prepared.longest if prepared.acyclic else (int(prepared.free_depth.max(initial=0)) + 1) * (done + 1)
    error = 2 * (sums + 1) * model.rounding
    if not prepared.acyclic and (np.diff(blocks[0]) > 1).any():
        error += CYCLES
    excess, below, mean = (table[row : row + done].copy() for table in tables[:3])
    choice = np.ascontiguousarray(tables.choice.reshape(-1, tables.stride)[:, :done].T)
    return RobustSweep(excess, below, mean, choice, error, stopped)


def _bytes(model: Uncertain, levels: int) -> int:
    size = 3 * 8 + 2 * np.dtype(choice_type(model.prepared)).itemsize
    return 2 * size * model.prepared.n_states * levels


def _tables(model: Uncertain, worst: WorstMean, levels: int, before: Tables | None = None) -> Tables:
    """Return tables of so many levels, with what is known already."""
    prepared, size = model.prepared, model.prepared.n_states * levels
    tables = Tables(*(np.zeros(size) for _ in range(3)), np.zeros(size, dtype=choice_type(prepared)), levels)
    columns = *worst.base, worst.choice - prepared.action_start[:-1]
    for i, column in enumerate(columns):
        table = tables[i].reshape(-1, levels)
        table[:, 0] = column
        if before is not None:
            table[:, : before.stride] = before[i].reshape(-1, before.stride)
    return tables
