"""The chance of reaching a goal, and that of failing, each to relative precision.

With R(s) the greatest probability that a run from s reaches a goal, and F(s) = 1 - R(s) the least that it fails,

    R(s) = max over a of  sum over outcomes of  p R(s'),      F(s) = min over a of  sum over outcomes of  p F(s'),

where R is 1 at goals and 0 in dead ends.  These are expected totals of the probability of moving into a goal, or into
a dead end, on the model with end components collapsed: there every policy ends every run, so both equations have one
solution.  They are solved as in :mod:`prudent.engine.values.expected_cost`, with the same bounds.  Neither number is
computed as 1 minus the other, so neither loses digits where it is small.
"""

from typing import NamedTuple

import numpy as np

from prudent.engine.prepared import Prepared, restrict_to
from prudent.engine.values.expected_cost import Equations, free_choice
from prudent.models.rows import BoolArray, FloatArray, IntArray
from prudent.runtime.limits import Limits


class Extreme(NamedTuple):
    """The extreme probabilities of an event from every state, bounds on their errors, and the policy's choice."""

    value: FloatArray  # (n_states,)
    error: FloatArray  # (n_states,)  infinite if unknown
    choice: IntArray  # (n_states,)


class Reachability:
    """The extreme chances of a prepared model in which costs are 0, apart from those of moving into dead ends."""

    def __init__(self, prepared: Prepared, dead: BoolArray, limits: Limits) -> None:
        free = free_choice(prepared)
        self.dead, self.limits = dead, limits
        self.sure: BoolArray = (prepared.is_goal if free is None else prepared.is_goal | (free >= 0)) & ~dead
        self.prepared = prepared
        self.open: BoolArray = ~(dead | self.sure)[prepared.action_state]  # the actions that decide anything

    def extreme(self, marked: BoolArray, sense: float, used: BoolArray | None = None) -> Extreme:
        """Return the least (``sense`` 1) or largest (-1) probability of a marked end, by ``used`` actions."""
        open_ = np.flatnonzero(self.open if used is None else self.open & used)
        inside = np.zeros(self.prepared.n_actions, dtype=bool)
        inside[open_] = True
        alone = restrict_to(self.prepared, inside)
        into = np.bincount(alone.outcome_action, alone.probability * marked[alone.successor], minlength=alone.n_actions)
        high, low, error, choice = Equations(alone, self.limits, np.asarray(sense * into, dtype=np.float64)).solve()
        acting = ~alone.is_goal
        own = np.full(alone.n_states, -1)
        own[acting] = open_[choice[acting]]
        value = np.where(acting, np.clip(sense * (high + low), 0.0, 1.0), marked)
        return Extreme(value, np.where(acting, error, 0.0), own)
