"""Values for the undefined constants of a PRISM or JANI file, as far as the property depends on them."""

import json
import re
import sys
import tempfile
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from numbers import Rational
from pathlib import Path
from typing import Any

from prudent.errors import PrudentError, needed
from prudent.io.properties import left_undefined
from prudent.runtime.atomic_files import read_bytes

DIGITS = 400
"""How many digits a value may have before or after its point; floating-point numbers have fewer."""

NUMBER = re.compile(r"[+-]?([0-9]+/[0-9]+|([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?)")
"""A number as text, as the file would have it, or a fraction."""

NO_USES = ("name", "ref", "action", "location", "initial-locations", "system", "comment")
"""Fields of JANI that hold names and texts, but no expressions."""

WORD = re.compile(r"[^\W\d]\w*")
"""A name in an expression."""


def define(described: Any, asked: Any, reward: str | None, constants: Mapping[str, Any], path: Path) -> tuple[Any, Any]:
    """Return a model and a property of it with values for all constants; refuse missing and superfluous ones.

    Constants on which neither the model's behaviour nor the property nor its reward depends may be left out; Storm
    still requires a value for each, and any value is enough.
    """
    known = {each.name: each for each in described.constants}
    undefined = [name for name, each in known.items() if not each.defined]
    for name in constants:
        if name not in known:
            left = f"leaves {', '.join(undefined)} undefined" if undefined else "has no undefined constants"
            raise PrudentError(f"constants has {name}, but there is no such constant; the file {left}")
        if name not in undefined:
            raise PrudentError(
                f"constants has {name}, but the file defines it as {known[name].definition}; leave it out"
            )
    if not undefined:
        return described, asked
    missing = [name for name in undefined if name not in constants]
    used = _used_names(described, path, asked, reward) if missing else set()
    if missing := [name for name in missing if name in used]:
        raise left_undefined("the file", missing)
    kinds = {name: str(known[name].type) for name in undefined}
    chosen = {name: "true" if kind == "bool" else 1 for name, kind in kinds.items()} | dict(constants)
    values = {name: value_of(kinds[name], name, value) for name, value in chosen.items()}
    defined, instantiated = needed("stormpy", "storm").instantiate_constants(described, values, [asked])
    return defined, instantiated[0]


def _used_names(described: Any, path: Path, asked: Any, reward: str | None) -> set[str]:
    """Return the names that a model's behaviour, a property and a reward structure depend on, by the model in JANI."""
    if hasattr(described, "global_variables"):
        document = json.loads(read_bytes(path))
    else:
        described, (asked,) = described.to_jani([asked])
        with tempfile.TemporaryDirectory(prefix="prudent-") as folder:
            needed("stormpy.io", "storm").export_jani_to_file(f"{folder}/model.jani", described, compact=True)
            document = json.loads(read_bytes(Path(folder) / "model.jani"))
    variables = [each for part in (document, *document["automata"]) for each in part.get("variables", ())]
    transient = {each["name"] for each in variables if each.get("transient")}
    used: dict[str, set[str]] = {}  # the names in each constant and function, and in what transient variables become

    def walk(node: Any, into: set[str]) -> None:
        if isinstance(node, str):
            into.update(WORD.findall(node))
        elif isinstance(node, list):
            for each in node:
                walk(each, into)
        elif isinstance(node, dict):
            set_here = node.get("name" if node.get("transient") else "ref")
            if isinstance(set_here, str) and set_here in transient:
                into = used.setdefault(set_here, set())
            for name, each in node.items():
                if name not in NO_USES:
                    walk(each, into)

    for part in (*document.pop("constants", ()), *document.pop("functions", ())):
        walk(part, used.setdefault(part["name"], set()))
    document.pop("properties", None)
    called = "default_reward_model" if reward == "" else reward  # in JANI
    new = set[str]() if called is None else {called, f"rewardmodel_{called}"}
    walk([document, str(asked.get_raw_formula())], new)
    found = set[str]()
    while new:
        found |= new
        new = set[str]().union(*(used.get(name, ()) for name in new)) - found
    return found


def value_of(kind: str, name: str, value: Any) -> Any:
    """Return a value, a number from Python or text from a command, as the constant's type requires."""
    try:
        shown = repr(value)
    except ValueError:  # Python's limit on the digits of a whole number
        shown = "a number of thousands of digits"
    at = f"constant {name} is {shown if len(shown) <= 60 else f'{shown[:60]}...'}; it must be"
    if kind == "bool":
        text = str(value).lower()
        if text not in ("true", "false"):
            raise PrudentError(f"{at} true or false")
        return text == "true"
    try:
        given = value if isinstance(value, Rational) else str(value).strip()  # 0.1 means a tenth, as in the file
        if isinstance(given, str | bool) and not NUMBER.fullmatch(str(given)):  # Python would take 1_0 for 10
            raise ValueError
        if isinstance(given, str) and "/" not in given and abs(Decimal(given).adjusted()) > DIGITS:
            raise ValueError  # it would take forever
        number = Fraction(given)
    except (ValueError, ZeroDivisionError, InvalidOperation):
        raise PrudentError(f"{at} a number") from None
    if kind != "int":
        low, high = sys.float_info.min, sys.float_info.max  # where doubles are exact to their last digit
        long = max(abs(number.numerator), number.denominator) >= 10**DIGITS
        if long or not (number == 0 or low <= abs(number) <= high):
            raise PrudentError(f"{at} a number of {DIGITS} digits at most, 0 or of a size from {low:.1e} to {high:.1e}")
        return needed("stormpy", "storm").Rational(str(number))
    if number.denominator != 1:
        raise PrudentError(f"{at} a whole number")
    if not -(2**63) <= number < 2**63:
        raise PrudentError(f"{at} a whole number from -2^63 to 2^63 - 1, the range of Storm")
    return int(number)
