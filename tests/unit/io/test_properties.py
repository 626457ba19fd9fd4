"""What is said about properties that files through Storm do not fit."""

from pathlib import Path

import pytest

import prudent
from prudent import PrudentError

stormpy = pytest.importorskip("stormpy")

EXAMPLES = Path(__file__).parents[3] / "examples"
NAMED = """mdp
module m
  x : [0..3] init 0;
  [go] x<3 -> 0.5 : (x'=x+1) + 0.5 : (x'=0);
endmodule
rewards "energy" [go] true : 2; endrewards
rewards "time" true : 1; endrewards
label "lost" = x=1;
label "home" = x=3;
"""
BARE = NAMED[: NAMED.index("rewards")]
UNSURE = {
    "nothing": (NAMED, None, 'R{"energy"}min=? [F "lost"]'),
    "misspelt reward": (NAMED, 'R{"tim"}min=? [F "home"]', 'R{"time"}min=? [F "home"]'),
    "misspelt label": (NAMED, 'R{"time"}min=? [F "homes"]', 'R{"time"}min=? [F "home"]'),
    "no reward said": (NAMED, 'Rmin=? [F "home"]', 'R{"energy"}min=? [F "home"]'),
    "a bound": (NAMED, 'R{"time"}<9 [F "home"]', 'R{"time"}min=? [F "home"]'),
    "a chance": (NAMED, 'Pmax=? [F "home"]', 'R{"energy"}min=? [F "home"]'),
    "no label": (BARE + "rewards [go] true : 2; endrewards", 'Rmin=? [F "home"]', "Rmin=? [F x=1]"),
    "no reward": (BARE + 'label "home" = x=3;', None, 'Tmin=? [F "home"]'),
    "neither": (BARE, None, "Tmin=? [F x=1]"),
}


@pytest.fixture
def file(tmp_path):
    def write(text, name="model.prism"):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


@pytest.mark.parametrize(("text", "asked", "offered"), UNSURE.values(), ids=UNSURE)
def test_a_property_in_the_words_of_the_file_is_offered_and_is_taken(file, text, asked, offered):
    path = file(text)
    with pytest.raises(PrudentError) as refused:
        prudent.load(path, property=asked)
    for said in (
        f"; give property='{offered}' (--property)",
        "Tmin=? [F ",
        "any label or condition on states may follow F",
    ):
        assert said in str(refused.value)
    assert ('labels: "lost", "home"; rewards: "energy", "time"' in str(refused.value)) == (text is NAMED)
    assert prudent.load(path, property=offered).n_states > 1


def test_a_property_is_offered_for_jani(file):
    text = (EXAMPLES / "channel.jani").read_text()
    path = file(text, "channel.jani")
    with pytest.raises(PrudentError, match='there is no label "end"; labels: none; rewards: "energy"; give') as refused:
        prudent.load(path, property='R{"energy"}min=? [F "end"]', constants={"N": 2})
    assert "property='R{\"energy\"}min=? [F left=1]'" in str(refused.value)
    assert prudent.load(path, property='R{"energy"}min=? [F left=1]', constants={"N": 2}).n_states > 1


def test_a_property_is_offered_for_models_in_memory(file):
    model = stormpy.build_model(stormpy.parse_prism_program(file(NAMED)))
    with pytest.raises(
        PrudentError, match='there is no label "end"; labels: "home", "lost"; rewards: "energy", "time"'
    ):
        prudent.from_storm(model, 'R{"time"}min=? [F "end"]')


def test_a_long_list_of_names_is_cut(file):
    many = "".join(f'label "l{i}" = x={i % 3};' for i in range(50))
    with pytest.raises(PrudentError, match=r'"l0", "l1",.* "l19", 30 more; rewards: '):
        prudent.load(file(BARE + many + 'rewards "time" true : 1; endrewards'), property='R{"time"}min=? [F "l50"]')


@pytest.mark.parametrize("what", ["max", "min", "avg", "sum", "values"])
def test_a_filter_for_the_initial_state_changes_nothing(file, what):
    path = file(NAMED)
    plain = prudent.load(path, property='R{"time"}min=? [F "home"]')
    filtered = prudent.load(path, property=f'filter({what}, R{{"time"}}min=? [F "home"], "init")')
    assert filtered.fingerprint == plain.fingerprint


@pytest.mark.parametrize(("what", "states"), [("max", '"lost"'), ("values", "true"), ("argmin", '"init"')])
def test_a_filter_for_anything_else_is_refused(file, what, states):
    asked = f'filter({what}, R{{"time"}}min=? [F "home"], {states})'
    with pytest.raises(PrudentError, match=r"has a filter, .*plans are for the initial state: leave out the filter"):
        prudent.load(file(NAMED), property=asked)


def test_a_property_of_jani_with_another_filter_does_not_fit(file):
    text = (EXAMPLES / "channel.jani").read_text()
    assert prudent.load(file(text, "channel.jani"), constants={"N": 2}).n_states > 1
    path = file(text.replace('"states": {"op": "initial"}', '"states": true'), "channel.jani")
    with pytest.raises(PrudentError, match="choose goals and costs with property="):
        prudent.load(path, constants={"N": 2})
