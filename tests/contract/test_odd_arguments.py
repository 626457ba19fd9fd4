"""Whatever is passed, a user's mistake is a PrudentError that says what was wanted."""

import numpy as np
import pytest

import prudent

MODEL = prudent.build("s", {"s": {"a": [(1, "g", 1)]}})
ARRAYS = ([0, 1, 1], [0, 1], [1.0], [1], [1.0])

ODD = {
    "build with arguments swapped": (lambda: prudent.build(lambda s: {}, 0), "give the initial state first, then"),
    "states that are lists": (lambda: prudent.build(["s"], lambda s: {}), "states must be hashable"),
    "goals that are none": (lambda: prudent.build("s", {}, goals=3), "goals is 3; it must be a collection of states"),
    "goals that are lists": (lambda: prudent.build("s", {}, goals=[[1]]), "it must be a collection of states"),
    "endless states": (
        lambda: prudent.build(0, lambda s: {"x": [(1, s + 1, 3)]}, max_states=100),
        "more than 100 states",
    ),
    "array of text": (
        lambda: prudent.from_arrays([0, 1, 1], [0, 1], ["a"], [1], [1.0]),
        "probability must be an array",
    ),
    "complex numbers": (
        lambda: prudent.from_arrays([0, 1, 1], [0, 1], [1j], [1], [1.0]),
        "probability must be an array",
    ),
    "ragged arrays": (lambda: prudent.from_arrays([0, 1, 1], [0, 1], [1.0], [[1], [1, 2]], [1.0]), "successor must be"),
    "initial in a list": (
        lambda: prudent.from_arrays(*ARRAYS, initial=[0]),
        "initial is [0]; it must be a state's numb",
    ),
    "names that are a number": (lambda: prudent.from_arrays(*ARRAYS, state_names=5), "state_names must be a sequence"),
    "names that are lists": (lambda: prudent.from_arrays(*ARRAYS, state_names=[[1], [2]]), "state_names must be a seq"),
    "huge alpha": (lambda: prudent.solve(MODEL, 10**400), "it must be the worst fraction of runs"),
    "solve with arguments swapped": (lambda: prudent.solve(0.5, MODEL), "model is a float"),
    "a list of methods": (
        lambda: prudent.solve(MODEL, 0.5, method=["exact"]),
        "method is ['exact']; it must be one of",
    ),
    "spent as text": (lambda: prudent.solve(MODEL, 0.5).policy("s", "x"), "spent is 'x'; it must be a finite number"),
    "spent is None": (lambda: prudent.solve(MODEL, 0.5).policy("s", None), "spent is None"),
    "evaluate no model": (lambda: prudent.evaluate(3, {}), "model is a int; pass the model, then the policy"),
    "tolerance of nan": (lambda: prudent.evaluate(MODEL, {"s": "a"}, tolerance=np.nan), "tolerance is nan"),
    "tolerance below 0": (lambda: prudent.evaluate(MODEL, {"s": "a"}, tolerance=-1), "tolerance is -1"),
    "quantile of text": (
        lambda: prudent.evaluate(MODEL, {"s": "a"}).quantile("x"),
        "q is 'x'; it must be a probability",
    ),
    "load nothing": (lambda: prudent.load(None), "path is None; it must be the path of a file"),
    "save nowhere": (lambda: prudent.save(MODEL, None), "path is None"),
    "load_plan swapped": (
        lambda: prudent.load_plan(MODEL, "p.safetensors"),
        "load_plan takes the path, then the model",
    ),
    "no threads": (lambda: prudent.simulate(MODEL, {"s": "a"}, threads=0), "threads is 0"),
    "names become strings": (lambda: named().policy(0), "state 0 is not a state of model; names in files are strings"),
    "no such name": (
        lambda: named().policy("s"),
        "state 's' is not a state of model; model.state_names lists them, such as '0'",
    ),
    "parts of a name in another order": (
        lambda: valued().index("lost=true,left=3"),
        "state 'lost=true,left=3' is not a state of model; did you mean 'left=3, lost=true'?",
    ),
    "a part of a name": (lambda: valued().index("left=3"), "model.state_names lists them, such as 'left=3, lost=true'"),
    "no such number": (lambda: prudent.from_arrays(*ARRAYS).index(2), "states are numbers, from 0 to 1"),
    "a list for a state": (lambda: prudent.from_arrays(*ARRAYS).index([0]), "states are numbers, from 0 to 1"),
    "evaluate a function of the state alone": (
        lambda: prudent.evaluate(MODEL, lambda s: "a"),
        "policy is a function of (s); it must take (state, spent), the state and the cost so far",
    ),
    "simulate a function of nothing": (lambda: prudent.simulate(MODEL, lambda: "a"), "policy is a function of ()"),
}


def valued():
    return prudent.build("left=3, lost=true", {"left=3, lost=true": {"a": [(1, "left=0, lost=true", 1)]}})


def named():
    model = prudent.build("0", {"0": {"a": [(1, "g", 1)]}})
    return prudent.solve(model, 0.5)


@pytest.mark.parametrize("what", ODD)
def test_odd_arguments(what):
    call, message = ODD[what]
    with pytest.raises(prudent.PrudentError) as caught:
        call()
    assert message in str(caught.value)


def test_a_plan_made_in_python_fits_the_saved_model(tmp_path):
    """States keep their order in a file, so that plans fit both."""
    table = {
        "home": {"bike": [(1, "work", 50)], "train": [(1, "station", 10)]},
        "station": {"bus": [(1, "work", 15)]},
    }
    model = prudent.build("home", table)
    assert model.state_names == ("home", "work", "station")
    prudent.save(model, tmp_path / "m.json")
    prudent.save(prudent.solve(model, 0.5), tmp_path / "p.safetensors")
    again = prudent.load(tmp_path / "m.json")
    assert again.fingerprint == model.fingerprint
    assert prudent.load_plan(tmp_path / "p.safetensors", again).cvar == 25
    (tmp_path / "m.json").write_text(
        (tmp_path / "m.json").read_text().replace('"states": [\n  "home"', '"states": [\n  "x"')
    )
    with pytest.raises(prudent.PrudentError, match="states must list each state"):
        prudent.load(tmp_path / "m.json")


def test_odd_names_survive(tmp_path):
    model = prudent.build("a\ud800", {"a\ud800": {"\n": [(1, "[bold]", 1)]}})
    prudent.save(model, tmp_path / "A.JSON.GZ")
    assert prudent.load(tmp_path / "A.JSON.GZ").fingerprint == model.fingerprint
    assert (tmp_path / "A.JSON.GZ").read_bytes()[:2] == b"\x1f\x8b"
