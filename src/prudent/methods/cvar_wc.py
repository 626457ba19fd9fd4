"""cvar-wc: the game of Chow et al. (2015), the paper's CVaR-Worst-Case.

The agent plays against an adversary that reweighs probabilities by factors of up to 1 / y.  F(s, y) = y V(s, y) is kept
on a grid of y, with linear interpolation and F(s, 0) = 0:

    F(s, y) = min over a of  max over z of  sum over outcomes k of  p_k (F(s_k, z_k) + c_k z_k)
              subject to  sum p_k z_k = y,  0 <= z_k <= 1.

An acyclic model takes one pass in reverse topological order.  Otherwise sweeps from below (from y times the least
expected cost) continue until no value changes by more than the tolerance.  A run carries y, starting at alpha.  After
outcome k it continues with z_k, and once y is 0 it plays a worst-case policy.

*Floor.*  The authors' program uses the value at y = 1e-6 in place of F(s, 0) = 0 (option ``floor``), so outcomes to
which the adversary gives no weight still count a little.  That decides between actions of nearly equal value.

*Guarantee.*  In this game the agent sees how the adversary splits y before it acts (``docs/shortfall.md``).  So the
game's value is a lower bound on the optimal CVaR, at any grid and after any number of sweeps, and the policy read off
it may be worse than optimal (Hau et al. 2023).  ``lower`` is the value of the game without a floor, ``upper`` the
policy's own CVaR.  Where both agree, the policy has the optimal CVaR, but not always the lowest expected cost at it, so
the status is ``optimal`` only if no policy at all has a lower expected cost.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.domains.registry import points_of
from prudent.engine.prepared import Prepared, choice_type
from prudent.engine.sweep.estimate import followed_per_level
from prudent.engine.values.bellman import path_rounding
from prudent.engine.values.expected_cost import Expected, least_expected_cost, surely_expected
from prudent.engine.values.worst_case import UNREACHED, WorstCase, least_worst_case, true_worst_case
from prudent.errors import PrudentError, TooLarge, as_number
from prudent.kernels.choices import Choices
from prudent.kernels.game import Game, choose, improve
from prudent.methods.solution import Solution
from prudent.models.rows import FloatArray, IntArray
from prudent.policies.chain import forward, spent_budget
from prudent.policies.distribution import Distribution
from prudent.policies.own_tail import AFFORDED, UNFOLLOWED
from prudent.policies.unrolled import UnrolledPolicy
from prudent.runtime.limits import Limits, go_on
from prudent.runtime.progress import Progress

NODES = 200_000
"""The most pairs of state and y that a policy is unrolled into."""

SAME_Y = (1e-12, 1e-6, 1e-4)
"""Values of y this close count as one; the coarser steps are used if runs would meet too many values of y."""


def chow_grid(points: int) -> FloatArray:
    """Return the paper's grid of y: ``points`` values (10^(i/(n-1)) - 1)/10 from 0 to 0.9, and 1."""
    return np.append((10 ** (np.arange(points) / (points - 1)) - 1) / 10, 1.0)


@dataclass(frozen=True)
class GameValue:
    """The solved game."""

    game: Game  # as played, with the floor if there is one
    bound: FloatArray  # (n_points,)  F from the start at the grid points, without the floor, in levels
    residual: float  # the largest change of the last sweep, in levels
    sweeps: int
    least: float  # a lower bound on the lowest expected cost from the start, in levels
    worst: float  # the minimal worst-case cost from the start, in levels


@dataclass(frozen=True)
class CvarWC:
    """The paper's CVaR-Worst-Case and its options; the defaults are the paper's.

    Examples
    --------
    >>> import prudent
    >>> plan = prudent.solve(prudent.domains.figure_2(), alpha=0.1, method=prudent.CvarWC(points=80))
    >>> plan.policy.start().action, plan.status
    ('a', 'approximate')
    """

    points: int | None = None  # grid points of y besides 1; None: the paper's number for the model's domain, else 30
    grid: tuple[float, ...] | None = None  # your own grid, rising from 0 to 1
    zero: float = 1e-6  # y below this counts as 0
    floor: float = 0.0  # the y whose value is used for F(s, 0); the paper's program: 1e-6
    ties: str = "first"  # which of several equally good worst-case actions to play at y = 0: "first" or "last"
    tolerance: float = 1e-9  # a cyclic model counts as solved when a sweep changes its values by less, relatively
    max_sweeps: int = 10_000

    name = "cvar-wc"

    def __call__(self, prepared: Prepared, alpha: float, limits: Limits) -> Solution:
        """Return the policy of the game, its own values, and the game's value as the lower bound."""
        solved = self.solve_game(prepared, limits)
        worst = least_worst_case(prepared, limits)
        policy = unroll(prepared, solved.game, alpha, self.zero, self.worst_choice(prepared, worst)[None])
        return solution(policy, solved, worst, alpha, limits)

    def solve_game(self, prepared: Prepared, limits: Limits) -> GameValue:
        """Return the game as played, and its value without a floor (internal)."""
        grid = self._grid(prepared)
        wanted = f"at least 0, and below the first grid point above 0, {grid[1]:g}"
        floor = as_number("floor", self.floor, wanted, lambda x: 0 <= x < grid[1])
        needed = (32 if floor > 0 else 16) * prepared.n_states * len(grid)
        limits.check(needed, "the game", "take fewer grid points, or raise memory=")
        game, change, sweeps = self._played(prepared, grid, 0.0, limits)
        bound = game.value[prepared.start].copy()
        if floor > 0:
            game, change, sweeps = self._played(prepared, grid, floor, limits)
        least = float(surely_expected(prepared, limits)[prepared.start])
        return GameValue(game, bound, change, sweeps, least, true_worst_case(prepared, limits))

    def _played(self, prepared: Prepared, grid: FloatArray, floor: float, limits: Limits) -> tuple[Game, float, int]:
        """Return a game, the largest change of its last sweep, in levels, and the number of sweeps."""
        value = surely_expected(prepared, limits)[:, None] * grid
        game = Game(
            prepared.action_start,
            prepared.outcome_start,
            prepared.probability,
            prepared.successor,
            prepared.scale.unrounded(prepared.scale.surely(prepared.fine)),
            grid,
            value,
            np.ascontiguousarray(np.diff(value, axis=1) / np.diff(grid)),
            floor,
        )
        most = int(np.diff(prepared.outcome_start).max(initial=1))
        about = game, prepared.blocks[1], np.empty(most, dtype=np.int64), np.empty(len(grid))
        return game, *self.swept(lambda: improve(*about), prepared, limits, "playing the game")

    def swept(self, sweep: Callable[[], float], prepared: Prepared, limits: Limits, what: str) -> tuple[float, int]:
        """Sweep values until they hardly change; return the largest change of the last sweep, and how many (internal).

        One sweep is enough without cycles.
        """
        enough = self.tolerance * max(1.0, float(least_expected_cost(prepared, limits).value.max()))
        change, sweeps = np.inf, 0
        with Progress(what, unit="sweeps") as progress:
            while change > enough and sweeps < self.max_sweeps:
                go_on(limits, what)
                change, sweeps = sweep(), sweeps + 1
                progress.at(sweeps)
                if prepared.acyclic:
                    change = 0.0
        return float(change), sweeps

    def worst_choice(self, prepared: Prepared, worst: WorstCase) -> IntArray:
        """Return each state's worst-case action, or that of least expected cost if no policy bounds it (internal)."""
        if self.ties not in ("first", "last"):
            raise PrudentError(f"ties is {self.ties!r}; it must be 'first' or 'last'")
        least = worst.value[prepared.action_state]
        good = np.flatnonzero((worst.action_value == least) & (least != UNREACHED))
        if self.ties == "first":
            good = good[::-1]
        choice = least_expected_cost(prepared).choice.copy()
        choice[prepared.action_state[good]] = good
        return choice - prepared.action_start[:-1]

    def _grid(self, prepared: Prepared) -> FloatArray:
        if self.grid is None:
            points = points_of(prepared.model) if self.points is None else self.points
            if points < 2:
                raise PrudentError(f"points is {points!r}; the grid of y needs at least 2 points")
            return chow_grid(points)
        grid = np.array(self.grid, dtype=np.float64)
        if len(grid) < 2 or grid[0] != 0 or grid[-1] != 1 or not (np.diff(grid) > 0).all():
            raise PrudentError("grid must rise strictly from 0 to 1")
        return grid


def solution(policy: UnrolledPolicy, solved: GameValue, worst: WorstCase, alpha: float, limits: Limits) -> Solution:
    """Return a policy with its own exact values and the game's bound; unknown values are nan."""
    prepared = policy.prepared
    tail = spent_budget(policy, limits)
    found = charged = _distribution(policy, tail, alpha, limits)
    if prepared.scale.rounded:
        charged = _distribution(policy, tail, alpha, limits, charged=True)
    cvar = expected = upper = np.nan
    if found is not None and charged is not None:
        cvar, expected = prepared.scale.in_levels(found.cvar(alpha)), prepared.scale.in_levels(found.mean)
        upper = prepared.scale.in_levels(charged.cvar(alpha))
    # The part that the distribution cuts off costs at most the tail's upper bound.
    error, cut = path_rounding(prepared, tail.steps(limits)), 0.0
    if charged is not None and charged.missing > 0:
        cut = charged.missing / alpha * float((tail.upper - tail.value).max())
        error += cut / max(cvar, 1.0)
    notes = []
    if policy.resolution > SAME_Y[0]:
        notes.append(f"runs meet too many values of y, so y was rounded to multiples of {policy.resolution:g}")
    if not prepared.acyclic:
        change = solved.residual * prepared.scale.level_size
        notes.append(f"the last of {solved.sweeps} sweeps of the game changed values by at most {change:.2g}")
    if (worst.value == UNREACHED).any():
        notes.append("in states where no policy bounds the cost, the policy of lowest expected cost is played at y = 0")
    if found is None:
        notes.append(UNFOLLOWED)
    return Solution(
        policy=policy,
        var=np.nan if found is None else found.var(alpha),
        cvar=cvar,
        expected=expected,
        lower=float(np.interp(alpha, solved.game.grid, solved.bound)) / alpha * (1 - 1e-12),
        upper=float(upper * (1 + error) + max(1 - upper, 0.0) * cut) if np.isfinite(upper + cut) else np.inf,
        expected_lower=solved.least,
        worst=solved.worst,
        notes=tuple(notes),
    )


def _distribution(
    policy: UnrolledPolicy, tail: Expected, alpha: float, limits: Limits, *, charged: bool = False
) -> Distribution | None:
    most = int(AFFORDED / followed_per_level(policy.prepared))
    try:
        found = forward(policy, tail, most=most, charged=charged, limits=limits)[0]
    except TooLarge:  # only simulation can estimate it
        return None
    return None if np.isinf(found.var(alpha)) else found


def unroll(prepared: Prepared, game: Game, alpha: float, zero: float, plain_choice: NDArray[Any]) -> UnrolledPolicy:
    """Return the game's policy with y as part of the state; where y is below ``zero`` it plays ``plain_choice``.

    ``plain_choice`` gives, by remaining budget and plain state, the action's number within the state.
    """
    for same in SAME_Y:
        pairs = _meet(prepared, game, alpha, zero, same)
        if pairs is not None:
            plain = Choices.of_rows(plain_choice.astype(choice_type(prepared)))
            policy = UnrolledPolicy.of_nodes(prepared, *pairs, plain, len(plain_choice) - 1)
            return replace(policy, resolution=same)
    raise PrudentError(f"the policy meets more than {NODES:,} pairs of state and y; use fewer grid points")


def _meet(
    prepared: Prepared, game: Game, alpha: float, zero: float, same: float
) -> tuple[IntArray, FloatArray, IntArray, IntArray] | None:
    """Return the pairs of state and y that a run can meet, their actions and successors; None if there are too many."""
    n, widest = prepared.n_states, int(np.diff(prepared.outcome_start).max(initial=1))
    number = {(prepared.start, round(alpha / same)): n}
    state, y, action, successor = [prepared.start], [alpha], list[IntArray](), list[int]()
    used, z, done = np.empty(widest, dtype=np.int64), np.empty(widest), 0
    while done < len(state):
        here, there = np.array(state[done:], dtype=np.int64), np.array(y[done:])
        played, spread = np.full(len(here), -1), np.zeros((len(here), widest))
        choose(game, here, there, used, z, spread, played)
        done = len(state)
        action.append(played)
        for a, share in zip(played.tolist(), spread.tolist(), strict=True):
            if a < 0:
                continue
            first, last = int(prepared.outcome_start[a]), int(prepared.outcome_start[a + 1])
            for t, left in zip(prepared.successor[first:last].tolist(), share, strict=False):
                if left < zero or prepared.action_start[t] == prepared.action_start[t + 1]:
                    successor.append(t)
                    continue
                key = (t, max(round(left / same), 1))
                if key not in number:
                    number[key] = n + len(state)
                    state.append(t)
                    y.append(left if same == SAME_Y[0] else key[1] * same)
                successor.append(number[key])
        if len(state) > NODES:
            return None
    return np.array(state), np.array(y), np.concatenate(action), np.array(successor, dtype=np.int64)
