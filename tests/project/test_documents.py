"""Pages that run: what a page shows is checked, and a page that is wrong is not built."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import prudent

DOCS = Path(__file__).parents[2] / "docs"

PAGE = """# A page

```{run}
:check: CHECK
CODE
```

It is {value}`x:.1f`.
"""


def built(folder, check, code):
    """Return what Sphinx says and the page it makes of a block of code."""
    pytest.importorskip("sphinx")
    pytest.importorskip("myst_parser")
    (folder / "conf.py").write_text(
        f"import sys\nsys.path.insert(0, {str(DOCS / '_ext')!r})\n"
        "extensions = ['myst_parser', 'executed']\nhtml_theme = 'basic'\n"
    )
    page = PAGE.replace("CODE", code)
    page = page.replace("CHECK", check) if check else page.replace(":check: CHECK\n", "")
    (folder / "index.md").write_text(page)
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", str(folder), str(folder / "out")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stderr, (folder / "out" / "index.html").read_text()


def test_a_page_shows_what_its_code_prints(tmp_path):
    code, said, page = built(tmp_path, "out == '4.25\\n' and x == 4.25", "x = 17 / 4\nprint(x)")
    assert (code, said) == (0, "")
    assert "4.25" in page and "It is <span" in page and "4.2<" in page


@pytest.mark.parametrize(
    ("check", "code", "told"),
    [
        ("x == 5", "x = 4\nprint(x)", "check failed: x == 5"),
        ("", "x = 4\nprint(x)", "shows something that no :check: looks at"),
        ("True", "x = 4\n1 / 0", "ZeroDivisionError"),
        ("True", "y = 4", "value x:.1f"),
        ("True", "x = 4\nmissing('sphinx')", "uses missing, which no code shown above makes"),
        ("True", "x = 4\n[missing(y) for y in ('sphinx',)]", "uses missing, which"),
    ],
)
def test_a_page_that_is_wrong_is_not_built(tmp_path, check, code, told):
    status, said, _ = built(tmp_path, check, code)
    assert status != 0
    assert told in said


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.stem)
def test_every_block_of_code_runs(page):
    fences = re.findall(r"^```(?!`)(.+)$", page.read_text(), flags=re.MULTILINE)
    assert [fence for fence in fences if not fence.startswith("{")] == []


def test_names_break_after_dots_and_underscores_alone():
    pytest.importorskip("sphinx")
    sys.path.insert(0, str(DOCS / "_ext"))
    try:
        from interactive import break_names
    finally:
        sys.path.pop(0)
    context = {"body": '<span class="pre">prudent.domains.betting_game()</span> <span class="pre">solve.now</span>'}
    break_names(None, "api", "page.html", context, None)
    assert context["body"] == (
        '<span class="pre">prudent.<wbr>domains.<wbr>betting_<wbr>game()</span> <span class="pre">solve.now</span>'
    )


def test_the_changelog_has_sections_for_each_release_and_a_line_for_each_change():
    first, *releases = re.split(r"^## ", (DOCS.parent / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    assert first.startswith("# Changelog")
    assert releases[0].startswith(prudent.__version__)
    for release in releases:
        title, *lines = (line for line in release.splitlines() if line)
        assert re.fullmatch(r"[0-9]+\.[0-9]+\.[0-9]+ - [0-9]{4}-[0-9]{2}-[0-9]{2}", title)
        for line in lines:
            assert re.fullmatch(r"### (Added|Changed|Deprecated|Removed|Fixed|Security)|\* \S.*[.]", line), line
            assert len(line) <= 120, line
