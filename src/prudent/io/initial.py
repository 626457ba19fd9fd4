"""Where runs start: the argument ``initial=`` for files that may name several initial states, without chances."""

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
    """Return a start that draws the states of a file with equal chances, and a note if nothing else is asked for."""
    n = len(first)
    note = (
        f"the file names {n:,} initial states and no chances, so each is drawn with 1/{n:,}; initial= (--initial) "
        "chooses one"
    )
    return (first, np.full(n, 1 / n)), (note,) if n > 1 and initial is None else ()


def started(model: SSP, initial: Initial | None, at: str = "") -> SSP:
    """Return the model with runs that start where ``initial`` says; None leaves them as they are.

    What is refused starts with ``at``.
    """
    if initial is None:
        return model
    pairs = list(initial.items()) if isinstance(initial, Mapping) else [(initial, 1.0)]
    try:
        first = [model.index(_numbered(model, state)) for state, _ in pairs]
    except PrudentError as error:
        some = ", ".join(repr(model.state(s)) for s in model.initial_state[:NAMED])
        more = ", ..." if len(model.initial_state) > NAMED else ""
        raise PrudentError(f"{at}initial= (--initial): {error}; the file starts in {some}{more}") from None
    chance = np.array([p for _, p in pairs])
    chosen = replace(model, initial_state=np.array(first, dtype=np.int64), initial_probability=chance)
    object.__setattr__(chosen, "deviation", max(model.deviation, chosen.deviation))  # of the sums as the file has them
    return chosen


def _numbered(model: SSP, state: Hashable) -> Hashable:
    """Return the number that a command says as text, if states have no names."""
    plain = model.state_names is None and isinstance(state, str) and state.isdecimal()
    return int(state) if plain else state  # type: ignore[call-overload]
