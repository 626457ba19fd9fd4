import time
import tracemalloc

import numpy as np
import pytest

import prudent
from prudent.domains.navigation import read_traffic, synthetic_roads

CELL = "[{3.5: 0.5, 148.51999999999998: 0.5, 'ID': 'freeway', 'start': 1, 'end': 2}]"
STREET = "[{5.0: 0.5, 7.25: 0.49, 9.0: 0.01, 'ID': 'non-freeway', 'start': 1, 'end': 2}]"


def write(tmp_path, *rows):
    path = tmp_path / "roads.csv"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return str(path)


def test_a_small_file(tmp_path):
    path = write(tmp_path, ",1,2,3", f'1,-,"{CELL}","{STREET}"', f'2,-,-,"{STREET}"', "3,-,-,-")
    roads = read_traffic(path)
    assert roads["1"][0] == ("2", True, {3.5: 0.5, 148.519: 0.5})  # cut to seven characters
    model = prudent.domains.autonomous_navigation(path, start="1", goal="3", noise=False)
    assert (model.n_states, model.n_actions) == (3, 3)
    street = [o for o in range(model.n_outcomes) if model.cost[o] in (5.0, 7.25)]
    assert model.probability[street].tolist() == pytest.approx([0.5 / 0.99, 0.49 / 0.99] * 2)  # the rare bin is gone
    noisy = prudent.domains.autonomous_navigation(path, start="1", goal="3")
    draw = 0.1 * (2357136044 + 2546248239 * 2**32) / 2**64  # the first outputs of MT19937 seeded with 0
    jam = noisy.probability[np.flatnonzero(noisy.cost == 148.519)[0]]
    assert jam == pytest.approx((0.5 + draw) / (1 + draw), rel=1e-15)


BAD = [
    ([], "line 1 must have an empty first cell, then the names"),
    (["x,1,2"], "line 1 must have an empty first cell, then the names of the junctions"),
    ([",1,1", "1,-,-", "1,-,-"], "line 1 names the junction '1' twice"),
    ([",1,2", "2,-,-", "1,-,-"], "the first column must name the junctions of line 1"),
    ([",1,2", "1,-", "2,-,-"], "line 2 has 2 cells; line 1 has 3"),
    ([",1,2", "1,-,fast", "2,-,-"], "line 2, column 2: 'fast' must be '-' or a list of one dict"),
    ([",1,2", "1,-,\"[{a: 0.5, 'ID': 'freeway'}]\"", "2,-,-"], "'a: 0.5' must have the form minutes: probability"),
    (
        [",1,2", "1,-,\"[{1.0: 1.5, 'ID': 'freeway'}]\"", "2,-,-"],
        "must be minutes of at least 0, with at most 7 digits, and a probability",
    ),
    ([",1,2", '1,-,"[{1.0: 1.0}]"', "2,-,-"], "must have an 'ID' of 'freeway' or 'non-freeway'"),
    ([",1,2", "1,-,\"[{1.0: 0.0, 'ID': 'freeway'}]\"", "2,-,-"], "and probabilities above 0"),
    ([",1,2", "1,-,\"[{1_0: 1.0, 'ID': 'freeway'}]\"", "2,-,-"], "'1_0: 1.0' must have the form minutes: probability"),
    ([",1,2", "1,-,\"[{1.0: 1_0e-1, 'ID': 'freeway'}]\"", "2,-,-"], "must have the form minutes: probability"),
    ([",1,2", '1,-,"[{}]"', "2,-,-"], "'' must have the form minutes: probability"),
    ([",1,2", "1,-,\"[{nan: 1.0, 'ID': 'freeway'}]\"", "2,-,-"], "'nan: 1.0' must be minutes of at least 0"),
    ([",1,2", "1,-,\"[{inf: 1.0, 'ID': 'freeway'}]\"", "2,-,-"], "'inf: 1.0' must be minutes of at least 0"),
    ([",1,2", "1,-,\"[{1e999: 1.0, 'ID': 'freeway'}]\"", "2,-,-"], "'1e999: 1.0' must be minutes of at least 0"),
    ([",1,2", "1,-,\"[{-1.0: 1.0, 'ID': 'freeway'}]\"", "2,-,-"], "'-1.0: 1.0' must be minutes of at least 0"),
    ([",1,2", "1,-,\"[{12345678: 1.0, 'ID': 'freeway'}]\"", "2,-,-"], "with at most 7 digits"),
    ([",1,2", "1,-,\"[{1.0: nan, 'ID': 'freeway'}]\"", "2,-,-"], "and a probability"),
    ([",1,2", "1,-,\"[{1.0: 0.5, 'ID': 'freeway'}]\"", "2,-,-"], "the probabilities sum to 0.5; they must sum to 1"),
    ([",1,2", "1,-,\"[{1.0: 0.9, 2.0: 0.9, 'ID': 'freeway'}]\"", "2,-,-"], "the probabilities sum to 1.8"),
    ([",1,2", "1,-,-"], "in the same order; it ends before 2"),
    ([",1,2", "1,-,-", "2,-,-", ""], "line 4: the first column must name"),
    ([",1,2", "1,-,-", "", "2,-,-"], "line 3: the first column must name"),
    ([",1,2", "1,-,-", "2,-,-", "3,-,-"], "line 4: the first column must name"),
    ([",1," + "2" * 200_000], "is not a CSV file: field larger than field limit"),
    ([",1,\0", "1,-,x", "\0,-,-"], r"line 2, column '\x00': 'x' must be '-' or a list"),
]


@pytest.mark.parametrize(("rows", "message"), BAD)
def test_malformed_files(tmp_path, rows, message):
    with pytest.raises(prudent.PrudentError) as caught:
        read_traffic(write(tmp_path, *rows) if rows else write(tmp_path, ""))
    assert message in str(caught.value)


def test_files_and_junctions_that_are_not_there(tmp_path):
    with pytest.raises(prudent.PrudentError, match="no such file"):
        prudent.domains.autonomous_navigation(str(tmp_path / "none.csv"))
    with pytest.raises(prudent.PrudentError, match="it is not a plain file"):
        prudent.domains.autonomous_navigation(str(tmp_path))
    with pytest.raises(prudent.PrudentError, match=r"'a\\x00.csv': cannot be read"):
        prudent.domains.autonomous_navigation("a\0.csv")
    (tmp_path / "latin.csv").write_bytes(b",\xff,2\n")
    with pytest.raises(prudent.PrudentError, match="is not a CSV file"):
        prudent.domains.autonomous_navigation(str(tmp_path / "latin.csv"))
    with pytest.raises(prudent.PrudentError, match="start is 'A99', which is not a junction; did you mean"):
        prudent.domains.autonomous_navigation(start="A99")
    with pytest.raises(prudent.PrudentError, match="seed is -1"):
        prudent.domains.autonomous_navigation(seed=-1)


def test_the_invented_network_is_like_the_real_one():
    roads, place = synthetic_roads(0)
    assert len(roads) == len(place) == 184
    freeway = [d for edges in roads.values() for _, fast, d in edges if fast]
    street = [d for edges in roads.values() for _, fast, d in edges if not fast]
    mean = [sum(m * p for m, p in d.items()) / sum(d.values()) for d in freeway]
    assert 5 < np.mean(mean) < 9
    assert 90 < np.median([max(d) for d in freeway]) < 170
    mean = [sum(m * p for m, p in d.items()) / sum(d.values()) for d in street]
    assert 12 < np.mean(mean) < 20
    assert np.median([len(edges) for edges in roads.values()]) in (10, 11, 12)
    assert synthetic_roads(0) == (roads, place)
    assert synthetic_roads(1)[0] != roads


def test_the_trade_off_on_it_is_real():
    model = prudent.domains.autonomous_navigation()
    mean = prudent.solve(model, 0.05, method="expected", step=0.1)
    safe = prudent.solve(model, 0.05, step=0.1)
    assert safe.cvar < 0.9 * mean.cvar
    assert safe.expected > 1.01 * mean.expected


N = 30_000
WIDE = ",".join(f"{i:x}" for i in range(400))
GREEDY = {
    "empty lines": "\n" * N,
    "empty lines at the end": ",1\n1,-\n" + "\n" * N,
    "short lines": ",a\n" + "a\n" * N,
    "commas": "," * N,
    "names": "," + ",".join(f"{i:x}" for i in range(N)),
    "wide names": "," + ",".join(f"\u0101{i:x}" for i in range(N)) + ",\U0001f600",
    "cells": f",{WIDE}\n" + "".join(f"{i:x},{','.join('-' * 400)}\n" for i in range(400)),
    "edges": f",{WIDE}\n0," + ",".join(["\"[{1: 1, 'ID': 'freeway'}]\""] * 400),
    "durations": ',1\n1,"[{' + "".join(f"{i}: 1e-9, " for i in range(9000)) + "'ID': 'freeway'}]\"",
    "brackets": ',1\n1,"' + "[{" * 50_000 + '"',
    "closing brackets": ',1\n1,"[{' + "}]" * 50_000 + 'x"',
    "separators": ',1\n1,"[{' + ", " * 50_000 + '}]"',
    "digits": ',1\n1,"[{' + "9" * 100_000 + ': 1}]"',
    "quotes": '"' * N,
}


WHY = {
    "empty lines": "line 1 must have an empty first cell, then the names",
    "empty lines at the end": "line 3: the first column must name",
    "short lines": "line 2 has 1 cells",
    "commas": "line 1 names the junction '' twice",
    "names": "it ends before 0",
    "wide names": "it ends before \u01010",
    "cells": "line 402: the first column must name",
    "edges": "it ends before 1",
    "durations": "the probabilities sum to 9e-06",
    "brackets": "must be '-' or a list of one dict",
    "closing brackets": "must be '-' or a list of one dict",
    "separators": "'' must have the form minutes: probability",
    "digits": "must be minutes of at least 0",
    "quotes": "line 1 must have an empty first cell, then the names",
}


def peak_and_time(path, why):
    """What it takes at most to refuse a file, in bytes, and how long that computes."""
    tracemalloc.start()
    began = time.thread_time()
    try:
        with pytest.raises(prudent.PrudentError, match=f"^{path}: .*{why}|^{path}: {why}"):
            read_traffic(path)
    finally:
        took, peak = time.thread_time() - began, tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak, took


@pytest.mark.parametrize("kind", GREEDY)
def test_memory_and_time_are_in_proportion_to_the_file(tmp_path, kind):
    size, usual_size = (len(GREEDY[name].encode()) for name in (kind, "durations"))
    peak, took = peak_and_time(write(tmp_path, GREEDY[kind]), WHY[kind])
    usual = peak_and_time(write(tmp_path, GREEDY["durations"]), WHY["durations"])[1]
    assert peak <= 64 * size + 2**20
    assert took <= 500 * usual * max(size / usual_size, 1)
