"""The one list of domains: their names, their parameters, and the pictures of their plans.

A domain is a function that returns a model, in a file of its own, decorated with :func:`domain`.  Importing it in
``domains/__init__.py`` makes it known to the command, the page, the environments and the pictures.
"""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal, TypeVar

from prudent.errors import PrudentError, numeral
from prudent.models.ssp import SSP

Make = TypeVar("Make", bound=Callable[..., SSP])


@dataclass(frozen=True)
class Domain:
    """What other parts need to know about a domain besides its model."""

    title: str  # as the paper calls it
    make: Callable[..., SSP]
    parts: tuple[str, ...] = ()  # the names of the parts of a state, if states are tuples
    action: str = "action"  # the name of an action, if it is a number
    drawn: Literal["heat", "sea", "network", "table"] = "table"  # the picture that suits its plans
    points: int = 30  # grid points of y that the paper's methods use for it
    opens_at: float = 1.0  # the share of the budget that remains in the map that the page shows first

    @property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """The parameters of its function."""
        return dict(inspect.signature(self.make).parameters)

    @property
    def environment(self) -> str:
        """Its name in Gymnasium."""
        return f"prudent/{self.make.__name__.title().replace('_', '')}-v0"


DOMAINS: dict[str, Domain] = {}
"""Every domain by its name in commands, which is also the name of its model."""


def domain(title: str, **about: Any) -> Callable[[Make], Make]:
    """Register a function as a domain; ``about`` are the fields of :class:`Domain`."""

    def known(make: Make) -> Make:
        DOMAINS[make.__name__.replace("_", "-")] = Domain(title, make, **about)
        return make

    return known


def points_of(model: SSP) -> int:
    """Return the number of grid points of y that the paper's methods use for a model: that of its domain, if any."""
    return DOMAINS[model.name].points if model.name in DOMAINS else Domain.points


def named(name: str) -> Domain:
    """Return a domain by its name."""
    if name not in DOMAINS:
        near = get_close_matches(name, DOMAINS, n=1, cutoff=0.5)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise PrudentError(f"{name} is neither a domain nor a file; the domains are {', '.join(DOMAINS)}{hint}")
    return DOMAINS[name]


def make(name: str, settings: tuple[str, ...] = ()) -> SSP:
    """Return the model of a domain, with parameters as in ``--set KEY=VALUE``, read by their types."""
    chosen = {key: _value(key, text, parameter) for key, text, parameter in _settings(name, settings)}
    return named(name).make(**chosen)


def grid(name: str, settings: tuple[str, ...]) -> dict[str, list[Any]]:
    """Return values for parameters of a domain as in ``--set KEY=VALUE,VALUE``, read by their types."""
    return {
        key: [_value(key, each, parameter) for each in text.split(",")]
        for key, text, parameter in _settings(name, settings)
    }


def _settings(name: str, settings: tuple[str, ...]) -> Iterator[tuple[str, str, inspect.Parameter]]:
    """Yield the key of each setting, the text of its value, and its parameter."""
    known, seen = named(name).parameters, set[str]()
    for item in settings:
        key, equals, text = item.partition("=")
        if not equals or key not in known:
            takes = ", ".join(known) or "none"
            raise PrudentError(f"--set {item}: {name} has no such parameter; write KEY=VALUE with KEY one of: {takes}")
        if key in seen:
            raise PrudentError(f"--set {item}: {key} is set twice; remove one of them")
        seen.add(key)
        yield key, text, known[key]


def _value(key: str, text: str, parameter: inspect.Parameter) -> Any:
    if isinstance(parameter.default, bool):
        if text.lower() not in ("true", "false"):
            raise PrudentError(f"--set {key}={text}: the value must be true or false")
        return text.lower() == "true"
    if isinstance(parameter.default, int | float):
        kind = type(parameter.default)
        try:
            return kind(numeral(text))
        except ValueError:
            what = "a whole number" if kind is int else "a number"
            raise PrudentError(f"--set {key}={text}: the value must be {what}") from None
    return text
