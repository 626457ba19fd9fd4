"""Ranks: the processes of an MPI job.  Rank 0 decides; the others do their share of its work.

Only a communicator's own methods are used, under the names that mpi4py gives them; in tests a stand-in has the same
methods for threads.

A waiting rank checks from time to time instead of continuously, so that ranks may share cores.  An error on one rank
alone ends the whole job: the others would wait for it forever.
"""

import os
import pickle
import platform
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from prudent.errors import PrudentError, needed

ORDER, DATA = 1, 2
"""The tags of messages: rank 0's announcements, and arrays."""

ALIGNED = 64
"""Arrays in one message begin at multiples of this many bytes."""

PIECE = 2**28
"""The most bytes of one message: some implementations count them in 32 bits."""

LOOKS, REST, LONGEST = 200, 1e-4, 2e-3
"""How often a waiting rank checks before it yields its core; how long it then sleeps, and at most."""

METHODS = ("Dup", "Free", "Get_rank", "Get_size", "Isend", "Irecv", "Bcast", "isend", "recv", "Iprobe", "Abort")
OBJECTS = ("bcast", "gather", "allgather", "alltoall")

LAUNCHERS = (
    ("PMI_RANK", "PMI_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMIX_RANK", "SLURM_STEP_NUM_TASKS"),
)
"""The variables in which launchers give a process its number and the number of processes: of MPICH and its kin, of Open
MPI, of Slurm."""

T = TypeVar("T")


@dataclass(frozen=True)
class End:
    """The message that rank 0 has ended, with the error that all raise."""

    error: BaseException | None


class Ranks:
    """The ranks of a communicator, as seen by one of them."""

    def __init__(self, comm: Any, memory: int) -> None:
        self.comm = comm.Dup()  # our messages never meet the user's
        self.rank, self.size = int(comm.Get_rank()), int(comm.Get_size())
        self._under_way: list[tuple[Any, Any]] = []  # requests, with what they send
        self.messages, self.bytes = 0, 0  # sent from here
        self.threads = 1  # of this rank, in what ranks share
        bound_to = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
        found = self.comm.allgather((_machine(), bound_to, memory))
        machines, cores = [each for each, *_ in found], [each[:2] for each in found]
        self.here = machines.count(machines[self.rank])  # ranks on this machine
        self.sharing = cores.count(cores[self.rank])  # those of them that are bound to the same cores
        self.memory = min(memory // machines.count(each) for each, _, memory in found)  # bytes that each rank has

    def tell(self, order: object) -> None:
        """Announce something short to all other ranks; only rank 0 does."""
        for other in range(1, self.size):
            self._under_way.append((self.comm.isend(order, dest=other, tag=ORDER), order))

    def hear(self) -> Any:
        """Wait for an announcement of rank 0."""
        _wait_until(lambda: self.comm.Iprobe(source=0, tag=ORDER))
        return self.comm.recv(source=0, tag=ORDER)

    def gathered(self, mine: Any) -> list[Any] | None:
        """Return what each rank gives, on rank 0."""
        found: list[Any] | None = self.comm.gather(mine, root=0)
        return found

    def shared(self, what: Any, threads: int) -> Any:
        """Return what rank 0 gives, on all ranks; it copies with so many threads."""
        from prudent.runtime.team import copy_together  # later: the command looks for ranks before it loads kernels

        buffers: list[pickle.PickleBuffer] = []
        data = pickle.dumps(what, protocol=5, buffer_callback=buffers.append) if self.rank == 0 else b""
        mine = [np.frombuffer(each.raw(), dtype=np.uint8) for each in buffers]
        data, sizes = self.comm.bcast((data, [len(each) for each in mine]), root=0)
        begins = np.cumsum([0, *(-(-size // ALIGNED) * ALIGNED for size in sizes)]).tolist()
        whole = np.zeros(begins[-1], np.uint8)
        parts = [whole[begin : begin + size] for begin, size in zip(begins, sizes, strict=False)]
        for part, array in zip(parts, mine, strict=False):
            copy_together(array, part, threads)
        for piece in _pieces(whole):
            self.comm.Bcast(piece, root=0)
        return what if self.rank == 0 else pickle.loads(data, buffers=parts)

    def send(self, array: NDArray[Any], to: int) -> None:
        """Begin to send an array, contiguous and not to be changed before :meth:`finish`."""
        for piece in _pieces(array):
            self._under_way.append((self.comm.Isend(piece, dest=to, tag=DATA), piece))
            self.messages, self.bytes = self.messages + 1, self.bytes + piece.nbytes

    def receive(self, array: NDArray[Any], source: int) -> None:
        """Wait for an array that a rank sends; arrays of one rank come in the order in which it sent them."""
        self._complete([self.comm.Irecv(piece, source=source, tag=DATA) for piece in _pieces(array)])

    def exchange(self, out: dict[int, NDArray[Any]], into: dict[int, NDArray[Any]]) -> None:
        """Send an array to each of some ranks, and wait for one from each of some."""
        coming = [self.comm.Irecv(piece, source=source, tag=DATA) for source in into for piece in _pieces(into[source])]
        for to, array in out.items():
            self.send(array, to)
        self._complete(coming)
        self.finish()

    def finish(self) -> None:
        """Wait until everything sent has left."""
        self._complete([request for request, _ in self._under_way])
        self._under_way.clear()

    def _complete(self, requests: list[Any]) -> None:
        for request in requests:
            _wait_until(request.Test)

    def close(self) -> None:
        """End the exchange: nothing more is announced."""
        self.finish()
        self.comm.Free()

    def lead(self, work: Callable[[], T]) -> T:
        """Do work on rank 0 while the others follow; user errors and Ctrl-C are raised on all."""
        error: BaseException | None = None
        try:
            found = work()
        except (PrudentError, KeyboardInterrupt) as raised:
            error = raised
        except BaseException:
            with self.at_once():
                raise
        with self.at_once():
            self.tell(End(error))
            self.close()
        if error is not None:
            raise error
        return found

    def part(self, error: BaseException | None) -> None:
        """End in the way that rank 0 has announced."""
        self.close()
        if error is not None:
            raise error

    def at_once(self) -> AbstractContextManager[None]:
        """End the whole job on an error inside that the other ranks do not have."""
        return _at_once(self.comm)


def ranks_of(comm: Any, memory: int) -> Ranks | None:
    """Return the ranks of a communicator; None if there is none or it has only one rank.

    All ranks call it, with the memory available on their machines.
    """
    if comm is None:
        return None
    if not all(callable(getattr(comm, name, None)) for name in (*METHODS, *OBJECTS)):
        raise PrudentError(f"comm is {comm!r}; it must be an mpi4py communicator, such as MPI.COMM_WORLD")
    with _at_once(comm):
        return Ranks(comm, memory) if comm.Get_size() > 1 else None


def on_first(comm: Any, make: Callable[[], T]) -> T:
    """Return what rank 0 makes, None on the others; user errors are raised on all."""
    ranks = ranks_of(comm, 0)
    if ranks is None:
        return make()
    if ranks.rank == 0:
        return ranks.lead(make)
    ranks.part(ranks.hear().error)
    return cast(T, None)


@contextmanager
def _at_once(comm: Any) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        code = 130 if isinstance(error, KeyboardInterrupt) else 1
        if code == 1:
            traceback.print_exc(file=sys.__stderr__)
        said = "was stopped" if code == 130 else "failed"
        print(f"prudent: rank {comm.Get_rank()} {said}, which ends all ranks", file=sys.__stderr__, flush=True)
        comm.Abort(code)
        raise


def _machine() -> str:
    """Return a name that no other machine has, as far as the system reports."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return f"{platform.node()} {file.read().strip()}"
    except OSError:
        return platform.node()


def _wait_until(done: Callable[[], bool]) -> None:
    """Check whether something is done until it is, less and less often."""
    looks = 0
    while not done():
        looks += 1
        if looks > LOOKS:
            time.sleep(0.0 if looks < 2 * LOOKS else min(REST * looks / (2 * LOOKS), LONGEST))


def _pieces(array: NDArray[Any]) -> list[NDArray[np.uint8]]:
    """Return the bytes of a contiguous array in messages; an empty array is one message, too."""
    flat = array.reshape(-1).view(np.uint8)
    return [flat[first : first + PIECE] for first in range(0, max(len(flat), 1), PIECE)]


def launched() -> Any:
    """Return the communicator of all processes if an MPI launcher has started this one among others, else None.

    Ctrl-C is then handled by rank 0: the others would wait for a rank that ended by itself.
    """
    if not any(os.environ.get(size, "1") != "1" for number, size in LAUNCHERS if number in os.environ):
        return None
    if not speaks():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return needed("mpi4py.MPI", "mpi").COMM_WORLD


def speaks() -> bool:
    """Return whether this process is the one that prints: rank 0, or no rank at all."""
    return next((os.environ[number] for number, _ in LAUNCHERS if number in os.environ), "0") == "0"
