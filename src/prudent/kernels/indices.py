"""Indices that are known not to be negative, so that a kernel need not check whether they count from the end."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def along(first, last):
    """Return the indices from ``first`` to ``last``, unsigned: for reading only, as sums with others become floats."""
    return range(np.uint64(first), np.uint64(last))
