"""Bounds on the least expected cost of a model's states, in its own units and as the rationals that they are."""

from fractions import Fraction

import numpy as np

import prudent
from prudent.engine.prepare import prepare
from prudent.engine.values.expected_cost import least_expected_cost


def brackets(model: prudent.SSP) -> tuple[list[Fraction], list[Fraction | None]]:
    """Return the lower and the upper bound of every state; None stands for infinite.  All states must be kept."""
    prepared = prepare(model)
    least = least_expected_cost(prepared)
    assert (prepared.members.state_of >= 0).all()
    assert (least.lower <= least.value).all() and (least.value <= least.upper).all()
    step = Fraction(prepared.scale.lattice.step)

    def in_units(levels: float, state: int) -> Fraction | None:
        if np.isinf(levels):
            return None
        return (Fraction(float(levels)) * prepared.scale.stride + int(prepared.scale.luck[state])) * step

    place = enumerate(prepared.members.state_of)
    pairs = [(in_units(least.lower[s], i), in_units(least.upper[s], i)) for i, s in place]
    return [low for low, _ in pairs], [high for _, high in pairs]


def widest(lower, upper, truth) -> float:
    """Check that every bracket holds the truth; return the largest width, relative to it."""
    width = 0.0
    for low, high, value in zip(lower, upper, truth, strict=True):
        assert low <= value, (float(low), float(value))
        assert high is None or value <= high, (float(value), high)
        if value:
            width = max(width, float("inf") if high is None else float((high - low) / value))
    return width
