"""A policy's own VaR, CVaR and mean, from its distribution, and their errors."""

from dataclasses import dataclass

import numpy as np

from prudent.engine.values.bellman import path_rounding
from prudent.engine.values.expected_cost import Expected
from prudent.engine.values.worst_case import UNREACHED
from prudent.errors import TooLarge
from prudent.policies.chain import MISSING, forward
from prudent.policies.distribution import Distribution, mixture
from prudent.policies.policy import BudgetPolicy

__all__ = ["UNFOLLOWED", "OwnTail", "own_tail"]

UNFOLLOWED = "the policy is too large to be followed: for what is unknown of it, simulate it"


@dataclass(frozen=True)
class OwnTail:
    """A policy's own tail, from its distribution."""

    var: float  # in the user's units; nan if unknown
    cvar: float  # in levels; infinite if unknown, a lower bound where costs are rounded
    mean: float  # in levels
    upper: float  # upper bound on its CVaR, in levels
    steps: float  # upper bound on the expected number of actions
    error: float  # the relative error allowed for in the upper bound
    notes: tuple[str, ...] = ()


def own_tail(
    policy: BudgetPolicy, tail: Expected, most: float | None, alpha: float, tolerance: float = MISSING
) -> OwnTail:
    """Follow a policy up to ``most``, if known an upper bound on its CVaR and so on its VaR; return its tail.

    Stop earlier if at most ``tolerance`` of its runs are under way.  The error of sums grows with the length of runs.
    """
    prepared = policy.prepared
    most = None if most is None else int(min(most, UNREACHED)) + 2

    def followed(charged: bool) -> tuple[Distribution, float]:
        each = [
            (share, *forward(part, tail, most=most, tolerance=tolerance, charged=charged, in_levels=True))
            for share, part in policy.parts
        ]
        return mixture([(share, found) for share, found, _ in each]), sum(share * steps for share, _, steps in each)

    try:
        found, steps = followed(charged=False)
        charged = followed(charged=True)[0] if prepared.scale.rounded else found
    except TooLarge:
        return OwnTail(np.nan, np.inf, np.nan, np.inf, np.nan, np.inf, (UNFOLLOWED,))
    cut = charged.missing / alpha * float((tail.upper - tail.value).max())  # the error of the part that is cut off
    error, cvar, level = path_rounding(prepared, tail.steps) + cut, charged.cvar(alpha), found.var(alpha)
    upper = cvar * (1 + error) + max(1 - cvar, 0.0) * cut
    if most is not None and np.isinf(upper):  # ``most`` was no bound: the checkpoint was wrong
        return own_tail(policy, tail, None, alpha)
    if np.isinf(level):  # too many runs are still under way at the end
        return OwnTail(np.nan, np.inf, np.nan, np.inf, np.nan, np.inf, (UNFOLLOWED,))
    var = prepared.scale.in_units(level) if prepared.scale.rounded else prepared.scale.total(int(level))
    return OwnTail(var, min(found.cvar(alpha), upper), found.mean, upper, steps, error)
