"""``study``: a plan for every combination of parameters and alpha; any executor may solve them, in any order."""

import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, ProcessPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import cache, partial
from os import PathLike
from typing import TYPE_CHECKING, Any

from prudent.domains import registry
from prudent.errors import PrudentError, whole_number
from prudent.io.study import StudyFile, check_lasting, key_of
from prudent.models.ssp import SSP
from prudent.planning.options import Options
from prudent.planning.solve import solve
from prudent.policies.distribution import check_alpha
from prudent.results.study import FIELDS, Row, Study
from prudent.runtime.executors import check_executor, check_sendable, finished, process_pool
from prudent.runtime.limits import Limits, available_memory, cores, now
from prudent.runtime.progress import Progress, announce

if TYPE_CHECKING:
    from prudent.methods.cvar_wc import CvarWC

Make = str | Callable[..., SSP]
"""The name of a domain, or a function that returns a model."""

Combination = tuple[dict[str, Any], float]
"""Values of parameters, and an alpha."""


def study(
    make: Make,
    grid: Mapping[str, Iterable[Any]],
    alphas: Iterable[float],
    executor: Executor | None = None,
    *,
    method: "str | CvarWC" = "exact",
    gap: float | None = None,
    relative_gap: float | None = None,
    memory: int | float | str | None = None,
    time_limit: float | None = None,
    threads: int | None = None,
    device: str = "cpu",
    workers: int | None = None,
    keep: str | PathLike[str] | None = None,
) -> Study:
    """Solve a model for every combination of its parameters and alphas.

    If a combination fails, its row has the ``error``.  Ctrl-C waits for the solves in progress and returns the finished
    rows; a second Ctrl-C aborts.  In a script, call ``study`` under ``if __name__ == "__main__":``, since it starts
    processes that import the script.

    Parameters
    ----------
    make : str or callable
        The name of a domain, such as ``"inventory-control"``, or a function that returns a model.  A function is sent
        to other processes by its name: define it with ``def`` in a module or a script.
    grid : mapping
        Values for parameters of the domain or the function: ``{"capacity": [10, 20], "demand": [5, 10]}``.
    alphas : numbers
        The alphas to plan for: 0.05 for the worst 5% of runs.
    executor : Executor, optional
        What runs the solves: the executor of a Dask client (``client.get_executor()``), one of ``mpi4py.futures``, or
        any other with the interface of ``concurrent.futures``.  By default processes on this machine.
    method, gap, relative_gap, time_limit, device
        As in :func:`prudent.solve`, for each combination; with an executor, on its workers' machines.
    memory, threads : optional
        The memory limit and the number of threads of one solve.  By default processes on this machine share its cores
        and 80% of its free memory; a worker elsewhere uses one thread and 80% of the free memory of its own machine.
    workers : int, optional
        The number of processes on this machine, if no executor is given.  The default is one per core, but 1 with a
        GPU, which they would share.  With 1, this process solves everything and starts no other.
    keep : path, optional
        A file (``.jsonl``) to which each finished row is added.  Called again with the same file, ``study`` does not
        solve these rows again; failed ones are tried again.

    Examples
    --------
    >>> import prudent
    >>> study = prudent.study("inventory-control", {"capacity": [10, 20]}, alphas=[0.02, 0.2], workers=1)
    >>> [(row["capacity"], row["alpha"], round(row["cvar"], 3)) for row in study.rows]
    [(10, 0.02, 186.399), (10, 0.2, 164.816), (20, 0.02, 386.399), (20, 0.2, 360.171)]
    """
    given, began = locals(), now()
    check_executor(executor)
    asked = Options.of("study", given)
    elsewhere = executor is not None and device == "gpu"  # a GPU that is not here
    replace(asked, device="cpu" if elsewhere else device).limits()  # reject bad values at once
    parameters, combinations = combinations_of(make, grid, alphas)
    label = make if isinstance(make, str) else f"{make.__module__}.{getattr(make, '__qualname__', type(make).__name__)}"
    for values, _ in combinations if keep is not None else ():
        for parameter, value in values.items():
            check_lasting(parameter, value)
    said = method if isinstance(method, str) else repr(method)
    about = {"make": label, "method": said, "gap": asked.gap, "relative_gap": asked.relative_gap}
    file = None if keep is None else StudyFile(keep, about, parameters)
    rows = {} if file is None else _known(file, combinations)
    left = [number for number in range(len(combinations)) if number not in rows]
    n = _processes(executor, workers, len(left), device)
    if n > 1 or isinstance(executor, ProcessPoolExecutor):
        check_sendable("make", make, "workers=1")
    options = {"method": method, "gap": gap, "relative_gap": relative_gap, "time_limit": time_limit, "device": device}
    options |= _share(executor, n, memory, threads)
    calls = [(make, *combinations[number], options) for number in left]
    tell = cache(partial(announce, "waiting for the solves in progress; press Ctrl-C again to abort"))

    def stop() -> str:
        if limits.stop:
            tell()
        return limits.stop

    with (
        _lost(keep),
        process_pool(n) if n > 1 else nullcontext(executor) as pool,
        Limits.of(None, None) as limits,
        Progress("studying", total=len(combinations), unit="plans") as progress,
    ):
        for which, future in finished(pool, solve_one, calls, stop):
            values, alpha = combinations[left[which]]
            row = {**values, **_fields(future, asked.method_name, alpha)}
            if row["status"] == "interrupted":  # Ctrl-C stopped the solve; it is not done
                limits.interruption.asked = True
                continue
            rows[left[which]] = row
            if file is not None:
                file.add(row)
            progress.at(len(rows))
    in_order = tuple(rows[number] for number in sorted(rows))
    return Study(label, parameters, in_order, len(combinations), now() - began)


def solve_one(make: Make, values: dict[str, Any], alpha: float, options: dict[str, Any]) -> Row:
    """Return the fields of one combination's plan, or why there is none (internal)."""
    try:
        plan = solve(maker(make)(**values), alpha, **options)
    except Exception as error:
        return {"error": _message(error)}
    return {**plan.numbers(), "notes": plan.notes}


def _fields(future: Any, method: str, alpha: float) -> Row:
    """Return all fields of a row from what came back."""
    found: Row = {"error": "the solve was cancelled"}
    if not future.cancelled():
        error = future.exception()
        if isinstance(error, BrokenExecutor):
            raise error
        found = future.result() if error is None else {"error": _message(error)}
    row = {**dict.fromkeys(FIELDS), "method": method, "alpha": alpha, "notes": (), **found}
    return {name: row[name] for name in FIELDS}


def _message(error: BaseException) -> str:
    return str(error) if isinstance(error, PrudentError) else f"{type(error).__name__}: {error}"


def _known(file: StudyFile, combinations: Sequence[Combination]) -> dict[int, Row]:
    """Return the rows of combinations that are done, by their numbers."""
    keys = [key_of({**values, "alpha": alpha}, file.parameters) for values, alpha in combinations]
    done = {number: file.rows[key] for number, key in enumerate(keys) if key in file.rows}
    return {number: {**row, **combinations[number][0]} for number, row in done.items() if row["error"] is None}


def _processes(executor: Executor | None, workers: int | None, left: int, device: str = "cpu") -> int:
    """Return how many processes to start here; 1 means none."""
    if workers is not None:
        whole_number("workers", workers, 1, 1024)
        if executor is not None:
            raise PrudentError(
                "workers is for processes on this machine, but an executor has its own; remove one of them"
            )
    at_once = workers or (1 if device == "gpu" else cores())
    return 1 if executor is not None else max(min(at_once, left), 1)


def _share(executor: Executor | None, n: int, memory: int | float | str | None, threads: int | None) -> dict[str, Any]:
    """Return the memory and the threads of each solve, so that parallel solves do not take too much together."""
    if executor is not None:
        threads = threads or 1
    elif n > 1:
        memory = int(0.8 * available_memory() / n) if memory is None else memory
        threads = threads or max(cores() // n, 1)
    return {"memory": memory, "threads": threads}


@contextmanager
def _lost(keep: object) -> Iterator[None]:
    """Explain the error if an executor lost its workers."""
    try:
        yield
    except BrokenExecutor:
        way = "repeat the call" if keep else "repeat the call with keep= a file"
        raise PrudentError(
            "a worker died: it was killed, ran out of memory, or its script calls study without "
            f'if __name__ == "__main__"; {way}, which keeps finished rows'
        ) from None


def maker(make: Make) -> Callable[..., SSP]:
    """Return the function that makes models."""
    return registry.named(make).make if isinstance(make, str) else make


def combinations_of(
    make: Make, grid: Mapping[str, Iterable[Any]], alphas: Iterable[float]
) -> tuple[tuple[str, ...], list[Combination]]:
    """Return the names of the parameters, and every combination of their values and the alphas."""
    if not isinstance(grid, Mapping):
        raise PrudentError(f"grid is {grid!r}; it must be a mapping, such as {{'capacity': [10, 20]}}")
    lists = {name: _several(f"grid[{name!r}]", values) for name, values in grid.items()}
    fractions = [check_alpha(alpha, "alphas") for alpha in _several("alphas", alphas)]
    for name in lists:
        wrong = "" if isinstance(name, str) else "; the name of a parameter must be a str, such as 'capacity'"
        if name in FIELDS:
            wrong = ", which is the name of a column of the result; rename the parameter"
        if wrong:
            raise PrudentError(f"grid has the parameter {name!r}{wrong}")
    for name, values in {**lists, "alphas": fractions}.items():
        keys = [key_of({name: value, "alpha": 0}, [name]) for value in values]
        if twice := [value for value, key in zip(values, keys, strict=True) if keys.count(key) > 1]:
            raise PrudentError(f"{name} has {twice[0]!r} twice; remove one")
    _check_takes(make, {name: values[0] for name, values in lists.items()})
    every = [dict(zip(lists, values, strict=True)) for values in itertools.product(*lists.values())]
    return tuple(lists), [(values, alpha) for values in every for alpha in fractions]


def _several(name: str, values: object) -> list[Any]:
    if not isinstance(values, Iterable) or isinstance(values, str):
        such = "[0.05, 0.5]" if name == "alphas" else "[10, 20]"
        raise PrudentError(f"{name} is {values!r}; it must be a sequence, such as {such}")
    found = list(values)
    if not found:
        raise PrudentError(f"{name} is empty; give at least one value")
    return found


def _check_takes(make: Make, values: dict[str, Any]) -> None:
    """Reject parameters that a domain or a function does not take."""
    if not isinstance(make, str) and not callable(make):
        raise PrudentError(f"make is a {type(make).__name__}; it must be the name of a domain or a function")
    build = maker(make)
    try:
        takes = inspect.signature(build)
    except ValueError:  # some functions have no signature
        return
    try:
        takes.bind(**values)
    except TypeError as error:
        raise PrudentError(f"grid does not match the parameters of make: {error}") from None
