"""Files in and out, by suffix."""

from os import PathLike
from pathlib import Path

from prudent.errors import PrudentError
from prudent.files import json_model
from prudent.model import SSP

__all__ = ["load", "save"]

MODEL_FORMATS = {".json": json_model, ".json.gz": json_model}


def load(path: str | PathLike[str]) -> SSP:
    """Read a model from a file: ``.json`` or ``.json.gz``.

    Examples
    --------
    >>> import prudent, tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "model.json"
    ...     prudent.save(prudent.domains.figure_2(), path)
    ...     prudent.load(path)
    <SSP model: 4 states, 5 actions, 8 outcomes>
    """
    model: SSP = MODEL_FORMATS[_suffix(path)].read(Path(path))
    return model


def save(model: SSP, path: str | PathLike[str]) -> None:
    """Write a model to a file: ``.json`` or ``.json.gz``."""
    if not isinstance(model, SSP):
        raise PrudentError(f"cannot save a {type(model).__name__}; save takes a model")
    MODEL_FORMATS[_suffix(path)].write(model, Path(path))


def _suffix(path: str | PathLike[str]) -> str:
    name = Path(path).name.lower()
    for suffix in MODEL_FORMATS:
        if name.endswith(suffix):
            return suffix
    raise PrudentError(f"{path}: unknown kind of file; models are read and written as {', '.join(MODEL_FORMATS)}")
