"""Changes to a model in which some runs never end, so that every run can end.

There are two: a price for getting stuck, and a limit on the number of actions with a price for not finishing.
"""

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np

from prudent.errors import PrudentError, as_number, whole_number
from prudent.models.graph import leading
from prudent.models.rows import BoolArray, FloatArray, IntArray, by_state, offsets, ranges
from prudent.models.ssp import SSP, check_model, fresh_name

STUCK, LATE = "stuck", "late"
"""The names of the goals that are added, with primes if the model already has such names."""

UNCOUNTED = (
    "counts were left out: a horizon copies each action once for every number of actions taken, and counts do not "
    "apply to the copies; bounds on probabilities (low and high) are kept"
)
"""The note on lost counts: copies of an action have the same probabilities, which counts would not express."""

FINITE = ("a finite number", math.isfinite)


def amend(
    model: SSP, *, dead_end_cost: float | None = None, horizon: int | None = None, horizon_cost: float | None = None
) -> SSP:
    """Return the model with a price for getting stuck, with a limit on the number of actions, or both.

    Parameters
    ----------
    model : SSP
        The problem.
    dead_end_cost : float, optional
        In every state from which no goal can be reached, the only action becomes ``"give up"``, which costs this much
        and leads to a new goal ``"stuck"``.
    horizon : int, optional
        A run ends after this many actions.  States become ``(state, actions taken)``; goals stay as they are.
    horizon_cost : float, optional
        The price of a run that ends this way, at a new goal ``"late"``.  Required with ``horizon``.

    Bounds on probabilities are kept.  Counts are kept without a horizon and left out, with a note, with one.

    Examples
    --------
    >>> import prudent
    >>> table = {"cliff": {"jump": [(0.9, "home", 1), (0.1, "ravine", 0)]}, "ravine": {"wait": [(1, "ravine", 0)]}}
    >>> model = prudent.build("cliff", lambda state: table.get(state, {}))
    >>> prudent.solve(prudent.amend(model, dead_end_cost=100), alpha=0.2).cvar
    50.5
    """
    check_model(model)
    if dead_end_cost is not None:
        price = as_number("dead_end_cost", dead_end_cost, *FINITE)
        model = with_way_out(model, price, np.flatnonzero(~model.is_goal & ~leading(model, model.is_goal)))
    if horizon is None:
        if horizon_cost is not None:
            raise PrudentError("horizon_cost is the price for not finishing in time; give horizon= as well")
        return model
    n_steps = whole_number("horizon", horizon, 1, what="a whole number of actions")
    if horizon_cost is None:
        raise PrudentError("horizon= needs horizon_cost=, the price for not finishing in time; give both")
    return _unrolled(model, n_steps, as_number("horizon_cost", horizon_cost, *FINITE))


def with_exits(
    model: SSP,
    kept: BoolArray,
    out: IntArray,
    price: float,
    state_names: Sequence[Hashable] | None,
    exit_names: Sequence[Hashable] | None = None,
) -> SSP:
    """Return the model with the actions kept and, in each of the states ``out``, one more (internal).

    These actions lead to one more state, the last, at this price; without names of theirs, no action has one.
    """
    taken, end, alone = np.flatnonzero(kept[model.outcome_action]), model.n_states, np.ones(len(out), dtype=np.int64)
    action_start, outcome_start, action, outcome = by_state(
        np.append(model.action_state[kept], out), np.append(np.diff(model.outcome_start)[kept], alone), end + 1
    )
    if exit_names is not None:
        actions = model.names[1]
        exit_names = [*(actions[a] for a in np.flatnonzero(kept).tolist()), *exit_names]
    return SSP(
        action_start=action_start,
        outcome_start=outcome_start,
        probability=np.append(model.probability[taken], np.ones(len(out)))[outcome],
        successor=np.append(model.successor[taken], end * alone)[outcome],
        cost=np.append(model.cost[taken], price * alone)[outcome],
        initial_state=model.initial_state,
        initial_probability=model.initial_probability,
        state_names=state_names,
        action_names=None if exit_names is None else [exit_names[a] for a in action.tolist()],
        name=model.name,
        notes=model.notes,
        **model.known_of(np.append(taken, -alone)[outcome]),
    )


def with_way_out(model: SSP, price: float, trap: IntArray, doubt: IntArray | None = None) -> SSP:
    """Return the model with giving up as the only action in traps, and one more in states in doubt (internal)."""
    doubt = np.zeros(0, dtype=np.int64) if doubt is None else doubt
    if len(trap) + len(doubt) == 0:
        return model
    states, actions = model.names
    also = fresh_name("give up", set(actions)) if len(doubt) else ""
    names = ["give up"] * len(trap) + [also] * len(doubt)
    kept, out = ~np.isin(model.action_state, trap), np.concatenate([trap, doubt])
    return with_exits(model, kept, out, price, [*states, fresh_name(STUCK, states)], names)


def _unrolled(model: SSP, horizon: int, price: float) -> SSP:
    goals = np.flatnonzero(model.is_goal)
    states, actions = model.names
    names: list[Hashable] = [*(states[s] for s in goals.tolist()), fresh_name(LATE, states)]
    ends = np.full(model.n_states, len(goals))  # the new number of each state in which a run ends: a goal, or late
    ends[goals] = np.arange(len(goals))
    here, number = np.setdiff1d(model.initial_state, goals), ends.copy()
    number[here] = len(names) + np.arange(len(here))
    first = number[model.initial_state]
    used, targets, prices = list[IntArray](), list[IntArray](), list[FloatArray]()
    action_count = [np.zeros(len(names), dtype=np.int64)]
    for taken in range(horizon):
        names += [(states[s], taken) for s in here.tolist()]
        action = ranges(model.action_start, here)
        outcome = ranges(model.outcome_start, action)
        after, last = model.successor[outcome], taken == horizon - 1
        going_on, number = ~model.is_goal[after], ends.copy()
        action_count.append(np.diff(model.action_start)[here])
        if not last:  # an outcome of probability 0 may lead to another state; its successor does not matter
            here = np.unique(after[going_on & (model.probability[outcome] > 0)])
            number[here] = len(names) + np.arange(len(here))
        used.append(action)
        targets.append(number[after])
        prices.append(model.cost[outcome] + np.where(going_on & last, price, 0.0))
    played = np.concatenate(used)
    outcome, counted = ranges(model.outcome_start, played), model.count is not None
    return SSP(
        action_start=offsets(np.concatenate(action_count)),
        outcome_start=offsets(np.diff(model.outcome_start)[played]),
        probability=model.probability[outcome],
        successor=np.concatenate(targets),
        cost=np.concatenate(prices),
        initial_state=first,
        initial_probability=model.initial_probability,
        state_names=names,
        action_names=[actions[a] for a in played.tolist()],
        name=model.name,
        notes=(*model.notes, UNCOUNTED) if counted else model.notes,
        **replace(model, count=None).known_of(outcome),
    )


def is_amended(model: SSP, state: int) -> bool:
    """Return whether a state has the name of a goal that :func:`amend` adds."""
    name = model.state(state)
    return bool(model.is_goal[state]) and isinstance(name, str) and name.rstrip("'") in (STUCK, LATE)
