"""Plans for the paper's domains, each solved once for all the tests of a process."""

from functools import cache

import prudent


@cache
def domain(name: str) -> prudent.SSP:
    """Return a domain as it is by default."""
    return getattr(prudent.domains, name.replace("-", "_"))()


@cache
def plan_for(name: str, alpha: float, **options) -> prudent.Plan:
    """Return the plan for a domain as it is by default; nobody may change it."""
    return prudent.solve(domain(name), alpha, **options)
