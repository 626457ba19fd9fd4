import doctest
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"


def test_readme_tells_the_truth():
    result = doctest.testfile(str(README), module_relative=False)
    assert result.attempted >= 5
    assert result.failed == 0
