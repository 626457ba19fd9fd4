"""Errors: invalid input, which the user can fix, and defects of Prudent, to be reported.

A message names the argument or file, the place, the value found and the remedy.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from numbers import Integral, Real
from typing import Any


def must_be_one(total: float) -> str:
    """Return the message for probabilities that do not sum to 1; close to 1 they may have been rounded."""
    hint = "; if they were rounded, divide them by their sum" if abs(total - 1) <= 0.05 else ""
    return f"sum to {total:.12g}; they must sum to 1{hint}"


def printable(name: object, most: int | None = None) -> str:
    """Return a name as text for a terminal: cut short if asked, and quoted if printing it would fail or do harm."""
    text = str(name)[:most]
    return text if text.isprintable() else repr(text)


class PrudentError(ValueError):
    """Invalid input, or a limit that is too low; the message says where and how to fix it.

    Examples
    --------
    >>> import prudent
    >>> try:
    ...     prudent.solve(prudent.domains.figure_2(), alpha=2)
    ... except prudent.PrudentError as error:
    ...     print(error)
    alpha is 2; it must be the worst fraction of runs, above 0 and at most 1
    """


class ModelError(PrudentError):
    """An invalid model; ``problems`` lists every problem found, not only the first.

    Examples
    --------
    >>> import prudent
    >>> try:
    ...     prudent.build("start", lambda state: {"go": [(0.5, "end", 1), (0.4, "end", 2)]} if state == "start" else {})
    ... except prudent.ModelError as error:
    ...     print(error.problems)
    ("probabilities of state 'start', action 'go' sum to 0.9; they must sum to 1",)
    """

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        more = len(self.problems) - 1
        also = f" (and {more} more problem{'s' if more > 1 else ''})" if more else ""
        super().__init__(self.problems[0] + also)

    def __reduce__(self) -> tuple[type["ModelError"], tuple[tuple[str, ...]]]:
        return type(self), (self.problems,)  # as it comes from another process


class TooLarge(PrudentError):
    """Work that exceeds a limit on memory or work; bounds may hold without it."""


class Defect(AssertionError):
    """A condition that no input should cause: a defect of Prudent, with what to report."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}; this is a defect of Prudent: please report it with the model and the call")


@contextmanager
def naming(place: object) -> Iterator[None]:
    """Put a place, such as the path of a file, in front of every error message inside."""
    try:
        yield
    except ModelError as error:
        raise ModelError([f"{place}: {problem}" for problem in error.problems]) from None
    except PrudentError as error:
        raise PrudentError(f"{place}: {error}") from None


def numeral(text: str) -> str:
    """Return a text that is to be a number; raise ValueError for what Python alone reads as one, such as 1_000."""
    if "_" in text or not text.isascii():
        raise ValueError(f"{text!r} is not a number")
    return text


def as_number(name: str, value: object, wanted: str, good: Callable[[float], bool]) -> float:
    """Return an argument as a float, or reject it."""
    number = float("nan")
    if isinstance(value, Real) and not isinstance(value, bool):
        with suppress(OverflowError):
            number = float(value)
    if not good(number):
        raise PrudentError(f"{name} is {value!r}; it must be {wanted}")
    return number


def whole_number(name: str, value: object, least: int, most: int | None = None, what: str = "a whole number") -> int:
    """Return an argument as an int within limits, or reject it."""
    number = int(value) if isinstance(value, Integral) and not isinstance(value, bool) else least - 1
    if number < least or (most is not None and number > most):
        limits = f"at least {least}" if most is None else f"from {least} to {most}"
        raise PrudentError(f"{name} is {value!r}; it must be {what}, {limits}")
    return number


def needed(module: str, extra: str) -> Any:
    """Import a module of an extra, or raise an error that names the extra to install."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != package:
            raise  # it is installed, but one of its own imports is not
        raise PrudentError(f"this needs {package}; install it with: pip install 'prudent[{extra}]'") from None
