"""Least expected cost, with bounds that hold.

    V(s) = min over a of  sum over outcomes of  p (c + V(s'))          V(goal) = 0

Components are solved in order, successors first: a single state directly, a larger component by policy iteration.
Each policy is evaluated by elimination or, in large components, as :mod:`prudent.engine.values.large_components`
says.  Iteration stops when no choice improves; a small last change is not taken for a small error.

If a loop is hardly ever left, a float has too few digits for the value: rounding it once changes the apparent gain
of a single step, and a run takes very many steps.  So values are refined into sums of two floats, until the residual
of each equation is within the rounding error of its own terms.  Then the choices are judged again.

The error is bounded afterwards, from the residual r of the refined V in each action, rounding included:

* above: let e be the expected total of r along a run of the chosen policy.  V + 2 e is checked to be a
  supersolution of that policy, i.e. at least ``sum p (c + .)``, hence above its true cost;
* below: let e be the largest such total over policies of *nearly optimal* actions.  V - 2 e is checked to be a
  subsolution, i.e. at most ``sum p (c + .)`` for every action, hence below the cost of every policy that
  reaches a goal.  This e is finite: an end component of optimal actions would have zero cost, and those are
  collapsed.

The factor 2 covers the rounding errors of e and its rough solution.  Both errors are relative: where V is 0, they
are 0.  The checks hold however the numbers were computed; bad numbers only make the bounds wide.  In an acyclic
model, one pass adds up both totals instead, rounding up at every step; there the lower bound counts every action.
"""

from dataclasses import dataclass, replace

import numpy as np

from prudent.engine.prepared import Prepared, once
from prudent.engine.values.bellman import all_arcs, large_blocks, rounding, solve_bellman
from prudent.engine.values.large_components import LargeBlock
from prudent.kernels.acyclic import errors_ahead
from prudent.kernels.blocks import Arcs, action_gaps, take_better
from prudent.kernels.sweep import Base
from prudent.models.graph import end_components, towards
from prudent.models.rows import BoolArray, FloatArray, IntArray

__all__ = ["Expected", "least_expected_cost", "proper_choice", "surely_expected"]

ROUGHLY = 1e-3
"""The relative residual to which corrections and totals of errors are solved."""

REFINEMENTS = 100
"""The most rounds of correcting the values and then improving the policy."""


@dataclass(frozen=True)
class Expected:
    """The least expected cost from every prepared state, in levels."""

    value: FloatArray  # (n_states,)  as computed
    lower: FloatArray  # (n_states,)  lower bound on the least expected cost
    upper: FloatArray  # (n_states,)  upper bound on the expected cost of the choice
    choice: IntArray  # (n_states,)  the action played
    steps: FloatArray  # (n_states,)  expected number of steps under the choice

    @property
    def base(self) -> Base:
        """The values without budget, from which a sweep of the excess begins."""
        return Base(self.value, self.lower, self.value)


@dataclass(frozen=True)
class _Refined:
    """Values as sums of two floats, and each action's gap: what it costs beyond the value of its state."""

    high: FloatArray  # (n_states,)
    low: FloatArray  # (n_states,)
    gap: FloatArray  # (n_actions,)
    error: FloatArray  # (n_actions,)  the rounding error of the gap
    size: FloatArray  # (n_actions,)  the sum of the absolute terms of the gap

    def plus(self, change: FloatArray, *, up: bool) -> FloatArray:
        """Return the values plus a change, as floats rounded up or down."""
        return _added(self.high, _added(self.low, change, up=up), up=up)


@once
def least_expected_cost(prepared: Prepared) -> Expected:
    """Return the least expected cost from every state, bounded below and above."""
    return _Equations(prepared).least()


def surely_expected(prepared: Prepared, expected: Expected) -> FloatArray:
    """Return a lower bound on the least expected cost that allows for costs off the lattice, too."""
    if prepared.scale.slip == 0:
        return expected.lower
    return least_expected_cost(replace(prepared, fine=prepared.scale.surely(prepared.fine))).lower


def proper_choice(prepared: Prepared) -> IntArray:
    """Choose in each state an action that may move closer to a goal: such a policy reaches one with probability 1."""
    hop = towards(prepared.outcome_state, prepared.successor, prepared.n_states, prepared.is_goal)
    good = np.flatnonzero(hop[prepared.outcome_state] == prepared.successor)
    choice = prepared.action_start[:-1].copy()
    choice[prepared.outcome_state[good[::-1]]] = prepared.outcome_action[good[::-1]]
    return choice


class _Equations:
    """Bellman's equations of a prepared model, and the arrays for solving them."""

    def __init__(self, prepared: Prepared) -> None:
        self.prepared = prepared
        self.arcs: Arcs = all_arcs(prepared)
        self.large: list[LargeBlock] = large_blocks(self.arcs)
        self.acting: BoolArray = ~prepared.is_goal
        self.unit: FloatArray = rounding(prepared)

    def least(self) -> Expected:
        everything = np.ones(self.prepared.n_actions, dtype=bool)
        acyclic = self.prepared.acyclic  # then every policy is proper, so any first choice will do
        choice = self.prepared.action_start[:-1].copy() if acyclic else proper_choice(self.prepared)
        value = solve_bellman(self.arcs, self.prepared.mean_cost, everything, choice, large=self.large)
        refined = self._refine(value, choice)
        if acyclic:
            lower, upper, steps = self._ahead(refined, choice)
        else:
            lower, upper = self._subsolution(refined, choice), self._supersolution(refined, choice)
            steps = self._policy(np.ones(self.prepared.n_actions), choice, 1e-6)
        return Expected(value=np.clip(refined.high, lower, upper), lower=lower, upper=upper, choice=choice, steps=steps)

    def _policy(self, k: FloatArray, choice: IntArray, finest: float) -> FloatArray:
        """Return a policy's expected totals of action costs ``k``, which may have either sign."""
        return solve_bellman(
            self.arcs, k, self.prepared.playing(choice), choice.copy(), large=self.large, finest=finest
        )

    def _at(self, high: FloatArray, low: FloatArray) -> _Refined:
        gap, size = action_gaps(self.arcs, self.prepared.action_state, self.prepared.mean_cost, high, low)
        return _Refined(high, low, gap, self.unit * size, size)

    def _refine(self, value: FloatArray, choice: IntArray) -> _Refined:
        """Correct the values until their residuals are within rounding error; improve ``choice`` in place."""
        now, kept, before = self._at(value, np.zeros_like(value)), None, np.inf
        for _ in range(REFINEMENTS):
            played = choice[self.acting]
            lack = np.abs(now.gap[played])
            far = float(np.divide(lack, now.error[played], out=np.zeros_like(lack), where=lack > 0).max(initial=0.0))
            if far <= 1:
                kept, kept_choice = now, choice.copy()
                if not take_better(self.arcs, now.gap, 2 * now.error, choice):
                    return now
            elif not far < before / 2:
                break
            before = np.inf if far <= 1 else far
            change = self._policy(now.gap, choice, ROUGHLY)
            if not np.isfinite(change).all():
                break
            now = self._at(*_two_sum(now.high, now.low + change))
        if kept is None:
            return now
        choice[:] = kept_choice
        return kept

    def _ahead(self, refined: _Refined, choice: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return both bounds and the expected steps, in one pass over an acyclic model."""
        rows = self.prepared.action_start, self.prepared.outcome_start, self.prepared.probability
        above, below, steps = errors_ahead(
            self.prepared.blocks[1], *rows, self.prepared.successor, refined.gap, refined.error, self.unit, choice
        )
        return np.maximum(refined.plus(-above, up=False), 0.0), refined.plus(below, up=True), steps

    def _may_stay(self, usable: BoolArray) -> bool:
        """Return whether some of these actions can be played for ever: then totals need not be finite."""
        arcs = self.prepared
        _, inside = end_components(arcs.action_state, arcs.outcome_start, arcs.successor, arcs.n_states, usable)
        return bool(inside.any())

    def _total(self, needed: FloatArray, usable: BoolArray, choice: IntArray, sense: float) -> FloatArray | None:
        """Return totals such that each action lowers the expected total by at least half of what it needs, or None.

        The totals have rounding errors too, so they are sums of two floats.  As long as actions fall short, they
        become usable and their shortfall is added to the totals.  The totals are returned rounded up.
        """
        total, low, short = np.zeros(self.prepared.n_states), np.zeros(self.prepared.n_states), needed
        none, choice = np.zeros_like(needed), choice.copy()
        for _ in range(10):
            late = (short > 0) & ~usable
            usable = usable | late
            if (short is needed or late.any()) and self._may_stay(usable):
                return None
            more = solve_bellman(
                self.arcs, np.maximum(short, 0.0), usable, choice, sense=sense, large=self.large, finest=ROUGHLY
            )
            if not (np.isfinite(more).all() and (more >= 0).all()):
                return None
            total, low = _two_sum(total, low + more)
            rise, size = action_gaps(self.arcs, self.prepared.action_state, none, total, low)
            short = needed + 2 * (rise + self.unit * size)
            if (short <= 0).all():
                return _added(total, low, up=True)
        return None

    def _supersolution(self, refined: _Refined, choice: IntArray) -> FloatArray:
        played = self.prepared.playing(choice)
        total = self._total(np.where(played, refined.gap + refined.error, -np.inf), played, choice, 1.0)
        return np.where(self.acting, np.inf, 0.0) if total is None else refined.plus(2 * total, up=True)

    def _subsolution(self, refined: _Refined, choice: IntArray) -> FloatArray:
        near = self.prepared.playing(choice)
        for theta in 1e-3 / 30.0 ** np.arange(8):
            total = self._total(refined.error - refined.gap, near | (refined.gap <= theta * refined.size), choice, -1.0)
            if total is not None:
                return np.maximum(refined.plus(-2 * total, up=False), 0.0)
        return np.zeros(self.prepared.n_states)


def _two_sum(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return rounded sums, and their exact remainders (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _added(a: FloatArray, b: FloatArray, *, up: bool) -> FloatArray:
    """Return sums rounded up or down; exact where the sum is a float."""
    total, lack = _two_sum(a, b)
    wrong = lack > 0 if up else lack < 0
    return np.where(wrong, np.nextafter(total, np.inf if up else -np.inf), total)
