"""Names as they are written to files: as strings, which must differ."""

from itertools import pairwise

from prudent.errors import PrudentError
from prudent.models.ssp import SSP, repeated

__all__ = ["written_names"]


def written_names(model: SSP) -> tuple[list[str], list[str]]:
    """Return the names of the states and of the actions as strings; refuse names that are equal as strings."""
    state, action = (list(map(str, names)) for names in model.names)
    _refuse_twins(state, "states")
    for s, (first, last) in enumerate(pairwise(model.action_start.tolist())):
        _refuse_twins(action[first:last], f"actions of state {state[s]!r}")
    return state, action


def _refuse_twins(names: list[str], what: str) -> None:
    for name in repeated(names)[:1]:
        raise PrudentError(f"two {what} are both written {name!r}; names in a file are strings and must differ")
