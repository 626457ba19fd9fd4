"""The worker process of the live page, without a process."""

import io
import json

import pytest

import prudent


@pytest.fixture
def worker():
    from prudent.apps.web.worker import Worker

    made = Worker.__new__(Worker)  # without its signals
    made.sink, made.busy, made.stopped = io.BytesIO(), True, False
    return made


def test_what_a_solve_has_so_far_is_told_only_after_a_while(worker, monkeypatch):
    from prudent.apps.web.worker import SILENCE, SO_FAR

    clock = [100.0]
    monkeypatch.setattr("prudent.apps.web.worker.time.monotonic", lambda: clock[0])
    worker.began, plan = clock[0], prudent.solve(prudent.domains.figure_2(), 0.1)
    worker.tell(plan)
    assert worker.sink.getvalue() == b""  # it may end at once
    clock[0] += SILENCE
    worker.tell(plan)
    head, _, content = worker.sink.getvalue().partition(b"\n")
    body = json.loads(content)
    assert json.loads(head) == {"status": SO_FAR, "size": len(content)}
    assert body["refining"] and body["plan"]["cvar"] == plan.cvar and worker.busy
