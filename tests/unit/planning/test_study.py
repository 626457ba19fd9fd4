import math
import os
import signal
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import pytest

import prudent
from prudent.planning import study as study_module

GRID = {"stages": [2, 3], "cap": [20, 40]}


def chain(length, price=1.0):
    """Return a small model; lengths below 1 are refused, and 13 brings bad luck."""
    if length == 13:
        raise ZeroDivisionError("bad luck")
    if length == 0:
        return "no model"
    return prudent.build(0, lambda s: {"go": [(0.5, s + 1, price), (0.5, s + 1, 3 * price)]} if s < length else {})


def chain_of_a_worker_that_dies(length):
    if length == 2:
        os._exit(1)
    return chain(length)


def without_seconds(rows):
    return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]


def test_a_row_has_the_parameters_and_what_solve_says():
    study = prudent.study("betting-game", GRID, [0.5, 0.1], workers=1)
    assert [(row["stages"], row["cap"], row["alpha"]) for row in study.rows[:5]] == [
        (2, 20, 0.5), (2, 20, 0.1), (2, 40, 0.5), (2, 40, 0.1), (3, 20, 0.5),
    ]  # fmt: skip
    assert (study.asked, study.complete, study.failed) == (8, True, ())
    for row in study.rows:
        plan = prudent.solve(prudent.domains.betting_game(stages=row["stages"], cap=row["cap"]), row["alpha"])
        told = plan.to_dict()
        for name in ("model", "method", "status", "cvar", "var", "expected", "lower", "upper", "states", "device"):
            assert row[name] == told[name]
        assert row["error"] is None and row["seconds"] > 0


def test_an_executor_gives_the_same_rows_in_the_same_order():
    here = prudent.study("betting-game", GRID, [0.5, 0.1], workers=1)
    with ThreadPoolExecutor(3) as executor:
        there = prudent.study("betting-game", GRID, [0.5, 0.1], executor)
    assert without_seconds(there.rows) == without_seconds(here.rows)


def test_processes_give_the_same_rows(tmp_path):
    here = prudent.study(chain, {"length": [1, 2]}, [0.5, 0.1], workers=1)
    there = prudent.study(chain, {"length": [1, 2]}, [0.5, 0.1], workers=2, keep=tmp_path / "rows.jsonl")
    assert without_seconds(there.rows) == without_seconds(here.rows)
    again = prudent.study(chain, {"length": [1, 2]}, [0.5, 0.1], keep=tmp_path / "rows.jsonl")
    assert again.rows == there.rows


def test_a_worker_that_dies_loses_nothing_that_is_kept(tmp_path, monkeypatch):
    asked = {"grid": {"length": [1, 2]}, "alphas": [0.5], "keep": tmp_path / "rows.jsonl"}
    prudent.study(chain_of_a_worker_that_dies, asked["grid"] | {"length": [1]}, [0.5], keep=asked["keep"], workers=1)
    with pytest.raises(
        prudent.PrudentError, match=r"a worker died: it was killed.*repeat the call, which keeps finished rows"
    ):
        prudent.study(chain_of_a_worker_that_dies, **asked | {"grid": {"length": [1, 2, 3]}}, workers=2)
    monkeypatch.setattr(os, "_exit", lambda code: None)
    assert len(prudent.study(chain_of_a_worker_that_dies, **asked, workers=1).rows) == 2


def test_what_fails_is_a_row_with_its_message():
    study = prudent.study(chain, {"length": [0, 1, 13], "price": [1, np.nan]}, [0.5], workers=1)
    errors = {(row["length"], str(row["price"])): row["error"] for row in study.rows}
    assert errors[1, "1"] is None
    assert errors[13, "1"] == "ZeroDivisionError: bad luck"
    assert errors[0, "1"].startswith("model is a str")
    assert "cost" in errors[1, "nan"]
    assert (len(study.failed), study.complete) == (5, True)
    failed = study.rows[0]
    assert (failed["alpha"], failed["method"], failed["cvar"], failed["notes"]) == (0.5, "exact", None, ())
    assert "failed: model is a str" in str(study.table()) and "5 of 6 combinations failed" in str(study.table())


def test_what_is_kept_is_not_solved_again_and_what_failed_is(tmp_path, monkeypatch):
    path, made = tmp_path / "rows.jsonl", []

    def counted(length):
        made.append(length)
        return chain(length)

    def run(*lengths):
        made.clear()
        return prudent.study(counted, {"length": lengths}, [0.5, 1], workers=1, keep=path)

    first = run(1, 13)
    assert made == [1, 1, 13, 13] and len(first.failed) == 2
    again = run(13, 1, 2)
    assert made == [13, 13, 2, 2]
    assert [row["length"] for row in again.rows] == [13, 13, 1, 1, 2, 2]
    assert again.rows[2:4] == first.rows[:2]
    path.write_bytes(path.read_bytes()[:-9])  # killed while it wrote the last row
    assert run(1, 2).rows[:3] == again.rows[2:5] and made == [2]
    assert run(1, 2).complete and made == []
    with pytest.raises(prudent.PrudentError, match=r"rows.jsonl: belongs to another study: its gap is None, not 0.5"):
        prudent.study(counted, {"length": [1]}, [1], gap=0.5, keep=path)


def test_infinite_numbers_are_kept(tmp_path):
    def endless():
        return prudent.build("s", {"s": {"try": [(0.5, "s", 1), (0.5, "g", 1)]}})

    rows = [prudent.study(endless, {}, [0.5], workers=1, keep=tmp_path / "rows.jsonl").rows for _ in range(2)]
    assert rows[0] == rows[1] and rows[1][0]["worst_case"] == np.inf


def test_results_as_csv_json_and_frame(tmp_path):
    pandas = pytest.importorskip("pandas")
    study = prudent.study(chain, {"length": [1, 13]}, [0.5], workers=1)
    study.to_csv(tmp_path / "rows.csv")
    read, table = pandas.read_csv(tmp_path / "rows.csv"), study.to_frame()
    assert list(read.columns) == list(table.columns)
    assert read["cvar"].tolist()[0] == table["cvar"].tolist()[0] == study.rows[0]["cvar"]
    assert table["cvar"].isna().tolist() == [False, True] and table["error"].tolist()[1].startswith("ZeroDivision")
    assert [row["length"] for row in study.to_dict()["rows"]] == [1, 13]
    with pytest.raises(prudent.PrudentError, match=r"rows.txt: a study's table is written as .csv"):
        study.to_csv(tmp_path / "rows.txt")


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent")
def test_ctrl_c_returns_what_is_done():
    def interrupting(length):
        if length == 2:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.3)  # until it is noticed
        return chain(length)

    with ThreadPoolExecutor(1) as executor:
        study = prudent.study(interrupting, {"length": range(1, 40)}, [0.5], executor)
    assert not study.complete and 2 <= len(study.rows) < 39
    assert "combinations are not finished" in str(study.table())


def test_a_solve_that_was_interrupted_is_not_done(monkeypatch):
    plan = prudent.solve(chain(1), 0.5)
    monkeypatch.setattr(study_module, "solve", lambda *_, **__: interrupted)
    interrupted = type(plan)(**vars(plan) | {"status": "interrupted"})
    study = prudent.study(chain, {"length": [1, 2]}, [0.5], workers=1)
    assert (study.rows, study.asked, study.complete) == ((), 2, False)


def test_a_future_that_was_cancelled_or_failed_is_a_row():
    cancelled, failed = Future(), Future()
    cancelled.cancel()
    failed.set_exception(MemoryError("too much"))
    for future, message in ((cancelled, "the solve was cancelled"), (failed, "MemoryError: too much")):
        assert study_module._fields(future, "exact", 0.5)["error"] == message


def test_solves_side_by_side_share_the_machine(monkeypatch):
    monkeypatch.setattr(study_module, "cores", lambda: 8)
    monkeypatch.setattr(study_module, "available_memory", lambda: 1000)
    assert study_module._share(None, 4, None, None) == {"memory": 200, "threads": 2}
    assert study_module._share(None, 16, "1GB", None) == {"memory": "1GB", "threads": 1}
    assert study_module._share(None, 4, None, 3)["threads"] == 3
    assert study_module._share(None, 1, None, None) == {"memory": None, "threads": None}
    assert study_module._share("an executor", 1, None, None) == {"memory": None, "threads": 1}
    assert study_module._processes(None, None, 100) == 8 and study_module._processes(None, 3, 2) == 2
    assert study_module._processes(None, None, 100, "gpu") == 1 and study_module._processes(None, 3, 9, "gpu") == 3


def test_a_gpu_is_sought_where_the_solves_are(monkeypatch):
    def no_gpu():
        raise prudent.PrudentError("there is no GPU here")

    monkeypatch.setattr("prudent.runtime.gpu.open_gpu", no_gpu)
    with pytest.raises(prudent.PrudentError, match="there is no GPU here"):
        prudent.study("figure-2", {}, [0.5], device="gpu")
    with ThreadPoolExecutor(1) as executor:
        study = prudent.study("figure-2", {}, [0.5], executor, device="gpu")
        assert study.failed[0]["error"] == "there is no GPU here"
        with pytest.raises(prudent.PrudentError, match="device is 'tpu'"):
            prudent.study("figure-2", {}, [0.5], executor, device="tpu")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"make": "bettinggame"}, "bettinggame is neither a domain nor a file; .*; did you mean betting-game"),
        ({"make": 3}, "make is a int; it must be the name of a domain or a function"),
        ({"grid": [1]}, r"grid is \[1\]; it must be a mapping"),
        ({"grid": {"stages": 3}}, r"grid\['stages'\] is 3; it must be a sequence"),
        ({"grid": {"stages": []}}, r"grid\['stages'\] is empty"),
        ({"grid": {"stages": [3, 3]}}, "stages has 3 twice"),
        (
            {"grid": {"stage": [3]}},
            "grid does not match the parameters of make: got an unexpected keyword argument 'stage'",
        ),
        ({"grid": {"step": [3]}}, "grid has the parameter 'step', which is the name of a column of the result"),
        ({"grid": {3: [3]}}, "grid has the parameter 3; the name of a parameter must be a str"),
        ({"alphas": 0.1}, r"alphas is 0.1; it must be a sequence, such as \[0.05"),
        ({"alphas": [2]}, "alphas is 2; it must be the worst fraction of runs"),
        ({"alphas": [0.1, 0.1]}, "alphas has 0.1 twice"),
        ({"method": "best"}, "method is 'best'; it must be one of"),
        ({"gap": -1}, "gap is -1"),
        ({"memory": "much"}, "memory is 'much'"),
        ({"workers": 0}, "workers is 0; it must be a whole number, from 1 to 1024"),
        ({"executor": 3}, "executor is a int"),
        ({"executor": ThreadPoolExecutor(1), "workers": 2}, "workers is for processes on this machine"),
        ({"keep": "rows.csv"}, "rows.csv: a study's rows are kept as .jsonl"),
        ({"make": lambda n: n, "grid": {"n": [1, 2]}, "workers": 2}, "make cannot be sent to another process"),
    ],
)
def test_what_is_wrong_is_said_at_once(change, message):
    asked = {"make": "betting-game", "grid": {"stages": [2]}, "alphas": [0.5], **change}
    with pytest.raises(prudent.PrudentError, match=message):
        prudent.study(**asked)


class Road:
    """Something that a model is made from."""

    def __init__(self, length):
        self.length = length


class NamedRoad(Road):
    def __repr__(self):
        return f"NamedRoad({self.length})"


def along(road):
    return chain(road.length)


def test_what_is_kept_must_be_told_again_in_another_run(tmp_path):
    asked = {"alphas": [0.5], "workers": 1, "keep": tmp_path / "rows.jsonl"}
    for road in (Road(1), [Road(1)], chain):
        with pytest.raises(prudent.PrudentError, match=r"grid\['road'\] has .* at 0x.*; give its class a __repr__"):
            prudent.study(along, {"road": [road]}, **asked)
    assert not asked["keep"].exists()
    assert prudent.study(along, {"road": [Road(1)]}, **asked | {"keep": None}).failed == ()
    first, again = (prudent.study(along, {"road": [NamedRoad(1)]}, **asked).rows[0] for _ in range(2))
    assert first["seconds"] == again["seconds"]  # it was not solved again


def no_more_than(most):
    """A model that costs 1, or 2 without a limit."""
    return prudent.build(0, {0: {"go": [(1, 1, 2 if most is None else 1)]}})


def test_infinite_and_unknown_parameters_are_told_apart(tmp_path):
    asked = {"alphas": [0.5], "workers": 1, "keep": tmp_path / "rows.jsonl"}
    assert [row["cvar"] for row in prudent.study(no_more_than, {"most": [math.inf]}, **asked).rows] == [1]
    values = [None, math.inf, -math.inf, math.nan]
    study = prudent.study(no_more_than, {"most": values}, **asked)
    assert [row["cvar"] for row in study.rows] == [2, 1, 1, 1]
    again = prudent.study(no_more_than, {"most": values}, **asked)
    assert [row["seconds"] for row in again.rows] == [row["seconds"] for row in study.rows]  # nothing was solved again
