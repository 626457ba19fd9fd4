"""UMB files: models come back to the last bit, and what anybody may have made of a file is read right or refused."""

import gzip
import io
import json
import lzma
import tarfile
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings

import prudent
from prudent.io.properties import reward_property
from prudent.io.umb.archive import packed
from prudent.io.umb.read import parse
from prudent.io.umb.write import members_of
from strategies import cases, examples, solvable
from umb_by_hand import BOOL, assert_same, by_hand, load, real, whole


def again(model: prudent.SSP, tmp_path) -> prudent.SSP:
    prudent.save(model, tmp_path / "model.umb")
    return prudent.load(tmp_path / "model.umb")


@pytest.mark.parametrize("name", ["figure_2", "betting_game", "inventory_control", "autonomous_navigation"])
def test_round_trip_to_the_last_bit(tmp_path, name):
    model = getattr(prudent.domains, name)()
    found = again(model, tmp_path)
    assert_same(found, model)
    assert found.name == "model"
    raw = (tmp_path / "model.umb").read_bytes()
    prudent.save(found, tmp_path / "model.umb")
    assert (tmp_path / "model.umb").read_bytes() == raw
    assert not list(tmp_path.glob(".*.tmp"))


@settings(max_examples=examples(100))
@given(case=cases())
def test_round_trip_of_random_models(case):
    with solvable():
        model = case.model
    assert_same(parse(packed(members_of(model)), Path("m.umb")), model)


def test_awkward_models_come_back(tmp_path):
    odd = {
        "a": {
            "": [(1 / 3, "g", 0.1 + 0.2), (2 / 3, "g", -0.0)],
            "é": [(0.5, "b", 1e-300), (0.25, "b", 2), (0.25, "b", 3)],
        },
        "b": {"ü": [(0.1, "a", 1e300), (0.2, "a", 2), (0.7, "g", -7.7)], "": [(1, "g", 0)]},
    }
    assert_same(
        again(prudent.build({"b": 1 / 3, "a": 2 / 3}, odd), tmp_path), prudent.build({"b": 1 / 3, "a": 2 / 3}, odd)
    )
    numbered = prudent.from_arrays([0, 0, 1, 2, 2], [0, 2, 3], [0.5, 0.5, 1], [0, 2, 3], [1, 2, 3], initial=1)
    found = again(numbered, tmp_path)
    assert_same(found, numbered)
    assert found.state_names is None and found.action_names is None
    only_goal = prudent.build("g", {})
    assert_same(again(only_goal, tmp_path), only_goal)
    twice = prudent.from_arrays([0, 1, 1], [0, 3], [0.5, 0.25, 0.25], [1, 1, 1], [1.0, 1.0, 2.0])
    assert_same(again(twice, tmp_path), twice)


def test_a_chain_is_written_as_one_and_auxiliary_states_only_where_needed():
    def system(model):
        return json.loads(members_of(model)["index.json"])["transition-system"]

    chain = prudent.build("a", {"a": {"go": [(0.5, "g", 1), (0.5, "a", 2)]}})
    assert system(chain)["#players"] == 0
    assert (system(chain)["#states"], system(chain)["#choices"], system(chain)["#branches"]) == (2, 2, 3)
    several = prudent.build("a", {"a": {"go": [(1, "g", 1)], "wait": [(0.5, "g", 1), (0.5, "g", 2)]}})
    assert system(several)["#players"] == 1
    assert system(several)["#states"] == 3  # one more: two ways to the goal that cost differently
    assert b"choices" in members_of(prudent.domains.betting_game())["index.json"]
    drawn = prudent.build({"a": 0.5, "g": 0.5}, {"a": {"go": [(1, "g", 1)]}})
    assert system(drawn)["#states"] == 3


def test_names_that_coincide_or_are_no_text_and_outcomes_of_no_chance_are_refused(tmp_path):
    twins = prudent.build(1, lambda s: {"a": [(1, "1", 1)]} if s == 1 else {})
    half = prudent.build("\ud800", lambda s: {"a": [(1, "g", 1)]} if s != "g" else {})
    never = prudent.build("s", lambda s: {"a": [(1, "g", 1), (0, "s", 1)]} if s != "g" else {})
    for model, problem in (
        (twins, "two states are both"),
        (half, "not Unicode"),
        (never, "'s', action 'a'.*probability 0"),
    ):
        with pytest.raises(prudent.PrudentError, match=problem):
            prudent.save(model, tmp_path / "m.umb")
    assert list(tmp_path.iterdir()) == []


def test_what_a_file_by_hand_means(tmp_path):
    model = load(tmp_path, *by_hand())
    assert model.action_start.tolist() == [0, 2, 3, 3]  # the goal's own choice is left out
    assert model.outcome_start.tolist() == [0, 2, 3, 4]
    assert model.successor.tolist() == [1, 2, 2, 2]
    assert model.cost.tolist() == [11.5, 11.25, 21, 32]
    assert model.action_names == ("go#0", "go#1", "up")
    assert model.state_names is None
    assert prudent.evaluate(model, {0: "go#0", 1: "up"}).mean == 0.25 * 43.5 + 0.75 * 11.25


def test_what_may_be_left_out(tmp_path):
    index, members = by_hand()
    index["transition-system"] |= {"#choices": 3, "#branches": 3, "#choice-actions": 0, "#players": 0}
    del index["annotations"]["rewards"]["r0"]["applies-to"][1:]
    members = {
        "branch-to-probability.bin": real(1, 1, 1),
        "branch-to-target.bin": whole(1, 2, 2),
        "state-is-initial.bin": whole(1),
        "annotations/aps/goal/states/values.bin": whole(4),
    }
    model = load(tmp_path, index, members)
    assert model.successor.tolist() == [1, 2]
    assert model.cost.tolist() == [0, 0]
    assert model.action_names is None


def test_properties_choose_costs_and_goals(tmp_path):
    index, members = by_hand()
    index["annotations"]["rewards"]["energy"] = {"applies-to": ["choices"], "type": {"type": "rational", "size": 256}}
    index["annotations"]["aps"]["done"] = {"alias": "at t", "applies-to": ["states"], "type": BOOL}
    members["annotations/aps/done/states/values.bin"] = whole(6)
    third = (1).to_bytes(16, "little") + (3).to_bytes(16, "little")
    minus = (-(2**90)).to_bytes(16, "little", signed=True) + (3**50).to_bytes(16, "little")
    members["annotations/rewards/energy/choices/values.bin"] = third + minus + third + third
    model = load(tmp_path, index, members, property='R{"energy"}min=? [F "at t"]')
    assert model.cost.tolist() == [1 / 3, 1 / 3, float(Fraction(-(2**90), 3**50))]
    assert model.is_goal.tolist() == [False, True, True]
    assert load(tmp_path, index, members, property='R{"time"}=?[F "goal"]').cost.tolist() == [11.5, 11.25, 21, 32]
    with pytest.raises(prudent.PrudentError, match=r"no 'cost'; the names are 'time', 'energy': choose by property="):
        load(tmp_path, index, members)
    with pytest.raises(prudent.PrudentError, match=r"no 'end'; the names are 'goal', 'x', 'at t'"):
        load(tmp_path, index, members, property='Rmin=? [F "end"]')
    with pytest.raises(prudent.PrudentError, match="defines its own costs and goals"):
        prudent.load(tmp_path / "m.json", property='Rmin=? [F "goal"]')


@pytest.mark.parametrize("text", ["", 'Pmin=? [F "goal"]', 'R{"a"}min=? [F x=1]', "Rmin=? [C<=3]", None, 7])
def test_properties_of_another_shape_are_refused(text):
    with pytest.raises(prudent.PrudentError, match="it must have the form"):
        reward_property(text)


def test_several_initial_states_are_drawn_with_equal_chances_or_one_is_chosen(tmp_path):
    index, members = by_hand()
    index["transition-system"]["#initial-states"] = 2
    members["state-is-initial.bin"] = whole(3)
    model = load(tmp_path, index, members)
    assert (model.initial_state.tolist(), model.initial_probability.tolist()) == ([0, 1], [0.5, 0.5])
    assert model.notes == prudent.solve(model, 0.5).notes == prudent.check(model).notes
    assert (
        "2 initial states without probabilities, so each has probability 1/2; choose one with initial="
        in model.notes[0]
    )
    for asked, start in ((0, [0]), (1, [1]), ("1", [1]), ({1: 0.25, 0: 0.75}, [1, 0])):
        chosen = load(tmp_path, index, members, initial=asked)
        assert (chosen.initial_state.tolist(), chosen.notes) == (start, ())
    for asked in (5, "x", [0], {2: 0.5, 9: 0.5}):
        with pytest.raises(
            prudent.PrudentError,
            match=r"initial= \(--initial\): state .* is not a state .*; the initial states of the file are 0, 1$",
        ):
            load(tmp_path, index, members, initial=asked)
    with pytest.raises(prudent.PrudentError, match=r"\.umb: initial probabilities sum to 0.5"):
        load(tmp_path, index, members, initial={0: 0.5})
    with pytest.raises(prudent.PrudentError, match=r"m.json: a .json file defines where runs start"):
        prudent.load(tmp_path / "m.json", initial="s")


def test_the_most_is_asked_of_negated_costs(tmp_path):
    index, members = by_hand()
    least, most = (load(tmp_path, index, members, property=f'R{op}=? [F "goal"]') for op in ("min", "max"))
    assert most.cost.tolist() == (0.0 - least.cost).tolist()
    assert most.notes == (
        "the property maximises rewards, so costs are negated rewards: a cost of -5 is a reward of 5",
    )
    assert prudent.solve(most, 1.0).expected < -prudent.solve(least, 1.0).expected  # which takes the other way
    members["branch-to-target.bin"] = whole(1, 2, 2, 1, 1)  # where nothing leads out of t
    with pytest.raises(prudent.PrudentError, match=r"from state 1 runs never reach a goal; .* the label 'goal', too"):
        load(tmp_path, index, members, property='Rmax=? [F "goal"]')


def test_a_property_may_be_in_a_file_of_properties(tmp_path):
    index, members = by_hand()
    (tmp_path / "m.props").write_text('"p": Pmax=? [F "x"]\n"r": R{"time"}min=? [F "goal"]\n')
    plain = load(tmp_path, index, members, property='R{"time"}min=? [F "goal"]')
    for name in ("", ":r"):
        assert load(tmp_path, index, members, property=f"{tmp_path}/m.props{name}").fingerprint == plain.fingerprint
    with pytest.raises(prudent.PrudentError, match="it must have the form"):
        load(tmp_path, index, members, property=f"{tmp_path}/m.props:p")


def test_rational_probabilities_become_the_nearest_doubles(tmp_path):
    index, members = by_hand()
    index["transition-system"]["branch-probability-type"] = {"type": "rational"}
    pairs = [(1, 3), (2, 3), (2**62, 2**62), (1, 1), (5, 5)]
    members["branch-to-probability.bin"] = b"".join(whole(*pair) for pair in pairs)
    assert load(tmp_path, index, members).probability.tolist() == [1 / 3, 2 / 3, 1, 1]


def test_variables_name_the_states(tmp_path):
    index, members = by_hand()
    variables = [
        {"name": "x", "type": {"type": "uint", "size": 3}, "offset": -1},
        {"name": "up", "type": {"type": "bool"}, "is-optional": True},
        {"padding": 3},
        {"name": "y", "type": {"type": "int", "size": 8}},
        {"name": "z", "type": {"type": "double"}},
        {"name": "city", "type": {"type": "string"}},
    ]
    index["valuations"] = {"states": {"unique": True, "#strings": 2, "classes": [{"variables": variables}]}}
    heads = [0 | 0b11 << 3, 5 | 0b01 << 3, 5 | 0b10 << 3]
    rows = [whole(head, 256 - s if s else 0, dtype="u1") + real(0.5 * s) + whole(s % 2) for s, head in enumerate(heads)]
    members["valuations/states/valuations.bin"] = b"".join(rows)
    members["valuations/states/string-mapping.bin"], members["valuations/states/strings.bin"] = (
        whole(0, 2, 6),
        b"\xc3\xa4Rome",
    )
    assert load(tmp_path, index, members).state_names == (
        "x=-1, up=true, y=0, z=0.0, city=ä",
        "x=4, up=false, y=-1, z=0.5, city=Rome",
        "x=4, up=none, y=-2, z=1.0, city=ä",
    )
    classes = [{"variables": [{"name": "i", "type": {"type": "uint", "size": 8}}]}, {"variables": []}]
    index["valuations"] = {"states": {"unique": False, "classes": classes}}
    del members["valuations/states/string-mapping.bin"], members["valuations/states/strings.bin"]
    members["valuations/states/valuations.bin"] = whole(3, 3, dtype="u1")
    members["valuations/states/valuation-to-class.bin"] = whole(0, 1, 0, dtype="<u4")
    assert load(tmp_path, index, members).state_names == ("i=3 #0", "", "i=3 #2")


def test_names_that_look_like_numbered_ones(tmp_path):
    """Somebody else may be called what a number makes of a name: the number counts on."""
    index, members = by_hand()
    index["transition-system"] |= {"#states": 2, "#choices": 4, "#branches": 4, "#choice-actions": 3}
    index["annotations"]["rewards"]["r0"]["applies-to"] = ["branches"]
    members |= {
        "state-to-choices.bin": whole(0, 3, 4),
        "choice-to-branches.bin": whole(0, 1, 2, 3, 4),
        "branch-to-target.bin": whole(1, 1, 1, 1),
        "branch-to-probability.bin": real(1, 1, 1, 1),
        "annotations/aps/goal/states/values.bin": whole(2),
        "annotations/rewards/r0/branches/values.bin": real(1, 2, 3, 4),
        "actions/choices/values.bin": whole(0, 1, 2, 2, dtype="<u4"),
        "actions/choices/string-mapping.bin": whole(0, 2, 4, 8),
        "actions/choices/strings.bin": b"gogogo#0",
    }
    assert load(tmp_path, index, members).action_names == ("go#1", "go#2", "go#0")
    members["actions/choices/values.bin"] = whole(0, 0, 2, 2, dtype="<u4")  # one action twice, not two of one name
    assert load(tmp_path, index, members).action_names == ("go#1", "go#2", "go#0")

    index, members = by_hand()
    variables = [{"name": "x", "type": {"type": "string"}}]
    index["valuations"] = {"states": {"unique": False, "#strings": 2, "classes": [{"variables": variables}]}}
    members["valuations/states/valuations.bin"] = whole(0, 0, 1)
    members["valuations/states/string-mapping.bin"] = whole(0, 1, 5)
    members["valuations/states/strings.bin"] = b"aa #0"
    assert load(tmp_path, index, members).state_names == ("x=a #1", "x=a #2", "x=a #0")


def test_every_way_of_packing(tmp_path):
    model = prudent.domains.figure_2()
    plain = gzip.decompress(packed(members_of(model)))
    long = io.BytesIO()
    with tarfile.open(fileobj=long, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in [*members_of(model).items(), ("annotations/" + "x" * 200 + "/é", b"abc")]:
            about = tarfile.TarInfo("./" + name)
            about.size = len(content)
            archive.addfile(about, io.BytesIO(content))
    for raw in (plain, gzip.compress(plain), lzma.compress(plain), long.getvalue()):
        (tmp_path / "m.umb").write_bytes(raw)
        assert_same(prudent.load(tmp_path / "m.umb"), model)


@pytest.mark.parametrize("kind", ["double", "rational"])
def test_probabilities_that_are_intervals_are_the_models_own(tmp_path, kind):
    index, members = by_hand()
    index["transition-system"]["branch-probability-type"] = {"type": f"{kind}-interval"}
    ends = (0.125, 0.5, 0.5, 0.75, 1, 1, 1, 1, 1, 1)
    members["branch-to-probability.bin"] = (
        real(*ends) if kind == "double" else whole(*(x for end in ends for x in (int(8 * end), 8)))
    )
    model = load(tmp_path, index, members, property='R{"time"}min=? [F "goal"]')
    assert model.intervals.low.tolist() == [0.125, 0.5, 1, 1]
    assert model.intervals.high.tolist() == [0.5, 0.75, 1, 1]
    assert model.probability.tolist() == pytest.approx([0.35, 0.65, 1, 1])  # three fifths of the way in both
    assert any("the file has intervals of probabilities" in note for note in model.notes)
    plan = prudent.solve(model, 1.0, uncertainty="own")
    assert plan.upper >= prudent.solve(model, 1.0).upper
    assert plan.nominal.expected <= plan.expected
