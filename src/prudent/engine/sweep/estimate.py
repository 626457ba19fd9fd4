"""What a sweep takes, before it is begun: levels, memory, time.  The one home of these estimates.

A sweep keeps the values of only as many levels as the largest cost reaches back, and each level's actions in the
smallest type that holds them; so its memory is known but for the number of levels, which is at least the least expected
cost and at most about what :func:`likely_levels` says.
"""

import time
from dataclasses import replace

import numpy as np

from prudent.engine.cost_step import nice_step
from prudent.engine.prepare import prepare
from prudent.engine.prepared import Prepared, choice_type
from prudent.engine.sweep.backends import BACKENDS, backend_for
from prudent.engine.sweep.task import BOTH, EXCESS, PLAN, Task
from prudent.engine.values.bellman import all_arcs, solve_bellman
from prudent.engine.values.expected_cost import Expected, least_expected_cost
from prudent.engine.values.worst_case import UNREACHED, WorstCase, least_worst_case
from prudent.kernels.sweep import Aims
from prudent.runtime.limits import shown_bytes

__all__ = ["likely_levels", "memory_advice", "seconds_per_level", "sweep_bytes"]

PER_LEVEL = 120
"""Bytes for each level, of what is noted of the start and computed from it."""

TRIAL = 10**9
"""The most bytes that are taken to see how long a level takes."""

SAMPLE = 10_000_000
"""Outcomes times levels that are swept to see how long they take."""

ENOUGH = 100_000
"""The most levels that are swept for that."""


def sweep_bytes(prepared: Prepared, levels: int, aims: Aims = BOTH, keep: bool = False) -> int:
    """Return the memory that a sweep of so many levels takes, beside the model's."""
    values = max(backend.table_bytes(prepared, levels, aims, keep=keep) for backend in BACKENDS)
    kind = np.dtype(choice_type(prepared))
    actions = 2 * prepared.n_states * (levels + 1) * kind.itemsize if aims.plan else 0  # in parts, then as a whole
    return values + actions + PER_LEVEL * (levels + 1)


def memory_advice(prepared: Prepared, wanted: int, memory: int, alpha: float | None, most: float, keep: bool) -> str:
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
    played = prepared.playing(least.choice)
    cost = prepared.scale.unrounded(prepared.fine)
    square = prepared.probability * cost * (cost + 2 * least.value[prepared.successor])
    k = np.bincount(prepared.outcome_action, weights=square, minlength=prepared.n_actions).astype(np.float64)
    second = solve_bellman(all_arcs(prepared), k, played, least.choice.copy(), finest=1e-3)
    mean = float(least.value[prepared.start])
    spread = float(np.sqrt(max(float(second[prepared.start]) - mean**2, 0.0)))
    cantelli = mean + spread * float(np.sqrt((1 - alpha) / alpha))
    return float(min(worst.at(prepared.start), mean / alpha, cantelli, UNREACHED - 1) + 1)


def seconds_per_level(prepared: Prepared, least: Expected, levels: int) -> float:
    """Sweep a few levels, on values that mean nothing; return how long one takes, if there is memory to try."""
    worst = WorstCase(np.full(prepared.n_states, UNREACHED), np.full(prepared.n_actions, UNREACHED))
    few = min(max(SAMPLE // max(len(prepared.cost), 1), 1), max(levels, 1), ENOUGH)
    task = Task(prepared, least.base, least.choice, worst, BOTH, EXCESS, most=levels + 2 * few)
    kind = backend_for(task, levels)
    while few > 1 and max(sweep_bytes(prepared, 2 * few), kind.trial_bytes(prepared, few)) > TRIAL:
        few //= 2
    if sweep_bytes(prepared, 2 * few) > TRIAL:
        return float("nan")
    trial = kind.trial(replace(task, most=levels + 2 * few), few)
    trial.advance(max(min(levels // 2, few), 1) + 1)  # by now the kernel is loaded
    first, began = trial.done, time.perf_counter()
    trial.advance(first + few)
    return (time.perf_counter() - began) / few
