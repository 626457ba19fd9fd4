"""The table of a policy's actions by state and remaining budget, and looking them up."""

from typing import Any, NamedTuple

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def look_up(entry, first, low, high, stride, without, b, s):
    """Return the number, within state ``s``, of the action played with ``b`` levels left; see :class:`Choices`."""
    if b <= 0 or high[s] < low[s]:
        return without[s]
    return entry[first[s] + (min(max(b, low[s]), high[s]) - low[s]) * stride]


class Choices(NamedTuple):
    """The actions of a policy, each by its number within its state.

    For each state the table has a range of budgets, or none if the budget does not matter.  For a budget outside the
    range the nearest one inside is played: no run of the plan meets such a pair.
    """

    entry: np.ndarray  # the actions, in a small type
    first: np.ndarray  # (n_states,)  the place in ``entry`` of the least budget of each state
    low: np.ndarray  # (n_states,)  the least budget that the table has for each state
    high: np.ndarray  # (n_states,)  the largest one; below ``low`` where it has none
    stride: int  # the distance in ``entry`` between consecutive budgets of a state
    without: np.ndarray  # (n_states,)  the action once no budget is left

    @classmethod
    def of_rows(cls, rows: np.ndarray) -> "Choices":
        """Return a table of every budget, row ``b`` being played with ``b`` levels left; it shares their memory."""
        levels, n = rows.shape
        high = np.full(n, levels - 1, dtype=np.int64)
        return cls(rows.ravel(), np.arange(n), np.zeros(n, dtype=np.int64), high, n, rows[0])

    @classmethod
    def of_ranges(cls, entry: np.ndarray, low: np.ndarray, high: np.ndarray, without: np.ndarray) -> "Choices":
        """Return a table of the budgets ``low[s]`` to ``high[s]``, state by state in ``entry``."""
        size = np.maximum(high - low + 1, 0)
        return cls(entry, np.cumsum(size) - size, low, high, 1, without)

    def of(self, state: np.ndarray) -> "Choices":
        """Return the table for the given states, in their order; it shares its entries."""
        first, low, high, without = self.first[state], self.low[state], self.high[state], self.without[state]
        return Choices(self.entry, first, low, high, self.stride, without)

    def with_one_action(self, n: int) -> "Choices":
        """Return the table with ``n`` more states that have one action, whatever the remaining budget."""
        none = np.zeros(n, dtype=np.int64)
        return self._replace(
            first=np.append(self.first, none),
            low=np.append(self.low, none + 1),
            high=np.append(self.high, none),
            without=np.append(self.without, none.astype(self.without.dtype)),
        )

    @property
    def rows(self) -> np.ndarray | None:
        """The table by budget and state, if it has every budget in that order; it shares its memory."""
        n, levels = len(self.first), int(self.high[0]) + 1
        whole = self.stride == n and len(self.entry) == n * levels and (self.first == np.arange(n)).all()
        whole = whole and (self.low == 0).all() and (self.high == levels - 1).all()
        return self.entry.reshape(-1, n) if whole else None

    def at(self, state: int, left: int) -> int:
        """Return the action's number for one state and remaining budget."""
        return int(look_up.py_func(*self, left, state))

    def each(self, state: Any, left: Any) -> np.ndarray:
        """Return the action's number for each of many states and budgets left; they are broadcast."""
        shape = np.broadcast_shapes(np.shape(state), np.shape(left))
        states, budgets = (np.array(np.broadcast_to(each, shape), dtype=np.int64) for each in (state, left))
        found = np.empty(shape, dtype=np.int64)
        look_up_each(self, states.ravel(), budgets.ravel(), found.ravel())
        return found


@njit(cache=True)
def look_up_each(choices, state, left, found):
    """Look up the action of each pair of state and remaining budget."""
    entry, first, low, high, stride, without = choices
    for i in range(len(state)):
        found[i] = look_up(entry, first, low, high, stride, without, left[i], state[i])


@njit(cache=True)
def mark_played(action_start, choices, played):
    """Mark the actions that a policy plays anywhere."""
    entry, first, low, high, stride, without = choices
    most = 0
    for s in range(len(first)):
        played[action_start[s] + without[s]] = True
        most = max(most, high[s] - low[s] + 1)
    for begin in range(0, most, 64):  # stretch by stretch, so that tables of either layout are read through caches
        for s in range(len(first)):
            for i in range(begin, min(begin + 64, high[s] - low[s] + 1)):
                played[action_start[s] + entry[first[s] + i * stride]] = True
