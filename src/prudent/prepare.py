"""Prune, normalise, collapse: the prepared model that every method works on, and the way back.

1. *Prune.*  Keep what a policy that reaches a goal with probability 1 can use, and the start can reach.
2. *Normalise by best luck.*  With c_min(s) the least cost of reaching a goal by any actions and any luck,
   every cost becomes ``c + c_min(s') - c_min(s) >= 0``; totals change by the constant c_min(start).
   Costs are whole numbers of lattice steps here, so nothing is rounded.
3. *Collapse.*  Inside an end component at no cost moving is free: its members become one state, whose
   actions are the exits.  Afterwards every fixed point a method looks for is unique.
4. *Drop free loops.*  An outcome at no cost back to the same state changes neither state nor budget, so the
   action is played again: its other outcomes' chances are scaled up.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.errors import PrudentError
from prudent.graph import (
    Blocks,
    BoolArray,
    end_components,
    entering,
    ordered_blocks,
    reachable,
    starts,
    towards,
)
from prudent.kernels.graphs import almost_sure, best_luck
from prudent.lattice import Lattice, find_lattice, round_to_lattice, usual_step
from prudent.model import SSP, FloatArray, IntArray, owner

__all__ = ["Prepared", "prepare", "restrict"]


@dataclass(frozen=True, eq=False)
class Prepared:
    """A model ready for planning: costs are whole, non-negative numbers of levels, free cycles are gone."""

    model: SSP
    lattice: Lattice  # the costs' step in the user's units
    stride: int  # lattice steps per level (normalising may leave only multiples of it)
    start: int
    action_start: IntArray  # (n_states + 1,)
    outcome_start: IntArray  # (n_actions + 1,)
    free_stop: IntArray  # (n_actions,)  outcomes at no cost come first, up to here
    probability: FloatArray  # (n_outcomes,)
    successor: IntArray  # (n_outcomes,)
    cost: IntArray  # (n_outcomes,)  in levels
    shift: FloatArray  # (n_outcomes,)  what the true cost has on average beyond the rounded one, in the user's units
    state_of: IntArray  # (model.n_states,)  the prepared state; -1: pruned
    luck: IntArray  # (model.n_states,)  c_min in lattice steps
    start_luck: int  # c_min of the start, in lattice steps
    model_action: IntArray  # (n_actions,)  the model's action; -1: the first chance step
    inner_action: IntArray  # the model's actions inside collapsed end components
    mean_cost: FloatArray = field(init=False)  # (n_actions,)  expected cost in levels

    def __post_init__(self) -> None:
        action_of = owner(self.outcome_start)
        weighted = np.bincount(action_of, weights=self.probability * self.cost, minlength=self.n_actions)
        object.__setattr__(self, "mean_cost", weighted.astype(np.float64))

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
    def free_blocks(self) -> Blocks:
        """The components of the zero-cost graph, successors first."""
        free = self.cost == 0
        return ordered_blocks(self.outcome_state[free], self.successor[free], self.n_states)

    @cached_property
    def blocks(self) -> Blocks:
        """The components of the whole graph, successors first."""
        return ordered_blocks(self.outcome_state, self.successor, self.n_states)

    @property
    def acyclic(self) -> bool:
        """Whether no state can be visited twice."""
        loops = bool((self.outcome_state == self.successor).any())
        return not loops and len(self.blocks[0]) - 1 == self.n_states

    def in_units(self, levels: float) -> float:
        """Return a total in levels, counted from the best luck at the start, in the user's units."""
        return float(self.lattice.value(self.start_luck)) + levels * self.stride * self.lattice.step

    def in_levels(self, total: float) -> float:
        """Return a total in the user's units in levels; the inverse of :meth:`in_units`."""
        return (total - self.in_units(0)) / (self.stride * self.lattice.step)

    def totals(self, levels: IntArray) -> FloatArray:
        """Return whole totals in levels in the user's units, as the nearest floats."""
        return self.lattice.value(self.start_luck + levels * self.stride)

    def spent_levels(self, state: int, spent: float) -> int:
        """Return how many levels a run has used that is in a model state having spent so much."""
        steps = self.lattice.multiple(spent, "spent") + int(self.luck[state]) - self.start_luck
        if steps < 0 or steps % self.stride:
            least = float(self.lattice.value(self.start_luck - int(self.luck[state])))
            raise PrudentError(
                f"no run can be in state {self.model.state(state)!r} having spent {spent:g}; the least is {least:g}"
            )
        return steps // self.stride

    def route(self, state: int, action: int) -> int:
        """Return the model action to play in a model state so as to end up playing ``action`` for sure.

        They differ only inside a collapsed end component: there a member that does not own the action moves
        on a shortest way to the one that does, inside, at no cost.
        """
        target = self.model.state_of_action(action)
        if state == target:
            return action
        return int(self._routes(target)[state])

    def _routes(self, target: int) -> IntArray:
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


@dataclass(frozen=True)
class _Flat:
    """A model under preparation: each item names its row, so that rows can be dropped, renamed and sorted."""

    n_states: int
    start: int
    action_state: IntArray  # (n_actions,)
    model_action: IntArray  # (n_actions,)
    outcome_action: IntArray  # (n_outcomes,)
    probability: FloatArray  # (n_outcomes,)
    successor: IntArray  # (n_outcomes,)
    cost: NDArray[Any]  # (n_outcomes,)  as given; whole levels once normalised
    shift: FloatArray  # (n_outcomes,)  what rounding to the lattice took away

    @property
    def n_actions(self) -> int:
        return len(self.action_state)

    @property
    def outcome_state(self) -> IntArray:
        return self.action_state[self.outcome_action]

    def kept(self, outcome: IntArray | BoolArray) -> "_Flat":
        """Keep some outcomes, in the order given."""
        columns = ("outcome_action", "probability", "successor", "cost", "shift")
        return replace(self, **{name: getattr(self, name)[outcome] for name in columns})

    def with_actions(self, action: IntArray) -> "_Flat":
        """Keep some actions, in the order given, and what comes of them."""
        rank = np.full(self.n_actions, -1)
        rank[action] = np.arange(len(action))
        flat = self.kept(rank[self.outcome_action] >= 0)
        return replace(
            flat,
            action_state=self.action_state[action],
            model_action=self.model_action[action],
            outcome_action=rank[flat.outcome_action],
        )

    def with_states(self, new: IntArray, n_states: int) -> "_Flat":
        """Rename the states."""
        return replace(
            self,
            n_states=n_states,
            start=int(new[self.start]),
            action_state=new[self.action_state],
            successor=new[self.successor],
        )


def prepare(model: SSP, step: float | None = None) -> Prepared:
    """Prune, normalise and collapse; raise where no policy reaches a goal.

    Costs without a common step, and all costs where a ``step`` is given, are rounded to the nearest multiple of a
    step; the lattice's deviation says by how much.
    """
    flat = _opened(model)
    flat, pruned_to = _pruned(model, flat)
    found = find_lattice(flat.cost) if step is None else None
    lattice, steps = found or round_to_lattice(flat.cost, step or usual_step(flat.cost))
    flat = replace(flat, shift=flat.cost - lattice.value(steps))
    flat, stride, luck = _normalised(model, flat, pruned_to, steps)
    start_luck = int(luck[flat.start])
    flat, collapsed_to, inner_action = _collapsed(flat)
    flat = _without_free_loops(flat)

    known = pruned_to[: model.n_states] >= 0
    state_of, state_luck = (
        np.full(model.n_states, -1, dtype=np.int64),
        np.zeros(model.n_states, dtype=np.int64),
    )
    state_of[known] = collapsed_to[pruned_to[: model.n_states][known]]
    state_luck[known] = luck[pruned_to[: model.n_states][known]]
    outcome_start = starts(flat.outcome_action, flat.n_actions)
    n_free = np.bincount(flat.outcome_action, weights=flat.cost == 0, minlength=flat.n_actions)
    return Prepared(
        model=model,
        lattice=lattice,
        stride=stride,
        start=flat.start,
        action_start=starts(flat.action_state, flat.n_states),
        outcome_start=outcome_start,
        free_stop=outcome_start[:-1] + n_free.astype(np.int64),
        probability=flat.probability,
        successor=flat.successor,
        cost=flat.cost,
        shift=flat.shift,
        state_of=state_of,
        luck=state_luck,
        start_luck=start_luck,
        model_action=flat.model_action,
        inner_action=inner_action,
    )


def restrict(prepared: Prepared, choice: IntArray) -> Prepared:
    """Return the prepared model in which ``choice``, one action for each state, is all there is."""
    acting = np.diff(prepared.action_start) > 0
    action = choice[acting]
    used = np.zeros(prepared.n_actions, dtype=bool)
    used[action] = True
    kept = used[prepared.outcome_action]
    outcome_start = np.concatenate([[0], np.cumsum(np.diff(prepared.outcome_start)[used])])
    return replace(
        prepared,
        action_start=np.concatenate([[0], np.cumsum(acting)]),
        outcome_start=outcome_start,
        free_stop=outcome_start[:-1] + (prepared.free_stop - prepared.outcome_start[:-1])[used],
        probability=prepared.probability[kept],
        successor=prepared.successor[kept],
        cost=prepared.cost[kept],
        shift=prepared.shift[kept],
        model_action=prepared.model_action[used],
    )


def _opened(model: SSP) -> _Flat:
    """Lay the model open: impossible outcomes dropped, an initial distribution as the action of one more state."""
    flat = _Flat(
        n_states=model.n_states,
        start=int(model.initial_state[0]),
        action_state=owner(model.action_start),
        model_action=np.arange(model.n_actions),
        outcome_action=owner(model.outcome_start),
        probability=model.probability,
        successor=model.successor,
        cost=model.cost,
        shift=np.zeros(model.n_outcomes),
    )
    n_initial = len(model.initial_state)
    if n_initial > 1:
        flat = replace(
            flat,
            n_states=model.n_states + 1,
            start=model.n_states,
            action_state=np.append(flat.action_state, model.n_states),
            model_action=np.append(flat.model_action, -1),
            outcome_action=np.append(flat.outcome_action, np.full(n_initial, model.n_actions)),
            probability=np.append(flat.probability, model.initial_probability),
            successor=np.append(flat.successor, model.initial_state),
            cost=np.append(flat.cost, np.zeros(n_initial)),
            shift=np.zeros(model.n_outcomes + n_initial),
        )
    return flat.kept(flat.probability > 0)


def _pruned(model: SSP, flat: _Flat) -> tuple[_Flat, IntArray]:
    """Keep what proper policies can use; also return the new number of each state, -1 where pruned."""
    state_kept, action_kept = np.ones(flat.n_states, dtype=bool), np.ones(flat.n_actions, dtype=bool)
    enter_start, enter = entering(flat.successor, flat.n_states)
    action_start = starts(flat.action_state, flat.n_states)
    almost_sure(action_start, flat.action_state, flat.outcome_action, enter_start, enter, state_kept, action_kept)
    if not state_kept[flat.start]:
        raise PrudentError(_trapped(model, flat))
    used = action_kept[flat.outcome_action]
    found = reachable(flat.outcome_state[used], flat.successor[used], flat.n_states, flat.start)
    action_kept &= found[flat.action_state]
    new = np.where(found, np.cumsum(found) - 1, -1)
    return flat.with_actions(np.flatnonzero(action_kept)).with_states(new, int(found.sum())), new


def _normalised(model: SSP, flat: _Flat, pruned_to: IntArray, steps: IntArray) -> tuple[_Flat, int, IntArray]:
    """Turn costs in lattice steps into whole levels above best luck; also return the stride and c_min in steps."""
    luck, via = np.empty(flat.n_states, dtype=np.int64), np.empty(flat.n_states, dtype=np.int64)
    is_goal = np.bincount(flat.action_state, minlength=flat.n_states) == 0
    enter_start, enter = entering(flat.successor, flat.n_states)
    inside = best_luck(is_goal, flat.action_state, flat.outcome_action, enter_start, enter, steps, luck, via)
    if inside >= 0:
        raise PrudentError(_negative_cycle(model, flat, pruned_to, inside, via))
    steps = steps + luck[flat.successor] - luck[flat.outcome_state]
    stride = max(int(np.gcd.reduce(steps)), 1) if len(steps) else 1
    return replace(flat, cost=steps // stride), stride, luck


def _collapsed(flat: _Flat) -> tuple[_Flat, IntArray, IntArray]:
    """Merge each end component at no cost into one state; also return the new states and the inner actions."""
    outcome_start = starts(flat.outcome_action, flat.n_actions)
    priced = np.bincount(flat.outcome_action, weights=flat.cost > 0, minlength=flat.n_actions) > 0
    component, inner = end_components(flat.action_state, outcome_start, flat.successor, flat.n_states, ~priced)
    leader = np.arange(flat.n_states)
    member = np.flatnonzero(component >= 0)
    _, first, which = np.unique(component[member], return_index=True, return_inverse=True)
    leader[member] = member[first[which]]
    _, new = np.unique(leader, return_inverse=True)
    inner_action = flat.model_action[inner]
    exits = np.flatnonzero(~inner)
    flat = flat.with_states(new, int(new.max()) + 1)
    return flat.with_actions(exits[np.argsort(flat.action_state[exits], kind="stable")]), new, inner_action


def _without_free_loops(flat: _Flat) -> _Flat:
    """Drop outcomes at no cost back to the same state, scale the others up, merge equal ones, put free ones first."""
    loop = (flat.cost == 0) & (flat.successor == flat.outcome_state)
    looped = np.bincount(flat.outcome_action[loop], minlength=flat.n_actions) > 0
    flat = flat.kept(~loop)
    away = np.bincount(flat.outcome_action, weights=flat.probability, minlength=flat.n_actions)
    scale = np.where(looped, away, 1.0)
    flat = replace(flat, probability=flat.probability / scale[flat.outcome_action])
    flat = flat.kept(np.lexsort((flat.successor, flat.cost, flat.outcome_action)))
    new = np.ones(len(flat.cost), dtype=bool)
    new[1:] = (np.diff(flat.outcome_action) | np.diff(flat.cost) | np.diff(flat.successor)) != 0
    first = np.flatnonzero(new)
    if len(first) == 0:
        return flat
    merged = np.add.reduceat(flat.probability, first)
    shift = np.add.reduceat(flat.probability * flat.shift, first) / merged
    return replace(flat.kept(first), probability=merged, shift=shift)


def _trapped(model: SSP, flat: _Flat) -> str:
    is_goal = np.bincount(flat.action_state, minlength=flat.n_states) == 0
    stuck = ~is_goal & (towards(flat.outcome_state, flat.successor, flat.n_states, is_goal) < 0)
    trap = int(np.flatnonzero(stuck & reachable(flat.outcome_state, flat.successor, flat.n_states, flat.start))[0])
    return (
        f"no policy reaches a goal of {model.name} with probability 1: every one may end in state "
        f"{model.state(trap)!r}, from which no goal can be reached; lead out of it, or put a price on getting stuck "
        "(dead_end_cost=) or on not finishing in time (horizon=) with prudent.amend, or --dead-end-cost, --horizon"
    )


def _negative_cycle(model: SSP, flat: _Flat, pruned_to: IntArray, state: int, via: IntArray) -> str:
    for _ in range(flat.n_states):  # walk until surely on the cycle
        state = int(flat.successor[via[state]])
    original = np.flatnonzero(pruned_to >= 0)
    cycle, total, at = [state], 0.0, state
    while True:
        total += float(flat.cost[via[at]])
        at = int(flat.successor[via[at]])
        cycle.append(at)
        if at == state:
            break
    names = " -> ".join(repr(model.state(int(original[s]))) for s in cycle)
    return (
        f"the cycle {names} of {model.name} can have a total cost of {total:g}; cycles of outcomes with negative "
        "total cost are not supported (the optimum may still be finite): shift or correct the costs"
    )
