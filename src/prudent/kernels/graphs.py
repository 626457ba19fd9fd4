"""Searches in the graph of a model with cycles: which states can reach a goal, at what best and what worst cost.

``enter_start`` and ``enter`` list, for each state, the outcomes that lead to it.
"""

import heapq

import numpy as np
from numba import njit

UNREACHED = 2**62
"""Stands for an infinite cost in integer arrays."""


@njit(cache=True)
def among_themselves(action_start, outcome_start, successor, inside, goals, passes):
    """Keep in ``inside`` actions that lead to states with such actions, or to ``goals``; a few passes drop most others.

    If few actions are inside, they read little else.
    """
    n_states = len(action_start) - 1
    has = np.empty(n_states, dtype=np.bool_)
    for s in range(n_states):
        has[s] = goals if action_start[s] == action_start[s + 1] else True
    for turn in range(passes):
        changed = False
        for n in range(n_states):
            s = n if turn % 2 == 1 else n_states - 1 - n
            if not has[s] or action_start[s] == action_start[s + 1]:
                continue
            has[s] = False
            for a in range(action_start[s], action_start[s + 1]):
                if not inside[a]:
                    continue
                for o in range(outcome_start[a], outcome_start[a + 1]):
                    if not has[successor[o]] and successor[o] != s:
                        inside[a] = False
                        break
                has[s] = has[s] or inside[a]
            changed = changed or not has[s]
        if not changed:
            break


@njit(cache=True)
def staying(action_state, outcome_action, enter_start, enter, ends, inside):
    """Keep in ``inside`` only actions that always lead to ``ends`` or to states that have such actions themselves."""
    left = np.zeros(len(ends), dtype=np.int64)
    for a in range(len(inside)):
        left[action_state[a]] += inside[a]
    stack = np.flatnonzero((left == 0) & ~ends)
    stack, top = np.append(stack, np.empty(len(ends) - len(stack), dtype=np.int64)), len(stack)
    while top > 0:
        top -= 1
        s = stack[top]
        for i in range(enter_start[s], enter_start[s + 1]):
            a = outcome_action[enter[i]]
            if inside[a]:
                inside[a] = False
                left[action_state[a]] -= 1
                if left[action_state[a]] == 0:
                    stack[top] = action_state[a]
                    top += 1


ROWS = 6
"""The rows of the table in which :func:`best_luck` works: the tree of paths, the queue, and 2 for states in it that are
to be looked at, 1 for others in it."""


@njit(cache=True)
def best_luck(action_state, outcome_action, enter_start, enter, cost, least, via, table, place, work):
    """Fill ``least`` with best luck, the least cost to a goal by any outcomes, ``via`` with the outcome taken.

    Label-correcting shortest paths, first in first out, backwards from the goals; negative costs are allowed.  When a
    path becomes cheaper, all states whose paths continue it leave the tree of paths, until they are reached anew
    (Tarjan).  So a cycle of negative cost is found as soon as it closes.

    Return -1 at the end, -2 after looking at ``work`` outcomes, or the outcome that closes a cycle of negative cost;
    from its successor ``via`` leads along the cycle.  Call again to go on.  ``place`` is the head and the length of the
    queue.
    """
    n_states = len(least)
    parent, child, after, before, queue, active = table
    nodes = np.empty(n_states, dtype=np.int64)
    while place[1] > 0:
        s = queue[place[0]]
        if active[s] == 2:
            if work <= 0:
                return -2
            work -= enter_start[s + 1] - enter_start[s] + 1
            for i in range(enter_start[s], enter_start[s + 1]):
                o = enter[i]
                t = action_state[outcome_action[o]]
                if least[s] + cost[o] >= least[t]:
                    continue
                nodes[0], size, at = t, 1, 0  # the states whose paths continue that of t
                while at < size:
                    if nodes[at] == s:
                        return o
                    c = child[nodes[at]]
                    while c >= 0:
                        nodes[size] = c
                        size += 1
                        c = after[c]
                    at += 1
                if before[t] >= 0:
                    after[before[t]] = after[t]
                elif parent[t] >= 0:
                    child[parent[t]] = after[t]
                if after[t] >= 0:
                    before[after[t]] = before[t]
                work -= size
                for k in range(size):
                    r = nodes[k]
                    parent[r] = child[r] = after[r] = before[r] = -1
                    active[r] = min(active[r], 1)
                least[t], via[t] = least[s] + cost[o], o
                parent[t], after[t] = s, child[s]
                if child[s] >= 0:
                    before[child[s]] = t
                child[s] = t
                if active[t] == 0:
                    queue[(place[0] + place[1]) % n_states] = t
                    place[1] += 1
                active[t] = 2
        active[s] = 0
        place[0] = (place[0] + 1) % n_states
        place[1] -= 1
    return -1


@njit(cache=True)
def worst_case(rows, entering, blocks, worst):
    """Fill ``worst`` with the least cost that some policy never exceeds (UNREACHED where no policy bounds it).

    Budgets are visited in rising order.  An action is *covered* once, after each of its outcomes, the remaining budget
    suffices from the successor.  A state is settled at the least budget at which one of its actions is covered.
    Free outcomes within one block of the zero-cost graph are judged together: the largest set of states of the
    block that can stay among themselves and settled states is settled.  A policy that stays so leaves the block
    with probability 1, because zero-cost end components are collapsed.
    """
    action_start, outcome_start, action_state, outcome_action, successor, cost = rows
    (enter_start, enter), (block_start, block_state, block_of) = entering, blocks
    n_states = len(action_start) - 1
    n_actions = len(outcome_start) - 1
    pending, needs = np.zeros(n_actions, dtype=np.int64), np.zeros(n_actions, dtype=np.int64)
    for a in range(n_actions):
        for o in range(outcome_start[a], outcome_start[a + 1]):
            if cost[o] > 0 or block_of[successor[o]] != block_of[action_state[a]]:
                pending[a] += 1
    covered = pending == 0
    settled = np.zeros(n_states, dtype=np.bool_)
    chosen = np.zeros(n_states, dtype=np.bool_)
    listed = np.zeros(n_states, dtype=np.bool_)
    stack, queue = np.empty(n_states, dtype=np.int64), np.empty(n_states, dtype=np.int64)
    ready, waiting = np.empty(len(block_start), dtype=np.int64), np.zeros(len(block_start), dtype=np.bool_)
    heap = [(np.int64(0), np.int64(-1))]  # (budget, action whose outcomes are all covered there)
    top = 0
    for s in range(n_states):
        worst[s] = UNREACHED
        if action_start[s] == action_start[s + 1]:
            settled[s] = True
            worst[s] = 0
            stack[top] = s
            top += 1
    while True:
        while top > 0:
            top -= 1
            s = stack[top]
            for i in range(enter_start[s], enter_start[s + 1]):
                o = enter[i]
                a = outcome_action[o]
                t = action_state[a]
                if not settled[t] and (cost[o] > 0 or block_of[t] != block_of[s]):
                    needs[a] = max(needs[a], worst[s] + cost[o])
                    pending[a] -= 1
                    if pending[a] == 0:
                        heapq.heappush(heap, (needs[a], np.int64(a)))
        if len(heap) == 0:
            return
        budget, n_ready = heap[0][0], 0
        while len(heap) > 0 and heap[0][0] == budget:  # all that is covered at this budget is judged at once
            now = heapq.heappop(heap)[1]
            if now >= 0:
                covered[now] = True
                block = block_of[action_state[now]]
                if not settled[action_state[now]] and not waiting[block]:
                    waiting[block] = True
                    ready[n_ready] = block
                    n_ready += 1
        for j in range(n_ready):
            waiting[ready[j]] = False
            first, last = block_start[ready[j]], block_start[ready[j] + 1]
            size = 0
            for i in range(first, last):
                t = block_state[i]
                if not settled[t]:
                    chosen[t] = listed[t] = True
                    queue[size] = t
                    size += 1
            while size > 0:
                size -= 1
                t = queue[size]
                listed[t] = False
                keeps = False
                for b in range(action_start[t], action_start[t + 1]):
                    inside = covered[b]
                    for k in range(outcome_start[b], outcome_start[b + 1]):
                        r = successor[k]
                        if not inside:
                            break
                        inside = cost[k] > 0 or block_of[r] != block_of[t] or settled[r] or chosen[r]
                    if inside:
                        keeps = True
                        break
                if not keeps:
                    chosen[t] = False
                    for i in range(enter_start[t], enter_start[t + 1]):  # states that relied on it are judged again
                        r = action_state[outcome_action[enter[i]]]
                        if chosen[r] and not listed[r] and cost[enter[i]] == 0 and block_of[r] == block_of[t]:
                            listed[r] = True
                            queue[size] = r
                            size += 1
            for i in range(first, last):
                t = block_state[i]
                if chosen[t]:
                    chosen[t] = False
                    settled[t] = True
                    worst[t] = budget
                    stack[top] = t
                    top += 1
