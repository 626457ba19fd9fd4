"""Inventory Control: buy stock before the demand is known, sell what is asked for, pay for what is left."""

import numpy as np

from prudent.domains.registry import domain
from prudent.errors import whole_number
from prudent.models.build import from_arrays, merge_outcomes
from prudent.models.rows import starts
from prudent.models.ssp import SSP

__all__ = ["inventory_control"]

PRICE, REVENUE, HOLDING = 1, 3, 1
SWING = 5


# With 0.6 of its budget left a run may be at any stage.
@domain(
    "Inventory Control", parts=("stage", "stock", "previous demand"), action="units bought", drawn="heat", opens_at=0.6
)
def inventory_control(stages: int = 10, capacity: int = 20, demand: int = 10) -> SSP:
    """Return Inventory Control as in Rigter et al. (2022).

    A state is ``(stage, stock, previous demand)``, an action the number of units bought, up to the
    capacity.  Demand is the previous one plus a uniform step of -5 to 5, kept between 0 and the capacity.
    A unit costs 1, sells for 3, and 1 is paid for each unit left at the end of a stage.  The cost of a
    stage is the largest possible profit, twice the capacity, minus the profit made, so a run of ten stages
    with capacity 20 makes a loss if it costs more than 400.  Stage costs can be negative.

    Parameters
    ----------
    stages : int
        How often one buys.
    capacity : int
        The most stock, and the highest demand.
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

    # chance[previous demand, demand]; demands beyond the range count at its ends
    swing = np.clip(level[:, None] + np.arange(-SWING, SWING + 1), 0, capacity)
    chance = np.zeros((capacity + 1, capacity + 1))
    np.add.at(chance, (np.repeat(level, 2 * SWING + 1), swing.ravel()), 1 / (2 * SWING + 1))
    possible = chance > 0

    # The states of each stage, kept as a mask over (stock, previous demand); one offset numbers them all.
    here = np.zeros((capacity + 1, capacity + 1), dtype=bool)
    here[0, demand] = True
    number = np.full((stages, capacity + 1, capacity + 1), -1)
    names: list[tuple[int, int, int] | str] = []
    for day in range(stages):
        number[day][here] = len(names) + np.arange(here.sum())
        names += [(day, stock, previous) for stock, previous in np.argwhere(here).tolist()]
        # After demand d from a stock of up to the capacity, anything up to capacity - d may be left, or nothing.
        arrives = possible[here.any(axis=0)].any(axis=0)
        here = (level[:, None] <= np.maximum(capacity - level, 0)[None, :]) & arrives
    goal = len(names)

    stage, stock, previous = np.argwhere(number >= 0).T
    n_buy = capacity - stock + 1
    action_state = np.repeat(np.arange(goal), n_buy)
    buy = np.arange(len(action_state)) - np.repeat(np.cumsum(n_buy) - n_buy, n_buy)
    action, asked = np.nonzero(possible[previous[action_state]])
    state = action_state[action]
    have = stock[state] + buy[action]
    sold = np.minimum(have, asked)
    left = have - sold
    profit = REVENUE * sold - PRICE * buy[action] - HOLDING * left
    last = stage[state] == stages - 1
    following = number[np.minimum(stage[state] + 1, stages - 1), left, asked]
    action, successor, cost, probability = merge_outcomes(
        action, np.where(last, goal, following), 2.0 * capacity - profit, chance[previous[state], asked]
    )
    return from_arrays(
        np.append(starts(action_state, goal), len(action_state)),
        starts(action, len(action_state)),
        probability,
        successor,
        cost,
        goals=[goal],
        state_names=[*names, "end"],
        action_names=buy.tolist(),
        name="inventory-control",
    )
