"""UMB files put together by hand: s (0) goes to t (1) or g (2), and t to g."""

import json

import numpy as np

import prudent
from prudent.io.umb.archive import packed

FIELDS = ("action_start", "outcome_start", "probability", "successor", "cost", "initial_state", "initial_probability")


def assert_same(one: prudent.SSP, other: prudent.SSP) -> None:
    for field in FIELDS:
        assert getattr(one, field).tobytes() == getattr(other, field).tobytes(), field
    assert [str(one.state(s)) for s in range(one.n_states)] == [str(other.state(s)) for s in range(other.n_states)]
    assert [str(one.action(a)) for a in range(one.n_actions)] == [str(other.action(a)) for a in range(other.n_actions)]
    assert one.fingerprint == other.fingerprint


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


def rich(members: dict[str, bytes]) -> dict[str, bytes]:
    """Return the members of a file with fractions as probabilities, and states named by variables of every type."""
    index = json.loads(members["index.json"])
    n = index["transition-system"]["#states"]
    index["transition-system"]["branch-probability-type"] = {"type": "rational"}
    kinds = (("bool", 1), ("uint", 9), ("int", 6), ("double", 64), ("rational", 128), ("string", 64))
    variables = [{"name": kind, "type": {"type": kind, "size": size}} for kind, size in kinds]
    variables[1] |= {"is-optional": True, "offset": -3}
    states = {
        "unique": False,
        "#strings": 2,
        "classes": [{"variables": [*variables, {"padding": 7}]}, {"variables": []}],
    }
    index["valuations"] = {"states": states}
    rows = (np.arange(n * 35) % 7).astype(np.uint8).reshape(n, 35)
    rows[:, 26:] = 0
    found = {name: content for name, content in members.items() if not name.startswith("names")}
    chance = np.frombuffer(found["branch-to-probability.bin"], "<f8")
    found |= {
        "index.json": json.dumps(index).encode(),
        "branch-to-probability.bin": np.stack([np.rint(chance * 1000), chance * 0 + 1000], 1).astype("<u8").tobytes(),
        "valuations/states/valuations.bin": rows.tobytes(),
        "valuations/states/valuation-to-class.bin": bytes(4 * n),
        "valuations/states/string-mapping.bin": np.array([0, 1, 3], "<u8").tobytes(),
        "valuations/states/strings.bin": "xé".encode(),
    }
    return found
