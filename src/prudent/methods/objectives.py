"""Objectives other than CVaR; in all of them the expected cost comes second.

The exact method's sweep over budgets answers all of them, with another first objective.  Each answer has its value and
bounds on the optimal value.
"""

from dataclasses import dataclass
from typing import ClassVar

from prudent.errors import as_number


class Objective:
    """What a plan is for instead of CVaR, under all the names that it has."""

    name: ClassVar[str]  # in plans and their files
    word: ClassVar[str]  # in the command; with a parameter, that comes after a colon
    label: ClassVar[str]  # in words, with {} for the parameter
    sought: ClassVar[str] = ""  # the parameter, if there is one
    tail: ClassVar[bool] = False  # whether its policies spend one level more than their budget: they count such runs

    @property
    def parameter(self) -> float | None:
        """The budget or the weight, if there is one (internal)."""
        return getattr(self, self.sought) if self.sought else None


@dataclass(frozen=True)
class _OverBudget(Objective):
    """An objective that counts what is above a budget."""

    budget: float

    sought = "budget"
    tail = True

    def __post_init__(self) -> None:
        value = as_number("budget", self.budget, "a finite number", lambda x: abs(x) < float("inf"))
        object.__setattr__(self, "budget", value)


@dataclass(frozen=True)
class Exceedance(_OverBudget):
    """The minimal probability that the total cost exceeds a budget, over plans that reach a goal with probability 1.

    Examples
    --------
    >>> import prudent
    >>> plan = prudent.solve(prudent.domains.figure_2(), alpha=0.1, objective=prudent.Exceedance(7))
    >>> round(plan.objective.value, 9), plan.policy("s1")
    (0.1, 'e')
    """

    name, word, label = "exceedance", "exceed", "P(cost > {:g})"


@dataclass(frozen=True)
class Excess(_OverBudget):
    """The minimal expected excess over a budget: the cost above it, averaged over all runs.

    A plan of minimal CVaR has the minimal expected excess over its VaR; see :func:`replan`.  Gaps are relative to the
    excess itself; where it may be 0, the absolute gap counts.

    Examples
    --------
    >>> import prudent
    >>> plan = prudent.solve(prudent.domains.figure_2(), alpha=0.1, objective=prudent.Excess(8))
    >>> round(plan.objective.value, 9), plan.policy("s1")
    (0.2, 'e')
    """

    name, word, label = "excess", "excess", "expected excess over {:g}"


@dataclass(frozen=True)
class ValueAtRisk(Objective):
    """The minimal VaR at alpha, and with it the minimal probability of a higher cost.

    Examples
    --------
    >>> import prudent
    >>> plan = prudent.solve(prudent.domains.figure_2(), alpha=0.1, objective=prudent.ValueAtRisk())
    >>> plan.objective.value, plan.var
    (7.0, 7.0)
    """

    name, word, label, tail = "var", "var", "VaR", True


@dataclass(frozen=True)
class MeanPlusCVaR(Objective):
    """The minimal sum of the expected cost and a weight times CVaR at alpha.

    Examples
    --------
    >>> import prudent
    >>> plan = prudent.solve(prudent.domains.figure_2(), alpha=0.1, objective=prudent.MeanPlusCVaR(weight=0.5))
    >>> abs(plan.objective.value - (plan.expected + 0.5 * plan.cvar)) < 1e-9
    True
    """

    weight: float

    name, word, label, sought = "mean-plus-cvar", "mean+cvar", "expected cost + {:g} CVaR", "weight"

    def __post_init__(self) -> None:
        value = as_number("weight", self.weight, "a number above 0 and at most 1e6", lambda x: 0 < x <= 1e6)
        object.__setattr__(self, "weight", value)


@dataclass(frozen=True)
class WorstCase(Objective):
    """The minimal worst-case cost.

    Examples
    --------
    >>> import prudent
    >>> plan = prudent.solve(prudent.domains.figure_2(), alpha=0.1, objective=prudent.WorstCase())
    >>> plan.objective.value, plan.policy("s1")
    (10.0, 'd')
    """

    name, word, label = "worst-case", "worst-case", "worst-case cost"


OBJECTIVES: dict[str, type[Objective]] = {
    kind.name: kind for kind in (ValueAtRisk, WorstCase, Exceedance, Excess, MeanPlusCVaR)
}
"""Every objective by its name in plans."""


@dataclass(frozen=True)
class Achieved:
    """The value of an objective that a plan achieves, and bounds on the optimal value.

    Examples
    --------
    >>> import prudent
    >>> plan = prudent.solve(prudent.domains.figure_2(), alpha=0.1, objective=prudent.Exceedance(7))
    >>> str(plan.objective), round(plan.objective.value, 6), plan.objective.parameter
    ('P(cost > 7)', 0.1, 7.0)
    """

    objective: str
    value: float  # if costs were rounded, an upper bound: the value for costs as charged
    lower: float
    upper: float
    parameter: float | None = None  # the budget or the weight, if there is one

    def __str__(self) -> str:
        """Name the objective."""
        return OBJECTIVES[self.objective].label.format(self.parameter)
