"""Files in and out, by suffix."""

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from prudent.errors import PrudentError
from prudent.files import json_model, umb
from prudent.files.atomic import check_place
from prudent.model import SSP

if TYPE_CHECKING:
    from prudent.plan import Plan

# What plans need is imported with the first of them: a model alone is read without numba and SciPy.

__all__ = ["MODEL_FORMATS", "load", "load_plan", "save"]

MODEL_FORMATS = {".json": json_model, ".json.gz": json_model, ".umb": umb}
PLAN_SUFFIX = ".safetensors"


def load(path: str | PathLike[str], *, property: str | None = None) -> SSP:
    """Read a model from a file: ``.json``, ``.json.gz`` or ``.umb``.

    Parameters
    ----------
    path : path
        Its suffix says which kind of file it is.
    property : str, optional
        Which costs and which goals are meant, ``R{"time"}min=? [F "done"]``: of a ``.umb`` file, which may have
        several.  Without it the goals are labelled "goal", and the costs are the reward "cost" or the only one.

    Examples
    --------
    >>> import prudent, tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "model.json"
    ...     prudent.save(prudent.domains.figure_2(), path)
    ...     prudent.load(path)
    <SSP model: 4 states, 5 actions, 8 outcomes>
    """
    suffix = _suffix(path)
    if property is None:
        model: SSP = MODEL_FORMATS[suffix].read(Path(path))
        return model
    if suffix != ".umb":
        raise PrudentError(f"{path}: a {suffix} file itself says what its costs and goals are; leave property= out")
    return umb.read(Path(path), property)


def save(content: "SSP | Plan", path: str | PathLike[str]) -> None:
    """Write a model (``.json``, ``.json.gz``, ``.umb``) or a plan (``.safetensors``) to a file, whole or not at all.

    Examples
    --------
    >>> import prudent, tempfile, pathlib
    >>> plan = prudent.solve(prudent.domains.figure_2(), alpha=0.1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "plan.safetensors"
    ...     prudent.save(plan, path)
    ...     prudent.load_plan(path, plan.model).policy("s1")
    'd'
    """
    if isinstance(content, SSP):
        MODEL_FORMATS[_suffix(path)].write(content, Path(path))
        return
    from prudent.files import plan_file
    from prudent.plan import Plan

    if isinstance(content, Plan):
        check_plan_path(path)
        plan_file.write(content, Path(path))
    else:
        raise PrudentError(f"cannot save a {type(content).__name__}; save takes a model or a plan")


def load_plan(path: str | PathLike[str], model: SSP) -> "Plan":
    """Read a plan that was made for this model; see :func:`prudent.save`."""
    from prudent.files import plan_file

    if not isinstance(model, SSP):
        raise PrudentError(f"model is a {type(model).__name__}; load_plan takes the path, then the model")
    check_plan_path(path)
    return plan_file.read(Path(path), model)


def check_plan_path(path: str | PathLike[str]) -> None:
    """Refuse a path that is not a plan's, before anything is computed for it."""
    check_place(path, PLAN_SUFFIX, "plans are read and written")


def _suffix(path: str | PathLike[str]) -> str:
    if not isinstance(path, str | PathLike):
        raise PrudentError(f"path is {path!r}; it must be the path of a file")
    name = Path(path).name.lower()
    for suffix in MODEL_FORMATS:
        if name.endswith(suffix):
            return suffix
    raise PrudentError(f"{path}: unknown kind of file; models are read and written as {', '.join(MODEL_FORMATS)}")
