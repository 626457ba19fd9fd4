"""The prose checker: it finds what is planted, by file and line, and nothing else."""

import subprocess
import sys
from pathlib import Path

import pytest

CHECKER = Path(__file__).parents[2] / "docs" / "prose.py"
pytest.importorskip("proselint")

PLANTED = {
    "page.md": "# Title\n\nIt waits for\never, `for ever` in code.\n\n```\nfor ever\n```\n",
    "module.py": 'def f(n):\n    """Return n."""\n    raise ValueError(f"{n} would wait for ever, " "and then some")\n',
    "script.js": "const a = 1;\nconst text = `It waits for ever`;\n",
    "clean.md": "Plain words for every reader.\n",
}


def test_planted_phrases_are_found(tmp_path):
    for name, text in PLANTED.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    paths = [str(tmp_path / name) for name in PLANTED]
    done = subprocess.run([sys.executable, str(CHECKER), *paths], capture_output=True, text=True, timeout=120)
    found = [line.rpartition("/")[2] for line in done.stdout.splitlines()]
    message = "write 'forever' instead of 'for ever'"
    assert found == [f"page.md:3: {message}", f"module.py:3: {message}", f"script.js:2: {message}"]
    assert done.returncode == 1
    done = subprocess.run([sys.executable, str(CHECKER), paths[-1]], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "nothing to fix in 1 files\n")
