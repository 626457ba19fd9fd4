"""Distributions of the total cost and their tails; the tail convention is defined here.

``alpha`` in (0, 1] is the worst fraction of runs.  ``VaR`` is the smallest z with P(C > z) <= alpha, with a
tolerance of 1e-12 alpha for rounding errors (:func:`rarely`); at alpha = 1 it is the least possible cost.  ``CVaR`` is
the mean of the worst alpha fraction, an atom split where needed: CVaR = min over w of  w + E[(C - w)+] / alpha.
``alpha = 1`` is the expected cost, ``alpha -> 0`` the worst case.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from prudent.errors import PrudentError, as_number
from prudent.models.rows import BoolArray, FloatArray
from prudent.runtime.tables import (
    Framed,
    Shown,
    Table,
    at_least,
    at_most,
    certain,
    in_hundredths,
    number,
    percent,
    plain,
    worst,
)

if TYPE_CHECKING:
    from prudent.results.at_worst import AtWorst

FORGIVEN = 1e-12
"""Rounding error of a sum of probabilities, relative to alpha: however small alpha is, VaR is not that of a larger one.
"""

GROUPED = (
    "runs whose costs round to the same total are grouped: the true CVaR is at least the one shown, and VaR is an "
    "estimate"
)
"""The note on tails if costs were rounded."""

USUAL = 0.05
"""The alpha of the tail that is shown if none is given."""

HALVINGS = 200
"""The most halvings in the search for the budget that gives the least bound on CVaR."""

ASKED = (
    "runs whose costs round to the same multiple of {:g} are grouped, and the function was called with their mean cost "
    "so far; set a smaller step= for smaller groups"
)
"""The note if a function was called with rounded costs."""

LEAST = 1e-300
"""The smallest alpha: dividing by less may overflow a float."""


Alphas: TypeAlias = float | Iterable[float]
"""One alpha, or several: the argument of ``table`` of every result that has a tail."""


def check_alpha(alpha: float, name: str = "alpha") -> float:
    """Return alpha as a float; raise an error if it is invalid."""
    wanted = "the worst fraction of runs, above 0 and at most 1"
    value = as_number(name, alpha, wanted, lambda x: 0 < x <= 1)
    if value < LEAST:
        raise PrudentError(f"{name} is {alpha!r}; below {LEAST:g} use method worst-case instead")
    return value


def rarely(exceeded: FloatArray, alpha: float) -> BoolArray:
    """Return whether probabilities of a cost above VaR are at most alpha, up to rounding error (internal)."""
    return np.asarray(exceeded <= alpha * (1 + FORGIVEN))


def alphas_of(alpha: Alphas) -> tuple[float, ...]:
    """Return one alpha, or several, as floats; raise an error if one is invalid."""
    one = isinstance(alpha, str) or not isinstance(alpha, Iterable)
    return tuple(map(check_alpha, [alpha] if one else alpha))  # type: ignore[arg-type]


def exceeded_in(alpha: float) -> str:
    """Return in words what the VaR at an alpha is."""
    return "the lowest possible cost" if alpha == 1 else f"exceeded in at most {percent(alpha)} of runs"


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of runs whose costs round to the same total: mean and variance of the true costs of each.

    Unfinished runs have groups of their own, with the cost so far and the expected cost ``ahead``.
    """

    probability: FloatArray  # (n,)
    mean: FloatArray  # (n,)
    variance: FloatArray  # (n,)
    ahead: FloatArray  # (n,)

    def cvar_at_most(self, alpha: float) -> float:
        """Return an upper bound on CVaR.

        Of all distributions with a mean m and a variance v, none has a larger E[(C - w)+] than
        ((m - w) + sqrt((m - w)^2 + v)) / 2 (Scarf).  Summed over groups that is convex in w, so its least value over w
        is found by halving; any w gives a bound.
        """
        if alpha == 1:  # then it is the mean, whatever the spread
            return float(self.probability @ (self.mean + self.ahead))
        root = np.sqrt(self.variance)
        low, high = float((self.mean - root).min()), float((self.mean + root).max())
        for _ in range(HALVINGS):
            w = (low + high) / 2
            if not low < w < high:
                break
            apart = self.mean - w
            size = np.hypot(apart, root)
            share = np.divide(apart, size, out=np.zeros_like(apart), where=size > 0)
            low, high = (w, high) if self.probability @ (1 + share) / 2 > alpha else (low, w)
        return min(self._bound(w, alpha) for w in (low, high))

    def _bound(self, w: float, alpha: float) -> float:
        apart = self.mean - w
        excess = (apart + np.hypot(apart, np.sqrt(self.variance))) / 2 + self.ahead
        return w + float(self.probability @ excess) / alpha


@dataclass(frozen=True, eq=False)
class Distribution(Shown, Framed):
    """The distribution of the total cost of a policy.

    Exact except for ``missing``, the probability that a run costs more than the last of ``values``.  Such runs have the
    mean total cost ``missing_mean``, which ``mean`` and ``cvar`` include.

    If ``grouped``, each value is the mean cost of runs whose costs round to the same total: ``mean`` is exact, ``cvar``
    and ``std`` are at most the true ones, and all other numbers are estimates.  A finer step makes them closer.  A
    function was then called with the mean cost so far of each group, with costs rounded to multiples of
    ``asked_step``, and all numbers are estimates.

    No run costs more than ``most``: the largest cost, or if ``grouped`` an upper bound; infinite if there is none, nan
    if unknown.  All of these numbers are for the model itself; ``at_worst`` has CVaR and expected cost in the worst
    model of a set, if one was given.  In a data frame, ``exceeds`` is P(C > value); in the last row it is ``missing``.

    Examples
    --------
    >>> import prudent
    >>> result = prudent.evaluate(prudent.domains.figure_2(), {"s0": "a", "s1": "e", "s2": "b"})
    >>> result.values.tolist(), result.probabilities.tolist()
    ([7.0, 10.0], [0.9, 0.1])
    >>> result.mean, result.var(0.1), result.cvar(0.1), result.exceeds(7)
    (7.3, 7.0, 10.0, 0.1)
    """

    values: FloatArray  # (n,)  rising
    probabilities: FloatArray  # (n,)
    mean: float
    missing: float = 0.0
    missing_mean: float = 0.0
    grouped: bool = False
    most: float = np.nan
    asked_step: float | None = None
    groups: Groups | None = None  # the runs of each value, if grouped
    at_worst: "AtWorst | None" = None  # the numbers in the worst model of a set, if one was given

    @property
    def std(self) -> float:
        """The standard deviation; a lower bound if runs are ``missing``, which then count at their mean cost."""
        spread = self.probabilities @ (self.values - self.mean) ** 2
        if self.missing > 0:
            spread += self.missing * (self.missing_mean - self.mean) ** 2
        return float(np.sqrt(spread))

    def exceeds(self, x: float) -> float:
        """Return P(C > x); an upper bound beyond the last value if probability is missing.

        Examples
        --------
        >>> import prudent
        >>> result = prudent.evaluate(prudent.domains.figure_2(), {"s0": "a", "s1": "e", "s2": "b"})
        >>> result.exceeds(5), result.exceeds(7)
        (1.0, 0.1)
        """
        return float(self._above[np.searchsorted(self.values, x, side="right")])

    def quantile(self, q: float) -> float:
        """Return the smallest z with P(C <= z) >= q; infinite if more than 1 - q is missing.

        Examples
        --------
        >>> import prudent
        >>> result = prudent.evaluate(prudent.domains.figure_2(), {"s0": "a", "s1": "e", "s2": "b"})
        >>> result.quantile(0.5), result.quantile(0.95)
        (7.0, 10.0)
        """
        q = as_number("q", q, "a probability", lambda x: 0 <= x <= 1)
        if q < 0.5:
            reached = np.cumsum(self.probabilities) >= q * (1 - FORGIVEN)  # 1 - q has no digits of a small q
            return float(self.values[np.argmax(reached)]) if reached.any() else np.inf
        # As a float, q itself may be off by half of its spacing; only 1 means just that.
        return self._least(rarely(self._above[1:], 1 - q + (np.spacing(q) if q < 1 else 0.0)))

    def var(self, alpha: float) -> float:
        """Return the value at risk, the smallest z with P(C > z) <= alpha; infinite if more than alpha is missing.

        Examples
        --------
        >>> import prudent
        >>> result = prudent.evaluate(prudent.domains.figure_2(), {"s0": "a", "s1": "e", "s2": "b"})
        >>> result.var(0.1), result.var(0.05)
        (7.0, 10.0)
        """
        return self._least(rarely(self._above[1:], check_alpha(alpha)))

    def cvar(self, alpha: float) -> float:
        """Return the mean of the worst alpha fraction of runs; infinite if more than alpha is missing.

        At alpha = 1 it is the mean of all runs.

        Examples
        --------
        >>> import prudent
        >>> result = prudent.evaluate(prudent.domains.figure_2(), {"s0": "a", "s1": "e", "s2": "b"})
        >>> [round(result.cvar(alpha), 6) for alpha in (0.1, 0.2, 1)]
        [10.0, 8.5, 7.3]
        """
        alpha = check_alpha(alpha)
        w = self._least(self._above[1:] <= alpha)
        if w == np.inf:
            return np.inf
        excess = float(self.probabilities @ np.maximum(self.values - w, 0.0))
        if self.missing > 0:
            excess += self.missing * (self.missing_mean - w)
        return w + excess / alpha

    def cvar_at_most(self, alpha: float) -> float:
        """Return an upper bound on CVaR: CVaR itself, unless values are grouped.

        Examples
        --------
        >>> import prudent
        >>> model = prudent.domains.figure_2()
        >>> plan = prudent.solve(model, alpha=0.1, step=4)
        >>> result = prudent.evaluate(model, plan.policy)
        >>> result.grouped, result.cvar(0.1) <= result.cvar_at_most(0.1) <= plan.upper
        (True, True)
        """
        alpha = check_alpha(alpha)
        return self.cvar(alpha) if self.groups is None else max(self.groups.cvar_at_most(alpha), self.cvar(alpha))

    def tail(self, alpha: float) -> FloatArray:
        """Return the probability of each value within the worst alpha fraction; the value at VaR is split.

        Together with ``missing`` it adds up to alpha; CVaR is the mean of that part.

        Examples
        --------
        >>> import prudent
        >>> result = prudent.evaluate(prudent.domains.figure_2(), {"s0": "a", "s1": "e", "s2": "b"})
        >>> result.tail(0.25).tolist()
        [0.15, 0.1]
        """
        return np.asarray(np.clip(check_alpha(alpha) - self._above[1:], 0.0, self.probabilities))

    def expect(self, function: Callable[[float], float]) -> float:
        """Return the expected value of a function of the total cost.

        Runs that are ``missing`` count at their mean cost, and so do the runs of each value if ``grouped``.  For a
        convex function, such as an excess, the result is then a lower bound.

        Examples
        --------
        >>> import prudent
        >>> result = prudent.evaluate(prudent.domains.figure_2(), {"s0": "a", "s1": "e", "s2": "b"})
        >>> round(result.expect(lambda cost: max(cost - 9, 0)), 6), round(result.expect(lambda cost: cost**2), 6)
        (0.1, 54.1)
        """
        if not callable(function):
            raise PrudentError(f"function is {function!r}; it must be a function of a cost: lambda cost: cost**2")

        def at(cost: float) -> float:
            value = function(cost)
            value = int(value) if isinstance(value, bool | np.bool_) else value  # an event, for its probability
            return as_number(f"function({cost:g})", value, "a number", lambda x: not np.isnan(x))

        found = float(self.probabilities @ np.array([at(cost) for cost in self.values.tolist()]))
        return found + self.missing * at(self.missing_mean) if self.missing > 0 else found

    @property
    def _above(self) -> FloatArray:
        """P(C > z) for z below all values, then at each of them."""
        tail = np.append(self.probabilities, self.missing)[::-1]
        return np.asarray(np.cumsum(tail)[::-1])

    def _least(self, good: BoolArray) -> float:
        """Return the first value that is good; infinite if none is."""
        return float(self.values[np.argmax(good)]) if good.any() else np.inf

    def to_dict(self, alpha: float | None = None) -> dict[str, Any]:
        """Return the numbers as ``prudent evaluate --json`` prints them: None where unknown or infinite.

        ``var`` and ``cvar`` are those at ``alpha``, and None without one.

        Examples
        --------
        >>> import prudent
        >>> result = prudent.evaluate(prudent.domains.figure_2(), {"s0": "a", "s1": "e", "s2": "b"})
        >>> result.to_dict(alpha=0.1)["var"]
        7.0
        """
        worst = {}
        if self.at_worst is not None:
            cvar = None if alpha is None else self.at_worst.cvar(alpha)
            worst = {"at_worst": {"mean": self.at_worst.mean, "cvar": cvar}}
        return plain(
            {
                "alpha": None if alpha is None else check_alpha(alpha),
                "mean": self.mean,
                "std": self.std,
                "var": None if alpha is None else self.var(alpha),
                "cvar": None if alpha is None else self.cvar(alpha),
                "missing": self.missing,
                "grouped": self.grouped,
                "most": self.most,
                "asked_step": self.asked_step,
                "values": self.values,
                "probabilities": self.probabilities,
                **worst,
            }
        )

    def _columns(self) -> dict[str, Any]:
        return {"value": self.values, "probability": self.probabilities, "exceeds": self._above[1:]}

    def table(self, alpha: Alphas | None = None) -> Table:
        """Return what ``prudent evaluate`` prints; with one ``alpha`` or several, also CVaR and VaR at each.

        Examples
        --------
        >>> import prudent
        >>> result = prudent.evaluate(prudent.domains.figure_2(), {"s0": "a", "s1": "e", "s2": "b"})
        >>> for row in result.table(alpha=0.1).rows[:3]:
        ...     print(*row)
        expected cost 7.3 standard deviation 0.9
        CVaR 10 mean of the worst 10% of runs
        VaR 7 exceeded in at most 10% of runs
        """
        (bound, about), alphas = self._certainty, () if alpha is None else alphas_of(alpha)
        exact, digits = certain(0.0, self._money), self._decimals(alphas[0] if alphas else USUAL)
        spread = f"standard deviation {number(self.std, digits)}{bound}"
        rows = [("expected cost", number(self.mean, exact), spread), *self.tails(alphas)]
        if self.at_worst is not None:
            here = "in the worst model of the set, at most"
            mean = at_most(self.at_worst.mean, exact)
            rows.append(("worst-case expected cost", mean, f"{here}; all other rows are for the model itself"))
            for each in alphas:
                shown = at_most(self.at_worst.cvar(each), exact)
                rows.append(("worst-case CVaR", shown, f"mean of {worst(each)}, {here}"))
        for q in (0.05, 0.25, 0.5, 0.75, 0.95):
            rows.append((percent(q), number(self.quantile(q), digits), f"of runs cost at most this{about}"))
        limit = "at most" if self.grouped and np.isfinite(self.most) else ""
        rows.append(("lowest cost", number(float(self.values[0]), digits), about.removeprefix(", ")))
        rows.append(("highest cost", (at_most if limit else number)(self.most, digits), limit))
        notes = [f"the expected cost is exact; {GROUPED}"] if self.grouped and self.asked_step is None else []
        if self.asked_step is not None:
            notes.append(ASKED.format(self.asked_step))
        if self.missing:
            last = number(float(self.values[-1]), digits)
            notes.append(f"the total cost exceeds {last} with probability {self.missing:.2g}")
        return Table("total cost", tuple(rows), "ldw", notes=tuple(notes))

    def tails(self, alpha: Alphas) -> list[tuple[str, str, str]]:
        """Return the rows of tables that show CVaR and VaR (internal)."""
        (bound, about), rows = self._certainty, []
        for each in alphas_of(alpha):
            side, digits = at_least if bound == ", at least" else number, self._decimals(each)
            rows.append(("CVaR", side(self.cvar(each), digits), f"mean of {worst(each)}{bound}"))
            rows.append(("VaR", number(self.var(each), digits), f"{exceeded_in(each)}{about}"))
        return rows

    @property
    def _money(self) -> bool:
        return not self.grouped and in_hundredths(self.values)

    def _decimals(self, alpha: float) -> int:
        """Return how many decimals are certain: where costs were rounded, the bounds on CVaR at an alpha decide."""
        if self.asked_step is not None:
            return certain(self.asked_step)
        return certain(self.cvar_at_most(alpha) - self.cvar(alpha), self._money)

    @property
    def _certainty(self) -> tuple[str, str]:
        """What kind of numbers CVaR and VaR are where costs were rounded."""
        if not self.grouped:
            return "", ""
        return ", at least" if self.asked_step is None else ", about", ", about"

    def __repr__(self) -> str:
        missing = f", {self.missing:.2g} missing" if self.missing else ""
        mean, std = (number(each, certain(0.0, self._money)) for each in (self.mean, self.std))
        return f"<Distribution: expected cost {mean}, std {std}, {len(self.values):,} values{missing}>"


def mixture(parts: Sequence[tuple[float, Distribution]]) -> Distribution:
    """Return the mixture of several distributions, each with its probability."""
    if len(parts) == 1:
        return parts[0][1]
    values, place = np.unique(np.concatenate([part.values for _, part in parts]), return_inverse=True)
    chance = np.concatenate([share * part.probabilities for share, part in parts])
    missing = sum(share * part.missing for share, part in parts)
    beyond = sum(share * part.missing * part.missing_mean for share, part in parts)
    groups = [
        (share * part.groups.probability, part.groups.mean, part.groups.variance, part.groups.ahead)
        for share, part in parts
        if part.groups is not None
    ]
    return Distribution(
        values=values,
        probabilities=np.bincount(place, weights=chance, minlength=len(values)).astype(np.float64),
        mean=sum(share * part.mean for share, part in parts),
        missing=missing,
        missing_mean=beyond / missing if missing > 0 else 0.0,
        grouped=any(part.grouped for _, part in parts),
        most=float(np.max([part.most for _, part in parts])),
        groups=Groups(*map(np.concatenate, zip(*groups, strict=True))) if groups else None,
    )
