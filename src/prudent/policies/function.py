"""A user's own function as policy, followed forwards through pairs of state and cost so far.

In a model without cycles mass is followed state by state, else total by total: normalised costs are non-negative, so a
total is final once it is passed.  Each mass is stored with its product with the mean of what rounding left out.  So
where costs are rounded, runs that were charged alike are known by the mean of their true costs, and the function is
asked at that: what runs are charged, rounded up cost by cost, runs ahead of what they have spent.
"""

import heapq
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, eye_array
from scipy.sparse.linalg import splu

from prudent.engine.cost_step import COARSEST, nice_step
from prudent.engine.prepare import prepare
from prudent.engine.prepared import Prepared
from prudent.errors import PrudentError, TooLarge
from prudent.models.graph import towards
from prudent.models.rows import BoolArray, FloatArray, IntArray
from prudent.models.ssp import SSP
from prudent.policies.distribution import Distribution
from prudent.runtime.limits import Limits, go_on
from prudent.runtime.progress import Progress

PAIRS = 1_000_000
"""The most pairs of state and cost so far that a function is asked about, unless a finite horizon needs more."""

BYTES = 64
"""Memory for one mass at one total, with what adding masses up takes."""

TINY = float(np.finfo(np.float64).tiny)
"""The least mass that is divided by."""

OFTEN = 1024
"""A function may be slow: the limits are looked at after so many questions."""

FOLLOWING = "following the function, which a larger step= asks less often,"

Function = Callable[[Any, float], Hashable]

Masses = tuple[IntArray, FloatArray]  # levels charged; mass, and its product with the mean of what rounding left out


def follow_function(model: SSP, policy: Function, step: float | None, tolerance: float, limits: Limits) -> Distribution:
    """Return the distribution of the total cost of a function, with costs rounded to a step.

    Without one, costs are rounded only if they have no common step or the pairs are too many: then to a step at which
    there are up to PAIRS of them.
    """
    prepared = prepare(model, step, limits)
    if step is not None:
        return _follow(prepared, policy, tolerance, limits, finite=np.inf)[0]
    try:
        return _follow(prepared, policy, tolerance, limits)[0]
    except TooLarge:
        most = _coarsest(prepared)
        if most <= prepared.scale.level_size:
            if not prepared.finite:
                raise
            most = prepared.scale.level_size
    found, asked = _follow(prepare(model, most, limits), policy, tolerance, limits, finite=np.inf)
    wanted = most * asked / PAIRS
    while (wanted := _fitting(prepared, wanted)) < most:
        try:
            return _follow(prepare(model, wanted, limits), policy, tolerance, limits)[0]
        except TooLarge:
            wanted *= 2
    return found


def _coarsest(prepared: Prepared) -> float:
    """Return a step beyond which pairs get no fewer: the largest cost."""
    model = prepared.model
    played = np.zeros(model.n_actions, dtype=bool)
    played[prepared.model_action[prepared.model_action >= 0]] = True
    largest = float(np.abs(model.cost[played[model.outcome_action]]).max(initial=0.0))
    most = float(prepared.fine.max(initial=0)) * prepared.scale.lattice.step
    return _fitting(prepared, min(most, COARSEST / 2 * largest)) if most > 0 else 0.0


def _fitting(prepared: Prepared, step: float) -> float:
    """Return a round number near a step, a multiple of the common step of the costs if they have one."""
    if prepared.scale.rounded:
        return nice_step(step)
    least = prepared.scale.lattice.step
    return max(round(nice_step(step) / least), 1) * least


def _follow(
    prepared: Prepared, policy: Function, tolerance: float, limits: Limits, finite: float | None = None
) -> tuple[Distribution, int]:
    """Follow a function at one step; also return at how many pairs it was asked.

    Raise TooLarge at more than PAIRS, or on a finite horizon more than ``finite``.
    """
    most = PAIRS + prepared.n_states
    if prepared.finite:
        asked = _Asked(prepared, policy, most if finite is None else finite, limits)
        return _by_state(asked), asked.pairs
    asked = _Asked(prepared, policy, most, limits)
    return _by_total(asked, tolerance), asked.pairs


class _Move(NamedTuple):
    """One outcome of an action that a function plays."""

    target: int
    probability: float
    charge: int  # in levels
    left_out: float  # what rounding left out, in levels


Moves = tuple[_Move, ...]  # all outcomes of an action but a free one back to the same state; none at a goal


@dataclass
class _Asked:
    """A function on a prepared model, and what it has answered."""

    prepared: Prepared
    policy: Function
    most: float
    limits: Limits
    pairs: int = 0
    known: dict[int, Moves] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.model = self.prepared.model
        self.is_goal = self.model.is_goal.tolist()

    def actions(self, state: int, levels: IntArray, mass: FloatArray) -> IntArray:
        """Return the actions played in a state with each of several totals."""
        self.pairs += len(levels)
        if self.pairs > self.most:
            raise TooLarge(f"the function would be called at more than {self.pairs:,} pairs of state and cost so far")
        go_on(self.limits, FOLLOWING)
        answers = getattr(self.policy, "actions_at", self._answers)  # a table answers for all of them at once
        action, last, found = np.empty(len(levels), dtype=np.int64), None, -1
        for i, given in enumerate(answers(self.model.state(state), self.spent(state, levels, mass))):
            if found < 0 or given is not last:  # mostly it is the same action as before
                last, found = given, self.model.find_action(state, given)
            action[i] = found
        return action

    def _answers(self, name: Hashable, spent: FloatArray) -> Iterator[Hashable]:
        """Yield the actions that a function plays in a state with each of several costs so far."""
        for i, each in enumerate(spent.tolist(), 1):
            if i % OFTEN == 0:
                go_on(self.limits, FOLLOWING)
            yield self.policy(name, each)

    def spent(self, state: int, levels: IntArray, mass: FloatArray) -> FloatArray:
        """Return the true costs so far, or their means where costs are rounded, as multiples of the lattice's step."""
        scale = self.prepared.scale
        totals = scale.totals(levels, state)
        if not scale.rounded:
            return totals
        left_out = mass[1] / np.maximum(mass[0], TINY)  # a mass may be too small for a float
        return scale.lattice.value(scale.lattice.multiples(totals + left_out * scale.level_size))

    def moves(self, action: int) -> Moves:
        """Return the outcomes of an action."""
        if action in self.known:
            return self.known[action]
        model, scale = self.model, self.prepared.scale
        state = model.state_of_action(action)
        outcome = np.arange(model.outcome_start[action], model.outcome_start[action + 1])
        outcome = outcome[model.probability[outcome] > 0]
        target = model.successor[outcome]
        outside = target[self.prepared.members.state_of[target] < 0]
        if len(outside):
            raise PrudentError(
                "the policy does not reach a goal with probability 1: it can get into state "
                f"{model.state(outside[0])!r}, from where no policy does, so its expected cost is infinite"
            )
        steps, probability = scale.normalised(model.cost[outcome], state, target), model.probability[outcome]
        away = (target != state) | (steps > 0)
        if away.any() and not away.all():  # the same pair again, and so the same action
            target, steps, probability = target[away], steps[away], probability[away] / probability[away].sum()
        charge = scale.up(steps)
        columns = target, probability, charge, scale.left_out(steps, charge)
        self.known[action] = tuple(_Move(*row) for row in zip(*(column.tolist() for column in columns), strict=True))
        return self.known[action]

    def first(self) -> Iterator[tuple[int, int, float, float]]:
        """Yield each initial state, the levels charged for it, its probability and what rounding left out."""
        for state, p in zip(self.model.initial_state.tolist(), self.model.initial_probability.tolist(), strict=True):
            if p > 0:
                charge, left_out = self.prepared.scale.first(state)
                yield state, charge, p, left_out

    def distribution(self, ended: Masses, missing: float = 0.0, beyond: int = 0) -> Distribution:
        """Return the distribution of runs that end at rising levels; what is missing has used ``beyond`` levels."""
        scale, (levels, mass) = self.prepared.scale, ended
        most = np.nan if missing > 0 else scale.total(int(levels[-1]))
        levels, mass = levels[mass[0] > 0], mass[:, mass[0] > 0]
        values, probabilities = scale.totals(levels), mass[0]
        if scale.rounded:
            values = values + mass[1] / probabilities * scale.level_size
            order = np.argsort(values, kind="stable")
            values, probabilities = values[order], probabilities[order]
        under_way = scale.total(beyond) if missing > 0 else 0.0
        return Distribution(
            values=values,
            probabilities=probabilities,
            mean=float(values @ probabilities) + missing * under_way,
            missing=missing,
            missing_mean=under_way,
            grouped=scale.rounded,
            most=most,
            asked_step=scale.step if scale.rounded else None,
        )


def _by_state(asked: _Asked) -> Distribution:
    """Follow a function through a model without cycles, state by state."""
    model, prepared = asked.model, asked.prepared
    arrived: list[list[Masses]] = [[] for _ in range(model.n_states)]
    for state, charge, p, left_out in asked.first():
        arrived[state].append((np.array([charge]), np.array([[p], [p * left_out]])))
    model_state = np.full(prepared.n_states, -1, dtype=np.int64)
    known = np.flatnonzero(prepared.members.state_of >= 0)
    model_state[prepared.members.state_of[known]] = known
    ended: list[Masses] = []
    held = 0
    with Progress("following the policy", total=prepared.n_states, unit="states") as progress:
        for done, state in enumerate(model_state[prepared.blocks[1][::-1]].tolist()):
            if state < 0 or not arrived[state]:  # the first chance step; a state that runs do not meet
                continue
            parts, arrived[state] = arrived[state], []
            if asked.is_goal[state]:
                ended += parts
                continue
            held -= sum(len(part[0]) for part in parts)
            levels, mass = _merged(parts)
            action = asked.actions(state, levels, mass)
            for played in np.unique(action).tolist():
                which = np.flatnonzero(action == played)
                for target, p, charge, left_out in asked.moves(played):
                    moved = np.stack([mass[0, which], mass[1, which] + mass[0, which] * left_out])
                    arrived[target].append((levels[which] + charge, moved * p))
                    held += len(which)
            asked.limits.check(BYTES * held, FOLLOWING, "give a larger step=")
            progress.at(done)
    return asked.distribution(_merged(ended))


def _merged(parts: list[Masses]) -> Masses:
    """Add up the mass that is at the same level."""
    levels, place = np.unique(np.concatenate([part[0] for part in parts]), return_inverse=True)
    mass = np.concatenate([part[1] for part in parts], axis=1)
    return levels, np.stack([np.bincount(place, weights=each, minlength=len(levels)) for each in mass])


def _by_total(asked: _Asked, tolerance: float) -> Distribution:
    """Follow a function through the totals, in rising order, until at most ``tolerance`` is under way."""
    waiting: dict[int, dict[int, tuple[float, float]]] = {}  # levels charged -> mass by state
    for state, charge, p, left_out in asked.first():
        waiting.setdefault(charge, {})[state] = (p, p * left_out)
    queue = list(waiting)
    heapq.heapify(queue)
    ended: dict[int, tuple[float, float]] = {}
    gone, left, pause = 0.0, 1.0, 0
    while queue and left > tolerance:
        level = heapq.heappop(queue)
        arrived = waiting.pop(level)
        try:
            moves = _played(asked, arrived, level)
        except TooLarge:
            raise TooLarge(
                f"after {asked.pairs:,} pairs of state and cost so far a run is still unfinished with probability "
                f"{left:.3g}; the policy may never reach a goal; fix it, raise tolerance= or set a larger step="
            ) from None
        for state, (m, rest) in _visits(asked.model, moves, arrived).items():
            if not moves[state]:
                before = ended.get(level, (0.0, 0.0))
                ended[level] = before[0] + m, before[1] + rest
                gone += m
                continue
            for target, p, charge, left_out in moves[state]:
                if charge == 0:
                    continue
                if level + charge not in waiting:
                    waiting[level + charge] = {}
                    heapq.heappush(queue, level + charge)
                row = waiting[level + charge]
                before = row.get(target, (0.0, 0.0))
                row[target] = before[0] + p * m, before[1] + p * (rest + m * left_out)
        left, pause = 1.0 - gone, pause - 1
        if left <= 2 * tolerance + 1e-12:  # the difference has lost its digits: sum the mass under way, now and then
            left = 2 * tolerance + 1e-12
            if pause <= 0 or not queue:
                left, pause = sum(m for row in waiting.values() for m, _ in row.values()), len(waiting) // 8
    levels = np.array(sorted(ended), dtype=np.int64)
    mass = np.array([ended[level] for level in levels.tolist()]).reshape(-1, 2).T
    return asked.distribution((levels, mass), left if queue else 0.0, min(queue, default=0))


def _played(asked: _Asked, arrived: dict[int, tuple[float, float]], level: int) -> dict[int, Moves]:
    """Ask a function in every state that runs can be in with one total, free moves included."""
    moves: dict[int, Moves] = {}
    pending = list(arrived.items())[::-1]
    while pending:
        state, mass = pending.pop()
        if state in moves:
            continue
        moves[state] = ()
        if not asked.is_goal[state]:
            about = np.array([level]), np.array(arrived.get(state, mass))[:, None]
            moves[state] = asked.moves(int(asked.actions(state, *about)[0]))
        pending += [(move.target, mass) for move in moves[state] if move.charge == 0]
    return moves


def _visits(
    model: SSP, moves: dict[int, Moves], arrived: dict[int, tuple[float, float]]
) -> dict[int, tuple[float, float]]:
    """Return the mass that visits each state at one total, free moves included."""
    free = {state: [move for move in played if move.charge == 0] for state, played in moves.items()}
    visits = {state: arrived.get(state, (0.0, 0.0)) for state in moves}
    after = TopologicalSorter({state: [move.target for move in listed] for state, listed in free.items()})
    try:
        order = list(after.static_order())[::-1]
    except CycleError:
        return _cyclic_visits(model, moves, free, arrived)
    for state in order:
        m, rest = visits[state]
        for move in free[state]:
            already, p = visits[move.target], move.probability
            visits[move.target] = already[0] + p * m, already[1] + p * rest
    return visits


def _cyclic_visits(
    model: SSP, moves: dict[int, Moves], free: dict[int, list[_Move]], arrived: dict[int, tuple[float, float]]
) -> dict[int, tuple[float, float]]:
    """Return the same where free moves can come back; refuse a function that stays there forever."""
    state, rank = np.array(list(moves), dtype=np.int64), {s: i for i, s in enumerate(moves)}
    arcs = [(rank[s], rank[move.target], move.probability) for s, listed in free.items() for move in listed]
    source, target, chance = (np.array(column) for column in zip(*arcs, strict=True))
    leaves = np.array([not played or len(free[s]) < len(played) for s, played in moves.items()])
    refuse_stuck(model, state, leaves | (towards(source, target, len(state), leaves) >= 0))
    entered = np.array([arrived.get(s, (0.0, 0.0)) for s in moves])
    move_on = csr_array((chance, (target, source)), shape=(len(state), len(state)))
    visits = splu((eye_array(len(state)) - move_on).tocsc()).solve(entered)
    visits[:, 0] = np.maximum(visits[:, 0], 0.0)
    return {s: (m, rest) for s, (m, rest) in zip(moves, visits.tolist(), strict=True)}


def refuse_stuck(model: SSP, state: IntArray, ends: BoolArray) -> None:
    """Refuse a policy under which some visited state never leads to an end."""
    if not ends.all():
        raise PrudentError(
            f"the policy does not reach a goal with probability 1: from state {model.state(state[np.argmin(ends)])!r} "
            "it never does, so its expected cost is infinite"
        )
