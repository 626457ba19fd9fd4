"""A sweep that yields a plan and a lower bound, with exact and with rounded costs.

With exact costs, one sweep yields both.  With rounded costs, a sweep on costs rounded up yields the plan, and another
on costs between levels yields the bound; :mod:`prudent.methods.exact` gives the proof.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np

from prudent.engine.prepare import prepare
from prudent.engine.prepared import Prepared
from prudent.engine.sweep.driver import budget_sweep
from prudent.engine.sweep.question import BOUND, EXCESS, PLAN, Question, without_safety
from prudent.engine.sweep.task import Swept
from prudent.engine.values.bellman import UNIT
from prudent.engine.values.expected_cost import surely_expected
from prudent.engine.values.worst_case import UNREACHED, WorstCase, least_worst_case
from prudent.kernels.questions import Base, Terms
from prudent.models.rows import FloatArray
from prudent.runtime.limits import Limits


def bounded_sweep(
    prepared: Prepared,
    question: Question,
    limits: Limits,
    *,
    alpha: float | None = None,
    most: int = UNREACHED,
    exhausted: float | None = None,
    bounded: bool = True,
    until: Callable[[float], bool] | None = None,
) -> Swept:
    """Sweep rising budgets until no larger one can be optimal for alpha, or up to ``most``.

    Without budget the first objective is ``exhausted`` if given, and the base must agree; otherwise the terms determine
    it.  With rounded costs, ``bounded=False`` leaves out the bound.  With ``until`` sweeps also end once that holds for
    the first objective of the start.
    """
    options: dict[str, Any] = {"alpha": alpha, "most": most, "until": until}
    if not prepared.scale.rounded:
        return budget_sweep(prepared, question, limits, **options)
    question = replace(question, aims=PLAN)
    if not bounded:
        return replace(budget_sweep(prepared, question, limits, **options), low=np.zeros(1))

    surely_expected(prepared, limits)  # now, and not in both threads below
    side_by_side = limits.threads > 1 and limits.keeper is None and limits.ranks is None  # ranks follow one at a time
    limits = replace(limits, threads=-(-limits.threads // 2)) if side_by_side else limits

    def plan(limits: Limits) -> Swept:
        return budget_sweep(prepared, question, limits, **options)

    def bound() -> tuple[FloatArray, str]:
        return surely_above(prepared, limits, terms=question.terms, exhausted=exhausted, **options)

    if side_by_side:
        with limits, ThreadPoolExecutor(1, thread_name_prefix="prudent") as pool:
            below = pool.submit(bound)
            swept, (low, stopped) = plan(limits), below.result()
    else:
        low, stopped = bound()
        # If that sweep was stopped, the checkpoint is its own; the next sweep only yields an answer.
        swept = plan(replace(limits, keeper=None) if stopped else limits)
    return replace(swept, low=low, stopped=swept.stopped or stopped)


def surely_above(
    prepared: Prepared,
    limits: Limits,
    *,
    alpha: float | None = None,
    most: int = UNREACHED,
    terms: Terms = EXCESS,
    exhausted: float | None = None,
    until: Callable[[float], bool] | None = None,
) -> tuple[FloatArray, str]:
    """Sweep for a lower bound until no larger budget can be optimal for alpha, or up to ``most``.

    Without budget the first objective is ``exhausted`` in all states if given; otherwise it follows from the terms and
    V.  With costs between levels, the bound is linear between levels.  An ``exhausted`` objective is not linear, so for
    it costs are rounded down; so are they if steps are too coarse for the other bound.  Return the bound for each
    budget from 0 up, and why the sweep stopped early, if it did.
    """
    options: dict[str, Any] = {"alpha": alpha, "most": most, "until": until}
    if exhausted is None:
        low, stopped = _swept_below(prepared, limits, terms, between=True, **options)
        least = float((np.arange(len(low)) + low / (alpha or 1.0)).min())
        of_use = least >= surely_expected(prepared, limits)[prepared.start]
        if of_use or stopped or (not np.isfinite(low).all() and alpha is None):
            return low, stopped
    return _swept_below(prepared, limits, terms, between=False, exhausted=exhausted, **options)


def _swept_below(
    prepared: Prepared, limits: Limits, terms: Terms, *, between: bool, exhausted: float | None = None, **options: Any
) -> tuple[FloatArray, str]:
    """Sweep costs between levels, or rounded down."""
    below, base, worst = beneath(prepared, terms, limits, between=between)
    if exhausted is not None:
        base = Base(*[np.full(below.n_states, exhausted)] * 3)
    question = Question(base, below.proper_choice(), worst, BOUND, terms)
    swept = budget_sweep(below, question, limits, **options)
    return swept.low if between else swept.low[1:], swept.stopped


def beneath(prepared: Prepared, terms: Terms, limits: Limits, *, between: bool) -> tuple[Prepared, Base, WorstCase]:
    """Return what a sweep for a lower bound needs: costs between levels or rounded down, their base and worst case."""
    below = prepare(prepared.model, prepared.scale.step, limits, down=not between, between=between)
    least = surely_expected(prepared, limits)
    # More cycles are free, so more states are collapsed into one, which takes the least of its members' values.
    low = np.full(below.n_states, np.inf)
    known = prepared.members.state_of >= 0
    np.minimum.at(low, below.members.state_of[known], least[prepared.members.state_of[known]])
    low[below.start] = min(low[below.start], least[prepared.start])
    # Rounded down, row b stands for budgets just above b - 1 (limits from the right): they are used up by a cost of b.
    low = ((terms.accrual + terms.slope) * low + (0.0 if between else terms.slope)) * (1 - 4 * UNIT)
    worst = least_worst_case(below, limits)
    worst = WorstCase(np.minimum(worst.value + 1, UNREACHED), np.minimum(worst.action_value + 1, UNREACHED))
    return below, Base(low, low, low), without_safety(below) if terms.accrual > 0 else worst
