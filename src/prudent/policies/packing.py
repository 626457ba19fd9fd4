"""A policy's table of actions as the tensors of a file.

A table by rows, one for each budget from 0 to the policy's own, is one tensor of two dimensions.  Any other is its
entries, state by state, with the least and the largest budget of each state, its action without budget, and the
policy's own budget.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.engine.prepared import Prepared, choice_type
from prudent.errors import PrudentError
from prudent.kernels.choices import Choices
from prudent.models.rows import BoolArray, IntArray

TABLE = (2, "iu")
"""Dimensions and kinds of numbers of a table by rows."""

PARTS = ("entry", "low", "high", "without", "level")

MOST = 2**28
"""No policy has as many levels: a sweep would take days."""


def tensors_of(declared: Mapping[str, tuple[int, str]], found: Iterable[str]) -> dict[str, tuple[int, str]]:
    """Return the tensors that a file must have, with dimensions and kinds, given those declared and those found."""
    needed = dict[str, tuple[int, str]]()
    for name, form in declared.items():
        by_parts = form == TABLE and f"{name}_entry" in found
        needed |= {f"{name}_{part}": (1, "iu") for part in PARTS} if by_parts else {name: form}
    return needed


def packed_choices(name: str, choices: Choices, level: int) -> dict[str, NDArray[Any]]:
    """Return the tensors of a table."""
    rows = choices.rows
    if rows is not None and len(rows) == level + 1:
        return {name: rows}
    size, step = np.maximum(choices.high - choices.low + 1, 0), choices.stride
    places = zip(choices.first.tolist(), size.tolist(), strict=True)
    entry = np.concatenate([choices.entry[first : first + n * step : step] for first, n in places])
    low, high = np.where(size > 0, choices.low, 1), np.where(size > 0, choices.high, 0)
    parts = entry, low, high, choices.without, np.array([level])
    return {f"{name}_{part}": table for part, table in zip(PARTS, parts, strict=True)}


def unpacked_choices(name: str, packed: Mapping[str, NDArray[Any]], prepared: Prepared) -> tuple[Choices, int]:
    """Return a table in a small type, and the policy's budget; refuse actions and budgets that there cannot be."""
    n, small = prepared.n_states, choice_type(prepared)
    count = np.maximum(np.diff(prepared.action_start), 1)  # the entry of a goal is 0
    if name in packed:
        rows = packed[name]
        if len(rows) == 0 or rows.shape[1] != n:
            raise PrudentError(f"tensor {name} has shape {rows.shape}; the prepared model has {n} states")
        _refuse(name, (rows.min(axis=0) < 0) | (rows.max(axis=0) >= count))
        return Choices.of_rows(rows.astype(small)), len(rows) - 1
    level = int(within(packed, f"{name}_level", 0, MOST, 1)[0])
    low, high = within(packed, f"{name}_low", 0, level + 2, n), within(packed, f"{name}_high", 0, level + 1, n)
    size = np.maximum(high - low + 1, 0)
    entry, without = packed[f"{name}_entry"], packed[f"{name}_without"]
    if (len(entry), len(without)) != (size.sum(), n):
        raise PrudentError(f"{name}_entry and {name}_without have not one entry for each budget and for each state")
    state = np.repeat(np.arange(n), size)
    wrong = (without < 0) | (without >= count)
    wrong[state[(entry < 0) | (entry >= count[state])]] = True
    _refuse(name, wrong)
    return Choices.of_ranges(entry.astype(small), low, high, without.astype(small)), level


def within(packed: Mapping[str, NDArray[Any]], name: str, least: int, end: int, size: int) -> IntArray:
    """Return a tensor of whole numbers from ``least`` up to, but not including, ``end``; refuse any other."""
    table = packed[name]
    if table.shape != (size,):
        raise PrudentError(f"{name} has {len(table)} entries, not {size}")
    if size and not least <= int(table.min()) <= int(table.max()) < end:
        raise PrudentError(f"{name} has entries from {table.min()} to {table.max()}, not from {least} to {end - 1}")
    return table.astype(np.int64)


def _refuse(name: str, wrong: BoolArray) -> None:
    """Refuse a table with actions that its states do not have."""
    if wrong.any():
        raise PrudentError(f"tensor {name} has an action that prepared state {np.flatnonzero(wrong)[0]} has not")
