"""Files of properties, as PRISM and Storm keep them: ``--property FILE.props:NAME``.

A file holds properties, each with a name in front or known by its number, and may define constants and labels for them.
Only the chosen property has to be valid here.  Its constants and labels are replaced by their definitions, so that
the result is one property by itself.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from prudent.errors import PrudentError, printable
from prudent.runtime.atomic_files import read_bytes

REFERENCE = re.compile(r'([^"\[\]?]+\.(?:props|pctl|prctl))(?::(.*))?', re.IGNORECASE | re.DOTALL)
"""The path of a file of properties, then the name of one; no property reads like that."""

COMMENT = re.compile(r"//[^\n]*")
TOKEN = re.compile(r'"[^"]*"|[^"\[\](){};\n]+|.|\n')
CONTINUED = tuple("&|=<>+*/?:!-)]}")
"""How the next line starts if it continues the property before it."""

CONSTANT = re.compile(r"const\s+(?:(int|double|bool)\s+)?(\w+)\s*(?:=\s*(.*))?", re.DOTALL)
LABEL = re.compile(r'label\s+"([^"]*)"\s*=\s*(.*)', re.DOTALL)
NAMED = re.compile(r'"([^"]*)"\s*:\s*(.*)', re.DOTALL)
WORD = re.compile(r'\{\s*"[^"]*"|"([^"]*)"|\b([A-Za-z_]\w*)')
"""The name of a reward structure, which stays as it is; of a label; of a constant."""

LONGEST, DEEPEST = 100_000, 50
"""How long a property may become with its constants and labels in place, and how deeply these may be nested."""


def named_file(asked: object) -> "tuple[PropertiesFile, str | None] | None":
    """Return the file, and the name in it, that a property refers to; None if it is a property itself."""
    found = REFERENCE.fullmatch(asked) if isinstance(asked, str) else None
    if found is None:
        return None
    path = Path(found[1].strip())
    return PropertiesFile(read_bytes(path), path), found[2]


class PropertiesFile:
    """The properties of a file by name, and what it defines for them."""

    def __init__(self, raw: bytes, path: Path) -> None:
        self.path = path
        self.text: dict[str, str] = {}  # by name; by number, from 1, where there is none
        self.kind: dict[str, str] = {}  # of each undefined constant
        self.value: dict[str, str] = {}  # of each constant
        self.label: dict[str, str] = {}
        for statement in _statements(COMMENT.sub("", raw.decode(errors="replace"))):
            if found := CONSTANT.fullmatch(statement):
                if found[3] is None:
                    self.kind[found[2]] = found[1] or "int"
                else:
                    self.value[found[2]] = found[3]
            elif found := LABEL.fullmatch(statement):
                self.label[found[1]] = found[2]
            else:
                found = NAMED.fullmatch(statement)
                name, text = (found[1], found[2]) if found else (str(len(self.text) + 1), statement)
                if name in self.text:
                    raise PrudentError(f"{path}: two properties are called {printable(name)}; names must differ")
                self.text[name] = text

    def chosen(self, name: str | None, value: Mapping[str, str], fits: Callable[[str], bool]) -> str:
        """Return the property of a name, or the only one that fits, given the values of constants as text."""
        if name is not None:
            if name not in self.text:
                raise PrudentError(f"{self.path}: there is no property {printable(name)!r}; {self._listed(self.text)}")
            return self._expanded(name, value)
        fitting = {each: text for each in self.text if fits(text := self._open(each, value)[0])}
        if len(fitting) != 1:
            found = "none of its properties asks" if not fitting else "several of its properties ask"
            raise PrudentError(
                f"{self.path}: {found} for a total cost until a goal; choose one with {self.path}:NAME; "
                f"{self._listed(fitting or self.text)}"
            )
        return self._expanded(next(iter(fitting)), value)

    def _listed(self, names: Mapping[str, str]) -> str:
        shown = ", ".join(f"{printable(name)} ({printable(' '.join(self.text[name].split()))})" for name in names)
        return f"its properties are {shown}" if shown else "it has no properties"

    def _expanded(self, name: str, value: Mapping[str, str]) -> str:
        text, missing = self._open(name, value)
        if missing:
            given = ", ".join(f'"{each}": ...' for each in missing)
            options = " ".join(f"--const {each}=..." for each in missing)
            at = f"{self.path}: property {printable(name)}"
            raise PrudentError(f"{at} leaves {', '.join(missing)} undefined; give constants={{{given}}} ({options})")
        return text

    def _open(self, name: str, value: Mapping[str, str]) -> tuple[str, list[str]]:
        """Return a property with constants and labels in place, and the constants left undefined."""
        missing: dict[str, None] = {}
        known = {**self.value, **value}

        def put(text: str, depth: int) -> str:
            def of(word: re.Match[str]) -> str:
                label, constant = word[1], word[2]
                inner = self.label.get(label) if label is not None else known.get(constant)
                if label is None and inner is None and constant in self.kind:
                    missing[constant] = None
                return word[0] if inner is None else f"({put(inner, depth + 1)})"

            if depth > DEEPEST:
                raise PrudentError(
                    f"{self.path}: property {printable(name)}: its constants or labels define each other in a cycle"
                )
            longer = WORD.sub(of, text)
            if len(longer) > LONGEST:
                raise PrudentError(
                    f"{self.path}: property {printable(name)} has more than {LONGEST:,} characters with its constants "
                    "and labels in place; shorten these"
                )
            return longer

        return put(self.text[name], 0), list(missing)


def _statements(text: str) -> Iterator[str]:
    """Split at semicolons, and at ends of lines where a property is complete."""
    now, depth, last, complete = list[str](), 0, "", False
    for token in [*TOKEN.findall(text), ";"]:
        shown = token.strip()
        ended = token == ";" and depth <= 0
        if ended or (complete and shown and not shown.startswith(CONTINUED)):
            if statement := "".join(now).strip():
                yield statement
            now, depth, last = [], 0, ""
        depth += (token in "[({") - (token in "])}")
        complete = (complete and not shown) or (token == "\n" and depth <= 0 and last in ("]", ")"))
        last = shown[-1] if shown else last
        now += [] if ended else [token]
    if statement := "".join(now[:-1]).strip():  # with an open bracket
        yield statement
