"""The common step of a model's costs.

If all costs are whole multiples of one step, so are all totals and all budgets, and planning is exact (no
interpolation).  Rounding errors of floats hide such a step (0.1 + 0.2, 1/3), so the search allows a tolerance of a few
units in the last place.  It uses continued fractions of the ratios of the costs.  The largest difference that the
tolerance ignored is kept as ``deviation``, and relative to the cost as ``relative``; it widens the bounds of every
result.

Costs without a common step are counted on a lattice much finer than any step they are rounded to, so that only
``deviation`` is lost.  All later arithmetic is in whole numbers, so rounding up or down to the step is exact.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import gcd

import numpy as np

from prudent.errors import PrudentError
from prudent.kernels.counting import whole_numbers
from prudent.models.rows import FloatArray, IntArray, read_only
from prudent.runtime.team import in_parts

TOLERANCE = 2.0**-49
"""Relative distance within which a cost counts as a multiple of the step (8 units in the last place)."""

LARGEST = 2**24
"""The largest multiple of a common step that a cost may be."""

COARSEST = 1000
"""The largest step, as a multiple of the largest cost."""

USUAL = 10**4
"""The largest cost has at least this many usual steps."""

SPARE = 8
"""The fewest binary places by which a fine lattice is finer than the step."""


@dataclass(frozen=True)
class Lattice:
    """The multiples of a step."""

    step: float  # in the user's units
    deviation: float  # the largest |cost - multiple * step| among the costs it was found from
    relative: float = np.inf  # the same relative to the multiple; infinite if unknown, or if costs are off and negative

    def multiples(self, value: FloatArray) -> IntArray:
        """Return the nearest multiples of the step."""
        return np.rint(value / self.step).astype(np.int64)

    def value(self, multiple: int | IntArray) -> FloatArray:
        """Return multiples of the step in the user's units, as the nearest floats."""
        parts = _reciprocal(self.step)
        scaled = np.asarray(multiple) / parts if parts else np.asarray(multiple) * self.step
        return np.asarray(scaled, dtype=np.float64)


def find_lattice(cost: FloatArray, threads: int = 1) -> tuple[Lattice, IntArray] | None:
    """Return the coarsest step that all costs share and each cost as a multiple of it, or None."""
    whole, good = np.empty(len(cost), dtype=np.int64), np.ones(1, dtype=bool)
    in_parts(threads, whole_numbers, len(cost), read_only(cost), LARGEST, whole, good)
    if good[0]:  # the common case, and no tolerance is needed
        common = max(common_divisor(whole), 1)
        return Lattice(float(common), 0.0, 0.0), whole if common == 1 else whole // common
    size = np.unique(np.abs(cost[cost != 0]))
    if len(size) == 0:
        return Lattice(1.0, 0.0, 0.0), np.zeros(len(cost), dtype=np.int64)
    if size[0] < 1e-150 or size[-1] > 1e150:  # outside the range in which ratios are safe
        return None
    reference, parts = float(size[0]), 1  # the step is reference / parts
    while True:
        ratio = size / reference * parts
        if ratio[-1] > LARGEST:
            return None
        off = np.abs(ratio - np.rint(ratio)) > TOLERANCE * ratio
        if not off.any():
            break
        parts *= _denominator(float(ratio[np.argmax(off)]))
        if parts > LARGEST:
            return None
    multiple = np.rint(size / reference * parts).astype(np.int64)
    common = int(np.gcd.reduce(multiple))
    step = _roundest(reference / (parts // gcd(parts, common)) * (common // gcd(parts, common)), size)
    whole = Lattice(step, 0.0).multiples(cost)
    return Lattice(step, *_misses(cost, whole, step)), whole


def common_divisor(whole: IntArray) -> int:
    """Return the greatest common divisor of whole numbers, 0 if all are zero."""
    common, first, last = 0, 0, 64
    while common != 1 and first < len(whole):
        common = int(np.gcd.reduce(whole[first:last], initial=common))
        first, last = last, 2 * last
    return common


def fine_lattice(cost: FloatArray, step: float, n_states: int) -> tuple[Lattice, IntArray, int]:
    """Return a lattice close to all costs, each cost as a multiple of its step, and the multiple that one ``step`` is.

    The lattice is the same for all steps up to the largest cost: the usual step divided by a power of two, as large as
    possible while totals of a path through all states fit an integer.
    """
    if not 1e-280 < step < 1e280:
        raise PrudentError(f"step is {step!r}; it is outside the range of floats; use another unit for the costs")
    largest = float(np.abs(cost).max(initial=0.0))
    if not np.isfinite(largest / step):
        raise PrudentError(
            f"step is {step!r}, but the largest cost is {largest:g}; give a larger step, for fewer levels"
        )
    if step > COARSEST * largest:
        raise PrudentError(f"step is {step!r}, but the largest cost is {largest:g}; give a smaller step")
    usual = usual_step(cost)
    bits = min(60 - (n_states + 1).bit_length() - int(np.ceil(np.log2(max(largest, step) / usual))), 60)
    lattice = Lattice(usual * 2.0**-bits, 0.0)
    parts = round(step / lattice.step)
    if parts < 2**SPARE:
        raise PrudentError(f"step is {step!r}; it must be at least {finest_step(cost, n_states):.3g} for these costs")
    deviation = lattice.step / 2 + float(np.spacing(largest))
    return Lattice(lattice.step, deviation), lattice.multiples(cost), parts


def _misses(cost: FloatArray, whole: IntArray, step: float) -> tuple[float, float]:
    """Return upper bounds on the distance between costs and the exact multiples, and relative to the multiples.

    They are 0 if costs are exact multiples.  If multiples need not be floats, the first one includes their rounding
    error.  The second adds twice the rounding error of one operation, and is infinite if a cost is negative.
    """
    near, parts = Lattice(step, 0.0).value(whole), _reciprocal(step)
    off = np.abs(cost - near)
    deviation, paid = float(off.max(initial=0.0)), cost > 0
    if step != round(step) and not (parts > 0 and parts & (parts - 1) == 0):  # multiples of 2, 1, 1/2 ... are floats
        deviation += float(np.spacing(np.abs(near).max(initial=0.0)))
    if deviation == 0 or (cost < 0).any():
        return deviation, 0.0 if deviation == 0 else np.inf
    return deviation, float((off[paid] / near[paid]).max(initial=0.0)) + 2.0**-51


def usual_step(cost: FloatArray) -> float:
    """Return the default step for costs without a common one: 10,000 to 100,000 of it make the largest cost."""
    return float(10.0 ** np.floor(np.log10(np.abs(cost).max()))) / USUAL


def finest_step(cost: FloatArray, n_states: int) -> float:
    """Return the finest step for which :func:`fine_lattice` finds a lattice."""
    return float(np.abs(cost).max(initial=0.0)) * 2.0 ** (SPARE + 2 + (n_states + 1).bit_length() - 60)


def nice_step(most: float) -> float:
    """Return the largest round number up to ``most``, at least 3/4 of it."""
    power = 10.0 ** np.floor(np.log10(most))
    return float(f"{max(k * power for k in (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8) if k * power <= most * 1.000001):.15g}")


def _denominator(ratio: float) -> int:
    """Return the smallest denominator of a fraction within tolerance of a ratio."""
    target = rest = Fraction(ratio)
    before, now = (0, 1), (1, 0)  # convergents as (numerator, denominator)
    while True:
        whole = rest.numerator // rest.denominator
        before, now = now, (whole * now[0] + before[0], whole * now[1] + before[1])
        if abs(Fraction(*now) - target) <= TOLERANCE * target:
            return now[1]
        rest = 1 / (rest - whole)


def _roundest(step: float, size: FloatArray) -> float:
    """Return the step, or a rounder number near it that fits the costs at least as well."""

    def misfit(candidate: float) -> float:
        return float(np.max(np.abs(size - Lattice(candidate, 0.0).value(np.rint(size / candidate))) / size))

    candidates = [float(f"{step:.15g}"), 1 / round(1 / step) if step < 1 else float(round(step)), step]
    return min(candidates, key=misfit)


def _reciprocal(step: float) -> int:
    """Return n if the step is the float 1/n, else 0 (dividing by n rounds once, multiplying by the step twice)."""
    parts = round(1 / step) if step > 1e-300 else 0
    return parts if parts > 1 and 1 / parts == step else 0
