"""The least expected cost within a limit on CVaR, by drawing one of two policies at the start.

A policy that randomises between two with the same budget w mixes their expected costs and their expected excesses over
w.  So, for one w, the least expected cost subject to ``w + E[(C - w)+] / alpha <= x`` lies on the lower hull of the
points (excess, mean) of all policies, between two of them.  On a lattice the best w is on it: for one policy the limit
is linear between two levels, so what is within it in between is so at one of them.

A sweep for a slope mu gives, for every w at once, the point of the hull that mu touches, and a line below which no
policy lies: mean >= L(w) - mu excess.  The next slope is the one between the two points that are best at the w whose
bound is least; it ends when the best mixture meets that bound.

*Rounded costs.*  The mixture is found on costs rounded up, where its excess is at least the true one.  What surely lies
below every policy comes from costs rounded down.  There, as a function of w, L(w) - mu alpha (x - w) falls by a jump
right after each level and is concave from there to the next, so between two levels it is at least the lesser of its
limits from the right of both.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from prudent.engine.sweep.bounded import surely_above, without_safety
from prudent.engine.sweep.task import EXCESS, Swept
from prudent.engine.values.bellman import UNIT
from prudent.engine.values.worst_case import UNREACHED, WorstCase, least_worst_case
from prudent.kernels.sweep import Base, Terms
from prudent.methods.mean_cvar import Found, Weighing, beneath
from prudent.models.rows import FloatArray
from prudent.policies.chain import backward_from_each
from prudent.policies.policy import BudgetPolicy
from prudent.runtime.limits import Stopped

__all__ = ["Mixture", "mixed_mean_within"]

CLOSED = 1e-9
"""Relative distance of the best mixture to its bound at which the search ends."""

STEEPER, STEEPEST = 100.0, 1e6
"""How much steeper slopes get where points to mix show none, and how steep at most."""


@dataclass(frozen=True)
class Mixture:
    """Two policies with the same budget, one of which is drawn at the start."""

    first: Found
    second: Found
    share: float  # the chance of the first
    bound: float  # what no policy within the limit can beat, randomised or not

    @property
    def expected(self) -> float:
        """The expected cost."""
        return self.share * self.first.expected + (1 - self.share) * self.second.expected

    @property
    def cvar(self) -> float:
        """What CVaR is at most: the value of the budget that both have."""
        return self.share * self.first.cvar + (1 - self.share) * self.second.cvar


@dataclass(frozen=True)
class _Touched:
    """What one sweep found, for every budget w."""

    slope: float
    mean: FloatArray  # (n_levels,)  E[C]
    excess: FloatArray  # (n_levels,)  E[(C - w)+]
    low: FloatArray  # (n_levels,)  at most mean + slope * excess of every policy
    choice: NDArray[np.generic]


def mixed_mean_within(weighing: Weighing, cap: float, sure: float, most: int) -> Mixture:
    """Return the best mixture found whose CVaR is at most a cap, and the bound that proves it.

    ``sure`` is the cap, rounded up by more than it can be wrong: that is what the bound is for.
    """
    alpha, levels = weighing.alpha, np.arange(weighing.most + 1)
    allowed: FloatArray = (alpha * (cap - levels)).astype(np.float64)  # what the excess may be
    touched = [_safest(weighing), _touch(weighing, weighing.cheapest.choice)]
    bound = np.full(len(levels), weighing.explored.least)
    hair: FloatArray = (16 * UNIT * alpha * (cap + levels)).astype(np.float64)  # what rounding may do to the allowed
    surely: FloatArray = (alpha * (sure - levels)).astype(np.float64) + hair
    bound[(surely < 0) | (touched[0].excess > surely)] = np.inf
    steeper = 1.0
    for _ in range(most):
        value, first, second = _mixed(touched, allowed, hair)
        w = int(np.argmin(bound))
        if value[w] - bound[w] <= CLOSED * abs(value[w]) or value.min() - bound[w] <= CLOSED * abs(bound[w]):
            break
        one, other = touched[first[w]], touched[second[w]]
        fall = float(one.mean[w] - other.mean[w]), float(other.excess[w] - one.excess[w])
        slope = fall[0] / fall[1] if min(fall) > 0 else 0.0
        if any(abs(each.slope - slope) <= 1e-12 * slope for each in touched):
            # Nothing to mix, as where there is no allowed at all: excess has to weigh more.
            slope = steeper = steeper * STEEPER
            if slope > STEEPEST:
                break
        try:
            touched.append(_weighed(weighing, slope))
        except Stopped as stopped:
            weighing.stopped = stopped.reason
            break
        bound = np.where(
            np.isinf(bound), np.inf, np.maximum(bound, beneath(touched[-1].low, slope, allowed + alpha * (sure - cap)))
        )
    value, first, second = _mixed(touched, allowed, hair)
    w = int(np.argmin(value))
    least = float(bound.min())
    if weighing.prepared.scale.rounded:
        least = _surely(weighing, [each.slope for each in touched[2:]], sure)
    return _mixture(weighing, touched[first[w]], touched[second[w]], w, float(allowed[w]), least)


def _surely(weighing: Weighing, slopes: list[float], cap: float) -> float:
    """Return what no mixture within a cap can beat, whatever rounding does."""
    prepared, alpha, explored = weighing.prepared, weighing.alpha, weighing.explored
    most = weighing.most
    bound = np.full(most, explored.least)  # for budgets between two levels
    for slope in slopes:
        terms = Terms(1.0, slope)
        low, stopped = surely_above(prepared, weighing.limits, most=most + 1, terms=terms)
        if stopped:
            weighing.stopped = stopped
            break
        low = low[: most + 1]
        low = beneath(low, slope, alpha * (cap - np.arange(len(low), dtype=np.float64)))
        bound[: len(low) - 1] = np.maximum(bound[: len(low) - 1], np.minimum(low[1:], low[:-1]))
    return float(bound[: max(int(np.floor(cap)) + 1, 1)].min())


def _mixed(
    touched: list[_Touched], allowed: FloatArray, hair: FloatArray
) -> tuple[FloatArray, NDArray[np.int64], NDArray[np.int64]]:
    """Return, for every w, the least mean of mixtures within the allowed, and which two points are mixed."""
    value = np.full(len(allowed), np.inf)
    first, second = np.zeros(len(allowed), dtype=np.int64), np.zeros(len(allowed), dtype=np.int64)
    for i, one in enumerate(touched):
        fits = (one.excess <= allowed + hair) & (allowed >= -hair)
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


def _mixture(weighing: Weighing, one: _Touched, other: _Touched, w: int, allowed: float, bound: float) -> Mixture:
    found = [
        Found(float(each.mean[w]), w + float(each.excess[w]) / weighing.alpha, each.choice[: w + 1], w)
        for each in (one, other)
    ]
    width = float(other.excess[w] - one.excess[w])
    share = min(max((float(other.excess[w]) - allowed) / width, 0.0), 1.0) if width > 0 else 1.0
    return Mixture(found[0], found[1], share, bound)


def _safest(weighing: Weighing) -> _Touched:
    """Sweep the excess first, the mean second."""
    prepared, worst = weighing.prepared, least_worst_case(weighing.prepared)
    value = worst.value.copy()
    value[prepared.start] = UNREACHED  # budgets beyond the worst case matter, too
    swept = weighing.swept(weighing.explored.expected.base, WorstCase(value, worst.action_value), EXCESS, bounded=False)
    return _touched(weighing, np.inf, swept)


def _weighed(weighing: Weighing, slope: float) -> _Touched:
    expected = weighing.explored.expected
    base = Base((1 + slope) * expected.value, (1 + slope) * expected.lower * (1 - 4 * UNIT), expected.value)
    swept = weighing.swept(base, without_safety(weighing.prepared), Terms(1.0, slope), bounded=False)
    return _touched(weighing, slope, swept)


def _touched(weighing: Weighing, slope: float, swept: Swept) -> _Touched:
    low = swept.excess if weighing.prepared.scale.rounded else swept.low  # a guide for the search, where it is no bound
    return replace(_touch(weighing, swept.choice), slope=slope, low=low)


def _touch(weighing: Weighing, choice: NDArray[np.generic]) -> _Touched:
    """Evaluate a policy from every budget; budgets beyond its own are played as its own."""
    missing = weighing.most + 1 - len(choice)
    if missing > 0:
        choice = np.concatenate([choice, np.repeat(choice[-1:], missing, axis=0)])
    policy = BudgetPolicy(weighing.prepared, choice[: weighing.most + 1])
    excess, _, mean = backward_from_each(policy, weighing.explored.expected)
    return _Touched(0.0, mean, excess, np.full(len(mean), -np.inf), policy.choice)
