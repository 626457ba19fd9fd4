"""Exact evaluation of a policy, by the Markov chain that it makes of the model.

The chain is on pairs (state, remaining budget) until the budget is gone, then on states.  A backward pass gives the
expected cost and the expected excess over the budget, with no tail cut off; a forward pass, the distribution.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array

from prudent.engine.prepared import Prepared, restrict
from prudent.engine.sweep.driver import budget_sweep
from prudent.engine.sweep.question import Question
from prudent.engine.values.expected_cost import Expected, least_expected_cost
from prudent.kernels.questions import Base
from prudent.models.rows import FloatArray, offsets, ranges
from prudent.policies.distribution import Distribution, Groups
from prudent.policies.forwards import MISSING, Followed, followed
from prudent.policies.policy import BudgetPolicy
from prudent.runtime.limits import UNLIMITED, Limits

SPREAD = 1e-9
"""What is added to variances within groups, relative to the mean square: more than rounding."""

MORE = 1.01
"""What numbers of actions are multiplied by to get a bound: they are known to a thousandth."""


@dataclass(frozen=True)
class Values:
    """Expected values of a policy at the start of a run, in levels."""

    excess: float  # E[(C - w)+] over its budget w, costs as charged
    above: float  # upper bound on the excess
    mean: float  # E[C]


def spent_budget(policy: BudgetPolicy, limits: Limits = UNLIMITED) -> Expected:
    """Return the policy's expected cost from each state once its budget is gone."""
    prepared, choice = policy.prepared, policy.without_budget
    least: Expected | None = prepared.found.get(least_expected_cost)
    if least is not None and bool(((least.choice == choice) | prepared.is_goal).all()):
        return least
    return least_expected_cost(restrict(prepared, choice), limits)


def backward(policy: BudgetPolicy, tail: Expected, limits: Limits = UNLIMITED) -> Values:
    """Evaluate a policy; ``tail`` is its expected cost once the budget is gone."""
    return Values(*backward_from_each(policy, tail, limits)[:, -1].tolist())


def backward_from_each(policy: BudgetPolicy, tail: Expected, limits: Limits = UNLIMITED) -> FloatArray:
    """Evaluate a policy begun with each budget up to its own: the fields of :class:`Values` as rows, (3, n_levels).

    With another budget than its own, runs may meet pairs that its table has not.
    """
    return _backward(policy, np.stack([tail.value, tail.upper, tail.value]), policy.prepared.mean_cost, limits)


def expected_steps(policy: BudgetPolicy, limits: Limits = UNLIMITED) -> FloatArray:
    """Return bounds on the expected number of actions in a run begun with each budget up to the policy's own.

    Free moves on the way to actions are included.
    """
    prepared, steps = policy.prepared, MORE * spent_budget(policy, limits).steps(limits)
    counted = _backward(policy, np.stack([steps] * 3), prepared.plays, limits)
    return np.asarray(counted[2] * (1 + longest_detour(prepared)))


def _backward(policy: BudgetPolicy, base: FloatArray, mean_cost: FloatArray, limits: Limits = UNLIMITED) -> FloatArray:
    prepared = policy.prepared
    if policy.level == 0:
        return base[:, [prepared.start]]
    question = Question.given(prepared, policy.choices, Base(*base), mean_cost)
    # Following a policy takes no more memory than planning it did; it is useless unfinished, so nothing is saved.
    limits = replace(limits, memory=UNLIMITED.memory, threads=prepared.threads, keeper=None, ranks=None)
    found = budget_sweep(prepared, question, limits, most=policy.level)
    return np.stack([found.excess, found.low, found.mean])


def longest_detour(prepared: Prepared) -> float:
    """Return a bound on the expected number of free moves between two actions of the prepared model.

    They lie inside collapsed end components, on the way to the state that has the action.  If they all cost exactly
    0 in the model, they need not be counted, and the bound is 0.
    """
    model = prepared.model
    inner = np.zeros(model.n_actions, dtype=bool)
    inner[prepared.members.inner_action] = True
    outcome = np.flatnonzero(inner[model.outcome_action])
    if not (model.cost[outcome] != 0).any():
        return 0.0
    state_of = model.action_state
    exits = state_of[prepared.model_action[prepared.model_action >= 0]]
    members = np.unique(state_of[prepared.members.inner_action])
    most = 0.0
    for target in np.intersect1d(exits, members).tolist():
        route = prepared.members.routes(target)
        inside = np.flatnonzero(route >= 0)
        n, moves = len(inside), ranges(model.outcome_start, route[inside])
        start = offsets(np.diff(model.outcome_start)[route[inside]])
        lead = csr_array((model.probability[moves], model.successor[moves], start), shape=(n, model.n_states))
        try:
            steps = np.linalg.solve(np.eye(n) - lead[:, inside].toarray(), np.ones(n))
        except np.linalg.LinAlgError:  # moves are too rare for floats
            return np.inf
        most = max(most, 2 * float(steps.max(initial=0.0)) if (steps > 0).all() else np.inf)
    return most


def forward(
    policy: BudgetPolicy,
    tail: Expected | None = None,
    *,
    most: int | None = None,
    tolerance: float = MISSING,
    charged: bool = False,
    in_levels: bool = False,
    limits: Limits = UNLIMITED,
) -> tuple[Distribution, float]:
    """Return the distribution of the total cost, and a bound on the expected number of actions, free moves included.

    It is cut when at most ``tolerance`` is under way or after ``most`` levels, but not before the budget is gone.  So
    ``tail`` gives the expected cost of the part cut off; without it, that part counts as what it has spent.  Where
    costs are rounded, runs charged the same are grouped, at the mean of their true costs, or at what is ``charged``.
    Costs are in the user's units, or in levels, which keep more digits where best luck is far from 0.
    Raise TooLarge where the ``limits`` do not allow the memory, Stopped where they ask to stop.
    """
    prepared = policy.prepared
    layers = 3 if prepared.scale.rounded and not charged else 1
    found = followed(policy, layers, most, tolerance, None if tail is None else tail.upper, limits)
    total, missing = found.total, found.missing
    with np.errstate(over="ignore"):  # more steps than any float are infinitely many
        steps = float(found.played @ prepared.plays)
    ended = np.flatnonzero(total[0])
    some = found.there > 0  # elsewhere an infinite value does not matter
    ahead = 0.0 if tail is None else float(found.there[some] @ tail.value[some])
    beyond = float(found.arriving[0] @ found.later) + ahead if missing > 0 else 0.0
    unit, units = (1.0, float) if in_levels else (prepared.scale.level_size, prepared.scale.in_units)
    probability, value = total[0, ended], ended.astype(np.float64) if in_levels else prepared.scale.totals(ended)
    mean = float(probability @ ended) + beyond
    groups = None
    if layers > 1:
        beyond += float(found.arriving[1].sum())
        mean += float(total[1].sum() + found.arriving[1].sum())
        value = value + total[1, ended] / probability * unit
        groups = _groups(
            policy, total[:, ended], value, found, bounded=tail is not None and missing > 0, in_levels=in_levels
        )
        order = np.argsort(value, kind="stable")
        value, probability = value[order], probability[order]
    if missing > 0:
        steps += float(found.there[some] @ (tail or spent_budget(policy, limits)).steps(limits)[some])
    distribution = Distribution(
        values=value,
        probabilities=probability,
        mean=units(mean),
        missing=float(missing),
        missing_mean=units(beyond / missing) if missing > 0 else 0.0,
        grouped=layers > 1,
        groups=groups,
    )
    return distribution, MORE * steps * (1 + longest_detour(prepared))


def _groups(
    policy: BudgetPolicy, ended: FloatArray, value: FloatArray, found: Followed, *, bounded: bool, in_levels: bool
) -> Groups:
    """Return what is known of runs that were charged the same: those that ended at ``value``, then those under way.

    The latter are left out unless what they will still cost is ``bounded``.
    """
    scale = policy.prepared.scale
    unit = 1.0 if in_levels else scale.level_size
    moments, mean, ahead = ended, value, np.zeros(len(value))
    if bounded:
        some = found.arriving[0] > 0
        later, levels = found.arriving[:, some], found.later[some]
        at = (levels.astype(np.float64) if in_levels else scale.totals(levels)) + later[1] / later[0] * unit
        moments, mean = np.concatenate([ended, later], axis=1), np.append(value, at)
        ahead = np.append(ahead, found.ahead[some] / later[0] * unit)
    square, shift = moments[2] / moments[0], moments[1] / moments[0]
    variance = np.maximum(square - shift * shift, 0.0) + SPREAD * square
    return Groups(moments[0], mean, variance * unit * unit, ahead)
