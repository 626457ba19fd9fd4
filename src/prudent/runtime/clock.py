"""A clock for work: it stands still while kernels are compiled, or read from the cache, and announces it."""

import time

from prudent.kernels import compiler
from prudent.runtime.progress import announce

__all__ = ["now"]

compiler.tell = announce


def now() -> float:
    """Return seconds on a clock that does not count compilation; only differences mean anything."""
    return time.perf_counter() - compiler.seconds
