"""Check the prose of the project: its pages, docstrings, messages and the texts of the live page.

    python docs/prose.py [FILE ...]

proselint's checks, without those of typography, and our own list of words: ``docs/words.toml`` says what to write
instead of what.  Code in pages is left out.  Prints a line for each finding; the exit code is 1 if there is any.

Vale was tried: its package from PyPI fetches a program from elsewhere when it is first run.
"""

import ast
import os
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from proselint.checks import __register__
from proselint.config import DEFAULT
from proselint.registry import CheckRegistry
from proselint.registry.checks import Check, types
from proselint.tools import LintFile

HERE = Path(__file__).parent
PROJECT = HERE.parent
WORDS = HERE / "words.toml"
PLACES = "*.md", "docs/*.md", "src/**/*.py", "src/**/*.html", "src/**/*.js", "examples/*.py"

CODE = re.compile(r"^(?P<fence>`{3,})(?!\{(note|tip|admonition)).*?^(?P=fence)\s*$|`[^`\n]+`", re.DOTALL | re.MULTILINE)
"""What is code in a page."""

LITERAL = re.compile(r"([\"`'])((?:(?!\1).)+ (?:(?!\1).)+)\1")
"""What is text in a script: a literal with a space."""


class Passage(NamedTuple):
    """A piece of prose."""

    line: int  # where it begins
    text: str


def passages(path: Path) -> Iterator[Passage]:
    """Yield the prose of a file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        yield Passage(1, CODE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), text))
    elif path.suffix == ".py":
        seen: set[ast.AST] = set()  # parts of f-strings, which come after the whole
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.JoinedStr):
                seen.update(node.values)
                parts = [part.value if isinstance(part, ast.Constant) else "1" for part in node.values]
                yield Passage(node.lineno, "".join(map(str, parts)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in seen:
                yield Passage(node.lineno, node.value)
    elif path.suffix == ".js":
        for found in LITERAL.finditer(text):
            yield Passage(text.count("\n", 0, found.start()) + 1, found[2])
    else:
        yield Passage(1, text)


def checks() -> dict[str, bool]:
    """Register all checks; return which are on."""
    with WORDS.open("rb") as file:
        words = tomllib.load(file)
    registry = CheckRegistry()
    registry.register_many(__register__)
    for bad, good in words["instead"].items():
        pattern = r"\s+".join(map(re.escape, bad.split()))
        about = types.ExistenceSimple(pattern=rf"\b{pattern}\b")
        registry.register(Check(check_type=about, path="words.instead", message=f"write {good!r} instead of {bad!r}"))
    off = dict.fromkeys(words["off"], False)  # these come first: the first that fits decides
    return {"words": True, **off, **{name: on for name, on in DEFAULT["checks"].items() if name not in off}}


def findings(path: Path, on: dict[str, bool]) -> Iterator[str]:
    """Yield what is found in a file."""
    for line, text in passages(path):
        if " " not in text.strip():
            continue
        for found in LintFile(str(path), text).lint({"max_errors": 1000, "checks": on}):
            yield f"{os.path.relpath(path, PROJECT)}:{line + found.pos[0] - 1}: {found.check_result.message}"


def main(given: list[str]) -> int:
    """Check some files, or all."""
    paths = [Path(each).resolve() for each in given] or sorted(
        {each for place in PLACES for each in PROJECT.glob(place)}
    )
    on = checks()
    found = [each for path in paths for each in findings(path, on)]
    print("\n".join(found) or f"nothing to fix in {len(paths)} files")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
