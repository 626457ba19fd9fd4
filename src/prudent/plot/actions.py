"""The colour of each action of a model: the same in every picture of it."""

from collections.abc import Hashable

from prudent.models.ssp import SSP
from prudent.plot.canvas import in_order, ordered
from prudent.results.policy_map import is_number

FILLS = (
    "#2F7FBF", "#F4C95D", "#159A78", "#F08A5D", "#8464B4", "#8FD3F4", "#C8553D", "#B5C99A", "#A45C86", "#9AA5B1",
)  # fmt: skip
"""Colours of actions with names: the first ones differ in lightness, and all of them suit light and dark pages."""


def actions_of(model: SSP) -> tuple[Hashable, ...]:
    """Return the different actions of a model: numbers by size, then names in the model's order."""
    found = list(dict.fromkeys(model.names[1]))
    numbers = in_order([action for action in found if is_number(action)])
    return (*numbers, *(action for action in found if not is_number(action)))


def colours_of(model: SSP) -> dict[Hashable, str]:
    """Return the colour of each action of a model.

    Numbers lie along cividis, by size.  Names have colours of their own, in the model's order; where there are too many
    of them, they lie along cividis, too.
    """
    actions = actions_of(model)
    numbers = [float(action) for action in actions if is_number(action)]  # type: ignore[arg-type]
    names = actions[len(numbers) :]
    if numbers:
        low, wide = numbers[0], numbers[-1] - numbers[0] or 1.0
        along = [ordered((number - low) / wide) for number in numbers]
    else:
        along = []
    shades = FILLS if len(names) <= len(FILLS) else [ordered(i / (len(names) - 1)) for i in range(len(names))]
    return dict(zip(actions, [*along, *shades], strict=False))
