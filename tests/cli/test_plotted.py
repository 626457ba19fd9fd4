"""``--plot FILE``: a picture beside the answer, whole or not at all."""

import json
import sys

import pytest
from click.testing import CliRunner

from prudent.apps.cli.main import main

pytest.importorskip("matplotlib", reason="pictures need matplotlib (extra plot)")


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


BEGIN = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


@pytest.mark.parametrize("suffix", BEGIN)
@pytest.mark.parametrize("verb", [["solve", "figure-2", "--alpha", 0.1], ["curve", "figure-2"]])
def test_a_picture_beside_the_answer(verb, suffix, tmp_path):
    path = tmp_path / f"picture{suffix}"
    result = run(*verb, "--json", "--plot", path)
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["model"] == "figure-2"
    assert f"picture written to {path}" in result.stderr
    assert path.read_bytes().startswith(BEGIN[suffix])


def test_evaluate_and_frontier(tmp_path):
    plan = tmp_path / "plan.safetensors"
    assert run("solve", "figure-2", "--alpha", 0.1, "--save", plan).exit_code == 0
    for verb in (["evaluate", "figure-2", plan], ["frontier", "figure-2", "--alpha", 0.1]):
        result = run(*verb, "--plot", tmp_path / "picture.png")
        assert result.exit_code == 0, result.stderr
        assert (tmp_path / "picture.png").read_bytes().startswith(BEGIN[".png"])
        (tmp_path / "picture.png").unlink()


def test_study(tmp_path):
    asked = ["--set", "stages=2,3", "--alpha", 0.5, "--workers", 1]
    assert run("study", "betting-game", *asked, "--plot", tmp_path / "picture.png").exit_code == 0
    assert (tmp_path / "picture.png").read_bytes().startswith(BEGIN[".png"])


@pytest.mark.parametrize(
    ("name", "message"),
    [("picture.jpg", "pictures are written as .png, .svg, .pdf"), ("nowhere/picture.png", "there is no folder")],
)
def test_a_wrong_path_is_refused_before_anything_is_computed(name, message, tmp_path, monkeypatch):
    monkeypatch.setattr("prudent.planning.solve.solve", lambda *_, **__: pytest.fail("solved in vain"))
    result = run("solve", "figure-2", "--alpha", 0.1, "--plot", tmp_path / name)
    assert result.exit_code == 2
    assert message in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = run("curve", "figure-2", "--plot", tmp_path / "picture.png")
    assert result.exit_code == 2
    assert "pip install 'prudent[plot]'" in result.stderr
