"""The sweep over rising budgets: what it needs, how far it goes, how it stops and goes on.

It keeps the values of only as many levels as the largest cost reaches back, and each level's actions in the smallest
type that holds them; so its memory is known in advance but for the number of levels, which is at least the least
expected cost and at most about what :func:`likely_levels` says.
"""

import time
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.engine.cost_step import nice_step
from prudent.engine.prepare import prepare
from prudent.engine.prepared import Prepared, choice_type
from prudent.engine.sweep.backends import TIE, LevelPlace, Task, TilePlace
from prudent.engine.sweep.tile_layout import SURE, Tiling, tiling_of
from prudent.engine.sweep.tile_window import tile_and_width
from prudent.engine.values.bellman import full_round, solve_round
from prudent.engine.values.expected_cost import Expected, least_expected_cost
from prudent.engine.values.worst_case import UNREACHED, WorstCase, least_worst_case
from prudent.errors import PrudentError
from prudent.kernels.sweep import Aims, Base, Tables, Terms
from prudent.models.rows import FloatArray, IntArray
from prudent.runtime.limits import Limits, shown_bytes
from prudent.runtime.progress import Progress, announce

__all__ = [
    "BATCH",
    "BOTH",
    "BOUND",
    "EXCESS",
    "PLAN",
    "TIE",
    "Swept",
    "budget_sweep",
    "likely_levels",
    "seconds_per_level",
    "sweep_bytes",
    "window_of",
]

BATCH = 100_000_000
"""Outcomes times levels that one call of a kernel handles, so that progress and Ctrl-C get their turn."""

PER_LEVEL = 120
"""Bytes for each level, of what is noted of the start and computed from it."""

TILE_BATCH = 1_000_000_000
"""Outcomes times levels that are swept in tiles before progress and Ctrl-C get their turn."""

FIRST = 511
"""Levels that are swept before it is asked how far to go."""

TRIAL = 10**9
"""The most bytes that are taken to see how long a level takes."""

SAMPLE = 10_000_000
"""Outcomes times levels that are swept to see how long they take."""

ENOUGH = 100_000
"""The most levels that are swept for that."""

PLAN, BOUND, BOTH = Aims(True, False), Aims(False, True), Aims(True, True)
EXCESS = Terms(accrual=0.0, slope=1.0)


@dataclass(frozen=True)
class Swept:
    """What a sweep found, by budget: row 0 is for no budget."""

    excess: FloatArray  # (n_levels,)  U of the start
    low: FloatArray  # (n_levels,)  surely at most that
    mean: FloatArray  # (n_levels,)  M of the start
    choice: NDArray[Any]  # (n_levels, n_states)  the action's number within its state
    tables: Tables | None  # the values of all levels, if they were to be kept
    stopped: str  # why it ended early: "interrupted", "time", "memory", or nothing
    lost: float = np.nan  # at most so much is the policies' U above the least, relatively; if that is known


def budget_sweep(
    prepared: Prepared,
    base: Base,
    choice: IntArray,
    worst: WorstCase,
    limits: Limits,
    *,
    alpha: float | None = None,
    most: int = UNREACHED,
    aims: Aims = BOTH,
    terms: Terms = EXCESS,
    keep: bool = False,
) -> Swept:
    """Sweep the budgets upwards, to where no larger one can be optimal for alpha, or to ``most``.

    ``choice`` is a proper policy for no budget; ``keep`` keeps the values of all levels up to ``most``.
    """
    most = min(most, int(worst.value[prepared.start]))
    task = Task(prepared, base, choice, worst, aims, terms, keep, limits.threads)
    value = (base.excess if aims.plan else base.low)[prepared.start]
    best = np.inf if alpha is None else float(value) / alpha
    sure = int(min(most, value if alpha is not None else most))
    tiling = None if keep else _tiling(prepared, aims, min(most, best))
    if (need := sweep_bytes(prepared, sure, aims, keep)) > limits.memory:
        more = _advice(prepared, need, limits.memory, alpha, min(most, best), keep)
        limits.check(need, "the tables", more)
    place: LevelPlace | TilePlace
    place = LevelPlace(task) if tiling is None else TilePlace(task, tiling=tiling, most=most)
    batch = max((BATCH if tiling is None else TILE_BATCH) // max(len(prepared.cost), 1), 1)
    key = "" if limits.keeper is None else _key(prepared, base, aims, terms, alpha, most)
    kept = None if limits.keeper is None else limits.keeper.load(key)
    if kept is not None:
        place.resume(kept)
    resumed_at = place.done
    stopped = ""
    total = None if best == np.inf else best
    with limits, Progress("sweeping budgets", total=total, unit="levels") as progress:
        while True:
            if alpha is not None:
                f = np.arange(place.done) + place.found[0 if aims.plan else 1, : place.done] / alpha
                best = min(best, float(f.min()))
            end = min(most, best * (1 + 1e-9))
            if place.done > end:
                break
            last = int(min(place.done + min(batch, max(place.done, FIRST)), end + 1))
            while last > place.done + 1 and sweep_bytes(prepared, last, aims, keep) > limits.memory:
                last = (place.done + last) // 2  # by then fewer may turn out to be needed
            stopped = limits.stop
            if not stopped and sweep_bytes(prepared, last, aims, keep) > limits.memory:
                stopped = "memory"
            if limits.keeper is not None and (stopped or limits.keeper.due()):
                try:
                    limits.keeper.save(key, place.packed())
                except PrudentError as error:
                    if not stopped:
                        raise
                    announce(str(error))  # there is an answer to return all the same
            if stopped:
                break
            place.advance(last, final=last > end)
            progress.at(place.done, min(most, best))
    whole = place.choice
    excess, low, mean = place.found[:, : place.done]
    if limits.keeper is not None and not stopped and aims != BOTH and place.done > resumed_at:  # more sweeps follow
        limits.keeper.save(key, {"found": np.stack([excess, low, mean]), "choice": whole}, final=True)
    tables = place.tables if keep and isinstance(place, LevelPlace) else None
    lost = np.nan
    if isinstance(place, TilePlace) and tiling is not None:
        lost = float((1 + place.lost) ** tiling.sums * (1 + tiling.slip(np.array([place.done]))[0]) - 1)
    return Swept(excess, low, mean, whole, tables, stopped, lost)


def _tiling(prepared: Prepared, aims: Aims, levels: float) -> Tiling | None:
    """Return how to sweep in tiles, where that is good: not where rounding would be felt."""
    found = tiling_of(prepared)
    if found is not None and found.free and aims.plan:
        return None
    if found is not None and aims == BOTH and found.least > 0:
        return found if found.slip(np.array([min(levels, UNREACHED)]))[0] <= SURE else None
    return found


def _key(prepared: Prepared, base: Base, aims: Aims, terms: Terms, alpha: float | None, most: int) -> str:
    """Return what tells one sweep from all others."""
    digest = sha256(
        f"{prepared.model.fingerprint} {prepared.scale.step!r} {tuple(aims)} {tuple(terms)} {alpha!r} {most}".encode()
    )
    for array in (*base, prepared.action_start, prepared.outcome_start, prepared.cost, prepared.successor):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def sweep_bytes(prepared: Prepared, levels: int, aims: Aims = BOTH, keep: bool = False) -> int:
    """Return the memory that a sweep of so many levels takes, beside the model's."""
    n, tiling = prepared.n_states, None if keep else tiling_of(prepared)
    window = levels + 1 if keep else window_of(prepared, levels)
    values = 8 * n * window * (3 if aims.plan else 1)  # the evaluation afterwards takes three tables, too
    if tiling is not None:
        tile, width = tile_and_width(tiling, levels)
        carried = tiling.back * len(tiling.work.delay) if tiling.shares_rows else 0
        tables = 16 * (tiling.rows * width + carried) + 8 * tiling.room * tile
        values = tables if prepared.acyclic else max(values, tables)
    actions = 2 * n * (levels + 1) * np.dtype(choice_type(prepared)).itemsize if aims.plan else 0  # parts, then whole
    return values + actions + PER_LEVEL * (levels + 1)


def window_of(prepared: Prepared, most: int) -> int:
    """Return how many levels of values a sweep to level ``most`` has to keep."""
    return min(int(prepared.cost.max(initial=0)), most) + 1


def _advice(prepared: Prepared, wanted: int, memory: int, alpha: float | None, most: float, keep: bool) -> str:
    """Return what to do where more memory is wanted than there is: take a larger step, if one was found that fits."""
    largest = nice_step(max(float(np.abs(prepared.model.cost).max(initial=0.0)), prepared.scale.level_size))
    step, coarser, need = prepared.scale.level_size, wanted / memory, 0  # tables shrink no faster than steps grow
    while step < largest:
        step, coarser = min(nice_step(max(coarser, 1.5) * step), largest), 4.0
        need = _bytes_at(prepared, step, alpha, most, keep)
        if need <= memory:
            return (
                f"round costs to a larger step (step=, --step; {step:g} would fit), which gives bounds instead of the "
                "optimum, or allow more (memory=, --memory)"
            )
    even = f"; even with costs rounded to {step:g} they take about {shown_bytes(need)}" if need else ""
    return f"allow more (memory=, --memory){even}"


def _bytes_at(prepared: Prepared, step: float, alpha: float | None, most: float, keep: bool) -> int:
    """Return about what the tables take where costs are rounded to a larger step, rather too much than too little."""
    coarse = prepare(prepared.model, step)
    least, worst = least_expected_cost(coarse), least_worst_case(coarse)
    rounded = float(least.steps[coarse.start])  # each action may take one level more
    levels = 2 * (most * prepared.scale.level_size / step + rounded)
    if alpha is not None:
        levels = min(levels, 2 * (likely_levels(coarse, least, worst, alpha) + rounded), worst.at(coarse.start))
    return sweep_bytes(coarse, int(min(levels, UNREACHED)) + 1, PLAN, keep)


def likely_levels(prepared: Prepared, least: Expected, worst: WorstCase, alpha: float) -> float:
    """Return about how many levels a sweep for alpha goes through, rather too many than too few.

    It ends at the optimal CVaR.  That is at most the least worst case, and at most the CVaR of the policy of least
    expected cost, for which Cantelli's inequality takes its mean and its variance.
    """
    played = np.zeros(prepared.n_actions, dtype=bool)
    played[least.choice[np.diff(prepared.action_start) > 0]] = True
    cost = prepared.scale.unrounded(prepared.fine)
    square = prepared.probability * cost * (cost + 2 * least.value[prepared.successor])
    k = np.bincount(prepared.outcome_action, weights=square, minlength=prepared.n_actions).astype(np.float64)
    second = solve_round(full_round(prepared), k, played, least.choice.copy(), finest=1e-3)
    mean = float(least.value[prepared.start])
    spread = float(np.sqrt(max(float(second[prepared.start]) - mean**2, 0.0)))
    cantelli = mean + spread * float(np.sqrt((1 - alpha) / alpha))
    return float(min(worst.at(prepared.start), mean / alpha, cantelli, UNREACHED - 1) + 1)


def seconds_per_level(prepared: Prepared, base: Base, choice: IntArray, levels: int) -> float:
    """Sweep a few levels, on values that mean nothing; return how long one takes."""
    worst = WorstCase(np.full(prepared.n_states, UNREACHED), np.full(prepared.n_actions, UNREACHED))
    task, tiling = Task(prepared, base, choice, worst, BOTH, EXCESS), _tiling(prepared, BOTH, levels)
    wide = tiling if tiling is not None and prepared.acyclic and not tiling.shares_rows else None
    row = 0 if wide is None else 32 * wide.rows
    few = min(max(SAMPLE // max(len(prepared.cost), 1), 1), max(levels, 1), ENOUGH)
    while few > 1 and max(sweep_bytes(prepared, 2 * few), row * few) > TRIAL:
        few //= 2
    if sweep_bytes(prepared, 2 * few) > TRIAL:
        return float("nan")
    if wide is not None:  # let all of its nodes count from the first level, as they will later on
        back = min(int(wide.work.cost.max(initial=0)), 2 * few + 1)
        tiling = replace(wide, work=wide.work._replace(delay=np.zeros_like(wide.work.delay)), back=back)
    place: LevelPlace | TilePlace
    place = LevelPlace(task) if tiling is None else TilePlace(task, tiling=tiling, most=levels + 2 * few)
    place.advance(max(min(levels // 2, few), 1) + 1)  # by now the kernel is loaded
    first, began = place.done, time.perf_counter()
    place.advance(first + few)
    return (time.perf_counter() - began) / few
