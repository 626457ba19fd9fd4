"""Conversion of costs between the user's units and whole levels; all rounding of costs happens here.

Costs are counted in steps of a lattice (:mod:`prudent.engine.cost_step`), normalised by best luck, and then counted in
*levels* of ``stride`` steps.  This is exact if the stride divides all of them.  Otherwise costs are rounded up for a
plan: a run is charged each cost rounded up, so its remaining budget is never overestimated.
"""

from dataclasses import dataclass
from math import ceil, isfinite
from typing import TypeVar

import numpy as np

from prudent.engine.cost_step import Lattice
from prudent.errors import PrudentError, as_number
from prudent.models.rows import FloatArray, IntArray
from prudent.runtime.tables import in_hundredths

Steps = TypeVar("Steps", int, IntArray)

NEAR, DIGITS = 1e-9, 1e-12
"""Tolerances for a float to count as a total of the lattice: relative to one level, and to the total."""


@dataclass(frozen=True, eq=False)
class CostScale:
    """The scale that costs are counted on.  States are those of the user's model."""

    lattice: Lattice  # the lattice that costs are counted on, in the user's units
    stride: int  # lattice steps per level
    step: float  # the step that costs are multiples of, or are rounded to, in the user's units
    rounded: bool  # whether levels are rounded costs, rounded up unless requested otherwise
    slip: int  # lattice steps by which a normalised cost may be too high, if costs are only close to the lattice
    luck: IntArray  # (n_states,)  best luck in lattice steps
    start_luck: int  # best luck of the start in lattice steps

    @property
    def level_size(self) -> float:
        """The size of one level in the user's units."""
        return self.lattice.step * self.stride

    @property
    def deviation(self) -> float:
        """How far a cost may be from the lattice, in the user's units."""
        return self.lattice.deviation

    @property
    def relative(self) -> float:
        """How far a total may be from the lattice, relative to its size; infinite if only ``deviation`` is known."""
        return self.lattice.relative

    @property
    def resolution(self) -> float:
        """The least difference between totals, in the user's units: one level, or 0 if costs are rounded."""
        return 0.0 if self.rounded else self.level_size

    @property
    def money(self) -> bool:
        """Whether costs are in hundredths, and shown with two decimals."""
        return in_hundredths(self.lattice.step)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the user on rounded costs."""
        return (f"costs were rounded to multiples of {self.step:g}",) if self.rounded else ()

    def normalised(self, cost: float | FloatArray, state: int | IntArray, successor: int | IntArray) -> IntArray:
        """Return the normalised costs of outcomes, in lattice steps."""
        return np.asarray(self.lattice.multiples(np.asarray(cost)) + self.luck[successor] - self.luck[state])

    def up(self, steps: Steps) -> Steps:
        """Convert lattice steps to levels, rounded up: the levels charged."""
        return -(-steps // self.stride)

    def down(self, steps: IntArray) -> IntArray:
        """Convert lattice steps to levels, rounded down."""
        return steps // self.stride

    def unrounded(self, steps: IntArray) -> FloatArray:
        """Convert lattice steps to levels, not rounded."""
        return np.asarray(steps / self.stride)

    def surely(self, steps: IntArray) -> IntArray:
        """Return lower bounds on the true normalised costs, in lattice steps: the costs less the slip."""
        return np.maximum(steps - self.slip, 0) if self.slip else steps

    def charged(self, cost: float | FloatArray, state: int | IntArray, successor: int | IntArray) -> IntArray:
        """Return the levels that a policy charges itself for outcomes."""
        return self.up(self.normalised(cost, state, successor))

    def first_charge(self, state: int | IntArray) -> IntArray:
        """Return the levels charged for the draw of the initial state."""
        return self.up(np.asarray(self.luck[state] - self.start_luck))

    def first(self, state: int) -> tuple[int, float]:
        """Return the levels charged for the draw of the initial state, and what rounding left out of them."""
        charge = self.first_charge(state)
        steps = np.array([self.luck[state] - self.start_luck])
        return int(charge), float(self.left_out(steps, np.atleast_1d(charge))[0])

    def left_out(self, steps: IntArray, levels: IntArray) -> FloatArray:
        """Return what rounding left out of costs, in levels: zeros if costs are not rounded."""
        return self.unrounded(steps) - levels if self.rounded else np.zeros(len(levels))

    def in_units(self, levels: float) -> float:
        """Convert a total from levels above the start's best luck to the user's units."""
        return float(self.lattice.value(self.start_luck)) + levels * self.level_size

    def in_levels(self, total: float) -> float:
        """Convert a total from the user's units to levels; the inverse of :meth:`in_units`."""
        return (total - self.in_units(0)) / self.level_size

    def level_within(self, total: float) -> int:
        """Return the largest level that does not exceed a total, up to the tolerance."""
        return int(np.floor(self.in_levels(total) + self._tolerance(total) / self.level_size))

    def totals(self, levels: IntArray, state: int | None = None) -> FloatArray:
        """Return the totals, in the user's units, of runs that have used ``levels`` and are in a state, or at a goal.

        They are the nearest floats, or close to them if the lattice steps would overflow an integer.
        """
        base = self.start_luck - (0 if state is None else int(self.luck[state]))
        if abs(base) + int(np.max(levels, initial=0)) * self.stride < 2**62:
            return self.lattice.value(base + np.asarray(levels) * self.stride)
        return self.lattice.value(base) + np.asarray(levels) * self.level_size

    def total(self, level: int, state: int | None = None) -> float:
        """Return one of :meth:`totals`."""
        return float(self.totals(np.array(level), state))

    def nearest(self, total: float) -> float:
        """Round a total to the nearest one of the lattice; return it unchanged if costs are rounded."""
        return total if self.rounded else float(self.lattice.value(self.lattice.multiples(np.array(total))))

    def used(self, state: int, spent: float, least: int) -> int | None:
        """Return the levels used, rounded up, by a run in a state that has spent ``spent``; None if no run can have.

        ``least`` is the fewest levels that runs there have used.  A total that is not on the lattice is rejected.
        """
        spent = self._within_reach(as_number("spent", spent, "a finite number", isfinite))
        if not self._on_lattice(spent):
            above = self.measured(state, spent, least)
            below = max(above - 1, least)
            near = " or ".join(f"{total:.12g}" for total in np.unique(self.totals(np.array([below, above]), state)))
            raise PrudentError(
                f"spent is {spent!r}; it must be a multiple of the model's cost step {self.lattice.step:g}, such as "
                f"{near}; round a measured cost up"
            )
        steps = round(spent / self.lattice.step) + int(self.luck[state]) - self.start_luck
        noise = self.slip + int(8 * np.spacing(abs(spent)) / self.lattice.step)
        if steps < -noise or (steps % self.stride and not self.rounded):
            return None
        return max(self.up(steps), 0)

    def measured(self, state: int, spent: float, least: int) -> int:
        """Convert any measured total to levels used: rounded up, and at least the fewest a run can have used."""
        spent = self._within_reach(spent)
        steps = (round if self._on_lattice(spent) else ceil)(spent / self.lattice.step)
        return max(self.up(steps + int(self.luck[state]) - self.start_luck), least)

    def _within_reach(self, spent: float) -> float:
        """Clip a total so that its lattice steps fit an integer; the limits lie beyond every budget."""
        most = 2.0**62 * self.lattice.step
        return min(max(spent, -most), most)

    def _on_lattice(self, spent: float) -> bool:
        """Return whether a total is on the lattice; any total counts if costs are rounded."""
        off = abs(spent - np.rint(spent / self.lattice.step) * self.lattice.step)
        return self.rounded or bool(off <= self._tolerance(spent))

    def _tolerance(self, total: float) -> float:
        """Return how far a total may be off the lattice: rounding error, and far less than a level."""
        return NEAR * self.level_size + DIGITS * (abs(total) + abs(self.in_units(0)))


def multiple(large: float, small: float) -> bool:
    """Return whether a step is a multiple of another, up to rounding error."""
    ratio = large / small if 1e-15 * large < small < np.inf else np.inf
    return 0.5 < ratio < np.inf and abs(ratio - round(ratio)) <= 1e-9 * ratio
