"""Plans for the paper's domains, each solved once for all the tests of a process; policies' tables of actions."""

from dataclasses import replace
from functools import cache

import numpy as np

import prudent
from prudent.kernels.choices import Choices
from prudent.policies.policy import BudgetPolicy


def same_policy(one: BudgetPolicy, other: BudgetPolicy) -> bool:
    """Whether two policies have the same budget and the same table of actions."""
    tabled = one.choices.low <= one.choices.high  # the place of other states in the table does not matter
    tables = [each.choices._replace(first=each.choices.first[tabled]) for each in (one, other)]
    return one.level == other.level and all(np.array_equal(mine, yours) for mine, yours in zip(*tables, strict=True))


def in_ranges(policy: BudgetPolicy, budgets: dict[int, tuple[int, int]]) -> BudgetPolicy:
    """The policy with a table that has these budgets of these states alone."""
    low, high = np.ones((2, policy.prepared.n_states), dtype=np.int64) * [[1], [0]]
    for s, (least, most) in budgets.items():
        low[s], high[s] = least, most
    kept = [policy.choices.each(s, np.arange(low[s], high[s] + 1)) for s in range(len(low))]
    entry = np.concatenate(kept).astype(policy.choices.entry.dtype)
    return replace(policy, choices=Choices.of_ranges(entry, low, high, policy.choices.without.copy()))


@cache
def domain(name: str) -> prudent.SSP:
    """Return a domain as it is by default."""
    return getattr(prudent.domains, name.replace("-", "_"))()


@cache
def plan_for(name: str, alpha: float, **options) -> prudent.Plan:
    """Return the plan for a domain as it is by default; nobody may change it."""
    return prudent.solve(domain(name), alpha, **options)
