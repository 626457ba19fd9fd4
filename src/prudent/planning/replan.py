"""``replan``: a new plan from where a run is, with the budget that is left.

A plan of least CVaR has the least expected excess E[(C - z)+] over its budget z, which is its VaR, and the least
expected cost of all plans that do.  After a run has spent x, that excess is (C' - (z - x))+, with C' the cost still to
come.  So from there the same question is the least expected excess over z - x, the expected cost second.  On the same
model the plan itself answers it: from there on it has the same excess and the same expected cost.  On another model the
new answer is the best there, for the same budget.

The least CVaR of the cost still to come is another question: it forgets what was spent, so its answer is not that of
the plan even if nothing has changed.
"""

from collections.abc import Hashable
from dataclasses import replace
from math import inf, isfinite

import numpy as np

from prudent.errors import PrudentError, as_number
from prudent.methods.objectives import Exceedance, Excess, Objective
from prudent.models.ssp import SSP, check_model
from prudent.planning.solve import solve
from prudent.results.plan import Plan

__all__ = ["replan"]


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
    """Plan anew from a state on the way, with what is left of a plan's budget.

    The new plan has the least expected excess over what is left of the plan's budget, and the least expected cost of
    all plans that do (:class:`Excess`).  Where the plan is for :class:`Exceedance` or :class:`ValueAtRisk`, it has the
    least probability of exceeding that budget; after a plan of least expected cost comes another one.  This is for a
    model that has changed on the way: on its own model the plan goes on in this way by itself.

    All numbers of the new plan, and what its policy takes as ``spent``, are counted from here.

    Parameters
    ----------
    plan : Plan
        The plan that the run has followed so far.
    state : hashable
        The state that the run is in.
    spent : float
        What the run has cost on the way there.
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
    ('bus', 'excess over 6', 1.0, 5.0)
    """
    if not isinstance(plan, Plan):
        raise PrudentError(f"plan is a {type(plan).__name__}; pass what prudent.solve returned")
    if plan.intervals is not None:
        raise PrudentError("plan is for a set of models; solve the model from there with uncertainty=")
    model = plan.model if model is None else model
    check_model(model)
    here = model.index(state)
    if model.is_goal[here]:
        raise PrudentError(f"state {state!r} is a goal: the run is over, there is nothing to plan")
    onwards = replace(model, initial_state=np.array([here]), initial_probability=np.ones(1))
    left = _objective(plan, as_number("spent", spent, "a finite number", isfinite))
    method = "exact" if left is not None else "expected"
    return solve(
        onwards, plan.alpha, method=method, objective=left, memory=memory, time_limit=time_limit, threads=threads
    )


def _objective(plan: Plan, spent: float) -> Objective | None:
    """Return what a plan aims at once so much is spent; None for the least expected cost."""
    if plan.method == "expected":
        return None
    aim = "" if plan.objective is None else plan.objective.objective
    if plan.max_cvar < inf or plan.method not in ("exact", "worst-case") or aim == "mean-plus-cvar":
        raise PrudentError(
            "only plans for the least CVaR, VaR, probability of exceeding a budget, worst case or expected cost say "
            "what to aim at on the way, not those of the paper's methods, with a limit on CVaR or for mean plus CVaR; "
            "solve the model from there"
        )
    left = plan.policy.whole - spent
    if aim in ("exceedance", "excess"):  # the budget that was asked for: no run need come to spend just that
        left = float(plan.objective.parameter or 0.0) - spent  # type: ignore[union-attr]
    return Exceedance(left) if aim in ("exceedance", "var") else Excess(left)
