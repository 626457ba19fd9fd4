"""The exact distribution of a policy's total cost."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from prudent.engine.cost_step import nice_step
from prudent.engine.prepare import prepare
from prudent.errors import PrudentError, TooLarge
from prudent.models.intervals import Intervals, intervals_of
from prudent.models.rows import offsets
from prudent.models.ssp import SSP, check_model
from prudent.policies.at_worst import AtWorst, Follower
from prudent.policies.chain import backward, forward, spent_budget
from prudent.policies.distribution import Distribution, mixture
from prudent.policies.forwards import MISSING, most_spent
from prudent.policies.function import Function, follow_function, refuse_stuck
from prudent.policies.policy import BudgetPolicy
from prudent.runtime.limits import Limits

if TYPE_CHECKING:
    from prudent.results.plan import Plan

__all__ = ["Policy", "PolicyOrPlan", "evaluate", "evaluate_budget", "policy_of", "restricted"]

TO_THE_END = 2**27
"""The most work, in states times levels, for the part of a distribution that is less likely than the tolerance."""

COARSER = 4
"""Each step tried for a table is so many times the one before."""

Policy = BudgetPolicy | Mapping[Any, Hashable] | Function
PolicyOrPlan: TypeAlias = "Policy | Plan"


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
    memory : int or str, optional
        The memory limit, in bytes or as ``"2GB"``; by default 80% of the free memory.
    time_limit : float, optional
        The time limit in seconds, approximately; exceeding it is an error.
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
    policy = policy_of(model, policy)
    if isinstance(tolerance, str) or tolerance is None or not 0 < tolerance < 1:
        raise PrudentError(f"tolerance is {tolerance!r}; it must be a probability, above 0 and below 1")
    limits = Limits.of(memory, time_limit, device=device)
    sets = intervals_of(model, uncertainty, device)
    if sets is not None:
        if not isinstance(policy, BudgetPolicy | Mapping):
            raise PrudentError("uncertainty= needs a plan, its policy or a table {state: action}, not a function")
        model = replace(model, intervals=sets)
    if isinstance(policy, BudgetPolicy):
        if step is None:
            return _with_worst(_evaluate_parts(policy, tolerance, limits), policy, sets, limits)
        policy = _by_names(policy)
    if isinstance(policy, Mapping):
        alone = restricted(model, policy)
        result, same = _evaluate_table(alone, step, tolerance, limits)
        return _with_worst(result, same, None if sets is None else alone.intervals, limits)
    return follow_function(model, policy, step, tolerance, limits)


def _evaluate_parts(policy: BudgetPolicy, tolerance: float, limits: Limits) -> Distribution:
    return mixture([(share, evaluate_budget(part, tolerance, limits)) for share, part in policy.parts])


def _with_worst(result: Distribution, policy: BudgetPolicy, sets: Intervals | None, limits: Limits) -> Distribution:
    """Return a distribution with the policy's numbers in the worst model of a set, if there is one."""
    if sets is None:
        return result
    later = limits.without_time  # its numbers are computed when they are read
    return replace(result, at_worst=AtWorst([(share, Follower(part, sets, later)) for share, part in policy.parts]))


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
    elif not _takes_two(own):
        raise PrudentError(
            f"policy is a function of {signature(own)}; it must take (state, spent), the state and the cost so far"
        )
    return cast(Policy, own)


def _takes_two(function: Callable[..., object]) -> bool:
    try:
        signature(function).bind(None, None)
    except TypeError:
        return False
    except ValueError:  # some compiled functions have no signature
        pass
    return True


def evaluate_budget(policy: BudgetPolicy, tolerance: float, limits: Limits) -> Distribution:
    """Return the distribution of the total cost of a policy that draws nothing."""
    prepared, most = policy.prepared, most_spent(policy, limits)
    if prepared.n_states * (most + 1) <= TO_THE_END:
        tolerance = 0.0
    tail = spent_budget(policy, limits)
    result, _ = forward(policy, tail, tolerance=tolerance, limits=limits)
    scale = prepared.scale
    result = replace(result, most=scale.in_units(most) if scale.rounded or np.isinf(most) else scale.total(int(most)))
    if policy.remembers or (prepared.acyclic and result.missing == 0):
        return result
    return replace(result, mean=scale.in_units(backward(policy, tail, limits).mean))


def _evaluate_table(
    alone: SSP, step: float | None, tolerance: float, limits: Limits
) -> tuple[Distribution, BudgetPolicy]:
    """Evaluate the only policy of a model, at the finest step that the limits allow if none is given."""
    prepared = prepare(alone, step, limits)
    coarsest = float(np.abs(alone.cost).max(initial=0.0))
    while True:
        policy = BudgetPolicy.of_states(prepared, prepared.action_start[:-1])
        coarser = nice_step(COARSER * prepared.scale.level_size)
        last = step is not None or coarser > coarsest
        try:
            result = evaluate_budget(policy, tolerance, limits)
            if last or result.missing <= tolerance:
                return result, policy
        except TooLarge:
            if last:
                raise
        prepared = prepare(alone, coarser, limits)


def _by_names(policy: BudgetPolicy) -> dict[Hashable, Hashable]:
    """Return the table of a plan's policy that looks at the state alone; refuse any other."""
    if policy.remembers or policy.level > 0 or len(policy.parts) > 1:
        raise PrudentError(
            "step= is for tables, functions and plans without a budget, and this policy counts its budget in steps of "
            f"{policy.prepared.scale.step:g}; leave step= out, or solve with it"
        )
    model, action = policy.prepared.model, policy.model_actions[0]
    return {model.state(s): model.action(int(action[s])) for s in np.flatnonzero(action >= 0).tolist()}


def restricted(model: SSP, table: Mapping[Any, Hashable]) -> SSP:
    """Return the model of the states that a table's policy visits, with the table's actions alone."""
    rank = {int(s): i for i, s in enumerate(model.initial_state)}
    visited, acts, outcome, count = list(rank), [], [], []
    for state in visited:  # grows while it is read
        if model.action_start[state] == model.action_start[state + 1]:
            acts.append(-1)
            continue
        name = model.state(state)
        if name not in table:
            raise PrudentError(f"policy: there is no action for state {name!r}, which it can reach; add one")
        action = model.find_action(state, table[name])
        acts.append(action)
        possible = np.arange(model.outcome_start[action], model.outcome_start[action + 1])
        possible = possible[model.probability[possible] > 0]
        outcome.append(possible)
        count.append(len(possible))
        for target in model.successor[possible].tolist():
            if target not in rank:
                rank[target] = len(visited)
                visited.append(target)
    acting = np.array(acts) >= 0
    taken = np.concatenate([*outcome, np.empty(0, dtype=np.int64)])
    source = np.repeat(np.flatnonzero(acting), count)
    target = np.array([rank[s] for s in model.successor[taken].tolist()], dtype=np.int64)
    refuse_stuck(model, np.array(visited), source, target, ~acting)
    return SSP(
        action_start=offsets(acting),
        outcome_start=offsets(count),
        probability=model.probability[taken],
        successor=target,
        cost=model.cost[taken],
        initial_state=np.arange(len(model.initial_state)),
        initial_probability=model.initial_probability,
        state_names=[model.state(s) for s in visited],
        action_names=[model.action(a) for a in acts if a >= 0],
        name=model.name,
        **model.known_of(taken),
    )
