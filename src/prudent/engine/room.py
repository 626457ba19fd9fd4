"""Room that rows of different lengths share, one after the other."""

import numpy as np

from prudent.models.rows import IntArray


def shared_room(size: IntArray, born: IntArray, gone: IntArray, room: int = 0) -> tuple[IntArray, int]:
    """Return where each row begins, after some ``room``, and the room for all.

    A row is needed from time ``born`` to time ``gone``; before and after, other rows may use its place.
    """
    n, last = len(size), int(gone.max(initial=0))
    row, free = np.zeros(n, dtype=np.int64), list[tuple[int, int]]()
    leaving: list[list[int]] = [[] for _ in range(last + 2)]
    time = -1
    for i in np.argsort(born, kind="stable").tolist():
        while time < born[i]:
            time += 1
            if leaving[time]:
                free = _joined([*free, *((int(row[each]), int(size[each])) for each in leaving[time])])
        if size[i] == 0:
            continue
        fits = [each for each in free if each[1] >= size[i]]
        if fits:
            at, length = min(fits, key=lambda each: each[1])
            free.remove((at, length))
            if length > size[i]:
                free.append((at + int(size[i]), length - int(size[i])))
        else:
            at, room = room, room + int(size[i])
        row[i] = at
        leaving[int(gone[i]) + 1].append(i)
    return row, room


def _joined(free: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join stretches of free room that touch."""
    joined: list[tuple[int, int]] = []
    for at, length in sorted(free):
        if joined and joined[-1][0] + joined[-1][1] == at:
            joined[-1] = joined[-1][0], joined[-1][1] + length
        else:
            joined.append((at, length))
    return joined
