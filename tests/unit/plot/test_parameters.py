"""Pictures of studies, read back from what was drawn."""

import pytest

import prudent

pytest.importorskip("matplotlib", reason="pictures need matplotlib (extra plot)")

from drawing import drawn


@pytest.fixture(scope="module")
def study():
    return prudent.study("betting-game", {"stages": [3, 2, -1], "cap": [20, 40]}, [0.5, 0.1], workers=1)


def test_a_line_for_each_combination_of_all_else_without_what_failed(study):
    ax = drawn(prudent.plot.study(study))
    lines = {line.get_label(): line.get_xydata().tolist() for line in ax.get_lines()}
    assert list(lines) == ["cap 20, alpha 0.5", "cap 20, alpha 0.1", "cap 40, alpha 0.5", "cap 40, alpha 0.1"]
    cvar = {(row["stages"], row["cap"], row["alpha"]): row["cvar"] for row in study.rows}
    assert lines["cap 40, alpha 0.1"] == [[2, cvar[2, 40, 0.1]], [3, cvar[3, 40, 0.1]]]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("stages", "CVaR")


def test_against_alpha_and_over_names(study):
    ax = drawn(prudent.plot.study(study, x="alpha", y="expected"))
    assert (ax.get_xlabel(), ax.get_ylabel(), len(ax.get_lines())) == ("alpha", "expected cost", 4)
    named = prudent.study(named_model, {"way": ["sea", "land"]}, [0.5], workers=1)
    ax = drawn(prudent.plot.study(named))
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["sea", "land"] and ax.get_legend() is None


def named_model(way):
    return prudent.build("here", {"here": {"go": [(1, "there", len(way))]}})


def test_what_is_wrong_is_said(study):
    for change, message in [
        ({"x": "money"}, "x is 'money'; it must be one of stages, cap, alpha"),
        ({"y": "status"}, "y is 'status'; it must be one of step, cvar"),
    ]:
        with pytest.raises(prudent.PrudentError, match=message):
            prudent.plot.study(study, **change)
    with pytest.raises(prudent.PrudentError, match="study is a int; give what"):
        prudent.plot.study(3)
