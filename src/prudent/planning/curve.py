"""Every alpha at once: optimal CVaR, its VaR and the lowest expected cost, from one exploration.

With U(w) the least expected excess over a budget w, the optimal CVaR is min over w of w + U(w) / alpha.  As a function
of 1 / alpha this is a minimum of straight lines: between two *breakpoints* one w is best and gives the CVaR.  The
exploration for the smallest alpha finds all these w and the actions of every budget, and so a plan for each alpha.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from prudent.errors import PrudentError
from prudent.methods.exact import Explored
from prudent.methods.robust import explore_against
from prudent.methods.solution import Nominal, Solution
from prudent.models.intervals import Intervals, intervals_of, lasting
from prudent.models.ssp import SSP, check_model
from prudent.planning.bounds import Stage, bracket, stage_of
from prudent.planning.cvar import explored, only_at_hand, unswept
from prudent.planning.job import begin
from prudent.planning.options import Options
from prudent.planning.plans import plan_of
from prudent.policies.distribution import GROUPED, Alphas, alphas_of, check_alpha
from prudent.results.plan import Plan
from prudent.runtime.limits import UNLIMITED, Limits, Stopped, go_on
from prudent.runtime.tables import (
    DataFrame,
    Shown,
    Table,
    at_least,
    at_most,
    bounds,
    certain,
    frame,
    number,
    percent,
    plain,
)

SAME = 1e-9
"""Breakpoints whose relative distance is below this count as one."""

MOST = 1000
"""The most breakpoints to list; if there are more, evenly spaced ones are listed."""

ROUND = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
"""The alphas from 0.1 on that a table shows if none are given; below, they are 1, 2 and 5 times powers of 10."""

DECADES = 4
"""The smallest of these round alphas is this negative power of 10."""


@dataclass(frozen=True)
class CurvePoint:
    """The optimal CVaR at one alpha, with the VaR and the expected cost of the best policy.

    For a set of models all of these are worst-case values; ``nominal`` has the policy's values in the model itself.

    Examples
    --------
    >>> import prudent
    >>> point = prudent.curve(prudent.domains.figure_2()).at(0.05)
    >>> round(point.cvar, 6), point.var, round(point.expected, 6), point.lower <= point.cvar <= point.upper
    (10.0, 10.0, 4.06, True)
    """

    alpha: float
    cvar: float  # of the best policy; a lower bound on it if costs were rounded; nan if unknown
    var: float
    expected: float
    lower: float  # lower bound on the optimal CVaR
    upper: float  # upper bound on the optimal CVaR
    nominal: Nominal | None = None  # for a set of models: the policy's values in the model itself


@dataclass(frozen=True, eq=False, repr=False)
class Curve(Shown):
    """The optimal CVaR for every alpha from ``alpha_min`` to 1; the result of :func:`prudent.curve`.

    Examples
    --------
    >>> import prudent
    >>> curve = prudent.curve(prudent.domains.figure_2())
    >>> curve.at(0.1).cvar, curve.plan(0.1).policy("s1")
    (10.0, 'd')
    """

    model: SSP
    alpha_min: float
    seconds: float
    _explored: Explored | Stage[Solution]  # a plan at hand, if no sweep was finished in time
    device: str = "cpu"  # the device that computed it
    intervals: Intervals | None = None  # the set of models, if any
    _listed: tuple[CurvePoint, ...] | None = None  # the points, if a time limit asked for them at once

    def __repr__(self) -> str:
        low, high = (self._columns((self.at(alpha),)) for alpha in (self.alpha_min, 1.0))
        name = "CVaR" if self.intervals is None else "worst-case CVaR"
        return (
            f"<Curve for {self.model.name}: alpha {self.alpha_min:g} to 1, {name} {low[name][0]} to {high[name][0]}, "
            f"{self._count:,} points>"
        )

    @property
    def step(self) -> float:
        """The step of the costs used for planning."""
        return self._explored.prepared.scale.step

    @property
    def notes(self) -> tuple[str, ...]:
        """Further information for the user, such as rounded costs."""
        if isinstance(self._explored, Stage):
            return (*self.model.notes, *self._explored.notes)
        rounded = self._explored.prepared.scale.notes
        left = len(self._breakpoints()) - self._count
        few = [f"the time limit leaves out {left:,} breakpoints; .at(alpha) gives any point"] if left else []
        return (*self.model.notes, *rounded, *([GROUPED] if rounded else []), *few)

    @cached_property
    def points(self) -> tuple[CurvePoint, ...]:
        """The breakpoints, by alpha from ``alpha_min`` to 1; between two of them VaR and expected cost are constant.

        At a breakpoint two budgets are best; this is the one for larger alphas, and :meth:`at` takes the one with the
        lower expected cost.  Points are computed when they are first read, or within the time limit if there is one.
        """
        return self._within(UNLIMITED) if self._listed is None else self._listed

    @property
    def _count(self) -> int:
        return len(self._breakpoints() if self._listed is None else self._listed)

    def _within(self, limits: Limits) -> tuple[CurvePoint, ...]:
        """Return as many points as the time allows: both ends, then ever closer ones in between."""
        every, found = self._breakpoints(), dict[int, CurvePoint]()
        for i in _ever_closer(len(every)):
            alpha, w = every[i]
            if w is None:
                found[i] = self.at(alpha)
                continue
            try:
                go_on(limits, "finding the points of the curve")
                found[i] = self._point(alpha, w, True, limits)
            except Stopped as stopped:
                if stopped.reason != "time":
                    raise
                break
        return tuple(found[i] for i in sorted(found))

    def at(self, alpha: float) -> CurvePoint:
        """Return the point of the curve at an alpha.

        Examples
        --------
        >>> import prudent
        >>> curve = prudent.curve(prudent.domains.betting_game())
        >>> point = curve.at(0.2)
        >>> round(point.cvar, 6), point.var, round(point.expected, 6)
        (91.337584, 86.0, 75.486476)
        """
        alpha = self._check(alpha)
        if isinstance(self._explored, Stage):
            stage = unswept(self._explored.prepared, alpha)
            mean = stage.prepared.scale.in_units(stage.found.expected)
            return CurvePoint(alpha, math.nan, math.nan, mean, stage.bracket.lower, stage.bracket.upper)
        w, attains = self._explored.budgets(alpha)
        return self._point(alpha, w, alpha < 1 and not attains[:w].any())

    def _point(self, alpha: float, w: int, first: bool, limits: Limits = UNLIMITED) -> CurvePoint:
        """Return the point of a budget at an alpha; ``first``: whether the budget is its policy's VaR."""
        assert not isinstance(self._explored, Stage), "without a sweep no point has a budget"
        explored, prepared, scale = self._explored, self._explored.prepared, self._explored.prepared.scale
        own = explored.at(alpha, w, first=first, limits=limits)
        found = bracket(prepared, explored.lower(alpha), own.upper, explored.steps(w), alpha)
        nominal, _ = explored.in_model(alpha, w)
        return CurvePoint(
            alpha=alpha,
            cvar=scale.in_units(own.cvar),
            var=own.var,
            expected=scale.in_units(own.mean),
            lower=found.lower,
            upper=found.upper,
            nominal=None if nominal is None else nominal.in_units(scale),
        )

    def plan(self, alpha: float) -> Plan:
        """Return the plan for an alpha, without solving again.

        Examples
        --------
        >>> import prudent
        >>> curve = prudent.curve(prudent.domains.figure_2())
        >>> curve.plan(0.1).policy("s1")
        'd'
        """
        alpha, found = self._check(alpha), self._explored
        if isinstance(found, Stage):
            stage = unswept(found.prepared, alpha)
        else:
            stage = stage_of(found.prepared, found.solution(alpha), alpha)
        return plan_of(self.model, "exact", alpha, replace(stage, seconds=self.seconds), intervals=self.intervals)

    def to_dict(self, alpha: Alphas | None = None) -> dict[str, Any]:
        """Return the points, or those at one ``alpha`` or several, as ``prudent curve --json`` prints them.

        Unknown and infinite numbers are None.

        Examples
        --------
        >>> import prudent
        >>> curve = prudent.curve(prudent.domains.figure_2())
        >>> [point["cvar"] for point in curve.to_dict([0.05, 0.02])["points"]]
        [10.0, 10.0]
        """
        about = {"model": self.model.name, "step": self.step, "seconds": self.seconds, "notes": self.notes}
        points = [asdict(point) for point in self._asked(alpha)]
        for point in points if self.intervals is None else ():
            del point["nominal"]
        return plain({**about, "device": self.device, "points": points})

    def to_frame(self, alpha: Alphas | None = None) -> DataFrame:
        """Return the points, or those at one ``alpha`` or several, as a data frame (extra ``frame``).

        Examples
        --------
        >>> import prudent
        >>> curve = prudent.curve(prudent.domains.figure_2())
        >>> curve.to_frame([0.05, 0.1, 1])[["alpha", "cvar", "var", "expected"]]
           alpha  cvar   var  expected
        0   0.05  10.0  10.0      4.06
        1   0.10  10.0   9.0      4.06
        2   1.00   1.9   0.0      1.90
        """
        points = self._asked(alpha)
        names = ("alpha", "cvar", "var", "expected", "lower", "upper")
        columns = {name: np.array([getattr(point, name) for point in points], dtype=float) for name in names}
        if self.intervals is not None:
            for name in ("cvar", "var", "expected"):
                columns[f"nominal_{name}"] = np.array([getattr(point.nominal, name) for point in points], dtype=float)
        return frame(columns)

    def table(self, alpha: Alphas | None = None) -> Table:
        """Return what ``prudent curve`` prints: points at round alphas, or at one ``alpha`` or several.

        Bounds on the optimal CVaR are shown where they differ from the CVaR in the digits shown.

        Examples
        --------
        >>> import prudent
        >>> curve = prudent.curve(prudent.domains.figure_2())
        >>> table = curve.table(alpha=0.1)
        >>> table.head, table.rows
        (('worst runs', 'CVaR', 'VaR', 'expected cost'), (('10%', '10', '9', '4.06'),))
        """
        points = self._asked(round_alphas(self.alpha_min) if alpha is None else alpha)
        columns = {"worst runs": [percent(p.alpha) for p in points], **self._columns(points)}
        notes = list[str]()
        if "lower bound" in columns:
            best = "optimal CVaR" if self.intervals is None else "minimal worst-case CVaR"
            notes.append(f"lower bound, upper bound: on the {best}")
        if self.intervals is not None:
            notes.append("worst-case: in the worst model of the set; other columns: in the model itself")
        if alpha is None and not isinstance(self._explored, Stage):
            notes.append(f"{self._count:,} breakpoints of the curve are in .points, to_frame() and --json")
        title = f"{self.model.name}, from alpha {self.alpha_min:g} to 1, {self.seconds:.3g} s"
        return Table.of(title, columns, "l" + "d" * (len(columns) - 1), notes=(*notes, *self.notes))

    def _columns(self, points: tuple[CurvePoint, ...]) -> dict[str, list[str]]:
        """Return the columns of a table, with the digits that are certain."""
        scale = self._explored.prepared.scale
        exact = certain(0.0, scale.money)
        digits = [certain(p.upper - p.cvar if scale.rounded else 0.0, scale.money) for p in points]
        side = number if not scale.rounded else at_least if self.intervals is None else at_most
        pairs = [bounds(p.lower, p.upper, scale.money) for p in points]
        cvar = [side(p.cvar, each) for p, each in zip(points, digits, strict=True)]
        known = pairs == [(each, each) for each in cvar]
        limits = {} if known else {"lower bound": [low for low, _ in pairs], "upper bound": [high for _, high in pairs]}
        own: Sequence[CurvePoint | Nominal] = points
        if self.intervals is not None:
            own = [p.nominal for p in points if p.nominal is not None]
        here = {
            "CVaR": [number(p.cvar, each) for p, each in zip(own, digits, strict=True)],
            "VaR": [number(p.var, each) for p, each in zip(own, digits, strict=True)],
            "expected cost": [number(p.expected, exact) for p in own],
        }
        if self.intervals is None:
            return {**here, "CVaR": cvar, **limits}
        expected = [number(p.expected, exact) for p in points]
        return {"worst-case CVaR": cvar, "worst-case expected cost": expected, **limits, **here}

    def _asked(self, alpha: Alphas | None) -> tuple[CurvePoint, ...]:
        return self.points if alpha is None else tuple(map(self.at, alphas_of(alpha)))

    def _check(self, alpha: float) -> float:
        alpha = check_alpha(alpha)
        if alpha < self.alpha_min:
            raise PrudentError(
                f"alpha is {alpha!r}; this curve begins at {self.alpha_min:g}; give curve a smaller alpha_min="
            )
        return alpha

    def _breakpoints(self) -> list[tuple[float, int | None]]:
        """Return the alphas at which the best budget changes, each with the best budget above it, and both ends.

        These alphas are the corners of the lower envelope of lines in 1/alpha.
        """
        if isinstance(self._explored, Stage):
            return [(alpha, None) for alpha in dict.fromkeys((self.alpha_min, 1.0))]
        excess = self._explored.swept.excess
        kept, since = [0], [1.0]  # budgets on the envelope, and the least 1/alpha for which each is best
        for w in range(1, len(excess)):
            while excess[w] < excess[kept[-1]]:
                meet = (w - kept[-1]) / float(excess[kept[-1]] - excess[w])
                if len(kept) > 1 and meet <= since[-1] * (1 + SAME):
                    kept.pop()
                    since.pop()
                    continue
                kept.append(w)
                since.append(max(meet, 1.0))
                break
        known = zip(since[1:], kept, strict=False)  # below each 1/alpha the previous budget is best
        inside = [(1 / x, w) for x, w in known if 1 + SAME < x < (1 - SAME) / self.alpha_min][::-1]
        if len(inside) > MOST:
            inside = [inside[i] for i in np.linspace(0, len(inside) - 1, MOST).astype(int)]
        first = [] if self.alpha_min == 1 else [(self.alpha_min, None)]
        return [*first, *inside, (1.0, None)]


def _ever_closer(n: int) -> list[int]:
    """Return the numbers below n in an order in which any first part is about evenly spread: both ends first."""
    by_stride = sorted(range(n), key=lambda i: -(i & -i))  # multiples of large powers of 2 first
    return list(dict.fromkeys((0, n - 1, *by_stride)))


def round_alphas(least: float) -> list[float]:
    """Return round alphas from the least one to 1 (internal)."""
    most = min(math.ceil(-math.log10(least)), DECADES)
    small = [digit * 10.0**-k for k in range(most, 1, -1) for digit in (1, 2, 5)]
    return [least, *(float(f"{alpha:.1g}") for alpha in (*small, *ROUND) if alpha > least * (1 + SAME))]


def curve(
    model: SSP,
    *,
    alpha_min: float = 0.01,
    step: float | None = None,
    memory: int | float | str | None = None,
    time_limit: float | None = None,
    threads: int | None = None,
    device: str = "cpu",
    uncertainty: Intervals | float | str | None = None,
) -> Curve:
    """Return the optimal CVaR, its VaR and the lowest expected cost for every alpha from ``alpha_min`` to 1.

    Parameters
    ----------
    model : SSP
        The problem.
    alpha_min : float
        The smallest alpha; the curve takes as long as a solve for it.
    step, memory, time_limit, threads, device : optional
        As in :func:`prudent.solve`.  Costs without a common step are always rounded; the default step is so fine that
        the gap at ``alpha_min`` is about 0.001 of the distance from the lowest possible cost.  With a time limit the
        points are found at once, as many as the time allows, with a note if some are left out.  If it does not suffice
        for the curve itself, the points have bounds on the optimal CVaR, from a single plan, with a note; with
        ``uncertainty`` an error is raised.
    uncertainty : Intervals or float or "own", optional
        Plan for a set of models, as in :func:`prudent.solve`: points have the minimal worst-case CVaR, and their
        ``nominal`` has the policy's values in the model itself.

    Examples
    --------
    >>> import prudent
    >>> curve = prudent.curve(prudent.domains.figure_2(), alpha_min=0.05)
    >>> [(round(point.alpha, 4), round(point.cvar, 4), point.var) for point in curve.points]
    [(0.05, 10.0, 10.0), (0.1, 10.0, 7.0), (0.2286, 8.3125, 0.0), (1.0, 1.9, 0.0)]
    """
    given = locals()
    check_model(model)
    alpha_min = check_alpha(alpha_min, "alpha_min")
    asked = Options.of("curve", given)
    intervals, what = intervals_of(model, uncertainty, device), f"the curve from alpha {alpha_min:g}"
    if intervals is not None:
        model, intervals = lasting(model, intervals)
    job = begin(model, alpha_min, asked)
    with job.stopping():
        try:
            found = explored(job, what)
        except Stopped as stopped:
            if intervals is not None:
                raise
            return Curve(model, job.alpha, job.seconds, only_at_hand(job, stopped), device)
        if intervals is not None:
            found = explore_against(found.prepared, intervals, job.alpha, job.limits, found).finished(what)
        made = Curve(model, job.alpha, job.seconds, found, device, intervals)
        if time_limit is None:
            return made
        listed = made._within(job.limits)
    return replace(made, _listed=listed, seconds=job.seconds)
