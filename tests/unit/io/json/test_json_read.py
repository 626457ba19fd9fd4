import gzip
import json
import os
import time
import tracemalloc
from contextlib import nullcontext

import numpy as np
import pytest
from click.testing import CliRunner

import prudent
from prudent.apps.cli.main import main


@pytest.mark.parametrize("suffix", [".json", ".json.gz"])
@pytest.mark.parametrize("name", ["figure_2", "betting_game"])
def test_round_trip_keeps_every_digit(tmp_path, name, suffix):
    model = getattr(prudent.domains, name)()
    path = tmp_path / f"model{suffix}"
    prudent.save(model, path)
    again = prudent.load(path)
    assert again.n_outcomes == model.n_outcomes
    assert sorted(again.probability.tolist()) == sorted(model.probability.tolist())
    for alpha in (0.1, 0.5):
        one, other = prudent.solve(model, alpha), prudent.solve(again, alpha)
        assert one.cvar == pytest.approx(other.cvar, rel=1e-13)
        assert one.expected == pytest.approx(other.expected, rel=1e-13)
    prudent.save(again, tmp_path / f"again{suffix}")
    assert (tmp_path / f"again{suffix}").read_bytes() == path.read_bytes()
    assert not list(tmp_path.glob(".*.tmp"))


def test_awkward_digits_and_an_initial_distribution(tmp_path):
    table = {"a": {0: [(1 / 3, "g", 0.1 + 0.2), (2 / 3, "b", 1e-3)]}, "b": {0: [(1, "g", -7.7)]}, "g": {}}
    model = prudent.build({"a": 1 / 3, "b": 2 / 3}, table.__getitem__)
    prudent.save(model, tmp_path / "m.json")
    again = prudent.load(tmp_path / "m.json")
    assert np.array_equal(again.cost, model.cost)
    assert np.array_equal(again.probability, model.probability)
    assert np.array_equal(again.initial_probability, model.initial_probability)
    assert again.fingerprint == model.fingerprint
    assert again.name == "m"


def test_names_that_coincide_are_refused_and_nothing_is_written(tmp_path):
    model = prudent.build(1, lambda s: {"a": [(1, "1", 1)]} if s == 1 else {})
    with pytest.raises(prudent.PrudentError, match="two states are both written '1'"):
        prudent.save(model, tmp_path / "m.json")
    assert list(tmp_path.iterdir()) == []


GOOD = {
    "format": "prudent-ssp",
    "version": 1,
    "initial": "s",
    "goals": ["g"],
    "transitions": [{"state": "s", "action": "a", "outcomes": [{"p": 1, "to": "g", "cost": 2.5}]}],
}


def changed(**changes):
    return {**GOOD, **changes}


def outcome(**changes):
    row = {"p": 1, "to": "g", "cost": 2.5, **changes}
    return changed(transitions=[{"state": "s", "action": "a", "outcomes": [row]}])


BAD = [
    ("{", "line 1, column 2: "),
    ('{"a": 1,\n "b": }', "line 2, column 7: "),
    ("[]", "the document is a list; it must be an object"),
    ('{"format": "x", "format": "y"}', "an object has the field 'format' twice"),
    (changed(format="other"), 'format is "other"; it must be "prudent-ssp"'),
    (changed(version=2), "version is 2; this release reads version 1"),
    ({k: v for k, v in GOOD.items() if k != "goals"}, "the document has no 'goals'"),
    (changed(extra=1), "the document has an unknown field 'extra'"),
    (changed(goals="g"), 'goals is "g"; it must be a list'),
    (changed(goals=["g", 7]), "goals[1] is 7; it must be a string"),
    (changed(goals=["g", "s"]), "goals[1]: goal 's' has transitions"),
    (changed(initial=3), "initial is 3; it must be a state or an object of probabilities"),
    (changed(initial="t"), "initial: state 't' has no transitions and is not a goal"),
    (changed(initial={"s": 0.5}), "initial probabilities sum to 0.5"),
    (changed(initial={"s": "all"}), 'initial.s is "all"; it must be a number'),
    (changed(transitions=[3]), "transitions[0] is 3; it must be an object"),
    (outcome(p="half"), 'transitions[0].outcomes[0].p is "half"; it must be a number'),
    (outcome(p=True), "transitions[0].outcomes[0].p is true; it must be a number"),
    (outcome(p=0.9), "probabilities of state 's', action 'a' sum to 0.9"),
    (outcome(to="h"), "transitions[0].outcomes[0].to: state 'h' has no transitions and is not a goal"),
    (outcome(cost=None), "transitions[0].outcomes[0].cost is null; it must be a number"),
    (json.dumps(outcome(cost=0)).replace('"cost": 0', '"cost": Infinity'), "Infinity is not allowed"),
    (
        json.dumps(outcome(cost=0)).replace('"cost": 0', '"cost": 1e999'),
        "outcomes[0]: state 's', action 'a' has an outcome of cost inf",
    ),
    (outcome(cost=10**400), "cost is too large"),
    (outcome(p=1.5), "has an outcome of probability 1.5; probabilities lie between 0 and 1"),
    (outcome(p=-0.5), "has an outcome of probability -0.5; probabilities lie between 0 and 1"),
    (
        json.dumps(outcome(cost=0)).replace('"cost": 0', '"cost": 1' + "0" * 5000),
        "whole number with thousands of digits",
    ),
    (changed(format=["x"]), "format is a list; it must be"),
    (json.dumps(changed(format=0)).replace('"format": 0', '"format": ' + "[" * 900 + "]" * 900), "format is a list"),
    (changed(version=True), "version is true; it must be a whole number"),
    (changed(version=1.0), "version is 1.0; it must be a whole number"),
    (changed(initial={}), "initial names no state"),
    (changed(initial={"s\ud800": 1}), r"initial: state 's\ud800' has no transitions"),
    (changed(initial={"s": 0.5, "g\n": None}), r"initial: state 'g\n' has no transitions"),
    (changed(goals=["g", "g\ud800"], initial={"g\ud800": None}), r"initial.'g\ud800' is null; it must be a number"),
    (changed(goals=["g", {}]), "goals[1] is an object; it must be a string"),
    (changed(states=["s"]), "states must list each state"),
    (changed(states=[["s"], "g"]), "states[0] is a list; it must be a string"),
    (changed(transitions=[]), "initial: state 's' has no transitions"),
    ("\ufeff" + json.dumps(GOOD), "Unexpected UTF-8 BOM"),
    (json.dumps(GOOD).encode("utf-16"), "not UTF-8 text"),
    (json.dumps(GOOD).encode() + b"\0", "Extra data"),
    ("", "line 1, column 1: "),
    (changed(transitions=GOOD["transitions"] * 2), "state 's' has two actions named 'a'"),
    ("[" * 100_000, "nested too deeply"),
    (b"\xff\xfe{}", "not UTF-8 text"),
]


@pytest.mark.parametrize(("content", "message"), BAD)
def test_bad_files_are_refused_at_the_place(tmp_path, content, message):
    path = tmp_path / "bad.json"
    raw = content if isinstance(content, bytes) else content if isinstance(content, str) else json.dumps(content)
    path.write_bytes(raw if isinstance(raw, bytes) else raw.encode())
    with pytest.raises(prudent.PrudentError) as caught:
        prudent.load(path)
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(path))


def test_files_that_are_not_there_or_of_no_known_kind(tmp_path):
    with pytest.raises(prudent.PrudentError, match="no such file"):
        prudent.load(tmp_path / "none.json")
    with pytest.raises(prudent.PrudentError, match="unknown kind of file"):
        prudent.load(tmp_path / "model.xml")
    with pytest.raises(prudent.PrudentError, match="cannot be written"):
        prudent.save(prudent.domains.figure_2(), tmp_path / "no" / "folder.json")
    (tmp_path / "cut.json.gz").write_bytes(gzip.compress(b"{}" * 1000)[:20])
    with pytest.raises(prudent.PrudentError, match="cannot be read"):
        prudent.load(tmp_path / "cut.json.gz")
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(prudent.PrudentError, match="it is not a plain file"):
        prudent.load(tmp_path / "folder.json")
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(prudent.PrudentError, match="it is not a plain file"):
        prudent.load(tmp_path / "pipe.json")
    for act in (prudent.load, lambda path: prudent.save(prudent.domains.figure_2(), path)):
        with pytest.raises(prudent.PrudentError, match=r"'a\\x00.json': cannot be"):
            act("a\0.json")


def test_a_name_as_long_as_a_file_may_have(tmp_path):
    path = tmp_path / ("n" * 250 + ".json")
    prudent.save(prudent.domains.figure_2(), path)
    assert prudent.load(path).n_states == 4


def test_names_that_a_terminal_cannot_print_or_would_obey(tmp_path):
    red = "g\x1b[31m"
    row = {"state": "s\ud800", "action": "a\ud801", "outcomes": [{"p": 1, "to": red, "cost": 2.5}]}
    (tmp_path / "odd.json").write_text(json.dumps(changed(initial="s\ud800", goals=[red], transitions=[row])))
    model, plan = str(tmp_path / "odd.json"), str(tmp_path / "p.safetensors")
    for arguments in (
        ["check", model],
        ["solve", model, "--alpha", "0.5", "--decisions", "--save", plan],
        ["solve", model, "--alpha", "0.5", "--json"],
        ["evaluate", model, plan],
        ["simulate", model, plan, "--episodes", "3", "--paths", "1"],
    ):
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == 0, result.output
        assert "\x1b" not in result.stdout
        assert "\\ud800" in result.stdout or arguments[0] in ("check", "evaluate") or "--json" in arguments


def refusal(path, raw):
    path.write_bytes(raw)
    with pytest.raises(prudent.PrudentError) as caught:
        prudent.load(path)
    return caught.value


def test_what_inflates_beyond_all_measure_is_refused(tmp_path):
    bomb = gzip.compress(b" " * 2**26)
    tracemalloc.start()
    try:
        assert "inflates to more than 200 times" in str(refusal(tmp_path / "bomb.json.gz", bomb))
        assert tracemalloc.get_traced_memory()[1] < 3 * 2**24
    finally:
        tracemalloc.stop()


def test_gzip_that_is_damaged_or_in_many_pieces(tmp_path):
    path, raw = tmp_path / "m.json.gz", json.dumps(GOOD).encode()
    path.write_bytes(b"".join(gzip.compress(raw[i : i + 10]) for i in range(0, len(raw), 10)))
    assert prudent.load(path).n_states == 2
    whole = gzip.compress(raw)
    for content in (b"", b"\x1f", raw, whole[:-1], whole + b"x", whole[:30] + b"\xff" * 9 + whole[39:]):
        refusal(path, content)


def test_the_first_hundred_problems_are_listed_and_the_others_counted(tmp_path):
    error = refusal(tmp_path / "many.json", json.dumps(changed(transitions=[0] * 5000)).encode())
    assert len(error.problems) == 101
    assert error.problems[99].endswith("transitions[99] is 0; it must be an object")
    # beside those, the start is no state, and the model is made of its one goal
    assert error.problems[100].endswith("4,901 more problems are not listed; fix these first")


def rows(n, state="s{}", action="a", outcome='{"p": 1, "to": "g", "cost": 1}', count=1):
    listed = ", ".join([outcome] * count)
    return ", ".join(
        f'{{"state": "{state}", "action": "{action}", "outcomes": [{listed}]}}'.replace("{}", str(i)) for i in range(n)
    )


def document(transitions="", goals='"g"', initial='"g"', more=""):
    head = f'{{"format": "prudent-ssp", "version": 1, "initial": {initial}, "goals": [{goals}]'
    return f'{head}, "transitions": [{transitions}]{more}}}'


N = 20_000
LONG = "\x7f" * N  # four times as long where it is shown
GREEDY = {
    "empty lists": "[" + ",".join(["[]"] * N) + "]",
    "empty objects": "[" + ",".join(["{}"] * N) + "]",
    "tiny objects": "[" + ",".join(['{"":0}'] * N) + "]",
    "deep lists": "[" + ",".join(["[" * 800 + "]" * 800] * 100) + "]",
    "deep objects": "[" + ",".join(['{"":' * 800 + "0" + "}" * 800] * 30) + "]",
    "deep lists, wide characters": '["\U0001f600", ' + ",".join(["[" * 800 + "]" * 800] * 100) + "]",
    "wide characters": '["\U0001f600", ' + ",".join(["[[]]"] * N) + "]",
    "twins": "{" + ",".join(f'"{i}":0' for i in range(N)) + ',"0":0}',
    "long digits": "[" + "0." + "1" * N + "," + "1e" + "9" * N + "]",
    "cut off": "[" * 700 + ",".join(["[]"] * N),
    "no rows": document(",".join(["0"] * N)),
    "no outcomes": document(rows(2000, outcome="0", count=20)),
    "strangers": document(rows(2000, outcome='{"p": 1, "to": "s9{}x", "cost": 1}')),
    "strangers with one letter": document(
        rows(400, state="a" * 35 + "{}", outcome='{"p": 1, "to": "' + "a" * 40 + '", "cost": 1}', count=9)
    ),
    "goals with rows": document(rows(2000), goals=",".join(f'"s{i}"' for i in range(2000))),
    "twin goals": document(goals=",".join(['"g"'] * N)),
    "odd goals": document(goals=",".join(["[]"] * N)),
    "odd initial": document(initial="{" + ",".join(f'"s{i}":[]' for i in range(N)) + "}"),
    "twin actions": document(rows(3000, state="s")),
    "long names": document(rows(30, state=LONG, outcome='{"p": 2, "to": "g", "cost": 1e999}', count=20)),
    "long actions": document(rows(30, state="s", action=LONG, outcome="", count=1)),
    "one long name": document(rows(1, state=LONG, outcome='{"p": 0.1, "to": "g", "cost": 1}', count=20)),
    "long field": '{"' + LONG + '": 0}',
    "good": document(rows(2000)),
    "many outcomes": document(rows(1, outcome='{"p":0.0001,"to":"g","cost":1}', count=10000), initial='"s0"'),
}


ACCEPTED = ("twin goals", "good", "many outcomes")
WHY = {
    "twins": "an object has the field '0' twice",
    "cut off": "not valid JSON: line 1, column 60700",
    "no rows": "is 0; it must be an object",
    "no outcomes": "is 0; it must be an object",
    "strangers": "state 's90x' has no transitions and is not a goal",
    "strangers with one letter": "has no transitions and is not a goal",
    "goals with rows": "goal 's0' has transitions",
    "odd goals": "is a list; it must be a string",
    "odd initial": "state 's0' has no transitions and is not a goal",
    "twin actions": "state 's' has two actions named 'a'",
    "long names": r"transitions\[0\]\.outcomes\[0\]: state '\\x7f",
    "long actions": "state 's' has two actions named",
    "one long name": "probabilities of state",
    "long field": "the document has no 'format'",
}


def peak_and_time(path, raw, kind):
    """What loading or refusing takes at most, in bytes, and how long it computes."""
    refused = pytest.raises(prudent.PrudentError, match=WHY.get(kind, "the document is a list; it must be an object"))
    path.write_bytes(raw)
    prudent.load  # noqa: B018  # imported now: that is not the file's doing
    tracemalloc.start()
    began = time.thread_time()
    try:
        with nullcontext() if kind in ACCEPTED else refused:
            prudent.load(path)
    finally:
        took, peak = time.thread_time() - began, tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak, took


@pytest.fixture(scope="module")
def usual(tmp_path_factory):
    """How long a good file takes, and how long it is."""
    raw = GREEDY["good"].encode()
    return peak_and_time(tmp_path_factory.mktemp("good") / "good.json", raw, "good")[1], len(raw)


@pytest.mark.parametrize("kind", GREEDY)
def test_memory_and_time_are_in_proportion_to_the_file(tmp_path, kind, usual):
    raw, (seconds, length) = GREEDY[kind].encode(), usual
    peak, took = peak_and_time(tmp_path / "greedy.json", raw, kind)
    assert peak <= 64 * len(raw) + 2**20
    assert took <= 500 * seconds * max(len(raw) / length, 1)


def bounded(**changes):
    outcomes = [
        {"p": 0.5, "to": "g", "cost": 1, "low": 0.4, "high": 0.6, "count": 5},
        {"p": 0.5, "to": "g", "cost": 2, "low": 0.4, "high": 0.6, "count": 5} | changes,
    ]
    outcomes = [{name: value for name, value in outcome.items() if value is not None} for outcome in outcomes]
    transitions = [{"state": "s", "action": "a", "outcomes": outcomes}]
    return {"format": "prudent-ssp", "version": 1, "initial": "s", "goals": ["g"], "transitions": transitions}


def test_counts_and_bounds_come_back(tmp_path):
    path = tmp_path / "m.json"
    path.write_text(json.dumps(bounded()), encoding="utf-8")
    model = prudent.load(path)
    assert (model.count.tolist(), model.intervals.low.tolist()) == ([5, 5], [0.4, 0.4])
    assert prudent.solve(model, 0.3, uncertainty="own").upper == pytest.approx(2)
    assert prudent.solve(model, 1.0, uncertainty="own").upper == pytest.approx(1.6)
    prudent.save(model, tmp_path / "again.json")
    again = prudent.load(tmp_path / "again.json")
    assert (again.count.tolist(), again.intervals.high.tolist()) == ([5, 5], [0.6, 0.6])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"count": -1}, "an outcome of count -1.0; counts are finite numbers, at least 0"),
        ({"count": "many"}, "count"),
        ({"count": None}, "some outcomes have a count and others have none"),
        ({"low": 0.7}, r"an outcome of low 0.7, high 0.6; 0 <= low <= high <= 1 must hold"),
        ({"high": None}, "only one of low and high"),
        ({"high": 1.5}, "0 <= low <= high <= 1 must hold"),
        ({"wide": 1}, "wide"),
    ],
)
def test_bad_counts_and_bounds_are_refused(tmp_path, changes, message):
    path = tmp_path / "m.json"
    path.write_text(json.dumps(bounded(**changes)), encoding="utf-8")
    with pytest.raises(prudent.PrudentError, match=message):
        prudent.load(path)


def test_one_kind_of_problem_does_not_hide_another(tmp_path):
    def row(state, action, *outcomes):
        return {
            "state": state,
            "action": action,
            "outcomes": [dict(zip(("p", "to", "cost"), o, strict=True)) for o in outcomes],
        }

    path = tmp_path / "bad.json"
    rows = [
        row("s", "a", (0.5, "g", 1)),
        row("s", "a", (1.5, "h", 1)),
        row("t", "a", (1, "g", "x")),
        row("t", "b"),
        row("t", "c", (0.5, "g", 1), (0.6, "g", 2)),
    ]
    content = {**GOOD, "extra": 1, "more": 2, "initial": "nowhere", "goals": ["g", 3], "transitions": rows}
    path.write_text(json.dumps(content))
    report = prudent.check(path)
    words = [
        "unknown field 'extra'",
        "unknown field 'more'",
        "goals[1] is 3",
        "an outcome of probability 1.5",
        "outcomes[0].cost is",
        "initial: state 'nowhere'",
        "two actions named 'a'",
        "action 'b' has no outcomes",
        "state 's', action 'a' sum to 0.5",
        "state 't', action 'c' sum to 1.1",
    ]
    assert [word for word in words if not any(word in problem for problem in report.problems)] == []
    assert len(report.problems) == len(words)
    path.write_text(json.dumps({"format": "prudent-ssp", "goals": [], "extra": 1}))
    assert len(prudent.check(path).problems) == 4  # version, initial, transitions; extra
