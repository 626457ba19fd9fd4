"""The worker process of the live page, without a process."""

import io
import json

import pytest

import prudent


@pytest.fixture
def worker():
    from prudent.apps.web.worker import Worker

    made = Worker.__new__(Worker)  # without its signals
    made.sink, made.busy = io.BytesIO(), True
    return made


def test_what_a_solve_has_so_far_is_told_only_after_a_while(worker, monkeypatch):
    from prudent.apps.web.worker import LENGTHS, SILENCE

    clock = [100.0]
    monkeypatch.setattr("prudent.apps.web.worker.time.monotonic", lambda: clock[0])
    listener, plan = worker.listener(), prudent.solve(prudent.domains.figure_2(), 0.1)
    listener(plan)
    assert worker.sink.getvalue() == b""  # it may end at once
    clock[0] += SILENCE
    listener(plan)
    frame = worker.sink.getvalue()
    size, extra = LENGTHS.unpack(frame[: LENGTHS.size])
    about, body = json.loads(frame[LENGTHS.size : LENGTHS.size + size]), json.loads(frame[LENGTHS.size + size :])
    assert about == {"kind": "so far"} and len(frame) == LENGTHS.size + size + extra
    assert body["refining"] and body["plan"]["cvar"] == plan.cvar and worker.busy
