"""Files that are written completely or not at all, and read only if they are plain files.

A process killed while it writes leaves the old file or the new one, never a part, and perhaps a temporary file
``.NAME.XXXXXXXX.tmp`` beside it.  No reader accepts that suffix, and later writes ignore the file; it may be deleted.
"""

import contextlib
import os
import stat
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from uuid import uuid4

from prudent.errors import PrudentError


def check_place(path: str | PathLike[str], suffix: str, what: str, *, hint: str = "") -> None:
    """Reject a path without the suffix, or in a folder that does not exist."""
    if not isinstance(path, str | PathLike) or not Path(path).name.endswith(suffix):
        raise PrudentError(f"{path}: {what} as {suffix}{hint}")
    if not Path(path).parent.is_dir():
        raise PrudentError(f"{path}: there is no folder {Path(path).parent}; create it, or give another path")


def check_plain(path: Path) -> None:
    """Reject what is not a plain file: a folder, a pipe or a device may have no end."""
    plain = None
    with refusing(path, "cannot be read"), contextlib.suppress(FileNotFoundError):
        plain = stat.S_ISREG(path.stat().st_mode)
    if plain is None:
        raise PrudentError(f"{path}: no such file")
    if not plain:
        raise PrudentError(f"{path}: cannot be read: it is not a plain file; give the path of one")


def read_bytes(path: Path, most: int = -1) -> bytes:
    """Return the content of a plain file, or its first ``most`` bytes."""
    check_plain(path)
    with refusing(path, "cannot be read"), path.open("rb") as file:
        return file.read(most)


def write_bytes(path: Path, content: bytes) -> None:
    """Write to a temporary file beside the target, flush it to the disk, then rename it over the target."""
    with refusing(path, "cannot be written"):
        # Not the whole name, which may be near the longest allowed.
        temporary = path.with_name(f".{path.name[:50]}.{uuid4().hex[:8]}.tmp")
        try:
            with temporary.open("xb") as file:
                if path.exists():  # at once: whoever may not read the old content may not read the new one
                    os.chmod(temporary, path.stat().st_mode & 0o777)
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)  # if it was not renamed
        _flush_folder(path.parent)


def append_bytes(path: Path, content: bytes) -> None:
    """Append to a file and flush it to the disk; a process killed meanwhile may leave a part of the data."""
    with refusing(path, "cannot be written"), path.open("ab") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


@contextlib.contextmanager
def refusing(path: str | PathLike[str], what: str) -> Iterator[None]:
    """Turn errors of the file system into a message that names the path, the failed operation, and the reason."""
    try:
        yield
    except PrudentError:
        raise
    except OSError as error:
        raise PrudentError(f"{path}: {what}: {error.strerror or error}") from None
    except ValueError as error:  # the path holds a zero byte
        raise PrudentError(f"{str(path)!r}: {what}: {error}") from None


def _flush_folder(folder: Path) -> None:
    """Flush the rename itself to the disk, if the system can: then the new name also survives a power cut."""
    if os.name != "posix":
        return
    with contextlib.suppress(OSError):  # some file systems cannot flush folders; the file is complete anyway
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
