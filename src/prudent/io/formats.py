"""Files in and out, by suffix."""

import gzip
from collections.abc import Callable, Mapping
from inspect import signature
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prudent.errors import PrudentError
from prudent.io import json, pddl
from prudent.io.properties import Initial
from prudent.io.storm import files as storm
from prudent.io.umb import read as umb_read
from prudent.io.umb import write as umb_write
from prudent.models.ssp import SSP, check_model
from prudent.runtime.atomic_files import check_place, read_bytes, write_bytes

if TYPE_CHECKING:
    from prudent.results.plan import Plan

# Modules that only plans need are imported with the first plan, so that models are read without numba and SciPy.

READERS: dict[str, Callable[..., SSP]] = {
    **dict.fromkeys((".json", ".json.gz"), json.parse),
    ".umb": umb_read.parse,
    **dict.fromkeys((".drn", ".drn.gz"), storm.read_explicit),
    ".pddl": pddl.model_of,
    **dict.fromkeys((".prism", ".nm", ".pm", ".jani"), storm.read),
}
"""What returns the model of a file of each suffix, from its bytes and path; Storm reads it from the path alone."""

WRITERS: dict[str, Callable[[SSP], bytes]] = {
    **dict.fromkeys((".json", ".json.gz"), json.content_of),
    ".umb": umb_write.content_of,
    **dict.fromkeys((".drn", ".drn.gz"), storm.content_of),
}
"""What returns the bytes of a file of each suffix that is written, before they are gzipped."""

NOT_TAKEN = {
    "property": "defines its own costs and goals; leave out property= (--property)",
    "initial": "defines where runs start; change that in the file, and leave out initial= (--initial)",
    "constants": "has no undefined constants; leave out constants= (--const)",
    "problem": "is a complete model; leave out problem= (--problem)",
}
"""The message if a format does not take an option."""


def load(
    path: str | PathLike[str],
    *,
    property: str | None = None,
    constants: Mapping[str, Any] | None = None,
    initial: Initial | None = None,
    problem: str | PathLike[str] | None = None,
) -> SSP:
    """Read a model from a file.

    Parameters
    ----------
    path : str or path
        The file: ``.json``, ``.json.gz`` or ``.umb``; through Storm (extra ``storm``), PRISM's language (``.prism``,
        ``.nm``, ``.pm``), ``.jani``, ``.drn`` or ``.drn.gz``; through plado (extra ``pddl``), the domain of a planning
        problem in PPDDL, ``.pddl``.  A PRISM file without a model type is read as an MDP.
    property : str, optional
        Which states are goals and which rewards are costs: ``R{"cost"}min=? [F "goal"]``; not for JSON.  With ``max``
        instead of ``min``, rewards are maximised: costs are negated rewards, and every run must reach a goal.  In files
        read through Storm, any condition on states may follow ``F``, and ``Tmin=? [F "goal"]`` counts steps.  A
        property in a JANI file may be given by its name.  ``"file.props:name"`` selects a property from a file of
        properties; ``"file.props"`` selects the only one that fits.  By default the property in a JANI file, if exactly
        one fits; otherwise the label ``"goal"``, and the reward structure ``"cost"`` or the only one.
    constants : mapping, optional
        Values for the undefined constants of a PRISM or JANI file, or of the property: ``{"N": 3}``.  Constants that
        only other properties and rewards need may be left out.
    initial : state or {state: probability}, optional
        The state where runs start; not for JSON.  By default the file's initial state.  If the file has several, one is
        drawn, all equally likely, and plans carry a note about it.
    problem : str or path, optional
        The file of the problem, if ``path`` is the domain of a planning problem.  Actions add their costs to
        ``total-cost``; without it, each action costs 1.

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
    model_of = READERS[suffix]
    given = {"property": property, "constants": constants, "initial": initial, "problem": problem}
    options = {name: value for name, value in given.items() if value is not None}
    for name in options:
        if name not in signature(model_of).parameters:
            raise PrudentError(f"{path}: a {suffix} file {NOT_TAKEN[name]}")
    content = (read_bytes(Path(path)),) if "raw" in signature(model_of).parameters else ()
    return model_of(*content, Path(path), **options)


def parse(raw: bytes, name: str) -> SSP:
    """Return the model in the bytes of a file of this name; no file is opened."""
    model_of = READERS[_suffix(name)]
    if "raw" not in signature(model_of).parameters:
        raise PrudentError(f"{name}: Storm reads such files only from the disk; give the path to prudent.load")
    return model_of(raw, Path(name))


def save(content: "SSP | Plan", path: str | PathLike[str]) -> None:
    """Write a model (``.json``, ``.umb``, ``.drn``; ``.json.gz``, ``.drn.gz``) or a plan (``.safetensors``).

    A file is written whole or not at all.  Only ``.json`` and ``.json.gz`` files keep the counts and bounds of an
    estimated model.

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
        if (suffix := _suffix(path)) not in WRITERS:
            raise PrudentError(f"{path}: models cannot be written in this format; write {', '.join(WRITERS)}")
        raw = WRITERS[suffix](content)
        write_bytes(Path(path), gzip.compress(raw, mtime=0) if str(path).lower().endswith(".gz") else raw)
        return
    from prudent.io import plan as plan_file
    from prudent.results.plan import Plan

    if not isinstance(content, Plan):
        raise PrudentError(f"content is a {type(content).__name__}; save takes a model or a plan")
    check_plan_path(path)
    write_bytes(Path(path), plan_file.content_of(content))


def load_plan(path: str | PathLike[str], model: SSP) -> "Plan":
    """Read a plan that was made for this model; see :func:`prudent.save`.

    Examples
    --------
    >>> import prudent, tempfile, pathlib
    >>> model = prudent.domains.figure_2()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "plan.safetensors"
    ...     prudent.save(prudent.solve(model, alpha=0.1), path)
    ...     prudent.load_plan(path, model).cvar
    10.0
    """
    from prudent.io import plan as plan_file

    check_model(model, "load_plan takes the path, then the model")
    check_plan_path(path)
    return plan_file.parse(read_bytes(Path(path)), Path(path), model)


def check_plan_path(path: str | PathLike[str]) -> None:
    """Refuse a path that is not a plan's, before anything is computed."""
    chain = "; a plan's Markov chain is a model: prudent.save(plan.chain(), ...)"
    hint = chain if str(path).lower().endswith(tuple(WRITERS)) else ""
    check_place(path, ".safetensors", "plans are read and written", hint=hint)


def _suffix(path: str | PathLike[str]) -> str:
    if not isinstance(path, str | PathLike):
        raise PrudentError(f"path is {path!r}; it must be the path of a file")
    name = Path(path).name.lower()
    for suffix in READERS:
        if name.endswith(suffix):
            return suffix
    raise PrudentError(f"{path}: unknown kind of file; models are in {', '.join(READERS)} files")
