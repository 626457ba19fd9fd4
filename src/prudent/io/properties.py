"""Properties: which costs, goals and start are meant, for what a file or an object leaves open.

A property names costs and goals in the words of PRISM and Storm: ``R{"cost"}min=? [F "goal"]``.  Files may name several
initial states without probabilities.  Rewards of other packages become costs by a rule or a function, the argument
``cost=``.

A file of properties, as PRISM and Storm keep them (``--property FILE.props:NAME``), holds properties, each with a name
in front or known by its number, and may define constants and labels for them.  Only the chosen property has to be valid
here.  Its constants and labels are replaced by their definitions, so that the result is one property by itself.
"""

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from prudent.errors import PrudentError, printable
from prudent.models.rows import FloatArray, IntArray
from prudent.models.ssp import SSP
from prudent.runtime.atomic_files import read_bytes

COST, GOAL = "cost", "goal"
"""The reward structure and the label that are used without a property."""

STARTS = 5
"""The most initial states that a message lists."""

NEGATED = "the property maximises rewards, so costs are negated rewards: a cost of -5 is a reward of 5"
"""The note of a model whose rewards are maximised."""

SHAPE = re.compile(r'\s*R\s*(?:\{\s*"([^"]+)"\s*\})?\s*(min|max)?\s*=\s*\?\s*\[\s*F\s*"([^"]+)"\s*\]\s*')

Start = tuple[IntArray, FloatArray, tuple[str, ...]]
"""The states where runs start, their probabilities, and a note if the file leaves these open."""

Initial = Hashable | Mapping[Any, float]
"""A state, or {state: probability}."""

CostRule = str | Callable[[Any, Any, float, Any], float]
"""The name of a rule, or a function (state, action, reward, next state) -> cost."""

RULES = {
    "negative reward": "a reward of r costs -r, so the total cost is minus the return",
    "as given": "the numbers are costs already",
    "steps": "every action costs 1, whatever its reward",
}
"""Each rule with what it means."""

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


def check_rule(cost: Any, *, or_function: bool = False) -> Any:
    """Return the name of a rule, or a function where that is allowed; refuse anything else."""
    if not (or_function and callable(cost)) and (not isinstance(cost, str) or cost not in RULES):
        known = ", ".join(f"{name!r} ({meaning})" for name, meaning in RULES.items())
        raise PrudentError(f"cost is {cost!r}; it must be one of {known}")
    return cost


def costs_of(rule: str, reward: Any) -> Any:
    """Return what a reward, or an array of them, costs by a rule."""
    if rule == "steps":
        return np.ones_like(reward, dtype=np.float64)
    return 0.0 - reward if rule == "negative reward" else reward  # 0.0 - r has no negative zeros


def cost_of(rule: CostRule, state: Hashable, action: Any, reward: Any, target: Hashable) -> Any:
    """Return what one step costs by a rule or a function."""
    return costs_of(rule, reward) if isinstance(rule, str) else rule(state, action, reward, target)


def reward_property(text: str) -> tuple[str | None, str, bool]:
    """Return the reward structure that a property names, or None; the label of its goals; whether it maximises."""
    found = SHAPE.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise PrudentError(
            f'property is {text!r}; it must have the form R{{"cost"}}min=? [F "goal"], with the names of the reward '
            'structure and of the label of the goals; write Rmin=? [F "goal"] for the only reward structure, and max '
            "instead of min to maximise rewards"
        )
    return found[1], found[3], found[2] == "max"


def traps(model: SSP) -> IntArray:
    """Return the states that runs can reach and from which no goal can be reached.

    A plan that minimises costs avoids them.  Under maximisation the rewards collected there would count, so the
    property must make them goals, too.
    """
    from prudent.models.graph import leading, met  # which imports SciPy; models are read without it

    stuck = ~leading(model, model.is_goal)
    return np.flatnonzero(stuck & met(model) if stuck.any() else stuck)


def drawn(first: IntArray, initial: Initial | None) -> Start:
    """Return a start that draws one of the initial states, all equally likely, with a note unless one is chosen."""
    n = len(first)
    note = (
        f"the file names {n:,} initial states without probabilities, so each has probability 1/{n:,}; choose one with "
        "initial= (--initial)"
    )
    return first, np.full(n, 1 / n), (note,) if n > 1 and initial is None else ()


def started(model: SSP, initial: Initial | None) -> SSP:
    """Return the model with runs that start in ``initial``; None leaves the start as it is."""
    if initial is None:
        return model
    pairs = list(initial.items()) if isinstance(initial, Mapping) else [(initial, 1.0)]
    try:
        if model.state_names is None:  # then a command gives their numbers as text
            pairs = [(int(s) if isinstance(s, str) and s.isdecimal() else s, p) for s, p in pairs]
        first = [model.index(state) for state, _ in pairs]
    except PrudentError as error:
        some = ", ".join(repr(model.state(s)) for s in model.initial_state[:STARTS])
        more = ", ..." if len(model.initial_state) > STARTS else ""
        raise PrudentError(f"initial= (--initial): {error}; the initial states of the file are {some}{more}") from None
    chance = np.array([p for _, p in pairs])
    chosen = replace(model, initial_state=np.array(first, dtype=np.int64), initial_probability=chance)
    object.__setattr__(chosen, "deviation", max(model.deviation, chosen.deviation))  # of the sums as the file has them
    return chosen


def referred(asked: object) -> "tuple[PropertiesFile, str | None] | None":
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

    def chosen(self, name: str | None, value: Mapping[str, str], check: Callable[[str], object]) -> str:
        """Return the property of a name, or the only one not refused, given the values of constants as text."""
        if name is None:
            fitting = []
            for each in self.text:
                text = self._open(each, value)[0]
                with suppress(PrudentError):
                    check(text)
                    fitting.append(each)
            if len(fitting) != 1:
                found = "none of its properties asks" if not fitting else "several of its properties ask"
                raise PrudentError(
                    f"{self.path}: {found} for a total cost until a goal; choose one with {self.path}:NAME; "
                    f"{self._listed(fitting or self.text)}"
                )
            name = fitting[0]
        elif name not in self.text:
            raise PrudentError(f"{self.path}: there is no property {printable(name)!r}; {self._listed(self.text)}")
        text, missing = self._open(name, value)
        if missing:
            raise left_undefined(f"{self.path}: property {printable(name)}", missing)
        return text

    def _listed(self, names: Iterable[str]) -> str:
        shown = ", ".join(f"{printable(name)} ({printable(' '.join(self.text[name].split()))})" for name in names)
        return f"its properties are {shown}" if shown else "it has no properties"

    def _open(self, name: str, value: Mapping[str, str]) -> tuple[str, list[str]]:
        """Return a property with constants and labels in place, and the constants left undefined."""
        text, at = self.text[name], f"{self.path}: property {printable(name)}"
        missing, known = dict[str, None](), {**self.value, **value}

        def of(word: re.Match[str]) -> str:
            label, constant = word[1], word[2]
            inner = self.label.get(label) if label is not None else known.get(constant)
            if label is None and inner is None and constant in self.kind:
                missing[constant] = None
            return word[0] if inner is None else f"({inner})"

        for _ in range(DEEPEST + 1):
            longer = WORD.sub(of, text)
            if longer == text:
                return text, list(missing)
            if len(longer) > LONGEST:
                raise PrudentError(
                    f"{at} has more than {LONGEST:,} characters with its constants and labels in place; shorten these"
                )
            text = longer
        raise PrudentError(f"{at}: its constants or labels define each other in a cycle")


def left_undefined(what: str, missing: Sequence[str]) -> PrudentError:
    """Return the error that something leaves constants undefined."""
    given = ", ".join(f'"{name}": ...' for name in missing)
    options = " ".join(f"--const {name}=..." for name in missing)
    return PrudentError(f"{what} leaves {', '.join(missing)} undefined; give constants={{{given}}} ({options})")


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
