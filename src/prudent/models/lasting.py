"""Actions with which nature could keep a run from its goal forever, in a model with intervals.

An action is *held* if nature, within its intervals, can keep a run in a set of states from which no played action must
lead on.  A state is *sure* if some policy reaches a goal from it with probability 1, whatever nature does: it has an
action that stays among sure states and, whatever nature does, has a chance to lead to states found sure before.  These
actions are never held for long, so a plan can do without the other held ones.
"""

import numpy as np

from prudent.models.intervals import NEAR, Intervals
from prudent.models.rows import BoolArray, ranges
from prudent.models.ssp import SSP

__all__ = ["lasting"]


def lasting(model: SSP, intervals: Intervals) -> tuple[SSP, Intervals]:
    """Return the model without held actions that a plan can do without, if there are any, with a note on them.

    Where all outcomes are certain to be possible, runs are held only by the plan's own choice; so if that is enough,
    only actions with another outcome are left out.
    """
    doubtful = (intervals.low <= 0) & (model.probability > 0) & (model.successor != model.outcome_state)
    doubtful = np.bincount(model.outcome_action, doubtful, model.n_actions) > 0
    held = _held(model, intervals, np.full(model.n_actions, doubtful.any()))
    if not (held & doubtful).any():
        return model, intervals
    onwards, sure = _onwards(model, intervals)
    if not sure[model.initial_state].all():
        return model, intervals  # the error names the place
    inside = np.bincount(model.outcome_action, ~sure[model.successor] & (model.probability > 0), model.n_actions) == 0
    used = inside & (onwards | ~(held & doubtful))
    if (_held(model, intervals, used) & doubtful).any():
        used = inside & (onwards | ~held)
    left_out = np.flatnonzero(~used & held & inside & sure[model.action_state])
    used |= ~sure[model.action_state]  # no action leads there any more
    notes = model.notes
    if len(left_out):  # what is left out otherwise may lead where no plan is sure to reach a goal
        more = f" and {len(left_out) - 1:,} more" if len(left_out) > 1 else ""
        notes += (
            f"left out: {model.place(int(left_out[0]))}{more}, where nature could keep runs from their goal forever; "
            "the bounds are for plans of plan.model, which is without; to plan with all actions, give the outcomes "
            "that lead on a low above 0",
        )
    outcome = ranges(model.outcome_start, np.flatnonzero(used))
    return model.with_actions(used, notes=notes), Intervals(intervals.low[outcome], intervals.high[outcome])


def _held(model: SSP, sets: Intervals, used: BoolArray) -> BoolArray:
    """Return the used actions with which nature can keep a run in a set of states."""
    kept = ~model.is_goal
    while True:
        held = used & kept[model.action_state] & ~_must_reach(model, sets, ~kept)
        now = np.bincount(model.action_state[held], minlength=model.n_states) > 0
        if (now == kept).all():
            return held
        kept = now


def _onwards(model: SSP, sets: Intervals) -> tuple[BoolArray, BoolArray]:
    """Return the actions that lead on to states found sure before, whatever nature does, and the sure states."""
    sure = np.ones(model.n_states, dtype=bool)
    while True:
        out = np.bincount(model.outcome_action, ~sure[model.successor] & (model.probability > 0), model.n_actions) > 0
        found, onwards = model.is_goal.copy(), np.zeros(model.n_actions, dtype=bool)
        while True:
            new = ~out & ~found[model.action_state] & _must_reach(model, sets, found)
            if not new.any():
                break
            onwards |= new
            found[model.action_state[new]] = True
        if (found == sure).all():
            return onwards, sure
        sure = found


def _must_reach(model: SSP, sets: Intervals, marked: BoolArray) -> BoolArray:
    """Return the actions that lead to marked states with a probability above 0, whatever nature does."""
    into, start = marked[model.successor], model.outcome_start[:-1]
    leave = np.add.reduceat(np.where(into, sets.low, 0.0), start)
    stay = np.add.reduceat(np.where(into, 0.0, sets.high), start)
    return np.asarray((leave > 0) | (stay < 1 - NEAR))
