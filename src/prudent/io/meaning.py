"""What is meant: the arguments ``property=``, ``initial=`` and ``cost=``, for what a file or an object leaves open.

A property says which costs and which goals are meant, in the words of PRISM and Storm: ``R{"cost"}min=? [F "goal"]``.
Files may name several initial states without probabilities.  Rewards become costs by a rule or a function.
"""

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

import numpy as np

from prudent.errors import PrudentError, printable
from prudent.models.rows import FloatArray, IntArray
from prudent.models.ssp import SSP

COST, GOAL = "cost", "goal"
"""The reward structure and the label that are used without a property."""

MOST = 20
"""The most names that a message lists."""

NEGATED = "the property maximises rewards, so costs are negated rewards: a cost of -5 is a reward of 5"
"""The note of a model whose rewards are maximised."""

SHAPE = re.compile(r'\s*R\s*(?:\{\s*"([^"]+)"\s*\})?\s*(min|max)?\s*=\s*\?\s*\[\s*F\s*"([^"]+)"\s*\]\s*')

Start = tuple[IntArray, FloatArray]
"""The states where runs start, and their probabilities."""

Initial = Hashable | Mapping[Any, float]
"""A state, or {state: probability}."""

NAMED = 5
"""How many initial states a message names."""

CostRule = str | Callable[[Any, Any, float, Any], float]
"""The name of a rule, or a function (state, action, reward, next state) -> cost."""

RULES = {
    "negative reward": "a reward of r costs -r, so the total cost is minus the return",
    "as given": "the numbers are costs already",
    "steps": "every action costs 1, whatever its reward",
}
"""Each rule with what it means."""


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


def drawn(first: IntArray, initial: Initial | None) -> tuple[Start, tuple[str, ...]]:
    """Return a start that draws one of the initial states, all equally likely, with a note unless one is chosen."""
    n = len(first)
    note = (
        f"the file names {n:,} initial states without probabilities, so each has probability 1/{n:,}; choose one with "
        "initial= (--initial)"
    )
    return (first, np.full(n, 1 / n)), (note,) if n > 1 and initial is None else ()


def started(model: SSP, initial: Initial | None, at: str = "") -> SSP:
    """Return the model with runs that start in ``initial``; None leaves the start as it is.

    Error messages begin with ``at``.
    """
    if initial is None:
        return model
    pairs = list(initial.items()) if isinstance(initial, Mapping) else [(initial, 1.0)]
    try:
        first = [model.index(_numbered(model, state)) for state, _ in pairs]
    except PrudentError as error:
        some = ", ".join(repr(model.state(s)) for s in model.initial_state[:NAMED])
        more = ", ..." if len(model.initial_state) > NAMED else ""
        raise PrudentError(
            f"{at}initial= (--initial): {error}; the initial states of the file are {some}{more}"
        ) from None
    chance = np.array([p for _, p in pairs])
    chosen = replace(model, initial_state=np.array(first, dtype=np.int64), initial_probability=chance)
    object.__setattr__(chosen, "deviation", max(model.deviation, chosen.deviation))  # of the sums as the file has them
    return chosen


def _numbered(model: SSP, state: Hashable) -> Hashable:
    """Return the number that a command gives as text, if states have no names."""
    plain = model.state_names is None and isinstance(state, str) and state.isdecimal()
    return int(state) if plain else state  # type: ignore[call-overload]


def check_rule(cost: object) -> str:
    """Return the name of a rule, or refuse what is not one."""
    if not isinstance(cost, str) or cost not in RULES:
        known = ", ".join(f"{name!r} ({meaning})" for name, meaning in RULES.items())
        raise PrudentError(f"cost is {cost!r}; it must be one of {known}")
    return cost


def check_rule_or_function(cost: object) -> CostRule:
    """Return the name of a rule, or a function; refuse what is neither."""
    return cost if callable(cost) else check_rule(cost)


def costs_of(rule: str, reward: Any) -> Any:
    """Return what a reward, or an array of them, costs by a rule."""
    if rule == "steps":
        return np.ones_like(reward, dtype=np.float64)
    return 0.0 - reward if rule == "negative reward" else reward  # 0.0 - r has no negative zeros


def cost_of(rule: CostRule, state: Hashable, action: Any, reward: Any, target: Hashable) -> Any:
    """Return what one step costs by a rule or a function."""
    return costs_of(rule, reward) if isinstance(rule, str) else rule(state, action, reward, target)
