"""The exact method in plain NumPy, as a careful user of it would write it: what the kernels are measured against.

Takes a prepared model (costs in whole levels) and the number of budgets, and fills tables of the least expected excess
U and the least expected cost M among the actions that attain it.  Acyclic models go state by state, all budgets at
once: the rows of an action's successors, each shifted by its cost, are weighted by one product of a vector and a
matrix.  Others go level by level, all outcomes at once, and then along the outcomes at no cost, layer by layer.
No bands, no bounds on rounding, nothing left out.
"""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from prudent.engine.prepared import Prepared

TIE = 1e-11
"""Relative difference within which actions, and budgets, count as equally good; as in the package."""


class Answer(NamedTuple):
    """The optimal CVaR, the least expected cost at it, in the user's units, and the actions by budget."""

    cvar: float
    expected: float
    choice: np.ndarray  # the action's number within its state


def solve_with_numpy(prepared: Prepared, alpha: float, levels: int) -> Answer:
    """Return the optimum over the budgets from 0 to ``levels``, which must be at least the optimal CVaR."""
    sweep = by_state if prepared.acyclic else by_level
    excess, mean, choice = sweep(prepared, levels)
    return Answer(*best_budget(prepared, alpha, excess, mean), choice)


def best_budget(prepared: Prepared, alpha: float, excess: np.ndarray, mean: np.ndarray) -> tuple[float, float]:
    """Return the least of w + U(w) / alpha, and the least mean of the budgets w that attain it."""
    f = np.arange(len(excess)) + excess / alpha
    best = f.min()
    attains = f <= best + 4 * TIE * (excess + excess[f.argmin()]) / alpha + 1e-15 * best
    return prepared.scale.in_units(best), prepared.scale.in_units(mean[attains].min())


def by_state(prepared: Prepared, levels: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Fill the tables of an acyclic model, successors first; return those of the start, and all actions."""
    n, furthest = prepared.n_states, int(prepared.cost.max(initial=0))
    budget = np.arange(-furthest, levels + 1)
    excess, mean = np.zeros((n, len(budget))), np.zeros((n, len(budget)))
    choice = np.zeros((n, levels), dtype=np.int16)
    # Row s, column j: the values of s for so many budgets from j on.
    excess_from, mean_from = (sliding_window_view(table, levels, axis=1) for table in (excess, mean))
    column = furthest + 1 - prepared.cost
    for s in prepared.blocks[1].tolist():
        first, last = prepared.action_start[s : s + 2].tolist()
        if first == last:
            excess[s] = np.maximum(-budget, 0)
            continue
        bounds = prepared.outcome_start[first : last + 1]
        here = slice(bounds[0], bounds[-1])
        chance, successor = prepared.probability[here], prepared.successor[here]
        rows = excess_from[successor, column[here]]
        means = mean_from[successor, column[here]]
        cuts = (bounds - bounds[0]).tolist()
        parts = [slice(*cut) for cut in pairwise(cuts)]
        total = np.stack([chance[part] @ rows[part] for part in parts])
        second = np.stack([chance[part] @ means[part] for part in parts]) + prepared.mean_cost[first:last, None]
        without = prepared.mean_cost[first:last] + np.add.reduceat(chance * mean[successor, 0], cuts[:-1])
        least = total.min(axis=0)
        second[total > least * (1 + TIE)] = np.inf
        choice[s] = second.argmin(axis=0)
        excess[s, : furthest + 1] = without.min() - budget[: furthest + 1]
        excess[s, furthest + 1 :] = least
        mean[s, : furthest + 1] = without.min()
        mean[s, furthest + 1 :] = second.min(axis=0)
    return excess[prepared.start, furthest:], mean[prepared.start, furthest:], choice


def by_level(prepared: Prepared, levels: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Fill the tables of any model without cycles at no cost, budgets rising."""
    n, furthest = prepared.n_states, int(prepared.cost.max(initial=0))
    least = expected_cost(prepared)
    excess = np.empty((furthest + levels + 1, n))
    mean = np.empty((furthest + levels + 1, n))
    acts = np.diff(prepared.action_start) > 0
    excess[: furthest + 1] = least + np.arange(furthest, -1, -1)[:, None]
    mean[: furthest + 1] = least
    choice = np.zeros((levels + 1, n), dtype=np.int16)
    priced = prepared.cost > 0
    chance, action = prepared.probability[priced], prepared.outcome_action[priced]
    place = (furthest - prepared.cost[priced]) * n + prepared.successor[priced]
    some, first = np.unique(action, return_index=True)  # actions with outcomes at a cost
    layers = free_layers(prepared)
    total, second = np.zeros(prepared.n_actions), np.zeros(prepared.n_actions)
    for b in range(1, levels + 1):
        here = place + b * n
        total[some] = np.add.reduceat(chance * excess.take(here), first)
        second[some] = np.add.reduceat(chance * mean.take(here), first)
        now, now_mean = excess[furthest + b], mean[furthest + b]
        now[~acts] = now_mean[~acts] = 0.0
        for layer in layers:
            k, m = total[layer.action], second[layer.action] + prepared.mean_cost[layer.action]
            np.add.at(k, layer.free_action, layer.free_chance * now[layer.free_successor])
            np.add.at(m, layer.free_action, layer.free_chance * now_mean[layer.free_successor])
            low = np.minimum.reduceat(k, layer.first)
            m[k > low[layer.row] * (1 + TIE)] = np.inf
            now[layer.state] = low
            now_mean[layer.state] = np.minimum.reduceat(m, layer.first)
            wins = np.flatnonzero(m == now_mean[layer.state][layer.row])[::-1]  # the first one is written last
            choice[b, layer.state[layer.row[wins]]] = (wins - layer.first[layer.row[wins]]).astype(np.int16)
    return excess[furthest:, prepared.start], mean[furthest:, prepared.start], choice


class Layer(NamedTuple):
    """States whose outcomes at no cost lead to earlier layers, and their actions."""

    state: np.ndarray
    action: np.ndarray
    first: np.ndarray  # (n_states here,)  where in ``action`` each state's begin
    row: np.ndarray  # (n_actions here,)  the place in ``state``
    free_action: np.ndarray  # the place in ``action`` of each outcome at no cost
    free_chance: np.ndarray
    free_successor: np.ndarray


def free_layers(prepared: Prepared) -> list[Layer]:
    """Return the layers in which states can be settled within a level, goals left out."""
    starts, order, _ = prepared.free_blocks
    if len(starts) - 1 < prepared.n_states:
        raise ValueError("the reference does not know cycles at no cost")
    free = np.flatnonzero(prepared.cost == 0)
    source, target = prepared.outcome_state[free], prepared.successor[free]
    depth = np.zeros(prepared.n_states, dtype=np.int64)
    follow: list[list[int]] = [[] for _ in range(prepared.n_states)]
    for s, t in zip(source.tolist(), target.tolist(), strict=True):
        follow[s].append(t)
    for s in order.tolist():
        depth[s] = max((depth[t] + 1 for t in follow[s]), default=0)
    layers = []
    acts = np.diff(prepared.action_start) > 0
    for level in range(int(depth.max()) + 1):
        state = np.flatnonzero((depth == level) & acts)
        if len(state):
            layers.append(_layer(prepared, state, free))
    return layers


def _layer(prepared: Prepared, state: np.ndarray, free: np.ndarray) -> Layer:
    count = np.diff(prepared.action_start)[state]
    action = np.concatenate([np.arange(*prepared.action_start[s : s + 2]) for s in state])
    place = np.full(prepared.n_actions, -1)
    place[action] = np.arange(len(action))
    used = free[place[prepared.outcome_action[free]] >= 0]
    return Layer(
        state=state,
        action=action,
        first=np.cumsum(count) - count,
        row=np.repeat(np.arange(len(state)), count),
        free_action=place[prepared.outcome_action[used]],
        free_chance=prepared.probability[used],
        free_successor=prepared.successor[used],
    )


def expected_cost(prepared: Prepared) -> np.ndarray:
    """Return the least expected cost in levels, by value iteration until nothing moves."""
    acts = np.flatnonzero(np.diff(prepared.action_start) > 0)
    value: np.ndarray[Any, np.dtype[np.float64]] = np.zeros(prepared.n_states)
    while True:
        follow = np.add.reduceat(prepared.probability * value[prepared.successor], prepared.outcome_start[:-1])
        new = value.copy()
        new[acts] = np.minimum.reduceat(prepared.mean_cost + follow, prepared.action_start[acts])
        if np.abs(new - value).max() <= 4e-16 * new.max():
            return new
        value = new
