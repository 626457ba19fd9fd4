"""The archive that a UMB file is, a tar file, plain or packed with gzip or xz; and its members as arrays.

Python's own reader of tar files takes a damaged header for the end and expands sparse members to any size.  Since a UMB
file may leave members out, lost ones would go unnoticed.  Here every block must be accounted for.

Each member is checked against the index before its array is made.  No array is larger than a small multiple of some
member, whatever sizes the index declares.
"""

import gzip
import io
import tarfile
import zlib
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.errors import PrudentError, naming, printable
from prudent.io.untrusted import checked, document, most_inflated, refuse_bomb, shown, utf8
from prudent.models.rows import FloatArray, IntArray, offsets

BLOCK = 512
"""The bytes of a block; in a tar file each member has a header block, then blocks of content."""

LONGEST = 100
"""How many characters of a member's name a message shows."""

WANTED = "UMB files are tar files, plain, gzipped or packed with xz"

SIZES = {"bool": 1, "int": 64, "uint": 64, "double": 64, "rational": 128, "string": 64}

NUMBERS = ("double", "rational", "int", "uint")
"""The types of UMB, each with its size in bits unless another is given, and those of numbers."""

INTERVAL = "-interval"
"""What ends the name of a type whose entries are two numbers of another."""

BITS = 2**16
"""The most bits of a fraction."""


def unpacked(raw: bytes) -> dict[str, memoryview]:
    """Return the members of an archive by name, each without a copy; refuse damaged or odd archives."""
    content = _inflated(raw)
    found: dict[str, memoryview] = {}
    view, at, extended = memoryview(content), 0, dict[str, str]()
    while any(block := content[at : at + BLOCK]):
        try:
            header = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
            name, size = extended.get("path", header.name), int(extended.get("size", header.size))
        except (tarfile.HeaderError, ValueError):
            raise PrudentError(f"is not a tar file, or is damaged at byte {at:,}; {WANTED}") from None
        called, at = printable(name, LONGEST), at + BLOCK
        if not 0 <= size <= len(content) - at:
            raise PrudentError(f"{called}: its header declares {size} bytes, but only {len(content) - at:,} are left")
        if header.type in (tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME):
            extended = _extended(bytes(view[at : at + size]), header.type)
        elif header.type in tarfile.REGULAR_TYPES and header.type != tarfile.GNUTYPE_SPARSE:
            plain = name.removeprefix("./")
            if "\0" in plain or "\\" in plain or any(part in ("", ".", "..") for part in plain.split("/")):
                raise PrudentError(f"{called!r}: is not the name of a member; {WANTED}")
            if plain in found:
                raise PrudentError(f"{called}: appears twice")
            found[plain], extended = view[at : at + size], {}
        elif header.type == tarfile.DIRTYPE:
            extended = {}
        elif header.type != tarfile.XGLTYPE:
            raise PrudentError(f"{called}: is neither a plain file nor a folder (tar type {header.type!r})")
        at += -(-size // BLOCK) * BLOCK
    if len(block) < BLOCK:
        raise PrudentError(f"is cut short, or is not a tar file; {WANTED}")
    if content[at:].strip(b"\0"):  # a header that was wiped out looks like the end
        raise PrudentError(f"has data after its end, or is damaged at byte {at:,}; {WANTED}")
    return found


def packed(members: Mapping[str, bytes]) -> bytes:
    """Return the archive of these members: gzipped, the same for the same members at any time."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in members.items():
            about = tarfile.TarInfo(name)
            about.size = len(content)
            archive.addfile(about, io.BytesIO(content))
    plain = buffer.getvalue()
    small = gzip.compress(plain, compresslevel=1, mtime=0)
    return small if len(plain) <= most_inflated(len(small)) else plain  # so that it can be read again


def _inflated(raw: bytes) -> bytes:
    """Return the tar file, inflated in one go if it is packed, up to the limit."""
    machine: Any
    damage: type[Exception] = zlib.error
    if raw.startswith(b"\x1f\x8b"):
        machine = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)  # that is gzip, its checksum included
    elif raw.startswith(b"\xfd7zXZ\0"):
        import lzma  # which some builds of Python lack

        damage = lzma.LZMAError
        machine = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=2**27)  # its strongest preset needs half of that
    else:
        return raw
    try:
        content: bytes = machine.decompress(raw, most_inflated(len(raw)) + 1)
    except damage as error:
        raise PrudentError(f"cannot be unpacked: {error}") from None
    refuse_bomb(len(content), len(raw), "unpack it first and give the tar file, as .umb")
    if not machine.eof or machine.unused_data.strip(b"\0"):
        raise PrudentError(f"cannot be unpacked: it {'has data after its end' if machine.eof else 'is cut short'}")
    return content


def _extended(content: bytes, kind: bytes) -> dict[str, str]:
    """Return what an extended header sets for the next one: a long name, or fields, each with its length in front."""
    if kind == tarfile.GNUTYPE_LONGNAME:
        return {"path": content.rstrip(b"\0").decode("utf-8", "surrogateescape")}
    fields, at = {}, 0
    while at < len(content):
        digits = content[at : at + 20].partition(b" ")[0]
        last = at + int(digits) if digits.isdigit() else at
        key, equals, value = content[at + len(digits) + 1 : last - 1].partition(b"=")
        if not (equals and content[last - 1 : last] == b"\n") or key.startswith(b"GNU.sparse"):
            raise PrudentError(f"has an extended header that cannot be read; {WANTED}")
        fields[key.decode("utf-8", "replace")] = value.decode("utf-8", "surrogateescape")
        at = last
    return fields


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

    def numbers(self, name: str, n: int, kind: Any, at: str, *, intervals: bool = False) -> FloatArray | None:
        """Return n numbers of a type that the index gives, as the nearest doubles; None where they are left out.

        If they may be intervals and are, there are two numbers for each: its lower end, then its upper end.
        """
        full = checked(checked(kind, dict, at).get("type"), str, f"{at}.type")
        given, ends = (full.removesuffix(INTERVAL), 2) if intervals and full.endswith(INTERVAL) else (full, 1)
        if given not in NUMBERS:
            hint = ": only probabilities may be intervals" if full.endswith(INTERVAL) else ""
            raise PrudentError(f"{at}.type is {shown(full)}; it must be {' or '.join(NUMBERS)}{hint}")
        size, odd = divmod(checked(kind.get("size", ends * SIZES[given]), int, f"{at}.size"), ends)
        if odd:
            raise PrudentError(f"{at}.size is {shown(kind['size'])}; an interval has two ends of equal size")
        if size != SIZES[given] and (given != "rational" or size <= 0 or size % 128 or size > BITS):
            wanted = str(SIZES[given]) if given != "rational" else f"a multiple of 128, up to {BITS:,}"
            raise PrudentError(f"{at}.size is {shown(size)}; it must be {wanted}, for {given} numbers")
        plain = self._plain(name, ends * n * (size // 64), {"double": "<f8", "int": "<i8"}.get(given, "<u8"))
        if plain is None or given != "rational":
            return None if plain is None else plain.astype(np.float64)
        value, half, raw = np.empty(ends * n), size // 16, plain.tobytes()  # a signed numerator, then a denominator
        for i, at_byte in enumerate(range(0, len(raw), 2 * half)):
            above, below = raw[at_byte : at_byte + half], raw[at_byte + half : at_byte + 2 * half]
            try:
                value[i] = int.from_bytes(above, "little", signed=True) / int.from_bytes(below, "little")
            except ZeroDivisionError:
                raise PrudentError(f"{name}: entry {i:,} has the denominator 0") from None
            except OverflowError:
                raise PrudentError(f"{name}: entry {i:,} is too large for a floating-point number") from None
        return value

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
        name = wanted or (next(iter(known)) if default not in known and len(known) == 1 else default)
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


def bit_array(value: NDArray[np.bool_]) -> bytes:
    """Return truth values as a member holds them."""
    return np.packbits(value, bitorder="little").tobytes().ljust(-(-len(value) // 64) * 8, b"\0")


def string_arrays(folder: str, strings: list[str], what: str) -> dict[str, bytes]:
    """Return strings as the members of a folder; refuse what is not Unicode text."""
    try:
        raw = [text.encode() for text in strings]
    except UnicodeEncodeError as error:
        raise PrudentError(f"{what} {error.object!r} is not Unicode text, as names in UMB files are") from None
    start = offsets(list(map(len, raw)))
    return {f"{folder}/string-mapping.bin": start.astype("<u8").tobytes(), f"{folder}/strings.bin": b"".join(raw)}
