"""Where runs start: the argument ``initial=``, for files that may name several initial states without probabilities."""

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from prudent.errors import PrudentError
from prudent.models.rows import FloatArray, IntArray
from prudent.models.ssp import SSP

__all__ = ["Initial", "Start", "drawn", "started"]

Start = tuple[IntArray, FloatArray]
"""The states where runs start, and their probabilities."""

Initial = Hashable | Mapping[Any, float]
"""A state, or {state: probability}."""

NAMED = 5
"""How many initial states a message names."""


def drawn(first: IntArray, initial: Initial | None) -> tuple[Start, tuple[str, ...]]:
    """Return a start that draws one of the initial states, all equally likely, with a note unless one is chosen."""
    n = len(first)
    note = (
        f"the file names {n:,} initial states without probabilities, so each has probability 1/{n:,}; choose one with "
        "initial= (--initial)"
    )
    return (first, np.full(n, 1 / n)), (note,) if n > 1 and initial is None else ()


def started(model: SSP, initial: Initial | None, at: str = "") -> SSP:
    """Return the model with runs that start in ``initial``; None leaves the start as it is.

    Error messages begin with ``at``.
    """
    if initial is None:
        return model
    pairs = list(initial.items()) if isinstance(initial, Mapping) else [(initial, 1.0)]
    try:
        first = [model.index(_numbered(model, state)) for state, _ in pairs]
    except PrudentError as error:
        some = ", ".join(repr(model.state(s)) for s in model.initial_state[:NAMED])
        more = ", ..." if len(model.initial_state) > NAMED else ""
        raise PrudentError(
            f"{at}initial= (--initial): {error}; the initial states of the file are {some}{more}"
        ) from None
    chance = np.array([p for _, p in pairs])
    chosen = replace(model, initial_state=np.array(first, dtype=np.int64), initial_probability=chance)
    object.__setattr__(chosen, "deviation", max(model.deviation, chosen.deviation))  # of the sums as the file has them
    return chosen


def _numbered(model: SSP, state: Hashable) -> Hashable:
    """Return the number that a command gives as text, if states have no names."""
    plain = model.state_names is None and isinstance(state, str) and state.isdecimal()
    return int(state) if plain else state  # type: ignore[call-overload]
