"""Readable names from a UMB archive: of states, by the values of their variables, and of actions.

A state is called ``x=1, ok=true``; if several states have the same values, their numbers follow, ``x=1, ok=true #7``.
An action is called by its label; if several actions of a state have the same label, or one has none, its number within
the state follows, ``send#1`` or ``#1``.  If that name is taken, the next free number follows.
"""

import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from prudent.errors import PrudentError
from prudent.io.umb.archive import SIZES, Arrays
from prudent.io.untrusted import checked, shown
from prudent.models.rows import IntArray

NAMES = "names/states"
"""The folder of state names that are not made of variables: Storm reads no string variables."""

FOLDER = "valuations/states"
BITS, PADDING = 4096, 2**31
"""The most bits of a variable, and of padding: beyond it, values would have thousands of digits."""


def state_names(arrays: Arrays, n_named: int, n_states: int) -> list[str] | None:
    """Return the names of the first states; None where there are none."""
    found = arrays.strings(NAMES, n_named)
    valuations = checked(arrays.index.get("valuations", {}), dict, "index.json: valuations")
    if found is not None or "states" not in valuations:
        return found
    texts = _texts(arrays, checked(valuations["states"], dict, "index.json: valuations.states"), n_states)[:n_named]
    times = Counter(texts)
    return _unique(texts, [0] * len(texts), range(len(texts)), [times[text] > 1 for text in texts], " #")


def action_names(arrays: Arrays, n_actions: int, n_choices: int, first: IntArray) -> list[str] | None:
    """Return the name of every choice, given which is the first of its state; None where none has an action."""
    if n_actions == 0:
        return None
    action = arrays.numbers_below("actions/choices/values.bin", n_choices, n_actions, "<u4").tolist()
    strings = arrays.strings("actions/choices", n_actions)
    names, owner = [f"a{i}" if strings is None else strings[i] for i in action], first.tolist()
    unlabelled = strings is not None and strings[0] == ""  # the first action, where it has no name
    called = list(zip(owner, names, strict=True))
    times = Counter(called)
    again = [times[each] > 1 or (unlabelled and i == 0) for each, i in zip(called, action, strict=True)]
    return _unique(names, owner, (np.arange(n_choices) - first).tolist(), again, "#")


def _unique(names: list[str], owner: list[int], number: Sequence[int], again: list[bool], mark: str) -> list[str]:
    """Return names unique for each owner: those that come again with their number, or the next that is free."""
    taken = {(o, name) for o, name, more in zip(owner, names, again, strict=True) if not more}
    free: dict[tuple[int, str], int] = {}  # all numbers below are taken, so none is tried twice
    found = []
    for o, text, n, more in zip(owner, names, number, again, strict=True):
        name, at = text, max(n, free.get((o, text), 0))
        if more:
            while (o, name := f"{text}{mark}{at}") in taken:
                at += 1
            taken.add((o, name))
            free[o, text] = at + 1
        found.append(name)
    return found


def _texts(arrays: Arrays, about: dict[str, Any], n_states: int) -> list[str]:
    """Return the values of the variables of every state as a text."""
    at = "index.json: valuations.states"
    classes = [
        list(_fields(each, f"{at}.classes[{i}]"))
        for i, each in enumerate(checked(about.get("classes"), list, f"{at}.classes"))
    ]
    strings = arrays.strings(FOLDER, arrays.count(about, "#strings")) if "#strings" in about else None
    kind = arrays.numbers_below(f"{FOLDER}/valuation-to-class.bin", n_states, len(classes), "<u4").tolist()
    raw = arrays.members.get(f"{FOLDER}/valuations.bin", b"")
    widths = [sum(size + optional for _, _, size, optional, _, _ in fields) for fields in classes]
    if any(width % 8 for width in widths):
        raise PrudentError(f"{at}: variables and padding must take whole bytes")
    ends = list(accumulate((widths[k] // 8 for k in kind), initial=0))
    if len(raw) != ends[-1]:
        raise PrudentError(f"{FOLDER}/valuations.bin: has {len(raw):,} bytes; by the index it must have {ends[-1]}")
    members: list[list[int]] = [[] for _ in classes]
    for s, k in enumerate(kind):
        members[k].append(s)
    texts = [""] * n_states
    room = 64 * sum(map(len, arrays.members.values())) + 2**20  # for all names together, from an archive of this size
    for fields, states in zip(classes, members, strict=True):
        rows = [bytes(raw[ends[s] : ends[s + 1]]) for s in states]
        columns = [_column(rows, field, strings) for field in fields if field[0] is not None]
        room -= sum(sum(map(len, column)) + 2 * len(column) for column in columns)
        if room < 0:
            raise PrudentError(
                f"{FOLDER}: the names of states would be far longer than the file; shorten the names of variables"
            )
        for s, parts in zip(states, zip(*columns, strict=True), strict=False):
            texts[s] = ", ".join(parts)
    return texts


Field = tuple[str | None, str, int, bool, int, int]
"""The name of a variable (None: padding), its type, size, whether it is optional, its offset, its first bit."""


def _fields(about: Any, at: str) -> Iterator[Field]:
    bit = 0
    for i, field in enumerate(checked(checked(about, dict, at).get("variables"), list, f"{at}.variables")):
        here = f"{at}.variables[{i}]"
        if "padding" in checked(field, dict, here):
            name, kind, optional, offset = None, "padding", False, 0
            size = checked(field["padding"], int, f"{here}.padding")
        else:
            name = checked(field.get("name"), str, f"{here}.name")
            if any("\ud800" <= letter <= "\udfff" for letter in name):
                raise PrudentError(f"{here}.name is {shown(name)}, which is not Unicode text; fix the name")
            about_type = checked(field.get("type"), dict, f"{here}.type")
            kind = checked(about_type.get("type"), str, f"{here}.type.type")
            if kind not in SIZES:
                raise PrudentError(f"{here}.type.type is {shown(kind)}; it must be {', '.join(SIZES)}")
            size = checked(about_type.get("size", SIZES[kind]), int, f"{here}.type.size")
            optional = checked(field.get("is-optional", False), bool, f"{here}.is-optional")
            offset = checked(field.get("offset", 0), int, f"{here}.offset")
        fixed = size != 64 if kind in ("double", "string") else size % 2 != 0 if kind == "rational" else False
        most = PADDING if name is None else BITS
        if size <= 0 or fixed or size > most:
            raise PrudentError(f"{here}: a {kind} cannot have {shown(size)} bits; the most is {most:,}")
        if abs(offset) >= 1 << BITS:
            raise PrudentError(f"{here}.offset is {shown(offset)}; its absolute value must be below 2^{BITS}")
        yield name, kind, size, optional, offset, bit
        bit += size + optional


def _column(rows: list[bytes], field: Field, strings: list[str] | None) -> list[str]:
    """Return the values of one variable as texts; each different value is looked at once."""
    name, kind, size, optional, offset, first = field
    part, mask = slice(first // 8, -(-(first + size + optional) // 8)), (1 << size + optional) - 1
    bits = [int.from_bytes(row[part], "little") >> first % 8 & mask for row in rows]
    text = {each: f"{name}={_text(each, kind, size, optional, offset, strings)}" for each in set(bits)}
    return [text[each] for each in bits]


def _text(bits: int, kind: str, size: int, optional: bool, offset: int, strings: list[str] | None) -> str:
    if optional:
        if not bits & 1:
            return "none"
        bits >>= 1
    if kind == "bool":
        return "true" if bits else "false"
    if kind == "double":
        return repr(struct.unpack("<d", bits.to_bytes(8, "little"))[0])
    if kind == "string":
        if strings is None or bits >= len(strings):
            raise PrudentError(f"{FOLDER}/valuations.bin: refers to string {bits:,}, which does not exist")
        return strings[bits]
    if kind == "rational":
        half = size // 2
        return f"{_signed(bits & ((1 << half) - 1), half)}/{bits >> half}"
    return str((_signed(bits, size) if kind == "int" else bits) + offset)


def _signed(bits: int, size: int) -> int:
    return bits - (1 << size) if bits >> (size - 1) else bits
