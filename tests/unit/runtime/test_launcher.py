"""What launchers of MPI tell a process."""

import signal
from types import SimpleNamespace

import pytest

from prudent.runtime import launcher


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    for each in (name for pair in launcher.LAUNCHERS for name in pair):
        monkeypatch.delenv(each, raising=False)
    monkeypatch.setattr(launcher, "needed", lambda module, extra: SimpleNamespace(COMM_WORLD="world"))
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


def test_without_a_launcher_there_is_no_communicator():
    assert launcher.launched() is None and launcher.speaks()


@pytest.mark.parametrize(("number", "size"), launcher.LAUNCHERS)
def test_ranks_know_each_other_and_rank_0_speaks_and_hears(number, size, monkeypatch):
    monkeypatch.setenv(number, "0")
    monkeypatch.setenv(size, "1")
    assert launcher.launched() is None and launcher.speaks()
    monkeypatch.setenv(size, "4")
    assert launcher.launched() == "world" and launcher.speaks()
    assert signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
    monkeypatch.setenv(number, "2")
    assert launcher.launched() == "world" and not launcher.speaks()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
