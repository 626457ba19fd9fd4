"""Acyclic models, which one backward pass solves.

``backwards`` lists the states, successors first.
"""

from numba import njit


@njit(cache=True)
def luck_ahead(backwards, arc_start, successor, cost, least):
    """Fill ``least`` with best luck: the least cost to a goal by any actions and any outcomes."""
    for s in backwards:
        least[s] = 0
        for o in range(arc_start[s], arc_start[s + 1]):
            total = cost[o] + least[successor[o]]
            if o == arc_start[s] or total < least[s]:
                least[s] = total


@njit(cache=True)
def least_behind(backwards, arc_start, successor, cost, start, least):
    """Find the least cost of reaching each state from the start; ``least`` enters with large numbers."""
    least[start] = 0
    for s in backwards[::-1]:
        for o in range(arc_start[s], arc_start[s + 1]):
            least[successor[o]] = min(least[successor[o]], least[s] + cost[o])


@njit(cache=True)
def worst_of(backwards, action_start, choice, outcome_start, successor, cost, worst):
    """Fill ``worst`` with the worst-case cost of a policy, ``choice``, with one action for each state."""
    for s in backwards:
        worst[s] = 0
        if action_start[s] < action_start[s + 1]:
            for o in range(outcome_start[choice[s]], outcome_start[choice[s] + 1]):
                worst[s] = max(worst[s], cost[o] + worst[successor[o]])


@njit(cache=True)
def worst_ahead(backwards, action_start, outcome_start, successor, cost, worst, action_worst):
    """Fill ``worst`` with the least worst case of each state, ``action_worst`` with that after each action."""
    for s in backwards:
        worst[s] = 0
        for a in range(action_start[s], action_start[s + 1]):
            most = 0
            for o in range(outcome_start[a], outcome_start[a + 1]):
                most = max(most, cost[o] + worst[successor[o]])
            action_worst[a] = most
            if a == action_start[s] or most < worst[s]:
                worst[s] = most
