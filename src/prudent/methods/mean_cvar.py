"""Weighing the expected cost against CVaR: the sweeps behind the trade-off.

For a weight m, with mu = m / alpha and J the least E[C + mu (C - b)+] from a state with budget b,

    min over policies of  E[C] + m CVaR(C)  =  min over w of  m w + J(start, w)
    J(s, b) = (1 + mu) V(s) - mu b                                             for b <= 0
    J(s, b) = min over a of  sum over outcomes of  p (c + J(s', b - c))          for b > 0

This is the sweep of the exact method with another first objective; one sweep serves all w.

*Guarantee.*  The sweep's certified lower bound L(m) is a line below which no policy lies: E + m CVaR >= L(m).  Hence
no policy with a CVaR up to x has an expected cost below max over m of L(m) - m x.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from prudent.engine.prepared import choice_type, restrict_to
from prudent.engine.sweep.bounded import bounded_sweep, surely_above
from prudent.engine.sweep.question import TIE, Question, without_safety
from prudent.engine.sweep.task import Swept
from prudent.engine.values.bellman import UNIT
from prudent.engine.values.worst_case import UNREACHED, WorstCase
from prudent.kernels.questions import Base, Terms
from prudent.methods.exact import Explored, explore
from prudent.models.rows import FloatArray
from prudent.policies.chain import backward_from_each
from prudent.policies.policy import BudgetPolicy
from prudent.runtime.limits import Limits, Stopped
from prudent.runtime.progress import Progress

TASK = "weighing expected cost against CVaR"

CLOSED = 1e-9
"""Relative gain below which a weight shows no new point."""

CLOSE = 1e-5
"""The same where costs are rounded."""

STEEP = 1e6
"""A weight that stands for CVaR alone."""

BESIDE = 1e-3
"""How far, relatively, a weight is from one at which two policies are equally good, so that one of them is better."""


@dataclass(frozen=True)
class Found:
    """An expected cost and a CVaR, in levels, and the policy that attains them."""

    expected: float
    cvar: float
    choice: NDArray[np.generic]  # of all budgets up to the policy's own
    budget: int

    def value(self, weight: float) -> float:
        """Return the expected cost plus ``weight`` times CVaR."""
        return self.expected + weight * self.cvar


class Weighing:
    """Sweeps for one model and one alpha, for any weight."""

    def __init__(self, explored: Explored, alpha: float, limits: Limits, upto: float | None = None) -> None:
        """Start from the sweeps for CVaR alone; if ``upto`` is given, only policies with a CVaR up to it matter."""
        self.prepared, self.alpha, self.limits, self.upto = explored.prepared, alpha, limits, upto
        self.explored = explored.finished(TASK)
        least, safe = self.explored.least, self.explored.lower(alpha)
        self.lines: list[tuple[float, float]] = [(0.0, least), (STEEP, least + STEEP * safe)]

    @cached_property
    def safest(self) -> Found:
        """The lowest expected cost among policies of minimal CVaR, up to ties."""
        return self._swept_at(self.explored, self.explored.swept.choice)

    @cached_property
    def cheapest(self) -> Found:
        """The minimal CVaR among policies of lowest expected cost; if that is above ``upto``, any of them.

        The exact method finds it, up to ties, from their actions alone.
        """
        prepared, least = self.prepared, self.explored.expected
        after = np.bincount(
            prepared.outcome_action,
            weights=prepared.probability * least.value[prepared.successor],
            minlength=prepared.n_actions,
        )
        here = least.value[prepared.action_state]
        used = (prepared.mean_cost + after <= here * (1 + TIE)) | prepared.playing(least.choice)
        only = restrict_to(prepared, used)
        most = UNREACHED if self.upto is None else self.most
        found = explore(only, self.alpha, self.limits, bounded=False, most=most).finished(TASK)
        state, kept = prepared.action_state[used], np.flatnonzero(used)
        number = np.zeros((prepared.n_states, int(np.diff(only.action_start).max())), dtype=choice_type(prepared))
        number[state, np.arange(len(kept)) - only.action_start[state]] = kept - prepared.action_start[state]
        choice = number[np.arange(prepared.n_states), found.swept.choice[: found.budgets(self.alpha)[0] + 1]]
        return self._swept_at(found, choice)

    @cached_property
    def most(self) -> int:
        """The largest budget that matters: no policy's VaR is above its CVaR."""
        upto = max(self.cheapest.cvar, self.safest.cvar) if self.upto is None else self.upto
        return int(np.ceil(upto)) + 1

    def weigh(self, weight: float) -> Found:
        """Return the best point for a weight; add to ``lines`` the line below which no policy lies."""
        return self.valued(_best(weight, self.sweep(weight)))

    def sweep(self, weight: float, *, bounded: bool = True) -> Swept:
        """Sweep for a weight; unless costs are rounded and ``bounded`` is false, add its line to ``lines``."""
        expected, slope = self.explored.expected, weight / self.alpha
        base = Base((1 + slope) * expected.value, (1 + slope) * expected.lower * (1 - 4 * UNIT), expected.value)
        swept = self.swept(base, without_safety(self.prepared), Terms(1.0, slope), bounded=bounded)
        if bounded or not self.prepared.scale.rounded:
            self._add_line(weight, swept.low)
        return swept

    def bound(self, weight: float) -> None:
        """Add to ``lines`` the line for a weight, by the sweep that ``sweep`` leaves out if it is not bounded."""
        self._add_line(weight, self.surely(weight / self.alpha, self.most))

    def surely(self, slope: float, most: int) -> FloatArray:
        """Return a lower bound on the expected cost plus ``slope`` times the excess, for budgets up to ``most``."""
        low, stopped = surely_above(self.prepared, self.limits, most=most, terms=Terms(1.0, slope))
        if stopped:
            raise Stopped(stopped, TASK)
        return low

    def valued(self, found: Found) -> Found:
        """Return a point with the values of its policy, where a sweep has given them up to ties."""
        policy = BudgetPolicy.of_rows(self.prepared, found.choice)
        values = backward_from_each(policy, self.explored.expected, self.limits.without_time)
        excess, _, mean = values[:, found.budget].tolist()
        return Found(mean, found.budget + excess / self.alpha, found.choice, found.budget)

    def swept(self, base: Base, worst: WorstCase, terms: Terms, *, bounded: bool = True) -> Swept:
        """Sweep all budgets that matter."""
        question = Question(base, self.explored.expected.choice, worst, terms=terms)
        found = bounded_sweep(self.prepared, question, self.limits, most=self.most, bounded=bounded)
        if found.stopped:
            raise Stopped(found.stopped, TASK)
        return found

    def _add_line(self, weight: float, low: FloatArray) -> None:
        bound = float((weight * np.arange(len(low)) + low).min()) * (1 - 8 * UNIT)
        if self.upto is None:  # otherwise larger budgets do not matter
            bound = min(bound, weight * (len(low) - self.prepared.scale.rounded) + self.explored.least)
        self.lines.append((weight, bound))

    def _swept_at(self, explored: Explored, choice: NDArray[np.generic]) -> Found:
        """Return the best point of a sweep for CVaR alone, up to ties; ``choice`` has its actions."""
        budget = explored.budgets(self.alpha)[0]
        excess, mean = float(explored.swept.excess[budget]), float(explored.swept.mean[budget])
        return Found(mean, budget + excess / self.alpha, choice[: budget + 1], budget)


class Single:
    """The search for a policy of low expected cost whose CVaR, as charged, is within a cap."""

    def __init__(self, weighing: Weighing) -> None:
        self.weighing = weighing
        self._known: list[Found] = []
        self._sweeps: list[tuple[float, Swept]] = []  # the last, and the last with a best point in the cap

    @property
    def weights(self) -> list[float]:
        """The weights that decide, to be tried at a finer step."""
        return [weight * (1 + BESIDE) for weight, _ in self._sweeps[-1:]]

    def begin(self, cap: float) -> bool:
        """Begin with the cheapest policies; return whether one is within a cap."""
        self._known = [self.weighing.cheapest]
        return self.weighing.cheapest.cvar <= cap

    def search(self, cap: float, most: int) -> None:
        """Look for the weight at which policies on both sides of a cap are best, by dichotomy."""
        left, right = self.weighing.cheapest, self.weighing.safest
        close = CLOSE if self.weighing.prepared.scale.rounded else CLOSED
        with Progress(TASK, total=most, unit="weights") as progress:
            for tried in range(most):
                if left.cvar <= max(cap, right.cvar) or right.expected <= left.expected:
                    break
                progress.at(tried)
                weight = (right.expected - left.expected) / (left.cvar - right.cvar)
                between = self.take(weight, cap)
                if between.value(weight) >= left.value(weight) * (1 - close):
                    break
                left, right = (left, between) if between.cvar <= cap else (between, right)

    def take(self, weight: float, cap: float) -> Found:
        """Sweep for a weight; return its best point, whatever its CVaR."""
        swept = self.weighing.sweep(weight, bounded=False)
        self._sweeps = [(m, other) for m, other in self._sweeps if _best(m, other).cvar <= cap][-1:]
        self._sweeps.append((weight, swept))
        self._known += [each for each in [_within(weight, swept, cap)] if each]
        self._known = sorted((each for each in self._known if each.cvar <= cap), key=lambda each: each.expected)[:2]
        return _best(weight, swept)

    def best(self, cap: float) -> Found | None:
        """Return the best point found with a CVaR up to a cap, up to ties."""
        known = [each for each in self._known if each.cvar <= cap]
        known += [each for weight, swept in self._sweeps if (each := _within(weight, swept, cap))]
        return min(known, key=lambda each: each.expected, default=None)

    def least_expected(self, upto: float) -> float:
        """Return a lower bound on the expected cost of all policies with a true CVaR up to a value."""
        if self.weighing.prepared.scale.rounded and self._sweeps:
            self.weighing.bound(min(weight for weight, _ in self._sweeps))
        return self.bound_so_far(upto)

    def bound_so_far(self, upto: float) -> float:
        """Return the same from the sweeps that were finished."""
        return max(float(beneath(np.array(bound), weight, upto)) for weight, bound in self.weighing.lines)


def _best(weight: float, swept: Swept) -> Found:
    """Return the best point of the sweep for a weight, up to ties."""
    return _point(weight, swept, int(np.argmin(weight * np.arange(len(swept.excess)) + swept.excess)))


def _within(weight: float, swept: Swept, cap: float) -> Found | None:
    """Return the point of lowest expected cost in the sweep for a weight, of those with a CVaR up to a cap."""
    cvar = np.arange(len(swept.excess)) + (swept.excess - swept.mean) / weight
    mean = np.where(cvar <= cap, swept.mean, np.inf)
    return _point(weight, swept, int(np.argmin(mean))) if np.isfinite(mean.min()) else None


def _point(weight: float, swept: Swept, budget: int) -> Found:
    mean, excess = float(swept.mean[budget]), float(swept.excess[budget] - swept.mean[budget])
    return Found(mean, budget + excess / weight, swept.choice[: budget + 1], budget)


def beneath(bound: FloatArray, slope: float, allowed: float | FloatArray) -> FloatArray:
    """Return ``bound - slope * allowed``, rounded down by more than its rounding error."""
    less = slope * np.asarray(allowed)
    return bound - less - 8 * UNIT * (np.abs(bound) + np.abs(less))
