"""Independent routes to worst-case CVaR on small acyclic models: every policy, and linear programs over nature.

Nothing here uses the package's preparation, kernels or methods.  A policy plays an action for each (state, spent); for
a fixed policy the laws of the cost that nature can bring about are those of flows on the tree of histories, and

    worst CVaR = max over flows of CVaR = max  sum over ends of  z c    with 0 <= z <= flow / alpha,  sum z = 1

is one linear program.
"""

from itertools import product

import numpy as np
from scipy.optimize import linprog

# A raw model with intervals: {state: [[(low, high, next state, cost), ...] for each action]}; no actions: a goal.
RawSets = dict[int, list[list[tuple[float, float, int, int]]]]


def pairs(raw: RawSets, start: int) -> list[tuple[int, int]]:
    """Return every (state, spent) that some run can meet, the start first."""
    found = [(start, 0)]
    for s, spent in found:
        for outcomes in raw[s]:
            for _, _, t, c in outcomes:
                if (t, spent + c) not in found:
                    found.append((t, spent + c))
    return found


def policies(raw: RawSets, start: int):
    """Yield every policy that looks at state and cost so far."""
    acting = [pair for pair in pairs(raw, start) if raw[pair[0]]]
    for choice in product(*(range(len(raw[s])) for s, _ in acting)):
        yield dict(zip(acting, choice, strict=True))


def worst_cvar(raw: RawSets, start: int, policy: dict[tuple[int, int], int], alpha: float) -> float:
    """Return a policy's CVaR in the worst case by one linear program.

    Nature's choices on (state, spent) suffice: the law of the cost depends on nothing else.
    """
    met = pairs(raw, start)
    arcs, ends = [], [pair for pair in met if not raw[pair[0]]]
    for s, spent in met:
        if raw[s]:
            arcs += [((s, spent), *outcome) for outcome in raw[s][policy[s, spent]]]
    n = len(arcs) + len(ends)  # flows, then z
    equal, right, most, bound = [], [], [], []
    for pair in met:
        row = np.zeros(n)  # what flows in; out of acting pairs the same
        for i, (source, _, _, t, c) in enumerate(arcs):
            if (t, source[1] + c) == pair:
                row[i] += 1
        inflow, first = row.copy(), float(pair == (start, 0))
        if raw[pair[0]]:
            for i, (source, low, high, _, _) in enumerate(arcs):
                if source == pair:
                    row[i] -= 1
                    for sign, share in ((1, high), (-1, low)):  # low * in <= flow <= high * in
                        limit = -sign * share * inflow
                        limit[i] += sign
                        most.append(limit)
                        bound.append(sign * share * first)
            equal.append(row)
            right.append(-first)
        else:
            limit = -inflow / alpha
            limit[len(arcs) + ends.index(pair)] = 1
            most.append(limit)
            bound.append(first / alpha)
    total = np.zeros(n)
    total[len(arcs) :] = 1
    cost = np.zeros(n)
    cost[len(arcs) :] = [-spent for _, spent in ends]
    found = linprog(
        cost, A_ub=np.array(most), b_ub=bound, A_eq=np.array([*equal, total]), b_eq=[*right, 1.0], method="highs"
    )
    assert found.status == 0, found.message
    return float(-found.fun)


def least_worst_cvar(raw: RawSets, start: int, alpha: float) -> float:
    """Return the least worst-case CVaR over all policies that look at state and cost so far."""
    return min(worst_cvar(raw, start, policy, alpha) for policy in policies(raw, start))


def worst_share(row: list[tuple[float, float, int, int]], value: list[float]) -> float:
    """Return nature's worst expectation of values: the worst outcomes first."""
    left, total = 1 - sum(low for low, _, _, _ in row), 0.0
    for x, (low, high, _, _) in sorted(zip(value, row, strict=True), key=lambda each: -each[0]):
        more = min(high - low, left)
        total, left = total + (low + more) * x, left - more
    return total


def worst_excess(raw: RawSets, budgets: int, passes: int = 3000) -> list[dict[int, float]]:
    """Return U by budget and state, by repeated backups on the raw model; costs are at least 0, cycles allowed."""
    value = dict.fromkeys(raw, 0.0)
    for _ in range(passes):
        value = {
            s: min((worst_share(r, [c + value[t] for *_, t, c in r]) for r in a), default=0.0) for s, a in raw.items()
        }
    found = [value]
    for b in range(1, budgets):
        here = dict.fromkeys(raw, 0.0)
        for _ in range(passes):
            before = here

            def after(t: int, left: int, here: dict[int, float] = before, b: int = b) -> float:
                return here[t] if left == b else found[left][t] if left >= 0 else value[t] - left

            here = {
                s: min((worst_share(r, [after(t, b - c) for *_, t, c in r]) for r in a), default=0.0)
                for s, a in raw.items()
            }
            if all(abs(here[s] - before[s]) < 1e-13 for s in raw):
                break
        found.append(here)
    return found
