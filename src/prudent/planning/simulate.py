"""``simulate``: runs of a policy, a cross-check of the exact numbers with standard errors."""

from concurrent.futures import Executor
from typing import cast

from prudent.models.ssp import SSP
from prudent.planning.evaluate import PolicyOrPlan, policy_of
from prudent.planning.options import Options
from prudent.policies.simulation import Simulation
from prudent.results.plan import Plan
from prudent.results.runs import Runs
from prudent.runtime.executors import check_executor
from prudent.runtime.limits import cores


def simulate(
    model: SSP,
    policy: PolicyOrPlan,
    *,
    episodes: int = 20_000,
    seed: int = 0,
    threads: int | None = None,
    paths: int = 0,
    max_steps: int = 1_000_000,
    time_limit: float | None = None,
    executor: Executor | None = None,
) -> Runs:
    """Simulate runs of a policy.

    Parameters
    ----------
    model : SSP
        The problem.
    policy : plan, policy, mapping or callable
        A plan or its policy, a table ``{state: action}``, or a function ``(state, spent) -> action``.
    episodes : int
        The number of runs.  Beyond ten million, only a tally of their costs is kept, so any number takes little
        memory.
    seed : int
        The seed of the random numbers; the same seed gives the same runs with any number of threads or workers.
    threads : int, optional
        The number of threads; all cores by default.  A function is called by one thread.
    paths : int
        The number of runs to return step by step.
    max_steps : int
        The largest number of actions in one run; a longer run is an error.
    time_limit : float, optional
        The time limit in seconds, approximately; exceeding it is an error.
    executor : Executor, optional
        Workers that simulate the runs instead of threads: a process pool of ``concurrent.futures``, that of a Dask
        client (``client.get_executor()``), or one of ``mpi4py.futures``.  A function must be one that can be sent to
        them.

    Examples
    --------
    >>> import prudent
    >>> model = prudent.domains.betting_game()
    >>> plan = prudent.solve(model, alpha=0.2)
    >>> runs = prudent.simulate(model, plan, episodes=20_000, seed=0)
    >>> abs(runs.mean - plan.expected) <= 4 * runs.mean_se
    True
    """
    limits = Options.of("simulate", locals()).limits()
    check_executor(executor)
    asked = Simulation(episodes, seed, cores() if threads is None else threads, limits, executor, paths, max_steps)
    own = policy_of(model, policy)
    tally, costs, shown = asked.of(model, own)
    return Runs(tally, seed, shown, costs, None if own is policy else cast(Plan, policy))
