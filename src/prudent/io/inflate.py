"""Limits on inflating packed files, which may come from anybody."""

from prudent.errors import PrudentError

__all__ = ["most_inflated", "refuse_bomb"]

INFLATION, SPARE = 200, 2**24
"""The content of a packed file may be this many times its size, plus this many bytes."""


def most_inflated(size: int) -> int:
    """Return how large the content of a packed file of this size may be."""
    return INFLATION * size + SPARE


def refuse_bomb(inflated: int, size: int, remedy: str) -> None:
    """Refuse a packed file of this size if its content, as far as it is inflated, is too large."""
    if inflated > most_inflated(size):
        raise PrudentError(
            f"inflates to more than {INFLATION} times its {size:,} bytes and {SPARE:,} on top, as models "
            f"do not; if it is one, {remedy}"
        )
