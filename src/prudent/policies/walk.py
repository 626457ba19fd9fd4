"""What simulated runs walk over."""

from dataclasses import dataclass, fields
from typing import Any

from numpy.typing import NDArray

from prudent.models.rows import FloatArray, IntArray

__all__ = ["Walk"]


@dataclass(frozen=True)
class Walk:
    """What the kernel walks over: the model itself, or the states that a policy with a memory is unrolled into."""

    outcome_start: IntArray
    probability: FloatArray
    successor: IntArray
    charge: IntArray  # (n_outcomes,)  in levels
    cost: FloatArray  # (n_outcomes,)
    first_state: IntArray
    first_probability: FloatArray
    first_charge: IntArray
    level: int
    table: NDArray[Any]  # (n_levels, n_columns)
    column: IntArray  # (n_states,)  of the table; -1 in goals
    offset: IntArray  # (n_states,)  what to add to the table's entry
    lookup: IntArray  # the action that the sum stands for

    def arrays(self) -> tuple[Any, ...]:
        """Return what the kernel takes, in its order."""
        return tuple(getattr(self, item.name) for item in fields(self))
