"""JANI files through Storm: which rewards count, and which property is meant."""

import json

import pytest

import prudent
from prudent import PrudentError

stormpy = pytest.importorskip("stormpy")


@pytest.fixture
def file(tmp_path):
    def write(text):
        (tmp_path / "row.jani").write_text(text)
        return tmp_path / "row.jani"

    return write


def jani(destinations, exp="cost", accumulate=("steps", "exit"), more=()):
    """A model of three states in a row, whose middle one costs 7 by itself; accumulating None leaves that field out."""
    middle = {"op": "ite", "if": {"op": "=", "left": "s", "right": 1}, "then": 7, "else": 0}
    asked = {"op": "Emin", "exp": exp, "reach": {"op": "=", "left": "s", "right": 2}}
    if accumulate is not None:
        asked["accumulate"] = list(accumulate)
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
        PrudentError, match=r"row.jani: Storm: Transition rewards are not .*\. Move the cost of an outcome"
    ):
        prudent.load(path)


def test_of_several_properties_one_must_be_given(file):
    path = file(jani(ALIKE, more=[{"op": "Emax"}]))
    assert (prudent.load(path).cost >= 0).all()  # one of the two asks for the least
    assert (prudent.load(path, property="p1").cost <= 0).all()
    path = file(jani(ALIKE, more=[{"exp": 1, "accumulate": ["steps"]}]))
    with pytest.raises(
        PrudentError,
        match=r"several of its properties fit, so one must be named: p0 \(R.*\), p1 \(Tmin=\? \[F \(s = 2\)\]\); ",
    ):
        prudent.load(path)
    for asked in ("Tmin=? [F s=2]", "p1"):
        assert prudent.solve(prudent.load(path, property=asked), 1.0).expected == 1.25
    assert prudent.solve(prudent.load(path, property="p0"), 1.0).expected == pytest.approx(6.5, rel=1e-12)
    with pytest.raises(PrudentError, match=r"property p2: Storm: .*; labels"):
        prudent.load(path, property="p2")
    with pytest.raises(PrudentError, match=r'there is no label "goal"; choose goals and costs with property='):
        prudent.load(file(jani(ALIKE, accumulate=("time",))))  # which is of no use for steps


@pytest.mark.parametrize("accumulate", [None, ()])
@pytest.mark.parametrize(("exp", "field"), [("cost", r"\[\"steps\", \"exit\"\]"), (1, r"\[\"steps\"\]")])
def test_a_property_that_accumulates_nothing_is_refused(file, accumulate, exp, field):
    path = file(jani(ALIKE, exp=exp, accumulate=accumulate))
    for asked in (None, "p0"):
        with pytest.raises(PrudentError, match=rf'called p0, accumulates nothing .*; add "accumulate": {field} to it'):
            prudent.load(path, property=asked)
    assert prudent.load(path, property='R{"cost"}min=? [F s=2]').n_states == 3
    path = file(jani(ALIKE, exp=exp, accumulate=accumulate, more=[{"exp": "cost", "accumulate": ["exit"]}]))
    assert prudent.solve(prudent.load(path), 1.0).expected == 0.25 * 7  # the other one fits


def test_the_usual_names_do_not_stand_in_for_a_property_that_accumulates_nothing(file):
    """A label "goal" and a reward "cost" would do where the file has no property for them."""
    document = json.loads(jani(ALIKE, accumulate=()))
    document["variables"].append({"name": "goal", "type": "bool", "transient": True, "initial-value": False})
    with pytest.raises(PrudentError, match="accumulates nothing"):
        prudent.load(file(json.dumps(document)))


def test_not_json(file):
    with pytest.raises(PrudentError, match=r"row.jani: Storm: "):
        prudent.load(file("{"))


@pytest.mark.parametrize("op", ["min", "max"])
def test_the_only_reward_needs_no_name(file, op):
    document = json.loads(jani(ALIKE))
    document["properties"] = []
    path = file(json.dumps(document))
    named, unnamed = (prudent.load(path, property=f"R{name}{op}=? [F s=2]") for name in ('{"cost"}', ""))
    assert named.fingerprint == unnamed.fingerprint
    for asked in (f'filter(max, R{op}=? [F s=2], "init")', f"const int k = 2; R{op} = ? [F s=k]"):
        assert prudent.load(path, property=asked).fingerprint == named.fingerprint
    assert prudent.solve(unnamed, 1.0).expected == (6.5 if op == "min" else -6.5)


@pytest.mark.parametrize(
    ("exp", "accumulate", "expected"),
    [
        (3, ("steps",), 3.75),
        (2.5, ("exit", "steps"), 6.25),
        ({"op": "*", "left": "K", "right": 2}, ("steps",), 7.5),
        ({"op": "*", "left": 2, "right": "cost"}, ("exit",), 3.5),
        ({"op": "+", "left": "s", "right": 1}, ("exit",), 1.5),
    ],
)
def test_a_reward_may_be_an_expression_where_outcomes_are_alike(file, exp, accumulate, expected):
    """These are Storm's own numbers."""
    document = json.loads(jani(ALIKE, exp=exp, accumulate=accumulate))
    document["constants"] = [{"name": "K", "type": "int"}]
    path, constants = file(json.dumps(document)), {"K": 3}
    model = prudent.load(path, constants=constants)
    assert prudent.solve(model, 1.0).expected == pytest.approx(expected, rel=1e-12)
    described, properties = stormpy.parse_jani_model(path)
    described, properties = stormpy.instantiate_constants(described, constants, properties)
    built = stormpy.build_model[stormpy.Rational](described, properties)
    found = stormpy.model_checking(built, properties[0])
    assert float(found.get_value(built.initial_states[0])) == expected


def test_other_expressions_are_refused(file):
    path = file(jani(ALIKE, exp={"op": "*", "left": 2, "right": "cost"}))
    with pytest.raises(
        PrudentError, match=r"row.jani: property R.*: its reward is an expression, .* assign the expression to a tra"
    ):
        prudent.load(path)


def test_constants_of_jani_are_needed_where_they_are_used(file):
    document = json.loads(jani(ALIKE, more=[{"op": "Pmax", "exp": {"op": "F", "exp": "T"}}]))
    del document["properties"][1]["expression"]["values"]["accumulate"]
    document["constants"] = [{"name": name, "type": "int"} for name in ("A", "B", "C")]
    document["constants"].append({"name": "T", "type": "bool"})
    document["constants"].append({"name": "D", "type": "int", "value": {"op": "+", "left": "C", "right": 1}})
    document["variables"].append({"name": "toll", "type": "real", "transient": True, "initial-value": 0})
    edge = document["automata"][0]["edges"][0]
    edge["destinations"][0]["assignments"].append({"ref": "toll", "value": "D"})
    edge["destinations"][1]["assignments"].append({"ref": "toll", "value": "D"})
    edge["guard"]["exp"] = {"op": "=", "left": "s", "right": {"op": "-", "left": "A", "right": "A"}}
    path = file(json.dumps(document))
    assert prudent.solve(prudent.load(path, constants={"A": 1}), 1.0).expected == 6.5
    with pytest.raises(PrudentError, match="leaves A undefined"):
        prudent.load(path)
    toll = 'R{"toll"}min=? [F s=2]'
    with pytest.raises(PrudentError, match="leaves C undefined"):
        prudent.load(path, property=toll, constants={"A": 1})
    assert prudent.solve(prudent.load(path, property=toll, constants={"A": 1, "C": 4}), 1.0).expected == 5
