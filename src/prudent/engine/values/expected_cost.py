"""Least expected cost, with bounds that hold.

    V(s) = min over a of  sum over outcomes of  p (c + V(s'))          V(goal) = 0

Components are solved in order, successors first.  What is solved, how, and what would be lost without it:

=================================  =============================================  ======================================
what                               how                                            without it
=================================  =============================================  ======================================
a model without cycles             one pass of backward induction                 compiles what only cycles need
all of it, on a device             value iteration there, if bounds are close     30 times slower
a component of one state           directly                                       most states of most models
a component of up to 64 states     policy iteration, dense elimination            small components wait for Python
a larger component: its policy     value iteration until choices settle, then     2 to 6 times slower
                                   policy iteration, each policy evaluated by
                                   the first of these that is accurate:
... thin: chains, few hubs         elimination inside a band                      runs of 1e19 steps have no upper bound
... otherwise                      BiCGSTAB, up to 1000 steps                     to 25 times slower where cycles are
                                                                                  hardly ever left
... if that fails: narrow          elimination inside a band                      to 3 times slower, bounds as above
... wider: long walks              SuperLU                                        3 times slower
=================================  =============================================  ======================================

The last four are described in :mod:`prudent.engine.values.large_components`.  A policy is changed only if that surely
improves values, so no policy occurs twice, and the one returned is never worse than another one seen.

If a goal can be reached at no cost, V is 0; the graph shows from which states, and those states count as goals.  So all
other values are above 0, and errors relative to them are meaningful.

If a cycle is hardly ever left, a float has too few digits for the value: rounding it once changes the apparent gain
of a single step, and a run takes many steps.  If that matters, values are refined into sums of two floats, until the
residual of each equation is within the rounding error of its own terms.  Then the choices are judged again.

Bounds are found afterwards.  Let g(a) be the gap of an action, what it costs beyond V of its state s,

    g(a) = sum p (c + V(s')) - V(s),          known up to the rounding error r(a),

and let Y >= 0 be a function of the state, 0 at goals; f(a) = Y(s) - sum p Y(s') is its expected fall.

*Claim.*  If  d f(a) >= r(a) - g(a)  for all actions and  d f(a) >= r(a) + |g(a)|  for those chosen, with d > 0, then
V - d Y is at most the cost of every policy that reaches a goal, and V + d Y is at least the cost of the chosen policy,
which does reach one.

*Proof.*  By the first condition L = V - d Y satisfies  L(s) <= sum p (c + L(s'))  for all actions.  Along a run of a
policy that reaches a goal, repeat that: L(s) is at most the expected cost of n steps plus the expectation of L after
them, which tends to 0.  By the second, V + d Y is at least  sum p (c + .)  for the chosen actions, hence at least the
expected cost of n steps plus the expectation of V + d Y after them.  That tends to 0, too, since the policy reaches a
goal with probability 1: otherwise it could stay forever among some states.  There f, which is not negative, would be 0
in expectation, so r = g = 0; as r is relative to the terms of g, there would be no costs.  But end components without
costs are collapsed.

Two functions serve as Y:

* the expected cost V itself, plus best luck (see :mod:`prudent.engine.prepare`), so that Y is the cost before
  normalising.  It falls by the expected cost of the action.  Nothing else need be computed, and bounds are relative
  to the cost: mostly 1e-13 apart;
* if some actions are free or cycles are hardly ever left, the largest expected total of errors, r(a) - g(a) / 4, of
  any policy.  Again Bellman's equations, but only roughly: gains below a quarter of an action's own error do not
  count.  It is finite, because an end component has gaps as large as its expected costs, and those without costs
  are collapsed.

The conditions are checked in floats, rounding included, so the bounds hold however the numbers were computed;
inaccurate numbers only make them wide.  In an acyclic model one pass (:mod:`prudent.kernels.acyclic`) finds
values, refined ones, and adds up both errors instead, rounding up at every step.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from prudent.engine.device_rows import device_rows
from prudent.engine.prepare import prepare, rounded_to
from prudent.engine.prepared import Found, Prepared, once, restrict, restrict_to
from prudent.engine.values.bellman import (
    UNIT,
    all_arcs,
    evaluate_policy,
    large_blocks,
    refuse_endless,
    rounding,
    solve_bellman,
    without_cycles,
)
from prudent.engine.values.device_values import device_expected
from prudent.engine.values.large_components import LargeBlock
from prudent.kernels.blocks import (
    MARGIN,
    SHARE,
    Arcs,
    action_gaps,
    claim_factors,
    enclose,
    improved,
    take_better,
    variance_costs,
)
from prudent.kernels.graphs import UNREACHED
from prudent.kernels.questions import Base
from prudent.models.graph import almost_sure, towards
from prudent.models.rows import BoolArray, FloatArray, IntArray
from prudent.runtime.limits import UNLIMITED, Limits, Stopped
from prudent.runtime.team import in_parts

ROUGHLY, TOTALS = 1e-3, 1e-9
"""The relative residuals to which corrections, and totals of errors, are solved."""

REFINEMENTS = 100
"""The most rounds of correcting the values and then improving the policy."""

CLOSE = 4e-13
"""Bounds relative to the cost are taken if they are this close; otherwise values are refined."""

LEAST = 2.0**-96
"""The least error of a gap, relative to the value, if none is known: two floats hardly have more digits."""

QUARTER = 0.25
"""Gains below this share of an action's own error do not count in totals of errors."""


@dataclass(frozen=True)
class Expected:
    """The least expected cost from every prepared state, in levels."""

    prepared: Prepared
    value: FloatArray  # (n_states,)  as computed
    lower: FloatArray  # (n_states,)  lower bound on the least expected cost
    upper: FloatArray  # (n_states,)  upper bound on the expected cost of the choice
    choice: IntArray  # (n_states,)  the action played
    found: Found = field(default_factory=dict, init=False, repr=False)

    @once
    def steps(self, limits: Limits = UNLIMITED) -> FloatArray:
        """Return the expected number of actions under the choice, from every state."""
        return evaluate_policy(self.prepared, self.prepared.plays, self.choice, limits, finest=ROUGHLY)

    @once
    def variance(self, limits: Limits = UNLIMITED) -> FloatArray:
        """Return the variance of the cost under the choice, from every state, roughly."""
        prepared, k = self.prepared, np.zeros(self.prepared.n_actions)
        rows = prepared.action_start, prepared.outcome_start, prepared.probability, prepared.successor
        about = rows, prepared.fine, float(prepared.scale.stride), self.choice, self.value, k
        in_parts(prepared.threads, variance_costs, prepared.n_states, *about)
        return evaluate_policy(prepared, k, self.choice, limits, finest=ROUGHLY)

    @property
    def base(self) -> Base:
        """The values without budget, from which a sweep of the excess begins."""
        return Base(self.value, self.lower, self.value)


@dataclass(frozen=True)
class _Refined:
    """Values as sums of two floats, and each action's gap: what it costs beyond the value of its state."""

    k: FloatArray  # (n_actions,)  the costs, or errors to be added up
    high: FloatArray  # (n_states,)
    low: FloatArray  # (n_states,)
    gap: FloatArray  # (n_actions,)
    error: FloatArray  # (n_actions,)  the rounding error of the gap


@once
def least_expected_cost(prepared: Prepared, limits: Limits = UNLIMITED) -> Expected:
    """Return the least expected cost from every state, bounded below and above.

    If limits ask to stop, the choice is the best proper policy so far, and bounds may be 0 and infinite.
    """
    refuse_endless(prepared)
    found = _least(prepared, limits)
    if np.isfinite(found.upper).all() or (restrict(prepared, found.choice).graph.distance < UNREACHED).all():
        return found
    return replace(found, choice=prepared.proper_choice(), upper=np.where(prepared.is_goal, 0.0, np.inf))


def _least(prepared: Prepared, limits: Limits, first: IntArray | None = None) -> Expected:
    """Return the least expected cost; ``first`` is a proper policy to begin with, if one is known."""
    if prepared.acyclic:
        return _backwards(prepared)
    device = limits.device
    if device is not None and (rows := device_rows(device, prepared)) is not None:
        claimed = rows.by_action_place(rounding(prepared)), rows.by_place(_above(prepared))
        if (values := device_expected(rows, prepared, claimed, CLOSE, limits)) is not None:
            return Expected(prepared, *values)
    free = free_choice(prepared)
    if free is None:
        return Equations(prepared, limits).least(first)
    costly = (free < 0)[prepared.action_state]  # elsewhere the value is 0, as at a goal
    found, kept = Equations(restrict_to(prepared, costly), limits).least(), np.flatnonzero(costly)
    choice, acting = np.where(free < 0, prepared.action_start[:-1], free), (free < 0) & ~prepared.is_goal
    choice[acting] = kept[found.choice[acting]]
    return replace(found, prepared=prepared, choice=choice)


def _above(prepared: Prepared) -> FloatArray:
    """Return what to add to values for the costs before normalising, best luck in levels; 0 if some are below 0."""
    scale, state_of = prepared.scale, prepared.members.state_of
    luck = np.zeros(prepared.n_states)
    luck[state_of[state_of >= 0]] = scale.unrounded(scale.luck[state_of >= 0])
    luck[prepared.start] = scale.start_luck / scale.stride
    return luck if (luck >= 0).all() else np.zeros_like(luck)


def _backwards(prepared: Prepared) -> Expected:
    """Return the least expected cost of a model without cycles; then every policy is proper."""
    table, choice = without_cycles(prepared, prepared.mean_cost)
    high, low, above, below = table.T.copy()
    lower, upper = _bounds(high, low, above, below, prepared.threads)
    return Expected(prepared, np.clip(high, lower, upper), lower, upper, choice)


def free_choice(prepared: Prepared) -> IntArray | None:
    """Return for each state an action of a policy that surely reaches a goal at no cost, -1 at goals and without one.

    Return None if no state has one.
    """
    free = prepared.mean_cost == 0
    almost_sure(prepared, prepared.successor, free)
    if not free.any():
        return None
    arc = np.flatnonzero(free[prepared.outcome_action])
    source, target = prepared.outcome_state[arc], prepared.successor[arc]
    good = towards(source, target, prepared.n_states, prepared.is_goal)[source] == target
    choice = np.full(prepared.n_states, -1)
    choice[source[good][::-1]] = prepared.outcome_action[arc[good]][::-1]
    return choice


@once
def surely_expected(prepared: Prepared, limits: Limits = UNLIMITED) -> FloatArray:
    """Return a lower bound on the least expected cost that also covers costs off the lattice."""
    least = least_expected_cost(prepared, limits)
    if prepared.scale.slip == 0:
        return least.lower
    lowered = replace(prepared, fine=prepared.scale.surely(prepared.fine))
    return _least(lowered, limits, least.choice).lower


def at_step(prepared: Prepared, step: float, limits: Limits) -> Prepared:
    """Return a model that was prepared without a step with costs rounded up to one; the last one is kept.

    What can be had from the other step is: rows, values of the graph, and the least expected cost, which is rounded at
    neither.
    """
    last: Prepared | None = prepared.found.get(at_step)
    if last is None or last.scale.step != step:
        other = rounded_to(prepared, step)
        if other is None:
            last = prepare(prepared.model, step, limits)
        else:
            _share(prepared, last := other, limits)
        prepared.found[at_step] = last
    return last


def _share(prepared: Prepared, other: Prepared, limits: Limits) -> None:
    """Let the same model with levels of another size have the least expected cost."""
    ratio = prepared.scale.stride / other.scale.stride
    found = least_expected_cost(prepared, limits)
    with np.errstate(over="ignore"):  # what is larger than any float is infinite
        lower, upper = found.lower * (ratio * (1 - 4 * UNIT)), found.upper * (ratio * (1 + 4 * UNIT))
        value = np.clip(found.value * ratio, lower, upper)
        surely = surely_expected(prepared, limits) * (ratio * (1 - 4 * UNIT))
    scaled = Expected(other, value, lower, upper, found.choice)
    scaled.found[Expected.steps] = found.steps(limits)  # whatever the levels
    other.found[least_expected_cost] = scaled
    other.found[surely_expected] = surely


class Equations:
    """Bellman's equations of a prepared model for action costs ``k``, and the arrays for solving them."""

    def __init__(self, prepared: Prepared, limits: Limits, k: FloatArray | None = None) -> None:
        self.prepared, self.limits = prepared, limits
        self.k: FloatArray = prepared.mean_cost if k is None else k
        self.arcs: Arcs = all_arcs(prepared)
        self.large: list[LargeBlock] = large_blocks(prepared, limits)
        self.acting: BoolArray = ~prepared.is_goal
        self.unit: FloatArray = rounding(prepared)

    def least(self, first: IntArray | None = None) -> Expected:
        """Return the least totals, which are not below 0, with bounds."""
        high, low, error, choice = self.solve(first)
        lower, upper = np.zeros(len(high)), np.where(self.acting, np.inf, 0.0)
        if np.isfinite(error).all():
            lower, upper = _bounds(high, low, error, error, self.prepared.threads)
        return Expected(self.prepared, np.clip(high, lower, upper), lower, upper, choice)

    def solve(self, first: IntArray | None = None) -> tuple[FloatArray, FloatArray, FloatArray, IntArray]:
        """Return the values as sums of two floats, bounds on their errors, infinite if unknown, and the choice."""
        start = self.prepared.start
        choice = self.prepared.proper_choice() if first is None else first.copy()
        refined = self._at(self.k, solve_bellman(self.arcs, self.k, choice, large=self.large))
        if not np.isfinite(refined.high).all():
            return refined.high, refined.low, np.where(self.acting, np.inf, 0.0), choice
        total, factor = self._relative(refined, choice)
        if not factor <= CLOSE:
            refined = self._refine(refined, choice)
            total, factor = self._relative(refined, choice)
        if not factor <= CLOSE:
            errors, other = self._totalled(refined, choice)
            if other < np.inf and not (factor < np.inf and factor * float(total[start]) < other * float(errors[start])):
                total, factor = errors, other
        error = np.where(self.acting, np.inf, 0.0)
        if factor < np.inf:
            with np.errstate(over="ignore"):
                error = factor * total * (1 + CLOSE)
        return refined.high, refined.low, error, choice

    def _at(self, k: FloatArray, high: FloatArray, low: FloatArray | None = None) -> _Refined:
        low = np.zeros_like(high) if low is None else low
        gap, error = np.empty(len(k)), np.empty(len(k))
        in_parts(
            self.prepared.threads, action_gaps, len(self.prepared.cost), self.arcs, k, self.unit, high, low, gap, error
        )
        return _Refined(k, high, low, gap, error)

    def _refine(self, now: _Refined, choice: IntArray) -> _Refined:
        """Correct the values until their residuals are within rounding error; improve ``choice`` in place."""
        now = self._corrected(now, choice)
        for _ in range(REFINEMENTS):
            other = choice.copy()
            if not take_better(self.arcs, now.gap, now.error, other):
                break
            new = self._corrected(now, other)
            if not improved(now.high, (new.high - now.high) + (new.low - now.low), 1.0):
                break
            now, choice[:] = new, other
        return now

    def _corrected(self, now: _Refined, choice: IntArray) -> _Refined:
        """Add to the values the totals of a policy's residuals, as long as that makes the residuals smaller."""
        played, before = choice[self.acting], np.inf
        for _ in range(REFINEMENTS):
            lack = np.abs(now.gap[played])
            with np.errstate(over="ignore", divide="ignore"):  # errors may be too small for a float
                ratio = np.divide(lack, now.error[played], out=np.zeros_like(lack), where=lack > 0)
            far = float(ratio.max(initial=0.0))
            if far <= 1 or not far < before / 2:
                break
            try:
                change = evaluate_policy(self.prepared, now.gap, choice, self.limits, large=self.large, finest=ROUGHLY)
            except Stopped:
                break
            if not (np.isfinite(change).all() and np.isfinite(now.high + change).all()):
                break
            now, before = self._at(now.k, *_two_sum(now.high, now.low + change)), far
        return now

    def _relative(self, refined: _Refined, choice: IntArray) -> tuple[FloatArray, float]:
        """Return the costs before normalising, and the factor with which they serve as Y."""
        cost = refined.high + _above(self.prepared)
        return cost, self._factor(refined, choice, cost, np.zeros_like(cost))

    def _totalled(self, refined: _Refined, choice: IntArray) -> tuple[FloatArray, float]:
        """Return the largest total of errors of any policy, roughly, and the factor with which it serves as Y."""
        error = refined.error - QUARTER * refined.gap
        less = refined.gap < 0
        less[choice[self.acting]] = True
        error[less] = refined.error[less] + np.abs(refined.gap[less])
        total = self._largest(error, choice)
        factor = self._factor(refined, choice, total.high, total.low)
        if factor == np.inf:  # totals have errors, too, which matter if values have none
            own = 8 * MARGIN / self.unit * total.error + LEAST * refined.high[self.prepared.action_state]
            total = self._largest(error + own, choice)
            factor = self._factor(refined, choice, total.high, total.low)
        if factor == np.inf:
            return total.high, factor
        exact = np.zeros_like(total.high)
        return _bounds(total.high, total.low, exact, exact, self.prepared.threads)[1], factor

    def _largest(self, k: FloatArray, choice: IntArray) -> _Refined:
        largest = choice.copy()
        total = solve_bellman(self.arcs, k, largest, sense=-1.0, share=QUARTER, large=self.large, finest=TOTALS)
        return self._corrected(self._at(k, total), largest)

    def _factor(self, refined: _Refined, choice: IntArray, high: FloatArray, low: FloatArray) -> float:
        """Return the least factor for which the claim holds with Y = high + low, rounded up; or infinity."""
        if not (np.isfinite(high).all() and (high >= 0).all()):
            return np.inf
        least, most = np.empty((2, -(-len(high) // SHARE)))
        known = self.arcs, choice, (refined.gap, refined.error, self.unit), (high, low)
        in_parts(self.prepared.threads, claim_factors, len(self.prepared.cost), *known, least, most)
        factor = float(least.max()) * (1 + CLOSE)
        return factor if factor <= float(most.min()) * (1 - CLOSE) else np.inf


def range_of(above: FloatArray, below: FloatArray) -> tuple[float, float]:
    """Return the least and the largest ratio of values, such as bounds, to others; it is 1 where those are 0."""
    ratio = np.divide(above, below, out=np.ones(len(below)), where=below > 0)
    return float(ratio.min()), float(ratio.max())


def _two_sum(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return rounded sums, and their exact remainders (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _bounds(
    high: FloatArray, low: FloatArray, above: FloatArray, below: FloatArray, threads: int
) -> tuple[FloatArray, FloatArray]:
    """Return bounds, as floats, on values that are sums of two floats, with at most this error."""
    lower, upper = np.empty((2, len(high)))
    in_parts(threads, enclose, len(high), high, low, above, below, lower, upper)
    return lower, upper
