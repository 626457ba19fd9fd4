"""A clock for work: it stops while kernels are compiled or read from the cache, and announces the compilation."""

import time

from prudent.kernels import compiler
from prudent.runtime.progress import announce

compiler.tell = announce


def now() -> float:
    """Return seconds on a clock that does not count compilation; only differences are meaningful."""
    return time.perf_counter() - compiler.seconds
