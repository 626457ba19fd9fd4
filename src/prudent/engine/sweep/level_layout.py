"""The layout of models for sweeping budgets level by level.

:mod:`prudent.engine.places` gives the order; here are the rounding errors of its sums.
"""

from dataclasses import dataclass

import numpy as np

from prudent.engine.places import places_of, turns_of
from prudent.engine.prepared import Prepared, once
from prudent.engine.values.bellman import largest_rounding
from prudent.engine.values.worst_case import UNREACHED
from prudent.kernels.levels import Places, Turns
from prudent.models.rows import FloatArray, IntArray

CLOSE = 1e-9
"""The most that rounding may take off a lower bound, relatively, at the largest possible number of levels; mostly far
fewer are swept.  Beyond it, the bound gets a field of its own."""


@dataclass(frozen=True, eq=False)
class LevelLayout:
    """A model laid out for sweeping level by level."""

    turns: Turns
    places: Places
    action: IntArray  # (n_actions,)  the model's actions, by place
    start: int  # the place of the start
    sums: int  # the most sums along a run on one level
    least: int  # the least cost above 0
    cyclic: bool  # whether there are free cycles
    unit: float  # the largest relative rounding error of one sum

    def error(self, levels: IntArray) -> FloatArray:
        """Return a bound on the relative rounding error of values at each of the levels; infinite with free cycles.

        All values are sums of products of non-negative numbers, so rounding errors change them by a factor of at most
        (1 + e)^n, where e is the relative error of one sum and n the number of sums along a run.
        """
        runs = levels // self.least + 1.0
        return np.asarray(runs * (np.inf if self.cyclic else 2 * self.sums * self.unit), dtype=np.float64)

    def close(self, levels: float) -> bool:
        """Return whether rounding takes so little off values, up to a level, that a factor says how much."""
        return bool(self.error(np.array([min(levels, UNREACHED)]))[0] <= CLOSE)

    def lost(self, each: float, levels: int) -> float | FloatArray:
        """Return a bound on the relative increase of U on each of the levels, given that of one choice among ties.

        It is nan if the bound is not small.
        """
        level = np.arange(levels)
        sums = self.sums * (level // self.least + 1.0)
        lost = (1 + each) ** sums * (1 + self.error(level)) - 1
        return lost if lost[-1] <= CLOSE else np.nan


@once
def level_layout(prepared: Prepared) -> LevelLayout:
    """Return a model laid out for sweeping level by level."""
    (turns, depth), (places, action) = turns_of(prepared), places_of(prepared)
    return LevelLayout(
        turns=turns,
        places=places,
        action=action,
        start=int(places.place[prepared.start]),
        sums=depth + 1,
        least=prepared.cost_range[0],
        cyclic=len(turns.cycle) > 0,
        unit=largest_rounding(prepared),
    )
