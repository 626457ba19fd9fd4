"""A tally, how many runs had which total cost: what is kept of more runs than memory holds.

Counts are whole numbers, so the order in which parts are joined changes nothing.  Where there are more than ``MANY``
different costs, all are rounded to ``BITS`` binary digits.  Whether they are depends on all runs together, and rounding
twice is rounding once: this, too, is the same however the runs were split.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from prudent.models.rows import FloatArray, IntArray
from prudent.policies.distribution import Distribution

KEPT = 10_000_000
"""The most runs whose costs are kept one by one."""

MANY = 2**18
"""The most different costs that are counted as they are."""

BITS = 17
"""Binary digits that a cost is rounded to where there are more."""


@dataclass(frozen=True, eq=False)
class Tally:
    """Different costs, each with the number of runs that had it.

    Examples
    --------
    >>> import prudent
    >>> plan = prudent.solve(prudent.domains.figure_2(), alpha=0.1)
    >>> tally = prudent.simulate(plan.model, plan.policy, episodes=1000, seed=1).tally
    >>> tally.values.tolist(), tally.counts.tolist()
    ([1.0, 9.0, 10.0], [632, 273, 95])
    """

    values: FloatArray  # (n,)  rising
    counts: IntArray  # (n,)
    rounded: bool = False

    @classmethod
    def of(cls, costs: FloatArray) -> "Tally":
        """Return the tally of the total costs of runs (internal)."""
        return cls(*np.unique(costs + 0.0, return_counts=True))  # there is one 0, without a sign

    @property
    def rounding(self) -> float:
        """How far a cost may be from what it was, relative to its size."""
        return 2.0**-BITS if self.rounded else 0.0

    @cached_property
    def distribution(self) -> Distribution:
        """The empirical distribution (internal)."""
        n = int(self.counts.sum())
        return Distribution(self.values, self.counts / n, mean=self.total(self.values) / n)

    def total(self, amount: FloatArray) -> float:
        """Return the sum over all runs of an amount that depends on the cost (internal)."""
        return float((amount * self.counts).sum())


def joined(parts: Sequence[Tally]) -> Tally:
    """Return the tally of all runs of several parts."""
    values, counts = (np.concatenate(each) for each in zip(*((p.values, p.counts) for p in parts), strict=True))
    found = _collected(values, counts)
    if found.rounded or any(part.rounded for part in parts):
        digits, exponent = np.frexp(found.values)
        found = _collected(np.ldexp(np.rint(np.ldexp(digits, BITS)), exponent - BITS) + 0.0, found.counts, rounded=True)
    return found


def _collected(values: FloatArray, counts: IntArray, rounded: bool = False) -> Tally:
    order = np.argsort(values, kind="stable")
    values, counts = values[order], counts[order]
    first = np.flatnonzero(np.append(True, values[1:] != values[:-1])) if len(values) else np.zeros(0, dtype=np.int64)
    return Tally(values[first], np.add.reduceat(counts, first), rounded or len(first) > MANY)
