"""The exact distribution of a policy's total cost."""

import heapq
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import replace
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, eye_array
from scipy.sparse.linalg import splu

from prudent.engine.prepare import prepare
from prudent.engine.prepared import Prepared
from prudent.errors import PrudentError
from prudent.models.graph import towards
from prudent.models.rows import BoolArray, FloatArray, IntArray, offsets
from prudent.models.ssp import SSP, check_model
from prudent.policies.chain import MISSING, backward, forward, spent_budget
from prudent.policies.distribution import Distribution, mixture
from prudent.policies.policy import BudgetPolicy
from prudent.runtime.limits import Limits, go_on
from prudent.runtime.progress import Progress

__all__ = ["Policy", "evaluate", "restricted"]

PAIRS = 500_000
"""The most pairs of state and cost so far that a user's function is asked about, if states can be met again."""

Policy = BudgetPolicy | Mapping[Any, Hashable] | Callable[[Any, float], Hashable]


def evaluate(
    model: SSP, policy: Policy, *, tolerance: float = MISSING, time_limit: float | None = None
) -> Distribution:
    """Return the exact distribution of the total cost of a policy.

    Parameters
    ----------
    model : SSP
        The problem.
    policy : policy, mapping or callable
        A plan's policy, a table ``{state: action}``, or a function ``(state, spent) -> action``.
    tolerance : float
        On models with cycles a distribution has no end; it is cut when no more than this probability is
        still under way.  ``missing`` says how much was.
    time_limit : float, optional
        Seconds, about, after which it is an error that the distribution is not finished.

    Examples
    --------
    >>> import prudent
    >>> model = prudent.domains.figure_2()
    >>> result = prudent.evaluate(model, {"s0": "a", "s1": "e", "s2": "b"})
    >>> result.values.tolist(), result.probabilities.tolist()
    ([7.0, 10.0], [0.9, 0.1])
    """
    check_model_and_policy(model, policy)
    if isinstance(tolerance, str) or tolerance is None or not 0 < tolerance < 1:
        raise PrudentError(f"tolerance is {tolerance!r}; it must be a probability, above 0 and below 1")
    limits = Limits.of(None, time_limit)
    if isinstance(policy, BudgetPolicy):
        return mixture([(share, _evaluate_budget(part, tolerance, limits)) for share, part in policy.parts])
    if isinstance(policy, Mapping):
        prepared = prepare(restricted(model, policy))
        return _evaluate_budget(BudgetPolicy.of_states(prepared, prepared.action_start[:-1]), tolerance, limits)
    prepared = prepare(model)
    once = bool((prepared.plays == 1).all()) and not prepared.avoided.any()  # no loop was dropped, no action left out
    if prepared.finite and once:
        return _evaluate_finite(model, prepared, policy, limits)
    return _evaluate_function(model, prepared, policy, tolerance, limits)


def check_model_and_policy(model: SSP, policy: Policy) -> None:
    """Refuse what is not a model, what is not a policy, and a plan's policy for another model."""
    check_model(model, "pass the model, then the policy")
    if isinstance(policy, BudgetPolicy):
        policy.check_model(model)
    elif not isinstance(policy, Mapping) and not callable(policy):
        raise PrudentError(
            f"policy is a {type(policy).__name__}; pass plan.policy, a table {{state: action}} or a function "
            "(state, spent)"
        )
    elif not isinstance(policy, Mapping) and not _takes_two(policy):
        raise PrudentError(
            f"policy is a function of {signature(policy)}; it must take (state, spent), the state and the cost so far"
        )


def _takes_two(function: Callable[..., object]) -> bool:
    try:
        signature(function).bind(None, None)
    except TypeError:
        return False
    except ValueError:  # some compiled functions have no signature
        pass
    return True


def _evaluate_budget(policy: BudgetPolicy, tolerance: float, limits: Limits) -> Distribution:
    tail = spent_budget(policy)
    result, _ = forward(policy, tail, tolerance=tolerance, limits=limits)
    if policy.remembers:
        return result
    return replace(result, mean=policy.prepared.scale.in_units(backward(policy, tail, limits).mean))


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
            raise PrudentError(f"the policy has no action for state {name!r}, which it can reach")
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
    _refuse_stuck(model, np.array(visited), source, target, ~acting)
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
    )


def _refuse_stuck(model: SSP, state: IntArray, source: IntArray, target: IntArray, ends: BoolArray) -> None:
    """Refuse a policy under which some visited state never leads to an end."""
    stuck = np.flatnonzero(~ends & (towards(source, target, len(state), ends) < 0))
    if len(stuck):
        raise PrudentError(
            f"the policy does not reach a goal with probability 1: from state {model.state(int(state[stuck[0]]))!r} "
            "it never does, so its expected cost is infinite"
        )


def _evaluate_function(
    model: SSP, prepared: Prepared, policy: Callable[[Any, float], Hashable], tolerance: float, limits: Limits
) -> Distribution:
    """Follow the mass of a user's function forward through the totals, in rising order.

    Normalised costs are non-negative, so a total is final once passed.  Each mass is stored with its product with the
    mean of what rounding left out.
    """
    waiting: dict[int, dict[int, FloatArray]] = {}  # levels charged -> mass by state
    for state, p in zip(model.initial_state.tolist(), model.initial_probability.tolist(), strict=True):
        if p > 0:
            first, left_out = prepared.scale.first(state)
            waiting.setdefault(first, {})[state] = np.array([p, p * left_out])
    queue = list(waiting)
    heapq.heapify(queue)
    ended: dict[int, FloatArray] = {}
    asked, gone, left = 0, 0.0, 1.0
    while queue and left > tolerance:
        go_on(limits, "following the function")
        level = heapq.heappop(queue)
        arrived = waiting.pop(level)
        # Ask the policy in every state that runs can be in with this total, free moves included.
        moves: dict[int, _Moves] = {}
        pending = list(arrived)
        while pending:
            state = pending.pop()
            if state in moves:
                continue
            moves[state] = _outcomes(model, prepared, policy, state, level)
            asked += 1
            pending += model.successor[moves[state].outcome[moves[state].charge == 0]].tolist()
        if asked > PAIRS:
            raise PrudentError(
                f"after {asked:,} pairs of state and cost so far a run is still under way with probability {left:.3g}; "
                "the policy may never reach a goal: mend it, or raise tolerance="
            )
        for state, mass in _visits(model, moves, arrived).items():
            outcome, charge, rest = moves[state]
            if len(outcome) == 0:
                ended[level] = ended.get(level, np.zeros(2)) + mass
                gone += mass[0]
                continue
            for i in np.flatnonzero(charge > 0).tolist():
                after, target = level + int(charge[i]), int(model.successor[outcome[i]])
                if after not in waiting:
                    waiting[after] = {}
                    heapq.heappush(queue, after)
                moved = model.probability[outcome[i]] * np.array([mass[0], mass[1] + mass[0] * rest[i]])
                waiting[after][target] = waiting[after].get(target, np.zeros(2)) + moved
        left = 1.0 - gone
        if left <= 2 * tolerance + 1e-12:  # the difference has lost its digits: sum the mass under way
            left = float(sum(mass[0] for row in waiting.values() for mass in row.values()))
    levels = np.array(sorted(ended), dtype=np.int64)
    mass = np.array([ended[level] for level in levels.tolist()]).reshape(-1, 2).T
    return _distribution(prepared, levels, mass, left if queue else 0.0, min(queue, default=0))


def _distribution(
    prepared: Prepared, levels: IntArray, mass: FloatArray, missing: float = 0.0, beyond: int = 0
) -> Distribution:
    """Return the distribution of runs that end at rising levels; what is missing has used ``beyond`` levels."""
    values, probabilities = prepared.scale.totals(levels), mass[0]
    if prepared.scale.rounded:
        values = values + mass[1] / probabilities * prepared.scale.level_size
        order = np.argsort(values, kind="stable")
        values, probabilities = values[order], probabilities[order]
    under_way = prepared.scale.total(beyond) if missing > 0 else 0.0
    return Distribution(
        values=values,
        probabilities=probabilities,
        mean=float(values @ probabilities) + missing * under_way,
        missing=missing,
        missing_mean=under_way,
        grouped=prepared.scale.rounded,
    )


def _evaluate_finite(
    model: SSP, prepared: Prepared, policy: Callable[[Any, float], Hashable], limits: Limits
) -> Distribution:
    """Follow the mass of a user's function forward through a model without cycles, state by state."""
    arrived: list[list[tuple[IntArray, FloatArray]]] = [[] for _ in range(model.n_states)]  # levels charged, mass
    for state, p in zip(model.initial_state.tolist(), model.initial_probability.tolist(), strict=True):
        if p > 0:
            first, left_out = prepared.scale.first(state)
            arrived[state].append((np.array([first]), np.array([[p], [p * left_out]])))
    model_state = np.full(prepared.n_states, -1, dtype=np.int64)
    known = np.flatnonzero(prepared.members.state_of >= 0)
    model_state[prepared.members.state_of[known]] = known
    ended: list[tuple[IntArray, FloatArray]] = []
    with Progress("following the policy", total=prepared.n_states, unit="states") as progress:
        for done, state in enumerate(model_state[prepared.blocks[1][::-1]].tolist()):
            if state < 0 or not arrived[state]:  # the first chance step; a state that runs do not meet
                continue
            go_on(limits, "following the function")
            parts, arrived[state] = arrived[state], []
            if model.action_start[state] == model.action_start[state + 1]:
                ended += parts
                continue
            levels, mass = _merged(parts)
            for played, which in _played(model, prepared, policy, state, levels):
                outcome, charge, rest = _moves(model, prepared, state, played)
                for o, more, left_out in zip(outcome.tolist(), charge.tolist(), rest.tolist(), strict=True):
                    moved = np.stack([mass[0, which], mass[1, which] + mass[0, which] * left_out])
                    arrived[int(model.successor[o])].append((levels[which] + more, moved * model.probability[o]))
            progress.at(done)
    return _distribution(prepared, *_merged(ended))


def _merged(parts: list[tuple[IntArray, FloatArray]]) -> tuple[IntArray, FloatArray]:
    """Add up the mass that is at the same level."""
    levels, place = np.unique(np.concatenate([part[0] for part in parts]), return_inverse=True)
    mass = np.concatenate([part[1] for part in parts], axis=1)
    return levels, np.stack([np.bincount(place, weights=each, minlength=len(levels)) for each in mass])


def _played(
    model: SSP, prepared: Prepared, policy: Callable[[Any, float], Hashable], state: int, levels: IntArray
) -> Iterator[tuple[int, IntArray]]:
    """Ask a function at each level; yield each action that it plays, and at which of the levels."""
    name, action = model.state(state), np.empty(len(levels), dtype=np.int64)
    last, found = None, -1
    for i, spent in enumerate(prepared.scale.totals(levels, state).tolist()):
        given = policy(name, spent)
        if found < 0 or given is not last:  # mostly it is the same action as before
            last, found = given, model.find_action(state, given)
        action[i] = found
    for each in np.unique(action).tolist():
        yield each, np.flatnonzero(action == each)


class _Moves(NamedTuple):
    """The outcomes of an action that a function plays."""

    outcome: IntArray
    charge: IntArray  # in levels
    left_out: FloatArray  # what rounding left out, in levels


def _outcomes(
    model: SSP, prepared: Prepared, policy: Callable[[Any, float], Hashable], state: int, level: int
) -> _Moves:
    """Return the outcomes of the action that a function plays."""
    name = model.state(state)
    if model.action_start[state] == model.action_start[state + 1]:
        return _Moves(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0))
    action = model.find_action(state, policy(name, prepared.scale.total(level, state)))
    return _moves(model, prepared, state, action)


def _moves(model: SSP, prepared: Prepared, state: int, action: int) -> _Moves:
    """Return the outcomes of an action."""
    outcome = np.arange(model.outcome_start[action], model.outcome_start[action + 1])
    outcome = outcome[model.probability[outcome] > 0]
    target = model.successor[outcome]
    outside = target[prepared.members.state_of[target] < 0]
    if len(outside):
        raise PrudentError(
            f"the policy does not reach a goal with probability 1: it can get into state {model.state(outside[0])!r}, "
            "from where no policy does, so its expected cost is infinite"
        )
    steps = prepared.scale.normalised(model.cost[outcome], state, target)
    charge = prepared.scale.up(steps)
    return _Moves(outcome, charge, prepared.scale.left_out(steps, charge))


def _visits(model: SSP, moves: dict[int, _Moves], arrived: dict[int, FloatArray]) -> dict[int, FloatArray]:
    """Return the mass that visits each state at one total, free moves included."""
    state = np.array(list(moves), dtype=np.int64)
    rank = {s: i for i, s in enumerate(moves)}
    source, target, chance = [], [], []
    for s, (outcome, charge, _) in moves.items():
        for o in outcome[charge == 0].tolist():
            source.append(rank[s])
            target.append(rank[int(model.successor[o])])
            chance.append(float(model.probability[o]))
    if not source:
        return arrived
    leaves = np.array([len(move.outcome) == 0 or bool((move.charge > 0).any()) for move in moves.values()])
    _refuse_stuck(model, state, np.array(source), np.array(target), leaves)
    entered = np.array([arrived.get(int(s), np.zeros(2)) for s in state])
    move = csr_array((chance, (target, source)), shape=(len(state), len(state)))
    visits = splu((eye_array(len(state)) - move).tocsc()).solve(entered)
    visits[:, 0] = np.maximum(visits[:, 0], 0.0)
    return dict(zip(state.tolist(), visits, strict=True))
