"""Which costs and which goals are meant, in the words of PRISM and Storm: ``R{"cost"}min=? [F "goal"]``."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from prudent.errors import PrudentError, printable

__all__ = ["COST", "GOAL", "Names", "reward_property"]

COST, GOAL = "cost", "goal"
"""The reward structure and the label that are taken where no property says which."""

MOST = 20
"""The most names that a message lists."""

SHAPE = re.compile(r'\s*R\s*(?:\{\s*"([^"]+)"\s*\})?\s*(?:min)?\s*=\s*\?\s*\[\s*F\s*"([^"]+)"\s*\]\s*')


def reward_property(text: str) -> tuple[str | None, str]:
    """Return the reward structure that a property names, or None, and the label of its goals.

    Examples
    --------
    >>> reward_property('R{"time"}min=? [F "done"]')
    ('time', 'done')
    >>> reward_property('Rmin=? [F "done"]')
    (None, 'done')
    """
    found = SHAPE.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise PrudentError(
            f'property is {text!r}; it must have the shape R{{"cost"}}min=? [F "goal"], with the reward structure '
            'that is the cost, and the label of the goals; Rmin=? [F "goal"] where there is only one'
        )
    return found[1], found[2]


@dataclass(frozen=True)
class Names:
    """What a model has for properties to name."""

    labels: Sequence[str]
    rewards: Sequence[str]  # "" is one without a name
    variable: str = ""  # a whole number, for a condition where there are no labels

    def offer(self, asked: str = "") -> str:
        """Return what there is, and which properties are understood: in these names, near to what was asked.

        Examples
        --------
        >>> print(Names(["home", "lost"], ["energy"]).offer('R{"energi"}max=? [F "home"]'))  # doctest: +ELLIPSIS
        labels: "home", "lost"; rewards: "energy"; give property='R{"energy"}min=? [F "home"]' (--property), ...
        """
        words = re.findall(r'"([^"]*)"', asked)
        goal = f'"{_nearest([*words, GOAL], self.labels)}"'
        if not self.labels and self.variable:
            goal = f"{self.variable}=1"
        steps, reward = f"Tmin=? [F {goal}]", _nearest([*words, COST], self.rewards)
        named = f'{{"{reward}"}}' if reward else ""
        total = f"property='R{named}min=? [F {goal}]' (--property), the least total cost until a goal, or {steps}"
        given = total if self.rewards else f"property='{steps}' (--property)"
        return (
            f"labels: {_listed(self.labels)}; rewards: {_listed(self.rewards)}; give {given}, the least number of "
            "steps, with any label or condition on states after F"
        )


def _nearest(words: Sequence[str], known: Sequence[str]) -> str:
    """Return the known name that is near to a word, or the first."""
    near = [name for word in words for name in get_close_matches(word, known, n=1)]
    return printable([*near, *known, words[-1]][0])


def _listed(names: Sequence[str]) -> str:
    shown = ["one without a name" if name == "" else f'"{printable(name)}"' for name in names[:MOST]]
    return ", ".join([*shown, *([f"{len(names) - MOST} more"] if len(names) > MOST else [])]) or "none"
