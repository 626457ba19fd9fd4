"""The compiled loops: arrays in, arrays out, no Python objects.

Only modules in this package import numba, and they import nothing else but numpy and each other.  Arrays
that belong together travel in named tuples.  Results of compilation are kept in numba's cache.  It does not notice
when a kernel is compiled into another one and changes, or a tuple's name does; so what is older than any of the sources
is dropped when the package is imported.
"""

import contextlib
from functools import cache
from pathlib import Path

import numpy as np

__all__ = ["compile_for_cycles", "compiled_before", "drop_stale"]


def drop_stale(folder: Path) -> None:
    """Remove what numba compiled from the sources in a folder before the newest of them was written."""
    with contextlib.suppress(OSError):  # where it cannot be removed, it was not written either
        newest = max((source.stat().st_mtime for source in folder.glob("*.py")), default=0.0)
        for compiled in (folder / "__pycache__").glob("*.nb[ci]"):
            if compiled.stat().st_mtime < newest:
                compiled.unlink(missing_ok=True)


drop_stale(Path(__file__).parent)


def compiled_before() -> bool:
    """Return whether numba's cache holds the largest kernel, as it is written now."""
    from prudent.kernels.tiles import settle

    line = settle.py_func.__code__.co_firstlineno
    return any(Path(str(settle.stats.cache_path)).glob(f"tiles.settle-{line}.*.nbi"))


@cache
def compile_for_cycles() -> None:
    """Compile what only models with cycles need, or read it from the cache, on a model that is one goal.

    The model that kernels are warmed up with, before any clock runs, has no cycles.
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
