"""The combinations that a study solves: all values of its parameters, and all alphas."""

import inspect
import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from prudent.domains import registry
from prudent.errors import PrudentError
from prudent.io.study import key_of
from prudent.models.ssp import SSP
from prudent.policies.distribution import check_alpha
from prudent.results.study import FIELDS

Make = str | Callable[..., SSP]
"""The name of a domain, or a function that returns a model."""

Combination = tuple[dict[str, Any], float]
"""Values of parameters, and an alpha."""


def maker(make: Make) -> Callable[..., SSP]:
    """Return the function that makes models."""
    return registry.named(make).make if isinstance(make, str) else make


def combinations_of(
    make: Make, grid: Mapping[str, Iterable[Any]], alphas: Iterable[float]
) -> tuple[tuple[str, ...], list[Combination]]:
    """Return the names of the parameters, and every combination of their values and the alphas."""
    if not isinstance(grid, Mapping):
        raise PrudentError(f"grid is {grid!r}; it must be a mapping, such as {{'capacity': [10, 20]}}")
    lists = {name: _several(f"grid[{name!r}]", values) for name, values in grid.items()}
    fractions = [check_alpha(alpha, "alphas") for alpha in _several("alphas", alphas)]
    for name in lists:
        if not isinstance(name, str):
            raise PrudentError(
                f"grid has the parameter {name!r}; the name of a parameter must be a str, such as 'capacity'"
            )
        if name in FIELDS:
            raise PrudentError(
                f"grid has the parameter {name!r}, which is the name of a column of the result; rename the parameter"
            )
    for name, values in {**lists, "alphas": fractions}.items():
        keys = [key_of({name: value, "alpha": 0}, [name]) for value in values]
        for value, key in zip(values, keys, strict=True):
            if keys.count(key) > 1:
                raise PrudentError(f"{name} has {value!r} twice; remove one")
    _check_takes(make, {name: values[0] for name, values in lists.items()})
    every = [dict(zip(lists, values, strict=True)) for values in itertools.product(*lists.values())]
    return tuple(lists), [(values, alpha) for values in every for alpha in fractions]


def _several(name: str, values: object) -> list[Any]:
    if not isinstance(values, Iterable) or isinstance(values, str):
        such = "[0.05, 0.5]" if name == "alphas" else "[10, 20]"
        raise PrudentError(f"{name} is {values!r}; it must be a sequence, such as {such}")
    found = list(values)
    if not found:
        raise PrudentError(f"{name} is empty; give at least one value")
    return found


def _check_takes(make: Make, values: dict[str, Any]) -> None:
    """Reject parameters that a domain or a function does not take."""
    if not isinstance(make, str) and not callable(make):
        raise PrudentError(f"make is a {type(make).__name__}; it must be the name of a domain or a function")
    build = maker(make)
    try:
        takes = inspect.signature(build)
    except ValueError:  # some functions have no signature
        return
    try:
        takes.bind(**values)
    except TypeError as error:
        raise PrudentError(f"grid does not match the parameters of make: {error}") from None
