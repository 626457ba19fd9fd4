"""Following a policy forwards through the Markov chain that it makes of the model.

In a model without cycles, state by state (:mod:`prudent.kernels.following`); else, or where that takes too much room,
level by level, over the places where runs arrive (:mod:`prudent.kernels.inflow`), on all threads.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.engine.prepared import Prepared, choice_type, restrict
from prudent.engine.room import shared_room
from prudent.engine.sweep.estimate import FOLLOWED
from prudent.engine.sweep.levels import LevelSweep
from prudent.engine.values.bellman import free_arcs
from prudent.engine.values.worst_case import UNREACHED, true_worst_case, worst_case_of
from prudent.errors import TooLarge
from prudent.kernels.following import STRETCH, Moves, Passed, Spans, follow_ahead, reach_ahead
from prudent.kernels.inflow import Circling, Ended, Flow, pull, spread, under_way
from prudent.kernels.team import new_counters
from prudent.models.rows import BoolArray, FloatArray, IntArray
from prudent.policies.arrivals import arrivals_of, lanes_of, played_anywhere, without_budget
from prudent.policies.policy import BudgetPolicy
from prudent.runtime.limits import UNLIMITED, Limits, Pace, available_memory, go_on
from prudent.runtime.progress import Progress
from prudent.runtime.team import side_by_side

__all__ = ["MISSING", "Followed", "followed", "most_spent"]

MISSING = 1e-13
"""The probability still under way at which a forward pass stops by default."""

WORK = 2_000_000_000
"""States times levels after which a forward pass stops in any case."""

NUMBERS = FOLLOWED
"""The most states times levels under way at once."""

LEVELS = 20_000_000
"""Levels after which a forward pass stops in any case."""

APART = 2**22
"""Numbers up to which each state has a row of mass of its own; laying out rows that share room takes longer."""

FOLLOWING = "following the policy"


@dataclass(frozen=True)
class Followed:
    """What is known of a policy's runs after so many levels.

    Mass has one layer or three: itself, then times the mean sum of what rounding left out, and of its square.
    """

    total: FloatArray  # (layers, n_levels)  the mass that ended on each level
    missing: float  # the probability of being still under way
    played: FloatArray  # (n_actions,)  the expected number of plays
    arriving: (
        FloatArray  # (layers, n_later)  the mass still under way, by the level on which it arrives, from n_levels on
    )
    there: FloatArray  # (n_states,)  the mass still under way, by the state where it arrives
    ahead: FloatArray  # (n_later,)  the mass still under way times a weight of the state where it arrives, by level

    @property
    def levels(self) -> int:
        """The number of levels."""
        return int(self.total.shape[1])

    @property
    def later(self) -> IntArray:
        """The levels on which mass still under way arrives."""
        return self.levels + np.arange(self.arriving.shape[1])

    @classmethod
    def to_the_end(cls, total: FloatArray, played: FloatArray, n_states: int) -> "Followed":
        """Return what is known if no run is under way."""
        return cls(total, 0.0, played, np.zeros((len(total), 0)), np.zeros(n_states), np.zeros(0))


def followed(
    policy: BudgetPolicy,
    layers: int,
    most: int | None,
    tolerance: float,
    weight: FloatArray | None = None,
    limits: Limits = UNLIMITED,
) -> Followed:
    """Follow a policy until at most ``tolerance`` is under way, or for ``most`` levels, within the limits."""
    prepared = policy.prepared
    weight = np.zeros(prepared.n_states) if weight is None else weight
    if prepared.acyclic:
        left_out = prepared.left_out if layers > 1 else None
        if (found := _by_state(policy, prepared.probability, left_out, most, weight, limits)) is not None:
            total, passed = found
            arriving = passed.arriving
            return Followed(total, float(arriving[0].sum()), passed.played, arriving, passed.there, passed.ahead)
    played = played_anywhere(policy)
    window = int(prepared.cost[played[prepared.outcome_action]].max(initial=0)) + 1
    numbers = layers * window * prepared.n_states
    if numbers > NUMBERS:
        raise TooLarge(
            f"following the policy takes room for {numbers:,} numbers; {NUMBERS:,} are the most: use prudent.simulate"
        )
    (limits or Limits.of(None, None)).check(8 * numbers, FOLLOWING, "use prudent.simulate")
    if most is None:
        most = max(min(WORK // prepared.n_states, LEVELS), window, policy.level + 1)
    return _by_level(policy, played, window, layers, most, tolerance, weight, limits)


def _by_level(
    policy: BudgetPolicy,
    played: BoolArray,
    window: int,
    layers: int,
    most: int,
    tolerance: float,
    weight: FloatArray,
    limits: Limits,
) -> Followed:
    """Follow a policy level by level, to where its runs arrive, on all threads."""
    prepared, plays, choices = policy.prepared, np.zeros(policy.prepared.n_actions), policy.choices
    if most == 0 or prepared.is_goal[prepared.start]:
        return _at_the_start(prepared, layers, weight)
    chain = arrivals_of(policy, played, prepared.left_out if layers > 1 else None)
    n, circling, state = len(chain.arc_start) - 1, _circling(prepared), chain.state
    number, met = np.zeros(window * n, dtype=choice_type(prepared)), np.zeros(len(state))
    flow = Flow(np.zeros((window * n + 1) * layers), number, window, layers, met, plays, alone=True)
    ended = Ended(tolerance, np.zeros((layers, 0)), np.array([0.0, np.inf, 0.0]), np.zeros(1, dtype=np.int64))
    first = prepared.action_start[state] + choices.without[state]  # of those that play one action
    last, levels = policy.level + window - 1, 0  # from then on no line has any budget
    pace = Pace(LevelSweep.batch / max(len(prepared.cost), 1), limits)
    with Progress(FOLLOWING, unit="levels") as progress:
        while levels < most and ended.stop[0] == 0:
            go_on(limits, FOLLOWING)
            if levels == ended.total.shape[1]:
                more = min(most - levels, max(levels, 1024), pace.next(levels))
                ended = ended._replace(total=np.append(ended.total, np.zeros((layers, more)), axis=1))
            if levels >= last and len(chain.changing):
                _count(chain.changing, first, met, plays)
                chain = without_budget(chain, choices.without)
            until = ended.total.shape[1]
            lanes = lanes_of(chain, until - levels, prepared.threads)
            about: tuple[Any, ...] = chain, circling, choices, policy.level, (levels, until)
            about = *about, flow._replace(alone=lanes == 1), ended, new_counters()

            def work(lane: int, about: Any = about) -> None:
                pull(*about)

            side_by_side(lanes, work)
            levels = int(ended.stop[0]) or until
            progress.at(levels)
    _count(chain.changing, first, met, plays)
    later = np.zeros((layers, window - 1)), np.zeros(prepared.n_states), np.zeros(window - 1)
    about = chain, circling, choices, policy.level, levels - 1, flow
    missing = under_way(*about, prepared.left_out if layers > 1 else np.empty(0), weight, *later)
    return Followed(ended.total[:, :levels], missing, plays, *later)


def _at_the_start(prepared: Prepared, layers: int, weight: FloatArray) -> Followed:
    """Return what is known before a run's first action."""
    plays, start = np.zeros(prepared.n_actions), prepared.start
    mass, there = np.eye(layers, 1), np.zeros(prepared.n_states)
    if prepared.is_goal[start]:
        return Followed.to_the_end(mass, plays, prepared.n_states)
    there[start] = 1.0
    return Followed(np.zeros((layers, 0)), 1.0, plays, mass, there, weight[[start]])


def _count(changing: IntArray, first: IntArray, met: FloatArray, plays: FloatArray) -> None:
    """Add the mass met at places that play one action to its plays; forget it."""
    met[changing] = 0.0  # counted already
    plays[first] += met
    met[:] = 0.0


def most_spent(policy: BudgetPolicy, limits: Limits = UNLIMITED) -> float:
    """Return the most levels that a run can use, infinite if there is no limit; a bound where costs are rounded."""
    prepared = policy.prepared
    if policy.level == 0:
        return true_worst_case(restrict(prepared, policy.without_budget), limits)
    worst = worst_case_of(prepared, policy.without_budget, limits)
    if prepared.acyclic:
        possible = np.ones(len(prepared.cost), dtype=bool)
        if (found := _by_state(policy, possible, None, policy.level, np.zeros(prepared.n_states), limits)) is not None:
            (ended,), (_, (arriving,), there, latest, *_) = found
            within, beyond = np.flatnonzero(ended), policy.level + np.flatnonzero(arriving)
            after = (policy.level + latest + worst)[there > 0]
            return float(max(within.max(initial=0), beyond.max(initial=0), after.max(initial=0)))
    if prepared.is_goal[prepared.start]:
        return 0.0
    played = played_anywhere(policy)
    window = min(int(prepared.cost[played[prepared.outcome_action]].max(initial=0)), policy.level) + 1
    most = _spread(policy, played, window, worst, limits)
    return np.inf if most >= UNREACHED else float(most)


def _spread(policy: BudgetPolicy, played: BoolArray, window: int, worst: IntArray, limits: Limits) -> int:
    """Return the most levels that a run of a policy with a budget can use, level by level."""
    chain, circling = arrivals_of(policy, played, None), _circling(policy.prepared)
    kind = np.int8 if policy.prepared.most_actions < 2**7 else np.int32
    seen = np.zeros(window * (len(chain.arc_start) - 1), dtype=kind)
    rows = max(LevelSweep.batch // max(len(policy.prepared.cost), 1), 1)
    most = 0
    for first in range(0, policy.level, rows):
        go_on(limits, FOLLOWING)
        levels = first, min(first + rows, policy.level)
        lanes = lanes_of(chain, levels[1] - first, policy.prepared.threads)
        about: tuple[Any, ...] = chain, circling, policy.choices, policy.level, levels, worst, seen, new_counters()
        found = [0] * lanes

        def work(lane: int, about: Any = about, found: list[int] = found) -> None:
            found[lane] = spread(*about)

        side_by_side(lanes, work)
        most = max(most, *found)
    return most


def _circling(prepared: Prepared) -> Circling:
    """Return what free cycles need."""
    n, plays = prepared.n_states, np.zeros(prepared.n_actions)
    unset = np.zeros(n, dtype=np.int64), plays, np.zeros(n)
    return Circling(free_arcs(prepared), prepared.outcome_start, prepared.cost, *unset)


def _by_state(
    policy: BudgetPolicy,
    probability: NDArray[Any],
    left_out: FloatArray | None,
    most: int | None,
    weight: FloatArray,
    limits: Limits,
) -> tuple[NDArray[Any], Passed] | None:
    """Follow a policy state by state, in a model without cycles; None if that is too large.

    Return the mass by the level where it ends, in the type of ``probability``, and what else is known.
    """
    prepared, n, goals = policy.prepared, policy.prepared.n_states, policy.prepared.is_goal
    layers, limit = 1 if left_out is None else 3, UNREACHED if most is None else most
    rows = prepared.action_start, prepared.outcome_start, prepared.successor, prepared.cost
    moves = Moves(prepared.blocks[1], *rows, probability)
    first, last = np.full(n, UNREACHED), np.full(n, -1)
    first[prepared.start] = last[prepared.start] = 0
    reach_ahead(moves, policy.choices, policy.level, limit, first, last)
    top = int(last.max()) + 1
    ended = max(int(last[goals].max(initial=-1)) + 1, min(top, limit))
    if top > LEVELS:
        return None
    first[goals] = 0
    size = np.where(goals, 0, -(-np.maximum(last - first + 1, 0) // STRETCH))  # in stretches
    totals = -(-ended // STRETCH)  # these come first
    row, room = np.cumsum(size) - size + totals, totals + int(size.sum())
    if room * STRETCH > APART:
        row, room = _sharing(prepared, size, totals)
        if probability.itemsize * layers * room * STRETCH > min(limits.memory, available_memory()):
            return None
    row[goals] = 0
    mass, fresh = np.empty((layers, room * STRETCH), dtype=probability.dtype), np.ones(room, dtype=bool)
    at = row[prepared.start]
    for cleared in (slice(0, totals), slice(at, at + 1)):
        mass[:, STRETCH * cleared.start : STRETCH * cleared.stop], fresh[cleared] = 0, False
    mass[0, STRETCH * at] = 1
    later = max(top - limit, 0)
    arriving, there, latest = np.zeros((layers, later)), np.zeros(n), np.zeros(n, dtype=np.int64)
    passed = Passed(np.zeros(prepared.n_actions), arriving, there, latest, np.zeros(later), weight)
    spans, done = Spans(first, last, STRETCH * row, mass, fresh), 0
    work = (totals + int(size.sum())) * STRETCH * len(prepared.cost) / max(prepared.n_actions, 1)
    pace = Pace(LevelSweep.batch * n / max(work, 1.0), limits)  # of outcomes times levels
    with Progress(FOLLOWING, total=n, unit="states") as progress:
        while done < n:
            go_on(limits, FOLLOWING)
            turns = done, min(done + pace.next(done), n)
            follow_ahead(moves, left_out, policy.choices, policy.level, limit, turns, spans, passed)
            done = turns[1]
            progress.at(done)
    passed.arriving[:, : max(ended - limit, 0)] += mass[:, limit:ended]
    return mass[:, : min(ended, limit)].copy(), passed


def _sharing(prepared: Prepared, size: IntArray, room: int) -> tuple[IntArray, int]:
    """Return where each state's row of mass begins, after some room; rows that are not needed at once share theirs."""
    n = prepared.n_states
    turn = np.empty(n, dtype=np.int64)
    turn[prepared.blocks[1]] = np.arange(n - 1, -1, -1)
    born = turn.copy()
    np.minimum.at(born, prepared.successor, turn[prepared.outcome_state])
    return shared_room(size, born, turn, room)
