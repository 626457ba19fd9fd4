"""The game behind cvar-wc: an adversary spreads its budget ``y`` over the outcomes of an action.

``F(s, y) = y * CVaR_y`` is kept at the grid points ``y`` and linear in between; it is concave in ``y``.  The
adversary's best spread over an action's outcomes,

    max  sum over k of  p_k (F(s_k, z_k) + c_k z_k)     with  sum over k of p_k z_k = y,  0 <= z_k <= 1,

is a fractional knapsack: the segments of all F(s_k, .) in the order of falling slope (plus c_k).  One merge of
the sorted slopes answers every grid point.

With a *floor* above 0, the point y = 0 of the grid holds the value at y = floor instead of 0, so that outcomes without
weight count a little.  F may then be less steep in its first segment than in the next; segments are taken in their
order all the same.
"""

from typing import NamedTuple

import numpy as np
from numba import njit


class Game(NamedTuple):
    """The prepared model's arrays, the grid, and F on it."""

    action_start: np.ndarray  # (n_states + 1,)
    outcome_start: np.ndarray  # (n_actions + 1,)
    probability: np.ndarray  # (n_outcomes,)
    successor: np.ndarray  # (n_outcomes,)
    cost: np.ndarray  # (n_outcomes,)
    grid: np.ndarray  # (n_points,)  rising from 0 to 1
    value: np.ndarray  # (n_states, n_points)  F
    slope: np.ndarray  # (n_states, n_points - 1)  of F between the points
    floor: float  # the y that stands for 0 in the grid


@njit(cache=True)
def steepest(game, first, last, used):
    """Return the outcome whose next segment is the steepest (the first of equals), or -1."""
    best, found = -np.inf, -1
    for o in range(first, last):
        j = used[o - first]
        if j < game.slope.shape[1]:
            slope = game.slope[game.successor[o], j] + game.cost[o]
            if slope > best:
                best, found = slope, o
    return found


@njit(cache=True)
def without_weight(game, first, last):
    """Return what some outcomes count before they get any weight: 0 unless there is a floor."""
    total = 0.0
    for o in range(first, last):
        total += game.probability[o] * game.value[game.successor[o], 0]
    return total


@njit(cache=True)
def merge(game, a, used, out):
    """Fill ``out`` with the adversary's best at every grid point, against action ``a``."""
    first, last = game.outcome_start[a], game.outcome_start[a + 1]
    used[: last - first] = 0
    spread, value, g = 0.0, without_weight(game, first, last), 0
    while True:
        o = steepest(game, first, last, used)
        if o < 0:
            break
        j = used[o - first]
        used[o - first] += 1
        slope = game.slope[game.successor[o], j] + game.cost[o]
        width = game.probability[o] * (game.grid[j + 1] - game.grid[j])
        while g < len(out) and spread + width >= max(game.grid[g], game.floor):
            out[g] = value + (max(game.grid[g], game.floor) - spread) * slope
            g += 1
        spread += width
        value += width * slope
    for i in range(g, len(out)):  # the last point, where rounding kept the widths just below 1
        out[i] = value


@njit(cache=True)
def respond(game, a, y, used, z):
    """Return the adversary's best against ``a`` at ``y``; fill ``z`` with the share each outcome gets."""
    first, last = game.outcome_start[a], game.outcome_start[a + 1]
    used[: last - first] = 0
    z[: last - first] = 0.0
    spread, value = 0.0, without_weight(game, first, last)
    while spread < y:
        o = steepest(game, first, last, used)
        if o < 0:
            break
        i = o - first
        j = used[i]
        used[i] += 1
        slope = game.slope[game.successor[o], j] + game.cost[o]
        width = game.probability[o] * (game.grid[j + 1] - game.grid[j])
        if spread + width <= y:
            z[i] = game.grid[j + 1]
            spread += width
            value += width * slope
        else:
            z[i] = game.grid[j] + (y - spread) / game.probability[o]
            value += (y - spread) * slope
            spread = y
    return value


@njit(cache=True)
def improve(game, state, used, row):
    """Apply the Bellman equation to some states, in the order given; return the largest change.

    ``game.value`` and ``game.slope`` are updated; the change is that of F / y, in units of cost.
    """
    f = game.value
    change = 0.0
    n_points = len(game.grid)
    best = np.empty(n_points)
    for s in state:
        if game.action_start[s] == game.action_start[s + 1]:
            continue
        best[:] = np.inf
        for a in range(game.action_start[s], game.action_start[s + 1]):
            merge(game, a, used, row)
            for g in range(n_points):
                best[g] = min(best[g], row[g])
        for g in range(0 if game.floor > 0 else 1, n_points):
            change = max(change, abs(best[g] - f[s, g]) / max(game.grid[g], game.floor))
            f[s, g] = best[g]
        for g in range(n_points - 1):
            game.slope[s, g] = (f[s, g + 1] - f[s, g]) / (game.grid[g + 1] - game.grid[g])
    return change


@njit(cache=True)
def choose(game, state, y, used, z, spread, action):
    """Find, for each pair of a state and ``y``, the action of least game value and the adversary's answer to it.

    ``spread[i]`` receives the shares z of the outcomes of ``action[i]``.
    """
    for i in range(len(state)):
        s = state[i]
        least = np.inf
        for a in range(game.action_start[s], game.action_start[s + 1]):
            value = respond(game, a, y[i], used, z)
            if value < least:
                least = value
                action[i] = a
                spread[i] = z


@njit(cache=True)
def at(row, c, width):
    """Return a row of values on a grid of equal ``width`` at ``c``, linear in between, constant beyond its end."""
    at = c / width
    j = int(at)
    if j >= len(row) - 1:
        return row[len(row) - 1]
    return row[j] + (at - j) * (row[j + 1] - row[j])


@njit(cache=True)
def bounded_action(game, mean_cost, action_worst, fallback, s, c, limit, width, value):
    """Return the best action in ``s`` having spent ``c``, and its expected cost.

    An action is allowed if the total need not exceed ``limit`` after it.  If none is, ``fallback`` is played.
    """
    best, least = fallback[s], np.inf
    allowed = False
    for a in range(game.action_start[s], game.action_start[s + 1]):
        fits = c + action_worst[a] <= limit * (1.0 + 1e-12)
        if not fits and a != fallback[s]:
            continue
        if allowed and not fits:
            continue
        total = mean_cost[a]
        for o in range(game.outcome_start[a], game.outcome_start[a + 1]):
            total += game.probability[o] * at(value[game.successor[o]], c + game.cost[o], width)
        if total < least or (fits and not allowed):
            best, least = a, total
        allowed = allowed or fits
    return best, least


@njit(cache=True)
def improve_bounded(game, mean_cost, action_worst, fallback, state, limit, width, value):
    """Update the bounded expected-cost problem on its grid, state by state; return the largest change."""
    change = 0.0
    for s in state:
        if game.action_start[s] == game.action_start[s + 1]:
            continue
        for j in range(value.shape[1]):
            _, least = bounded_action(game, mean_cost, action_worst, fallback, s, j * width, limit, width, value)
            change = max(change, abs(least - value[s, j]))
            value[s, j] = least
    return change


@njit(cache=True)
def bounded_choice(game, mean_cost, action_worst, fallback, limit, width, value, choice):
    """Fill ``choice[b, s]`` with the number within its state of the best action with ``b = limit - c`` levels left."""
    for s in range(len(game.action_start) - 1):
        if game.action_start[s] == game.action_start[s + 1]:
            continue
        for b in range(len(choice)):
            a, _ = bounded_action(game, mean_cost, action_worst, fallback, s, float(limit - b), limit, width, value)
            choice[b, s] = a - game.action_start[s]
