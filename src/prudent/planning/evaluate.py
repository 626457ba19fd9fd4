"""What a given policy costs: ``evaluate`` exactly, ``simulate`` by runs, a cross-check with standard errors."""

from collections.abc import Hashable, Mapping
from concurrent.futures import Executor
from dataclasses import replace
from inspect import signature
from typing import Any, cast

import numpy as np

from prudent.errors import PrudentError, as_number
from prudent.models.intervals import Intervals, intervals_of
from prudent.models.ssp import SSP, check_model
from prudent.planning.options import Options
from prudent.policies.distribution import Distribution
from prudent.policies.forwards import MISSING
from prudent.policies.function import follow_function
from prudent.policies.policy import BudgetPolicy
from prudent.policies.simulation import Simulation
from prudent.policies.total_cost import Policy, restricted, total_cost, total_cost_of_table
from prudent.results.at_worst import AtWorst, Follower
from prudent.results.plan import Plan
from prudent.results.runs import Runs
from prudent.runtime.executors import check_executor
from prudent.runtime.limits import Limits, cores

PolicyOrPlan = Policy | Plan


def evaluate(
    model: SSP,
    policy: PolicyOrPlan,
    *,
    step: float | None = None,
    tolerance: float = MISSING,
    memory: int | float | str | None = None,
    time_limit: float | None = None,
    device: str = "cpu",
    uncertainty: Intervals | float | str | None = None,
) -> Distribution:
    """Return the distribution of the total cost of a policy: exact, or grouped where costs are rounded.

    Parameters
    ----------
    model : SSP
        The problem.
    policy : plan, policy, mapping or callable
        A plan or its policy, a table ``{state: action}``, or a function ``(state, spent) -> action``.
    step : float, optional
        Round costs to multiples of this: runs whose costs round to the same total are grouped (``grouped``), and a
        function is called with the mean of their true costs so far.  By default costs are rounded only if they have no
        common step, or if exact evaluation is too large: for a function, more than about a million pairs of state and
        cost so far.  A plan's policy with a budget has its own step.
    tolerance : float
        On models with cycles a run may have any number of steps.  The distribution is cut when at most this probability
        belongs to unfinished runs; so is a long distribution on other models.  ``missing`` is the probability cut off.
    memory, time_limit : optional
        As in :func:`prudent.solve`; exceeding one is an error.
    device : str
        ``"gpu"`` finds the values of states there if the model has cycles and each has a cost; see
        :func:`prudent.solve`.  The distribution is found on the CPU.
    uncertainty : Intervals or float or "own", optional
        A set of models, as in :func:`prudent.solve`, for a plan's policy or a table: ``at_worst`` then has the policy's
        CVaR and expected cost in the worst of them; all other numbers are for the model itself.

    Examples
    --------
    >>> import prudent
    >>> model = prudent.domains.figure_2()
    >>> result = prudent.evaluate(model, {"s0": "a", "s1": "e", "s2": "b"})
    >>> result.values.tolist(), result.probabilities.tolist()
    ([7.0, 10.0], [0.9, 0.1])
    >>> prudent.evaluate(model, prudent.solve(model, alpha=0.1)).cvar(0.1)
    10.0
    """
    asked, policy = Options.of("evaluate", locals()), policy_of(model, policy)
    tolerance = as_number("tolerance", tolerance, "a probability, above 0 and below 1", lambda x: 0 < x < 1)
    step, limits = asked.step, asked.limits()
    sets = intervals_of(model, uncertainty, device)
    if sets is not None:
        if not isinstance(policy, BudgetPolicy | Mapping):
            raise PrudentError("uncertainty= needs a plan, its policy or a table {state: action}, not a function")
        model = replace(model, intervals=sets)
    if isinstance(policy, BudgetPolicy):
        if step is None:
            return _with_worst(total_cost(policy, limits, tolerance), policy, sets, limits)
        policy = _by_names(policy)
    if isinstance(policy, Mapping):
        alone = restricted(model, policy)
        result, same = total_cost_of_table(alone, step, tolerance, limits)
        return _with_worst(result, same, None if sets is None else alone.intervals, limits)
    return follow_function(model, policy, step, tolerance, limits)


def _with_worst(result: Distribution, policy: BudgetPolicy, sets: Intervals | None, limits: Limits) -> Distribution:
    """Return a distribution with the policy's numbers in the worst model of a set, if there is one."""
    if sets is None:
        return result
    later = limits.without_time  # its numbers are computed when they are read
    return replace(result, at_worst=AtWorst([(share, Follower(part, sets, later)) for share, part in policy.parts]))


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
    model, policy
        As in :func:`evaluate`.
    episodes : int
        The number of runs.  Beyond ten million, only a tally of their costs is kept, which takes little memory.
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
        Workers that simulate the runs instead of threads, as in :func:`prudent.study`.  A function must be one that can
        be sent to them.

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


def policy_of(model: SSP, policy: PolicyOrPlan) -> Policy:
    """Return a policy, or that of a plan; refuse what is not a model, what is neither, and one for another model."""
    check_model(model, "pass the model, then the policy")
    if isinstance(policy, Mapping):
        return policy
    own: Any = policy if callable(policy) else getattr(policy, "policy", None)  # a plan has one
    if isinstance(own, BudgetPolicy):
        own.check_model(model)
    elif not callable(policy):
        raise PrudentError(
            f"policy is a {type(policy).__name__}; pass a plan or its policy, a table {{state: action}} or a function "
            "(state, spent)"
        )
    else:
        try:
            signature(own).bind(None, None)
        except TypeError:
            raise PrudentError(
                f"policy is a function of {signature(own)}; it must take (state, spent), the state and the cost so far"
            ) from None
        except ValueError:  # some compiled functions have no signature
            pass
    return cast(Policy, own)


def _by_names(policy: BudgetPolicy) -> dict[Hashable, Hashable]:
    """Return the table of a plan's policy that looks at the state alone; refuse any other."""
    if policy.remembers or policy.level > 0 or len(policy.parts) > 1:
        raise PrudentError(
            "step= is for tables, functions and plans without a budget, and this policy counts its budget in steps of "
            f"{policy.prepared.scale.step:g}; leave step= out, or solve with it"
        )
    model, action = policy.prepared.model, policy.model_actions[0]
    return {model.state(s): model.action(int(action[s])) for s in np.flatnonzero(action >= 0).tolist()}
