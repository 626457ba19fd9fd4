"""The archive that a UMB file is: a tar file, plain or packed with gzip or xz, as members by name.

Python's own reader of tar files takes a damaged header for the end and expands sparse members to any size.  Since a UMB
file may leave members out, lost ones would go unnoticed.  Here every block must be accounted for.
"""

import gzip
import io
import tarfile
import zlib
from collections.abc import Mapping
from typing import Any

from prudent.errors import PrudentError, printable
from prudent.io.untrusted import most_inflated, refuse_bomb

BLOCK = 512
"""The bytes of a block; in a tar file each member has a header block, then blocks of content."""

LONGEST = 100
"""How many characters of a member's name a message shows."""

WANTED = "UMB files are tar files, plain, gzipped or packed with xz"


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
        shown, at = printable(name, LONGEST), at + BLOCK
        if not 0 <= size <= len(content) - at:
            raise PrudentError(f"{shown}: its header declares {size} bytes, but only {len(content) - at:,} are left")
        if header.type in (tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME):
            extended = _extended(bytes(view[at : at + size]), header.type)
        elif header.type in tarfile.REGULAR_TYPES and header.type != tarfile.GNUTYPE_SPARSE:
            name, extended = _safe(name), {}
            if name in found:
                raise PrudentError(f"{shown}: appears twice")
            found[name] = view[at : at + size]
        elif header.type == tarfile.DIRTYPE:
            extended = {}
        elif header.type != tarfile.XGLTYPE:
            raise PrudentError(f"{shown}: is neither a plain file nor a folder (tar type {header.type!r})")
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


def _safe(name: str) -> str:
    """Return the name of a member; refuse one that would lead out of a folder."""
    plain = name.removeprefix("./")
    if "\0" in plain or "\\" in plain or any(part in ("", ".", "..") for part in plain.split("/")):
        raise PrudentError(f"{printable(name, LONGEST)!r}: is not the name of a member; {WANTED}")
    return plain


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
