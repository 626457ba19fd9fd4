"""One door: check -> prepare -> method -> plan."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from os import PathLike

import numpy as np

from prudent.achieving import achieve
from prudent.allowance import Allowance, shown_bytes
from prudent.bracket import Bracket, Target, bracket_below, bracket_of
from prudent.chain import backward
from prudent.errors import PrudentError, as_number
from prudent.files.checkpoint import Checkpoint
from prudent.forecasting import prepare_for
from prudent.methods.cvar_expected import CvarEV
from prudent.methods.cvar_game import CvarWC
from prudent.methods.exact import exact, reached, solution_for, surely_expected, surely_own
from prudent.methods.expected import expected
from prudent.methods.mixing import Mixture, mixed_mean_within
from prudent.methods.solution import Solution
from prudent.methods.weighing import Found, Weighing, least_mean_within
from prudent.methods.worst_case import worst_case
from prudent.model import SSP
from prudent.objectives import Exceedance, Objective
from prudent.plan import Plan
from prudent.policy import BudgetPolicy, MixedPolicy
from prudent.prepare import prepare
from prudent.prepared import Prepared
from prudent.progress import announce
from prudent.refining import Stage, refine
from prudent.risk import check_alpha
from prudent.values.expected import least_expected_cost
from prudent.values.worst_case import true_worst_case

__all__ = ["METHODS", "compile_kernels", "plan_of", "solve"]

FORGIVEN = 1e-12
"""How far beyond a limit a CVaR may be, relative to its size: less than rounding can tell."""

WEIGHTS = 60
"""The most weights that are tried to find the best plan within a limit."""

Method = Callable[[Prepared, float, Allowance], Solution]

METHODS: dict[str, Method] = {
    "exact": exact,
    "cvar-ev": CvarEV(),
    "cvar-wc": CvarWC(),
    "expected": expected,
    "worst-case": worst_case,
}


def solve(
    model: SSP,
    alpha: float,
    *,
    method: str | CvarWC = "exact",
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
        Seconds, about, after which method ``exact`` returns the best plan and bounds so far.
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
    if not isinstance(method, CvarWC) and (not isinstance(method, str) or method not in METHODS):
        near = get_close_matches(str(method), METHODS, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise PrudentError(f"unknown method {method!r}; {hint}methods are {', '.join(METHODS)}")
    name, run = (method.name, method) if isinstance(method, CvarWC) else (method, METHODS[method])
    target = Target(gap, relative_gap)
    step = None if step is None else as_number("step", step, "a number above 0", lambda x: 0 < x < np.inf)
    Allowance.of(memory, time_limit)  # what is wrong with them is said at once
    keeper = None
    if checkpoint is not None:
        said = {"model": model.fingerprint, "alpha": alpha, "method": repr(method), "step": step}
        keeper = Checkpoint(checkpoint, said)
    compile_kernels(name)
    cap = _cap(name, slack, absolute_slack, max_cvar, randomise)
    allowance = Allowance.of(memory, time_limit, keeper)
    if objective is not None:
        if cap is not None or name != "exact" or not isinstance(objective, Objective):
            kinds = "an Exceedance, a ValueAtRisk, a MeanPlusCVaR or a WorstCase"
            raise PrudentError(
                f"objective is {objective!r}; it must be {kinds}, with method exact and no limit on CVaR"
            )
        return solve_for(model, alpha, objective, target, step, allowance)
    if cap is not None:
        return _solve_within(model, alpha, cap, target, step, allowance)
    plan, stopped = _solve(model, alpha, name, run, target, step, allowance)
    if keeper is not None and not stopped:
        keeper.close()
    return plan


def _solve(
    model: SSP, alpha: float, method: str, run: Method, target: Target, step: float | None, allowance: Allowance
) -> tuple[Plan, str]:
    """Return a plan, and why it was stopped early, if it was."""
    began = time.perf_counter()
    prepared = prepare(model, step)
    if method == "exact" and prepared.rounded and step is None:
        stage = refine(prepared, alpha, target, allowance)
    else:
        solution = run(prepared, alpha, allowance)
        stage = Stage(prepared, solution, bracket_of(prepared, solution, alpha), 0.0)
    stage = replace(stage, seconds=time.perf_counter() - began)
    return plan_of(model, method, alpha, stage, target, allowance), stage.solution.stopped


@dataclass(frozen=True)
class _Cap:
    """How much CVaR is accepted for the sake of the mean."""

    slack: float | None  # relative to the optimum
    more: float | None  # than the optimum
    most: float | None
    randomise: bool

    def limit(self, optimum: float) -> float:
        if self.most is not None:
            return self.most
        return optimum + (self.more if self.more is not None else (self.slack or 0.0) * abs(optimum))


def _cap(
    method: str, slack: float | None, absolute_slack: float | None, max_cvar: float | None, randomise: bool
) -> _Cap | None:
    asked = [value is not None for value in (slack, absolute_slack, max_cvar)]
    if not any(asked):
        if randomise:
            raise PrudentError("randomise goes with slack or max_cvar: without a limit nothing is gained by it")
        return None
    if method != "exact" or sum(asked) > 1:
        raise PrudentError("slack, absolute_slack and max_cvar go with method exact, one at a time")
    if slack is not None:
        slack = as_number("slack", slack, "a number, at least 0, such as 0.01 for 1%", lambda x: 0 <= x < np.inf)
    if absolute_slack is not None:
        absolute_slack = as_number("absolute_slack", absolute_slack, "a cost, at least 0", lambda x: 0 <= x < np.inf)
    if max_cvar is not None:
        max_cvar = as_number("max_cvar", max_cvar, "a finite number", lambda x: abs(x) < np.inf)
    return _Cap(slack, absolute_slack, max_cvar, bool(randomise))


def _solve_within(
    model: SSP, alpha: float, cap: _Cap, target: Target, step: float | None, allowance: Allowance
) -> Plan:
    """Return the best plan found with a CVaR up to a limit."""
    began = time.perf_counter()
    prepared = prepare_for(model, alpha, step)
    with allowance:
        weighing = Weighing(prepared, alpha, allowance)
        optimum = solution_for(weighing.explored, alpha)
        bracket = bracket_of(prepared, optimum, alpha)
        limit = cap.limit(prepared.in_units(weighing.safest.cvar))
        if limit < prepared.in_units(weighing.safest.cvar) - FORGIVEN * bracket.size:
            raise PrudentError(
                f"max_cvar is {limit:g}; no plan has that little: the optimal CVaR lies between {bracket.lower:.9g} "
                f"and {bracket.upper:.9g}; ask for more"
            )
        room = prepared.in_levels(limit) + FORGIVEN * weighing.most
        found: Found | Mixture
        if cap.randomise:
            found = mixed_mean_within(weighing, room, WEIGHTS)
            policy, bound = _mixed_policy(prepared, found), found.bound
        else:
            found, bound = least_mean_within(weighing, room, WEIGHTS)
            policy = BudgetPolicy(prepared, found.choice)
        own = reached(policy, weighing.explored.expected, found.cvar, alpha)
    solution = replace(
        optimum,
        policy=policy,
        var=own.var,
        cvar=min(own.cvar, found.cvar),
        expected=found.expected,
        expected_lower=max(bound, weighing.explored.least),
        notes=own.notes,
    )
    plan = plan_of(model, "exact", alpha, Stage(prepared, solution, bracket, time.perf_counter() - began))
    above, least = plan.expected - prepared.in_units(0), 0.0 if prepared.rounded else prepared.level_size
    mean = Bracket(plan.expected_lower, plan.expected, max(abs(plan.expected), above, least))
    return replace(plan, max_cvar=limit, status=target.status(mean, aims=True, interrupted=False))


def solve_for(
    model: SSP, alpha: float, objective: Objective, target: Target, step: float | None, allowance: Allowance
) -> Plan:
    """Return the plan that is best for another objective than CVaR."""
    began = time.perf_counter()
    prepared = prepare_for(model, alpha, step)
    with allowance:
        policy, achieved = achieve(prepared, alpha, objective, allowance)
        expected = least_expected_cost(prepared)
        own = reached(policy, expected, None, alpha)
        upper = np.inf if own.notes else surely_own(policy, expected, None, alpha)
        least = float(surely_expected(prepared, expected)[prepared.start])
        solution = Solution(
            policy=policy,
            var=own.var,
            cvar=own.cvar if np.isfinite(own.cvar) else np.nan,
            expected=backward(policy, expected).mean,
            expected_lower=least,
            lower=least,
            upper=upper,
            worst=true_worst_case(prepared),
            notes=own.notes,
        )
        stage = Stage(prepared, solution, bracket_of(prepared, solution, alpha), time.perf_counter() - began)
    plan = plan_of(model, "exact", alpha, stage)
    least = 0.0 if prepared.rounded or isinstance(objective, Exceedance) else prepared.level_size
    size = max(abs(achieved.lower), abs(achieved.upper), least)
    status = target.status(Bracket(achieved.lower, achieved.upper, size), aims=True, interrupted=False)
    return replace(plan, objective=achieved, status=status)


def _mixed_policy(prepared: Prepared, found: Mixture) -> BudgetPolicy:
    if found.share in (0.0, 1.0):  # nothing to draw
        return BudgetPolicy(prepared, (found.first if found.share == 1.0 else found.second).choice)
    return MixedPolicy(prepared, found.first.choice, other=found.second.choice, share=found.share)


def plan_of(
    model: SSP,
    method: str,
    alpha: float,
    stage: Stage,
    target: Target | None = None,
    allowance: Allowance | None = None,
) -> Plan:
    """Return the plan that a solution is, in the user's units."""
    prepared, solution, bracket = stage.prepared, stage.solution, stage.bracket
    cvar, interrupted = prepared.in_units(solution.cvar), solution.stopped == "interrupted"
    return Plan(
        model=model,
        policy=solution.policy,
        method=method,
        alpha=alpha,
        step=prepared.step,
        status=(target or Target()).status(bracket, aims=method == "exact", interrupted=interrupted),
        cvar=max(cvar, bracket.lower) if prepared.rounded else cvar,
        var=solution.var,
        expected=prepared.in_units(solution.expected),
        expected_lower=bracket_below(prepared, solution.expected_lower),
        lower=bracket.lower,
        upper=bracket.upper,
        worst_case=prepared.in_units(solution.worst),
        seconds=stage.seconds,
        notes=(*solution.notes, *_notes(prepared, solution, allowance)),
    )


def _notes(prepared: Prepared, solution: Solution, allowance: Allowance | None) -> list[str]:
    notes = []
    if prepared.rounded:
        notes.append(f"costs were rounded to multiples of {prepared.step:g}, up for the plan, down for the lower bound")
    if solution.stopped == "memory" and allowance is not None:
        notes.append(
            f"stopped where {shown_bytes(allowance.memory)} of memory would not do: allow more (memory=, --memory)"
        )
    if solution.stopped == "digits":
        notes.append("a finer step would have no digits left in the costs")
    if solution.stopped == "time" and allowance is not None:
        notes.append(f"stopped for the time limit of {allowance.time_limit:g} seconds")
    return notes


@cache
def compile_kernels(method: str) -> None:
    """Compile a method's kernels, or read them from the cache, before any clock runs; say so when it takes a while."""
    from prudent.domains import figure_2
    from prudent.kernels import compiled_before

    if not compiled_before():
        announce("compiling its kernels, once; this takes about half a minute")
    allowance = Allowance.of(None, None)
    _solve(figure_2(), 0.5, method, METHODS[method], Target(), None, allowance)
    if allowance.interrupted:
        raise KeyboardInterrupt
