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


LINE = "from matplotlib.figure import Figure\nx = 4\nax = Figure().subplots()\nax.plot([1, 2], color='black')\nax"
GALLERY = "\n```{gallery}\nNAME: One line\n```\n"
WRONG = {
    "false": ("x == 5", "x = 4\nprint(x)", "check failed: x == 5"),
    "unchecked": ("", "x = 4\nprint(x)", "shows something that no :check: looks at"),
    "failing": ("True", "x = 4\n1 / 0", "ZeroDivisionError"),
    "missing": ("True", "y = 4", "value x:.1f"),
    "unseen": ("True", "x = 4\nmissing('sphinx')", "uses missing, which no code shown above makes"),
    "nested": ("True", "x = 4\n[missing(y) for y in ('sphinx',)]", "uses missing, which"),
    "bare": ("True\n:alt: A line", f"{LINE}\n```\n{GALLERY}\n```{{run}}\n:check: True\n", "page bare has no thumbnail"),
    "large": (
        "True\n:alt: Dots",
        LINE.replace("[1, 2]", "[i * i % 7 for i in range(40_000)], '.', markersize=1"),
        "draw fewer shapes",
    ),
}
"""Pages that must not be built: the check, the code, and what is told."""
RIGHT = {
    "printed": ("out == '4.25\\n' and x == 4.25", "x = 17 / 4\nprint(x)"),
    "drawn": ("True\n:alt: A line\n:thumbnail:", f"{LINE}\n```\n{GALLERY}\n```{{run}}\n:check: True\n"),
}
"""Pages that are: the check and the code."""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Let Sphinx build all pages; return its exit code, what it says of each page, and the folder of the result."""
    pytest.importorskip("sphinx")
    pytest.importorskip("myst_parser")
    pytest.importorskip("matplotlib")
    folder = tmp_path_factory.mktemp("pages")
    (folder / "conf.py").write_text(
        f"import sys\nsys.path.insert(0, {str(DOCS / '_ext')!r})\n"
        "extensions = ['myst_parser', 'executed', 'gallery']\nhtml_theme = 'basic'\nroot_doc = 'printed'\n"
    )
    for name, (check, code, *_) in {**RIGHT, **WRONG}.items():
        page = PAGE.replace("CODE", code).replace("NAME", name)
        page = page.replace("CHECK", check) if check else page.replace(":check: CHECK\n", "")
        (folder / f"{name}.md").write_text(f"---\norphan: true\n---\n{page}")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "--no-color",
        "-W",
        "--keep-going",
        str(folder),
        str(folder / "out"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    said = re.split(rf"^{re.escape(str(folder))}/(\w+)\.md:", done.stderr, flags=re.MULTILINE)
    told = dict.fromkeys((*RIGHT, *WRONG), "")
    for name, about in zip(said[1::2], said[2::2], strict=True):
        told[name] += about
    return done.returncode, told, folder / "out"


@pytest.mark.parametrize("name", WRONG)
def test_a_page_that_is_wrong_is_not_built(built, name):
    status, told, _ = built
    assert status != 0
    assert WRONG[name][2] in told[name]


def test_a_page_shows_what_its_code_prints(built):
    _, told, out = built
    page = (out / "printed.html").read_text()
    assert told["printed"] == ""
    assert "4.25" in page and "It is <span" in page and "4.2<" in page


def test_pictures_suit_light_and_dark_pages(built):
    _, told, out = built
    page = (out / "drawn.html").read_text()
    assert told["drawn"] == ""
    width = {}
    for theme, ink in (("light", "#000000"), ("dark", "#eef1f5")):
        for name in ("drawn-1", "drawn-thumbnail"):
            shown = re.search(rf'<img[^>]*src="_images/{name}-{theme}.svg"[^>]*>', page)[0]
            assert f"only-{theme}" in shown and 'loading="lazy"' in shown
            drawn = (out / "_images" / f"{name}-{theme}.svg").read_text()
            assert f"stroke: {ink}" in drawn
            width[name] = float(re.search(r'width="([\d.]+)pt"', drawn)[1])
            assert ("<!-- 1.0 -->" in drawn) == (name == "drawn-1")  # no words at the size of a thumbnail
    assert width["drawn-thumbnail"] < 0.6 * width["drawn-1"]
    assert "<i>One line</i>" in page


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
