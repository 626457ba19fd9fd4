"""``solve``: from a model to a plan.

:mod:`prudent.planning.driver` describes the checks and the course of a solve.
"""

from dataclasses import replace
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, cast

from prudent.engine.prepared import Prepared
from prudent.engine.sweep.focus import Focus
from prudent.engine.sweep.rank_sweep import follow
from prudent.errors import PrudentError
from prudent.methods.exact import exact
from prudent.methods.expected import at_hand, evaluated
from prudent.methods.objectives import Objective
from prudent.methods.registry import chosen
from prudent.methods.solution import Solution
from prudent.models.intervals import Intervals, intervals_of, lasting
from prudent.models.ssp import SSP, check_model
from prudent.planning.bounds import Target
from prudent.planning.cvar_limit import cap_of, solve_within
from prudent.planning.driver import Job, begin
from prudent.planning.likeliest import check_goal, likeliest
from prudent.planning.objective import solve_for
from prudent.planning.plans import plan_of, stage_of, tell_so_far
from prudent.planning.refine import Stage, fair_step, first_step, many_levels
from prudent.planning.robust import solve_robust
from prudent.policies.distribution import check_alpha
from prudent.results.plan import Plan
from prudent.runtime.clock import now
from prudent.runtime.limits import available_memory, in_force
from prudent.runtime.ranks import Ranks, ranks_of

if TYPE_CHECKING:
    from prudent.methods.cvar_wc import CvarWC
    from prudent.methods.registry import Run

__all__ = ["run_method", "solve"]


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
    goal: str = "sure",
    dead_end_cost: float | None = None,
    uncertainty: Intervals | float | str | None = None,
    step: float | None = None,
    memory: int | float | str | None = None,
    time_limit: float | None = None,
    threads: int | None = None,
    device: str = "cpu",
    comm: Any = None,
    checkpoint: str | PathLike[str] | None = None,
) -> Plan:
    """Find a plan for a model.

    If the costs have a common step and the exact optimum takes modest work, ``solve`` finds it directly.  Otherwise it
    rounds the costs to finer and finer steps until the requested gap between the bounds is reached.  On models without
    cycles it then seeks the exact optimum, if that is modest work or ``gap=0`` requires it; it considers only the
    states and budgets that can affect the result.  With method ``exact``, Ctrl-C returns the best plan and bounds so
    far, with the status ``interrupted``; a second Ctrl-C aborts.

    Parameters
    ----------
    model : SSP
        The problem.
    alpha : float
        The worst fraction of runs in CVaR: 0.05 for the worst 5%; above 0 and at most 1.
    method : str or CvarWC or CvarEV
        ``"exact"``: optimal CVaR first, lowest expected cost second.  ``"expected"``: lowest expected cost, exactly;
        CVaR and VaR of that plan come from rounded costs if there are many multiples of the cost step, and are
        nan, with a note, if even that takes long.  ``"worst-case"``: minimal worst-case cost first, lowest expected
        cost second.  ``"cvar-wc"`` and ``"cvar-ev"``: the paper's methods with the paper's options; :class:`CvarWC` and
        :class:`CvarEV` take your own.
    gap, relative_gap : float, optional
        The largest gap between ``lower`` and ``upper``, absolute or relative to the larger of their magnitudes.  The
        default is the exact optimum if that is modest work, else 0.001 relative.  If the optimum may be 0, no relative
        gap is reached; a note then gives the absolute one.  The status reports whether the gap was reached.  ``gap=0``
        requires the exact optimum if costs have a common step, however much work it is; if a limit is reached first,
        the plan is for rounded costs.
    slack : float, optional
        Accept a CVaR above the optimal one by this fraction of its size, 0.01 for 1%, to lower the expected cost.
    absolute_slack : float, optional
        The same in the units of the costs.
    max_cvar : float, optional
        Accept any CVaR up to this value.  With any of these three, the plan is the best one found by weighing expected
        cost against CVaR.  No plan within the limit has an expected cost below ``expected_lower``; ``gap`` and
        ``relative_gap`` apply between that bound and ``expected``.  If the optimal CVaR is known only to lie between
        bounds, slack counts from the one that makes the limit lower.  A note states if the plan may exceed the limit;
        the status is then ``gap_not_reached``.
    randomise : bool
        With a limit on CVaR: allow a plan that draws one of two policies at the start of a run, from a seed.  Such a
        plan attains ``expected_lower``, up to rounding of costs.
    objective : Exceedance, Excess, ValueAtRisk, MeanPlusCVaR or WorstCase, optional
        What to plan for instead of CVaR; the expected cost comes second.  ``plan.objective`` has its value and its
        bounds.  ``alpha`` is then only the level at which ``cvar`` and ``var`` are reported.
    goal : str
        ``"sure"``: plans reach a goal with probability 1.  ``"likeliest"``: if no plan does, the probability of
        reaching a goal is maximised first, and the plan is sought among those that attain the maximum.
        ``plan.goal_probability`` has this probability; ``plan.model`` is the model with the actions of such plans only.
    dead_end_cost : float, optional
        With ``goal="likeliest"``: the cost of a run once it can no longer reach a goal.
    uncertainty : Intervals or float or "own", optional
        Plan for a set of models: minimal worst-case CVaR first, lowest worst-case expected cost second.  An opponent,
        called nature, chooses from the set anew at every visit to a state.  Give intervals for the probabilities, a
        confidence such as 0.95 for a model with counts (:func:`from_episodes`), or ``"own"`` for a model that has
        intervals.  ``upper`` then holds for every model in the set; ``cvar`` and ``expected`` are for the worst of
        them, and ``plan.nominal`` is for the model itself.  An action with which nature could keep a run from its goal
        forever is left out if another one is safe: a note states this, and ``plan.model`` and ``plan.intervals`` are
        without it.
    step : float, optional
        Round the costs to multiples of this; the step is not refined.
    memory : int or str, optional
        The memory limit for tables, in bytes or as ``"2GB"``; the default is 80% of the free memory.  The cost step is
        as fine as fits.  If a given step, or an exact optimum that ``gap=0`` requires, does not fit, an error is
        raised.
    time_limit : float, optional
        Approximate seconds after which method ``exact`` returns the best plan and bounds so far, with a note.
    threads : int, optional
        The number of threads; all cores by default.  The results do not depend on it.
    device : str
        ``"gpu"`` runs the sweeps, and finds expected and worst-case costs of models with cycles, on an NVIDIA GPU
        (extra ``gpu``).  This pays off for large models; :func:`prudent.check` reports for which.  Sweeps over cycles
        without cost, and bounds for rounded costs, stay on the CPU.  The results have the same guarantees and agree to
        about 12 digits.
    comm : mpi4py communicator, optional
        For example ``MPI.COMM_WORLD``: its ranks, which all call ``solve``, share the sweeps (extra ``mpi``).  Rank 0
        returns the plan, the same to the last bit as without ``comm``; the other ranks return None.  Errors in the
        input are raised on all ranks.  With ``uncertainty`` rank 0 sweeps alone.
    checkpoint : path, optional
        A file in which a long solve saves its progress.  Called again with the same arguments after a kill or Ctrl-C,
        ``solve`` resumes from the file and returns the same answer; a finished solve removes the file.

    Examples
    --------
    >>> import prudent
    >>> plan = prudent.solve(prudent.domains.figure_2(), alpha=0.1)
    >>> plan.status, round(plan.cvar, 9), round(plan.expected, 9), plan.policy("s1")
    ('optimal', 10.0, 4.06, 'd')
    """

    def work(ranks: Ranks | None) -> Plan:
        check_model(model)
        name, run = chosen(method)
        target = Target(gap, relative_gap)
        cap = cap_of(name, slack, absolute_slack, max_cvar, randomise)
        intervals = intervals_of(model, uncertainty, device)
        usual = name == "exact" and cap is None and objective is None and checkpoint is None and goal == "sure"
        if intervals is not None and not usual:
            raise PrudentError(
                "uncertainty needs method 'exact' and CVaR as the objective; remove other methods, limits on CVaR, "
                "objectives, checkpoints and goal='likeliest'"
            )
        if objective is not None:
            _check_objective(objective, name, limited=cap is not None)
        if checkpoint is not None and (cap is not None or objective is not None):
            raise PrudentError("checkpoint works only for the minimal CVaR; remove the limit on CVaR or the objective")
        check_goal(goal, dead_end_cost)
        job = begin(
            model, check_alpha(alpha), target=target, step=step, memory=memory, time_limit=time_limit, threads=threads,
            device=device, ranks=ranks, checkpoint=checkpoint,
            said=method if goal == "sure" else (method, goal, dead_end_cost),
        )  # fmt: skip
        if goal == "likeliest":
            with in_force(job.limits):
                found, chance = likeliest(model, dead_end_cost, job.limits)
            job = replace(job, model=found)
        if objective is not None:
            plan = solve_for(job, objective)
        elif cap is not None:
            plan = solve_within(job, cap)
        elif intervals is not None:
            smaller, intervals = lasting(model, intervals)
            job = replace(job, model=smaller)
            plan = solve_robust(job, intervals, lambda: run_method(job, name, run))
        else:
            stage = run_method(job, name, run)
            plan = plan_of(job.model, name, job.alpha, replace(stage, seconds=job.seconds), target, job.limits)
        return plan if goal == "sure" else replace(plan, goal_probability=chance)

    ranks = ranks_of(comm, available_memory())
    if ranks is None:
        return work(None)
    if ranks.rank == 0:
        return ranks.lead(lambda: work(ranks))
    follow(ranks, threads)
    return cast(Plan, None)


def run_method(job: Job, name: str, run: "Run") -> Stage[Solution]:
    """Run a method; only ``exact`` aims at the optimal CVaR, so only ``exact`` profits from a finer step."""

    def attempt(prepared: Prepared) -> Stage[Solution]:
        began = now()
        found = evaluated(prepared, job.alpha, run(prepared, job.alpha, job.limits))
        return stage_of(prepared, found, job.alpha, began)

    def focused(prepared: Prepared, focus: Focus) -> Stage[Solution]:
        began = now()
        return stage_of(prepared, exact(prepared, job.alpha, job.limits, focus=focus), job.alpha, began)

    def first(prepared: Prepared, alpha: float) -> float:
        return first_step(prepared, alpha, job.target, job.limits)

    def unfinished(prepared: Prepared, stopped: str) -> Stage[Solution]:
        began = now()
        return stage_of(prepared, at_hand(prepared, job.alpha, stopped), job.alpha, began)

    def work() -> Stage[Solution]:
        if name == "exact":
            tell = partial(tell_so_far, job, name)
            return job.refined(attempt, first, at_hand=unfinished, focused=focused, tell=tell)
        return job.answered(
            lambda: attempt(_for_the_mean(job) if name == "expected" else job.prepared(job.step)), unfinished
        )

    return job.kept(work)


def _for_the_mean(job: Job) -> Prepared:
    """Return the model for a plan of lowest expected cost; its tail uses a fair step if the exact one takes long."""
    prepared = job.prepared(job.step)
    if job.step is not None or not (prepared.scale.rounded or many_levels(prepared, job.alpha)):
        return prepared
    return job.prepared(fair_step(prepared, job.alpha))


def _check_objective(objective: Objective, method: str, *, limited: bool) -> None:
    if not isinstance(objective, Objective):
        call = "; call it" if isinstance(objective, type) else ""
        kinds = "Exceedance(budget), Excess(budget), ValueAtRisk(), MeanPlusCVaR(weight) or WorstCase()"
        raise PrudentError(f"objective is {objective!r}; it must be {kinds}{call}")
    if limited:
        raise PrudentError("objective excludes slack, absolute_slack and max_cvar; give only one of them")
    if method != "exact":
        raise PrudentError(f"objective needs method 'exact', not {method!r}")
