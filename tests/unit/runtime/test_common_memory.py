"""Memory that all ranks of one machine see, with threads as ranks."""

import time

import numpy as np
import pytest

from prudent.errors import TooLarge
from prudent.runtime import common_memory as module
from prudent.runtime.common_memory import common_memory
from threads_as_ranks import on_ranks


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "FOLDER", str(tmp_path))
    return tmp_path


def test_each_rank_sees_what_the_others_wrote(folder):
    named = []

    def work(comm):
        told, told_on = comm.bcast, comm.allgather
        comm.bcast = lambda *about, **how: (named.extend(folder.iterdir()), told(*about, **how))[1]
        comm.allgather = lambda what: (named.extend(folder.iterdir()), told_on(what))[1]
        memory = common_memory(comm, 0)
        table = memory.zeros((3, 4), np.int32)
        table[comm.Get_rank()] = comm.Get_rank() + 1
        memory.meet()
        return table.sum(axis=1).tolist(), memory.zeros(0).shape, memory.meetings

    assert on_ranks(3, work) == [([4, 8, 12], (0,), 1)] * 3
    assert not named and not list(folder.iterdir())  # whatever ends them, and whenever, nothing is left


def test_a_late_rank_is_waited_for():
    order = []

    def work(comm):
        memory = common_memory(comm, 0)
        if comm.Get_rank() == 1:
            time.sleep(0.05)
            order.append("late")
        memory.meet()
        order.append("met")

    assert on_ranks(2, work) == [None, None]
    assert order[0] == "late"


@pytest.mark.parametrize("why", ["other machines", "little room", "no such folder", "no files without a name"])
def test_ranks_without_common_memory(why, monkeypatch):
    if why == "little room":
        monkeypatch.setattr(module, "ENOUGH", 1e30)
    if why == "no such folder":
        monkeypatch.setattr(module, "FOLDER", "/no/such/folder")
    if why == "no files without a name":

        def refuse(*about):
            raise OSError("not supported")

        monkeypatch.setattr(module.os, "open", refuse)

    def work(comm):
        if why == "other machines":
            comm.allgather = lambda mine: [mine, f"{mine} too"]
        return common_memory(comm, 1)

    assert on_ranks(2, work) == [None, None]


def test_more_than_there_is_room_for_is_refused(monkeypatch):
    def work(comm):
        memory = common_memory(comm, 0)
        memory.meet()
        monkeypatch.setattr(module, "_room", lambda: 1000.0)
        assert memory.room == 1000
        return memory.zeros(1000)

    for found in on_ranks(2, work):
        assert isinstance(found, TooLarge) and "ranks need 8,000 bytes of memory in" in str(found)
