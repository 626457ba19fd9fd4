"""The quick reader of plain JSON models against the careful one, and the text that is written."""

import json
import re
from pathlib import Path

import pytest

import prudent
from prudent.io.json import model as json_model
from prudent.io.json.plain import plain_model, text_of


def row(state, to, action="go"):
    outcomes = [{"p": 0.5, "to": "g", "cost": 1}, {"p": 0.5, "to": to, "cost": 2.5}]
    return {"state": state, "action": action, "outcomes": outcomes}


def document(*rows, initial="a", **more):
    head = {"format": "prudent-ssp", "version": 1, "initial": initial, "goals": ["g"]}
    return json.dumps({**head, "transitions": rows, **more})


PLAIN = {
    "as written": document(row("a", "b"), row("b", "g")),
    "spaces": document(row("a", "g")).replace(":", " :\n"),
    "states apart": document(row("a", "b"), row("b", "g"), row("a", "a", "stay"), initial={"b": 0.25, "a": 0.75}),
    "a goal twice": document(row("a", "g"), goals=["g", "g"]),
    "states in order": document(row("a", "b"), row("b", "g"), states=["g", "b", "a"]),
    "colons inside": document(row("a:1", "a:1"), initial="a:1"),
}
ODD = {
    "colons first": document(row(":a", ":a"), initial=":a"),
    "quotes": document(row('"', '":'), row('":', "g"), initial='"'),
}
EVERY = PLAIN | ODD


@pytest.mark.parametrize("kind", EVERY)
def test_the_quick_reader_and_the_careful_one_agree(kind):
    careful = json_model._model(json.loads(EVERY[kind]), "m")
    assert json_model.parse(EVERY[kind].encode(), Path("m.json")).fingerprint == careful.fingerprint
    quick = plain_model(EVERY[kind], "m")
    assert (quick is None) == (kind in ODD)
    assert quick is None or quick.fingerprint == careful.fingerprint


@pytest.mark.parametrize("kind", EVERY)
@pytest.mark.parametrize("field", ["p", "to", "state", "goals", "version"])
def test_a_field_given_twice_is_found_however_it_is_written(kind, field):
    given = re.search(rf'"{field}"\s*:\s*("(\\.|[^"])*"|\[[^]]*\]|[\d.]+)', EVERY[kind])[0]
    again = EVERY[kind].replace(given, f"{given}, {given}", 1)
    with pytest.raises(prudent.PrudentError, match=f"has the field '{field}' twice"):
        json_model.parse(again.encode(), Path("m.json"))


@pytest.mark.parametrize("kind", EVERY)
def test_text_is_indented_as_json_dumps_does(kind):
    written = text_of(json_model.parse(EVERY[kind].encode(), Path("m.json")))
    assert written == json.dumps(json.loads(written), ensure_ascii=False, indent=1)
