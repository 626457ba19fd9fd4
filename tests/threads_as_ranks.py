"""A stand-in for MPI: threads as ranks, with the methods of mpi4py's communicators that the package uses."""

import copy
import threading
from queue import Empty, Queue

import numpy as np

from prudent.engine.sweep.rank_sweep import follow
from prudent.runtime.ranks import Ranks


class Ended(BaseException):
    """Another rank ended the job."""


class _Hub:
    def __init__(self, size):
        self.size, self.ended = size, threading.Event()
        self.boxes = {}
        self.lock = threading.Lock()

    def box(self, *key):
        with self.lock:
            return self.boxes.setdefault(key, Queue())


class _Request:
    def __init__(self, test=lambda: True):
        self._test = test

    def Test(self):
        return self._test()


class Comm:
    """One rank's end of a communicator among threads."""

    def __init__(self, hub, rank):
        self._hub, self._rank = hub, rank
        self.sent = 0

    def Dup(self):
        return self

    def Free(self):
        pass

    def Get_rank(self):
        return self._rank

    def Get_size(self):
        return self._hub.size

    def Abort(self, code):
        self._hub.ended.set()

    def _check(self):
        if self._hub.ended.is_set():
            raise Ended

    def isend(self, what, dest, tag):
        self._hub.box(self._rank, dest, tag).put(copy.copy(what))
        return _Request()

    def Isend(self, array, dest, tag):
        self.sent += 1
        self._hub.box(self._rank, dest, tag).put(array.copy())
        return _Request()

    def Iprobe(self, source, tag):
        self._check()
        return not self._hub.box(source, self._rank, tag).empty()

    def recv(self, source, tag):
        while True:
            self._check()
            try:
                return self._hub.box(source, self._rank, tag).get(timeout=0.05)
            except Empty:
                continue

    def Irecv(self, array, source, tag):
        box, got = self._hub.box(source, self._rank, tag), []

        def test():
            self._check()
            if not got and not box.empty():
                got.append(box.get())
                assert got[0].shape == array.shape, "the message has another length"
                array[:] = got[0]
            return bool(got)

        return _Request(test)

    def allgather(self, mine):
        for other in range(self._hub.size):
            self._hub.box(self._rank, other, "all").put(mine)
        return [self.recv(other, "all") for other in range(self._hub.size)]

    def bcast(self, what, root):
        return self.allgather(what)[root]

    def Bcast(self, array, root):
        array[:] = self.allgather(array.copy())[root] if self._rank != root else self.allgather(array)[root]

    def gather(self, mine, root):
        found = self.allgather(mine)
        return found if self._rank == root else None

    def alltoall(self, mine):
        return [each[self._rank] for each in self.allgather(mine)]


def on_ranks(size, work):
    """Call ``work`` with a communicator on each of so many ranks; return what each returns or raises."""
    hub, found = _Hub(size), [None] * size

    def run(rank):
        try:
            found[rank] = work(Comm(hub, rank))
        except BaseException as error:
            found[rank] = error
            if not isinstance(error, ValueError | KeyboardInterrupt | Ended):
                hub.ended.set()

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(120)
    assert not any(each.is_alive() for each in threads), "a rank waits for ever"
    return found


def same(array, other):
    """Whether two arrays have the same bits, nan included."""
    array, other = np.asarray(array), np.asarray(other)
    return array.shape == other.shape and array.dtype == other.dtype and array.tobytes() == other.tobytes()


def led(size, work, threads=1):
    """Let rank 0 do work with its ranks, and the others follow; return what it finds."""

    def run(comm):
        ranks = Ranks(comm, 2**30)
        ranks.threads = 2 if threads > 1 else 1
        return ranks.lead(lambda: work(ranks)) if ranks.rank == 0 else follow(ranks, threads)

    found = on_ranks(size, run)
    for each in found:
        if isinstance(each, BaseException):
            raise each
    return found[0]
