"""How much of a long loop to do between two checks of the clock and of Ctrl-C."""

import math

from prudent.runtime.clock import now
from prudent.runtime.limits import Limits

AT_A_TIME, PART, LEAST = 0.8, 0.25, 0.1
"""The seconds between two checks; at most this part of the time left; and the least time left that is counted."""

FIRST, GROWTH = 64, 4
"""The first stretch is so many times smaller than expected; how much larger each may be than the one before."""


class Pace:
    """How many levels to take at a time: as many as the last ones show to be in time, at most ``most``."""

    def __init__(self, most: float, limits: Limits) -> None:
        self.most, self.limits = max(most, 1.0), limits
        self.size = self.most / FIRST
        self.done, self.at = 0, math.nan

    def next(self, done: int) -> int:
        """Return how many levels to take after the first ``done``; those since the last call took the time since."""
        levels, seconds, self.done, self.at = done - self.done, now() - self.at, done, now()
        if seconds > 0 and levels > 0:  # not at first
            wanted = min(AT_A_TIME, PART * max(self.limits.left, LEAST)) * levels / seconds
            self.size = min(wanted, GROWTH * self.size, self.most)
        return max(int(self.size), 1)
