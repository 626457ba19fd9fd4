"""Which costs and which goals are meant, in the words of PRISM and Storm: ``R{"cost"}min=? [F "goal"]``."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np

from prudent.errors import PrudentError, printable
from prudent.models.rows import IntArray
from prudent.models.ssp import SSP

__all__ = ["COST", "GOAL", "NEGATED", "Names", "reward_property", "traps"]

COST, GOAL = "cost", "goal"
"""The reward structure and the label that are used without a property."""

MOST = 20
"""The most names that a message lists."""

NEGATED = "the property maximises rewards, so costs are negated rewards: a cost of -5 is a reward of 5"
"""The note of a model whose rewards are maximised."""

SHAPE = re.compile(r'\s*R\s*(?:\{\s*"([^"]+)"\s*\})?\s*(min|max)?\s*=\s*\?\s*\[\s*F\s*"([^"]+)"\s*\]\s*')


def reward_property(text: str) -> tuple[str | None, str, bool]:
    """Return the reward structure that a property names, or None; the label of its goals; whether it maximises.

    Examples
    --------
    >>> reward_property('R{"time"}min=? [F "done"]')
    ('time', 'done', False)
    >>> reward_property('Rmax=? [F "done"]')
    (None, 'done', True)
    """
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
    from prudent.models.graph import reachable, towards  # which import SciPy; models are read without it

    arc = np.flatnonzero(model.probability > 0)
    source, target = model.outcome_state[arc], model.successor[arc]
    stuck = ~model.is_goal & (towards(source, target, model.n_states, model.is_goal) < 0)
    if not stuck.any():
        return np.flatnonzero(stuck)
    start = model.initial_state[model.initial_probability > 0]
    return np.flatnonzero(reachable(source, target, model.n_states, start) & stuck)


@dataclass(frozen=True)
class Names:
    """The names in a model that properties can use."""

    labels: Sequence[str]
    rewards: Sequence[str]  # "" is one without a name
    variable: str = ""  # a whole number, for a condition where there are no labels

    def offer(self, asked: str = "") -> str:
        """Return the known names, and properties in these names that are close to what was asked.

        Examples
        --------
        >>> print(Names(["home", "lost"], ["energy"]).offer('R{"energi"}max=? [F "home"]'))  # doctest: +ELLIPSIS
        labels: "home", "lost"; rewards: "energy"; give property='R{"energy"}min=? [F "home"]' (--property) for ...
        """
        words = re.findall(r'"([^"]*)"', asked)
        goal = f'"{_nearest([*words, GOAL], self.labels)}"'
        if not self.labels and self.variable:
            goal = f"{self.variable}=1"
        steps, reward = f"Tmin=? [F {goal}]", _nearest([*words, COST], self.rewards)
        named = f'{{"{reward}"}}' if reward else ""
        total = f"property='R{named}min=? [F {goal}]' (--property) for the total cost until a goal, or {steps}"
        given = total if self.rewards else f"property='{steps}' (--property)"
        return (
            f"labels: {_listed(self.labels)}; rewards: {_listed(self.rewards)}; give {given} for the number of steps; "
            "any label or condition on states may follow F"
        )


def _nearest(words: Sequence[str], known: Sequence[str]) -> str:
    """Return the known name that is near to a word, or the first."""
    near = [name for word in words for name in get_close_matches(word, known, n=1)]
    return printable([*near, *known, words[-1]][0])


def _listed(names: Sequence[str]) -> str:
    shown = ["one without a name" if name == "" else f'"{printable(name)}"' for name in names[:MOST]]
    return ", ".join([*shown, *([f"{len(names) - MOST} more"] if len(names) > MOST else [])]) or "none"
