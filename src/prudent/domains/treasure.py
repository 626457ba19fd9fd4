"""Deep Sea Treasure: a submarine may go for the rich treasures far out, or return early."""

from functools import cache
from typing import Any

from prudent.domains.registry import domain
from prudent.errors import whole_number
from prudent.models.build import build
from prudent.models.ssp import SSP

SIZE = 15
DEPTH = dict(enumerate((3, 5, 5, 6, 7, 7, 8, 9, 9, 10, 11, 11, 12, 13, 13)))
"""The row of each column's treasure; every cell below it is rock."""

TREASURE = dict(zip(DEPTH.items(), (10, 15, 25, 30, 40, 55, 75, 100, 140, 190, 240, 300, 360, 430, 500), strict=True))
"""Value by (column, row)."""

COMPASS = ("N", "NE", "E", "SE", "S", "SW", "W", "NW")
DIRECTIONS = dict(zip(COMPASS, ((0, -1), (1, -1), (1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1)), strict=True))
ACTIONS = ("N", "NE", "NW", "S", "SE", "SW", "E", "W")
"""The directions in the paper's order; of equally good ones, methods take the first."""

START = (0, 1)
STRAIGHT, ASIDE = 0.6, 0.2
MOVE_COST, NOTHING_COST = 5, 500


@domain("Deep Sea Treasure", parts=("column", "row", "moves made"), drawn="sea", points=80)
def deep_sea_treasure(horizon: int = 15) -> SSP:
    """Return Deep Sea Treasure as in Rigter et al. (2022), adapted there from Vamplew et al. (2011).

    A state is ``(column, row, moves made)`` on a 15 x 15 map; an action is one of eight directions.  The submarine goes
    straight with probability 0.6 and in either neighbouring direction with probability 0.2.  Moves off the map or into
    rock are left out, and the other probabilities are scaled up.  A move costs 5.  At a treasure, or after ``horizon``
    moves, the only action, ``"stop"``, costs ``500 - value`` (500 without a treasure) and leads to the goal ``"end"``.

    Parameters
    ----------
    horizon : int
        The largest number of moves.

    Examples
    --------
    >>> import prudent
    >>> prudent.domains.deep_sea_treasure()
    <SSP deep-sea-treasure: 1,078 states, 6,705 actions, 18,396 outcomes>
    """
    horizon = whole_number("horizon", horizon, 1)

    def actions(state: Any) -> dict[Any, Any]:
        if state == "end":
            return {}
        column, row, moves = state
        if (column, row) in TREASURE or moves == horizon:
            return {"stop": [(1.0, "end", NOTHING_COST - TREASURE.get((column, row), 0))]}
        return {
            name: [(chance, (*cell, moves + 1), MOVE_COST) for chance, cell in possible]
            for name, possible in _moves(column, row).items()
        }

    return build((*START, 0), actions, goals=["end"], name="deep-sea-treasure")


@cache
def _moves(column: int, row: int) -> dict[str, list[tuple[float, tuple[int, int]]]]:
    """Return the cells that each direction may lead to from a cell, with their probabilities."""
    options = {}
    for name in ACTIONS:
        i, possible = COMPASS.index(name), []
        for turn, chance in ((0, STRAIGHT), (-1, ASIDE), (1, ASIDE)):
            across, down = DIRECTIONS[COMPASS[(i + turn) % len(COMPASS)]]
            cell = (column + across, row + down)
            if 0 <= cell[0] < SIZE and 0 <= cell[1] <= DEPTH[cell[0]]:
                possible.append((chance, cell))
        total = sum(chance for chance, _ in possible)
        if possible:
            options[name] = [(chance / total, cell) for chance, cell in possible]
    return options
