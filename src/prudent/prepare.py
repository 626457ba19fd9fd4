"""Prune, normalise, collapse: how the prepared model is made.

1. *Prune.*  Keep what a policy that reaches a goal with probability 1 can use, and the start can reach.
2. *Normalise by best luck.*  With c_min(s) the least cost of reaching a goal by any actions and any luck,
   every cost becomes ``c + c_min(s') - c_min(s) >= 0``; totals change by the constant c_min(start).
   Costs are whole numbers of lattice steps here, so nothing is rounded.  Only then are they counted in *levels* of
   a stride of lattice steps: exactly where the stride divides them all, else rounded up, or down.
3. *Collapse.*  Inside an end component at no cost moving is free: its members become one state, whose
   actions are the exits.  Afterwards every fixed point a method looks for is unique.
4. *Drop free loops.*  An outcome at no cost back to the same state changes neither state nor budget, so the
   action is played again: its other outcomes' chances are scaled up.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.errors import PrudentError, as_number
from prudent.graph import BoolArray, end_components, entering, reachable, starts, towards
from prudent.kernels.graphs import almost_sure, best_luck
from prudent.lattice import COARSEST, Lattice, find_lattice, fine_lattice, usual_step
from prudent.model import SSP, FloatArray, IntArray, owner
from prudent.prepared import Prepared

__all__ = ["prepare"]


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
    cost: NDArray[Any]  # (n_outcomes,)  as given; whole lattice steps once normalised

    @property
    def n_actions(self) -> int:
        return len(self.action_state)

    @property
    def outcome_state(self) -> IntArray:
        return self.action_state[self.outcome_action]

    def kept(self, outcome: IntArray | BoolArray) -> "_Flat":
        """Keep some outcomes, in the order given."""
        columns = ("outcome_action", "probability", "successor", "cost")
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


def prepare(model: SSP, step: float | None = None, *, down: bool = False) -> Prepared:
    """Prune, normalise and collapse; raise where no policy reaches a goal.

    Where costs have no common step, and where a ``step`` is given that is not it, normalised costs are rounded to
    levels of that size: up, or ``down``.  Rounded down, costs also give up what the lattice may have added, so that
    they are surely at most the true ones.
    """
    if step is not None:
        step = as_number("step", step, "a number above 0", lambda x: 0 < x < np.inf)
    flat = _opened(model)
    flat, pruned_to = _pruned(model, flat)
    lattice, steps, stride, slip = _counted(flat, step)
    flat, luck = _normalised(model, flat, pruned_to, steps)
    step = lattice.step * stride
    common = max(int(np.gcd.reduce(flat.cost, initial=0)), 1)
    rounded = slip > 0 or common % stride > 0
    if not rounded:
        stride = common
    if down:
        flat = replace(flat, cost=np.maximum(flat.cost - slip, 0))
    start_luck = int(luck[flat.start])
    free_below = stride if down else 1  # a cost under this is no level
    flat, collapsed_to, inner_action = _collapsed(flat, free_below)
    flat, plays = _without_free_loops(flat, free_below)

    known = pruned_to[: model.n_states] >= 0
    state_of, state_luck = (
        np.full(model.n_states, -1, dtype=np.int64),
        np.zeros(model.n_states, dtype=np.int64),
    )
    state_of[known] = collapsed_to[pruned_to[: model.n_states][known]]
    state_luck[known] = luck[pruned_to[: model.n_states][known]]
    outcome_start = starts(flat.outcome_action, flat.n_actions)
    n_free = np.bincount(flat.outcome_action, weights=flat.cost < free_below, minlength=flat.n_actions)
    return Prepared(
        model=model,
        lattice=lattice,
        stride=stride,
        step=step,
        rounded=rounded,
        slip=slip,
        start=flat.start,
        action_start=starts(flat.action_state, flat.n_states),
        outcome_start=outcome_start,
        free_stop=outcome_start[:-1] + n_free.astype(np.int64),
        probability=flat.probability,
        successor=flat.successor,
        fine=flat.cost,
        cost=flat.cost // stride if down else -(-flat.cost // stride),
        state_of=state_of,
        luck=state_luck,
        start_luck=start_luck,
        model_action=flat.model_action,
        plays=plays,
        inner_action=inner_action,
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


def _counted(flat: _Flat, step: float | None) -> tuple[Lattice, IntArray, int, int]:
    """Return the lattice to count on, each cost in its steps, the steps in one level, and the slip.

    On a lattice that holds costs only to ``deviation``, each least cost by luck may be off by as many of them as
    there are states, and a normalised cost by twice that and its own: the slip.
    """
    found = find_lattice(flat.cost)
    if found is not None:
        lattice, steps = found
        if step is None or _multiple(lattice.step, step):
            return lattice, steps, 1, 0
        if _multiple(step, lattice.step) and step <= COARSEST * float(np.abs(flat.cost).max(initial=0.0)):
            return lattice, steps, round(step / lattice.step), 0
    lattice, steps, stride = fine_lattice(flat.cost, usual_step(flat.cost) if step is None else step, flat.n_states)
    slip = int(np.ceil((2 * flat.n_states + 1) * lattice.deviation / lattice.step))
    return lattice, steps, stride, slip


def _multiple(large: float, small: float) -> bool:
    ratio = large / small if 1e-15 * large < small < np.inf else np.inf
    return 0.5 < ratio < np.inf and abs(ratio - round(ratio)) <= 1e-9 * ratio


def _normalised(model: SSP, flat: _Flat, pruned_to: IntArray, steps: IntArray) -> tuple[_Flat, IntArray]:
    """Turn costs in lattice steps into whole steps above best luck; also return c_min in steps."""
    luck, via = np.empty(flat.n_states, dtype=np.int64), np.empty(flat.n_states, dtype=np.int64)
    is_goal = np.bincount(flat.action_state, minlength=flat.n_states) == 0
    enter_start, enter = entering(flat.successor, flat.n_states)
    inside = best_luck(is_goal, flat.action_state, flat.outcome_action, enter_start, enter, steps, luck, via)
    if inside >= 0:
        raise PrudentError(_negative_cycle(model, flat, pruned_to, inside, via))
    return replace(flat, cost=steps + luck[flat.successor] - luck[flat.outcome_state]), luck


def _collapsed(flat: _Flat, free_below: int) -> tuple[_Flat, IntArray, IntArray]:
    """Merge each end component at no cost into one state; also return the new states and the inner actions."""
    outcome_start = starts(flat.outcome_action, flat.n_actions)
    priced = np.bincount(flat.outcome_action, weights=flat.cost >= free_below, minlength=flat.n_actions) > 0
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


def _without_free_loops(flat: _Flat, free_below: int) -> tuple[_Flat, FloatArray]:
    """Drop outcomes at no cost back to the same state, scale the others up, merge equal ones, put free ones first.

    Also return how often each action is played in a row.
    """
    loop = (flat.cost < free_below) & (flat.successor == flat.outcome_state)
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
        return flat, 1 / scale
    return replace(flat.kept(first), probability=np.add.reduceat(flat.probability, first)), 1 / scale


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
