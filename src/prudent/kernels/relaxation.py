"""Value iteration in a large component: passes over its rows that take better actions and their values.

Values are updated in place, phase by phase.  If a phase has several parts, they write to ``new`` first, and the next
stage copies that.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from prudent.kernels.blocks import MARGIN
from prudent.kernels.indices import along
from prudent.kernels.team import drawn_by_stage, end

CHANGES, DRIFT, GONE = 0, 1, 2
"""The sums of a pass: actions that changed, changes of values, probabilities to leave."""

EACH, QUIET, SETTLING = 3, 2, 0.8
"""Actions are chosen anew in each third pass.  They have settled once that changes none twice; and do not settle if it
changes more than this share of the number that it changed before."""


class Cut(NamedTuple):
    """How the states of a component are cut for several threads: in a few phases, one after the other, each in parts.

    Values are updated phase by phase.  With one part, a state sees all new values (Gauss-Seidel); with several, only
    the new values of other phases.  So results depend on the cut, but not on which thread does a part.
    """

    phase_start: np.ndarray  # (n_phases + 1,)
    parts: int


class Passes(NamedTuple):
    """The values of a component, and what its passes have added up so far."""

    x: np.ndarray  # (size,)
    new: np.ndarray  # (size,)
    sums: np.ndarray  # (passes, 3, parts)


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def part_of(cut, phase, part):
    """Return the first state of a part, and the one after its last."""
    first, size = cut.phase_start[phase], cut.phase_start[phase + 1] - cut.phase_start[phase]
    return first + size * part // cut.parts, first + size * (part + 1) // cut.parts


@njit(cache=True, nogil=True)
def relax_rows(counters, cut, component, constant, chosen, passes, turns):
    """Take the values of the chosen actions, in ``turns`` from one to another, to and fro; and better actions in some.

    After a pass all values are shifted, by half of their average change divided by the average probability to leave.
    Without that, a block that is hardly ever left would reach the level of its values only after many passes.
    """
    x, new, sums = passes
    phases = len(cut.phase_start) - 1
    stages = 2 * phases + 1
    for number, part in drawn_by_stage(counters, (turns[1] - turns[0]) * stages, cut.parts):
        turn, stage = turns[0] + number // stages, number % stages
        if stage == 0 and settles(sums, turn):
            end(counters)
            return
        if stage == stages - 1:
            gone, size = sums[turn, GONE].sum(), len(x)
            shift = 0.5 * sums[turn, DRIFT].sum() / gone if gone > 0.0 else 0.0
            x[size * part // cut.parts : size * (part + 1) // cut.parts] += shift
            continue
        backwards = turn % 2 == 1
        first, last = part_of(cut, phases - 1 - stage // 2 if backwards else stage // 2, part)
        target = x if cut.parts == 1 else new
        if stage % 2 == 1:
            if cut.parts > 1:
                x[first:last] = new[first:last]
        else:
            states = first, last, backwards
            relax_part(component, constant, chosen, x, target, states, chooses(turn), sums[turn, :, part])


@njit(cache=True, nogil=True)
def settles(sums, turns):
    """Return whether passes end after so many: if choices do not settle, or once they have."""
    quiet, few = 0, np.inf
    for turn in range(turns):
        if chooses(turn):
            changes = sums[turn, CHANGES].sum()
            if turn > EACH and changes > max(SETTLING * few, 10.0):  # up to ten do not count as many
                return True
            quiet, few = quiet + 1 if changes == 0.0 else 0, changes
    return quiet >= QUIET


@njit(cache=True, nogil=True)
def chooses(turn):
    """Return whether actions are chosen anew in this pass."""
    return turn <= EACH or turn % EACH == 0


@njit(cache=True, nogil=True, _nrt=False)
def relax_part(component, constant, chosen, x, target, states, anew, sums):
    """Take the least actions (``anew``) and their values, state by state; add up what changes."""
    action_start, _, arc_start, arc_stop, column, chance, leave, _ = component
    first, last, backwards = states
    changes, drift, gone = 0, 0.0, 0.0
    for n in range(last - first):
        i = last - 1 - n if backwards else first + n
        best, least = chosen[i], np.inf
        begin, stop = (action_start[i], action_start[i + 1]) if anew else (best, best + 1)
        for row in range(begin, stop):
            total = constant[row]
            for j in along(arc_start[row], arc_stop[row]):
                total += chance[j] * x[column[j]]
            if total < least:
                best, least = row, total
        changes += best != chosen[i]
        chosen[i] = best
        drift += least - x[i]
        gone += leave[best]
        target[i] = least
    sums[CHANGES] += changes
    sums[DRIFT] += drift
    sums[GONE] += gone


@njit(cache=True, nogil=True)
def improve_rows(counters, cut, component, constant, chosen, passes, gains, backwards):
    """Take better actions, in place, and count them by part.  If there is room for new values, improve them, too.

    ``gains`` that count are above the first number, MARGIN of the sums that they come from, and the second number's
    share of the action's own constant.
    """
    x, new, sums = passes
    phases, update = len(cut.phase_start) - 1, len(new) > 0
    for stage, part in drawn_by_stage(counters, 2 * phases, cut.parts):
        first, last = part_of(cut, phases - 1 - stage // 2 if backwards else stage // 2, part)
        if stage % 2 == 0:
            target = x if update and cut.parts == 1 else new
            states = first, last, backwards
            sums[0, CHANGES, part] += improve_part(component, constant, chosen, x, target, states, gains)
        elif update and cut.parts > 1:
            x[first:last] = new[first:last]


@njit(cache=True, nogil=True, _nrt=False)
def improve_part(component, constant, chosen, x, target, states, gains):
    """Take better actions, state by state; return how many."""
    action_start, _, arc_start, arc_stop, column, chance, leave, away = component
    first, last, backwards = states
    noise, share = gains
    changes = 0
    for n in range(last - first):
        i = last - 1 - n if backwards else first + n
        here, best, most = x[i], chosen[i], 0.0
        for row in range(action_start[i], action_start[i + 1]):
            if away[row] <= 0.0:
                continue
            gone = leave[row] * here
            gain, size = constant[row] - gone, abs(constant[row]) + abs(gone)
            for j in along(arc_start[row], arc_stop[row]):
                step = chance[j] * (x[column[j]] - here)
                gain += step
                size += abs(step)
            if gain < most and gain < -MARGIN * size - share * abs(constant[row]) - noise / away[row]:
                best, most = row, gain
        changes += best != chosen[i]
        chosen[i] = best
        if len(target) > 0:
            target[i] = here + most
    return changes
