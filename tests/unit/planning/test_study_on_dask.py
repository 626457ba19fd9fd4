"""A study on a real cluster of Dask, of two processes."""

import os
import signal
import time
from threading import Thread

import pytest

import prudent
from prudent.runtime.executors import finished

distributed = pytest.importorskip("distributed", reason="clusters need Dask (extra dask)")

pytestmark = pytest.mark.filterwarnings("ignore")  # of Dask's own making

GRID, ALPHAS = {"stages": [2, 3, 4, 5, 6], "cap": [20, 30, 40, 50]}, [0.05, 0.1, 0.2]


def without_seconds(study):
    return [{name: value for name, value in row.items() if name != "seconds"} for row in study.rows]


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_sixty_solves_are_those_of_one_process(client):
    here = prudent.study("betting-game", GRID, ALPHAS, workers=1)
    there = prudent.study("betting-game", GRID, ALPHAS, client.get_executor())
    assert len(there.rows) == 60 and there.failed == ()
    assert without_seconds(there) == without_seconds(here)


def test_a_worker_killed_in_the_middle_loses_nothing(client, tmp_path):
    keep, workers = tmp_path / "rows.jsonl", list(client.run(os.getpid).values())

    def kill():
        while not keep.exists() or keep.read_bytes().count(b"\n") < 10:
            pass
        os.kill(workers[0], signal.SIGKILL)

    killer = Thread(target=kill)
    killer.start()
    there = prudent.study("betting-game", GRID, ALPHAS, client.get_executor(), keep=keep)
    killer.join()
    assert len(there.rows) == 60 and there.failed == ()
    assert without_seconds(there) == without_seconds(prudent.study("betting-game", GRID, ALPHAS, workers=1))


def test_what_was_cancelled_can_be_asked_for_again(client):
    calls = [(0.02 + i / 10**6,) for i in range(60)]
    executor, some = client.get_executor(), []
    for _, future in finished(executor, time.sleep, calls, lambda: len(some) >= 5):
        some.append(future)
    every = [future for _, future in finished(executor, time.sleep, calls, lambda: False)]
    assert len(some) < len(every) == 60 and not any(future.cancelled() for future in every)


def test_simulated_runs_are_those_of_one_process(client, monkeypatch):
    monkeypatch.setattr("prudent.policies.simulation.BRIEF", 0)  # many pieces
    monkeypatch.setattr("prudent.policies.simulation.PER_BYTE", 0)
    game = prudent.domains.betting_game()
    policy = prudent.solve(game, 0.2).policy
    here = prudent.simulate(game, policy, episodes=50_000)
    there = prudent.simulate(game, policy, episodes=50_000, executor=client.get_executor())
    assert here.costs.tolist() == there.costs.tolist() and here.mean_se == there.mean_se
    asked = {"episodes": 500, "executor": client.get_executor()}
    assert prudent.simulate(game, lambda state, spent: policy(state, spent), **asked).episodes == 500
