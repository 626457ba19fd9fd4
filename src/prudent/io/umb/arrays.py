"""The members of a UMB archive as arrays; each is checked against the index before the array is made.

No array is larger than a small multiple of some member, whatever sizes the index declares.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.errors import PrudentError, naming, printable
from prudent.io.untrusted import checked, document, shown, utf8
from prudent.models.rows import FloatArray, IntArray, offsets

SIZES = {"bool": 1, "int": 64, "uint": 64, "double": 64, "rational": 128, "string": 64}
NUMBERS = ("double", "rational", "int", "uint")
"""The types of UMB, each with its size in bits unless another is given, and those of numbers."""

INTERVAL = "-interval"
"""What ends the name of a type whose entries are two numbers of another."""

BITS = 2**16
"""The most bits of a fraction."""

EXACT = 2**53
"""Whole numbers up to this are exact as doubles, so the quotient of two of them is rounded only once."""


class Arrays:
    """The members of an archive, by what they mean."""

    def __init__(self, members: Mapping[str, memoryview]) -> None:
        self.members = members
        if "index.json" not in members:
            raise PrudentError("has no index.json; is it a UMB file?")
        with naming("index.json"):
            self.index = checked(document(utf8(members["index.json"])), dict, "the document")

    def count(self, section: Mapping[str, Any], name: str) -> int:
        """Return a number of things that the index declares."""
        value = checked(section.get(name), int, f"index.json: {name}")
        if not 0 <= value < 2**63:
            raise PrudentError(f"index.json: {name} is {shown(value)}; it must be at least 0, and below 2^63")
        return int(value)

    def starts(self, name: str, n: int, last: int) -> IntArray:
        """Return where each of n rows starts, and the end; one entry in each row if the member is left out."""
        start = self._plain(name, n + 1, "<u8")
        if start is None:
            if n != last:
                raise PrudentError(
                    f"{name} is missing, so each of {n:,} rows has one entry; but there are {last:,} entries"
                )
            return np.arange(n + 1)
        if start[0] != 0 or start[-1] != last or (start[1:] < start[:-1]).any():
            raise PrudentError(f"{name}: must start with 0, never decrease, and end with {last:,}")
        return start.astype(np.int64)

    def numbers_below(self, name: str, n: int, most: int, dtype: str = "<u8") -> IntArray:
        """Return n whole numbers from 0 to below a limit; all 0 where the member is left out."""
        value = self._plain(name, n, dtype)
        if value is None:
            value = np.zeros(n, dtype=dtype)
        if n and int(value.max()) >= most:
            at = int(value.argmax())
            raise PrudentError(f"{name}: entry {at:,} is {value[at]}; it must be below {most:,}")
        return value.astype(np.int64)

    def bits(self, name: str, n: int) -> NDArray[np.bool_]:
        """Return n truth values; all false where the member is left out."""
        words = self._plain(name, -(-n // 64), "<u8")
        if words is None:
            return np.zeros(n, dtype=bool)
        every = np.unpackbits(words.view(np.uint8), bitorder="little").view(bool)
        if every[n:].any():
            raise PrudentError(f"{name}: has bits set after the first {n:,}")
        return every[:n]

    def numbers(self, name: str, n: int, kind: Any, at: str) -> FloatArray | None:
        """Return n numbers of a type that the index gives, as the nearest doubles; None where they are left out."""
        given = checked(checked(kind, dict, at).get("type"), str, f"{at}.type")
        if given not in NUMBERS:
            hint = ": only probabilities may be intervals" if given.endswith(INTERVAL) else ""
            raise PrudentError(f"{at}.type is {shown(given)}; it must be {' or '.join(NUMBERS)}{hint}")
        size = checked(kind.get("size", SIZES[given]), int, f"{at}.size")
        if size != SIZES[given] and (given != "rational" or size <= 0 or size % 128 or size > BITS):
            wanted = str(SIZES[given]) if given != "rational" else f"a multiple of 128, up to {BITS:,}"
            raise PrudentError(f"{at}.size is {shown(size)}; it must be {wanted}, for {given} numbers")
        if given != "rational":
            plain = self._plain(name, n, {"double": "<f8", "int": "<i8", "uint": "<u8"}[given])
            return None if plain is None else plain.astype(np.float64)
        words = self._plain(name, n * (size // 64), "<u8")
        return None if words is None else _quotients(words.reshape(n, size // 64), name)

    def intervals(self, name: str, n: int, kind: Any, at: str) -> tuple[FloatArray, FloatArray] | None:
        """Return the lower and upper ends of n intervals; None if they are left out, or their type is of numbers."""
        given = checked(checked(kind, dict, at).get("type"), str, f"{at}.type")
        if given.removesuffix(INTERVAL) not in NUMBERS or given in NUMBERS:
            return None
        ends = {"type": given.removesuffix(INTERVAL)}
        if "size" in kind:
            size = checked(kind["size"], int, f"{at}.size")
            if size % 2:
                raise PrudentError(f"{at}.size is {shown(size)}; an interval has two ends of equal size")
            ends["size"] = size // 2
        found = self.numbers(name, 2 * n, ends, at)
        return None if found is None else (found[::2].copy(), found[1::2].copy())

    def strings(self, folder: str, n: int) -> list[str] | None:
        """Return the n strings of a folder; None where they are left out."""
        mapping, member = f"{folder}/string-mapping.bin", f"{folder}/strings.bin"
        if mapping not in self.members and member not in self.members:
            return None
        if mapping not in self.members or member not in self.members:
            raise PrudentError(f"{folder}: must have both string-mapping.bin and strings.bin, or none of them")
        raw = bytes(self.members[member])
        start = self.starts(mapping, n, len(raw)).tolist()
        try:
            if raw.isascii():
                text = raw.decode()
                return [text[first:last] for first, last in pairwise(start)]
            return [raw[first:last].decode() for first, last in pairwise(start)]
        except UnicodeDecodeError as error:
            raise PrudentError(f"{member}: holds a string that is not UTF-8 text: {error.reason}") from None

    def annotation(self, group: str, wanted: str | None, default: str) -> tuple[str, dict[str, Any]]:
        """Return folder and description of the annotation of a name; without a name, of the default or the only one."""
        groups = checked(self.index.get("annotations", {}), dict, "index.json: annotations")
        at = f"index.json: annotations.{group}"
        known: dict[str, str] = {}
        for key, about in checked(groups.get(group, {}), dict, at).items():
            alias = checked(checked(about, dict, f"{at}.{printable(key, 60)}").get("alias", key), str, f"{at}: alias")
            if alias in known:
                raise PrudentError(f"{at}: two entries are called {alias!r}; names must differ")
            known[alias] = key
        name = wanted if wanted is not None or default in known or len(known) != 1 else next(iter(known))
        name = default if name is None else name
        if name not in known:
            there = ", ".join(repr(each) for each in list(known)[:20]) or "none"
            raise PrudentError(
                f'{at}: there is no {name!r}; the names are {there}: choose by property=\'R{{"..."}}min=? [F "..."]\''
            )
        return f"annotations/{group}/{known[name]}", groups[group][known[name]]

    def _plain(self, name: str, n: int, dtype: str) -> NDArray[Any] | None:
        if name not in self.members:
            return None
        member, size = self.members[name], np.dtype(dtype).itemsize
        if len(member) != n * size:
            raise PrudentError(
                f"{printable(name, 100)}: has {len(member):,} bytes; it must have {n} entries of {size} bytes"
            )
        return np.frombuffer(member, dtype=dtype)


def _quotients(words: NDArray[np.uint64], name: str) -> FloatArray:
    """Return fractions, a signed numerator and a denominator of equal size each, as the nearest doubles."""
    half = words.shape[1] // 2
    if not words[:, half:].any(axis=1).all():
        raise PrudentError(f"{name}: entry {int(words[:, half:].any(axis=1).argmin()):,} has the denominator 0")
    above, below = words[:, 0].astype(np.int64), words[:, half]
    value = above / np.maximum(below, 1)
    plain = (above >= -EXACT) & (above <= EXACT) & (below <= EXACT) & (half == 1)
    for i in np.flatnonzero(~plain).tolist():
        numerator = int.from_bytes(words[i, :half].tobytes(), "little", signed=True)
        try:
            value[i] = numerator / int.from_bytes(words[i, half:].tobytes(), "little")
        except OverflowError:
            raise PrudentError(f"{name}: entry {i:,} is too large for a floating-point number") from None
    return value


def bit_array(value: NDArray[np.bool_]) -> bytes:
    """Return truth values as a member holds them."""
    padded = np.zeros(-(-len(value) // 64) * 64, dtype=bool)
    padded[: len(value)] = value
    return np.packbits(padded, bitorder="little").tobytes()


def string_arrays(folder: str, strings: list[str], what: str) -> dict[str, bytes]:
    """Return strings as the members of a folder; refuse what is not Unicode text."""
    try:
        raw = [text.encode() for text in strings]
    except UnicodeEncodeError as error:
        raise PrudentError(f"{what} {error.object!r} is not Unicode text, as names in UMB files are") from None
    start = offsets(list(map(len, raw)))
    return {f"{folder}/string-mapping.bin": start.astype("<u8").tobytes(), f"{folder}/strings.bin": b"".join(raw)}
