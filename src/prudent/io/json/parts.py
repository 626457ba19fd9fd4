"""The parts of a JSON document from anybody, each checked to be what it must be."""

import json
from typing import Any, NoReturn

from prudent.errors import PrudentError
from prudent.io.names import first_twin

__all__ = ["checked", "document", "shown"]

KINDS = {
    dict: "an object",
    list: "a list",
    str: "a string",
    float: "a number",
    int: "a whole number",
    bool: "true or false",
}


def document(text: str) -> Any:
    """Return what a text says; refuse a field given twice and numbers that are none."""
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except json.JSONDecodeError as error:
        raise PrudentError(f"not valid JSON: line {error.lineno}, column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise PrudentError("is nested too deeply for a model") from None
    except PrudentError:
        raise
    except ValueError:  # what is left is Python's limit on the digits of a whole number
        raise PrudentError("has a whole number of thousands of digits; none can be so large") from None


def checked(value: Any, kind: type, at: str, wanted: str | None = None) -> Any:
    """Return a value that is of this kind; refuse any other, saying where it stands and what it must be."""
    good = isinstance(value, kind) or (kind is float and isinstance(value, int))
    if not good or (isinstance(value, bool) and kind is not bool):
        raise PrudentError(f"{at} is {shown(value)}; it must be {wanted or KINDS[kind]}")
    if kind is float:
        try:
            return float(value)
        except OverflowError:
            raise PrudentError(f"{at} is too large for a number") from None
    return value


def shown(value: Any) -> str:
    """Return a value as a message shows it: short, and in characters that any terminal can print."""
    return KINDS[type(value)] if isinstance(value, dict | list) else json.dumps(value)[:60]


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise PrudentError(f"an object has the field {first_twin([name for name, _ in pairs])!r} twice")
    return found


def _constant(text: str) -> NoReturn:
    raise PrudentError(f"{text} is not a number that a model can have")
