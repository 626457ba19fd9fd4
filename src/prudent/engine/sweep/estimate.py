"""Estimates of the levels, memory and time that a sweep will take.

A sweep keeps the values of only as many levels as the largest cost looks back, and the actions of all levels in the
smallest type that holds them.  So its memory depends only on the number of levels.  That number is at least the least
expected cost and at most about what :func:`likely_levels` returns.
"""

import time
from dataclasses import replace

import numpy as np

from prudent.engine.cost_step import nice_step
from prudent.engine.prepare import prepare
from prudent.engine.prepared import Prepared, choice_type
from prudent.engine.sweep.backends import BACKENDS, backend_for
from prudent.engine.sweep.device_tiles import TILE
from prudent.engine.sweep.levels import LevelSweep
from prudent.engine.sweep.question import BOTH, PLAN, Question
from prudent.engine.sweep.task import AT_FIRST, Task
from prudent.engine.sweep.tile_layout import tiling_of
from prudent.engine.values.expected_cost import least_expected_cost
from prudent.engine.values.worst_case import UNREACHED, WorstCase, least_worst_case
from prudent.kernels.questions import Aims
from prudent.runtime.limits import UNLIMITED, Limits, shown_bytes
from prudent.runtime.ranks import Ranks

PER_LEVEL = 120
"""Bytes for each level, for the values of the start and arrays derived from them."""

LAYERS, FOLLOWED = 3, 200_000_000
"""Tables of an evaluation: a probability and two moments of what rounding left out; and the most numbers in them for
which a policy is followed level by level."""

OVERHEAD = 2000.0
"""What following a policy takes on each level besides its outcomes, counted in outcomes: time, and room in memory."""

TRIAL = 2 * 10**9
"""The most bytes that timing a few levels may take."""

AT_LEAST, ENOUGH = 4, 100_000
"""The fewest and the most levels that are swept to time them."""

LAUNCH, BY_LEVEL, IN_TILES, UPLOAD, BEGIN = 8e-6, 3e-11, 5e-12, 5e-8, 0.5
"""About the seconds a GPU takes: to launch a kernel, for an outcome on a level, the same in tiles, to lay out and
upload an outcome, and to begin.  Measured on one H200."""

WORTH = 2.0
"""How many times faster a GPU must be to be advised."""

MORE, BEYOND = "raise memory= (--memory)", 10**14
"""The advice to raise the memory limit, and the bytes that no machine has."""


def sweep_bytes(
    prepared: Prepared, levels: int, aims: Aims = BOTH, keep: bool = False, ranks: Ranks | None = None
) -> int:
    """Return the memory that a sweep of this many levels takes, without the model's.

    If ranks share the sweep: on rank 0, which has all actions in the end.  With cycles it has the values of its own
    states and of states that these look at, at most one for each outcome.
    """
    values = max(backend.table_bytes(prepared, levels, aims, keep=keep) for backend in BACKENDS)
    kind = np.dtype(choice_type(prepared))
    pairs = prepared.n_states * (levels + 1) if aims.plan else 0
    copies = 2.0 if pairs > AT_FIRST else 1.0  # a long table may be copied as it grows
    if ranks is not None and not keep:
        copies = 1 + 1 / ranks.size  # its share, and the whole
        if tiling_of(prepared) is None and not prepared.between:
            whole = LevelSweep.table_bytes(prepared, levels, aims, keep=keep)
            values = int(whole * min((1 + len(prepared.cost) / prepared.n_states) / ranks.size, 1))
    return values + int(copies * pairs * kind.itemsize) + PER_LEVEL * (levels + 1)


def solve_bytes(prepared: Prepared, levels: int) -> int:
    """Return the memory that a solve of this many levels takes: with rounded costs, also a bound and an evaluation."""
    if not prepared.scale.rounded:
        return sweep_bytes(prepared, levels)
    largest = prepared.cost_range[1]
    looked_back, ahead = min(largest, levels) + 1, LAYERS * (largest + 1)
    if ahead * prepared.n_states > FOLLOWED:
        ahead = LAYERS * looked_back  # the policy is not followed level by level
    return sweep_bytes(prepared, levels, PLAN) + 8 * prepared.n_states * (looked_back + ahead)


def memory_advice(prepared: Prepared, wanted: int, limits: Limits, alpha: float | None, most: float, keep: bool) -> str:
    """Return advice for a sweep that needs more memory than there is: a larger step that fits, if one is found.

    Raising the limit is advised only if a machine may have that much.
    """
    largest = nice_step(max(float(np.abs(prepared.model.cost).max(initial=0.0)), prepared.scale.level_size))
    step, fits, need = prepared.scale.level_size, np.nan, 0
    coarser = wanted / limits.memory  # tables shrink no faster than steps grow
    while step < largest:
        step, coarser = min(nice_step(max(coarser, 1.5) * step), largest), 4.0
        need, evaluated = _bytes_at(prepared, step, limits, alpha, most, keep)
        if need <= limits.memory:
            fits = step
            if evaluated <= limits.memory:  # better than a finer step at which the plan cannot be evaluated
                break
    if not np.isnan(fits):
        larger = f"round costs to a larger step (step=, --step; {fits:g} would fit)"
        return f"{larger}, which gives bounds instead of the optimum{'' if wanted > BEYOND else f', or {MORE}'}"
    even = f"; even with costs rounded to {step:g} the tables take about {shown_bytes(need)}" if need else ""
    if (need or wanted) <= BEYOND:
        return f"{MORE}{even}"
    return (
        f"no machine has that much{even}; plan for the expected cost only (method='expected', --method expected), or "
        "limit the number of actions with horizon= in prudent.amend, or --horizon"
    )


def _bytes_at(
    prepared: Prepared, step: float, limits: Limits, alpha: float | None, most: float, keep: bool
) -> tuple[int, int]:
    """Estimate the memory with costs rounded to a larger step, too high rather than too low.

    Return the memory of the tables alone, and with a lower bound and an evaluation.
    """
    coarse = prepare(prepared.model, step, limits)
    # Rounding may add one level for each action.
    rounded = float(least_expected_cost(coarse, limits).steps(limits)[coarse.start])
    levels = 2 * (most * prepared.scale.level_size / step + rounded)
    if alpha is not None:
        worst = least_worst_case(coarse, limits).at(coarse.start)
        levels = min(levels, 2 * (likely_levels(coarse, alpha, limits) + rounded), worst)
    levels = int(min(levels, UNREACHED)) + 1
    tables = sweep_bytes(coarse, levels, PLAN, keep)
    return tables, max(tables, solve_bytes(coarse, levels))


def likely_levels(prepared: Prepared, alpha: float, limits: Limits = UNLIMITED) -> float:
    """Estimate the number of levels of a sweep for alpha, too high rather than too low.

    The sweep ends at the optimal CVaR.  That is at most the minimal worst-case cost, and at most the CVaR of the policy
    of least expected cost, which Cantelli's inequality bounds by that policy's mean and variance.
    """
    least, (_, most) = least_expected_cost(prepared, limits), _surely_levels(prepared, alpha, limits)
    spread = float(np.sqrt(least.variance(limits)[prepared.start]))
    return min(most, float(least.value[prepared.start]) + spread * float(np.sqrt((1 - alpha) / alpha)) + 1)


def within_levels(prepared: Prepared, alpha: float, most: float, limits: Limits = UNLIMITED) -> bool:
    """Return whether at most this many levels are likely; the variance is computed only if nothing else decides."""
    fewest, surely = _surely_levels(prepared, alpha, limits)
    return surely <= most or (fewest <= most and likely_levels(prepared, alpha, limits) <= most)


def _surely_levels(prepared: Prepared, alpha: float, limits: Limits) -> tuple[float, float]:
    """Return bounds on the likely levels that need no variance."""
    mean = float(least_expected_cost(prepared, limits).value[prepared.start])
    most = min(least_worst_case(prepared, limits).at(prepared.start), mean / alpha, UNREACHED - 1) + 1
    return min(mean + 1, most), most


def followed_per_level(prepared: Prepared) -> float:
    """Return the work of following a policy through one level, in outcomes; few of them take no less than OVERHEAD."""
    return max(work_per_level(prepared), OVERHEAD)


def work_per_level(prepared: Prepared) -> float:
    """Return the work of one level, counted in outcomes; a cycle of free outcomes is solved by elimination."""
    size = np.diff(prepared.free_blocks[0])
    return float(max(len(prepared.cost), 1) + (size[size > 1].astype(np.float64) ** 3).sum() / 3)


def advised_device(prepared: Prepared, levels: int, seconds: float) -> str:
    """Return the device to advise for a solve of this many levels that takes this many seconds on this machine's CPU.

    A GPU needs many states in parallel: it does not pay off for small models, or if states wait for each other.
    """
    tiling = tiling_of(prepared) if prepared.acyclic else None
    if prepared.scale.rounded or (tiling is None and len(prepared.free_blocks[0]) <= prepared.n_states):
        return "cpu"  # bounds, or the whole sweep, stay there
    if tiling is not None:
        takes = tiling.n_layers * LAUNCH * (1 + levels / TILE) + len(tiling.work.cost) * levels * IN_TILES
    else:
        layers = 1 + int(prepared.free_depth.max(initial=0))
        takes = levels * (layers * LAUNCH + len(prepared.cost) * BY_LEVEL)
    return "gpu" if WORTH * (BEGIN + UPLOAD * len(prepared.cost) + takes) < seconds else "cpu"


def seconds_per_level(prepared: Prepared, levels: int, limits: Limits = UNLIMITED) -> float:
    """Return the time per level, measured on a few levels with arbitrary values; nan if that takes too much memory."""
    least = least_expected_cost(prepared, limits)
    worst = WorstCase(np.full(prepared.n_states, UNREACHED), np.full(prepared.n_actions, UNREACHED))
    threads = limits.threads
    task = Task(prepared, Question(least.base, least.choice, worst), levels, False, threads, levels, limits.device)
    kind = backend_for(task, levels)
    few = min(max(threads * kind.sample // kind.outcomes(prepared), AT_LEAST), max(levels, 1), ENOUGH)
    while few > 1 and max(sweep_bytes(prepared, 2 * few), kind.trial_bytes(prepared, few)) > TRIAL:
        few //= 2
    if sweep_bytes(prepared, 2 * few) > TRIAL:
        return float("nan")
    trial = kind.trial(replace(task, most=levels + 2 * few), few)
    trial.advance(trial.done + max(min(levels // 2, few), 1))  # after this the kernel is loaded
    first, began = trial.done, time.perf_counter()
    trial.advance(first + few)
    return (time.perf_counter() - began) / few
