"""The compiled loops: arrays in, arrays out, no Python objects.

Only modules in this package import numba, and they import nothing else but numpy and each other.  Related
arrays are passed as named tuples.  Compiled code is kept in numba's cache.  The cache does not notice a change in a
kernel that is compiled into another one, or in a tuple's name.  So files in the cache that are older than the newest
source are removed when the package is imported.
"""

import contextlib
from functools import cache
from pathlib import Path

import numpy as np

__all__ = ["compile_for_cycles", "compiled_before", "drop_stale"]


def drop_stale(folder: Path) -> None:
    """Remove the files of numba's cache for the sources in a folder that are older than the newest of them."""
    with contextlib.suppress(OSError):  # a folder without write access has no such files
        newest = max((source.stat().st_mtime for source in folder.glob("*.py")), default=0.0)
        for compiled in (folder / "__pycache__").glob("*.nb[ci]"):
            if compiled.stat().st_mtime < newest:
                compiled.unlink(missing_ok=True)


drop_stale(Path(__file__).parent)


def compiled_before() -> bool:
    """Return whether numba's cache holds the present version of the largest kernel."""
    from prudent.kernels.tiles import settle

    line = settle.py_func.__code__.co_firstlineno
    return any(Path(str(settle.stats.cache_path)).glob(f"tiles.settle-{line}.*.nbi"))


@cache
def compile_for_cycles() -> None:
    """Compile the kernels that only models with cycles need, or read them from the cache, on a model of one goal.

    The model that warms up the other kernels, before any clock runs, has no cycles.
    """
    from prudent.kernels.graphs import almost_sure, best_luck, sorted_by, staying, worst_case
    from prudent.kernels.search import next_hops

    start, none, no_action, goal = np.zeros(2, np.int64), np.empty(0, np.int64), np.empty(0, bool), np.ones(1, bool)
    enter = start, sorted_by(none, start)
    almost_sure(start, none, none, *enter, goal.copy(), no_action)
    best_luck(goal, none, none, *enter, none, np.zeros(1, np.int64), np.zeros(1, np.int64))
    staying(none, none, *enter, no_action)
    next_hops(*enter, goal)
    blocks = np.arange(2), start[:1], start[:1]
    worst_case(start, start[:1], none, none, none, none, *enter, *blocks, np.zeros(1, np.int64))
