"""Stress: a plan's numbers on models drawn at random that fit the counts."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from prudent.errors import printable
from prudent.models.rows import FloatArray
from prudent.runtime.tables import Numbers, Table, certain, number

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""The quantiles that are shown."""

SHOWN = 10
"""The most actions that a table lists."""


class Matter(NamedTuple):
    """How much of the uncertainty is due to the counts of one action.

    Examples
    --------
    >>> import prudent
    >>> row = {"state": "s", "action": "a", "next_state": "g"}
    >>> data = prudent.from_episodes([{**row, "cost": 1, "n": 9}, {**row, "cost": 5, "n": 1}], count="n", initial="s")
    >>> result = prudent.stress(prudent.solve(data.model, alpha=0.2), data, samples=50)
    >>> result.matters[0].share > 0.5 and result.matters[0].doubled > 0
    True
    """

    state: Hashable
    action: Hashable
    seen: float  # how often it was seen
    share: float  # of the variance of CVaR over the models drawn, estimated
    doubled: float  # estimate of how much narrower the middle 90% of CVaR gets with twice the data on it


@dataclass(frozen=True, eq=False, repr=False)
class Stress(Numbers):
    """What :func:`prudent.stress` returns; arrays have an entry for each model drawn.

    Examples
    --------
    >>> import prudent
    >>> row = {"state": "s", "action": "a", "next_state": "g"}
    >>> data = prudent.from_episodes([{**row, "cost": 1, "n": 9}, {**row, "cost": 5, "n": 1}], count="n", initial="s")
    >>> result = prudent.stress(prudent.solve(data.model, alpha=0.2), data, samples=50)
    >>> result
    <Stress of log, alpha 0.2, 50 models: CVaR 1.49 to 5.00, 3 in the model itself>
    >>> result.matters[0].state, result.matters[0].seen
    ('s', 10.0)
    """

    model: str
    alpha: float
    nominal: float  # CVaR in the model itself
    cvar: FloatArray  # (samples,)
    var: FloatArray  # (samples,)
    expected: FloatArray  # (samples,)
    levels: FloatArray  # (n_levels,)  total costs
    exceeds: FloatArray  # (samples, n_levels)  the probability of a higher one
    matters: tuple[Matter, ...]  # the actions whose counts matter, most first

    def quantiles(self, what: str = "cvar") -> dict[float, float]:
        """Return quantiles over the models drawn of ``"cvar"``, ``"var"`` or ``"expected"``.

        Examples
        --------
        >>> import prudent
        >>> data = prudent.from_episodes(
        ...     [{"state": "s", "action": "a", "next_state": "g", "cost": 2, "n": 9}], count="n", initial="s"
        ... )
        >>> prudent.stress(prudent.solve(data.model, alpha=0.2), data, samples=5).quantiles()[0.95]
        2.0
        """
        values = np.quantile(getattr(self, what), QUANTILES)
        return dict(zip(QUANTILES, map(float, values), strict=True))

    def _table(self) -> Table:
        head = ("", *(f"{q:.0%}" for q in QUANTILES))
        names = {"cvar": "CVaR", "var": "VaR", "expected": "expected cost"}
        rows = tuple((name, *self._shown(what, *self.quantiles(what).values())) for what, name in names.items())
        notes = [f"CVaR in the model itself: {number(self.nominal)}"]
        for each in self.matters[:SHOWN]:
            notes.append(
                f"{each.share:.0%} of the variance of CVaR: {printable(each.action, 40)} in "
                f"{printable(each.state, 40)}, seen {each.seen:g} times; twice as many would narrow the middle 90% by "
                f"{number(each.doubled, certain(each.doubled))}"
            )
        title = f"{self.model}, alpha {self.alpha:g}: {len(self.cvar):,} models drawn"
        return Table(title, rows, "l" + "d" * len(QUANTILES), head, notes=tuple(notes))

    def _content(self) -> dict[str, Any]:
        shown = {what: {f"{q:g}": x for q, x in self.quantiles(what).items()} for what in ("cvar", "var", "expected")}
        about = {"model": self.model, "alpha": self.alpha, "samples": len(self.cvar), "nominal": self.nominal}
        return {**about, **shown, "matters": [each._asdict() for each in self.matters]}

    def __repr__(self) -> str:
        quantiles = self.quantiles()
        low, high = self._shown("cvar", quantiles[0.05], quantiles[0.95])
        return (
            f"<Stress of {self.model}, alpha {self.alpha:g}, {len(self.cvar):,} models: CVaR {low} to {high}, "
            f"{number(self.nominal)} in the model itself>"
        )

    def _shown(self, what: str, *values: float) -> list[str]:
        """Return numbers as text, with two digits of the standard error over the models drawn."""
        drawn = getattr(self, what)
        spread = float(np.std(drawn)) / len(drawn) ** 0.5
        return [number(value, certain(spread)) for value in values]
