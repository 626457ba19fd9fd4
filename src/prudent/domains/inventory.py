"""Inventory Control: buy stock before the demand is known, sell up to the demand, pay for unsold stock."""

from typing import Any

import numpy as np

from prudent.domains.registry import domain
from prudent.errors import whole_number
from prudent.models.events import from_events
from prudent.models.rows import BoolArray, FloatArray, IntArray
from prudent.models.ssp import SSP

PRICE, REVENUE, HOLDING = 1, 3, 1
SWING = 5


# With 0.6 of its budget left a run may be at any stage.
@domain(
    "Inventory Control", parts=("stage", "stock", "previous demand"), action="units bought", drawn="heat", opens_at=0.6
)
def inventory_control(stages: int = 10, capacity: int = 20, demand: int = 10) -> SSP:
    """Return Inventory Control as in Rigter et al. (2022).

    A state is ``(stage, stock, previous demand)``; an action is the number of units bought, up to the capacity.  The
    demand is the previous one plus a uniform step of -5 to 5, kept between 0 and the capacity.  A unit costs 1 and
    sells for 3; each unit left at the end of a stage costs 1.  The cost of a stage is the largest possible profit,
    twice the capacity, minus the profit made.  So a run of ten stages with capacity 20 makes a loss if it costs more
    than 400.  Stage costs can be negative.

    Parameters
    ----------
    stages : int
        The number of purchases.
    capacity : int
        The largest stock, and the highest demand.
    demand : int
        The demand before the first stage.

    Examples
    --------
    >>> import prudent
    >>> prudent.domains.inventory_control()
    <SSP inventory-control: 1,971 states, 28,390 actions, 270,725 outcomes>
    """
    stages = whole_number("stages", stages, 1)
    capacity = whole_number("capacity", capacity, 1)
    demand = whole_number("demand", demand, 0, capacity)
    level = np.arange(capacity + 1)

    # chance[previous demand, demand]; demands outside the range count at its ends
    swing = np.clip(level[:, None] + np.arange(-SWING, SWING + 1), 0, capacity)
    chance = np.zeros((capacity + 1, capacity + 1))
    np.add.at(chance, (np.repeat(level, 2 * SWING + 1), swing.ravel()), 1 / (2 * SWING + 1))

    def step(state: Any, buy: IntArray, asked: IntArray) -> tuple[Any, FloatArray, BoolArray]:
        stage, stock, _ = state
        have = stock + buy
        sold = np.minimum(have, asked)
        left = have - sold
        profit = REVENUE * sold - PRICE * buy - HOLDING * left
        return (stage + 1, left, asked), 2.0 * capacity - profit, stage == stages - 1

    return from_events(
        (stages, capacity + 1, capacity + 1),
        capacity + 1,
        chance[None, None],
        step,
        initial=(0, 0, demand),
        allowed=(level[:, None] + level <= capacity)[None, :, None],
        name="inventory-control",
    )
