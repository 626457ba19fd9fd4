import gzip
import json

import numpy as np
import pytest

import prudent


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
    (changed(format="other"), "format is 'other'; it must be 'prudent-ssp'"),
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
    (json.dumps(outcome(cost=0)).replace('"cost": 0', '"cost": Infinity'), "Infinity is not a number"),
    (json.dumps(outcome(cost=0)).replace('"cost": 0', '"cost": 1e999'), "has an outcome of cost inf"),
    (outcome(cost=10**400), "cost is too large"),
    (changed(transitions=GOOD["transitions"] * 2), "state 's' has two actions named 'a'"),
    ("[" * 100_000, "nested too deeply"),
    (b"\xff\xfe{}", "is not UTF-8 text"),
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
