"""The lowest expected cost within a limit on CVaR, by drawing one of two policies at the start.

A policy that randomises between two with the same budget w mixes their expected costs and their expected excesses over
w.  So, for one w, the least expected cost subject to ``w + E[(C - w)+] / alpha <= x`` lies on the lower hull of the
points (excess, mean) of all policies, between two of them.  On a lattice the best w is a level: between two levels the
left side is linear in w for any fixed policy, so a policy within the limit there is within it at one of the two.

A sweep for a slope mu gives, for every w at once, the point of the hull that a line of slope -mu touches, and a line
below which no policy lies: mean >= L(w) - mu excess.  The next slope is that between the two points mixed at the w with
the lowest bound.  The search ends when the best mixture meets that bound.

*Rounded costs.*  The mixture is found on costs rounded up, where its excess is at least the true one.  The lower bound
on every policy comes from costs rounded down.  There L(w) - mu alpha (x - w), as a function of w, drops right after
each level and is concave from there to the next.  So between two levels it is at least the smaller of its limits from
the right at both.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from prudent.engine.sweep.bounded import surely_above
from prudent.engine.sweep.task import EXCESS, Swept
from prudent.engine.values.bellman import UNIT
from prudent.engine.values.worst_case import UNREACHED, WorstCase, least_worst_case
from prudent.kernels.sweep import Terms
from prudent.methods.mean_cvar import CLOSE, CLOSED, TASK, Found, Weighing, beneath
from prudent.models.rows import FloatArray
from prudent.policies.chain import backward_from_each
from prudent.policies.policy import BudgetPolicy
from prudent.runtime.limits import Stopped

STEEPER, STEEPEST = 100.0, 1e6
"""The factor by which slopes grow if the points to mix give no new one, and the steepest slope."""


@dataclass(frozen=True)
class Mixture:
    """Two policies with the same budget; one of them is drawn at the start."""

    first: Found
    second: Found
    share: float  # the probability of the first

    @property
    def expected(self) -> float:
        """The expected cost."""
        return self.share * self.first.expected + (1 - self.share) * self.second.expected

    @property
    def cvar(self) -> float:
        """An upper bound on CVaR: w + E[(C - w)+] / alpha at the budget w of both."""
        return self.share * self.first.cvar + (1 - self.share) * self.second.cvar


@dataclass(frozen=True)
class _Touched:
    """The points that one sweep found, one for every budget w."""

    slope: float
    mean: FloatArray  # (n_levels,)  E[C]
    excess: FloatArray  # (n_levels,)  E[(C - w)+]
    low: FloatArray  # (n_levels,)  a lower bound on mean + slope * excess of every policy
    choice: NDArray[np.generic]


class Mixing:
    """The search for a mixture of low expected cost whose CVaR, as charged, is within a cap."""

    def __init__(self, weighing: Weighing) -> None:
        self.weighing = weighing
        self.weights: list[float] = []  # those that decide; to be tried at a finer step
        self._levels: FloatArray = np.arange(weighing.most + 1, dtype=np.float64)
        self._touched: list[_Touched] = []

    def begin(self, cap: float) -> bool:
        """Begin with the ends of the trade-off; return whether the cheapest one is within a cap."""
        self._touched = [_safest(self.weighing), _touch(self.weighing, self.weighing.cheapest.choice)]
        return self.weighing.cheapest.cvar <= cap

    def search(self, cap: float, most: int) -> None:
        """Look for the points to mix for a cap."""
        steeper = 1.0
        for _ in range(most):
            bound = self._bound(cap)
            value, first, second = _mixed(self._touched, *self._allowed(cap))
            w = int(np.argmin(bound))
            close = CLOSE if self.weighing.prepared.scale.rounded else CLOSED
            if value[w] - bound[w] <= close * abs(value[w]) or value.min() - bound[w] <= close * abs(bound[w]):
                break
            one, other = self._touched[first[w]], self._touched[second[w]]
            fall = float(one.mean[w] - other.mean[w]), float(other.excess[w] - one.excess[w])
            slope = fall[0] / fall[1] if min(fall) > 0 else 0.0
            if any(abs(each.slope - slope) <= 1e-12 * slope for each in self._touched):
                # The points give no new slope, for example if no excess is allowed: the excess has to weigh more.
                slope = steeper = steeper * STEEPER
                if slope > STEEPEST:
                    break
            self.take(slope * self.weighing.alpha, cap)

    def take(self, weight: float, cap: float) -> None:
        """Sweep for a weight."""
        swept = self.weighing.sweep(weight, bounded=False)
        self._touched.append(_touched(self.weighing, weight / self.weighing.alpha, swept))
        value, first, second = _mixed(self._touched, *self._allowed(cap))
        w = int(np.argmin(value))
        slopes = {self._touched[i].slope for i in (first[w], second[w], -1)} - {0.0, np.inf}
        self.weights = [slope * self.weighing.alpha for slope in sorted(slopes)]

    def best(self, cap: float) -> Mixture | None:
        """Return the best mixture found with a CVaR up to a cap."""
        if not self._touched:
            return None
        allowed, margin = self._allowed(cap)
        value, first, second = _mixed(self._touched, allowed, margin)
        w = int(np.argmin(value))
        if not np.isfinite(value[w]):
            return None
        return _mixture(self.weighing, self._touched[first[w]], self._touched[second[w]], w, float(allowed[w]))

    def least_expected(self, upto: float) -> float:
        """Return a lower bound on the expected cost of all mixtures with a true CVaR up to a value."""
        if self.weighing.prepared.scale.rounded:
            return _surely(self.weighing, [weight / self.weighing.alpha for weight in self.weights], upto)
        return self.bound_so_far(upto)

    def bound_so_far(self, upto: float) -> float:
        """Return the same from the sweeps that were finished."""
        if self.weighing.prepared.scale.rounded or not self._touched:
            return self.weighing.explored.least
        return float(self._bound(upto).min())

    def _allowed(self, cap: float) -> tuple[FloatArray, FloatArray]:
        """Return the largest excess within a cap for every budget w, and its rounding error."""
        alpha = self.weighing.alpha
        return alpha * (cap - self._levels), 16 * UNIT * alpha * (cap + self._levels)

    def _bound(self, cap: float) -> FloatArray:
        """Return, for every w, a lower bound on the expected cost within a cap; if costs are rounded, only a guide."""
        allowed, margin = self._allowed(cap)
        bound = np.full(len(self._levels), self.weighing.explored.least)
        for each in self._touched[2:]:
            bound = np.maximum(bound, beneath(each.low, each.slope, allowed))
        bound[(allowed + margin < 0) | (self._touched[0].excess > allowed + margin)] = np.inf
        return bound


def _surely(weighing: Weighing, slopes: list[float], cap: float) -> float:
    """Return a lower bound on the expected cost of all mixtures within a cap, from costs rounded down."""
    prepared, alpha, explored = weighing.prepared, weighing.alpha, weighing.explored
    most = weighing.most
    bound = np.full(most, explored.least)  # row w: for budgets from w to w + 1
    for slope in slopes:
        terms = Terms(1.0, slope)
        low, stopped = surely_above(prepared, weighing.limits, most=most + 1, terms=terms)
        if stopped:
            raise Stopped(stopped, TASK)
        low = low[: most + 1]
        low = beneath(low, slope, alpha * (cap - np.arange(len(low), dtype=np.float64)))
        bound[: len(low) - 1] = np.maximum(bound[: len(low) - 1], np.minimum(low[1:], low[:-1]))
    return float(bound[: max(int(np.floor(cap)) + 1, 1)].min())


def _mixed(
    touched: list[_Touched], allowed: FloatArray, margin: FloatArray
) -> tuple[FloatArray, NDArray[np.int64], NDArray[np.int64]]:
    """Return, for every w, the lowest mean of mixtures within the allowed excess, and the two points mixed."""
    value = np.full(len(allowed), np.inf)
    first, second = np.zeros(len(allowed), dtype=np.int64), np.zeros(len(allowed), dtype=np.int64)
    for i, one in enumerate(touched):
        fits = (one.excess <= allowed + margin) & (allowed >= -margin)
        for j, other in enumerate(touched):
            width = other.excess - one.excess
            share = np.where(width > 0, (other.excess - allowed) / np.where(width > 0, width, 1.0), 1.0)
            share = np.clip(share, 0.0, 1.0)
            mean = np.where(fits, share * one.mean + (1 - share) * other.mean, np.inf)
            better = mean < value
            value, first, second = (
                np.where(better, mean, value),
                np.where(better, i, first),
                np.where(better, j, second),
            )
    return value, first, second


def _mixture(weighing: Weighing, one: _Touched, other: _Touched, w: int, allowed: float) -> Mixture:
    found = [
        Found(float(each.mean[w]), w + float(each.excess[w]) / weighing.alpha, each.choice[: w + 1], w)
        for each in (one, other)
    ]
    width = float(other.excess[w] - one.excess[w])
    share = min(max((float(other.excess[w]) - allowed) / width, 0.0), 1.0) if width > 0 else 1.0
    return Mixture(found[0], found[1], share)


def _safest(weighing: Weighing) -> _Touched:
    """Sweep with the excess as first and the mean as second objective."""
    prepared, worst = weighing.prepared, least_worst_case(weighing.prepared)
    value = worst.value.copy()
    value[prepared.start] = UNREACHED  # budgets beyond the worst case matter, too
    swept = weighing.swept(weighing.explored.expected.base, WorstCase(value, worst.action_value), EXCESS, bounded=False)
    return _touched(weighing, np.inf, swept)


def _touched(weighing: Weighing, slope: float, swept: Swept) -> _Touched:
    low = swept.excess if weighing.prepared.scale.rounded else swept.low  # if rounded, only a guide
    return replace(_touch(weighing, swept.choice), slope=slope, low=low)


def _touch(weighing: Weighing, choice: NDArray[np.generic]) -> _Touched:
    """Evaluate a policy from every budget; above its own budget it plays as at its own."""
    missing = weighing.most + 1 - len(choice)
    if missing > 0:
        choice = np.concatenate([choice, np.repeat(choice[-1:], missing, axis=0)])
    choice = choice[: weighing.most + 1]
    policy = BudgetPolicy.of_rows(weighing.prepared, choice)
    excess, _, mean = backward_from_each(policy, weighing.explored.expected, weighing.limits.without_time)
    return _Touched(0.0, mean, excess, np.full(len(mean), -np.inf), choice)
