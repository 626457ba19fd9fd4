"""``replan``: a new plan from the current state of a run, with the remaining budget.

A plan of minimal CVaR has the least expected excess E[(C - z)+] over its budget z, which is its VaR, and the lowest
expected cost of all plans with that excess.  After a run has spent x, the excess is (C' - (z - x))+, with C' the cost
still to come.  So from there the same question asks for the least expected excess over z - x, and then the lowest
expected cost.  The minimal CVaR of the cost still to come is another question, which ignores the cost so far: its
answer differs from the plan even if nothing has changed.
"""

from collections.abc import Hashable
from dataclasses import replace
from math import inf, isfinite

import numpy as np

from prudent.errors import PrudentError, as_number
from prudent.methods.objectives import Exceedance, Excess, MeanPlusCVaR, Objective, ValueAtRisk
from prudent.models.ssp import SSP, check_model
from prudent.planning.solve import solve
from prudent.results.plan import Plan


def replan(
    plan: Plan,
    state: Hashable,
    spent: float = 0.0,
    *,
    model: SSP | None = None,
    memory: int | float | str | None = None,
    time_limit: float | None = None,
    threads: int | None = None,
) -> Plan:
    """Plan anew from the current state of a run, with the remaining budget of its plan.

    The new plan has the least expected excess over the remaining budget (:class:`Excess`); if the plan is for
    :class:`Exceedance` or :class:`ValueAtRisk`, the minimal probability of exceeding it.  A plan of lowest expected
    cost is followed by another one.  Use ``replan`` if the model has changed during the run; on an unchanged model the
    plan already continues this way.  All numbers of the new plan, and the ``spent`` of its policy, are counted from the
    current state.

    Parameters
    ----------
    plan : Plan
        The plan that the run has followed so far.
    state, spent : hashable, float
        The current state and the cost of the run so far.
    model : SSP, optional
        The model from now on; the plan's own by default.
    memory, time_limit, threads : optional
        As in :func:`solve`.

    Examples
    --------
    >>> import prudent
    >>> trip = {
    ...     "home": {"bus": [(0.5, "work", 2), (0.5, "work", 8)]},
    ...     "work": {"bus": [(0.5, "back", 2), (0.5, "back", 8)], "taxi": [(1, "back", 6)]},
    ... }
    >>> plan = prudent.solve(prudent.build("home", trip.get, goals=["back"]), alpha=0.3)
    >>> plan.policy.budget, plan.policy("work", spent=8)
    (14.0, 'taxi')
    >>> trip["work"]["taxi"] = [(1, "back", 9)]  # the price has gone up
    >>> now = prudent.replan(plan, "work", spent=8, model=prudent.build("home", trip.get, goals=["back"]))
    >>> now.policy("work"), str(now.objective), now.objective.value, now.expected
    ('bus', 'expected excess over 6', 1.0, 5.0)
    """
    if not isinstance(plan, Plan):
        raise PrudentError(f"plan is a {type(plan).__name__}; it must be a plan from prudent.solve")
    if plan.intervals is not None:
        raise PrudentError("plan is for a set of models; solve the model from the current state with uncertainty=")
    model = plan.model if model is None else model
    check_model(model)
    here = model.index(state)
    if model.is_goal[here]:
        raise PrudentError(f"state {state!r} is a goal; the run is over, so there is nothing to plan")
    onwards = replace(model, initial_state=np.array([here]), initial_probability=np.ones(1))
    left = _objective(plan, as_number("spent", spent, "a finite number", isfinite))
    method = "exact" if left is not None else "expected"
    return solve(
        onwards, plan.alpha, method=method, objective=left, memory=memory, time_limit=time_limit, threads=threads
    )


def _objective(plan: Plan, spent: float) -> Objective | None:
    """Return the objective that a plan has left after a cost so far; None for the lowest expected cost."""
    if plan.method == "expected":
        return None
    aim = "" if plan.objective is None else plan.objective.objective
    if plan.max_cvar < inf or plan.method not in ("exact", "worst-case") or aim == MeanPlusCVaR.name:
        raise PrudentError(
            "this plan has no objective for the rest of a run: replan takes plans for CVaR, VaR, the probability of "
            "exceeding a budget, expected excess, worst-case cost or expected cost, not those of the paper's methods, "
            "with a limit on CVaR or for MeanPlusCVaR; solve the model from the current state instead"
        )
    left = plan.policy.whole - spent
    if aim in (Exceedance.name, Excess.name):  # the budget asked for: no run need spend exactly that
        left = float(plan.objective.parameter or 0.0) - spent  # type: ignore[union-attr]
    return Exceedance(left) if aim in (Exceedance.name, ValueAtRisk.name) else Excess(left)
