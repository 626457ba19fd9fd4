"""Prune, normalise, collapse: how the prepared model is made.

1. *Prune.*  Keep the states and actions that proper policies, which reach a goal with probability 1, can use
   and that the start can reach.
2. *Normalise by best luck.*  With c_min(s) the least cost of reaching a goal by any actions and any luck,
   every cost becomes ``c + c_min(s') - c_min(s) >= 0``; totals change by the constant c_min(start).
   Costs are whole numbers of lattice steps here, so nothing is rounded.  Then they are counted in *levels* of
   ``stride`` lattice steps: exactly if the stride divides them all, otherwise rounded up, or down.
3. *Collapse.*  Moving inside a zero-cost end component is free.  So its members become one state, whose
   actions are the exits.  Afterwards the fixed points that methods compute are unique.
4. *Drop free loops.*  A free outcome back to the same state changes neither state nor budget, so the action
   is played again: the outcome is dropped and the probabilities of the others are scaled up.

An acyclic model has no traps, and one pass finds its best luck; it skips the steps that only cyclic models need.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prudent.engine.cost_scale import CostScale, multiple
from prudent.engine.cost_step import (
    COARSEST,
    SPARE,
    USUAL,
    Lattice,
    common_divisor,
    find_lattice,
    fine_lattice,
    usual_step,
)
from prudent.engine.prepared import PASSES, Graph, Members, Prepared
from prudent.errors import PrudentError, as_number
from prudent.kernels.acyclic import luck_ahead
from prudent.kernels.counting import above_luck, chosen_rows, close_gaps, sort_rows
from prudent.kernels.graphs import UNREACHED
from prudent.models.graph import (
    Order,
    almost_sure,
    end_components,
    entering,
    least_ahead,
    least_by_state,
    ordered_blocks,
    towards,
)
from prudent.models.rows import BoolArray, FloatArray, IntArray, Rows, offsets, read_only, starts
from prudent.models.ssp import SSP
from prudent.runtime.limits import UNLIMITED, Limits
from prudent.runtime.team import copy_together, cut, in_parts

RARELY = 1e-290
"""The least probability with which an action that costs nothing otherwise may leave its state."""

MOST_SHOWN = 12
"""The most states of a cycle that a message lists."""


class Trapped(PrudentError):
    """No policy reaches a goal with probability 1 (internal)."""


@dataclass(frozen=True)
class _Flat(Rows):
    """A model under preparation, state -> action -> outcome, whose rows can be dropped, renamed and put in order.

    Costs as given, and probabilities, may be the model's own arrays, so neither is written to.
    """

    threads: int  # that prepare it
    start: int
    action_start: IntArray  # (n_states + 1,)
    outcome_start: IntArray  # (n_actions + 1,)
    model_action: IntArray  # (n_actions,)
    probability: FloatArray  # (n_outcomes,)
    successor: IntArray  # (n_outcomes,)
    cost: NDArray[Any]  # (n_outcomes,)  as given; whole lattice steps once normalised

    def kept(self, outcome: BoolArray) -> "_Flat":
        """Keep some outcomes."""
        columns = ("probability", "successor", "cost")
        return replace(
            self,
            outcome_start=offsets(outcome)[self.outcome_start],
            **{name: getattr(self, name)[outcome] for name in columns},
        )

    def with_actions(self, action: IntArray, new: IntArray, n_states: int) -> "_Flat":
        """Renumber the states and keep some actions, which are given in the order of their new states."""
        outcome_start = offsets(np.diff(self.outcome_start)[action])
        columns = read_only(self.probability), self.successor, read_only(self.cost)
        chosen = tuple(np.empty(outcome_start[-1], dtype=column.dtype) for column in columns)
        rows = cut(outcome_start), action, self.outcome_start, new
        in_parts(self.threads, chosen_rows, len(chosen[0]), *rows, columns, outcome_start, chosen)
        return _Flat(
            self.threads,
            int(new[self.start]),
            starts(new[self.action_state[action]], n_states),
            outcome_start,
            self.model_action[action],
            *chosen,
        )


def prepare(
    model: SSP, step: float | None = None, limits: Limits = UNLIMITED, *, down: bool = False, between: bool = False
) -> Prepared:
    """Prune, normalise and collapse; raise an error if no policy reaches a goal.

    If costs have no common step, or ``step`` is another one, normalised costs are rounded to levels of that size:
    up, or ``down``.  Rounding down first subtracts the slip, so that rounded costs never exceed the true ones.

    With ``between`` the slip is subtracted, too, but costs may lie between levels: ``cost`` is rounded up and ``fine``
    has the rest.  Outcomes of less than a level become free only if they form cycles.
    """
    if step is not None:
        step = as_number("step", step, "a number above 0", lambda x: 0 < x < np.inf)
    flat = _opened(model, limits.threads)
    flat, pruned_to, order = _pruned(model, flat)
    lattice, steps, stride, slip = _counted(flat, step)
    size = flat.n_states, len(flat.cost)
    flat, luck, raised = _normalised(model, flat, pruned_to, order, steps, limits)
    if raised > 0:
        lattice = replace(lattice, deviation=lattice.deviation + raised * lattice.step, relative=np.inf)
        slip = _slip(lattice, flat.n_states)
    common = max(common_divisor(flat.cost), 1)
    rounded = slip > 0 or common % stride > 0
    step = step if step is not None and rounded else lattice.step * stride
    if not rounded:
        stride = common
    if down or between:
        flat = replace(flat, cost=np.maximum(flat.cost - slip, 0))
    if between and not order.acyclic:
        flat = _without_short_cycles(flat, stride)
    start_luck = int(luck[flat.start])
    free_below = stride if down else 1  # costs of fewer lattice steps become 0 levels
    collapsed_to, inner_action, plays = np.arange(flat.n_states), np.empty(0, dtype=np.int64), np.ones(flat.n_actions)
    if not order.acyclic:  # without cycles there is nothing to collapse and nothing to drop
        flat, collapsed_to, inner_action = _collapsed(flat, free_below)
        flat, plays = _without_free_loops(model, flat, free_below)
    same = (flat.n_states, len(flat.cost)) == size
    flat, free_stop = _merged(flat, free_below)

    new = pruned_to[: model.n_states]
    state_of = np.where(new >= 0, collapsed_to[new], -1)
    state_luck = np.where(new >= 0, luck[new], 0)
    scale = CostScale(lattice, stride, step, rounded, slip, state_luck, start_luck)
    return Prepared(
        model=model,
        scale=scale,
        members=Members(model, state_of, inner_action),
        start=flat.start,
        action_start=flat.action_start,
        outcome_start=flat.outcome_start,
        free_stop=free_stop,
        probability=flat.probability,
        successor=flat.successor,
        fine=flat.cost,
        # If a level is one lattice step, both share an array: nothing writes to a prepared model.
        cost=flat.cost if stride == 1 else scale.down(flat.cost) if down else scale.up(flat.cost),
        model_action=flat.model_action,
        plays=plays,
        between=between,
        # If nothing was merged, its components are those already found.
        graph=Graph(flat.action_start, flat.outcome_start, flat.successor, limits.threads, order if same else None),
    )


def rounded_to(prepared: Prepared, step: float) -> Prepared | None:
    """Return a model that was prepared without a step with costs rounded up to one: like ``prepare``, but faster.

    Lattice, best luck and collapsed states do not depend on the step, unless it is not a multiple of the lattice's, or
    levels are not rounded costs: then return None.
    """
    scale = prepared.scale
    if not step / scale.lattice.step < UNREACHED:
        return None
    stride = round(step / scale.lattice.step)
    least = 2**SPARE if scale.slip > 0 else 1
    fits = step <= USUAL * scale.step if scale.slip > 0 else multiple(step, scale.lattice.step)
    if not fits or stride < least or step > COARSEST * float(np.abs(prepared.model.cost).max(initial=0.0)):
        return None
    if scale.slip == 0 and not (prepared.fine % stride).any():  # then levels are not rounded costs
        return None
    scale = replace(scale, stride=stride, step=step, rounded=True)
    return replace(prepared, scale=scale, cost=scale.up(prepared.fine))


def _opened(model: SSP, threads: int) -> _Flat:
    """Open the model without impossible outcomes; an initial distribution becomes the action of one more state."""
    n = len(model.initial_state)
    several = int(n > 1)
    model_action = np.arange(model.n_actions + several)
    model_action[model.n_actions :] = -1
    flat = _Flat(
        threads=threads,
        start=model.n_states if several else int(model.initial_state[0]),
        action_start=np.append(model.action_start, np.full(several, model.n_actions + 1)),
        outcome_start=np.append(model.outcome_start, np.full(several, model.n_outcomes + n)),
        model_action=model_action,
        probability=_copy(model.probability, model.initial_probability, threads) if several else model.probability,
        successor=_copy(model.successor, model.initial_state if several else [], threads),
        cost=_copy(model.cost, np.zeros(n), threads) if several else model.cost,
    )
    return flat if model.possible else flat.kept(flat.probability > 0)


def _copy(values: NDArray[Any], more: ArrayLike, threads: int) -> NDArray[Any]:
    """Return a copy of one of the model's arrays, which are read-only, with more values at its end."""
    copy = np.empty(len(values) + len(np.asarray(more)), dtype=values.dtype)
    copy_together(values, copy[: len(values)], threads)
    copy[len(values) :] = more
    return copy


def _pruned(model: SSP, flat: _Flat) -> tuple[_Flat, IntArray, Order]:
    """Keep what proper policies can use; also return the states' new numbers, -1 for pruned ones, and their order."""
    flat, new, order = _reached(flat)
    if order.acyclic:
        return flat, new, order
    block_start, _, block_of = order.blocks
    source, target = block_of[flat.outcome_state], block_of[flat.successor]
    last = np.ones(len(block_start) - 1, dtype=bool)
    last[source[source != target]] = False
    if last.sum() == flat.is_goal.sum():  # only goals lead nowhere else
        return flat, new, order
    action_kept = np.ones(flat.n_actions, dtype=bool)
    if not almost_sure(flat, flat.successor, action_kept)[flat.start]:
        raise Trapped(_trapped(model, flat, np.flatnonzero(new >= 0)))
    flat = flat.with_actions(np.flatnonzero(action_kept), np.arange(flat.n_states), flat.n_states)
    flat, newer, order = _reached(flat)
    new[new >= 0] = newer[new[new >= 0]]
    return flat, new, order


def _reached(flat: _Flat) -> tuple[_Flat, IntArray, Order]:
    """Keep what the start can reach; also return the new number of each state, -1 for others, and their order."""
    order = ordered_blocks(flat.arc_start, flat.successor, flat.start, flat.threads)
    block_start, block_state, block_of = order.blocks
    if len(block_state) == flat.n_states:
        return flat, np.arange(flat.n_states), order
    found = block_of >= 0
    new = np.where(found, np.cumsum(found) - 1, -1)
    flat = flat.with_actions(np.flatnonzero(found[flat.action_state]), new, len(block_state))
    return flat, new, order._replace(blocks=(block_start, new[block_state], block_of[found]))


def _counted(flat: _Flat, step: float | None) -> tuple[Lattice, IntArray, int, int]:
    """Return the lattice to count on, each cost in its steps, the steps in one level, and the slip.

    If costs may be off the lattice by ``deviation``, each best luck may be off by ``n_states`` deviations.  So a
    normalised cost, with two of them and a cost of its own, may be off by ``2 n_states + 1``: the slip.
    """
    found = find_lattice(flat.cost, flat.threads)
    if found is not None:
        lattice, steps = found
        if step is None or multiple(lattice.step, step):
            return lattice, steps, 1, 0
        if multiple(step, lattice.step) and step <= COARSEST * float(np.abs(flat.cost).max(initial=0.0)):
            return lattice, steps, round(step / lattice.step), 0
    lattice, steps, stride = fine_lattice(flat.cost, usual_step(flat.cost) if step is None else step, flat.n_states)
    return lattice, steps, stride, _slip(lattice, flat.n_states)


def _slip(lattice: Lattice, n_states: int) -> int:
    return int(np.ceil((2 * n_states + 1) * lattice.deviation / lattice.step))


def _normalised(
    model: SSP, flat: _Flat, pruned_to: IntArray, order: Order, steps: IntArray, limits: Limits
) -> tuple[_Flat, IntArray, int]:
    """Turn costs in lattice steps, in place, into whole steps above best luck; also return c_min in steps.

    Costs of cycles whose total is below 0 by rounding errors are raised; also return the most lattice steps of a raise.
    """
    rows, raised = (flat.arc_start, flat.successor), dict[int, int]()

    def forgive(cycle: list[int], lack: int) -> bool:
        cost = flat.cost[cycle]
        if math.fsum(cost) < -math.fsum(np.spacing(np.abs(cost))):  # each cost is known to a unit in its last place
            return False
        raised[cycle[0]] = raised.get(cycle[0], 0) + lack
        return True

    luck = np.where(flat.is_goal, 0, UNREACHED)
    if order.acyclic:
        in_parts(flat.threads, luck_ahead, len(steps), order.backwards, *rows, steps, luck, most=order.width)
    elif (lost := (steps == 0) & (flat.cost < 0)).any():  # such costs might form a cycle
        raise PrudentError(_too_small(model, flat, int(np.flatnonzero(lost)[0])))
    elif not least_ahead(*rows, steps, luck, PASSES, flat.threads):
        come = entering(flat.successor, flat.n_states)
        if cycle := least_by_state(flat, flat.successor, come, steps, luck, limits, forgive):
            raise PrudentError(_negative_cycle(model, flat, pruned_to, cycle))
    in_parts(flat.threads, above_luck, len(steps), cut(flat.arc_start), *rows, luck, steps)
    return replace(flat, cost=steps), luck, max(raised.values(), default=0)


def _collapsed(flat: _Flat, free_below: int) -> tuple[_Flat, IntArray, IntArray]:
    """Merge each zero-cost end component into one state; also return the states' new numbers and the inner actions."""
    free = np.maximum.reduceat(flat.cost, flat.outcome_start[:-1]) < free_below
    component, inner = end_components(flat.action_state, flat.outcome_start, flat.successor, flat.n_states, free)
    if not inner.any():
        return flat, np.arange(flat.n_states), flat.model_action[inner]
    leader = np.arange(flat.n_states)
    member = np.flatnonzero(component >= 0)
    _, first, which = np.unique(component[member], return_index=True, return_inverse=True)
    leader[member] = member[first[which]]
    _, new = np.unique(leader, return_inverse=True)
    exits = np.flatnonzero(~inner)
    exits = exits[np.argsort(new[flat.action_state[exits]], kind="stable")]
    return flat.with_actions(exits, new, int(new.max()) + 1), new, flat.model_action[inner]


def _without_free_loops(model: SSP, flat: _Flat, free_below: int) -> tuple[_Flat, FloatArray]:
    """Drop free outcomes back to the same state, scale up the others; return also each action's mean plays in a row."""
    loop = (flat.successor == flat.outcome_state) & (flat.cost < free_below)
    if not loop.any():
        return flat, np.ones(flat.n_actions)
    looped = np.bincount(flat.outcome_action[loop], minlength=flat.n_actions) > 0
    flat = flat.kept(~loop)
    away = np.bincount(flat.outcome_action, weights=flat.probability, minlength=flat.n_actions)
    scale = np.where(looped, away, 1.0)
    if (scale < RARELY).any():
        a = int(flat.model_action[np.argmin(scale)])
        raise PrudentError(
            f"state {model.state(model.state_of_action(a))!r}, action {model.action(a)!r} of {model.name}: a run goes "
            f"on with probability {scale.min():g}, otherwise it repeats the action at no cost; floats are too coarse "
            f"below {RARELY:g}: give the outcomes that leave larger probabilities, or remove the action"
        )
    return replace(flat, probability=flat.probability / scale[flat.outcome_action]), 1 / scale


def _without_short_cycles(flat: _Flat, stride: int) -> _Flat:
    """Make outcomes that cost less than a level free if they form cycles."""
    short = flat.cost < stride
    _, _, block = ordered_blocks(offsets(short)[flat.arc_start], flat.successor[short], threads=flat.threads).blocks
    inside = short & (block[flat.outcome_state] == block[flat.successor])
    return replace(flat, cost=np.where(inside, 0, flat.cost)) if inside.any() else flat


def _merged(flat: _Flat, free_below: int) -> tuple[_Flat, IntArray]:
    """Sort each action's outcomes by cost and merge equal ones; also return where the free ones, at first, end."""
    n, start, probability = len(flat.cost), flat.outcome_start, np.empty(len(flat.cost))
    size, free = np.empty(flat.n_actions, dtype=np.int64), np.empty(flat.n_actions, dtype=np.int64)
    columns = flat.cost, flat.successor, probability
    about = cut(start), start, free_below, read_only(flat.probability), columns, size, free
    in_parts(flat.threads, sort_rows, n, *about)
    merged = start
    if size.sum() < n:
        merged = offsets(size)
        whole = flat.cost, flat.successor, probability.view(np.int64)
        in_parts(flat.threads, close_gaps, n, whole, start, merged)
    n = merged[-1]
    flat = replace(
        flat, outcome_start=merged, probability=probability[:n], successor=flat.successor[:n], cost=flat.cost[:n]
    )
    free += merged[:-1]
    return flat, free


def _trapped(model: SSP, flat: _Flat, original: IntArray) -> str:
    stuck = ~flat.is_goal & (towards(flat.outcome_state, flat.successor, flat.n_states, flat.is_goal) < 0)
    trap = int(original[np.flatnonzero(stuck)[0]])
    return (
        f"no policy reaches a goal of {model.name} with probability 1: every policy may end in state "
        f"{model.state(trap)!r}, from which no goal can be reached; add an action that leaves it, put a price on "
        "getting stuck (dead_end_cost=) or on not finishing in time (horizon=) with prudent.amend, --dead-end-cost or "
        "--horizon, or maximise the probability of a goal with goal='likeliest' (--goal likeliest)"
    )


def _too_small(model: SSP, flat: _Flat, outcome: int) -> str:
    a = int(flat.model_action[flat.outcome_action[outcome]])
    return (
        f"the cost {flat.cost[outcome]:g} of state {model.state(model.state_of_action(a))!r}, action "
        f"{model.action(a)!r} of {model.name} is too small beside the largest, {np.abs(flat.cost).max():g}, and costs "
        "below 0 may form a cycle; make the costs more alike, or limit the number of actions with horizon= in "
        "prudent.amend, or --horizon"
    )


def _negative_cycle(model: SSP, flat: _Flat, pruned_to: IntArray, cycle: list[int]) -> str:
    original, total = np.flatnonzero(pruned_to >= 0), math.fsum(flat.cost[cycle])
    along = [int(flat.outcome_state[cycle[0]]), *(int(flat.successor[o]) for o in cycle)]
    shown = [repr(model.state(int(original[s]))) for s in along]
    if len(shown) > MOST_SHOWN:
        shown = [*shown[: MOST_SHOWN - 2], f"... ({len(cycle):,} outcomes in all)", shown[-1]]
    names = " -> ".join(shown)
    return (
        f"the cycle {names} of {model.name} can have a total cost of {total:g}; cycles of outcomes with negative "
        "total cost are not supported (the optimum may still be finite); shift or correct the costs, or limit the "
        "number of actions with horizon= in prudent.amend, or --horizon" + "".join(f"; {note}" for note in model.notes)
    )
