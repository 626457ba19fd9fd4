"""``solve``: from a model to a plan.

:mod:`prudent.planning.driver` says what is checked and how a solve is driven.
"""

from dataclasses import replace
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, cast

from prudent.engine.prepared import Prepared
from prudent.engine.sweep.focus import Focus
from prudent.engine.sweep.rank_service import follow
from prudent.errors import PrudentError
from prudent.methods.exact import exact
from prudent.methods.objectives import Objective
from prudent.methods.registry import chosen
from prudent.methods.solution import Solution
from prudent.models.intervals import Intervals, intervals_of
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

    Costs with a common step are solved exactly if that takes modest work.  Others are rounded to finer and finer steps,
    until the gap between the bounds is as asked for; then, on models without cycles, the exact optimum is sought where
    it can be, if that is modest work or ``gap=0`` asks for it.  Under method ``exact``, Ctrl-C returns the best plan so
    far, with the bounds known so far and the status ``interrupted``; a second Ctrl-C breaks off.

    Parameters
    ----------
    model : SSP
        The problem.
    alpha : float
        The fraction of worst runs that CVaR averages over, above 0 and at most 1.
    method : str or CvarWC or CvarEV
        ``"exact"``: optimal CVaR first, least expected cost second.  ``"expected"``: least expected cost, exactly; CVaR
        and VaR of that plan with costs rounded if there are many levels, and nan, with a note, if even that takes long.
        ``"worst-case"``: least worst case first, least expected cost second.  ``"cvar-wc"`` and ``"cvar-ev"``:
        the paper's methods, with the paper's options, or :class:`CvarWC` and :class:`CvarEV` with one's own.
    gap, relative_gap : float, optional
        How far apart ``lower`` and ``upper`` may be, absolutely or relative to their size; by default the exact optimum
        if that is modest work, else 0.001 relative.  The status tells whether they are that close.  ``gap=0`` insists
        on the exact optimum if costs have a common step, whatever it takes; where
        a limit ends that, the plan is for rounded costs.
    slack : float, optional
        Accept a CVaR above the optimal one by this fraction of its size, 0.01 for 1%, to lower the mean.
    absolute_slack : float, optional
        The same in the units of the costs.
    max_cvar : float, optional
        Accept any CVaR up to this one.  With any of these three, the plan is the best found by weighing mean and CVaR
        against each other; no plan within the limit has an expected cost below ``expected_lower``, and ``gap`` and
        ``relative_gap`` are between that and ``expected``.
    randomise : bool
        Within such a limit: allow a plan that draws one of two policies at the start of a run, seeded.  That attains
        the bound, up to rounded costs.
    objective : Exceedance, Excess, ValueAtRisk, MeanPlusCVaR or WorstCase, optional
        What to plan for instead of CVaR, the expected cost second; ``plan.objective`` has its value and its bounds, and
        alpha says at which level ``cvar`` and ``var`` are reported.
    goal : str
        ``"sure"``: plans reach a goal with probability 1.  ``"likeliest"``: where none does, the greatest chance of
        reaching one comes first, and the rest is sought among plans that attain it.  ``plan.goal_probability`` has the
        chance; ``plan.model`` is the model with the actions of such plans alone.
    dead_end_cost : float, optional
        Under ``goal="likeliest"``: what a run costs from where it cannot reach a goal any more.
    uncertainty : Intervals or float or "own", optional
        Plan for a set of models: the least CVaR in the worst of them, the least worst-case mean second, where nature
        chooses from the set anew at every visit.  Intervals for the probabilities, a confidence such as 0.95 for a
        model with counts (:func:`from_episodes`), or ``"own"`` for a model with intervals of its own.  ``upper`` then
        holds for every model in the set; ``cvar`` and ``expected`` are for the worst of them, and ``plan.nominal`` is
        for the model itself.
    step : float, optional
        Round the costs to multiples of this, and do not refine it.
    memory : int or str, optional
        The most memory to use for tables, in bytes or as ``"2GB"``; 80% of what is free by default.  Steps are as fine
        as fits.  A step or an exact optimum that is insisted on and does not fit is refused.
    time_limit : float, optional
        Seconds, about, after which method ``exact`` returns the best plan and bounds so far, with a note.
    threads : int, optional
        How many threads; all cores by default.  The results do not depend on it.
    device : str
        ``"gpu"`` sweeps, and finds expected and worst costs of models with cycles, on an NVIDIA GPU (extra ``gpu``).
        That pays for large models; :func:`prudent.check` says for which.  Sweeps over cycles at no cost, and bounds
        where costs are rounded, stay on the CPU.  Answers are as certain, and agree to about 12 digits.
    comm : mpi4py communicator, optional
        Such as ``MPI.COMM_WORLD``: its ranks, which all call ``solve``, share the sweeps (extra ``mpi``).  The plan is
        rank 0's, the same to the last bit as without; on the others ``solve`` returns None.  What can be mended is
        raised on all.  Against nature (``uncertainty``) rank 0 sweeps alone.
    checkpoint : path, optional
        A file in which a long solve keeps its place.  Called again with the same arguments after a kill or Ctrl-C,
        ``solve`` resumes from it and returns the same answer; once it is finished, the file is removed.

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
                "uncertainty goes with the least CVaR under method exact; leave out other methods, limits on CVaR, "
                "objectives, checkpoints and goal='likeliest'"
            )
        if objective is not None:
            _check_objective(objective, name, limited=cap is not None)
        if checkpoint is not None and (cap is not None or objective is not None):
            raise PrudentError("a checkpoint is kept for the least CVaR alone, not with a limit on it or an objective")
        check_goal(goal, dead_end_cost)
        job = begin(
            model, check_alpha(alpha), target=target, step=step, memory=memory, time_limit=time_limit, threads=threads,
            device=device, ranks=ranks, checkpoint=checkpoint,
            said=method if goal == "sure" else (method, goal, dead_end_cost),
        )  # fmt: skip
        if goal == "likeliest":
            with in_force(job.limits):
                found, chance = likeliest(model, dead_end_cost)
            job = replace(job, model=found)
        if objective is not None:
            plan = solve_for(job, objective)
        elif cap is not None:
            plan = solve_within(job, cap)
        elif intervals is not None:
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
    """Run a method; only ``exact`` aims at the optimal CVaR, so only it is worth a finer step."""

    def attempt(prepared: Prepared) -> Stage[Solution]:
        began = now()
        return stage_of(prepared, run(prepared, job.alpha, job.limits), job.alpha, began)

    def focused(prepared: Prepared, focus: Focus) -> Stage[Solution]:
        began = now()
        return stage_of(prepared, exact(prepared, job.alpha, job.limits, focus=focus), job.alpha, began)

    def first(prepared: Prepared, alpha: float) -> float:
        return first_step(prepared, alpha, job.target, job.limits)

    if name == "exact":
        return job.kept(lambda: job.refined(attempt, first, focused=focused, tell=partial(tell_so_far, job, name)))
    return job.kept(lambda: attempt(_for_the_mean(job) if name == "expected" else job.prepared(job.step)))


def _for_the_mean(job: Job) -> Prepared:
    """Return the model for a plan of least mean; its tail is found at a fair step where the exact one takes long."""
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
        raise PrudentError("objective excludes slack, absolute_slack and max_cvar; give one of them")
    if method != "exact":
        raise PrudentError(f"objective goes with method exact, not with {method}")
