"""The trade-off between expected cost and CVaR.

The points, each best for some weight of CVaR against expected cost, are found by dichotomy: the weight at which two
neighbours are equally good either yields a better point between them or shows that there is none
(:mod:`prudent.methods.mean_cvar`).  One end is the minimal CVaR among policies of lowest expected cost, the other the
lowest expected cost among policies of minimal CVaR.
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from prudent.errors import PrudentError, as_number, whole_number
from prudent.methods.mean_cvar import CLOSED, TASK, Found, Weighing, beneath
from prudent.models.ssp import SSP, check_model
from prudent.planning.bounds import Stop, Target, bracket_below, stage_of
from prudent.planning.cvar import explored, only_at_hand, unswept
from prudent.planning.cvar_limit import limited
from prudent.planning.job import begin
from prudent.planning.objective import solution_of
from prudent.planning.options import Options
from prudent.planning.plans import plan_of, stopped_late
from prudent.planning.refine import chance_step
from prudent.policies.distribution import check_alpha
from prudent.policies.own_tail import own_tail
from prudent.policies.policy import BudgetPolicy
from prudent.results.plan import Plan
from prudent.runtime.limits import Limits, Stopped
from prudent.runtime.progress import Progress
from prudent.runtime.tables import Framed, Numbers, Table, at_least, at_most, certain, number

STATUS = {
    "within_gap": "no policy lies below the points and the lines between them by more than the tolerance",
    "gap_not_reached": "a policy may lie below the points or the lines between them by more than the tolerance; raise "
    "most= or tolerance=, or give a finer step=",
    "interrupted": "stopped before the end; the points found so far and the bounds are valid",
}
"""Each status of a frontier, with its meaning and what to change."""


@dataclass(frozen=True)
class FrontierPoint:
    """A policy that is best for some weight of CVaR against expected cost.

    Examples
    --------
    >>> import prudent
    >>> frontier = prudent.frontier(prudent.domains.figure_2(), alpha=0.1)
    >>> [(round(point.cvar, 6), point.policy("s1")) for point in frontier.points]
    [(14.5, 'c'), (10.0, 'd')]
    """

    expected: float
    cvar: float  # an estimate if costs were rounded: runs charged the same amount count at their mean; nan if unknown
    policy: BudgetPolicy


@dataclass(frozen=True, eq=False, repr=False)
class Frontier(Numbers, Framed):
    """Points of the trade-off between expected cost and CVaR; the result of :func:`prudent.frontier`.

    Examples
    --------
    >>> import prudent
    >>> frontier = prudent.frontier(prudent.domains.figure_2(), alpha=0.1)
    >>> [(round(point.expected, 9), round(point.cvar, 9)) for point in frontier.points]
    [(1.9, 14.5), (4.06, 10.0)]
    """

    model: SSP
    alpha: float
    points: tuple[FrontierPoint, ...]  # by rising expected cost and falling CVaR
    lines: tuple[tuple[float, float], ...]  # (m, L): no policy has expected cost + m CVaR below L
    lower: float  # lower bound on the optimal CVaR
    gap: float  # no policy's expected cost is below the points, or the lines between them, by more; inf if unknown
    status: str  # a key of STATUS
    step: float  # the step of the costs used for planning
    seconds: float
    notes: tuple[str, ...] = ()  # further information for the user, such as rounded costs

    @property
    def message(self) -> str:
        """The meaning of the status, and what to change."""
        return STATUS[self.status]

    def plan(self, i: int) -> Plan:
        """Return point ``i`` as a plan, without solving again; its limit ``max_cvar`` is its own CVaR.

        No plan within that limit has an expected cost below ``expected_lower``.  The status compares this bound with
        the plan's own expected cost, using the default gap of :func:`prudent.solve`.  Where a time limit left the CVaR
        of the only point unknown, the plan has no limit.

        Examples
        --------
        >>> import prudent
        >>> frontier = prudent.frontier(prudent.domains.figure_2(), alpha=0.1)
        >>> frontier.plan(0)
        <Plan for figure-2, exact, alpha 0.1: optimal, CVaR 14.5 (optimal 10.0 to 14.5), VaR 10, expected cost 1.9>
        """
        n = len(self.points)
        if isinstance(i, bool) or not isinstance(i, int | np.integer) or not -n <= i < n:
            raise PrudentError(f"i is {i!r}; there are {n} points, so it must be a whole number from 0 to {n - 1}")
        point = self.points[i]
        prepared, alone = point.policy.prepared, np.isnan(point.cvar)
        if alone:
            stage = unswept(prepared, self.alpha)
        else:
            stage = stage_of(prepared, solution_of(point.policy, self.alpha), self.alpha)
        plan = plan_of(self.model, "exact", self.alpha, replace(stage, seconds=self.seconds))
        if alone:
            return plan
        limit = plan.upper if np.isfinite(plan.upper) else point.cvar
        least = min(max(self.least_expected(limit), plan.expected_lower), plan.expected)
        plan = replace(plan, lower=self.lower, expected_lower=least, notes=(*plan.notes, "a point of a frontier"))
        return limited(plan, limit, Target(), interrupted=self.status == "interrupted")

    def least_expected(self, max_cvar: float) -> float:
        """Return a lower bound on the expected cost of policies with at most this CVaR; infinite if there are none.

        Examples
        --------
        >>> import prudent
        >>> frontier = prudent.frontier(prudent.domains.figure_2(), alpha=0.1)
        >>> round(frontier.least_expected(12), 6)  # between the two points of this frontier
        3.1
        """
        if max_cvar < self.lower:
            return float("inf")  # there is no such policy
        return max(float(beneath(np.array(bound), weight, max_cvar)) for weight, bound in self.lines)

    def _content(self) -> dict[str, Any]:
        about = {name: getattr(self, name) for name in ("alpha", "status", "lower", "gap", "step", "seconds", "notes")}
        points = [{"expected": point.expected, "cvar": point.cvar} for point in self.points]
        return {"model": self.model.name, **about, "points": points}

    def _columns(self) -> dict[str, Any]:
        return {name: np.array([getattr(point, name) for point in self.points]) for name in ("expected", "cvar")}

    def _table(self) -> Table:
        prices = [(b.expected - a.expected) / (a.cvar - b.cvar) for a, b in pairwise(self.points)]
        paid = ["", *(f"{price:,.4g}" for price in prices)]
        gap = at_most(self.gap, certain(self.gap))
        below = f"no plan's expected cost is below these points, or the lines between them, by more than {gap}"
        if np.isinf(self.gap):
            below = "how far a plan's expected cost or CVaR may be below this point is not known"
        lower = at_least(self.lower, certain(self.points[-1].cvar - self.lower, self._money))
        return Table(
            f"{self.model.name}, alpha {self.alpha:g}, {self.seconds:.3g} s",
            tuple((*self._shown(p), price) for p, price in zip(self.points, paid, strict=True)),
            "ddd",
            head=("expected cost", "CVaR", "extra expected cost per unit of CVaR saved"),
            notes=(below, f"no plan's CVaR is below {lower}", f"{self.status}: {self.message}", *self.notes),
        )

    def __repr__(self) -> str:
        first, last = self._shown(self.points[0]), self._shown(self.points[-1])
        return (
            f"<Frontier for {self.model.name}, alpha {self.alpha:g}: {len(self.points)} points, expected cost "
            f"{first[0]} to {last[0]}, CVaR {first[1]} to {last[1]}>"
        )

    @property
    def _money(self) -> bool:
        return self.points[0].policy.prepared.scale.money

    def _shown(self, point: FrontierPoint) -> tuple[str, str]:
        """Return a point as text; where costs were rounded, the CVaR is an estimate."""
        exact = certain(0.0, self._money)
        rounded = point.policy.prepared.scale.rounded
        return number(point.expected, exact), number(point.cvar, certain(self.step, self._money) if rounded else exact)


def frontier(
    model: SSP,
    alpha: float,
    *,
    tolerance: float = 5e-3,
    most: int = 100,
    step: float | None = None,
    memory: int | float | str | None = None,
    time_limit: float | None = None,
    threads: int | None = None,
) -> Frontier:
    """Return trade-offs of expected cost and CVaR, on their lower convex hull, with a policy for each.

    Parameters
    ----------
    model, alpha
        As in :func:`prudent.solve`.
    tolerance : float
        Add points until no policy's expected cost can be below the straight line between two neighbours by more than
        this fraction of the range of expected costs; 0 finds all points.
    most : int
        The largest number of weights of CVaR to try.  ``gap`` bounds by how much a policy that was not found can
        improve on the points and the lines between them.
    step, memory, time_limit, threads : optional
        As in :func:`prudent.solve`; costs without a common step are always rounded.  At the time limit the points found
        so far are returned; if there is none, a single plan with bounds, whose expected cost and CVaR may be unknown.

    Examples
    --------
    >>> import prudent
    >>> prudent.frontier(prudent.domains.figure_2(), alpha=0.1)
    <Frontier for figure-2, alpha 0.1: 2 points, expected cost 1.9 to 4.06, CVaR 14.5 to 10>
    """
    given = locals()
    check_model(model)
    alpha = check_alpha(alpha)
    tolerance = as_number("tolerance", tolerance, "a number, at least 0", lambda x: x >= 0)
    whole_number("most", most, 1)
    job = begin(model, alpha, Options.of("frontier", given))
    with job.stopping():
        try:
            weighing = Weighing(explored(job, TASK, chance_step), alpha, job.limits)
        except Stopped as stopped:
            hand = only_at_hand(job, stopped)
            scale, lower, notes = hand.prepared.scale, hand.bracket.lower, (*model.notes, *hand.notes)
            alone = (FrontierPoint(scale.in_units(hand.found.expected), np.nan, hand.found.policy),)
            about = lower, np.inf, "gap_not_reached", scale.step, job.seconds, notes
            return Frontier(model, alpha, alone, ((0.0, lower),), *about)
        prepared, lines, found = weighing.prepared, weighing.lines, [weighing.valued(weighing.safest)]
        enough, ended, closed = 0.0, "", set[tuple[float, float]]()
        try:
            found = _undominated([weighing.valued(weighing.cheapest), *found])
            enough = tolerance * (found[-1].expected - found[0].expected)
            with Progress("weighing expected cost and CVaR", total=most, unit="weights") as progress:
                for tried in range(most):
                    left, right, gap = _widest(found, lines, closed)
                    if gap <= enough:
                        break
                    weight = (right.expected - left.expected) / (left.cvar - right.cvar)
                    between = weighing.weigh(weight)
                    if between.value(weight) < left.value(weight) * (1 - CLOSED):
                        found = _undominated([*found, between])
                    else:
                        closed.add((left.cvar, right.cvar))
                    progress.at(tried)
        except Stopped as stopped:
            ended = stopped.reason
        # How far an expected cost may be below the points, or below the straight lines between them.
        below = (point.expected - max(bound - weight * point.cvar for weight, bound in lines) for point in found)
        gap = max(_widest(found, lines, set())[2], *below, 0.0)
        rest = job.limits.for_the_rest
        points = tuple(_point(weighing, point, rest) for point in found)
    notes = tuple(f"{note}; CVaRs are estimates, and plan(i) has their bounds" for note in prepared.scale.notes)
    if ended == Stop.TIME:
        notes += (stopped_late(job.limits),)
    cheapest = max(abs(points[0].expected), prepared.scale.level_size) / prepared.scale.level_size
    status = "within_gap" if gap <= enough * (1 + CLOSED) + CLOSED * cheapest else "gap_not_reached"
    return Frontier(
        model=model,
        alpha=alpha,
        points=points,
        # Expected cost and CVaR are both measured from best luck.
        lines=tuple((m, (1 + m) * bracket_below(prepared, bound / (1 + m))) for m, bound in lines),
        lower=bracket_below(prepared, weighing.explored.lower(alpha)),
        gap=gap * prepared.scale.level_size,
        status="interrupted" if ended == Stop.INTERRUPTED else status,
        step=prepared.scale.step,
        seconds=job.seconds,
        notes=(*model.notes, *notes),
    )


def _widest(
    found: list[Found], lines: list[tuple[float, float]], closed: set[tuple[float, float]]
) -> tuple[Found, Found, float]:
    """Return the neighbours whose straight line may be furthest above the expected cost, and this distance."""
    widest = found[0], found[-1], 0.0
    weight, bound = np.array(lines).T
    for left, right in pairwise(found):
        if (left.cvar, right.cvar) in closed:
            continue
        slope = (right.expected - left.expected) / (left.cvar - right.cvar)
        # The maximum of the lines is convex in CVaR, so its distance to the straight line is largest where two meet.
        flat, steep = weight <= slope, weight >= slope
        cvar = np.array([left.cvar, right.cvar])
        if flat.any() and steep.any():
            i = np.flatnonzero(flat)[np.argmax((bound - weight * left.cvar)[flat])]
            j = np.flatnonzero(steep)[np.argmax((bound - weight * right.cvar)[steep])]
            if weight[i] < weight[j]:
                meet = (bound[j] - bound[i]) / (weight[j] - weight[i])
                cvar = np.append(cvar, np.clip(meet, right.cvar, left.cvar))
        straight = right.expected + slope * (right.cvar - cvar)
        gap = float((straight - (bound - weight * cvar[:, None]).max(axis=1)).max())
        if gap > widest[2]:
            widest = left, right, gap
    return widest


def _undominated(found: list[Found]) -> list[Found]:
    """Return the points that no other one dominates, by rising expected cost."""
    kept: list[Found] = []
    for point in sorted(found, key=lambda each: (each.expected, each.cvar)):
        if not kept or point.cvar < kept[-1].cvar - CLOSED * abs(kept[-1].cvar):
            kept.append(point)
    return kept


def _point(weighing: Weighing, found: Found, limits: Limits) -> FrontierPoint:
    prepared, cvar = weighing.prepared, found.cvar
    policy = BudgetPolicy.of_rows(prepared, found.choice)
    if prepared.scale.rounded:  # charged more than its true cost
        with suppress(Stopped):
            cvar = min(cvar, own_tail(policy, weighing.explored.expected, cvar, weighing.alpha, limits=limits).cvar)
    return FrontierPoint(prepared.scale.in_units(found.expected), prepared.scale.in_units(cvar), policy)
