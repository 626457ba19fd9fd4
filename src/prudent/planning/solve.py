"""One door: check -> prepare -> method -> plan."""

import time
from dataclasses import replace
from functools import cache
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np

from prudent.engine.prepare import prepare
from prudent.errors import Defect, PrudentError, as_number
from prudent.io.checkpoint import Checkpoint
from prudent.methods.objectives import Objective
from prudent.methods.registry import chosen
from prudent.models.ssp import SSP
from prudent.planning.bounds import Target, bracket_of
from prudent.planning.cvar_limit import cap_of, solve_within
from prudent.planning.objective import solve_for
from prudent.planning.plan import plan_of
from prudent.planning.refine import Stage, refine
from prudent.policies.distribution import check_alpha
from prudent.results.plan import Plan
from prudent.runtime.limits import Limits
from prudent.runtime.progress import announce

if TYPE_CHECKING:
    from prudent.methods.cvar_wc import CvarWC
    from prudent.methods.registry import Run

__all__ = ["compile_kernels", "solve"]


def solve(
    model: SSP,
    alpha: float,
    *,
    method: "str | CvarWC" = "exact",
    gap: float | None = None,
    relative_gap: float | None = None,
    slack: float | None = None,
    absolute_slack: float | None = None,
    max_cvar: float | None = None,
    randomise: bool = False,
    objective: Objective | None = None,
    step: float | None = None,
    memory: int | float | str | None = None,
    time_limit: float | None = None,
    threads: int | None = None,
    checkpoint: str | PathLike[str] | None = None,
) -> Plan:
    """Find a plan for a model.

    Costs with a common step are solved exactly.  Others are rounded, up for the plan and down for the lower bound, to
    finer and finer steps until the gap between the bounds is as asked for.  Under method ``exact``, Ctrl-C returns the
    best plan so far, with the bounds known so far and the status ``interrupted``; a second one breaks off.

    Parameters
    ----------
    model : SSP
        The problem.
    alpha : float
        The fraction of worst runs that CVaR averages over, above 0 and at most 1.
    method : str or CvarWC or CvarEV
        ``"exact"``: optimal CVaR first, least expected cost second.  ``"expected"``: least expected cost.
        ``"worst-case"``: least worst case first, least expected cost second.  ``"cvar-wc"`` and ``"cvar-ev"``:
        the paper's methods, with the paper's options, or :class:`CvarWC` and :class:`CvarEV` with one's own.
    gap, relative_gap : float, optional
        How far apart ``lower`` and ``upper`` may be, absolutely or relative to their size; 0.001 relative
        unless said.  The status tells whether they are.
    slack : float, optional
        Accept a CVaR above the optimal one by this part of its size, 0.01 for 1%, for the sake of the mean.
    absolute_slack : float, optional
        The same in the units of the costs.
    max_cvar : float, optional
        Accept any CVaR up to this one.  With one of the three, the plan is the best found by weighing mean and CVaR
        against each other; ``expected_lower`` is what no plan within the limit can beat, and ``gap`` and
        ``relative_gap`` are between that and ``expected``.
    randomise : bool
        Within such a limit: allow a plan that draws one of two policies at the start of a run, seeded.  That attains
        the bound, up to rounded costs.
    objective : Exceedance, ValueAtRisk, MeanPlusCVaR or WorstCase, optional
        What to plan for instead of CVaR, the expected cost second; ``plan.objective`` has its value and its bounds, and
        alpha says at which level ``cvar`` and ``var`` are reported.
    step : float, optional
        Round the costs to multiples of this, and do not refine it.
    memory : int or str, optional
        The most memory to use for tables, in bytes or as ``"2GB"``; 80% of what is free by default.  What is sure
        to need more is refused before it begins.
    time_limit : float, optional
        Seconds, about, after which method ``exact`` returns the best plan and bounds so far, with a note.  Evaluating
        that plan comes on top; on a model with cycles it may take as long again.
    threads : int, optional
        How many threads; all cores by default.  The results are the same.
    checkpoint : path, optional
        A file in which a long solve keeps its place.  Called again with the same arguments after a kill, or after
        Ctrl-C, it goes on from there, to the same answer; when it is finished the file is removed.

    Examples
    --------
    >>> import prudent
    >>> plan = prudent.solve(prudent.domains.figure_2(), alpha=0.1)
    >>> plan.status, round(plan.cvar, 9), round(plan.expected, 9), plan.policy("s1")
    ('optimal', 10.0, 4.06, 'd')
    """
    if not isinstance(model, SSP):
        raise PrudentError(f"model is a {type(model).__name__}; make one with prudent.build, from_arrays or load")
    alpha = check_alpha(alpha)
    name, run = chosen(method)
    target = Target(gap, relative_gap)
    step = None if step is None else as_number("step", step, "a number above 0", lambda x: 0 < x < np.inf)
    Limits.of(memory, time_limit, None, threads)  # what is wrong with them is said at once
    keeper = None
    if checkpoint is not None:
        said = {"model": model.fingerprint, "alpha": alpha, "method": repr(method), "step": step}
        keeper = Checkpoint(checkpoint, said)
    cap = cap_of(name, slack, absolute_slack, max_cvar, randomise)
    if objective is not None:
        _check_objective(objective, name, limited=cap is not None)
    if keeper is not None and (cap is not None or objective is not None):
        raise PrudentError("a checkpoint is kept for the least CVaR alone, not with a limit on it or an objective")
    compile_kernels(name)
    limits = Limits.of(memory, time_limit, keeper, threads)
    if objective is not None:
        return solve_for(model, alpha, objective, target, step, limits)
    if cap is not None:
        return solve_within(model, alpha, cap, target, step, limits)
    try:
        plan, stopped = _solve(model, alpha, name, run, target, step, limits)
    except Defect as defect:
        raise (defect if keeper is None else keeper.blame(defect)) from None
    if keeper is not None and not stopped:
        keeper.close()
    return plan


def _check_objective(objective: Objective, method: str, *, limited: bool) -> None:
    if not isinstance(objective, Objective):
        call = "; call it" if isinstance(objective, type) else ""
        kinds = "Exceedance(budget), ValueAtRisk(), MeanPlusCVaR(weight) or WorstCase()"
        raise PrudentError(f"objective is {objective!r}; it must be {kinds}{call}")
    if limited:
        raise PrudentError("objective excludes slack, absolute_slack and max_cvar; give one of them")
    if method != "exact":
        raise PrudentError(f"objective goes with method exact, not with {method}")


def _solve(
    model: SSP, alpha: float, method: str, run: "Run", target: Target, step: float | None, limits: Limits
) -> tuple[Plan, str]:
    """Return a plan, and why it was stopped early, if it was."""
    began = time.perf_counter()
    prepared = prepare(model, step)
    if method == "exact" and prepared.scale.rounded and step is None:
        stage = refine(prepared, alpha, target, limits)
    else:
        solution = run(prepared, alpha, limits)
        stage = Stage(prepared, solution, bracket_of(prepared, solution, alpha), 0.0)
    stage = replace(stage, seconds=time.perf_counter() - began)
    return plan_of(model, method, alpha, stage, target, limits), stage.solution.stopped


@cache
def compile_kernels(method: str) -> None:
    """Compile a method's kernels, or read them from the cache, before any clock runs; say so when it takes a while."""
    from prudent.domains import figure_2
    from prudent.kernels import compiled_before

    if not compiled_before():
        announce("compiling its kernels, once; this takes about half a minute")
    limits = Limits.of(None, None)
    _solve(figure_2(), 0.5, method, chosen(method)[1], Target(), None, limits)
    if limits.interrupted:
        raise KeyboardInterrupt
