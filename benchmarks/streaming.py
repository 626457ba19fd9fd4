"""How much of what a core can stream the solve attains, in multiply-adds of a naive sweep.

The yardstick is ``y[i] += a * x[i]`` on vectors that stay in the first-level cache, the best of several lengths.
Work that a solve avoids counts as done: the naive sweep is the unit of work.
"""

import time
from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numba import njit

from cases import ONE_CORE, fifty_thousand, inventory_control, wide
from table import Found, Row
from timing import Spread, once

LENGTHS = (256, 512, 768, 1024, 1536)
"""Doubles in a vector; two of them fit into 32 KiB up to 2,048."""

AMOUNT = 20_000_000
"""Multiply-adds for one measurement."""

LEAST, LIMIT = 3, 60.0
"""Turns, and seconds after which no more of them are begun."""

PART = "share of a core's streaming rate"


@njit(cache=True, fastmath=True)
def stream(y, x, a, rounds):
    """Add a multiple of one vector to another, again and again."""
    for _ in range(rounds):
        for i in range(len(y)):
            y[i] += a * x[i]


def streaming_rate() -> float:
    """Return multiply-adds a second on one core, from the first-level cache, for the best length."""
    best = 0.0
    for length in LENGTHS:
        y, x = np.zeros(length), np.ones(length)
        rounds = AMOUNT // length
        best = max(best, rounds * length / once(lambda y=y, x=x, rounds=rounds: stream(y, x, 1e-9, rounds)))
    return best


def share(solve: Callable[[], object], naive: float, turns: int) -> tuple[Spread, Spread, Spread]:
    """Return the streaming rate, the solve's rate and their ratio, the yardstick before and after every solve."""
    solve()
    streaming_rate()
    yard, rates, began = [streaming_rate()], [], time.perf_counter()
    for turn in range(turns):
        if turn >= LEAST and time.perf_counter() - began > LIMIT:
            break
        rates.append(naive / once(solve))
        yard.append(streaming_rate())
    around = [max(pair) for pair in pairwise(yard)]
    return Spread(tuple(yard)), Spread(tuple(rates)), Spread(tuple(r / y for r, y in zip(rates, around, strict=True)))


def run(quick: bool) -> Found:
    """Measure Inventory Control and two finite-horizon models of 50,000 states."""
    found = Found()
    aims = [(inventory_control(), 60.0), (fifty_thousand(quick), 40.0), (wide(quick), 40.0)]
    for case, aim in aims:
        yard, rate, part = share(lambda case=case: case.solve(**ONE_CORE), case.naive, 3 if quick else 7)
        size = f"{len(case.prepared.cost):,} outcomes x {case.levels:,} levels x 2"
        percent = Spread(tuple(100 * value for value in part.values))
        found.rows += [
            Row.of(PART, case.about, "streaming", Spread(tuple(v / 1e9 for v in yard.values)), " G/s", note="one core"),
            Row.of(PART, case.about, "naive rate", Spread(tuple(v / 1e9 for v in rate.values)), " G/s", note=size),
            Row.of(PART, case.about, "share", percent, "%", aim=aim),
        ]
    return found
