"""Acyclic models, which are solved in one backward pass.

``backwards`` lists the states, successors first.  Threads draw parts of it: part ``k`` begins at ``part[k]`` and looks
only at the first ``after[k]`` parts.

The least and the greatest number are kept in arrays that, as far as the compiler knows, may overlap.  So it does not
gather several numbers with one instruction, which on some machines takes several times as long as one by one.
"""

from numba import njit

from prudent.kernels.intrinsics import lower_atomically
from prudent.kernels.team import draw, finish, wait_for

MANY = 64
"""The most parts of a layer."""


@njit(cache=True)
def runs(near, backwards, layer_start):
    """Cut ``backwards`` into layers, none of whose states leads to another; return how many there are.

    ``near[s]`` is the place in the list of the last state that state ``s`` leads to, -1 if it leads to none.
    """
    n = 0
    for i in range(len(backwards)):
        if i == 0 or near[backwards[i]] >= layer_start[n - 1]:
            layer_start[n] = i
            n += 1
    layer_start[n] = len(backwards)
    return n


@njit(cache=True)
def longest_ahead(backwards, arc_start, target, longest):
    """Fill ``longest`` with the most arcs on a path from each state."""
    for s in backwards:
        longest[s] = 0
        for j in range(arc_start[s], arc_start[s + 1]):
            longest[s] = max(longest[s], longest[target[j]] + 1)


@njit(cache=True)
def cut_layers(layer_start, backwards, arc_start, least, part, after):
    """Cut layers into parts of at least this many arcs; return how many there are.

    Fills in where each part begins, and how many there are before its layer.
    """
    n = 0
    for layer in range(len(layer_start) - 1):
        first, last = layer_start[layer], layer_start[layer + 1]
        total, before = 0, n
        for i in range(first, last):
            total += arc_start[backwards[i] + 1] - arc_start[backwards[i]] + 1
        most = max(total // MANY, least)
        size = most
        for i in range(first, last):
            if size >= most:
                part[n], after[n] = i, before
                n += 1
                size = 0
            size += arc_start[backwards[i] + 1] - arc_start[backwards[i]] + 1
    part[n] = len(backwards)
    return n


@njit(cache=True, nogil=True)
def luck_ahead(counters, part, after, backwards, arc_start, successor, cost, sign, least):
    """Fill ``least`` with best luck: the least cost, times ``sign``, to a goal by any actions and any outcomes."""
    while True:
        k = draw(counters)
        if k >= len(after):
            return
        wait_for(counters, after[k])
        for i in range(part[k], part[k + 1]):
            s = backwards[i]
            first, last = arc_start[s], arc_start[s + 1]
            least[s] = sign * cost[first] + least[successor[first]] if first < last else 0
            for o in range(first + 1, last):
                least[s] = min(least[s], sign * cost[o] + least[successor[o]])
        finish(counters)


@njit(cache=True, nogil=True)
def least_behind(counters, part, after, forwards, arc_start, successor, cost, least):
    """Lower ``least`` to the least cost of reaching each state; it enters with 0 at the start, else large numbers.

    Here the parts are in the order of runs: ``forwards`` lists the states, successors last.
    """
    while True:
        k = draw(counters)
        if k >= len(after):
            return
        wait_for(counters, after[k])
        for i in range(part[k], part[k + 1]):
            s = forwards[i]
            for o in range(arc_start[s], arc_start[s + 1]):
                if least[s] + cost[o] < least[successor[o]]:
                    lower_atomically(least, successor[o], least[s] + cost[o])
        finish(counters)


@njit(cache=True, nogil=True)
def worst_of(counters, part, after, backwards, action_start, choice, outcome_start, successor, cost, worst):
    """Fill ``worst`` with the worst-case cost of a policy, ``choice``, with one action for each state."""
    while True:
        k = draw(counters)
        if k >= len(after):
            return
        wait_for(counters, after[k])
        for i in range(part[k], part[k + 1]):
            s = backwards[i]
            worst[s] = 0
            if action_start[s] < action_start[s + 1]:
                for o in range(outcome_start[choice[s]], outcome_start[choice[s] + 1]):
                    worst[s] = max(worst[s], cost[o] + worst[successor[o]])
        finish(counters)


@njit(cache=True, nogil=True)
def worst_ahead(counters, part, after, backwards, action_start, outcome_start, successor, cost, worst, action_worst):
    """Fill ``worst`` with the least worst case of each state, ``action_worst`` with that after each action."""
    while True:
        k = draw(counters)
        if k >= len(after):
            return
        wait_for(counters, after[k])
        for i in range(part[k], part[k + 1]):
            s = backwards[i]
            least = 0
            for a in range(action_start[s], action_start[s + 1]):
                action_worst[a] = 0
                for o in range(outcome_start[a], outcome_start[a + 1]):
                    action_worst[a] = max(action_worst[a], cost[o] + worst[successor[o]])
                least = action_worst[a] if a == action_start[s] else min(least, action_worst[a])
            worst[s] = least
        finish(counters)
