"""JSON models however they are laid out, and the text that is written."""

import json
import re
from pathlib import Path

import pytest

import prudent
from prudent.io.json import content_of, parse


def row(state, to, action="go"):
    outcomes = [{"p": 0.5, "to": "g", "cost": 1}, {"p": 0.5, "to": to, "cost": 2.5}]
    return {"state": state, "action": action, "outcomes": outcomes}


def document(*rows, initial="a", **more):
    head = {"format": "prudent-ssp", "version": 1, "initial": initial, "goals": ["g"]}
    return json.dumps({**head, "transitions": rows, **more})


EVERY = {
    "as written": document(row("a", "b"), row("b", "g")),
    "spaces": document(row("a", "g")).replace(":", " :\n"),
    "states apart": document(row("a", "b"), row("b", "g"), row("a", "a", "stay"), initial={"b": 0.25, "a": 0.75}),
    "a goal twice": document(row("a", "g"), goals=["g", "g"]),
    "states in order": document(row("a", "b"), row("b", "g"), states=["g", "b", "a"]),
    "colons inside": document(row("a:1", "a:1"), initial="a:1"),
    "colons first": document(row(":a", ":a"), initial=":a"),
    "quotes": document(row('"', '":'), row('":', "g"), initial='"'),
}


@pytest.mark.parametrize("kind", EVERY)
def test_every_outcome_is_read_as_it_is_written(kind):
    model, content = parse(EVERY[kind].encode(), Path("m.json")), json.loads(EVERY[kind])
    found = {}
    for a in range(model.n_actions):
        own = range(model.outcome_start[a], model.outcome_start[a + 1])
        listed = [
            {"p": model.probability[o], "to": model.state(model.successor[o]), "cost": model.cost[o]} for o in own
        ]
        found[model.state(model.state_of_action(a)), model.action(a)] = listed
    assert found == {(row["state"], row["action"]): row["outcomes"] for row in content["transitions"]}
    assert {model.state(s) for s in model.is_goal.nonzero()[0]} == set(content["goals"])
    initial = content["initial"] if isinstance(content["initial"], dict) else {content["initial"]: 1}
    assert dict(zip(map(model.state, model.initial_state), model.initial_probability, strict=True)) == initial
    assert list(model.state_names) == content.get("states", list(model.state_names))


@pytest.mark.parametrize("kind", EVERY)
@pytest.mark.parametrize("field", ["p", "to", "state", "goals", "version"])
def test_a_field_given_twice_is_found_however_it_is_written(kind, field):
    given = re.search(rf'"{field}"\s*:\s*("(\\.|[^"])*"|\[[^]]*\]|[\d.]+)', EVERY[kind])[0]
    again = EVERY[kind].replace(given, f"{given}, {given}", 1)
    with pytest.raises(prudent.PrudentError, match=f"has the field '{field}' twice"):
        parse(again.encode(), Path("m.json"))


@pytest.mark.parametrize("kind", EVERY)
def test_text_is_indented_as_json_dumps_does(kind):
    written = content_of(parse(EVERY[kind].encode(), Path("m.json"))).decode()
    assert written == json.dumps(json.loads(written), ensure_ascii=False, indent=1)
