"""Work by other processes: an executor of Python, of Dask (``client.get_executor()``), or of ``mpi4py.futures``.

A function, by its name, and its arguments are sent; a future comes back.  The executor decides who does which work, in
which order, and what happens when a worker is lost.
"""

import itertools
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.reduction import ForkingPickler
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any
from uuid import uuid4

from prudent.errors import PrudentError

POLL = 0.1
"""Seconds between two checks whether to stop."""


def check_executor(executor: object) -> None:
    """Reject what is not an executor."""
    if executor is not None and not isinstance(executor, Executor):
        hint = "client.get_executor()" if hasattr(executor, "get_executor") else "concurrent.futures or mpi4py.futures"
        raise PrudentError(f"executor is a {type(executor).__name__}; it must be an executor, such as one of {hint}")


def check_sendable(name: str, function: object, otherwise: str) -> None:
    """Reject a function that a process of Python's own pool cannot find by its module and name."""
    why = ""
    if getattr(function, "__module__", None) == "__main__" and not hasattr(sys.modules["__main__"], "__file__"):
        why = "it was defined at a prompt or in a notebook"
    try:
        ForkingPickler.dumps(function)
    except Exception as error:
        why = str(error)
    if why:
        raise PrudentError(
            f"{name} cannot be sent to another process ({why}); define it with def in a module, or give an executor of "
            f"Dask, which sends any function, or set {otherwise}"
        )


@dataclass(frozen=True, repr=False)
class _Call:
    """A call that is made elsewhere.

    Dask would hash everything sent and treat equal calls as one, even after it was cancelled.  So each call gets its
    own key and name.
    """

    work: Callable[..., Any]
    arguments: tuple[Any, ...]

    def __call__(self) -> Any:
        return self.work(*self.arguments)

    def __dask_tokenize__(self) -> str:
        return uuid4().hex

    @property
    def __name__(self) -> str:
        return self.work.__name__


def finished(
    executor: Executor | None,
    work: Callable[..., Any],
    calls: Iterable[tuple[Any, ...]],
    stop: Callable[[], object],
    at_once: int | None = None,
) -> Iterator[tuple[int, "Future[Any]"]]:
    """Call ``work`` with each of the arguments; yield the number of each call and its future as soon as it is done.

    Without an executor, calls are made here, one after the other.  Once ``stop()`` is true, no further call begins, and
    those that have begun are waited for.  With ``at_once``, the executor never has more calls than that.
    """
    if executor is None:
        for number, call in enumerate(calls):
            if stop():
                return
            here: Future[Any] = Future()
            try:
                here.set_result(work(*call))
            except Exception as error:
                here.set_exception(error)
            yield number, here
        return
    done, under_way, numbered = SimpleQueue[Future[Any]](), dict[Future[Any], int](), enumerate(calls)

    def hand_out(most: int | None) -> None:
        for number, call in itertools.islice(numbered, most):
            future = executor.submit(_Call(work, call))
            under_way[future] = number
            future.add_done_callback(done.put)

    try:
        hand_out(at_once)
        while under_way:
            if stop():
                numbered = enumerate(())
                under_way = {future: number for future, number in under_way.items() if not future.cancel()}
            try:
                future = done.get(timeout=POLL)
            except Empty:
                continue
            if future in under_way:
                number = under_way.pop(future)
                hand_out(1)
                yield number, future
    finally:
        for future in under_way:
            future.cancel()


@contextmanager
def process_pool(workers: int) -> Iterator[Executor]:
    """Yield an executor with this many new processes; they end with the context, or with this process."""
    before = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"), initializer=_begin_worker)
    try:
        yield pool
    except BaseException:  # nobody waits for their work any more
        for process in set(multiprocessing.active_children()) - before:
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _begin_worker() -> None:
    """Leave Ctrl-C to the parent, and end with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
