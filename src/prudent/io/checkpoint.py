"""The checkpoint of a long solve: one sealed file, written whole or not at all.

It names its solve (model, alpha, method, step); another solve refuses the file and never overwrites it.  It holds the
state of the current sweep and the results of the finished sweeps of the solve.  A solve with another number of ranks
may resume from it, and prints a note.
"""

import tempfile
import time
from os import PathLike
from pathlib import Path
from typing import Any

from prudent.errors import Defect, PrudentError
from prudent.io.sealed import seal, unseal
from prudent.runtime.atomic_files import read_bytes, refusing, write_bytes
from prudent.runtime.limits import Arrays
from prudent.runtime.progress import announce

KIND, VERSION = "prudent-checkpoint", 1
DAMAGED = "is damaged or is not a checkpoint; delete it to start again, or name another file"

EVERY = 20.0
"""The least seconds between two saves; saving takes no more than about a tenth of the time."""


class Checkpoint:
    """Keeps the progress of a solve in a file; see :class:`prudent.runtime.limits.Keeper`."""

    def __init__(self, path: str | PathLike[str], solve: dict[str, Any], ranks: int = 1) -> None:
        if not isinstance(path, str | PathLike) or "\0" in str(path):
            raise PrudentError(f"checkpoint is {path!r}; it must be the path of a file")
        self.path = Path(path)
        self._solve, self._ranks = {"version": VERSION, **solve}, ranks
        self._next = time.monotonic() + EVERY
        self._sweeps: dict[str, Arrays] = {}
        self._finished: list[str] = []
        self._resumed = False
        if not self.path.parent.is_dir():
            raise PrudentError(f"{path}: there is no folder {self.path.parent}")
        if self.path.exists():
            self._read()
        with refusing(path, "cannot be written"), tempfile.TemporaryFile(dir=self.path.parent):
            pass  # fail now rather than after an hour

    def _read(self) -> None:
        found = unseal(KIND, read_bytes(self.path))
        if found is None:
            raise PrudentError(f"{self.path}: {DAMAGED}")
        content, tensors = found
        keys, finished, ranks = content.pop("sweeps", None), content.pop("finished", None), content.pop("ranks", 1)
        names = [*keys, *finished] if isinstance(keys, list) and isinstance(finished, list) else [0]
        if content != self._solve or not all(isinstance(name, str) for name in names):
            raise PrudentError(
                f"{self.path}: belongs to another solve; give the same model and options, or name another file"
            )
        if ranks != self._ranks:
            announce(f"{self.path} was saved by {ranks} ranks; {self._ranks} resume from it")
        self._sweeps, self._finished = {key: {} for key in keys}, finished
        for name, tensor in tensors.items():
            number, _, part = name.partition(".")
            if not number.isascii() or not number.isdigit() or len(number) > 9 or int(number) >= len(keys):
                raise PrudentError(f"{self.path}: {DAMAGED}")
            self._sweeps[keys[int(number)]][part] = tensor

    def load(self, key: str) -> Arrays | None:
        """Return what was saved of a sweep, or None."""
        kept = self._sweeps.get(key)
        self._resumed |= kept is not None
        return kept

    def save(self, key: str, content: Arrays, *, final: bool = False) -> None:
        """Save the state of a sweep, or its result if ``final``, beside the results of finished sweeps."""
        began = time.monotonic()
        finished = {name: kept for name, kept in self._sweeps.items() if name in self._finished}
        self._sweeps = {**finished, key: content}
        tensors = {f"{i}.{part}": array for i, kept in enumerate(self._sweeps.values()) for part, array in kept.items()}
        if final:
            self._finished.append(key)
        about = {"sweeps": list(self._sweeps), "finished": self._finished, "ranks": self._ranks}
        write_bytes(self.path, seal(KIND, {**self._solve, **about}, tensors))
        if not final:
            self._sweeps = finished  # the arrays of the current sweep keep changing
        self._next = time.monotonic() + max(EVERY, 10 * (time.monotonic() - began))

    def due(self) -> bool:
        """Return whether it is time to save again."""
        return time.monotonic() >= self._next

    def blame(self, defect: Defect) -> Exception:
        """Return what to raise after a defect: if the solve was resumed from the file, the file may be forged."""
        return PrudentError(f"{self.path}: {DAMAGED} ({defect.args[0]})") if self._resumed else defect

    def close(self) -> None:
        """Remove the file: the solve is finished."""
        self.path.unlink(missing_ok=True)
