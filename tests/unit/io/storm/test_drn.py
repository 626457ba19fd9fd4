"""DRN as written: the text itself; what Storm reads from it is checked in tests/reference/test_storm_models.py."""

import pytest

import prudent
from prudent import PrudentError


def written(model, folder) -> str:
    prudent.save(model, folder / "model.drn")
    return (folder / "model.drn").read_text(encoding="utf-8")


def test_a_chain(tmp_path):
    model = prudent.build("a", {"a": {"go on": [(0.25, "a", 3), (0.75, "end", 3)]}}, name="loop")
    assert written(model, tmp_path).splitlines() == [
        "// Written by prudent",
        "@type: DTMC",
        "@value_type: double",
        "@parameters",
        "",
        "@reward_models",
        "cost",
        "@nr_states",
        "2",
        "@nr_choices",
        "2",
        "@model",
        "state 0 [0] init",
        "//[a]",
        "\taction go_on [3.0]",
        "\t\t0 : 0.25",
        "\t\t1 : 0.75",
        "state 1 [0] goal",
        "//[end]",
        "\taction done [0]",
        "\t\t1 : 1",
    ]


def test_outcomes_that_cost_differently_pay_on_the_way(tmp_path):
    outcomes = [(0.5, "a", 1), (0.25, "end", 1), (0.125, "end", 0), (0.125, "end", 0.1), (0.0, "end", 7)]
    model = prudent.build("a", {"a": {"x y": outcomes, "x_y": [(1, "end", 9)]}})
    lines = written(model, tmp_path).splitlines()
    assert lines[1] == "@type: MDP"
    assert (lines[8], lines[10]) == ("5", "6")
    body = lines[12:]
    # Names that would be the same are numbers; at no cost, nothing is on the way.
    assert body[2:7] == ["\taction 0 [0.0]", "\t\t1 : 0.125", "\t\t2 : 0.5", "\t\t3 : 0.125", "\t\t4 : 0.25"]
    assert body[7:9] == ["\taction 1 [9.0]", "\t\t1 : 1.0"]
    assert body[-9:] == [
        "state 2 [0] pay",
        "\taction pay [1.0]",
        "\t\t0 : 1",
        "state 3 [0] pay",
        "\taction pay [0.1]",
        "\t\t1 : 1",
        "state 4 [0] pay",
        "\taction pay [1.0]",
        "\t\t1 : 1",
    ]


def test_several_initial_states_are_drawn_from_one(tmp_path):
    model = prudent.build({"b": 0.75, "a": 0.25, "c": 0.0}, {s: {"go": [(1, "end", 1)]} for s in "abc"})
    text = written(model, tmp_path)
    assert text.count("init") == 1
    assert text.endswith("state 4 [0] init\n\taction start [0]\n\t\t0 : 0.75\n\t\t1 : 0.25\n")


def test_odd_names_stay_in_their_comments(tmp_path):
    model = prudent.build("a\nstate 9 [0] goal", {"a\nstate 9 [0] goal": {"]\n\t\t5 : 1": [(1, "\ud800", 1)]}})
    lines = written(model, tmp_path).splitlines()
    assert r"//['a\nstate 9 [0] goal']" in lines
    assert "\taction ____5___1 [1.0]" in lines
    assert r"//['\ud800']" in lines
    assert len(lines) == 20


def test_other_formats_are_only_read(tmp_path):
    for suffix in (".prism", ".nm", ".jani"):
        with pytest.raises(PrudentError, match=r"models cannot be written in this format; write \.json, .*\.drn"):
            prudent.save(prudent.domains.figure_2(), tmp_path / f"model{suffix}")
    assert list(tmp_path.iterdir()) == []
