"""Limits on inflating packed files, which are not trusted."""

import gzip
import zlib
from io import BytesIO

from prudent.errors import PrudentError

__all__ = ["gunzipped", "most_inflated", "refuse_bomb"]

INFLATION, SPARE = 200, 2**24
"""The content of a packed file may be this many times its size, plus this many bytes."""


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
