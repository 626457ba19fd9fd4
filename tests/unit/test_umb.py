"""UMB files: models come back to the last bit, and what anybody may have made of a file is read right or refused."""

import gzip
import io
import json
import lzma
import tarfile
import tracemalloc
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, reject, settings

import prudent
from prudent.files.properties import reward_property
from prudent.files.umb import parse
from prudent.files.umb_archive import packed, unpacked
from prudent.files.umb_writing import members_of
from strategies import cases, examples

FIELDS = ("action_start", "outcome_start", "probability", "successor", "cost", "initial_state", "initial_probability")


def again(model: prudent.SSP, tmp_path) -> prudent.SSP:
    prudent.save(model, tmp_path / "model.umb")
    return prudent.load(tmp_path / "model.umb")


def assert_same(one: prudent.SSP, other: prudent.SSP) -> None:
    for field in FIELDS:
        assert getattr(one, field).tobytes() == getattr(other, field).tobytes(), field
    assert [str(one.state(s)) for s in range(one.n_states)] == [str(other.state(s)) for s in range(other.n_states)]
    assert [str(one.action(a)) for a in range(one.n_actions)] == [str(other.action(a)) for a in range(other.n_actions)]
    assert one.fingerprint == other.fingerprint


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
    try:
        model = case.model
    except prudent.PrudentError:  # no goal can be reached
        reject()
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


# Files made by hand: s (0) -> t (1) or g (2); t -> g.

DOUBLE, BOOL = {"type": "double"}, {"type": "bool"}


def whole(*values, dtype="<u8"):
    return np.array(values, dtype=dtype).tobytes()


def real(*values):
    return whole(*values, dtype="<f8")


def by_hand():
    index = {
        "format-version": 1,
        "format-revision": 0,
        "transition-system": {
            "time": "discrete",
            "#players": 1,
            "#states": 3,
            "#initial-states": 1,
            "#choices": 4,
            "#choice-actions": 2,
            "#branches": 5,
            "#branch-actions": 0,
            "#observations": 0,
            "branch-probability-type": DOUBLE,
        },
        "annotations": {
            "aps": {"goal": {"applies-to": ["states"], "type": BOOL}, "x": {"applies-to": ["states"], "type": BOOL}},
            "rewards": {"r0": {"alias": "time", "applies-to": ["states", "choices", "branches"], "type": DOUBLE}},
        },
    }
    members = {
        "state-to-choices.bin": whole(0, 2, 3, 4),
        "choice-to-branches.bin": whole(0, 2, 3, 4, 5),
        "branch-to-target.bin": whole(1, 2, 2, 2, 1),
        "branch-to-probability.bin": real(0.25, 0.75, 1, 1, 1),
        "state-is-initial.bin": whole(1),
        "annotations/aps/goal/states/values.bin": whole(4),
        "annotations/rewards/r0/states/values.bin": real(1, 2, 100),
        "annotations/rewards/r0/choices/values.bin": real(10, 20, 30, 1000),
        "annotations/rewards/r0/branches/values.bin": real(0.5, 0.25, 0, 0, 7),
        "actions/choices/values.bin": whole(0, 0, 1, 1, dtype="<u4"),
        "actions/choices/string-mapping.bin": whole(0, 2, 4),
        "actions/choices/strings.bin": b"goup",
    }
    return index, members


def load(tmp_path, index, members, **options):
    path = tmp_path / "hand.umb"
    path.write_bytes(packed({"index.json": json.dumps(index).encode(), **members}))
    return prudent.load(path, **options)


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
    with pytest.raises(prudent.PrudentError, match=r"no 'cost' among 'time', 'energy'; name one"):
        load(tmp_path, index, members)
    with pytest.raises(prudent.PrudentError, match=r"no 'end' among 'goal', 'x', 'at t'"):
        load(tmp_path, index, members, property='Rmin=? [F "end"]')
    with pytest.raises(prudent.PrudentError, match="itself says"):
        prudent.load(tmp_path / "m.json", property='Rmin=? [F "goal"]')


@pytest.mark.parametrize(
    "text", ["", 'Rmax=? [F "goal"]', 'Pmin=? [F "goal"]', 'R{"a"}min=? [F x=1]', "Rmin=? [C<=3]", None, 7]
)
def test_properties_of_another_shape_are_refused(text):
    with pytest.raises(prudent.PrudentError, match="it must have the shape"):
        reward_property(text)


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


def change(place, value):
    def changed(index, members):
        *path, last = place
        part = index
        for key in path:
            part = part[key]
        if value is None:
            del part[last]
        else:
            part[last] = value

    return changed


def put(name, value):
    return lambda index, members: members.pop(name, None) if value is None else members.__setitem__(name, value)


TS, REWARD = "transition-system", ("annotations", "rewards", "r0")
VALUATIONS = {
    "states": {"unique": True, "classes": [{"variables": [{"name": "x", "type": {"type": "uint", "size": 8}}]}]}
}
BAD = [
    (change(["format-version"], 2), "index.json: format-version is 2; this release reads 1"),
    (change([TS], None), "index.json: transition-system is null"),
    (change([TS, "time"], "stochastic"), 'time is "stochastic"; only Markov chains'),
    (change([TS, "#players"], 2), "#players is 2"),
    (change([TS, "#players"], 0), "state 0 has 2 choices; #players is 0"),
    (change([TS, "#observations"], 1), "#observations is 1"),
    (change([TS, "#states"], 10**18), "state-to-choices.bin: has 32 bytes; 1000000000000000001 entries"),
    (change([TS, "#branches"], 2**62), "branch-to-probability.bin: has 40 bytes"),
    (change([TS, "#choices"], -1), "#choices is -1"),
    (change([TS, "#choices"], 2.5), "#choices is 2.5; it must be a whole number"),
    (change([TS, "#initial-states"], 2), "1 states are initial, and #initial-states is 2"),
    (change([TS, "branch-probability-type"], {"type": "double-interval"}), "intervals are not supported"),
    (change([TS, "branch-probability-type"], {"type": "string"}), "it must be double or rational"),
    (change([TS, "branch-probability-type"], {"type": "double", "size": 32}), "double numbers have 64 bits"),
    (change([TS, "branch-probability-type"], None), "no branch-probability-type"),
    (change([TS, "#choice-actions"], 1), "values.bin: entry 2 is 1; it must be below 1"),
    (change(["annotations", "aps", "goal", "type"], DOUBLE), "must be of type bool"),
    (change([*REWARD, "type"], BOOL), "r0: type.type is \"bool\""),
    (change([*REWARD, "applies-to"], ["players"]), "applies to 'players'"),
    (change([*REWARD, "probability-type"], DOUBLE), "random by itself"),
    (change(["annotations", "rewards", "r1"], {"alias": "time"}), "'time' is the name of two"),
    (change(["annotations", "rewards"], None), "no 'cost' among none"),
    (change(["annotations", "aps", "goal"], None), "no 'goal' among 'x'"),
    (change(["annotations"], []), "annotations is a list"),
    (change(["valuations"], VALUATIONS), "valuations.bin: has 0 bytes; the index says 3"),
    (put("branch-to-probability.bin", None), "branch-to-probability.bin: is missing"),
    (put("branch-to-probability.bin", real(0.25, np.nan, 1, 1, 1)), "'go#0' has an outcome of probability nan"),
    (put("branch-to-probability.bin", real(0.25, 0.5, 1, 1, 1)), "state 0, action 'go#0' sum to 0.75"),
    (put("branch-to-probability.bin", real(0.25)), "has 8 bytes; 5 entries of 8"),
    (put("state-to-choices.bin", whole(0, 3, 2, 4)), "state-to-choices.bin: must rise from 0 to 4"),
    (put("state-to-choices.bin", whole(1, 2, 3, 4)), "must rise from 0"),
    (put("state-to-choices.bin", whole(0, 2**63 + 2, 3, 4)), "must rise from 0"),
    (put("state-to-choices.bin", whole(0, 3, 3, 4)), "state 1 has no choices, and not the label 'goal'"),
    (put("state-to-choices.bin", None), "is left out, which means one each; but there are 3 and 4"),
    (put("choice-to-branches.bin", whole(0, 2, 2, 4, 5)), "action 'go#1' has no outcomes"),
    (put("branch-to-target.bin", whole(1, 2, 3, 2, 1)), "entry 2 is 3; it must be below 3"),
    (put("branch-to-target.bin", whole(1, 2, 2**64 - 1, 2, 1)), "entry 2 is 18446744073709551615"),
    (put("state-is-initial.bin", whole(8)), "bits beyond the last of 3"),
    (put("state-is-initial.bin", whole(3)), "2 states are initial.*UMB gives no probabilities"),
    (put("state-is-initial.bin", None), "0 states are initial"),
    (put("annotations/aps/goal/states/values.bin", whole(0)), "no choices|no goal"),
    (put("annotations/rewards/r0/branches/values.bin", real(np.inf, 0, 0, 0, 0)), "an outcome of cost inf"),
    (put("annotations/rewards/r0/choices/values.bin", real(1)), "r0/choices/values.bin: has 8 bytes"),
    (put("actions/choices/values.bin", whole(0, 0, 1, 2, dtype="<u4")), "entry 3 is 2; it must be below 2"),
    (put("actions/choices/strings.bin", b"go\xff\xff"), "not UTF-8"),
    (put("actions/choices/strings.bin", None), "actions/choices: must have both"),
    (put("actions/choices/string-mapping.bin", whole(0, 5, 4)), "string-mapping.bin: must rise"),
    (put("names/states/strings.bin", b""), "names/states: must have both"),
]  # fmt: skip


@pytest.mark.parametrize(("breaks", "problem"), BAD, ids=[problem[:40] for _, problem in BAD])
def test_what_is_wrong_is_said_with_its_place(tmp_path, breaks, problem):
    index, members = by_hand()
    breaks(index, members)
    with pytest.raises(prudent.PrudentError, match=f"hand.umb: .*({problem})"):
        load(tmp_path, index, members)


def test_fractions_that_are_no_numbers(tmp_path):
    index, members = by_hand()
    index["transition-system"]["branch-probability-type"] = {"type": "rational", "size": 4096}
    one, huge, nothing = (n.to_bytes(256, "little") for n in (1, 2**2000, 0))
    for above, below, problem in ((one, nothing, "entry 4 has the denominator 0"), (huge, one, "entry 4 is too large")):
        members["branch-to-probability.bin"] = (one + one) * 4 + above + below
        with pytest.raises(prudent.PrudentError, match=f"branch-to-probability.bin: {problem}"):
            load(tmp_path, index, members)


def test_auxiliary_states_are_folded_only_as_they_are_written(tmp_path):
    model = prudent.build({"a": 0.5, "b": 0.5}, {s: {"go": [(0.5, "g", 1), (0.5, "g", 2)]} for s in "ab"})
    members = members_of(model)
    index = json.loads(members.pop("index.json"))
    assert_same(load(tmp_path, index, members), model)
    label, target, chance = (
        "annotations/aps/prudent-auxiliary/states/values.bin",
        "branch-to-target.bin",
        "branch-to-probability.bin",
    )
    to, p = np.frombuffer(members[target], "<u8"), np.frombuffer(members[chance], "<f8")
    for name, content in (
        (label, whole(0b1001)),  # not last
        (target, whole(*to[:-3], 3, *to[-2:])),  # passes on to itself
        (target, whole(*to[:-1], 4)),  # the first leads to itself
        (target, whole(4, *to[1:])),  # somebody leads to the first
        (chance, real(*p[:-3], 0.5, *p[-2:])),  # not for certain
        ("annotations/rewards/cost/branches/values.bin", real(*range(len(to)))),  # not free
    ):
        with pytest.raises(prudent.PrudentError, match="states with this label"):
            load(tmp_path, index, members | {name: content})


def test_indices_that_are_none(tmp_path):
    path = tmp_path / "m.umb"
    for text, problem in (
        (b"{", "index.json: not valid JSON: line 1"),
        (b"[" * 100_000, "index.json: is nested too deeply"),
        (b'{"a": 1, "a": 2}', "index.json: an object has the field 'a' twice"),
        (b"\xff", "index.json: is not UTF-8"),
        (b'{"format-version": NaN}', "index.json: NaN is not a number"),
        (b"1" * 5000, "thousands of digits"),
        (b"[]", "the document is a list"),
    ):
        path.write_bytes(packed({"index.json": text}))
        with pytest.raises(prudent.PrudentError, match=f"m.umb: .*{problem}"):
            prudent.load(path)
    path.write_bytes(packed({"other": b""}))
    with pytest.raises(prudent.PrudentError, match=r"m\.umb: has no index\.json"):
        prudent.load(path)


def tar(*members: tarfile.TarInfo, content: bytes = b"", form: int = tarfile.USTAR_FORMAT) -> bytes:
    return b"".join(m.tobuf(form) + content + bytes(-len(content) % 512) for m in members) + bytes(1024)


def member(name: str, size: int = 0, kind: bytes = tarfile.REGTYPE, **more) -> tarfile.TarInfo:
    found = tarfile.TarInfo(name)
    found.size, found.type = size, kind
    for key, value in more.items():
        setattr(found, key, value)
    return found


EXTENDED = tar(member("p", size=10, kind=tarfile.XHDTYPE), content=b"10 size=-\n")[:-1024]
GREEDY = [{"id": lzma.FILTER_LZMA2, "dict_size": 2**28}]


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b"", "has lost its end, or is not a tar file"),
        (b"nothing of the kind", "is not a tar file, or is damaged at byte 0"),
        (tar(member("/etc/passwd")), "'/etc/passwd': is not the name of a member"),
        (tar(member("a/../b")), "not the name of a member"),
        (tar(member("a\\b")), "not the name of a member"),
        (tar(member("a", kind=tarfile.SYMTYPE, linkname="b")), "a: is neither a plain file nor a folder"),
        (tar(member("a", kind=tarfile.LNKTYPE, linkname="b")), "neither a plain file"),
        (tar(member("a", kind=tarfile.FIFOTYPE)), "neither a plain file"),
        (tar(member("a", kind=tarfile.GNUTYPE_SPARSE)), "neither a plain file"),
        (tar(member("a"), member("./a")), "a: is there twice"),
        (tar(member("a", size=10**11), form=tarfile.GNU_FORMAT), "a: has 100000000000 bytes by its header, and 1,024"),
        (tar(member("a", size=-1), form=tarfile.GNU_FORMAT), "a: has -1 bytes"),
        (tar(member("a"))[:512], "has lost its end"),
        (tar(member("a"))[:512] + b"x" * 512, "damaged at byte 512"),
        (tar(member("p", size=5, kind=tarfile.XHDTYPE), content=b"9 a=b"), "extended header"),
        (tar(member("p", size=5, kind=tarfile.XHDTYPE), content=b"0 a=\n"), "extended header"),
        (tar(member("p", size=17, kind=tarfile.XHDTYPE), content=b"17 GNU.sparse=1\n\n"), "extended header"),
        (EXTENDED + tar(member("a")), "damaged at byte 1,024"),
        (gzip.compress(bytes(2**25), mtime=0), "inflates to more than 200 times"),
        (lzma.compress(bytes(2**25)), "inflates to more than 200 times"),
        (gzip.compress(tar(member("a")))[:-9], "cannot be unpacked"),
        (gzip.compress(tar(member("a"))) + b"more", "cannot be unpacked"),
        (lzma.compress(tar(member("a")))[:-9], "cannot be unpacked"),
        (lzma.compress(tar(member("a"))) + b"more", "cannot be unpacked"),
        (lzma.compress(tar(member("a")), filters=GREEDY), "cannot be unpacked: Memory"),
    ],
)  # fmt: skip
def test_archives_that_do_harm_are_refused(raw, problem):
    with pytest.raises(prudent.PrudentError, match=problem):
        unpacked(raw)


def test_a_small_file_cannot_ask_for_much_memory(tmp_path):
    index, members = by_hand()
    index["transition-system"] |= {"#states": 2**50, "#choices": 2**50, "#branches": 2**50}
    long = {
        "states": {
            "unique": True,
            "classes": [{"variables": [{"name": "x" * 10**6, "type": {"type": "uint", "size": 8}}]}],
        }
    }
    wide, many = by_hand()
    wide["valuations"], n = long, 3000
    wide["transition-system"] |= {"#states": n, "#choices": n, "#branches": n, "#choice-actions": 0}
    wide["annotations"]["rewards"]["r0"]["applies-to"] = ["states"]
    many = {
        "branch-to-probability.bin": real(*np.ones(n)),
        "state-is-initial.bin": whole(1, *np.zeros(n // 64, int)),
        "annotations/aps/goal/states/values.bin": whole(4, *np.zeros(n // 64, int)),
        "valuations/states/valuations.bin": bytes(n),
    }
    tracemalloc.start()
    for about, content, problem in (
        (index, {}, "is missing"),
        (index, members, "has 40 bytes"),
        (wide, many, "far longer"),
    ):
        with pytest.raises(prudent.PrudentError, match=problem):
            load(tmp_path, about, content)
    assert tracemalloc.get_traced_memory()[1] < 5e7
    tracemalloc.stop()
