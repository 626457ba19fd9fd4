"""A policy's own VaR, CVaR and mean, from its distribution, and their errors."""

from dataclasses import dataclass

import numpy as np

from prudent.engine.sweep.estimate import followed_per_level
from prudent.engine.values.bellman import path_rounding
from prudent.engine.values.expected_cost import Expected
from prudent.engine.values.worst_case import UNREACHED
from prudent.errors import TooLarge
from prudent.policies.chain import forward
from prudent.policies.distribution import mixture
from prudent.policies.forwards import MISSING
from prudent.policies.policy import BudgetPolicy
from prudent.runtime.limits import UNLIMITED, Limits

UNFOLLOWED = "the policy is too large to evaluate exactly; estimate it with prudent.simulate"


AFFORDED = 2**31
"""The most work, in outcomes times levels, for a distribution that nobody asked for: up to about ten seconds."""

AHEAD = 4
"""A policy is followed over so many times its budget, whatever the work: that is in proportion to the sweep."""

FEW = 0.1
"""The largest part of the worst runs that may be under way at the end."""


@dataclass(frozen=True)
class OwnTail:
    """A policy's own tail, from its distribution."""

    var: float  # in the user's units; nan if unknown
    cvar: float  # in levels; infinite if unknown, a lower bound where costs are rounded
    mean: float  # in levels
    upper: float  # upper bound on its CVaR, in levels
    steps: float  # upper bound on the expected number of actions
    error: float  # what the upper bound allows for, relative to CVaR or to one level, whichever is more
    notes: tuple[str, ...] = ()


UNKNOWN = OwnTail(np.nan, np.inf, np.nan, np.inf, np.nan, np.inf, (UNFOLLOWED,))
"""The tail of a policy that cannot be followed."""


def own_tail(
    policy: BudgetPolicy,
    tail: Expected,
    most: float | None,
    alpha: float,
    tolerance: float = MISSING,
    *,
    limits: Limits = UNLIMITED,
) -> OwnTail:
    """Follow a policy up to ``most``, if known an upper bound on its CVaR and so on its VaR; return its tail.

    Stop earlier if at most ``tolerance`` of its runs are under way, few of the worst ones, and once that takes more
    work than AFFORDED and a few times the budget.  The error of sums grows with the length of runs.
    """
    prepared, tolerance = policy.prepared, min(tolerance, FEW * alpha)
    known = None if most is None else int(min(most, UNREACHED)) + 2
    layers = 2 if prepared.scale.rounded else 1  # moments of what rounding left out take about as long as the mass
    least = AHEAD * max(part.level for _, part in policy.parts)
    last = max(least, int(AFFORDED / (layers * followed_per_level(prepared))))
    last = last if known is None else min(last, known)
    try:
        each = [
            (share, *forward(part, tail, most=last, tolerance=tolerance, in_levels=True, limits=limits))
            for share, part in policy.parts
        ]
    except TooLarge:
        return UNKNOWN
    found, steps = mixture([(share, part) for share, part, _ in each]), sum(share * steps for share, _, steps in each)
    cut = 0.0  # the error of the part that is cut off, in levels
    if found.missing > 0 and found.groups is None:
        cut = found.missing / alpha * float((tail.upper - tail.value).max())
    cvar, level = found.cvar(alpha), found.var(alpha)
    above = np.inf if np.isinf(cvar) else found.cvar_at_most(alpha)
    upper = above * (1 + path_rounding(prepared, tail.steps(limits))) + cut
    if last == known and np.isinf(upper):  # ``most`` was no bound: the checkpoint was wrong
        return own_tail(policy, tail, None, alpha, limits=limits)
    if np.isinf(level):  # too many runs are still under way at the end
        return UNKNOWN
    var = prepared.scale.in_units(level) if prepared.scale.rounded else prepared.scale.total(int(level))
    error = np.inf if np.isinf(upper) else (upper - above) / max(cvar, 1.0)
    return OwnTail(var, min(cvar, upper), found.mean, upper, steps, error)
