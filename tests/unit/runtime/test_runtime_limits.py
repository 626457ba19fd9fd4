"""What ranks make of a user's limits."""

from types import SimpleNamespace

import pytest

from prudent.errors import PrudentError
from prudent.runtime import limits as module
from prudent.runtime.limits import Limits, own_cores


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
