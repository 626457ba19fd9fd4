"""The compiled loops: arrays in, arrays out, no Python objects.

Only modules in this package import numba, and they import nothing else but numpy and each other.  Arrays
that belong together travel in named tuples.  Results of compilation are kept in numba's cache.
"""

from pathlib import Path

__all__ = ["compiled_before"]


def compiled_before() -> bool:
    """Return whether numba's cache holds the largest kernel, as it is written now."""
    from prudent.kernels.sweep import sweep

    line = sweep.py_func.__code__.co_firstlineno
    return any(Path(str(sweep.stats.cache_path)).glob(f"sweep.sweep-{line}.*.nbi"))
