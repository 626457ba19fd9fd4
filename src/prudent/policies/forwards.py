"""Following a policy forwards through the Markov chain that it makes of the model.

In a model without cycles, state by state (:mod:`prudent.kernels.following`); else, or where that takes too much room,
level by level, over the places where runs arrive (:mod:`prudent.kernels.inflow`), on all threads.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.engine.prepared import choice_type, restrict
from prudent.engine.room import shared_room
from prudent.engine.sweep.estimate import FOLLOWED
from prudent.engine.sweep.levels import LevelSweep
from prudent.engine.values.bellman import free_arcs
from prudent.engine.values.worst_case import UNREACHED, true_worst_case, worst_case_of
from prudent.errors import TooLarge
from prudent.kernels.choices import mark_played
from prudent.kernels.following import STRETCH, Moves, Passed, Spans, follow_ahead, reach_ahead
from prudent.kernels.inflow import Circling, Ended, Flow, pull, under_way
from prudent.kernels.team import new_counters
from prudent.models.rows import FloatArray, IntArray
from prudent.policies.arrivals import arrivals_of, lanes_of, without_budget
from prudent.policies.policy import BudgetPolicy
from prudent.runtime.limits import UNLIMITED, Limits, Pace, available_memory, go_on
from prudent.runtime.progress import Progress
from prudent.runtime.team import side_by_side

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
    played: FloatArray  # (n_actions,)  the expected number of plays
    arriving: FloatArray  # (layers, n_later)  the mass still under way, by the level where it arrives, from n_levels on
    there: FloatArray  # (n_states,)  the mass still under way, by the state where it arrives
    latest: IntArray  # (n_states,)  the last level on which any does, from n_levels
    ahead: FloatArray  # (n_later,)  the mass still under way times a weight of the state where it arrives, by level

    @property
    def missing(self) -> float:
        """The probability of being still under way."""
        return float(self.arriving[0].sum())

    @property
    def later(self) -> IntArray:
        """The levels on which mass still under way arrives."""
        levels = self.total.shape[1]
        return np.arange(levels, levels + self.arriving.shape[1])


def followed(
    policy: BudgetPolicy,
    layers: int,
    most: int | None,
    tolerance: float,
    weight: FloatArray | None = None,
    limits: Limits = UNLIMITED,
    *,
    whether: bool = False,
) -> Followed:
    """Follow a policy until at most ``tolerance`` is under way, or for ``most`` levels, within the limits.

    With ``whether``, mass above 0 only says that runs can be there.
    """
    prepared, goal = policy.prepared, policy.prepared.is_goal[policy.prepared.start]
    weight = np.zeros(prepared.n_states) if weight is None else weight
    left_out, found = prepared.left_out if layers > 1 else None, None
    if prepared.acyclic or goal or most == 0:
        chance = np.ones(len(prepared.cost), dtype=bool) if whether else prepared.probability
        found = _by_state(policy, chance, left_out, most, weight, limits)
    return found or _by_level(policy, left_out, most, tolerance, weight, limits, whether)


def _by_level(
    policy: BudgetPolicy,
    left_out: FloatArray | None,
    most: int | None,
    tolerance: float,
    weight: FloatArray,
    limits: Limits,
    whether: bool,
) -> Followed:
    """Follow a policy level by level, to where its runs arrive, on all threads."""
    prepared, choices, layers = policy.prepared, policy.choices, 1 if left_out is None else 3
    plays = np.zeros(prepared.n_actions)
    played = np.zeros(prepared.n_actions + 1, dtype=bool)  # in some state with some budget; a last goal has no action
    mark_played(prepared.action_start, choices, played)
    window = int(prepared.cost[played[prepared.outcome_action]].max(initial=0)) + 1
    numbers = layers * window * prepared.n_states
    if numbers > NUMBERS:
        raise TooLarge(
            f"following the policy takes room for {numbers:,} numbers; {NUMBERS:,} are the most: use prudent.simulate"
        )
    limits.check(8 * numbers, FOLLOWING, "use prudent.simulate")
    if most is None:
        most = max(min(WORK // prepared.n_states, LEVELS), window, policy.level + 1)
    chain = arrivals_of(policy, played, left_out)
    n, state, none = len(chain.arc_start) - 1, chain.state, np.zeros(prepared.n_states)
    circling = Circling(
        free_arcs(prepared), prepared.outcome_start, prepared.cost, none.astype(np.int64), plays.copy(), none.copy()
    )
    number, met = np.zeros(window * n, dtype=choice_type(prepared)), np.zeros(len(state))
    flow = Flow(np.zeros((window * n + 1) * layers), number, window, layers, met, plays, alone=True, whether=whether)
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
    arriving, latest, ahead = np.zeros((layers, window - 1)), np.zeros(len(none), dtype=np.int64), np.zeros(window - 1)
    passed = Passed(plays, arriving, none, latest, ahead, weight)
    under_way(chain, circling, choices, policy.level, levels - 1, flow, left_out, passed)
    return Followed(ended.total[:, :levels], *passed[:5])


def _count(changing: IntArray, first: IntArray, met: FloatArray, plays: FloatArray) -> None:
    """Add the mass met at places that play one action to its plays; forget it."""
    met[changing] = 0.0  # counted already
    plays[first] += met
    met[:] = 0.0


def most_spent(policy: BudgetPolicy, limits: Limits = UNLIMITED) -> float:
    """Return the most levels that a run can use, infinite if there is no limit; a bound where costs are rounded."""
    if policy.level == 0:
        return true_worst_case(restrict(policy.prepared, policy.without_budget), limits)
    found = followed(policy, 1, policy.level, -np.inf, limits=limits, whether=True)
    worst = worst_case_of(policy.prepared, policy.without_budget, limits)
    after = (found.total.shape[1] + found.latest + worst)[found.there > 0]
    most = max(
        each.max(initial=0) for each in (np.flatnonzero(found.total[0]), found.later[found.arriving[0] > 0], after)
    )
    return np.inf if most >= UNREACHED else float(most)


def _by_state(
    policy: BudgetPolicy,
    probability: NDArray[Any],
    left_out: FloatArray | None,
    most: int | None,
    weight: FloatArray,
    limits: Limits,
) -> Followed | None:
    """Follow a policy state by state, in a model without cycles; None if that is too large.

    Mass has the type of ``probability``.
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
        turn = np.empty(n, dtype=np.int64)
        turn[prepared.blocks[1]] = np.arange(n - 1, -1, -1)
        born = turn.copy()
        np.minimum.at(born, prepared.successor, turn[prepared.outcome_state])
        row, room = shared_room(size, born, turn, totals)  # rows that are not needed at once share theirs
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
    return Followed(mass[:, : min(ended, limit)].copy(), *passed[:5])
