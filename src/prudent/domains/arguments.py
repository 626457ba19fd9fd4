"""Checks that the domains' parameters share."""

from prudent.errors import PrudentError

__all__ = ["whole"]


def whole(name: str, value: int, least: int, most: int | None = None) -> None:
    """Refuse a parameter that is not a whole number within limits."""
    limits = f"at least {least}" if most is None else f"from {least} to {most}"
    if isinstance(value, bool) or not isinstance(value, int) or value < least or (most is not None and value > most):
        raise PrudentError(f"{name} is {value!r}; it must be a whole number, {limits}")
