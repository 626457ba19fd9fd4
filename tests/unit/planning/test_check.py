import json

import pytest

import prudent


def test_a_good_model():
    report = prudent.check(prudent.domains.deep_sea_treasure())
    assert report.ok
    assert (report.states, report.actions, report.outcomes, report.goals) == (1078, 6705, 18396, 1)
    assert (report.acyclic, report.step, report.worst_case) == (True, 5, 500)
    assert report.least_cost == 70  # fourteen moves to the far treasure, worth 500
    assert report.problems == report.notes == ()


def test_what_was_pruned_and_why():
    table = {
        "s": {"risky": [(0.9, "g", 1), (0.1, "trap", 0)], "safe": [(1, "m", 5)]},
        "m": {"on": [(0.5, "m", 0.25), (0.5, "g", 0)], "idle": [(1, "m", 0)]},
        "trap": {"stay": [(1, "trap", 0)]},
    }
    report = prudent.check(prudent.build("s", lambda s: table.get(s, {})))
    assert report.ok
    assert (report.pruned_states, report.pruned_actions, report.acyclic, report.step) == (1, 1, False, 0.25)
    assert report.worst_case == float("inf")
    assert (
        "1 of the states can be reached, but no plan goes there because a run could get stuck: 'trap'" in report.notes
    )
    assert any(
        "1 of the actions may lead to a state from which no goal can be reached, for example 'risky' in 's'" in n
        for n in report.notes
    )
    assert any("1 of the actions can only move inside cycles at no cost" in n for n in report.notes)


def test_unreachable_states():
    model = prudent.from_arrays([0, 1, 2, 2], [0, 1, 2], [1.0, 1.0], [2, 2], [1.0, 1.0])
    assert prudent.check(model).notes == ("1 of the states cannot be reached from the start: 1",)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"s": {"a": [(1, "s", 1)], "b": [(0.5, "g", 0), (0.5, "pit", 0)]}, "pit": {"a": [(1, "pit", 0)]}}, ["'pit'"]),
        ({"s": {"a": [(0.5, "s", -1), (0.5, "g", 0)]}}, ["cycle 's' -> 's'", "-1"]),
    ],
)
def test_models_that_cannot_be_solved(table, words):
    report = prudent.check(prudent.build("s", lambda s: table.get(s, {})))
    assert not report.ok
    assert report.states == len(table) + 1
    for word in words:
        assert word in report.problems[0]


def test_costs_without_a_common_step_are_noted():
    table = {"s": {"a": [(0.5, "g", 2**0.5), (0.5, "g", 3**0.5)], "b": [(1, "g", 1)]}}
    report = prudent.check(prudent.build("s", table))
    assert report.ok
    assert report.step is None
    assert "no common step; solve rounds them" in report.notes[0]


def test_every_problem_of_a_file(tmp_path):
    path = tmp_path / "bad.json"
    row = {"state": "s", "action": "a", "outcomes": [{"p": 0.9, "to": "g", "cost": 1}]}
    other = {"state": "s", "action": "b", "outcomes": [{"p": -1, "to": "g", "cost": 1}, {"p": 2, "to": "g", "cost": 0}]}
    document = {"format": "prudent-ssp", "version": 1, "initial": "s", "goals": ["g"], "transitions": [row, other]}
    path.write_text(json.dumps(document))
    report = prudent.check(path)
    assert not report.ok
    assert len(report.problems) == 3
    row["outcomes"][0]["to"] = "h"
    other["outcomes"][0]["cost"] = "dear"
    document["goals"] = ["g", 7]
    document["transitions"].append({"state": "s", "action": "c", "outcomes": [{"p": 0.95, "to": "g", "cost": 1}]})
    path.write_text(json.dumps(document))
    assert len(prudent.check(path).problems) == 5
    path.write_text("{")
    assert "line 1, column 2" in prudent.check(path).problems[0]


def test_more_steps_than_a_float_can_square():
    """A chain of about 1e180 steps: forward with little chance, else back to the start."""
    table = {i: {"go": [(0.001, i + 1 if i < 59 else "g", 1), (0.999, 0, 1)]} for i in range(60)}
    report = prudent.check(prudent.build(0, table))
    assert report.ok and report.worst_case == float("inf")
    assert report.forecast.levels >= 2**61


def test_a_trap_does_not_hide_a_cycle():
    table = {
        "s": {"a": [(0.5, "trap", 1), (0.5, "u", -3)]},
        "u": {"b": [(1, "s", -1)], "c": [(1, "g", 2)]},
        "trap": {"w": [(1, "pit", -1)]},
        "pit": {"w": [(1, "trap", -1)]},  # a cycle that no longer exists once the trap has a way out
    }
    report = prudent.check(prudent.build("s", table.get, goals=["g"]))
    first, second = (problem.split(" of model")[0] for problem in report.problems)
    assert first == "no policy reaches a goal"
    assert second in ("the cycle 's' -> 'u' -> 's'", "the cycle 'u' -> 's' -> 'u'")
    assert report.notes == ("2 of the states lead to no goal: 'trap', 'pit'",)
    del table["u"]["b"]
    assert len(prudent.check(prudent.build("s", table.get, goals=["g"])).problems) == 1


def test_levels_have_the_size_that_normalised_costs_share():
    table = {"s": {"a": [(0.5, "g", 1), (0.5, "g", 4)], "b": [(0.1, "g", 1), (0.9, "g", 7)]}}
    model = prudent.build("s", table.get, goals=["g"])
    report = prudent.check(model)
    assert (report.step, report.forecast.step, report.forecast.levels) == (1, 3, 2)
    assert "for up to 2 levels of 3" in [row[2] for row in report.table().rows]
    assert prudent.check(model, step=2).forecast.step == 2
