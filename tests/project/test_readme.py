import doctest
import re
from pathlib import Path

import pytest

import prudent

README = Path(__file__).parents[2] / "README.md"


def test_readme_tells_the_truth():
    result = doctest.testfile(str(README), module_relative=False)
    assert result.attempted >= 10
    assert result.failed == 0


def test_the_model_file_in_the_readme_is_its_model(tmp_path):
    (block,) = re.findall(r"```json\n(.*?)```", README.read_text(), flags=re.DOTALL)
    (tmp_path / "commute.json").write_text(block)
    plan = prudent.solve(prudent.load(tmp_path / "commute.json"), 0.01)
    assert (plan.cvar, plan.expected) == (pytest.approx(49), pytest.approx(29.2))
