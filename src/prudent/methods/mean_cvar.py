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

import numpy as np
from numpy.typing import NDArray

from prudent.engine.prepared import choice_type, restrict_to
from prudent.engine.sweep.bounded import bounded_sweep, without_safety
from prudent.engine.sweep.task import TIE, Swept
from prudent.engine.values.bellman import UNIT
from prudent.engine.values.worst_case import WorstCase
from prudent.kernels.sweep import Base, Terms
from prudent.methods.exact import Explored, explore
from prudent.models.rows import FloatArray
from prudent.policies.chain import backward_from_each
from prudent.policies.policy import BudgetPolicy
from prudent.runtime.limits import Limits, Stopped
from prudent.runtime.progress import Progress

__all__ = ["CLOSED", "TASK", "Found", "Weighing", "beneath", "least_mean_within"]

TASK = "weighing expected cost against CVaR"

CLOSED = 1e-9
"""Relative gain below which a weight shows no new point."""

STEEP = 1e6
"""A weight that stands for CVaR alone."""


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

    stopped = ""  # why the search ended early, if it did

    def __init__(self, explored: Explored, alpha: float, limits: Limits) -> None:
        self.prepared, self.alpha, self.limits = explored.prepared, alpha, limits
        self.explored = self._unless_stopped(explored)
        self.safest = self._at(self.explored.swept.choice, self.explored.budgets(alpha)[0])
        self.cheapest = self._cheapest()
        self.most = int(np.ceil(max(self.cheapest.cvar, self.safest.cvar))) + 1
        least, safe = self.explored.least, self.explored.lower(alpha)
        self.lines: list[tuple[float, float]] = [(0.0, least), (STEEP, least + STEEP * safe)]

    def weigh(self, weight: float, cap: float = -np.inf) -> tuple[Found, Found | None]:
        """Return the best point for a weight, and the best point of the sweep with a CVaR up to a cap.

        It adds to ``lines`` the line below which no policy lies.
        """
        prepared, expected, slope = self.prepared, self.explored.expected, weight / self.alpha
        terms = Terms(1.0, slope)
        base = Base((1 + slope) * expected.value, (1 + slope) * expected.lower * (1 - 4 * UNIT), expected.value)
        swept = self.swept(base, without_safety(prepared), terms)
        low = swept.low
        budget = np.arange(len(low))
        beyond = weight * (len(low) - prepared.scale.rounded) + self.explored.least
        self.lines.append((weight, min(float((weight * budget + low).min()) * (1 - 8 * UNIT), beyond)))
        budget = np.arange(len(swept.excess))
        best = self._at(swept.choice, int(np.argmin(weight * budget + swept.excess)))
        cvar = budget + (swept.excess - swept.mean) / weight
        within = np.where(cvar <= cap, swept.mean, np.inf)
        if not np.isfinite(within.min()):
            return best, None
        seen = self._at(swept.choice, int(np.argmin(within)))
        return best, seen if seen.cvar <= cap else None

    def swept(self, base: Base, worst: WorstCase, terms: Terms, *, bounded: bool = True) -> Swept:
        """Sweep all budgets that matter."""
        found = bounded_sweep(self.prepared, base, worst, self.limits, most=self.most, terms=terms, bounded=bounded)
        if found.stopped:
            raise Stopped(found.stopped, TASK)
        return found

    def _at(self, choice: NDArray[np.generic], budget: int) -> Found:
        choice = choice[: budget + 1]
        policy = BudgetPolicy.of_rows(self.prepared, choice)
        excess, _, mean = backward_from_each(policy, self.explored.expected)[:, budget].tolist()
        return Found(mean, budget + excess / self.alpha, choice, budget)

    def _cheapest(self) -> Found:
        """Return the minimal CVaR among policies of lowest expected cost: the exact method on their actions alone."""
        prepared, least = self.prepared, self.explored.expected
        after = np.bincount(
            prepared.outcome_action,
            weights=prepared.probability * least.value[prepared.successor],
            minlength=prepared.n_actions,
        )
        here = least.value[prepared.action_state]
        used = prepared.mean_cost + after <= here * (1 + TIE)
        used |= prepared.playing(least.choice)
        only = restrict_to(prepared, used)
        found = self._unless_stopped(explore(only, self.alpha, self.limits, bounded=False))
        kept = np.append(np.flatnonzero(used), 0)  # goals have no action
        action = kept[only.action_start[:-1] + found.swept.choice]
        choice = np.where(prepared.is_goal, 0, action - prepared.action_start[:-1])
        return self._at(choice.astype(choice_type(prepared)), found.budgets(self.alpha)[0])

    def _unless_stopped(self, explored: Explored) -> Explored:
        if explored.stopped:
            raise Stopped(explored.stopped, TASK)
        return explored


def least_mean_within(weighing: Weighing, cap: float, sure: float, most: int) -> tuple[Found, float]:
    """Return the best point found with a CVaR up to a cap, and a lower bound on the expected cost of all such policies.

    The bound is for ``sure``: the cap, raised by more than its rounding error.
    """
    left, right = weighing.cheapest, weighing.safest
    if left.cvar <= cap:
        return left, weighing.explored.least
    best = right
    with Progress(TASK, total=most, unit="weights") as progress:
        for tried in range(most):
            if left.cvar <= right.cvar or right.expected <= left.expected:
                break
            progress.at(tried)
            weight = (right.expected - left.expected) / (left.cvar - right.cvar)
            try:
                between, seen = weighing.weigh(weight, cap)
            except Stopped as stopped:
                weighing.stopped = stopped.reason
                break
            best = min([best, *([seen] if seen else [])], key=lambda point: point.expected)
            if between.value(weight) >= left.value(weight) * (1 - CLOSED):
                break
            left, right = (left, between) if between.cvar <= cap else (between, right)
            if right.expected < best.expected:
                best = right
    return best, max(float(beneath(np.array(bound), weight, sure)) for weight, bound in weighing.lines)


def beneath(bound: FloatArray, slope: float, allowed: float | FloatArray) -> FloatArray:
    """Return ``bound - slope * allowed``, rounded down by more than its rounding error."""
    less = slope * np.asarray(allowed)
    return bound - less - 8 * UNIT * (np.abs(bound) + np.abs(less))
