"""JANI files through Storm: which rewards count, and which property is meant."""

import json

import pytest

import prudent
from prudent import PrudentError

pytest.importorskip("stormpy")


@pytest.fixture
def file(tmp_path):
    def write(text):
        (tmp_path / "row.jani").write_text(text)
        return tmp_path / "row.jani"

    return write


def jani(destinations, exp="cost", accumulate=("steps", "exit"), more=()):
    """A model of three states in a row, whose middle one costs 7 by itself."""
    middle = {"op": "ite", "if": {"op": "=", "left": "s", "right": 1}, "then": 7, "else": 0}
    asked = {"op": "Emin", "accumulate": list(accumulate), "exp": exp, "reach": {"op": "=", "left": "s", "right": 2}}
    shown = {"op": "filter", "fun": "max", "states": {"op": "initial"}}
    edges = [
        ({"op": "=", "left": "s", "right": 0}, destinations),
        ({"op": "=", "left": "s", "right": 1}, [(1, 2, 3)]),
    ]
    bounds = {"kind": "bounded", "base": "int", "lower-bound": 0, "upper-bound": 2}
    document = {
        "jani-version": 1,
        "name": "row",
        "type": "mdp",
        "variables": [
            {"name": "s", "type": bounds, "initial-value": 0},
            {"name": "cost", "type": "real", "transient": True, "initial-value": 0},
        ],
        "automata": [
            {
                "name": "row",
                "locations": [{"name": "l", "transient-values": [{"ref": "cost", "value": middle}]}],
                "initial-locations": ["l"],
                "edges": [
                    {
                        "location": "l",
                        "guard": {"exp": guard},
                        "destinations": [
                            {
                                "location": "l",
                                "probability": {"exp": p},
                                "assignments": [{"ref": "s", "value": to}, {"ref": "cost", "value": price}],
                            }
                            for p, to, price in outcomes
                        ],
                    }
                    for guard, outcomes in edges
                ],
            }
        ],
        "system": {"elements": [{"automaton": "row"}]},
        "properties": [
            {"name": f"p{i}", "expression": {**shown, "values": {**asked, **change}}}
            for i, change in enumerate([{}, *more])
        ],
    }
    return json.dumps(document)


ALIKE = [(0.25, 1, 4), (0.75, 2, 4)]


@pytest.mark.parametrize(
    ("accumulate", "expected"),
    [(("steps", "exit"), 4 + 0.25 * 10), (("steps",), 4 + 0.25 * 3), (("exit",), 0.25 * 7)],
)
def test_a_property_of_jani_says_which_rewards_count(file, accumulate, expected):
    path = file(jani(ALIKE, accumulate=accumulate))
    assert prudent.solve(prudent.load(path), 1.0, method="expected").expected == pytest.approx(expected, rel=1e-12)


def test_outcomes_of_an_action_that_cost_differently_are_refused_in_jani(file):
    """Storm would take the mean: the expected cost would be right, the risk not."""
    path = file(jani([(0.25, 1, 1), (0.75, 2, 5)]))
    with pytest.raises(
        PrudentError, match=r"row.jani: Storm: Transition rewards are not .*\. Let what an outcome costs be"
    ):
        prudent.load(path)


def test_of_several_properties_one_must_be_given(file):
    path = file(jani(ALIKE, more=[{"op": "Emax"}]))
    assert prudent.load(path).n_states == 3  # one of the two asks for the least
    path = file(jani(ALIKE, more=[{"exp": 1, "accumulate": ["steps"]}]))
    with pytest.raises(PrudentError, match=r"several of its properties fit: R.*, Tmin=\? \[F \(s = 2\)\]; labels"):
        prudent.load(path)
    steps = prudent.load(path, property="Tmin=? [F s=2]")
    assert prudent.solve(steps, 1.0).expected == 1.25
    with pytest.raises(PrudentError, match=r'which goals and costs are meant.*: there is no label "goal"'):
        prudent.load(file(jani(ALIKE, accumulate=("time",))))  # which is of no use for steps


def test_not_json(file):
    with pytest.raises(PrudentError, match=r"row.jani: Storm: "):
        prudent.load(file("{"))
