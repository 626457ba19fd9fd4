"""Lowest expected cost, whatever the tail.

The policy is that of :mod:`prudent.engine.values.expected_cost`.  Its own CVaR is read off its distribution; if sums
along its runs are too long to be certain, the exact method computes it on the model without any other action.  The
bounds on the optimal CVaR of the full model are V(start), since no CVaR is below that, and the policy's own CVaR.  If
its distribution exceeds the memory limit, or takes more work than ``AFFORDED``, CVaR and VaR are nan, with a note, and
the upper bound is the expected cost, counted from best luck, divided by alpha.
"""

from dataclasses import replace

import numpy as np

from prudent.engine.prepared import Prepared, restrict
from prudent.engine.sweep.estimate import followed_per_level, likely_levels
from prudent.engine.values.bellman import UNIT
from prudent.engine.values.expected_cost import least_expected_cost, surely_expected
from prudent.errors import TooLarge
from prudent.methods.exact import SECOND, exact
from prudent.methods.solution import Solution
from prudent.policies.own_tail import AFFORDED, UNFOLLOWED, own_tail
from prudent.policies.policy import BudgetPolicy
from prudent.runtime.limits import UNLIMITED, Limits, Stopped

UNFINISHED = "finding the lowest expected cost was not finished: this is the best plan found that surely reaches a goal"
UNSWEPT = "stopped before the tail of any plan was known: this is the plan of lowest expected cost"
"""Notes on a plan at hand."""

SURE = 1e-6
"""How close its bounds must be, relatively, for an expected cost to be known."""

SWEPT = 8
"""How much longer a sweep takes than following a policy through as many outcomes and levels."""


def at_hand(prepared: Prepared, alpha: float, stopped: str = "", limits: Limits = UNLIMITED) -> Solution:
    """Return the policy of lowest expected cost, with its bounds, without its tail.

    If finding it was stopped, it is the best proper policy found, and its expected cost may be unknown.
    """
    least, start = least_expected_cost(prepared, limits), prepared.start
    upper = float(least.upper[start])
    known = not stopped or (upper < np.inf and upper - least.lower[start] <= SURE * upper)
    return Solution.unswept(
        BudgetPolicy.of_states(prepared, least.choice),
        limits,
        expected=float(least.value[start]) if known else np.nan,
        upper=max(upper / alpha * (1 + 4 * UNIT), float(surely_expected(prepared, limits)[start])),
        stopped=stopped,
        notes=(UNFINISHED if not known else UNSWEPT if stopped else UNFOLLOWED,),
    )


def evaluated(prepared: Prepared, alpha: float, found: Solution) -> Solution:
    """Return a solution; if there was no time to evaluate its policy, the one at hand, if more is known of that."""
    if found.stopped and np.isinf(found.upper):
        hand = at_hand(prepared, alpha, found.stopped)
        if np.isfinite(hand.upper):
            return replace(hand, lower=max(found.lower, hand.lower))
    return found


def expected(prepared: Prepared, alpha: float, limits: Limits) -> Solution:
    """Return a policy of lowest expected cost."""
    least, found = least_expected_cost(prepared, limits), at_hand(prepared, alpha, limits.stop, limits)
    if found.stopped:
        return found
    alone = restrict(prepared, least.choice)
    if alpha == 1:  # then CVaR is the expected cost, and VaR the lowest possible cost
        level = int(alone.graph.least_ahead(alone.fine)[alone.start])
        var = float(prepared.scale.lattice.value(prepared.scale.start_luck + level))
        return replace(found, var=var, cvar=max(found.expected, found.lower), notes=())
    try:
        with limits:
            # Once at most alpha of the runs, or half of them, have not ended, their expected costs give the rest.
            policy = BudgetPolicy.of_states(alone, alone.action_start[:-1])
            own = own_tail(policy, least, None, alpha, min(alpha, 0.5), limits=limits)
            if not (own.notes or own.error > SECOND):
                cvar = max(own.cvar, found.lower)
                return replace(found, var=own.var, cvar=cvar, upper=own.upper, steps=own.steps, notes=())
            levels = likely_levels(prepared, alpha, limits)
            if levels * followed_per_level(alone) <= AFFORDED / SWEPT:
                swept = exact(alone, alpha, limits, bounded=False)
                own_numbers = {name: getattr(swept, name) for name in ("var", "cvar", "upper", "notes", "stopped")}
                return replace(found, **own_numbers)
    except TooLarge:
        pass
    except Stopped as stopped:
        return replace(found, stopped=stopped.reason, notes=())
    return found
