"""Least expected cost, with bounds that hold.

    V(s) = min over a of  sum over outcomes of  p (c + V(s'))          V(goal) = 0

Solved component by component in the order of the graph: at sight where it is acyclic, elsewhere by policy
iteration, each policy evaluated by elimination or, in large components, as values/large.py says.  It stops when no
choice improves; a small last change is never taken for a small error.

Where a loop is hardly ever left, a value has more digits that matter than a float holds: rounding it once changes
what a single step seems to gain, and there are very many steps.  So values are refined into sums of two floats,
until what each equation lacks is within the rounding of its own terms, and choices are judged once more with those.

The error is bounded afterwards, from the residual r of the refined V in each action, rounding included:

* above: with e the total of the errors r that the chosen policy is expected to meet, V + 2 e is checked to be a
  supersolution of that policy, i.e. at least ``sum p (c + .)``, hence above its true cost;
* below: with e the largest such total that *nearly optimal* actions can meet, V - 2 e is checked to be a
  subsolution, i.e. at most ``sum p (c + .)`` for every action, hence below the cost of every policy that
  reaches a goal.  The total is finite: an end component of optimal actions would be one at no cost, and
  those are collapsed.

The factor 2 pays for the rounding of e itself, and for solving for it roughly.  Both errors are relative: where V
is 0, they are 0.  The checks do not ask how anything was computed; where it was computed badly, bounds are wide.
Without cycles both totals are added up in one pass instead, rounded up at every step, and every action counts below.
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
"""How well corrections and totals of errors are solved for."""

REFINEMENTS = 100
"""The most corrections of the values, and changes of the policy that come of them."""


@dataclass(frozen=True)
class Expected:
    """The least expected cost from every prepared state, in levels."""

    value: FloatArray  # (n_states,)  as computed
    lower: FloatArray  # (n_states,)  at most the true one
    upper: FloatArray  # (n_states,)  at least what the choice costs
    choice: IntArray  # (n_states,)  the action played
    steps: FloatArray  # (n_states,)  expected number of steps under the choice

    @property
    def base(self) -> Base:
        """What a sweep of the excess begins with: the values without budget."""
        return Base(self.value, self.lower, self.value)


@dataclass(frozen=True)
class _Refined:
    """Values as sums of two floats, and what each action costs beyond them."""

    high: FloatArray  # (n_states,)
    low: FloatArray  # (n_states,)
    gap: FloatArray  # (n_actions,)
    error: FloatArray  # (n_actions,)  the rounding error of the gap
    size: FloatArray  # (n_actions,)  what the gap is summed from

    def plus(self, change: FloatArray, *, up: bool) -> FloatArray:
        """Return the values changed, as floats rounded up or down."""
        return _added(self.high, _added(self.low, change, up=up), up=up)


@once
def least_expected_cost(prepared: Prepared) -> Expected:
    """Return the least expected cost from every state, bounded below and above."""
    return _Equations(prepared).least()


def surely_expected(prepared: Prepared, expected: Expected) -> FloatArray:
    """Return what the least expected cost surely is at least, where a lattice holds costs only closely too."""
    if prepared.scale.slip == 0:
        return expected.lower
    return least_expected_cost(replace(prepared, fine=prepared.scale.surely(prepared.fine))).lower


def proper_choice(prepared: Prepared) -> IntArray:
    """Choose actions that may move closer to a goal: every such policy reaches one with probability 1."""
    hop = towards(prepared.outcome_state, prepared.successor, prepared.n_states, prepared.is_goal)
    good = np.flatnonzero(hop[prepared.outcome_state] == prepared.successor)
    choice = prepared.action_start[:-1].copy()
    choice[prepared.outcome_state[good[::-1]]] = prepared.outcome_action[good[::-1]]
    return choice


class _Equations:
    """Bellman's equations of a prepared model, and what it takes to solve them."""

    def __init__(self, prepared: Prepared) -> None:
        self.prepared = prepared
        self.arcs: Arcs = all_arcs(prepared)
        self.large: list[LargeBlock] = large_blocks(self.arcs)
        self.acting: BoolArray = ~prepared.is_goal
        self.unit: FloatArray = rounding(prepared)

    def least(self) -> Expected:
        everything = np.ones(self.prepared.n_actions, dtype=bool)
        acyclic = self.prepared.acyclic  # then every policy is proper, and each choice is made when its turn comes
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
        """Return the totals that a policy meets of what its actions cost, of either sign."""
        return solve_bellman(
            self.arcs, k, self.prepared.playing(choice), choice.copy(), large=self.large, finest=finest
        )

    def _at(self, high: FloatArray, low: FloatArray) -> _Refined:
        gap, size = action_gaps(self.arcs, self.prepared.action_state, self.prepared.mean_cost, high, low)
        return _Refined(high, low, gap, self.unit * size, size)

    def _refine(self, value: FloatArray, choice: IntArray) -> _Refined:
        """Correct the values until their equations lack no more than rounding; improve ``choice`` by them in place."""
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
        """Return bounds and steps in one pass."""
        rows = self.prepared.action_start, self.prepared.outcome_start, self.prepared.probability
        above, below, steps = errors_ahead(
            self.prepared.blocks[1], *rows, self.prepared.successor, refined.gap, refined.error, self.unit, choice
        )
        return np.maximum(refined.plus(-above, up=False), 0.0), refined.plus(below, up=True), steps

    def _may_stay(self, usable: BoolArray) -> bool:
        """Return whether some of these actions can be played for ever: then there are no totals."""
        arcs = self.prepared
        _, inside = end_components(arcs.action_state, arcs.outcome_start, arcs.successor, arcs.n_states, usable)
        return bool(inside.any())

    def _total(self, needed: FloatArray, usable: BoolArray, choice: IntArray, sense: float) -> FloatArray | None:
        """Return totals of what single steps need, such that each step's fall is surely at least half of that.

        The totals have errors of their own, so they are sums of two floats too; what falls short is added, and
        counted as usable where it was not, until the check passes.  They are returned rounded up.
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
    """Return sums as floats, and exactly what these lack (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _added(a: FloatArray, b: FloatArray, *, up: bool) -> FloatArray:
    """Return sums rounded up or down; not at all where they are floats."""
    total, lack = _two_sum(a, b)
    wrong = lack > 0 if up else lack < 0
    return np.where(wrong, np.nextafter(total, np.inf if up else -np.inf), total)
