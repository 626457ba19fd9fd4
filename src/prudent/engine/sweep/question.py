"""What a sweep over budgets is asked, for a whole model: the values at both ends, and what is done over actions."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from prudent.engine.prepared import Prepared
from prudent.engine.uncertain import Uncertain
from prudent.engine.values.expected_cost import range_of
from prudent.engine.values.worst_case import UNREACHED, WorstCase
from prudent.kernels.choices import Choices
from prudent.kernels.questions import Aims, Base, Bound, Given, Plan, PlanAndBound, Terms
from prudent.models.rows import FloatArray, IntArray

PLAN, BOUND, BOTH = Aims(True, False), Aims(False, True), Aims(True, True)
EXCESS = Terms(accrual=0.0, slope=1.0)

TIE = 1e-11
"""Relative difference within which actions, and budgets, count as equally good: more than rounding error, far less than
anyone would notice."""

CLOSE = 1e-9
"""The most that rounding may take off a lower bound, relatively, at the largest possible number of levels; mostly far
fewer are swept.  Beyond it, the bound gets a field of its own."""


@dataclass(frozen=True, eq=False)
class Question:
    """What a sweep is asked: the best plan, a lower bound, both, or the values of a given policy.

    Where nature chooses, values are by node of its sets, and so is ``choice``.
    """

    base: Base  # the values without budget
    choice: IntArray  # a proper policy for no budget; for a plan, the one whose expected cost is base.mean
    worst: WorstCase  # the budgets from which U is 0
    aims: Aims = BOTH
    terms: Terms = EXCESS
    tie: float = TIE
    policy: Choices | None = None  # a given policy
    mean_cost: FloatArray | None = None  # (n_actions,)  what M adds up; None: the expected cost of each action
    nature: Uncertain | None = None  # the sets from which nature chooses the probabilities, if it does
    behind: int = 0  # where nature chooses: by how many levels the budget of a given policy is behind

    @classmethod
    def given(cls, prepared: Prepared, policy: Choices, base: Base, mean_cost: FloatArray) -> "Question":
        """Ask for the values of a policy: ``base`` has those once its budget is gone."""
        always = WorstCase(np.full(prepared.n_states, UNREACHED), np.full(prepared.n_actions, UNREACHED))
        return cls(base, prepared.action_start[:-1], always, policy=policy, mean_cost=mean_cost)

    def in_kernel(self, known: Any, *, bounded: bool) -> Plan | Bound | PlanAndBound | Given:
        """Return the question for kernels; ``bounded``: whether its bound is a field of its own."""
        if self.policy is not None:
            return Given(self.terms, self.policy, known)
        kind = PlanAndBound if self.aims.plan and bounded else Plan if self.aims.plan else Bound
        return kind(self.terms, self.tie, known)

    @property
    def doing(self) -> str:
        """What a sweep that is asked this does."""
        return "sweeping budgets" if self.policy is None else "evaluating the plan"

    @property
    def chooses(self) -> bool:
        """Whether actions are chosen."""
        return self.aims.plan and self.policy is None

    @property
    def sure(self) -> float:
        """Return by which factor the bound on U without budget differs from U, at most; 1 unless both are swept."""
        if self.aims != BOTH:
            return 1.0
        return range_of(self.base.low, self.base.excess)[0 if self.policy is None else 1]

    def bound(self, excess: FloatArray, sure: float, error: FloatArray) -> FloatArray:
        """Return the bound on U, given its relative rounding error: from below, but from above for a given policy."""
        return excess * (sure * (1 - error if self.policy is None else 1 + error))


@dataclass(frozen=True)
class Rounding:
    """How rounding errors, and choices among actions that tie, change the values of a sweep.

    All values are sums of products of non-negative numbers, so rounding errors change them by a factor of at most
    (1 + e)^n, where e is the relative error of one sum and n the number of sums along a run.
    """

    sums: int  # the most sums along a run; in a model with cycles, on one level
    least: int  # the least cost above 0; 0 without cycles
    unit: float  # the largest relative error of one sum; infinite with free cycles

    def _runs(self, levels: IntArray) -> FloatArray:
        runs = np.ones(len(levels)) if self.least == 0 else levels // self.least + 1.0
        return np.asarray(runs, dtype=np.float64)

    def error(self, levels: IntArray) -> FloatArray:
        """Return a bound on the relative error of values at each of the levels."""
        return self._runs(levels) * (2 * self.sums * self.unit)

    def within(self, levels: float, most: float) -> bool:
        """Return whether this bound, for all values up to a level, is no larger than ``most``."""
        return bool(self.error(np.array([min(levels, UNREACHED)]))[0] <= most)

    def lost(self, each: float, levels: int) -> float | FloatArray:
        """Return a bound on the relative increase of U on each of the levels, given that of one choice among ties.

        It is nan if it grows with the level and is not small in the end.
        """
        level = np.arange(levels)
        lost = (1 + each) ** (self.sums * self._runs(level)) * (1 + self.error(level)) - 1
        return lost if self.least == 0 or lost[-1] <= CLOSE else np.nan


def without_safety(prepared: Prepared) -> WorstCase:
    """Return a worst case for objectives that also count costs within the budget: infinite except at goals."""
    value = np.where(prepared.is_goal, 0, UNREACHED)
    return WorstCase(value, np.full(prepared.n_actions, UNREACHED))
