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


def built(folder, check, code, more=""):
    """Return what Sphinx says and the page it makes of a block of code."""
    pytest.importorskip("sphinx")
    pytest.importorskip("myst_parser")
    (folder / "conf.py").write_text(
        f"import sys\nsys.path.insert(0, {str(DOCS / '_ext')!r})\n"
        "extensions = ['myst_parser', 'executed', 'gallery']\nhtml_theme = 'basic'\n"
    )
    page = PAGE.replace("CODE", code)
    page = page.replace("CHECK", check) if check else page.replace(":check: CHECK\n", "")
    (folder / "index.md").write_text(page + more)
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


LINE = "from matplotlib.figure import Figure\nx = 4\nax = Figure().subplots()\nax.plot([1, 2], color='black')\nax"
GALLERY = "\n```{gallery}\nindex: One line\n```\n"


def test_pictures_suit_light_and_dark_pages(tmp_path):
    pytest.importorskip("matplotlib")
    code, said, page = built(tmp_path, "True\n:alt: A line\n:thumbnail:", LINE, GALLERY)
    assert (code, said) == (0, "")
    width = {}
    for theme, ink in (("light", "#000000"), ("dark", "#eef1f5")):
        for name in ("index-1", "index-thumbnail"):
            shown = re.search(rf'<img[^>]*src="_images/{name}-{theme}.svg"[^>]*>', page)[0]
            assert f"only-{theme}" in shown and 'loading="lazy"' in shown
            drawn = (tmp_path / "out" / "_images" / f"{name}-{theme}.svg").read_text()
            assert f"stroke: {ink}" in drawn
            width[name] = float(re.search(r'width="([\d.]+)pt"', drawn)[1])
            assert ("<!-- 1.0 -->" in drawn) == (name == "index-1")  # no words at the size of a thumbnail
    assert width["index-thumbnail"] < 0.6 * width["index-1"]
    assert "<i>One line</i>" in page


def test_a_card_needs_a_thumbnail(tmp_path):
    pytest.importorskip("matplotlib")
    code, said, _ = built(tmp_path, "True\n:alt: A line", LINE, GALLERY)
    assert code != 0 and "page index has no thumbnail" in said


def test_a_picture_that_is_too_large_is_refused(tmp_path):
    pytest.importorskip("matplotlib")
    many = LINE.replace("[1, 2]", "[i * i % 7 for i in range(40_000)], '.', markersize=1")
    code, said, _ = built(tmp_path, "True\n:alt: Dots", many)
    assert code != 0 and "draw fewer shapes" in said


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
    context = {"prev": {"title": "Your own model"}, "next": {"title": "prudent.from_arrays"}}
    context |= {"body": '<span class="pre">prudent.domains.betting_game()</span> <span class="pre">solve.now</span>'}
    break_names(None, "api", "page.html", context, None)
    assert context["body"] == (
        '<span class="pre">prudent.<wbr>domains.<wbr>betting_<wbr>game()</span> <span class="pre">solve.now</span>'
    )
    assert context["prev"]["title"] == "Your own model"
    assert context["next"]["title"] == "prudent.<wbr>from_<wbr>arrays"


def test_the_changelog_has_sections_for_each_release_and_a_line_for_each_change():
    first, *releases = re.split(r"^## ", (DOCS.parent / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    assert first.startswith("# Changelog")
    titles = [release.partition("\n")[0] for release in releases]
    assert titles[0] == "Unreleased"
    assert titles[1].startswith(f"{prudent.__version__} - ")
    for title in titles[1:]:
        assert re.fullmatch(r"[0-9]+\.[0-9]+\.[0-9]+ - [0-9]{4}-[0-9]{2}-[0-9]{2}", title)
    for release in releases:
        lines = [line for line in release.splitlines()[1:] if line]
        for line in lines:
            assert re.fullmatch(r"### (Added|Changed|Deprecated|Removed|Fixed|Security)|\* \S.*[.]", line), line
            assert len(line) <= 120, line
