"""The equations of one large component as compact rows: of all actions, and of one policy.

:mod:`prudent.engine.values.large_components` describes how they are solved.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from prudent.kernels.indices import along
from prudent.kernels.team import drawn


class Cut(NamedTuple):
    """How the states of a component are cut for several threads: in a few phases, one after the other, each in parts.

    Values are updated phase by phase.  With one part, a state sees all new values (Gauss-Seidel); with several, only
    the new values of other phases.  So results depend on the cut, but not on which thread does a part.
    """

    phase_start: np.ndarray  # (n_phases + 1,)
    parts: int


class Component(NamedTuple):
    """The equations of all actions in a component, each divided by its diagonal, the probability of moving on.

    ``x(s) = min over a of  constant(a) + sum of chance x[column]``, states numbered by their position in the
    component.  ``leave`` is 1 minus the sum of an action's chances, computed as the probability of leaving the
    component.  With it, sums are over *differences* of values, and so keep their digits where the component is hardly
    ever left and all values are almost equal.

    A row has room for all outcomes of its action: first come the ``inner`` columns; the ``outer`` ones, successors
    outside the component, numbered as in the model and with chances that are not divided, come last.
    """

    action_start: np.ndarray  # (size + 1,)
    first_action: np.ndarray  # (size,)  what to add to a row's number to get the action's
    arc_start: np.ndarray  # (n_actions + 1,)
    inner: np.ndarray  # (n_actions,)
    outer: np.ndarray  # (n_actions,)
    column: np.ndarray  # (n_arcs,)
    chance: np.ndarray  # (n_arcs,)
    leave: np.ndarray  # (n_actions,)
    away: np.ndarray  # (n_actions,)  the diagonals


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def part_of(cut, phase, part):
    """Return the first state of a part, and the one after its last."""
    first, size = cut.phase_start[phase], cut.phase_start[phase + 1] - cut.phase_start[phase]
    return first + size * part // cut.parts, first + size * (part + 1) // cut.parts


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def share_of(cut, part):
    """Return the first state of a part of all states, and the one after its last."""
    size = cut.phase_start[-1]
    return size * part // cut.parts, size * (part + 1) // cut.parts


@njit(cache=True)
def lay_out(arcs, first, last, choice, alone):
    """Return room for the rows of the block with states ``first:last``: of all actions, or of ``choice`` alone."""
    size, n_actions, n_arcs = last - first, 0, 0
    action_start, first_action = np.empty(size + 1, dtype=np.int64), np.empty(size, dtype=np.int64)
    for i in range(size):
        s = arcs.block_state[first + i]
        action_start[i] = n_actions
        first_action[i] = (choice[s] if alone else arcs.action_start[s]) - n_actions
        n_actions += 1 if alone else arcs.action_start[s + 1] - arcs.action_start[s]
    action_start[size] = n_actions
    arc_start = np.empty(n_actions + 1, dtype=np.int64)
    for i in range(size):
        for row in range(action_start[i], action_start[i + 1]):
            arc_start[row] = n_arcs
            n_arcs += arcs.inner_stop[first_action[i] + row] - arcs.inner_start[first_action[i] + row]
    arc_start[n_actions] = n_arcs
    inner, outer = np.empty(n_actions, dtype=np.int32), np.empty(n_actions, dtype=np.int32)
    column, chance = np.empty(n_arcs, dtype=np.uint32), np.empty(n_arcs)
    leave, away = np.empty(n_actions), np.empty(n_actions)
    return Component(action_start, first_action, arc_start, inner, outer, column, chance, leave, away)


@njit(cache=True, nogil=True)
def fill_component(counters, cut, arcs, first, last, component):
    """Fill in the rows of the block with states ``first:last``."""
    action_start, first_action, arc_start, inner, outer, column, chance, leave, away = component
    block_state, rank, successor, probability = arcs.block_state, arcs.rank, arcs.successor, arcs.probability
    size = last - first
    for part in drawn(counters, cut.parts):
        begin, end = share_of(cut, part)
        for i in range(begin, end):
            s = block_state[first + i]
            for row in range(action_start[i], action_start[i + 1]):
                a = first_action[i] + row
                front, back = arc_start[row], arc_start[row + 1]
                gone, moved = arcs.leave[a], 0.0
                for o in range(arcs.inner_start[a], arcs.inner_stop[a]):
                    t, p = successor[o], probability[o]
                    j = rank[t] - first
                    if t == s:
                        continue
                    if 0 <= j < size:
                        column[front], chance[front] = j, p
                        moved += p
                        front += 1
                    else:
                        back -= 1
                        column[back], chance[back] = t, p
                        gone += p
                inner[row], outer[row] = front - arc_start[row], arc_start[row + 1] - back
                away[row] = gone + moved
                scale = 1.0 / away[row] if away[row] > 0.0 else 0.0
                leave[row] = gone * scale
                for j in range(arc_start[row], front):
                    chance[j] *= scale


@njit(cache=True, nogil=True)
def fill_constants(counters, cut, component, k, value, constant):
    """Fill in the constants of all equations: the costs of the actions, plus values outside, divided by diagonals.

    They are infinite where an action never moves on.
    """
    action_start, first_action, arc_start, _, outer, column, chance, _, away = component
    for part in drawn(counters, cut.parts):
        begin, end = share_of(cut, part)
        for i in range(begin, end):
            for row in range(action_start[i], action_start[i + 1]):
                total = k[first_action[i] + row]
                for j in range(arc_start[row + 1] - outer[row], arc_start[row + 1]):
                    total += chance[j] * value[column[j]]
                constant[row] = total / away[row] if away[row] > 0.0 else np.inf


@njit(cache=True)
def room_for(component, chosen):
    """Return room for the rows of the policy that takes row ``chosen[i]`` of the component in state i."""
    size, n = len(chosen), 0
    arc_start = np.empty(size + 1, dtype=np.int64)
    for i in range(size):
        arc_start[i] = n
        n += component.inner[chosen[i]]
    arc_start[size] = n
    number, none = np.arange(size + 1), np.empty(0, dtype=np.int32)
    column, chance = np.empty(n, dtype=np.uint32), np.empty(n)
    return Component(number, number, arc_start, none, none, column, chance, np.empty(size), np.empty(size))


@njit(cache=True, nogil=True)
def fill_rows(counters, cut, component, chosen, rows):
    """Fill in the rows of a policy: one action for each state, with inner columns alone."""
    for part in drawn(counters, cut.parts):
        begin, end = share_of(cut, part)
        for i in range(begin, end):
            row, first = chosen[i], rows.arc_start[i]
            there = component.arc_start[row] - first
            for j in range(first, rows.arc_start[i + 1]):
                rows.column[j], rows.chance[j] = component.column[there + j], component.chance[there + j]
            rows.leave[i], rows.away[i] = component.leave[row], component.away[row]


@njit(cache=True, nogil=True)
def fill_residuals(counters, cut, rows, rhs, x, unit, lack, worst):
    """Fill in a policy's residuals at ``x``, and for each part two maxima, infinite where ``x`` is not finite.

    They are the largest part of a residual beyond rounding error, relative to its sum; and the largest residual before
    the division by the diagonal.
    """
    _, _, start, _, _, column, chance, leave, away = rows
    for part in drawn(counters, cut.parts):
        excess, largest = 0.0, 0.0
        begin, end = share_of(cut, part)
        for i in range(begin, end):
            here = x[i]
            total, size = rhs[i] - leave[i] * here, abs(rhs[i]) + leave[i] * abs(here)
            for j in along(start[i], start[i + 1]):
                step = x[column[j]] - here
                total += chance[j] * step
                size += chance[j] * abs(step)
            if not np.isfinite(total):
                excess, largest = np.inf, np.inf
                break
            lack[i] = total
            largest = max(largest, away[i] * abs(total))
            over = abs(total) - unit * abs(here)
            if over > excess * size:
                excess = over / size
        worst[0, part], worst[1, part] = excess, largest
