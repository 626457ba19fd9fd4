"""Values for the constants that a PRISM or JANI file leaves open."""

import re
import sys
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import Any

from prudent.errors import PrudentError

__all__ = ["define"]

DIGITS = 400
"""How many digits a value may have before or after its point; floating-point numbers have fewer."""

NUMBER = re.compile(r"[+-]?([0-9]+/[0-9]+|([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?)")
"""A number as text, as the file would have it, or a fraction."""


def define(
    stormpy: Any, described: Any, properties: Sequence[Any], constants: Mapping[str, Any], place: str
) -> tuple[Any, Sequence[Any]]:
    """Return a model and its properties with values for all constants; refuse missing and superfluous ones."""
    if not isinstance(constants, Mapping):
        raise PrudentError(f"{place}: constants is {constants!r}; it must be {{name: value}}")
    known = {each.name: each for each in described.constants}
    undefined = [name for name, each in known.items() if not each.defined]
    for name in constants:
        if name not in known:
            left = f"leaves open {', '.join(undefined)}" if undefined else "leaves none open"
            raise PrudentError(f"{place}: constant {name} is given, but there is none of that name; the file {left}")
        if name not in undefined:
            raise PrudentError(
                f"{place}: constant {name} is given, but the file says {known[name].definition}; leave it out"
            )
    missing = [name for name in undefined if name not in constants]
    if missing:
        shown = ", ".join(f'"{name}": ...' for name in missing)
        options = " ".join(f"--const {name}=..." for name in missing)
        raise PrudentError(f"{place}: leaves {', '.join(missing)} open; give constants={{{shown}}} ({options})")
    if not constants:
        return described, properties
    values = {name: _value(stormpy, known[name].type, name, value, place) for name, value in constants.items()}
    defined, instantiated = stormpy.instantiate_constants(described, values, list(properties))
    return defined, instantiated


def _value(stormpy: Any, kind: Any, name: str, value: Any, place: str) -> Any:
    """Return a value, a number from Python or text from a command, as the constant's type requires."""
    at = f"{place}: constant {name} is {_shown(value)}; it must be"
    if kind.is_boolean:
        text = str(value).lower()
        if text not in ("true", "false"):
            raise PrudentError(f"{at} true or false")
        return text == "true"
    try:
        number = _fraction(value)
    except (ValueError, OverflowError, ZeroDivisionError, InvalidOperation):
        raise PrudentError(f"{at} a number") from None
    if not kind.is_integer:
        low, high = sys.float_info.min, sys.float_info.max  # where doubles are exact to their last digit
        long = max(abs(number.numerator), number.denominator) >= 10**DIGITS
        if long or not (number == 0 or low <= abs(number) <= high):
            raise PrudentError(f"{at} a number of {DIGITS} digits at most, 0 or of a size from {low:.1e} to {high:.1e}")
        return stormpy.Rational(str(number))
    if number.denominator != 1:
        raise PrudentError(f"{at} a whole number")
    if not -(2**63) <= number < 2**63:
        raise PrudentError(f"{at} a whole number from -2^63 to 2^63 - 1, which is as far as Storm counts")
    return int(number)


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except ValueError:  # Python's limit on the digits of a whole number
        return "a number of thousands of digits"
    return text if len(text) <= 60 else f"{text[:60]}..."


def _fraction(value: Any) -> Fraction:
    if isinstance(value, str):
        text = value.strip()
        if not NUMBER.fullmatch(text):  # Python would take 1_0 for 10
            raise ValueError
        if "/" not in text and abs(Decimal(text).adjusted()) > DIGITS:  # which would take forever
            raise ValueError
        return Fraction(text)
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ValueError
    if isinstance(value, Integral | Rational):
        return Fraction(value)
    return Fraction(repr(float(value)))  # 0.1 means a tenth, as it does in the file
