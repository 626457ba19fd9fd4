"""What launchers of MPI tell a process."""

import signal
from types import SimpleNamespace

import pytest

from prudent.runtime import ranks


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    for each in (name for pair in ranks.LAUNCHERS for name in pair):
        monkeypatch.delenv(each, raising=False)
    monkeypatch.setattr(ranks, "needed", lambda module, extra: SimpleNamespace(COMM_WORLD="world"))
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


def test_without_a_launcher_there_is_no_communicator():
    assert ranks.launched() is None and ranks.speaks()


@pytest.mark.parametrize(("number", "size"), ranks.LAUNCHERS)
def test_ranks_know_each_other_and_rank_0_speaks_and_hears(number, size, monkeypatch):
    monkeypatch.setenv(number, "0")
    monkeypatch.setenv(size, "1")
    assert ranks.launched() is None and ranks.speaks()
    monkeypatch.setenv(size, "4")
    assert ranks.launched() == "world" and ranks.speaks()
    assert signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
    monkeypatch.setenv(number, "2")
    assert ranks.launched() == "world" and not ranks.speaks()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
