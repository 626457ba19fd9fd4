"""Repeated runs, interleaved: the machine may be shared and noisy, so what is compared takes turns."""

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Spread:
    """Repeated measurements of one thing."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle one."""
        return float(np.median(self.values))

    @property
    def low(self) -> float:
        """The lower quartile."""
        return float(np.quantile(self.values, 0.25))

    @property
    def high(self) -> float:
        """The upper quartile."""
        return float(np.quantile(self.values, 0.75))

    def over(self, other: "Spread") -> "Spread":
        """Return the ratios, each of two measurements of the same turn."""
        return Spread(tuple(a / b for a, b in zip(self.values, other.values, strict=True)))

    def per(self, work: float) -> "Spread":
        """Return a rate: so much work in each of these times."""
        return Spread(tuple(work / value for value in self.values))


def median(values: Sequence[float]) -> float:
    """Return the middle of some measurements."""
    return Spread(tuple(values)).median


def standing(theirs: Spread, ours: Spread) -> str:
    """Say whether we are ahead of someone else's seconds."""
    return "ahead" if theirs.over(ours).median >= 1 else "behind"


def interleaved(
    tasks: dict[str, Callable[[], object]], *, turns: int = 7, limit: float = 60.0, least: int = 3, warm: bool = True
) -> dict[str, Spread]:
    """Return the seconds of each task: warmed up once, unless that was done, then in turns, A B A B ...

    After ``least`` turns it ends once the limit in seconds is passed.
    """
    if warm:
        for task in tasks.values():
            task()
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    began = time.perf_counter()
    for turn in range(turns):
        if turn >= least and time.perf_counter() - began > limit:
            break
        for name, task in tasks.items():
            seconds[name].append(once(task))
    return {name: Spread(tuple(values)) for name, values in seconds.items()}


def once(task: Callable[[], object]) -> float:
    """Return the seconds that a task takes; garbage is not collected meanwhile."""
    gc.collect()
    gc.disable()
    try:
        began = time.perf_counter()
        task()
        return time.perf_counter() - began
    finally:
        gc.enable()
