"""The states that a search has expanded so far, and the bounds it assumes for the rest.

Values of the heuristic h are rounded down to the common step of the costs, which the model then keeps.  h must be at
most 0 at goals, and at most the lowest expected cost known from plans that stay in the explored part; in states that
were not expanded it is trusted.  Without one, h is 0, and costs are assumed not to be negative.

If getting stuck has a price, it is paid only in states from which no goal can be reached.  That a state is one of these
is known once all its descendants are expanded.  Until then it is *in doubt* if no known goal can be reached from it: a
lower bound lets runs give up there, an upper bound does not.
"""

import math
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any

import numpy as np

from prudent.engine.cost_step import find_lattice
from prudent.engine.prepare import prepare
from prudent.engine.values.expected_cost import least_expected_cost
from prudent.errors import PrudentError
from prudent.models.amend import with_way_out
from prudent.models.build import PartialModel
from prudent.models.graph import leading
from prudent.models.rows import IntArray
from prudent.models.ssp import SSP
from prudent.runtime.limits import Limits

STATE_BYTES, OUTCOME_BYTES = 1000, 350
"""About the most memory for a state met and for an outcome known: here, in the model solved last, and in the model
being solved, without its tables."""

TOO_HIGH = 1e-9
"""How far a heuristic may be above the lowest expected cost, relative to its size: its own rounding errors."""

Heuristic = Callable[[Any], float]


@dataclass
class Expansion:
    """A partial model with the bounds of its states, and the order in which others are expanded."""

    partial: PartialModel
    heuristic: Heuristic | None
    dead_end_cost: float | None
    bound: list[float] = field(default_factory=list)  # h of each state met
    behind: list[float] = field(default_factory=list)  # the lowest cost seen on a path to it
    nearest: list[tuple[float, int]] = field(default_factory=list)  # a heap of states not expanded, by the sum of both
    hopeless: set[int] = field(default_factory=set)  # states from which no goal can be reached, according to h
    in_doubt: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))  # as of the latest model

    def __post_init__(self) -> None:
        for number in self.partial.initial_state:
            self._meet(number, 0.0)

    def expand(self, number: int) -> None:
        """Expand a state."""
        partial = self.partial
        partial.expand(number)
        if partial.is_goal(number) and self.bound[number] > 0:
            self._refuse(number, 0.0, "it is a goal")
        here, behind = partial.outcomes(number), self.behind[number]
        for outcome in range(here.start, here.stop):
            target, cost = partial.successor[outcome], partial.cost[outcome]
            if cost < 0 and self.heuristic is None:
                raise PrudentError(
                    f"{partial.place(outcome)} has an outcome of cost {cost:g}; if costs are negative, set "
                    "heuristic= to a lower bound on the lowest expected cost"
                )
            if target == len(self.bound):
                self._meet(target, behind + cost)
            elif behind + cost < self.behind[target]:
                self.behind[target] = behind + cost
                if not partial.is_expanded(target) and self.bound[target] < math.inf:
                    heappush(self.nearest, (behind + cost + self.bound[target], target))

    def expand_nearest(self) -> bool:
        """Expand the state with the lowest sum of cost so far and bound; return whether there is one."""
        while self.nearest:
            _, number = heappop(self.nearest)
            if not self.partial.is_expanded(number):
                self.expand(number)
                return True
        return False

    def expand_from(self, number: int, enough: int, stop: Callable[[], object]) -> None:
        """Expand the descendants of an expanded state, layer by layer, up to a total number of expanded states."""
        partial, queue, seen = self.partial, [number], {number}
        for state in queue:
            if len(partial.expanded) >= enough or stop():
                return
            if not partial.is_expanded(state) and not partial.is_goal(state):
                self.expand(state)
            if partial.is_expanded(state):
                after = [target for target in partial.successor[partial.outcomes(state)] if target not in seen]
                seen.update(after)
                queue += dict.fromkeys(after)

    def open(self, numbers: Iterable[int] | None = None) -> list[int]:
        """Return which of some states, or of all that were met, are neither expanded nor goals."""
        partial, some = self.partial, range(len(self.bound)) if numbers is None else numbers
        return [number for number in some if not partial.is_expanded(number) and not partial.is_goal(number)]

    def _meet(self, number: int, behind: float) -> None:
        """Register a state that is met for the first time."""
        partial = self.partial
        h, named = 0.0, partial.goals is not None and partial.is_goal(number)
        if named:
            partial.expand(number)  # it may not have actions
        elif self.heuristic is not None:
            h = _as_bound(self.heuristic(partial.states[number]), partial.states[number])
            if h == math.inf:
                self.hopeless.add(number)
        if self.dead_end_cost is not None and not named:
            h = min(h, self.dead_end_cost)
        self.bound.append(h)
        self.behind.append(behind)
        if h < math.inf and not named:
            heappush(self.nearest, (behind + h, number))

    @property
    def known_bytes(self) -> int:
        """About the memory used by all of it."""
        return STATE_BYTES * len(self.partial.states) + OUTCOME_BYTES * len(self.partial.cost)

    def model(self) -> SSP:
        """Return the partial model; states not expanded have the heuristic's value as their price."""
        partial, bound = self.partial, np.array(self.bound)
        leaf = [number for number in range(len(bound)) if not partial.is_expanded(number)]
        if not (bound[leaf] < math.inf).any() and leaf and not any(map(partial.is_goal, range(len(bound)))):
            raise PrudentError(
                f"no goal was met, and heuristic({partial.states[leaf[0]]!r}) is inf, as in all other states left, so "
                "no goal can be reached; if one can, return a finite number there"
            )
        costs = np.array(partial.cost)
        found = find_lattice(costs) if len(costs) and np.isfinite(costs).all() else None  # else the model is rejected
        if found is not None:
            lattice = found[0]
            small = np.abs(bound) < 2**53 * lattice.step  # larger ones are whole steps
            bound[small] = lattice.value(np.floor(bound[small] / lattice.step).astype(np.int64))
        model = partial.ssp({number: float(bound[number]) for number in leaf})
        if self.dead_end_cost is None:
            return model
        trap, self.in_doubt = self._stuck(model)
        return with_way_out(model, self.dead_end_cost, trap, self.in_doubt)

    def priced(self, model: SSP) -> SSP:
        """Return the explored part as a model; runs that get stuck pay the price, if there is one."""
        return model if self.dead_end_cost is None else with_way_out(model, self.dead_end_cost, self._stuck(model)[0])

    def _stuck(self, model: SSP) -> tuple[IntArray, IntArray]:
        """Return the states that are known to lead to no goal, and those in doubt."""
        partial = self.partial
        goal, leaf = model.is_goal.copy(), np.zeros(model.n_states, dtype=bool)
        goal[len(partial.states) :] = False  # it stands for the part not explored
        leaf[[n for n in range(len(partial.states)) if not partial.is_expanded(n) and n not in self.hopeless]] = True
        leaf[list(partial.narrowed)] = True
        lost, open_ = ~leading(model, goal) & ~model.is_goal, leading(model, leaf & ~goal)
        return np.flatnonzero(lost & ~open_), np.flatnonzero(lost & open_ & ~leaf)

    @property
    def trusted(self) -> int:
        """The number of unexpanded states at which the lower bound rests on a heuristic that was given."""
        return 0 if self.heuristic is None else len(self.open())

    def check_heuristic(self, limits: Limits) -> None:
        """Reject a heuristic above the lowest expected cost of plans that stay in the explored part."""
        if self.heuristic is None:
            return
        try:
            prepared = prepare(self.priced(self.partial.ssp()), None, limits)
            least = least_expected_cost(prepared, limits)
        except PrudentError:  # then no such plan is known
            return
        inside, scale = prepared.members.state_of[: len(self.bound)], prepared.scale
        known = np.flatnonzero(inside >= 0)
        above = least.upper[inside[known]] * scale.level_size
        most = scale.lattice.value(scale.luck[known]) + above
        bound = np.array(self.bound)[known]
        off = TOO_HIGH * (np.abs(most) + np.abs(bound)) + scale.lattice.deviation * len(self.bound)
        high = np.flatnonzero(bound > most + off)
        if len(high):
            self._refuse(int(known[high[0]]), float(most[high[0]]), "a known plan has this expected cost")

    def _refuse(self, number: int, most: float, why: str) -> None:
        raise PrudentError(
            f"heuristic({self.partial.states[number]!r}) is {self.bound[number]:.12g}; it must be a lower bound on the "
            f"lowest expected cost, which is at most {most:.12g} there: {why}"
        )


def _as_bound(value: Any, state: Hashable) -> float:
    try:
        number = math.nan if isinstance(value, str | bytes) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not number > -math.inf:
        raise PrudentError(f"heuristic({state!r}) is {value!r}; it must be a number, or inf if no goal can be reached")
    return number
