"""``solve``: from a model to a plan, in the course that :mod:`prudent.planning.driver` describes."""

from collections.abc import Callable
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, cast

from prudent.engine.sweep.rank_sweep import follow
from prudent.methods.objectives import Objective
from prudent.models.intervals import Intervals, intervals_of, lasting
from prudent.models.ssp import SSP, check_model
from prudent.planning.cvar import solve_robust, solve_with
from prudent.planning.cvar_limit import solve_within
from prudent.planning.job import begin
from prudent.planning.likeliest import likeliest
from prudent.planning.objective import solve_for
from prudent.planning.options import LIMITS, Options
from prudent.policies.distribution import check_alpha
from prudent.results.plan import Plan
from prudent.runtime.limits import available_memory
from prudent.runtime.ranks import Ranks, ranks_of

if TYPE_CHECKING:
    from prudent.methods.cvar_wc import CvarWC


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
    cycles it then seeks the exact optimum, if that is modest work or ``gap=0`` requires it.  With method ``exact``,
    Ctrl-C returns the best plan and bounds so far, with the status ``interrupted``; a second Ctrl-C aborts.

    Parameters
    ----------
    model : SSP
        The problem.
    alpha : float
        The worst fraction of runs in CVaR: 0.05 for the worst 5%; above 0 and at most 1.
    method : str or CvarWC or CvarEV
        ``"exact"``: optimal CVaR first, lowest expected cost second.  ``"expected"``: lowest expected cost, exactly;
        CVaR and VaR of that plan are found with rounded costs if there are many levels, and are nan, with a note, if
        even that takes long.  ``"worst-case"``: minimal worst-case cost first, lowest expected cost second.
        ``"cvar-wc"``, ``"cvar-ev"``: the paper's methods and options; :class:`CvarWC` and :class:`CvarEV` take yours.
    gap, relative_gap : float, optional
        The largest gap between ``lower`` and ``upper``, absolute or relative to the larger of their magnitudes; the
        status reports whether it was reached.  The default is the exact optimum if that is modest work, else 0.001
        relative.  If the optimum may be 0, no relative gap is reached; a note then gives the absolute one.  ``gap=0``
        requires the exact optimum if costs have a common step; if a limit is reached first, costs are rounded.
    slack : float, optional
        Accept a CVaR above the optimal one by this fraction of its size, 0.01 for 1%, to lower the expected cost.
    absolute_slack : float, optional
        The same in the units of the costs.
    max_cvar : float, optional
        Accept any CVaR up to this value.  With any of these three, the plan is the best one found by weighing expected
        cost against CVaR.  No plan within the limit has an expected cost below ``expected_lower``; gaps are those
        between that bound and ``expected``.  If only bounds on the optimal CVaR are known, slack counts from the one
        that makes the limit lower.  A note states if the plan may exceed it; the status is then ``gap_not_reached``.
    randomise : bool
        With a limit on CVaR: allow a plan that draws one of two policies at the start of a run, from a seed.  Such a
        plan attains ``expected_lower``, up to rounding of costs.
    objective : Exceedance, Excess, ValueAtRisk, MeanPlusCVaR or WorstCase, optional
        What to plan for instead of CVaR; the expected cost comes second.  ``plan.objective`` has its value and bounds;
        ``cvar`` and ``var`` are reported at ``alpha``.
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
        forever is left out of ``plan.model`` and ``plan.intervals`` if another one is safe; a note states this.
    step : float, optional
        Round the costs to multiples of this; the step is not refined.
    memory : int or str, optional
        The memory limit for tables, in bytes or as ``"2GB"``; the default is 80% of the free memory.  The cost step is
        as fine as fits; a given step, or an exact optimum that ``gap=0`` requires, that does not fit is an error.
    time_limit : float, optional
        Approximate seconds after which method ``exact`` returns the best plan and bounds so far, with a note.
    threads : int, optional
        The number of threads; all cores by default.  The results do not depend on it.
    device : str
        ``"gpu"`` runs the sweeps, and finds expected and worst-case costs of models with cycles, on an NVIDIA GPU
        (extra ``gpu``).  This pays off for large models (:func:`prudent.check` reports for which).  Sweeps over cycles
        without cost, and bounds for rounded costs, stay on the CPU.  Guarantees are the same, results to 12 digits.
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
    given, ranks = locals(), None if comm is None else ranks_of(comm, available_memory())
    if ranks is not None and ranks.rank > 0:
        follow(ranks, threads)
        return cast(Plan, None)

    def work() -> Plan:
        check_model(model)
        return _solved(model, check_alpha(alpha), Options.of("solve", given), ranks)

    return work() if ranks is None else ranks.lead(work)


def solve_aloud(model: SSP, alpha: float, tell: Callable[[Plan], None] | None, **options: Any) -> Plan:
    """Find a plan as :func:`solve` does, and tell each plan that is the best so far (internal)."""
    check_model(model)
    return _solved(model, check_alpha(alpha), Options("solve", **options), tell=tell)


def _solved(
    model: SSP, alpha: float, asked: Options, ranks: Ranks | None = None, tell: Callable[[Plan], None] | None = None
) -> Plan:
    """Return the plan for what the options ask."""
    intervals = intervals_of(model, asked.uncertainty, asked.device)
    job, chance = replace(begin(model, alpha, asked, ranks), tell=tell), 1.0
    if asked.goal == "likeliest":
        model, chance = likeliest(model, asked.dead_end_cost, job.limits)
    if intervals is not None:
        model, intervals = lasting(model, intervals)
    job = replace(job, model=model)
    if intervals is not None:
        return solve_robust(job, intervals)
    if asked.objective is not None:
        plan = solve_for(job, asked.objective)
    elif any(map(asked.given, LIMITS)):
        plan = solve_within(job, asked)
    else:
        plan = solve_with(job, asked.method)
    return replace(plan, goal_probability=chance)
