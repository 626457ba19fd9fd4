"""UMB files that hold something else than a model: refused, with the member, what it holds and what it must hold."""

import json
import tracemalloc

import numpy as np
import pytest

import prudent
from prudent.io.umb.archive import packed
from prudent.io.umb.write import members_of
from umb_by_hand import BOOL, DOUBLE, assert_same, by_hand, load, real, whole


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


def valued(name="x", offset=0, **kind):
    """A variable of three states; it takes their bytes from a member that is as large as the index says."""

    def changed(index, members):
        variables = [{"name": name, "type": kind, "offset": offset}]
        index["valuations"] = {"states": {"unique": False, "classes": [{"variables": variables}]}}
        members["valuations/states/valuations.bin"] = b"\xff" * (3 * kind["size"] // 8)

    return changed


def no_branches(index, members):
    change([TS, "branch-probability-type"], {"type": "rational", "size": 128 * 2**60})(index, members)
    change([TS, "#branches"], 0)(index, members)
    put("branch-to-probability.bin", b"")(index, members)


def between(*ends):
    """Make the probabilities intervals."""

    def change_both(index, members):
        index[TS]["branch-probability-type"] = {"type": "double-interval", "size": 128}
        members["branch-to-probability.bin"] = real(*ends)

    return change_both


BAD = [
    *((valued(type=kind, size=32000), rf"variables\[0\]: a {kind} cannot have 32000 bits; the most is 4,096")
      for kind in ("uint", "int", "rational")),
    (valued(type="uint", size=8, offset=10**4300 - 1), r"variables\[0\].offset is 9{60}; its absolute value must be"),
    (valued("\ud800", type="uint", size=8), r'variables\[0\].name is "\\ud800", which is not Unicode text'),
    (
        no_branches,
        "branch-probability-type.size is 147573952589676412928; it must be a multiple of 128, "
        "up to 65,536, for rational numbers",
    ),
    (change([*REWARD, "applies-to"], []), "r0: applies to nothing, so there are no costs"),
    (change(["format-version"], 2), "index.json: format-version is 2; this release reads 1"),
    (change([TS], None), "index.json: transition-system is null"),
    (change([TS, "time"], "stochastic"), 'time is "stochastic"; only fully observed, discrete-time'),
    (change([TS, "#players"], 2), "#players is 2"),
    (change([TS, "#players"], 0), "state 0 has 2 choices; it must have one, since #players is 0"),
    (change([TS, "#observations"], 1), "#observations is 1"),
    (change([TS, "#states"], 10**18), "state-to-choices.bin: has 32 bytes; it must have 1000000000000000001 entries"),
    (change([TS, "#branches"], 2**62), "branch-to-probability.bin: has 40 bytes"),
    (change([TS, "#choices"], -1), "#choices is -1"),
    (change([TS, "#choices"], 2.5), "#choices is 2.5; it must be a whole number"),
    (change([TS, "#initial-states"], 2), "1 states are initial, but #initial-states is 2"),
    (change([TS, "branch-probability-type"], {"type": "double-interval"}), "40 bytes; it must have 10 entries of 8"),
    (change([TS, "branch-probability-type"], {"type": "double-interval", "size": 127}), "two ends of equal size"),
    (change([TS, "branch-probability-type"], {"type": "bool-interval"}), "only probabilities may be intervals"),
    (change([*REWARD, "type"], {"type": "double-interval"}), "only probabilities may be intervals"),
    (between(0.2, 0.3, 0.7, 0.6, 1, 1, 1, 1, 1, 1), "entry 1 is from 0.7 to 0.6; 0 <= low <= high <= 1 must hold"),
    (between(0.2, 0.3, np.nan, 0.6, 1, 1, 1, 1, 1, 1), "entry 1 is from nan to 0.6"),
    (between(0.2, 0.3, 0.5, 0.6, 1, 1, 1, 1, 1, 1), "choice 0 allow sums from 0.7 to 0.9; they must allow 1"),
    (change([TS, "branch-probability-type"], {"type": "string"}), "it must be double or rational"),
    (change([TS, "branch-probability-type"], {"type": "double", "size": 32}), "size is 32; it must be 64, for double"),
    (change([TS, "branch-probability-type"], None), "no branch-probability-type"),
    (change([TS, "#choice-actions"], 1), "values.bin: entry 2 is 1; it must be below 1"),
    (change(["annotations", "aps", "goal", "type"], DOUBLE), "must be of type bool"),
    (change([*REWARD, "type"], BOOL), "r0: type.type is \"bool\""),
    (change([*REWARD, "applies-to"], ["players"]), "applies to 'players'"),
    (change([*REWARD, "probability-type"], DOUBLE), "is a random reward"),
    (change(["annotations", "rewards", "r1"], {"alias": "time"}), "two entries are called 'time'"),
    (change(["annotations", "rewards"], None), "no 'cost'; the names are none"),
    (change(["annotations", "aps", "goal"], None), "no 'goal'; the names are 'x'"),
    (change(["annotations"], []), "annotations is a list"),
    (change(["valuations"], VALUATIONS), "valuations.bin: has 0 bytes; by the index it must have 3"),
    (put("branch-to-probability.bin", None), "branch-to-probability.bin is missing"),
    (put("branch-to-probability.bin", real(0.25, np.nan, 1, 1, 1)), "'go#0' has an outcome of probability nan"),
    (put("branch-to-probability.bin", real(0.25, 0.5, 1, 1, 1)), "state 0, action 'go#0' sum to 0.75"),
    (put("branch-to-probability.bin", real(0.25)), "has 8 bytes; it must have 5 entries of 8 bytes"),
    (put("state-to-choices.bin", whole(0, 3, 2, 4)), "choices.bin: must start with 0, never decrease, and end with 4"),
    (put("state-to-choices.bin", whole(1, 2, 3, 4)), "must start with 0, never decrease"),
    (put("state-to-choices.bin", whole(0, 2**63 + 2, 3, 4)), "must start with 0, never decrease"),
    (put("state-to-choices.bin", whole(0, 3, 3, 4)), "state 1 has no choices, and lacks the label 'goal'"),
    (put("state-to-choices.bin", None), "is missing, so each of 3 rows has one entry; but there are 4"),
    (put("choice-to-branches.bin", whole(0, 2, 2, 4, 5)), "action 'go#1' has no outcomes"),
    (put("branch-to-target.bin", whole(1, 2, 3, 2, 1)), "entry 2 is 3; it must be below 3"),
    (put("branch-to-target.bin", whole(1, 2, 2**64 - 1, 2, 1)), "entry 2 is 18446744073709551615"),
    (put("state-is-initial.bin", whole(8)), "bits set after the first 3"),
    (put("state-is-initial.bin", whole(3)), "2 states are initial, but #initial-states is 1; the two must be equal"),
    (put("state-is-initial.bin", None), "0 states are initial"),
    (put("annotations/aps/goal/states/values.bin", whole(0)), "no choices|no goal"),
    (put("annotations/rewards/r0/branches/values.bin", real(np.inf, 0, 0, 0, 0)), "an outcome of cost inf"),
    (put("annotations/rewards/r0/choices/values.bin", real(1)), "r0/choices/values.bin: has 8 bytes"),
    (put("actions/choices/values.bin", whole(0, 0, 1, 2, dtype="<u4")), "entry 3 is 2; it must be below 2"),
    (put("actions/choices/strings.bin", b"go\xff\xff"), "not UTF-8"),
    (put("actions/choices/strings.bin", None), "actions/choices: must have both"),
    (put("actions/choices/string-mapping.bin", whole(0, 5, 4)), "string-mapping.bin: must start with 0"),
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
        (b"\xff", "index.json: not UTF-8"),
        (b'{"format-version": NaN}', "index.json: NaN is not allowed"),
        (b"1" * 5000, "thousands of digits"),
        (b"[]", "the document is a list"),
    ):
        path.write_bytes(packed({"index.json": text}))
        with pytest.raises(prudent.PrudentError, match=f"m.umb: .*{problem}"):
            prudent.load(path)
    path.write_bytes(packed({"other": b""}))
    with pytest.raises(prudent.PrudentError, match=r"m\.umb: has no index\.json"):
        prudent.load(path)


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
