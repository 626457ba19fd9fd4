"""Exact evaluation of a policy, by the Markov chain that it makes of the model.

The chain is on pairs (state, budget left) until the budget is gone, then on states.  A backward pass gives the
expected cost and the expected excess over the budget, with no tail cut off; a forward pass, the distribution.
"""

from dataclasses import dataclass

import numpy as np

from prudent.engine.prepared import Prepared, restrict
from prudent.engine.room import shared_room
from prudent.engine.sweep.bounded import without_safety
from prudent.engine.sweep.estimate import FOLLOWED
from prudent.engine.sweep.levels import LevelSweep, window_of
from prudent.engine.sweep.tile_layout import Tiling, known_of, tiling_of
from prudent.engine.sweep.tile_window import Window
from prudent.engine.values.bellman import costs_of, free_arcs
from prudent.engine.values.expected_cost import Expected, least_expected_cost
from prudent.engine.values.worst_case import UNREACHED, most_levels, true_worst_case, worst_case_of
from prudent.errors import TooLarge
from prudent.kernels.ahead import push_on, reach_ahead
from prudent.kernels.choices import mark_played
from prudent.kernels.forwards import distribute, farthest
from prudent.kernels.pairs import follow_pairs
from prudent.kernels.stretches import Known, Scratch, Work
from prudent.kernels.sweep import follow
from prudent.kernels.team import new_counters
from prudent.kernels.tiles import follow as follow_in_tiles
from prudent.models.rows import FloatArray, IntArray, owner
from prudent.policies.distribution import Distribution, Groups
from prudent.policies.policy import BudgetPolicy
from prudent.runtime.limits import Limits, go_on, threads_in_force
from prudent.runtime.progress import Progress
from prudent.runtime.team import side_by_side

__all__ = [
    "MISSING",
    "Values",
    "backward",
    "backward_from_each",
    "expected_steps",
    "followed",
    "forward",
    "most_spent",
    "spent_budget",
]

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

FOLLOWING, EVALUATING = "following the policy", "evaluating the plan"

SPREAD = 1e-9
"""What is added to variances within groups, relative to the mean square: more than rounding."""

MORE = 1.01
"""What numbers of actions are multiplied by to get a bound: they are known to a thousandth."""

STEPS = 2**26
"""The most steps from pair to pair: a second or two."""

WORTH = 256
"""Outcomes times levels for each step from pair to pair: with fewer, stretches of levels are as fast."""

UNWRITTEN = np.empty((0, 0), dtype=np.uint8)
"""Stands for the table of actions that a sweep would write."""


@dataclass(frozen=True)
class Values:
    """Expected values of a policy at the start of a run, in levels."""

    excess: float  # E[(C - w)+] over its budget w, costs as charged
    above: float  # upper bound on the excess
    mean: float  # E[C]


def spent_budget(policy: BudgetPolicy) -> Expected:
    """Return the policy's expected cost from each state once its budget is gone."""
    return least_expected_cost(restrict(policy.prepared, policy.without_budget))


def most_spent(policy: BudgetPolicy) -> float:
    """Return the most levels that a run can use, infinite if there is no limit; a bound where costs are rounded."""
    prepared = policy.prepared
    if policy.level == 0:
        return true_worst_case(restrict(prepared, policy.without_budget))
    arcs, window = free_arcs(prepared), min(_largest_played(policy), policy.level) + 1
    worst = worst_case_of(prepared, policy.without_budget)
    seen = np.zeros((window, prepared.n_states), dtype=bool)
    most = farthest(arcs, costs_of(prepared, arcs), policy.choices, policy.level, prepared.start, worst, seen)
    return np.inf if most >= UNREACHED else float(most)


def backward(policy: BudgetPolicy, tail: Expected, limits: Limits | None = None) -> Values:
    """Evaluate a policy; ``tail`` is its expected cost once the budget is gone."""
    return Values(*backward_from_each(policy, tail, limits)[:, -1].tolist())


def backward_from_each(policy: BudgetPolicy, tail: Expected, limits: Limits | None = None) -> FloatArray:
    """Evaluate a policy begun with each budget up to its own: the fields of :class:`Values` as rows, (3, n_levels).

    With another budget than its own, runs may meet pairs that its table has not.
    """
    return _backward(policy, np.stack([tail.value, tail.upper, tail.value]), policy.prepared.mean_cost, limits)


def expected_steps(policy: BudgetPolicy) -> FloatArray:
    """Return bounds on the expected number of actions in a run begun with each budget up to the policy's own.

    Free moves on the way to actions are included.
    """
    prepared, steps = policy.prepared, MORE * spent_budget(policy).steps
    counted = _backward(policy, np.stack([steps] * 3), prepared.plays)
    return np.asarray(counted[2] * (1 + longest_detour(prepared)))


def _backward(
    policy: BudgetPolicy, base: FloatArray, mean_cost: FloatArray, limits: Limits | None = None
) -> FloatArray:
    prepared = policy.prepared
    if policy.level == 0:
        return base[:, [prepared.start]]
    tiling = tiling_of(prepared)
    if tiling is not None and tiling.least == 0:
        return _backward_in_tiles(policy, tiling, base, mean_cost, limits)
    arcs = free_arcs(prepared)
    costs = costs_of(prepared, arcs)._replace(mean_cost=mean_cost)
    window = window_of(prepared, policy.level)
    tables = np.empty((3, prepared.n_states, window))
    found = np.empty((3, policy.level + 1))
    found[:, 0] = base[:, prepared.start]
    numbers, chosen = np.empty(prepared.n_actions), np.zeros(prepared.n_states, dtype=np.int64)
    row = np.empty(prepared.n_states)
    rows = max(LevelSweep.batch // max(len(prepared.cost), 1), 1)
    with Progress(EVALUATING, total=policy.level, unit="levels") as progress:
        for first in range(1, policy.level + 1, rows):
            go_on(limits, EVALUATING)
            last = min(first + rows, policy.level + 1)
            follow(arcs, costs, base, policy.choices, first, last, tables, prepared.start, found, numbers, chosen, row)
            progress.at(last)
    return found


def _backward_in_tiles(
    policy: BudgetPolicy, tiling: Tiling, base: FloatArray, mean_cost: FloatArray, limits: Limits | None
) -> FloatArray:
    prepared, levels = policy.prepared, policy.level + 1
    work = tiling.work._replace(mean_cost=np.append(mean_cost, np.zeros(len(tiling.heads))))
    known = known_of(tiling, base[0], base[2], without_safety(prepared), None, 1.0)
    threads = threads_in_force()
    window = Window(tiling, policy.level, True, threads)
    found = np.empty((3, levels))
    found[:, 0] = base[:, prepared.start]
    scratch = [window.scratch() for _ in range(threads)]
    with Progress(EVALUATING, total=levels, unit="levels") as progress:
        for first in range(1, levels, window.tile):
            go_on(limits, EVALUATING)
            last = min(first + window.tile, levels)
            _follow_tile(policy, window, work, known, (first, last), scratch)
            found[0, first:last], found[2, first:last] = window.of_start(first, last)
            progress.at(last)
    whole = base[0] > 0
    ratio = float((base[1][whole] / base[0][whole]).max(initial=1.0))
    found[1, 1:] = found[0, 1:] * (ratio * (1 + tiling.error(np.arange(1, levels))))
    return found


def _follow_tile(
    policy: BudgetPolicy, window: Window, work: Work, known: Known, tile: tuple[int, int], scratch: list[Scratch]
) -> None:
    """Evaluate a policy for the levels of a tile, with as many threads as have scratch, if they are worth starting."""
    (first, last), tiling, counters = tile, window.tiling, new_counters()
    final = last > policy.level
    window.reach(first, last, final=final)
    values, parts = window.values(UNWRITTEN, final=final), tiling.parts(min(window.strip, last - first), len(scratch))

    def follow_on(lane: int) -> None:
        follow_in_tiles(work, known, policy.choices, tile, values, parts, window.strip, scratch[lane], counters)

    side_by_side(tiling.lanes(parts, last - first, window.strip, len(scratch)), follow_on)


def _largest_played(policy: BudgetPolicy) -> int:
    """Return the largest cost, in levels, of the actions that a policy plays anywhere."""
    prepared = policy.prepared
    played = np.zeros(prepared.n_actions + 1, dtype=bool)  # a last goal points past the end
    mark_played(prepared.action_start, policy.choices, played)
    return int(prepared.cost[played[prepared.outcome_action]].max(initial=0))


def longest_detour(prepared: Prepared) -> float:
    """Return a bound on the expected number of free moves between two actions of the prepared model.

    They lie inside collapsed end components, on the way to the state that has the action.  If they all cost exactly
    0 in the model, they need not be counted, and the bound is 0.
    """
    model = prepared.model
    inner = np.zeros(model.n_actions, dtype=bool)
    inner[prepared.members.inner_action] = True
    outcome = np.flatnonzero(inner[owner(model.outcome_start)])
    if not (model.cost[outcome] != 0).any():
        return 0.0
    state_of = owner(model.action_start)
    exits = state_of[prepared.model_action[prepared.model_action >= 0]]
    members = np.unique(state_of[prepared.members.inner_action])
    most = 0.0
    for target in np.intersect1d(exits, members).tolist():
        route = prepared.members.routes(target)
        inside = np.flatnonzero((prepared.members.state_of == prepared.members.state_of[target]) & (route >= 0))
        inside = inside[inside != target]
        rank = np.full(model.n_states, -1, dtype=np.int64)
        rank[inside] = np.arange(len(inside))
        matrix = np.eye(len(inside))
        for i, action in enumerate(route[inside].tolist()):
            for o in range(int(model.outcome_start[action]), int(model.outcome_start[action + 1])):
                if rank[model.successor[o]] >= 0:
                    matrix[i, rank[model.successor[o]]] -= model.probability[o]
        if len(inside):
            most = max(most, 2 * float(np.linalg.solve(matrix, np.ones(len(inside))).max()))
    return most


def forward(
    policy: BudgetPolicy,
    tail: Expected | None = None,
    *,
    most: int | None = None,
    tolerance: float = MISSING,
    charged: bool = False,
    in_levels: bool = False,
    limits: Limits | None = None,
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
    total, levels, missing, mass, played = followed(policy, layers, most, tolerance, limits)
    window, steps = mass.shape[2], float(played @ prepared.plays)
    ended = np.flatnonzero(total[0, :levels])
    spent = levels + (np.arange(window) - levels) % window  # the level of each column of mass
    ahead = 0.0 if tail is None else tail.value
    beyond = float(mass[0].sum(axis=0) @ spent + (mass[0].sum(axis=1) * ahead).sum()) if missing > 0 else 0.0
    unit, units = (1.0, float) if in_levels else (prepared.scale.level_size, prepared.scale.in_units)
    probability, value = total[0, ended], ended.astype(np.float64) if in_levels else prepared.scale.totals(ended)
    mean = float(probability @ ended) + beyond
    groups = None
    if layers > 1:
        beyond += float(mass[1].sum()) if missing > 0 else 0.0
        mean += float(total[1, :levels].sum() + mass[1].sum())
        value = value + total[1, ended] / probability * unit
        groups = _groups(
            policy, total[:, ended], value, mass, spent, tail if missing > 0 else None, in_levels=in_levels
        )
        order = np.argsort(value, kind="stable")
        value, probability = value[order], probability[order]
    if missing > 0:
        steps += float(mass[0].sum(axis=1) @ (tail or spent_budget(policy)).steps)
    found = Distribution(
        values=value,
        probabilities=probability,
        mean=units(mean),
        missing=float(missing),
        missing_mean=units(beyond / missing) if missing > 0 else 0.0,
        grouped=layers > 1,
        groups=groups,
    )
    return found, MORE * steps * (1 + longest_detour(prepared))


def _groups(
    policy: BudgetPolicy,
    ended: FloatArray,
    value: FloatArray,
    mass: FloatArray,
    spent: IntArray,
    tail: Expected | None,
    *,
    in_levels: bool,
) -> Groups:
    """Return what is known of runs that were charged the same: those that ended at ``value``, then those under way."""
    scale = policy.prepared.scale
    unit = 1.0 if in_levels else scale.level_size
    moments, mean, ahead = ended, value, np.zeros(len(value))
    if tail is not None:
        under_way = mass.sum(axis=1)
        some = under_way[0] > 0
        later, levels = under_way[:, some], spent[some]
        at = (levels.astype(np.float64) if in_levels else scale.totals(levels)) + later[1] / later[0] * unit
        moments, mean = np.concatenate([ended, later], axis=1), np.append(value, at)
        there = mass[0][:, some]
        met = there.any(axis=1)  # elsewhere an infinite bound does not matter
        ahead = np.append(ahead, tail.upper[met] @ there[met] / later[0] * unit)
    square, shift = moments[2] / moments[0], moments[1] / moments[0]
    variance = np.maximum(square - shift * shift, 0.0) + SPREAD * square
    return Groups(moments[0], mean, variance * unit * unit, ahead)


def followed(
    policy: BudgetPolicy, layers: int, most: int | None, tolerance: float, limits: Limits | None = None
) -> tuple[FloatArray, int, float, FloatArray, FloatArray]:
    """Follow a policy forwards until little is under way, or for ``most`` levels, within the limits.

    Returns the mass that ended by (layer, level), the number of levels, the probability still under way, that mass by
    (layer, state, level modulo the window), and the expected number of plays of each action.
    """
    prepared = policy.prepared
    window = _largest_played(policy) + 1
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
    (limits or Limits.of(None, None)).check(8 * numbers, FOLLOWING, "use prudent.simulate")
    arcs = free_arcs(prepared)
    costs = costs_of(prepared, arcs)
    mass = np.zeros((layers, prepared.n_states, window))
    mass[0, prepared.start, 0] = 1.0
    chosen, k = np.zeros(prepared.n_states, dtype=np.int64), np.zeros(prepared.n_actions)
    if most is None:
        most = max(min(WORK // prepared.n_states, LEVELS), window, policy.level + 1)
    row = np.zeros(prepared.n_states)
    played = np.zeros(prepared.n_actions)
    total, levels, missing = np.zeros((layers, 0)), 0, 1.0
    rows = max(LevelSweep.batch // max(len(prepared.cost), 1), 1)
    with Progress(FOLLOWING, unit="levels") as progress:
        while levels < most and missing > 0 and (missing > tolerance or levels <= policy.level):
            go_on(limits, FOLLOWING)
            more = min(most - levels, max(levels, 1024), rows)
            total = np.append(total, np.zeros((layers, more)), axis=1)
            about = policy.choices, policy.level, tolerance, prepared.left_out
            levels, missing = distribute(arcs, costs, *about, levels, mass, total, chosen, k, row, played)
            progress.at(levels)
    return total, levels, missing, mass, played


def _followed_ahead(
    policy: BudgetPolicy, layers: int, limits: Limits | None
) -> tuple[FloatArray, int, float, FloatArray, FloatArray] | None:
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
    if 8 * layers * room > (limits or Limits.of(None, None)).memory:
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
    return mass[:, :levels].copy(), levels, 0.0, np.zeros((layers, n, 1)), played


def _followed_by_pairs(
    policy: BudgetPolicy, layers: int, work: int
) -> tuple[FloatArray, int, float, FloatArray, FloatArray] | None:
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
    return total, total.shape[1], 0.0, np.zeros((layers, prepared.n_states, 1)), played
