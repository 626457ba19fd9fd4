"""What a sweep over budgets finds: the questions, each a named tuple, whose type picks the step of a kernel.

Every question is answered by one recursion, the sum over an action's outcomes of p T[s', b - c].  A question says what
stands at both ends of it (no remaining budget; a goal), what is done over actions, and which *fields* T has:

    Plan           U, the least first objective, and M, the least expected cost over the actions that attain U
    Bound          a lower bound on U, rounding errors included
    PlanAndBound   both
    Given          the values of a given policy: its first objective, its expected cost and, where there are free
                   cycles, an upper bound on the former, rounding errors included

A *layout* (:mod:`prudent.kernels.levels`, :mod:`prudent.kernels.tiles`) says in which order states and levels are
settled.  ``known`` is what a layout knows beforehand, by its own numbers.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from prudent.kernels.choices import Choices


class Terms(NamedTuple):
    """The first objective: for U, 0 for all cost, 1 for cost beyond the budget, 0 at a goal with remaining budget."""

    accrual: float  # for each unit of cost
    slope: float  # for each unit of cost beyond the budget
    goal: float = 0.0  # at a goal with a budget up to ``until``; with more, it is 0
    rise: float = 0.0  # and for each unit of that budget
    until: int = 2**62

    @property
    def at_goals(self) -> bool:
        """Whether the first objective at a goal depends on the remaining budget."""
        return (self.goal, self.rise) != (0.0, 0.0)


class Aims(NamedTuple):
    """What a sweep computes."""

    plan: bool  # U, M and actions
    bound: bool  # the lower bound on U


class Base(NamedTuple):
    """The values without budget."""

    excess: np.ndarray  # (n_states,)  U
    low: np.ndarray  # (n_states,)  a bound on U: from below, but from above for a given policy
    mean: np.ndarray  # (n_states,)  M


class Plan(NamedTuple):
    """The best actions and their values."""

    terms: Terms
    tie: float
    known: Any


class Bound(NamedTuple):
    """A lower bound on the first objective."""

    terms: Terms
    tie: float
    known: Any


class PlanAndBound(NamedTuple):
    """The best actions, their values, and a lower bound on the first objective."""

    terms: Terms
    tie: float
    known: Any


class Given(NamedTuple):
    """The values of a given policy."""

    terms: Terms
    choices: Choices
    known: Any


def class_of(question: Any) -> type[Any]:
    """Return the class of a question, given its type in a kernel."""
    kind: type[Any] = question.instance_class
    return kind


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def at_goal(terms, b):
    """Return the first objective at a goal with some remaining budget."""
    return terms.goal + terms.rise * b if b <= terms.until else 0.0


FAST = {"contract"}
"""Fused multiply-adds round once where two steps round twice."""

# The steps of questions make no arrays, so they need not count references.
STEP: Any = {"nogil": True, "fastmath": FAST, "_nrt": False}
"""How the steps of questions are compiled."""

WITHIN: Any = {"inline": "always"}
"""How functions of one caller are compiled: as parts of it, and not alone; the first solve compiles a fifth less.
"""
