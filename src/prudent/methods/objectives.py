"""Objectives other than CVaR; in all of them the expected cost comes second.

The exact method's sweep over budgets answers all of them, with another first objective.  Each answer has its value and
bounds on the optimal value.
"""

from dataclasses import dataclass

from prudent.errors import as_number

__all__ = ["Achieved", "Exceedance", "Excess", "MeanPlusCVaR", "Objective", "ValueAtRisk", "WorstCase"]


@dataclass(frozen=True)
class Exceedance:
    """The minimal probability that the total cost exceeds a budget, over plans that reach a goal with probability 1.

    Examples
    --------
    >>> import prudent
    >>> model = prudent.domains.figure_2()
    >>> plan = prudent.solve(model, alpha=0.1, objective=prudent.Exceedance(7))
    >>> round(plan.objective.value, 9), plan.policy("s1")
    (0.1, 'e')
    """

    budget: float

    def __post_init__(self) -> None:
        value = as_number("budget", self.budget, "a finite number", lambda x: abs(x) < float("inf"))
        object.__setattr__(self, "budget", value)


@dataclass(frozen=True)
class Excess:
    """The minimal expected excess over a budget: the cost above it, averaged over all runs.

    A plan of minimal CVaR has the minimal expected excess over its VaR; see :func:`replan`.  Gaps are relative to the
    excess itself; where it may be 0, the absolute gap counts.

    Examples
    --------
    >>> import prudent
    >>> model = prudent.domains.figure_2()
    >>> plan = prudent.solve(model, alpha=0.1, objective=prudent.Excess(8))
    >>> round(plan.objective.value, 9), plan.policy("s1")
    (0.2, 'e')
    """

    budget: float

    def __post_init__(self) -> None:
        value = as_number("budget", self.budget, "a finite number", lambda x: abs(x) < float("inf"))
        object.__setattr__(self, "budget", value)


@dataclass(frozen=True)
class ValueAtRisk:
    """The minimal VaR at alpha, and with it the minimal probability of a higher cost.

    Examples
    --------
    >>> import prudent
    >>> model = prudent.domains.figure_2()
    >>> plan = prudent.solve(model, alpha=0.1, objective=prudent.ValueAtRisk())
    >>> plan.objective.value, plan.var
    (7.0, 7.0)
    """


@dataclass(frozen=True)
class MeanPlusCVaR:
    """The minimal sum of the expected cost and a weight times CVaR at alpha.

    Examples
    --------
    >>> import prudent
    >>> model = prudent.domains.figure_2()
    >>> plan = prudent.solve(model, alpha=0.1, objective=prudent.MeanPlusCVaR(weight=0.5))
    >>> abs(plan.objective.value - (plan.expected + 0.5 * plan.cvar)) < 1e-9
    True
    """

    weight: float

    def __post_init__(self) -> None:
        value = as_number("weight", self.weight, "a number above 0 and at most 1e6", lambda x: 0 < x <= 1e6)
        object.__setattr__(self, "weight", value)


@dataclass(frozen=True)
class WorstCase:
    """The minimal worst-case cost.

    Examples
    --------
    >>> import prudent
    >>> model = prudent.domains.figure_2()
    >>> plan = prudent.solve(model, alpha=0.1, objective=prudent.WorstCase())
    >>> plan.objective.value, plan.policy("s1")
    (10.0, 'd')
    """


Objective = Exceedance | Excess | ValueAtRisk | MeanPlusCVaR | WorstCase


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
        named = {
            "exceedance": "P(cost > {:g})",
            "excess": "expected excess over {:g}",
            "var": "VaR",
            "mean-plus-cvar": "expected cost + {:g} CVaR",
        }
        return named.get(self.objective, "worst-case cost").format(self.parameter)
