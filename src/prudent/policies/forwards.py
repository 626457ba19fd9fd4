"""Following a policy forwards through the Markov chain that it makes of the model.

Level by level, over the places where runs arrive (:mod:`prudent.kernels.arrivals`), on all threads; or, in a model
without cycles, state by state to the end.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from prudent.engine.prepared import Prepared, choice_type, restrict
from prudent.engine.room import shared_room
from prudent.engine.sweep.estimate import FOLLOWED
from prudent.engine.sweep.levels import LevelSweep
from prudent.engine.values.bellman import costs_of, free_arcs
from prudent.engine.values.worst_case import UNREACHED, most_levels, true_worst_case, worst_case_of
from prudent.errors import TooLarge
from prudent.kernels.ahead import push_on, reach_ahead
from prudent.kernels.forwards import farthest, push
from prudent.kernels.inflow import Circling, Ended, Flow, pull, spread, under_way
from prudent.kernels.pairs import follow_pairs
from prudent.kernels.team import new_counters
from prudent.models.rows import BoolArray, FloatArray, IntArray
from prudent.policies.arrivals import chain_of, played_anywhere
from prudent.policies.policy import BudgetPolicy
from prudent.runtime.limits import UNLIMITED, Limits, Pace, available_memory, go_on
from prudent.runtime.progress import Progress
from prudent.runtime.team import side_by_side

__all__ = ["MANY", "MISSING", "Followed", "followed", "most_spent"]

MISSING = 1e-13
"""The probability still under way at which a forward pass stops by default."""

WORK = 2_000_000_000
"""States times levels after which a forward pass stops in any case."""

NUMBERS = FOLLOWED
"""The most states times levels under way at once."""

LEVELS = 20_000_000
"""Levels after which a forward pass stops in any case."""

FEW = 2**24
"""States times levels, to the end, above which a forward pass first tries to follow only the pairs that runs meet."""

PAIRS = 2**23
"""The most pairs of state and level under way at once, if pairs are followed one by one."""

MANY = 2**12
"""States from which on mass is pulled to where it arrives; with fewer, it is pushed on from states that have any."""

ARC = 4 + 8 + 4 + 8 + 8
"""The most bytes that a policy's chain takes for each arc."""

STEPS = 2**26
"""The most steps from pair to pair: a second or two."""

WORTH = 256
"""Outcomes times levels for each step from pair to pair: with fewer, stretches of levels are as fast."""

FEWEST = 64
"""Outcomes that take as long to follow as beginning a level does."""

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
    played = played_anywhere(policy)
    window = int(prepared.cost[played[prepared.outcome_action]].max(initial=0)) + 1
    numbers = layers * window * prepared.n_states
    # Level by level goes no further than is asked for.
    if prepared.acyclic and (numbers > NUMBERS or most is None or not prepared.scale.rounded):
        work = layers * prepared.n_states * (1 + most_levels(prepared))
        if work > FEW and (found := _followed_ahead(policy, layers, limits)) is not None:
            return found
    if numbers > NUMBERS:
        raise TooLarge(
            f"following the policy takes room for {numbers:,} numbers; {NUMBERS:,} are the most: use prudent.simulate"
        )
    (allowed := limits or Limits.of(None, None)).check(8 * numbers, FOLLOWING, "use prudent.simulate")
    if most is None:
        most = max(min(WORK // prepared.n_states, LEVELS), window, policy.level + 1)
    weight = np.zeros(prepared.n_states) if weight is None else weight
    copied = ARC * np.count_nonzero(played[prepared.outcome_action]) + 4 * window * prepared.n_states
    way = _pulled if prepared.n_states >= MANY and 8 * numbers + copied <= allowed.memory else _pushed
    return way(policy, played, window, layers, most, tolerance, weight, limits)


def _pushed(
    policy: BudgetPolicy,
    played: BoolArray,
    window: int,
    layers: int,
    most: int,
    tolerance: float,
    weight: FloatArray,
    limits: Limits,
) -> Followed:
    """Follow a policy level by level, from the states that have any mass."""
    prepared, arcs = policy.prepared, free_arcs(policy.prepared)
    costs = costs_of(prepared, arcs)
    mass = np.zeros((layers, prepared.n_states, window))
    mass[0, prepared.start, 0] = 1.0
    chosen, k = np.zeros(prepared.n_states, dtype=np.int64), np.zeros(prepared.n_actions)
    row, plays = np.zeros(prepared.n_states), np.zeros(prepared.n_actions)
    total, levels, missing = np.zeros((layers, 0)), 0, 1.0
    pace = Pace(LevelSweep.batch / max(len(prepared.cost), FEWEST), limits)
    with Progress(FOLLOWING, unit="levels") as progress:
        while levels < most and missing > 0 and (missing > tolerance or levels <= policy.level):
            go_on(limits, FOLLOWING)
            more = min(most - levels, max(levels, 1024), pace.next(levels))
            total = np.append(total, np.zeros((layers, more)), axis=1)
            about = policy.choices, policy.level, tolerance, prepared.left_out
            levels, missing = push(arcs, costs, *about, levels, mass, total, chosen, k, row, plays)
            progress.at(levels)
    if missing == 0:
        return Followed.to_the_end(total[:, :levels], plays, prepared.n_states)
    finite = np.isfinite(weight)  # an infinite weight matters where there is any mass
    ahead = np.einsum("s,sl->l", np.where(finite, weight, 0.0), mass[0])  # for few states faster than a product
    ahead = np.where((mass[0][~finite] > 0).any(axis=0), np.inf, ahead)
    here = levels % window  # the sums turn round, and not the table
    arriving, ahead = (np.roll(each, -here, axis=-1) for each in (mass.sum(axis=1), ahead))
    return Followed(total[:, :levels], missing, plays, arriving, mass[0].sum(axis=1), ahead)


def _pulled(
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
    prepared, plays = policy.prepared, np.zeros(policy.prepared.n_actions)
    if most == 0 or prepared.is_goal[prepared.start]:
        return _pushed(policy, played, window, layers, most, tolerance, weight, limits)
    chain = chain_of(policy, played, prepared.left_out if layers > 1 else np.empty(0))
    number = np.zeros(window * chain.n_places, dtype=choice_type(prepared))
    flow = Flow(np.zeros((window * chain.n_places + 1) * layers), number, window, layers)
    met, circling = np.zeros(len(chain.arrivals.state)), _circling(prepared)
    ended = Ended(np.zeros((layers, 0)), np.array([0.0, np.inf, 0.0]), np.zeros(1, dtype=np.int64))
    last, levels = policy.level + window - 1 if policy.level > 0 else 0, 0  # from then on no line has any budget
    pace = Pace(LevelSweep.batch / max(len(prepared.cost), 1), limits)
    threads = prepared.threads
    with Progress(FOLLOWING, unit="levels") as progress:
        while levels < most and ended.stop[0] == 0:
            go_on(limits, FOLLOWING)
            if levels == ended.total.shape[1]:
                more = min(most - levels, max(levels, 1024), pace.next(levels))
                ended = ended._replace(total=np.append(ended.total, np.zeros((layers, more)), axis=1))
            if levels == last:
                chain.count(met, policy, plays)
                chain = chain.without_budget(policy.choices.without)
            until = ended.total.shape[1] if levels >= last else min(ended.total.shape[1], last)
            about: tuple[Any, ...] = chain.arrivals, circling, policy.choices, policy.level, tolerance
            about = *about, levels, until, chain.start, flow, met, plays, ended, new_counters()

            def work(lane: int, about: Any = about) -> None:
                pull(*about)

            side_by_side(chain.lanes(until - levels, threads), work)
            levels = int(ended.stop[0]) or until
            progress.at(levels)
    chain.count(met, policy, plays)
    later = np.zeros((layers, window - 1)), np.zeros(prepared.n_states), np.zeros(window - 1)
    about = chain.arrivals, circling, policy.choices, policy.level, levels - 1, flow
    missing = under_way(*about, prepared.left_out if layers > 1 else np.empty(0), weight, *later)
    return Followed(ended.total[:, :levels], missing, plays, *later)


def most_spent(policy: BudgetPolicy, limits: Limits = UNLIMITED) -> float:
    """Return the most levels that a run can use, infinite if there is no limit; a bound where costs are rounded."""
    prepared = policy.prepared
    if policy.level == 0:
        return true_worst_case(restrict(prepared, policy.without_budget), limits)
    worst, played = worst_case_of(prepared, policy.without_budget, limits), played_anywhere(policy)
    window = min(int(prepared.cost[played[prepared.outcome_action]].max(initial=0)), policy.level) + 1
    most = _spread if prepared.n_states >= MANY and not prepared.is_goal[prepared.start] else _farthest
    found = most(policy, played, window, worst, limits)
    return np.inf if found >= UNREACHED else float(found)


def _farthest(policy: BudgetPolicy, played: BoolArray, window: int, worst: IntArray, limits: Limits) -> int:
    prepared, arcs = policy.prepared, free_arcs(policy.prepared)
    seen = np.zeros((window, prepared.n_states), dtype=bool)
    about = arcs, costs_of(prepared, arcs), policy.choices, policy.level, prepared.start, worst, seen
    return int(farthest(*about))


def _spread(policy: BudgetPolicy, played: BoolArray, window: int, worst: IntArray, limits: Limits) -> int:
    chain, circling = chain_of(policy, played, np.empty(0)), _circling(policy.prepared)
    several = int(np.diff(policy.prepared.action_start).max())
    kind = np.int8 if several < 2**7 else np.int32
    seen = np.zeros(window * chain.n_places, dtype=kind)
    threads = policy.prepared.threads
    rows = max(LevelSweep.batch // max(len(policy.prepared.cost), 1), 1)
    most = 0
    for first in range(0, policy.level, rows):
        go_on(limits, FOLLOWING)
        last = min(first + rows, policy.level)
        lanes = chain.lanes(last - first, threads)
        about: tuple[Any, ...] = chain.arrivals, circling, policy.choices, policy.level, first, last, chain.start
        about = *about, worst, seen, window, new_counters()
        found = [0] * lanes

        def work(lane: int, about: Any = about, found: list[int] = found) -> None:
            found[lane] = spread(*about)

        side_by_side(lanes, work)
        most = max(most, *found)
    return most


def _circling(prepared: Prepared) -> Circling:
    """Return what free cycles need."""
    arcs, n, m = free_arcs(prepared), prepared.n_states, prepared.n_actions
    return Circling(arcs, costs_of(prepared, arcs), np.zeros(n, dtype=np.int64), np.zeros(m), np.zeros(n))


def _followed_ahead(policy: BudgetPolicy, layers: int, limits: Limits) -> Followed | None:
    """Return what :func:`followed` does, run to the end of a model without cycles, state by state; None if too large.

    Where runs meet few pairs of state and level, these are followed one by one.
    """
    prepared, n = policy.prepared, policy.prepared.n_states
    forwards = prepared.blocks[1][::-1].copy()
    graph = prepared.action_start, prepared.outcome_start, prepared.successor, prepared.cost
    least, most = np.full(n, UNREACHED), np.full(n, -1)
    least[prepared.start] = most[prepared.start] = 0
    work = reach_ahead(forwards, graph, policy.choices, policy.level, least, most)
    goals, size = prepared.is_goal, np.maximum(most - least + 1, 0)
    levels = int(most[goals].max(initial=0)) + 1
    if levels > LEVELS:
        return None
    if (found := _followed_by_pairs(policy, layers, work)) is not None:
        return found
    time = np.empty(n, dtype=np.int64)
    time[forwards] = np.arange(n)
    born = time.copy()
    np.minimum.at(born, prepared.successor, time[prepared.outcome_state])
    row, room = shared_room(np.where(goals, 0, size), born, time, levels)  # the totals come first
    if 8 * layers * room > min(limits.memory, available_memory()):
        return None
    row, least = np.where(goals, 0, row), np.where(goals, 0, least)
    mass, played = np.zeros((layers, room)), np.zeros(prepared.n_actions)
    mass[0, row[prepared.start]] = 1.0
    births = np.argsort(born, kind="stable")
    ahead = 0
    with Progress(FOLLOWING, total=n, unit="states") as progress:
        for now, s in enumerate(forwards.tolist()):
            go_on(limits, FOLLOWING)
            while ahead < n and born[births[ahead]] <= now:
                new = births[ahead]
                if not goals[new] and new != prepared.start:
                    mass[:, row[new] : row[new] + size[new]] = 0.0
                ahead += 1
            if not goals[s] and size[s] > 0:
                about = policy.choices, policy.level, least, most, row, mass, played
                push_on(s, graph, prepared.probability, prepared.left_out, *about)
            progress.at(now)
    return Followed.to_the_end(mass[:, :levels].copy(), played, n)


def _followed_by_pairs(policy: BudgetPolicy, layers: int, work: int) -> Followed | None:
    """Return what :func:`followed` does, run to the end, if runs meet few pairs of state and level; else None.

    ``work`` is what following stretches of levels takes, outcomes times levels.
    """
    prepared, played = policy.prepared, np.zeros(policy.prepared.n_actions)
    arcs = prepared.action_start, prepared.outcome_start, prepared.probability, prepared.successor, prepared.cost
    about = prepared.left_out, policy.choices, policy.level, prepared.start, min(max(work, 1), PAIRS)
    spent, mass = follow_pairs(prepared.blocks[1][::-1], arcs, *about, min(STEPS, work // WORTH), layers, played)
    if len(spent) == 0 or spent.max() >= LEVELS:
        return None
    total = np.array([np.bincount(spent, weights=each) for each in mass], dtype=np.float64)
    return Followed.to_the_end(total, played, prepared.n_states)
