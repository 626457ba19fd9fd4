"""The prepared model that every method works on, and the way back to the user's.

Costs are whole, non-negative numbers of *levels* above best luck, free cycles are gone.  How it is made is told in
:mod:`prudent.engine.prepare`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from math import ceil, isfinite
from typing import Any, TypeVar

import numpy as np

from prudent.engine.cost_step import Lattice
from prudent.errors import PrudentError, as_number
from prudent.kernels.acyclic import least_behind
from prudent.kernels.counting import mean_costs
from prudent.kernels.layout import layers, least_costs
from prudent.models.graph import Blocks, BoolArray, ordered_blocks, towards
from prudent.models.ssp import SSP, FloatArray, IntArray, owner

__all__ = ["Prepared", "choice_type", "once", "restrict", "restrict_to"]

T = TypeVar("T")

NEAR = 1e-9
"""How far what was spent may be from a total that runs can have, if it is large relative to it."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """A model ready for planning: costs are whole, non-negative numbers of levels, free cycles are gone."""

    model: SSP
    lattice: Lattice  # what costs are counted in, in the user's units
    stride: int  # lattice steps per level
    step: float  # the step that costs are multiples of, or are rounded to, in the user's units
    rounded: bool  # whether levels are rounded costs, up unless asked otherwise
    slip: int  # lattice steps by which a normalised cost may be too high, if the lattice holds costs only closely
    start: int
    action_start: IntArray  # (n_states + 1,)
    outcome_start: IntArray  # (n_actions + 1,)
    free_stop: IntArray  # (n_actions,)  outcomes at no cost come first, up to here
    probability: FloatArray  # (n_outcomes,)
    successor: IntArray  # (n_outcomes,)
    fine: IntArray  # (n_outcomes,)  normalised cost in lattice steps
    cost: IntArray  # (n_outcomes,)  in levels
    state_of: IntArray  # (model.n_states,)  the prepared state; -1: pruned
    luck: IntArray  # (model.n_states,)  c_min in lattice steps
    start_luck: int  # c_min of the start, in lattice steps
    model_action: IntArray  # (n_actions,)  the model's action; -1: the first chance step
    plays: FloatArray  # (n_actions,)  how often it is played in a row, on average: free loops are dropped
    inner_action: IntArray  # the model's actions inside collapsed end components
    mean_cost: FloatArray = field(init=False)  # (n_actions,)  expected cost in levels, not rounded

    def __post_init__(self) -> None:
        mean = mean_costs(self.outcome_start, self.probability, self.fine, float(self.stride))
        object.__setattr__(self, "mean_cost", mean)

    @property
    def n_states(self) -> int:
        """The number of prepared states."""
        return len(self.action_start) - 1

    @property
    def n_actions(self) -> int:
        """The number of prepared (state, action) pairs."""
        return len(self.outcome_start) - 1

    @cached_property
    def action_state(self) -> IntArray:
        """The state of each action."""
        return owner(self.action_start)

    @cached_property
    def outcome_action(self) -> IntArray:
        """The action of each outcome."""
        return owner(self.outcome_start)

    @cached_property
    def outcome_state(self) -> IntArray:
        """The state that each outcome starts from."""
        return self.action_state[self.outcome_action]

    @cached_property
    def arc_start(self) -> IntArray:
        """Where the outcomes of each state start, those of all its actions together."""
        return self.outcome_start[self.action_start]

    @cached_property
    def free_blocks(self) -> Blocks:
        """The components of the zero-cost graph, successors first."""
        if self.acyclic:
            return self.blocks
        free = self.cost == 0
        free_start = np.concatenate([[0], np.cumsum(free)])[self.arc_start]
        return ordered_blocks(free_start, self.successor[free])[0]

    @cached_property
    def _ordered(self) -> tuple[Blocks, bool]:
        return ordered_blocks(self.arc_start, self.successor)

    @property
    def blocks(self) -> Blocks:
        """The components of the whole graph, successors first."""
        return self._ordered[0]

    @property
    def acyclic(self) -> bool:
        """Whether no state can be visited twice."""
        return self._ordered[1]

    @cached_property
    def longest(self) -> int:
        """The most actions of the model on a way that visits no state twice."""
        if not self.finite:
            return self.model.n_states
        layer, far = np.empty(self.n_states, dtype=np.int64), np.iinfo(np.int64).max
        layers(self.action_start, self.outcome_start, self.successor, self.cost, far, np.arange(self.n_states), layer)
        return int(layer.max())

    @property
    def finite(self) -> bool:
        """Whether no state of the model can be visited twice, but by an action played again at no cost."""
        return self.acyclic and len(self.inner_action) == 0

    @cached_property
    def least_spent(self) -> IntArray:
        """The least that a run in each state can have used, in levels: what is left is at most the rest.

        Where costs are rounded up it is that of the whole, which may be less than that of each cost.
        """
        up = self.rounded and bool((self.cost * self.stride >= self.fine).all())
        least = np.full(self.n_states, np.iinfo(np.int64).max // 2)
        far = int(least[0])
        rows = self.arc_start, self.successor, self.fine if up else self.cost, self.start
        if self.acyclic:
            least_behind(self.blocks[1], *rows, least)
        else:
            least_costs(*rows, least)
        least[least == far] = least[least < far].max()  # no run is there: as far as any
        return -(-least // self.stride) if up else least

    @property
    def level_size(self) -> float:
        """What one level is in the user's units."""
        return self.lattice.step * self.stride

    @cached_property
    def shift(self) -> FloatArray:
        """What rounding left out of each outcome's cost, in levels; none where it is exact."""
        return self.fine / self.stride - self.cost if self.rounded else np.zeros(len(self.cost))

    def in_units(self, levels: float) -> float:
        """Return a total in levels, counted from the best luck at the start, in the user's units."""
        return float(self.lattice.value(self.start_luck)) + levels * self.level_size

    def in_levels(self, total: float) -> float:
        """Return a total in the user's units in levels; the inverse of :meth:`in_units`."""
        return (total - self.in_units(0)) / self.level_size

    def totals(self, levels: IntArray, state: int | None = None) -> FloatArray:
        """Return what runs have spent that used so many levels and are in a model state, or at a goal.

        In the user's units, as the nearest floats; where steps of the lattice are too many for whole numbers, nearly.
        """
        base = self.start_luck - (0 if state is None else int(self.luck[state]))
        if abs(base) + int(np.max(levels, initial=0)) * self.stride < 2**62:
            return self.lattice.value(base + np.asarray(levels) * self.stride)
        return self.lattice.value(base) + np.asarray(levels) * self.level_size

    def charge(self, outcome: IntArray) -> IntArray:
        """Return the levels that a policy charges itself for outcomes of the model: rounded up."""
        model = self.model
        source = owner(model.action_start)[owner(model.outcome_start)[outcome]]
        steps = self.lattice.multiples(model.cost[outcome])
        return -(-(steps + self.luck[model.successor[outcome]] - self.luck[source]) // self.stride)

    def first_charge(self, state: int | IntArray) -> IntArray:
        """Return the levels charged for starting in a model state, which is the first chance step."""
        return -(-(self.luck[state] - self.start_luck) // self.stride)

    def spent_levels(self, state: int, spent: float) -> int:
        """Return how many levels a run has used that is in a model state having spent so much, rounded up."""
        spent, lattice = self._within_reach(as_number("spent", spent, "a finite number", isfinite)), self.lattice
        nearest = round(spent / lattice.step)
        if not self._on_lattice(spent):
            above = self.measured_levels(state, spent)
            below = max(above - 1, int(self.least_spent[self.state_of[state]]))
            near = " or ".join(f"{total:.12g}" for total in np.unique(self.totals(np.array([below, above]), state)))
            raise PrudentError(
                f"spent is {spent!r}; it must be a multiple of the model's cost step {lattice.step:g}: {near}; round "
                "up what was measured"
            )
        steps = nearest + int(self.luck[state]) - self.start_luck
        noise = self.slip + int(8 * np.spacing(abs(spent)) / lattice.step)
        if steps < -noise or (steps % self.stride and not self.rounded):
            raise self.never_spent(state, spent)
        return max(-(-steps // self.stride), 0)

    def measured_levels(self, state: int, spent: float) -> int:
        """Return the levels that stand for any number measured: rounded up, and no fewer than a run can have used."""
        spent = self._within_reach(spent)
        steps = (round if self._on_lattice(spent) else ceil)(spent / self.lattice.step)
        used = -(-(steps + int(self.luck[state]) - self.start_luck) // self.stride)
        return max(used, int(self.least_spent[self.state_of[state]]))

    def _within_reach(self, spent: float) -> float:
        """Return a total, or one that is beyond every budget as well and fits a whole number."""
        most = 2.0**62 * self.lattice.step
        return min(max(spent, -most), most)

    def _on_lattice(self, spent: float) -> bool:
        """Return whether a total is one of the lattice; where costs are rounded, any is."""
        off = abs(spent - np.rint(spent / self.lattice.step) * self.lattice.step)
        return self.rounded or bool(off <= NEAR * max(self.level_size, abs(spent)))

    def never_spent(self, state: int, spent: float) -> PrudentError:
        """Return the refusal of what no run can have spent in a model state."""
        inside = int(self.state_of[state])
        least = float(self.totals(self.least_spent[inside] if inside >= 0 else np.array(0), state))
        more = f", and more goes in steps of {self.level_size:g}" if spent > least else ""
        return PrudentError(
            f"no run can be in state {self.model.state(state)!r} having spent {spent:g}; the least is {least:g}{more}"
        )

    def route(self, state: int, action: int) -> int:
        """Return the model action to play in a model state so as to end up playing ``action`` for sure.

        They differ only inside a collapsed end component: there a member that does not own the action moves
        on a shortest way to the one that does, inside, at no cost.
        """
        target = self.model.state_of_action(action)
        if state == target:
            return action
        return int(self.routes(target)[state])

    def routes(self, target: int) -> IntArray:
        """Return, for each state of its collapsed end component, the model action that leads to ``target``; else -1."""
        cache = self._route_cache
        if target not in cache:
            model = self.model
            state_of, action_of = owner(model.action_start), owner(model.outcome_start)
            inside = np.zeros(model.n_actions, dtype=bool)
            inside[self.inner_action] = True
            arc = np.flatnonzero(inside[action_of] & (model.probability > 0))
            source = state_of[action_of[arc]]
            marked = np.arange(model.n_states) == target
            hop = towards(source, model.successor[arc], model.n_states, marked)
            route = np.full(model.n_states, -1, dtype=np.int64)
            good = hop[source] == model.successor[arc]
            route[source[good]] = action_of[arc[good]]
            cache[target] = route
        return cache[target]

    @cached_property
    def _route_cache(self) -> dict[int, IntArray]:
        return {}

    @cached_property
    def _known(self) -> dict[str, Any]:
        return {}


def once(function: Callable[[Prepared], T]) -> Callable[[Prepared], T]:
    """Let a prepared model remember what a function makes of it; what is returned is not to be written to."""
    name = f"{function.__module__}.{function.__qualname__}"

    @wraps(function)
    def remembered(prepared: Prepared) -> T:
        known = prepared._known
        if name not in known:
            known[name] = function(prepared)
        found: T = known[name]
        return found

    return remembered


def choice_type(prepared: Prepared) -> type[Any]:
    """Return the smallest type that holds the number of an action within its state."""
    most = int(np.diff(prepared.action_start).max(initial=1)) - 1
    return np.uint8 if most < 2**8 else np.uint16 if most < 2**16 else np.int32


def restrict(prepared: Prepared, choice: IntArray) -> Prepared:
    """Return the prepared model in which ``choice``, one action for each state, is all there is."""
    used = np.zeros(prepared.n_actions, dtype=bool)
    used[choice[np.diff(prepared.action_start) > 0]] = True
    return restrict_to(prepared, used)


def restrict_to(prepared: Prepared, used: BoolArray) -> Prepared:
    """Return the prepared model in which some actions, at least one for each state that has any, are all there are."""
    kept = used[prepared.outcome_action]
    outcome_start = np.concatenate([[0], np.cumsum(np.diff(prepared.outcome_start)[used])])
    return replace(
        prepared,
        action_start=np.concatenate([[0], np.cumsum(used)])[prepared.action_start],
        outcome_start=outcome_start,
        free_stop=outcome_start[:-1] + (prepared.free_stop - prepared.outcome_start[:-1])[used],
        probability=prepared.probability[kept],
        successor=prepared.successor[kept],
        fine=prepared.fine[kept],
        cost=prepared.cost[kept],
        model_action=prepared.model_action[used],
        plays=prepared.plays[used],
    )
