"""Value iteration in a large component: passes over its rows that take better actions and their values.

Values are updated in place, phase by phase.  If a phase has several parts, they write to ``new`` first, and the next
stage copies that.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from prudent.kernels.blocks import MARGIN
from prudent.kernels.indices import along
from prudent.kernels.rows import part_of, share_of
from prudent.kernels.team import drawn_by_stage, end

CHANGES, DRIFT, GONE, MOVED = 0, 1, 2, 3
"""The sums of a pass: actions that changed, changes of values, probabilities to leave; with one policy, the sizes of
changes."""

EACH, QUIET, SETTLING = 3, 2, 0.8
"""Actions are chosen anew in each third pass.  They have settled once that changes none twice; and do not settle if it
changes more than this share of the number that it changed before."""

ONE = np.uint64(1)
"""What to add to an unsigned index."""

LATELY, SLOW = 4, 0.3
"""Values change slowly if they changed by more than this ratio of their change this many passes before."""


class Passes(NamedTuple):
    """The values of a component, and what its passes have added up so far."""

    x: np.ndarray  # (size,)
    new: np.ndarray  # (size,)
    sums: np.ndarray  # (passes, 4, parts)


@njit(cache=True, nogil=True)
def relax_rows(counters, cut, component, constant, chosen, passes, turns, fraction):
    """Take the values of the chosen actions, in ``turns`` from one to another, to and fro; and better actions in some.

    Nothing is chosen among the rows of one policy.  After a pass all values are shifted.  Without that, a block that is
    hardly ever left would reach the level of its values only after many passes.
    """
    x, new, sums = passes
    phases = len(cut.phase_start) - 1
    stages = 2 * phases + 1
    for number, part in drawn_by_stage(counters, (turns[1] - turns[0]) * stages, cut.parts):
        turn, stage = turns[0] + number // stages, number % stages
        if stage == 0 and settles(sums, turn, fraction):
            end(counters)
            return
        if stage == stages - 1:
            shift_part(cut, part, x, sums[turn])
            continue
        backwards = turn % 2 == 1
        first, last = part_of(cut, phases - 1 - stage // 2 if backwards else stage // 2, part)
        target = x if cut.parts == 1 else new
        if stage % 2 == 1:
            if cut.parts > 1:
                copy_part(new, x, first, last)
        elif len(chosen) == 0:
            follow_part(component, constant, x, target, first, last, sums[turn, :, part])
        else:
            states = first, last, backwards
            relax_part(component, constant, chosen, x, target, states, chooses(turn), sums[turn, :, part])


@njit(cache=True, nogil=True)
def settles(sums, turns, fraction):
    """Return whether passes end after so many: if choices do not settle, or once they have.

    With one policy, also values must have settled: they change by a ``fraction`` of their first change, or slowly.
    """
    quiet, few = 0, np.inf
    for turn in range(turns):
        if chooses(turn):
            changes = sums[turn, CHANGES].sum()
            if turn > EACH and changes > max(SETTLING * few, 10.0):  # up to ten do not count as many
                return True
            quiet, few = quiet + 1 if changes == 0.0 else 0, changes
    if quiet < QUIET:
        return False
    moved = sums[turns - 1, MOVED].sum()
    slow = turns > LATELY + 1 and moved > SLOW * sums[turns - 1 - LATELY, MOVED].sum()
    return slow or not moved > fraction * sums[0, MOVED].sum()


@njit(cache=True, nogil=True)
def chooses(turn):
    """Return whether actions are chosen anew in this pass."""
    return turn <= EACH or turn % EACH == 0


@njit(cache=True, nogil=True)
def shift_part(cut, part, x, sums):
    """Shift values by half of their average change, divided by the average probability to leave."""
    gone = sums[GONE].sum()
    shift = 0.5 * sums[DRIFT].sum() / gone if gone > 0.0 else 0.0
    first, last = share_of(cut, part)
    for i in range(first, last):
        x[i] += shift


@njit(cache=True, nogil=True, _nrt=False)
def copy_part(new, x, first, last):
    """Copy new values to where they are read."""
    for i in along(first, last):
        x[i] = new[i]


@njit(cache=True, nogil=True, _nrt=False)
def relax_part(component, constant, chosen, x, target, states, anew, sums):
    """Take the least actions (``anew``) and their values, state by state; add up what changes."""
    action_start, _, arc_start, inner, _, column, chance, leave, _ = component
    first, last, backwards = states
    changes, drift, gone = 0, 0.0, 0.0
    for n in range(last - first):
        i = last - 1 - n if backwards else first + n
        best, least = chosen[i], np.inf
        begin, stop = (action_start[i], action_start[i + 1]) if anew else (best, best + 1)
        for row in range(begin, stop):
            total = constant[row]
            for j in along(arc_start[row], arc_start[row] + inner[row]):
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


@njit(cache=True, nogil=True, _nrt=False)
def follow_part(rows, rhs, x, target, first, last, sums):
    """Fill in the values of one policy, state by state; add up what changes."""
    arc_start, column, chance, leave = rows.arc_start, rows.column, rows.chance, rows.leave
    drift, gone, moved = 0.0, 0.0, 0.0
    for i in along(first, last):
        total = rhs[i]
        for j in along(arc_start[i], arc_start[i + ONE]):
            total += chance[j] * x[column[j]]
        drift += total - x[i]
        moved += abs(total - x[i])
        gone += leave[i]
        target[i] = total
    sums[DRIFT] += drift
    sums[GONE] += gone
    sums[MOVED] += moved


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
            copy_part(new, x, first, last)


@njit(cache=True, nogil=True, _nrt=False)
def improve_part(component, constant, chosen, x, target, states, gains):
    """Take better actions, state by state; return how many."""
    action_start, _, arc_start, inner, _, column, chance, leave, away = component
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
            for j in along(arc_start[row], arc_start[row] + inner[row]):
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
