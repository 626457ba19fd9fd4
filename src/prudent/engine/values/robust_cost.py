"""Least worst-case expected cost: nature chooses the probabilities of each action from intervals.

    V(s) = min over a of  max over p of  sum over outcomes of  p (c + V(s'))          V(goal) = 0

Without cycles one backward pass finds it.  With cycles nature's choices are improved in rounds: for fixed choices
:mod:`prudent.engine.values.expected_cost` finds the least expected cost, a lower bound on V; then nature chooses the
worst probabilities for these values, which can only raise them.

*Upper bound.*  Let e be the most by which one more backup, of the chosen actions and nature's worst choices, raises a
value, and N >= 1 + max over p of  sum p N(s')  a bound on the number of actions under these choices.  Then V + e N is
at least its own backup, so it is at least the cost of the choices against any nature.
"""

from dataclasses import replace

import numpy as np

from prudent.engine.uncertain import Uncertain
from prudent.engine.values.bellman import evaluate_policy
from prudent.engine.values.expected_cost import Expected, least_expected_cost
from prudent.errors import PrudentError
from prudent.kernels.nature import worst_backwards
from prudent.models.rows import FloatArray, IntArray
from prudent.runtime.limits import UNLIMITED, Limits

ROUNDS, CLOSE = 200, 1e-12
"""The most rounds of improving nature's choices, and the relative gain at which they end."""

COUNTED, MORE = 0.05, 1.1
"""The accuracy with which actions are counted, and the factor that turns the count into a bound."""


def worst_expected_cost(model: Uncertain, limits: Limits = UNLIMITED) -> Expected:
    """Return the least worst-case expected cost from every state, bounded below and above.

    With cycles its number of actions is a bound on those under the choice, whatever nature does.
    """
    prepared = model.prepared
    if not prepared.acyclic:
        return _in_rounds(model, limits)
    value, choice = np.zeros(model.n_nodes), model.sets.action_start[:-1].copy()
    worst_backwards(model.order.blocks[1], model.sets, model.values(value), choice)
    error = 2 * (prepared.longest + 1) * model.rounding
    return Expected(prepared, value, value * (1 - error), value * (1 + error), choice)


def _in_rounds(model: Uncertain, limits: Limits) -> Expected:
    prepared, acting, nature = model.prepared, ~model.prepared.is_goal, model.prepared.probability
    every = np.arange(prepared.n_actions)
    for _ in range(ROUNDS):
        found = least_expected_cost(replace(prepared, probability=nature), limits)  # free loops are dropped in both
        worst, nature = model.worst_after(every, 0, model.values(found.value))
        least = np.zeros(prepared.n_states)
        least[acting] = np.minimum.reduceat(worst, prepared.action_start[:-1][acting])
        if (least - found.value <= CLOSE * least).all():
            break
    choice, attains = prepared.action_start[:-1].copy(), np.flatnonzero(worst == least[prepared.action_state])[::-1]
    choice[prepared.action_state[attains]] = attains  # the first one of each state
    played = choice[acting]
    gain = (worst[played] * (1 + model.rounding) - found.value[acting]).max(initial=0.0)
    steps = _most_actions(model, choice, limits)
    upper = np.maximum(found.value + max(gain, 0.0) * steps, found.upper)
    known = Expected(prepared, found.value, found.lower, upper, choice)
    known.found[Expected.steps] = steps
    return known


def _most_actions(model: Uncertain, choice: IntArray, limits: Limits) -> FloatArray:
    """Return a bound on the expected number of actions under the choices, whatever nature does."""
    prepared, acting, nature = model.prepared, ~model.prepared.is_goal, model.prepared.probability
    one, counting = np.ones(prepared.n_actions), replace(model, paid=np.ones(len(prepared.cost)))
    for _ in range(ROUNDS):
        count = evaluate_policy(replace(prepared, probability=nature), one, choice, limits)
        worst, nature = counting.worst_after(np.arange(prepared.n_actions), 0, counting.values(count))
        if (worst[choice[acting]] <= count[acting] + COUNTED).all():
            return np.asarray(MORE * count)
    raise PrudentError(
        f"uncertainty: runs of {prepared.model.name} may take too many actions to bound; narrow the intervals, or "
        "limit the number of actions with horizon= in prudent.amend, or --horizon"
    )
