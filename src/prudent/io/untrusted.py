"""Files from anybody: inflate them within a limit, take them for text or JSON, check the types of their parts.

Reading a model or a plan takes time in proportion to the size of its file, and memory of at most 64 times that size
plus 1 MiB.  For a packed file that is the size of its content, at most 200 times the file plus 16 MiB.
"""

import gzip
import json
import zlib
from io import BytesIO
from typing import Any, NoReturn

from prudent.errors import PrudentError
from prudent.models.ssp import repeated

INFLATION, SPARE = 200, 2**24
"""The content of a packed file may be this many times its size, plus this many bytes."""

KINDS = {
    dict: "an object",
    list: "a list",
    str: "a string",
    float: "a number",
    int: "a whole number",
    bool: "true or false",
}


def most_inflated(size: int) -> int:
    """Return how large the content of a packed file of this size may be."""
    return INFLATION * size + SPARE


def refuse_bomb(inflated: int, size: int, remedy: str) -> None:
    """Refuse a packed file of this size if its content, as far as it is inflated, is too large."""
    if inflated > most_inflated(size):
        raise PrudentError(
            f"inflates to more than {INFLATION} times its {size:,} bytes plus {SPARE:,}, the limit for packed models; "
            f"if it is a model, {remedy}"
        )


def gunzipped(raw: bytes, remedy: str) -> bytearray:
    """Return the content of a gzipped file, inflated up to the limit."""
    try:
        content = bytearray()
        with gzip.GzipFile(fileobj=BytesIO(raw)) as file:
            while piece := file.read(2**20):
                content += piece
                refuse_bomb(len(content), len(raw), remedy)
        return content
    except (OSError, EOFError, zlib.error) as error:
        raise PrudentError(f"cannot be read: {error}") from None


def utf8(raw: bytes | bytearray | memoryview, errors: str = "strict") -> str:
    """Return the text of a file; refuse anything else."""
    try:
        return str(raw, "utf-8", errors)
    except UnicodeDecodeError as error:
        raise PrudentError(f"not UTF-8 text: {error.reason} at byte {error.start}") from None


def document(text: str) -> Any:
    """Return the content of a JSON text; refuse a field given twice, NaN and infinities."""
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except json.JSONDecodeError as error:
        raise PrudentError(f"not valid JSON: line {error.lineno}, column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise PrudentError("is nested too deeply for a model") from None
    except PrudentError:
        raise
    except ValueError:  # what is left is Python's limit on the digits of a whole number
        raise PrudentError(
            "has a whole number with thousands of digits; a model cannot have numbers that large"
        ) from None


def checked(value: Any, kind: type, at: str, wanted: str | None = None) -> Any:
    """Return a value of this type; refuse any other, and name its place and the type it must have."""
    good = isinstance(value, kind) or (kind is float and isinstance(value, int))
    if not good or (isinstance(value, bool) and kind is not bool):
        raise PrudentError(f"{at} is {shown(value)}; it must be {wanted or KINDS[kind]}")
    if kind is float:
        try:
            return float(value)
        except OverflowError:
            raise PrudentError(f"{at} is too large for a floating-point number") from None
    return value


def shown(value: Any) -> str:
    """Return a value as a message shows it: short, and in characters that any terminal can print."""
    return KINDS[type(value)] if isinstance(value, dict | list) else json.dumps(value)[:60]


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise PrudentError(f"an object has the field {repeated([name for name, _ in pairs])[0]!r} twice")
    return found


def _constant(text: str) -> NoReturn:
    raise PrudentError(f"{text} is not allowed; numbers must be finite")
