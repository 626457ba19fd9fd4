"""Independent routes to the same numbers: linear programs in HiGHS, and exact rational arithmetic.

Nothing here uses the package's preparation, kernels or methods: the linear programs are occupancy measures on
the raw model, over pairs of state and budget left.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import ceil, inf

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array

# A raw model: {state: [[(probability, next state, whole cost), ...] for each action]}; no actions: a goal.
Raw = dict[int, list[list[tuple[float, int, int]]]]

OPTIONS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


@dataclass
class Answer:
    cvar: float
    expected: float
    levels: list[int]  # the w that attain the optimal CVaR


def best_luck(raw: Raw) -> dict[int, float]:
    """Least cost to a goal by any actions and luck (no negative cycles)."""
    least = {s: 0.0 if not actions else inf for s, actions in raw.items()}
    for _ in raw:
        for s, actions in raw.items():
            for outcomes in actions:
                for p, t, c in outcomes:
                    if p > 0:
                        least[s] = min(least[s], c + least[t])
    return least


class Flow:
    """The polytope of occupancy measures from (start, w) to the goals; two linear costs on it.

    Nodes are (state, budget); at and below ``-margin`` a budget cannot recover, and nodes are (state, None).
    """

    def __init__(self, raw: Raw, start: dict[int, float], w: int) -> None:
        luck = best_luck(raw)
        margin = max(0, -min((v for v in luck.values() if v < inf), default=0))
        nodes: dict[tuple[int, int | None], int] = {}
        queue: list[tuple[int, int | None]] = []
        rows, cols, vals, excess, mean = [], [], [], [], []

        def enter(state: int, budget: int | None) -> tuple[int | None, float]:
            """Return the node entered (None: a goal) and the excess that entering settles."""
            settled = 0.0
            if budget is not None and not raw[state]:
                return None, max(-budget, 0)
            if budget is not None and budget <= -margin:
                settled, budget = -budget, None
            if not raw[state]:
                return None, settled
            key = (state, budget)
            if key not in nodes:
                nodes[key] = len(queue)
                queue.append(key)
            return nodes[key], settled

        supply: dict[int, float] = {}
        self.constant = 0.0
        for s, p in start.items():
            node, settled = enter(s, w)
            self.constant += p * settled
            if node is not None:
                supply[node] = supply.get(node, 0.0) + p
        n = 0
        for node, (s, budget) in enumerate(queue):
            for outcomes in raw[s]:
                flow_excess = flow_mean = 0.0
                out = {node: 1.0}
                for p, t, c in outcomes:
                    if p == 0:
                        continue
                    target, settled = enter(t, None if budget is None else budget - c)
                    flow_mean += p * c
                    flow_excess += p * (settled if budget is not None else c)
                    if target is not None:
                        out[target] = out.get(target, 0.0) - p
                rows += list(out)
                cols += [n] * len(out)
                vals += list(out.values())
                excess.append(flow_excess)
                mean.append(flow_mean)
                n += 1
        self.excess, self.mean = np.array(excess), np.array(mean)
        self.matrix = csr_array((vals, (rows, cols)), shape=(len(queue), n)) if n else None
        self.supply = np.zeros(len(queue))
        for node, p in supply.items():
            self.supply[node] = p

    def minimum(self, cost: np.ndarray, cap: tuple[np.ndarray, float] | None = None) -> float:
        if self.matrix is None:
            return 0.0
        extra = {} if cap is None else {"A_ub": cap[0][None], "b_ub": [cap[1]]}
        result = linprog(cost, A_eq=self.matrix, b_eq=self.supply, method="highs", options=OPTIONS, **extra)
        if result.status == 2:
            return inf
        assert result.status == 0, result.message
        return float(result.fun)

    def least_excess(self) -> float:
        return self.minimum(self.excess) + self.constant

    def least_mean(self, excess_cap: float | None = None) -> float:
        cap = None if excess_cap is None else (self.excess, excess_cap - self.constant)
        return self.minimum(self.mean, cap)


def solve_by_lp(raw: Raw, start: dict[int, float], alpha: float) -> Answer | None:
    """Optimal CVaR and least expected cost at it; None where no policy reaches a goal for sure."""
    luck = best_luck(raw)
    w = min(luck[s] for s, p in start.items() if p > 0)
    if w == inf:
        return None
    w = int(w)
    if Flow(raw, start, w).least_mean() == inf:
        return None
    best, values = inf, {}
    while w <= best + 1e-9:
        values[w] = w + Flow(raw, start, w).least_excess() / alpha
        best = min(best, values[w])
        w += 1
    levels = [w for w, value in values.items() if value <= best + 1e-8]
    expected = inf
    for w in levels:
        flow = Flow(raw, start, w)
        expected = min(expected, flow.least_mean(flow.least_excess() + 1e-11))
    return Answer(best, expected, levels)


# ---------------------------------------------------------------------------------------------- rational


def _exact_rows(raw: Raw) -> dict[int, list[list[tuple[Fraction, int, int]]]]:
    """The model that the floats stand for: each row divided by its exact sum."""
    rows = {}
    for s, actions in raw.items():
        rows[s] = []
        for outcomes in actions:
            total = sum(Fraction(p) for p, _, _ in outcomes)
            rows[s].append([(Fraction(p) / total, t, c) for p, t, c in outcomes])
    return rows


def _rational_values(rows, choice):
    """Expected cost of a proper policy, by elimination over the rationals."""
    states = [s for s in rows if rows[s]]
    index = {s: i for i, s in enumerate(states)}
    n = len(states)
    a = [[Fraction(int(i == j)) for j in range(n)] + [Fraction(0)] for i in range(n)]
    for s in states:
        for p, t, c in rows[s][choice[s]]:
            a[index[s]][n] += p * c
            if t in index:
                a[index[s]][index[t]] -= p
    for i in range(n):
        pivot = next(r for r in range(i, n) if a[r][i] != 0)
        a[i], a[pivot] = a[pivot], a[i]
        a[i] = [x / a[i][i] for x in a[i]]
        for r in range(n):
            if r != i and a[r][i] != 0:
                a[r] = [x - a[r][i] * y for x, y in zip(a[r], a[i], strict=True)]
    value = {s: Fraction(0) for s in rows}
    value.update({s: a[index[s]][n] for s in states})
    return value


def _proper_choice(rows):
    near = {s for s in rows if not rows[s]}
    choice = {}
    while len(near) < len(rows):
        for s in rows:
            if s not in near:
                hit = [i for i, outcomes in enumerate(rows[s]) if any(t in near for _, t, _ in outcomes)]
                if hit:
                    choice[s] = hit[0]
                    near.add(s)
    return choice


def _rational_optimum(rows):
    """Least expected cost from every state, by policy iteration over the rationals."""
    choice = _proper_choice(rows)
    while True:
        value = _rational_values(rows, choice)
        better = False
        for s in choice:
            for i, outcomes in enumerate(rows[s]):
                if sum(p * (c + value[t]) for p, t, c in outcomes) < value[s]:
                    choice[s], better = i, True
                    break
        if not better:
            return value


def rational_expected(raw: Raw) -> dict[int, Fraction]:
    """Least expected cost from every state in exact arithmetic; costs must be at least 1."""
    return _rational_optimum(_exact_rows(raw))


def rational_cvar(raw: Raw, start: int, alpha: Fraction) -> Fraction:
    """Optimal CVaR in exact arithmetic; costs must be at least 1 and every state must reach a goal by every action."""
    rows = _exact_rows(raw)
    value = _rational_optimum(rows)

    @cache
    def excess(s: int, b: int) -> Fraction:
        if not rows[s]:
            return Fraction(max(-b, 0))
        if b <= 0:
            return value[s] - b
        return min(sum(p * excess(t, b - c) for p, t, c in outcomes) for outcomes in rows[s])

    best, w = value[start] / alpha, 0
    while w <= ceil(best):
        best = min(best, w + excess(start, w) / alpha)
        w += 1
    return best


def rational_cvar_of_reals(rows: dict[int, list[list[tuple[Fraction, int, Fraction]]]], start: int, alpha: Fraction):
    """Optimal CVaR in exact arithmetic, whatever the costs; every action must reach a goal at once with some chance.

    Every total that a run can have, up to the least expected cost divided by alpha, is a candidate for w.
    """
    luck = {s: Fraction(0) if not actions else None for s, actions in rows.items()}
    for _ in rows:
        for s, actions in rows.items():
            for outcomes in actions:
                for _, t, c in outcomes:
                    if luck[t] is not None and (luck[s] is None or c + luck[t] < luck[s]):
                        luck[s] = c + luck[t]
    rows = {s: [[(p, t, c + luck[t] - luck[s]) for p, t, c in o] for o in a] for s, a in rows.items()}
    value = _rational_optimum(rows)

    @cache
    def excess(s: int, b: Fraction) -> Fraction:
        if not rows[s]:
            return max(-b, Fraction(0))
        if b <= 0:
            return value[s] - b
        return min(sum(p * excess(t, b - c) for p, t, c in outcomes) for outcomes in rows[s])

    best, seen, queue = value[start] / alpha, {(start, Fraction(0))}, [(start, Fraction(0))]
    totals = set()
    while queue:
        s, spent = queue.pop()
        if not rows[s]:
            totals.add(spent)
        for outcomes in rows[s]:
            for _, t, c in outcomes:
                if spent + c <= best and (t, spent + c) not in seen:
                    seen.add((t, spent + c))
                    queue.append((t, spent + c))
        if len(seen) > 20_000:
            return None
    for w in sorted(totals):
        if w > best:
            break
        best = min(best, w + excess(start, w) / alpha)
    return best + luck[start]


def least_exceedance(raw: Raw, start: dict[int, float], w: int) -> tuple[float, float]:
    """Least probability that the total exceeds w, and the least mean of policies that attain it, by linear programs.

    Costs are made non-negative by best luck first; a run that has exceeded goes on, for the sake of its mean.
    """
    luck = best_luck(raw)
    nodes: dict[tuple[int, int], int] = {}
    queue: list[tuple[int, int]] = []

    def enter(state: int, left: int) -> int | None:
        if not raw[state]:
            return None
        key = (state, max(left, -1))
        if key not in nodes:
            nodes[key] = len(queue)
            queue.append(key)
        return nodes[key]

    supply: dict[int, float] = {}
    constant = constant_mean = 0.0
    for s, p in start.items():
        if p > 0:
            left = int(w - luck[s])
            constant += p * (left < 0)
            constant_mean += p * luck[s]
            node = enter(s, left)
            if node is not None:
                supply[node] = supply.get(node, 0.0) + p
    rows, cols, vals, beyond, mean, n = [], [], [], [], [], 0
    for node, (s, left) in enumerate(queue):
        for outcomes in raw[s]:
            out, chance, cost = {node: 1.0}, 0.0, 0.0
            for p, t, c in outcomes:
                if p == 0 or luck[t] == inf:
                    if p > 0:
                        break  # it may never end
                    continue
                gain = int(c + luck[t] - luck[s])
                after = -1 if left < 0 else left - gain
                cost += p * gain
                chance += p * (left >= 0 and after < 0)
                target = enter(t, after)
                if target is not None:
                    out[target] = out.get(target, 0.0) - p
            else:
                rows += list(out)
                cols += [n] * len(out)
                vals += list(out.values())
                beyond.append(chance)
                mean.append(cost)
                n += 1
    if not queue:
        return constant, constant_mean
    matrix = csr_array((vals, (rows, cols)), shape=(len(queue), n))
    right = np.zeros(len(queue))
    for node, p in supply.items():
        right[node] = p
    first = linprog(beyond, A_eq=matrix, b_eq=right, method="highs", options=OPTIONS)
    assert first.status == 0, first.message
    second = linprog(
        mean, A_eq=matrix, b_eq=right, A_ub=[beyond], b_ub=[first.fun + 1e-10], method="highs", options=OPTIONS
    )
    assert second.status == 0, second.message
    return float(first.fun) + constant, float(second.fun) + constant_mean
