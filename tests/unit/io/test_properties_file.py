"""Files of properties: which one is taken, and what its constants and labels become."""

from pathlib import Path

import pytest

from prudent import PrudentError
from prudent.io.properties import PropertiesFile, referred

TEXT = """// Properties of a walk.
const int k;
const double p = 1/4; const bool on;
label "far" = x>=k & !"near";
label "near" = x<p*8;

"chance": Pmax=? [ F "far" ]   // ends with its line
  & P>=1 [ F "near" ];
"cost": R{"near"}min=?
  [ F ("far" | x=9) ]
R{"k"}max=? [ F x=k ]
filter(max, Tmin=? [ F on ], "init")
"""


def parsed(text, name="walk.props"):
    return PropertiesFile(text.encode(), Path(name))


def having(part):
    def check(text):
        if part not in text:
            raise PrudentError("another property is asked for")

    return check


@pytest.fixture
def walk():
    return parsed(TEXT)


def test_statements_end_with_a_semicolon_or_a_complete_line(walk):
    assert list(walk.text) == ["chance", "cost", "3", "4"]
    assert walk.text["chance"].split() == 'Pmax=? [ F "far" ] & P>=1 [ F "near" ]'.split()
    assert walk.text["3"] == 'R{"k"}max=? [ F x=k ]'
    assert walk.kind == {"k": "int", "on": "bool"}


def test_constants_and_labels_are_put_in_place(walk):
    chosen = walk.chosen("cost", {"k": "7"}, bool)
    assert chosen.split() == ['R{"near"}min=?', "[", "F", "((x>=(7)", "&", "!(x<(1/4)*8))", "|", "x=9)", "]"]
    assert walk.chosen("3", {"k": "7"}, bool) == 'R{"k"}max=? [ F x=(7) ]'
    with pytest.raises(
        PrudentError, match=r'property cost leaves k undefined; give constants=\{"k": ...\} \(--const k=...\)'
    ):
        walk.chosen("cost", {}, bool)
    assert walk.chosen("4", {"on": "true"}, bool) == 'filter(max, Tmin=? [ F (true) ], "init")'


def test_the_only_one_that_fits_needs_no_name(walk):
    assert walk.chosen(None, {"k": "7"}, having("max=? [ F x")) == 'R{"k"}max=? [ F x=(7) ]'
    with pytest.raises(PrudentError, match=r"walk.props: several of .*; choose one with .*walk.props:NAME; .* 3 \(R\{"):
        walk.chosen(None, {"k": "7"}, having("R{"))
    with pytest.raises(PrudentError, match=r"none of its properties asks for .*; its properties are chance \(Pmax=\?"):
        walk.chosen(None, {"k": "7"}, having("nothing"))
    with pytest.raises(PrudentError, match=r"there is no property 'coast'; its properties are chance \("):
        walk.chosen("coast", {}, bool)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("const int a = b; const int b = a; Tmin=? [F x=a]", "constants or labels define each other in a cycle"),
        ('label "a" = "a"; Tmin=? [F "a"]', "constants or labels define each other in a cycle"),
        (
            "".join(f"const int a{i} = a{i + 1}+a{i + 1};" for i in range(40)) + "const int a40 = 1; Tmin=? [F x=a0]",
            "has more than 100,000 characters",
        ),
        ('"a": Tmin=? [F x=1]; "a": Tmin=? [F x=2]', "two properties are called a"),
        ("", "there is no property '1'; it has no properties"),
    ],
)
def test_refused(text, words):
    with pytest.raises(PrudentError, match=f"odd.props: .*{words}"):
        parsed(text, "odd.props").chosen("1", {}, bool)


@pytest.mark.parametrize(
    "text", ['"a": Tmin=? [F x=1] "b": Tmin=? [F x=2]', '"a": Tmin=? [F (x=1; "b": Tmin=? [F x=2];']
)
def test_what_has_no_end_is_left_for_storm_to_refuse(text):
    assert parsed(text).text == {"a": text.removeprefix('"a": ')}


def test_only_a_path_is_one(tmp_path):
    (tmp_path / "walk.PCTL").write_text(TEXT)
    found = referred(f"{tmp_path}/walk.PCTL:a: b")
    assert found is not None
    assert found[1] == "a: b"
    for asked in ('R{"a.props:b"}min=? [F "x"]', 'Rmin=? [F "a.props"]', "energy", "", None, 5):
        assert referred(asked) is None
    with pytest.raises(PrudentError, match=r"none.props: no such file"):
        referred("none.props:a")
