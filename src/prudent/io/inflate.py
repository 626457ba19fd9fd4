"""Packed files from anybody, inflated no further than models need."""

from prudent.errors import PrudentError

__all__ = ["most_inflated", "refuse_bomb"]

INFLATION, SPARE = 200, 2**24
"""A packed file may be so many times smaller than its content, and so many bytes on top."""


def most_inflated(size: int) -> int:
    """Return how large the content of a packed file of this size may be."""
    return INFLATION * size + SPARE


def refuse_bomb(inflated: int, size: int, remedy: str) -> None:
    """Refuse a packed file of this size whose content is, or goes on being, so large."""
    if inflated > most_inflated(size):
        raise PrudentError(
            f"inflates to more than {INFLATION} times its {size:,} bytes and {SPARE:,} on top, as models "
            f"do not; if it is one, {remedy}"
        )
