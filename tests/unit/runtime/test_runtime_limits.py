"""Limits made of others, and what ranks make of a user's."""

import pickle
import signal
from dataclasses import FrozenInstanceError, replace
from types import SimpleNamespace

import pytest

from prudent.errors import PrudentError
from prudent.runtime import limits as module
from prudent.runtime.limits import UNLIMITED, Interruption, Limits, own_cores


@pytest.mark.parametrize(("bound_to", "lent"), [(16, 8), (3, 3), (1, 2)])
def test_rank_0_borrows_the_cores_of_ranks_that_wait_for_it(bound_to, lent, monkeypatch):
    monkeypatch.setattr(module, "cores", lambda: bound_to)
    ranks = SimpleNamespace(here=4, size=6, memory=10**9)
    limits = Limits.of(None, None, threads=2, ranks=ranks)
    assert (limits.threads, ranks.threads, limits.memory) == (lent, 2, 8 * 10**8)


@pytest.mark.parametrize(("sharing", "own"), [(1, 6), (3, 2), (8, 1)])
def test_ranks_share_the_cores_that_they_are_bound_to(sharing, own, monkeypatch):
    monkeypatch.setattr(module, "cores", lambda: 6)
    assert own_cores(SimpleNamespace(sharing=sharing)) == own
    assert own_cores(None) == 6


def test_ranks_sweep_on_cpus():
    with pytest.raises(PrudentError, match=r"device is 'gpu', but ranks \(comm=\) sweep on CPUs only"):
        Limits.of(None, None, device="gpu", ranks=SimpleNamespace(here=2))


def test_limits_made_of_others_hear_the_same_ctrl_c_and_change_nothing():
    limits = Limits(10**9, time_limit=100.0)
    with pytest.raises(FrozenInstanceError):
        limits.memory = 1
    others = [limits.whole, limits.for_the_rest, replace(limits, memory=10**6)]
    assert [each.partial for each in others] == [False, True, True] and limits.partial
    assert limits.for_the_rest.time_limit == pytest.approx(110.0)
    assert limits.without_time.time_limit is None and limits.time_limit == 100.0
    limits.interruption.asked = True
    assert [each.stop for each in (limits, *others)] == ["interrupted"] * 4
    assert limits.for_the_rest.stop == "" and limits.for_the_rest.left < 2.0  # to complete the answer
    assert limits.without_time.stop == ""


def test_limits_reach_other_processes_without_a_ctrl_c_of_this_one():
    limits = Limits(10**9, threads=3, interruption=Interruption(asked=True))
    there = pickle.loads(pickle.dumps(limits))
    assert (there.memory, there.threads, there.stop) == (10**9, 3, "")


def test_ctrl_c_is_heard_once_for_limits_within_limits():
    limits = Limits(10**9)
    before = signal.getsignal(signal.SIGINT)
    with limits, limits.whole as inner:
        signal.raise_signal(signal.SIGINT)
        assert limits.stop == inner.stop == "interrupted"
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_in_work_without_limits_interrupts_at_once_and_is_forgotten():
    """All calls share them: else one Ctrl-C would stop each later call, too."""
    with pytest.raises(KeyboardInterrupt), UNLIMITED:
        signal.raise_signal(signal.SIGINT)
    assert not UNLIMITED.stop and not replace(UNLIMITED, threads=2).stop
