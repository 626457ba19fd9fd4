"""Packed files from anybody, inflated no further than models need."""

from typing import Protocol

from prudent.errors import PrudentError

__all__ = ["INFLATION", "SPARE", "inflated"]

INFLATION, SPARE = 200, 2**24
"""A packed file may be so many times smaller than its content, and so many bytes on top."""

PIECE = 2**20
"""How many bytes are inflated at once."""


class Stream(Protocol):
    """What inflates piece by piece."""

    def read(self, size: int, /) -> bytes:
        """Return the next piece, of at most this size; none at the end."""


def inflated(stream: Stream, size: int, remedy: str) -> bytearray:
    """Return the content of a packed file of this size, or refuse to go on."""
    content = bytearray()
    while piece := stream.read(PIECE):
        content += piece
        if len(content) > INFLATION * size + SPARE:
            raise PrudentError(
                f"inflates to more than {INFLATION} times its {size:,} bytes and {SPARE:,} on top, as models "
                f"do not; if it is one, {remedy}"
            )
    return content
