"""Value iteration in a large component: passes over its rows that take better actions and their values.

Values are updated in place, phase by phase.  If a phase has several parts, they write to ``new`` first, and the next
stage copies that.
"""

import numpy as np
from numba import njit

from prudent.kernels.blocks import MARGIN
from prudent.kernels.indices import along
from prudent.kernels.rows import part_of, share_of
from prudent.kernels.team import draw, end, ended, finish, wait_for

CHANGES, DRIFT, GONE, MOVED = 0, 1, 2, 3
"""The sums of a pass: actions that changed, changes of values, probabilities to leave, and the sizes of changes."""

ONE = np.uint64(1)
"""What to add to an unsigned index."""

LATELY, SLOW = 4, 0.3
"""Passes with one policy end if values changed by more than this ratio of their change this many passes before."""


@njit(cache=True, nogil=True)
def passes_done(sums, begin, stop, each, quiet, still, few):
    """Decide when passes end: when new choices changed nothing ``quiet`` times, or over 4/5 as many as before.

    Choices are made anew in every few passes; up to ten changes do not count as many.  Returns the number of passes up
    to ``stop``, the times still to be quiet, and the last number of changes.
    """
    for turn in range(begin, stop):
        if turn <= each or turn % each == 0:
            changes = sums[turn, CHANGES].sum()
            still = still - 1 if changes == 0 else quiet
            if still == 0 or (turn > each and changes > max(0.8 * few, 10.0)):
                return turn + 1, 0, changes
            few = changes
    return stop, still, few


@njit(cache=True, nogil=True)
def shift_part(cut, part, x, sums):
    """Shift values by half of their average change, divided by the average probability to leave."""
    gone = sums[GONE].sum()
    shift = 0.5 * sums[DRIFT].sum() / gone if gone > 0.0 else 0.0
    first, last = share_of(cut, part)
    for i in range(first, last):
        x[i] += shift


@njit(cache=True, nogil=True)
def relax_rows(counters, cut, component, constant, chosen, x, new, sums, begin, stop, each, quiet, still, few):
    """Take the values of the chosen actions, in passes ``begin`` to ``stop``, to and fro; and better actions in some.

    After a pass all values are shifted.  Without that, a block that is hardly ever left would reach the level of its
    values only after many passes.
    """
    phases = len(cut.phase_start) - 1
    stages = 2 * phases + 1
    while True:
        number = draw(counters)
        stage, part = number // cut.parts, number % cut.parts
        turn, stage = begin + stage // stages, stage % stages
        if turn >= stop:
            return
        wait_for(counters, number - part)
        if ended(counters):
            return
        if stage == 0 and passes_done(sums, begin, turn, each, quiet, still, few)[1] == 0:
            end(counters)
            return
        if stage == stages - 1:
            shift_part(cut, part, x, sums[turn])
        else:
            backwards = turn % 2 == 1
            phase = phases - 1 - stage // 2 if backwards else stage // 2
            first, last = part_of(cut, phase, part)
            if stage % 2 == 0:
                anew = turn <= each or turn % each == 0
                target = x if cut.parts == 1 else new
                relax_part(component, constant, chosen, x, target, first, last, backwards, anew, sums[turn, :, part])
            elif cut.parts > 1:
                x[first:last] = new[first:last]
        finish(counters)


@njit(cache=True, nogil=True, _nrt=False)
def relax_part(component, constant, chosen, x, target, first, last, backwards, anew, sums):
    """Take the least actions (``anew``) and their values, state by state; add up what changes."""
    action_start, _, arc_start, inner, _, column, chance, leave, _ = component
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


@njit(cache=True, nogil=True)
def settles(sums, begin, stop, fraction):
    """Decide when passes with one policy end: when changes have fallen to this fraction of the first, or fall slowly.

    Returns the number of passes up to ``stop``, and whether they ended.
    """
    for turn in range(begin, stop):
        moved = sums[turn, MOVED].sum()
        slow = turn > LATELY and moved > SLOW * sums[turn - LATELY, MOVED].sum()
        if slow or not moved > fraction * sums[0, MOVED].sum():
            return turn + 1, True
    return stop, False


@njit(cache=True, nogil=True)
def follow_rows(counters, cut, rows, rhs, x, new, sums, begin, stop, fraction):
    """Take the values of one policy, in passes ``begin`` to ``stop``, to and fro, each followed by a shift."""
    phases = len(cut.phase_start) - 1
    stages = 2 * phases + 1
    while True:
        number = draw(counters)
        stage, part = number // cut.parts, number % cut.parts
        turn, stage = begin + stage // stages, stage % stages
        if turn >= stop:
            return
        wait_for(counters, number - part)
        if ended(counters):
            return
        if stage == 0 and settles(sums, begin, turn, fraction)[1]:
            end(counters)
            return
        if stage == stages - 1:
            shift_part(cut, part, x, sums[turn])
        else:
            first, last = part_of(cut, phases - 1 - stage // 2 if turn % 2 == 1 else stage // 2, part)
            if stage % 2 == 0:
                follow_part(rows, rhs, x, new, first, last, sums[turn, :, part])
            else:
                x[first:last] = new[first:last]
        finish(counters)


@njit(cache=True, nogil=True, _nrt=False)
def follow_part(rows, rhs, x, new, first, last, sums):
    """Fill in the values of one policy, state by state; add up what changes."""
    start, _, column, chance, leave, _ = rows
    drift, gone, moved = 0.0, 0.0, 0.0
    for i in along(first, last):
        total = rhs[i]
        for j in along(start[i], start[i + ONE]):
            total += chance[j] * x[column[j]]
        drift += total - x[i]
        moved += abs(total - x[i])
        gone += leave[i]
        new[i] = total
    sums[DRIFT] += drift
    sums[GONE] += gone
    sums[MOVED] += moved


@njit(cache=True, nogil=True)
def improve_rows(counters, cut, component, constant, share, sense, chosen, x, new, noise, update, backwards, changes):
    """Take better actions, in place, and count them by part.  With ``update``, also improve the values at once.

    A gain counts if it is above ``noise``, MARGIN of the sums that it comes from, and ``share`` of the action's own
    constant.
    """
    phases = len(cut.phase_start) - 1
    while True:
        number = draw(counters)
        stage, part = number // cut.parts, number % cut.parts
        if stage >= 2 * phases:
            return
        wait_for(counters, number - part)
        first, last = part_of(cut, phases - 1 - stage // 2 if backwards else stage // 2, part)
        if stage % 2 == 0:
            target = x if cut.parts == 1 else new
            changes[part] += improve_part(
                component, constant, share, sense, chosen, x, target, first, last, noise, update, backwards
            )
        elif update and cut.parts > 1:
            x[first:last] = new[first:last]
        finish(counters)


@njit(cache=True, nogil=True, _nrt=False)
def improve_part(component, constant, share, sense, chosen, x, target, first, last, noise, update, backwards):
    """Take better actions, state by state; return how many."""
    action_start, _, arc_start, inner, _, column, chance, leave, away = component
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
            gain *= sense
            if gain < most and gain < -MARGIN * size - share * abs(constant[row]) - noise / away[row]:
                best, most = row, gain
        changes += best != chosen[i]
        chosen[i] = best
        if update:
            target[i] = here + sense * most
    return changes
