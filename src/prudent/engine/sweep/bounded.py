"""A sweep for a plan that carries a lower bound, whatever the costs.

Where costs are exact one sweep has both.  Where they are rounded, the plan is swept on costs rounded up, and the bound
on costs rounded down: :mod:`prudent.methods.exact` says why that holds.
"""

from dataclasses import replace

import numpy as np

from prudent.engine.prepare import prepare
from prudent.engine.prepared import Prepared
from prudent.engine.sweep.driver import budget_sweep
from prudent.engine.sweep.task import BOTH, BOUND, EXCESS, PLAN, TIE, Swept
from prudent.engine.values.bellman import UNIT
from prudent.engine.values.expected_cost import least_expected_cost, proper_choice, surely_expected
from prudent.engine.values.worst_case import UNREACHED, WorstCase, least_worst_case
from prudent.kernels.sweep import Base, Terms
from prudent.models.rows import FloatArray
from prudent.runtime.limits import Limits

__all__ = ["bounded_sweep", "surely_above", "without_safety"]


def bounded_sweep(
    prepared: Prepared,
    base: Base,
    worst: WorstCase,
    limits: Limits,
    *,
    alpha: float | None = None,
    most: int = UNREACHED,
    terms: Terms = EXCESS,
    exhausted: float | None = None,
    bounded: bool = True,
    tie: float = TIE,
) -> Swept:
    """Sweep the budgets upwards, to where no larger one can be optimal for alpha, or to ``most``.

    Without budget the policy of least expected cost is played.  The first objective then is ``exhausted`` if that is
    given, which the base says too, else made of the terms.  With ``bounded`` false and rounded costs there is no bound.
    """
    choice = least_expected_cost(prepared).choice
    aims = PLAN if prepared.scale.rounded else BOTH
    low, stopped = np.zeros(1), ""
    if prepared.scale.rounded and bounded:
        low, stopped = surely_above(prepared, limits, alpha=alpha, most=most, terms=terms, exhausted=exhausted)
        if stopped:  # what follows is only for an answer; that sweep's place is the one to go on from
            limits = replace(limits, keeper=None)
    swept = budget_sweep(prepared, base, choice, worst, limits, alpha=alpha, most=most, aims=aims, terms=terms, tie=tie)
    return replace(swept, low=low, stopped=swept.stopped or stopped) if prepared.scale.rounded else swept


def surely_above(
    prepared: Prepared,
    limits: Limits,
    *,
    alpha: float | None = None,
    most: int = UNREACHED,
    terms: Terms = EXCESS,
    exhausted: float | None = None,
) -> tuple[FloatArray, str]:
    """Sweep costs rounded down, to where no larger budget can be optimal for alpha, or to ``most``.

    Without budget the first objective is made of the terms and V, unless it is ``exhausted``, whatever the state.
    Return what the first objective surely is at least, for the budgets from 0 up, and why it was stopped, if it was.
    """
    down = prepare(prepared.model, prepared.scale.step, down=True)
    least = surely_expected(prepared, least_expected_cost(prepared))
    # Rounded down, more states lie on free cycles and count as one: it has the least of its members' values.
    low = np.full(down.n_states, np.inf)
    known = prepared.members.state_of >= 0
    np.minimum.at(low, down.members.state_of[known], least[prepared.members.state_of[known]])
    low[down.start] = min(low[down.start], least[prepared.start])
    # Limits from the right: row b stands for a budget just above b - 1, which is gone only at b charged.
    low = ((terms.accrual + terms.slope) * low + terms.slope) * (1 - 4 * UNIT)
    if exhausted is not None:
        low = np.full(down.n_states, exhausted)
    worst = least_worst_case(down)
    worst = WorstCase(np.minimum(worst.value + 1, UNREACHED), np.minimum(worst.action_value + 1, UNREACHED))
    if terms.accrual > 0:
        worst = without_safety(down)
    base = Base(low, low, low)
    swept = budget_sweep(
        down, base, proper_choice(down), worst, limits, alpha=alpha, most=most, aims=BOUND, terms=terms
    )
    return swept.low[1:], swept.stopped


def without_safety(prepared: Prepared) -> WorstCase:
    """Return a worst case for objectives in which costs count before the budget is gone, too: only goals are safe."""
    value = np.where(prepared.is_goal, 0, UNREACHED)
    return WorstCase(value, np.full(prepared.n_actions, UNREACHED))
