"""The lowest expected cost within a limit on CVaR, by drawing one of two policies at the start.

A policy that randomises between two with the same budget w mixes their expected costs and their expected excesses over
w.  So, for one w, the least expected cost subject to ``w + E[(C - w)+] / alpha <= x`` lies on the lower hull of the
points (excess, mean) of all policies, between two of them.  The best w is a level: between two levels the left side is
linear in w for any fixed policy.

A sweep for a slope mu gives, for every w at once, the point of the hull that a line of slope -mu touches, and a line
below which no policy lies: mean >= L(w) - mu excess.  The next slope is that between the two points mixed at the w with
the lowest bound.  The search ends when the best mixture meets that bound.

*Rounded costs.*  The mixture is found on costs rounded up, the lower bound on every policy on costs rounded down.
There L(w) - mu alpha (x - w), as a function of w, drops right after each level and is concave from there to the next.
So between two levels it is at least the smaller of its limits from the right at both.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prudent.engine.sweep.question import EXCESS
from prudent.engine.sweep.task import Swept
from prudent.engine.values.bellman import UNIT
from prudent.engine.values.worst_case import UNREACHED, WorstCase, least_worst_case
from prudent.methods.mean_cvar import BESIDE, CLOSE, CLOSED, Found, Weighing, beneath
from prudent.models.rows import FloatArray
from prudent.policies.chain import backward_from_each
from prudent.policies.policy import BudgetPolicy

STEEPER, STEEPEST = 100.0, 1e6
"""The factor by which slopes grow if the points to mix give no new one, and the steepest slope."""

INSIDE = 1e-9
"""By how much a mixture plays its first policy more often than it must: its excess is known up to rounding errors."""

FAR = 1e100
"""Larger than any excess."""


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
class _Point:
    """The point that one sweep found for every budget w."""

    slope: float
    mean: FloatArray  # (n_levels,)  E[C]
    excess: FloatArray  # (n_levels,)  E[(C - w)+]
    low: FloatArray  # (n_levels,)  a lower bound on mean + slope * excess of every policy, or on the excess alone
    choice: NDArray[np.generic]


class Mixing:
    """The search for a mixture of low expected cost whose CVaR, as charged, is within a cap."""

    def __init__(self, weighing: Weighing) -> None:
        self.weighing = weighing
        self._levels: FloatArray = np.arange(weighing.most + 1, dtype=np.float64)
        self._points = [_point(weighing, np.inf, weighing.explored.swept)]
        self._least = self._points[0].low  # a lower bound on every policy's excess, for every budget
        self._cheapest: Found | None = None
        self._cap, self._mixed = np.nan, 0  # the cap within which points were mixed with each other, and how many were
        self._mean = np.full(len(self._levels), np.inf)  # for every budget, the lowest mean of such mixtures
        self._first, self._second = np.zeros((2, len(self._levels)), dtype=np.int64)  # and of which points

    @property
    def weights(self) -> list[float]:
        """The weights that decide, to be tried at a finer step: on both sides of the one that mixes, if any."""
        slope = self._mixing_slope
        if self._mixed == 0 or not 0 < slope < np.inf:
            return []
        steepest = self._points[self._first[int(np.argmin(self._mean))]].slope
        beside = (-BESIDE,) if steepest == np.inf else (-BESIDE, BESIDE)
        return [slope * self.weighing.alpha * (1 + each) for each in beside]

    def begin(self, cap: float) -> bool:
        """Begin with the cheapest policies; return whether one is within a cap."""
        self._cheapest = self.weighing.cheapest
        return self._cheapest.cvar <= cap

    def search(self, cap: float, most: int) -> None:
        """Look for the points to mix for a cap, from both ends of the trade-off."""
        steeper = 1.0
        if self.begin(cap):
            return
        self._know_least()
        self._points.append(_evaluated(self.weighing, self.weighing.cheapest.choice))
        for _ in range(most):
            bound, mean = self._bound(cap), self._mix(cap)
            w = int(np.argmin(bound))
            close = CLOSE if self.weighing.prepared.scale.rounded else CLOSED
            if mean[w] - bound[w] <= close * abs(mean[w]) or mean.min() - bound[w] <= close * abs(bound[w]):
                break
            slope = self._slope(w)
            if any(abs(each.slope - slope) <= 1e-12 * slope for each in self._points):
                # The points give no new slope, for example if no excess is allowed: the excess has to weigh more.
                slope = steeper = steeper * STEEPER
                if slope > STEEPEST:
                    break
            self.take(slope * self.weighing.alpha, cap)

    def take(self, weight: float, cap: float) -> None:
        """Sweep for a weight."""
        swept = self.weighing.sweep(weight, bounded=False)
        self._points.append(_point(self.weighing, weight / self.weighing.alpha, swept))

    def best(self, cap: float) -> Found | Mixture | None:
        """Return the best mixture found with a CVaR up to a cap, up to ties."""
        if self._cheapest is not None and self._cheapest.cvar <= cap:
            return self._cheapest
        mean, (allowed, _) = self._mix(cap), self._allowed(cap)
        w = int(np.argmin(mean))
        if not np.isfinite(mean[w]):
            return None
        points = self._points[self._first[w]], self._points[self._second[w]]
        first, second = (
            Found(float(each.mean[w]), w + float(each.excess[w]) / self.weighing.alpha, each.choice[: w + 1], w)
            for each in points
        )
        least, most = (float(each.excess[w]) for each in points)
        share = (most - float(allowed[w])) / (most - least) + INSIDE if most > least else 1.0
        if not 0 < share < 1:  # nothing to draw
            return first if share >= 1 else second
        return Mixture(first, second, share)

    def least_expected(self, upto: float) -> float:
        """Return a lower bound on the expected cost of all mixtures with a true CVaR up to a value."""
        if self.weighing.prepared.scale.rounded:
            return _surely(self.weighing, self._mixing_slope, upto)
        if int(np.argmin(self._bound(upto))) >= len(self.weighing.explored.swept.low):
            self._know_least()
        return self.bound_so_far(upto)

    def bound_so_far(self, upto: float) -> float:
        """Return the same from the sweeps that were finished."""
        if self.weighing.prepared.scale.rounded:
            return self.weighing.explored.least
        return float(self._bound(upto).min())

    def _know_least(self) -> None:
        """Sweep for the excess, then the mean, also at budgets that the sweep for CVaR alone did not reach."""
        worst = least_worst_case(self.weighing.prepared)
        value = worst.value.copy()
        value[self.weighing.prepared.start] = UNREACHED  # budgets beyond the worst case matter, too
        worst = WorstCase(value, worst.action_value)
        swept = self.weighing.swept(self.weighing.explored.expected.base, worst, EXCESS, bounded=False)
        self._points.append(_point(self.weighing, np.inf, swept))
        self._least = self._points[-1].low

    @property
    def _mixing_slope(self) -> float:
        """The slope between the two points of the best mixture; if it is no mixture, that of the last sweep."""
        return self._slope(int(np.argmin(self._mean))) or self._points[-1].slope

    def _slope(self, w: int) -> float:
        """Return the slope between the two points mixed at a budget; 0 if it is one point."""
        one, other = self._points[self._first[w]], self._points[self._second[w]]
        fall = float(one.mean[w] - other.mean[w]), float(other.excess[w] - one.excess[w])
        return fall[0] / fall[1] if min(fall) > 0 else 0.0

    def _mix(self, cap: float) -> FloatArray:
        """Return, for every budget, the lowest mean of mixtures of two points within a cap; mix those that are new."""
        if self._cap != cap:
            self._cap, self._mixed = cap, 0
            for row, none in ((self._mean, np.inf), (self._first, 0), (self._second, 0)):
                row[:] = none
        allowed, margin = self._allowed(cap)
        for i in range(self._mixed, len(self._points)):
            for one, other in [pair for j in range(i + 1) for pair in dict.fromkeys(((i, j), (j, i)))]:
                within, beyond = self._points[one], self._points[other]
                fits = (within.excess <= allowed + margin) & (allowed >= -margin)
                width = beyond.excess - within.excess
                share = np.where(width > 0, (beyond.excess - allowed) / np.where(width > 0, width, 1.0), 1.0)
                share = np.clip(share, 0.0, 1.0)
                mean = np.where(fits, share * within.mean + (1 - share) * beyond.mean, np.inf)
                better = mean < self._mean
                self._mean[better], self._first[better], self._second[better] = mean[better], one, other
        self._mixed = len(self._points)
        return self._mean

    def _allowed(self, cap: float) -> tuple[FloatArray, FloatArray]:
        """Return the largest excess within a cap for every budget w, and its rounding error."""
        alpha = self.weighing.alpha
        return alpha * (cap - self._levels), 16 * UNIT * alpha * (cap + self._levels)

    def _bound(self, cap: float) -> FloatArray:
        """Return, for every w, a lower bound on the expected cost within a cap; if costs are rounded, only a guide."""
        allowed, margin = self._allowed(cap)
        bound = np.full(len(self._levels), self.weighing.explored.least)
        for each in self._points:
            if 0 < each.slope < np.inf:
                bound = np.maximum(bound, beneath(each.low, each.slope, allowed))
        bound[(allowed + margin < 0) | (self._least > allowed + margin)] = np.inf
        return bound


def _surely(weighing: Weighing, slope: float, cap: float) -> float:
    """Return a lower bound on the expected cost of all mixtures within a cap, from costs rounded down."""
    alpha, least, most = weighing.alpha, weighing.explored.least, weighing.most
    if not 0 < slope < np.inf:
        return least
    low = weighing.surely(slope, most + 1)[: most + 1]
    low = beneath(low, slope, alpha * (cap - np.arange(len(low), dtype=np.float64)))
    bound = np.full(most, least)  # row w: for budgets from w to w + 1
    bound[: len(low) - 1] = np.maximum(least, np.minimum(low[1:], low[:-1]))
    return float(bound[: max(int(np.floor(cap)) + 1, 1)].min())


def _point(weighing: Weighing, slope: float, swept: Swept) -> _Point:
    """Return the point of a sweep for a slope; it is out of reach for budgets that the sweep did not reach."""
    levels, low = weighing.most + 1, swept.excess if weighing.prepared.scale.rounded else swept.low
    excess = swept.excess if np.isinf(slope) else np.maximum(swept.excess - swept.mean, 0.0) / slope
    more = 0, max(levels - len(excess), 0)
    low, excess = (np.pad(row[:levels], more, constant_values=far) for row, far in ((low, 0.0), (excess, FAR)))
    return _Point(slope, np.pad(swept.mean[:levels], more), excess, low, swept.choice)


def _evaluated(weighing: Weighing, choice: NDArray[np.generic]) -> _Point:
    """Evaluate a policy from every budget; above its own budget it plays as at its own."""
    missing = max(weighing.most + 1 - len(choice), 0)
    choice = np.pad(choice, ((0, missing), (0, 0)), mode="edge")[: weighing.most + 1]
    policy = BudgetPolicy.of_rows(weighing.prepared, choice)
    excess, _, mean = backward_from_each(policy, weighing.explored.expected, weighing.limits.without_time)
    return _Point(0.0, mean, excess, np.full(len(mean), -np.inf), choice)
