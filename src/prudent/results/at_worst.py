"""A policy's numbers in the worst model of a set: nature chooses from intervals, anew at every visit.

Let a policy begin with a budget B.  Its worst-case expected excess over w, given the budget b left, is

    X(s, b) = max over p of  sum over outcomes of  p X(s', b - c)

for the action that it plays, and the worst-case CVaR is at most w + X(start, B) / alpha for every w.  That is convex in
w, since each choice of nature gives a convex function, so halving finds the best level w; nature attains the least over
all w, which may lie between two levels.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from prudent.engine.prepared import restrict
from prudent.engine.sweep.against_nature import error_of
from prudent.engine.sweep.driver import budget_sweep
from prudent.engine.sweep.question import EXCESS, Question
from prudent.engine.uncertain import Uncertain, uncertain
from prudent.engine.values.robust_cost import worst_expected_cost
from prudent.errors import PrudentError
from prudent.kernels.nature import Values
from prudent.kernels.questions import Base, Terms
from prudent.models.intervals import Intervals
from prudent.models.rows import FloatArray, IntArray
from prudent.policies.distribution import check_alpha
from prudent.policies.policy import BudgetPolicy
from prudent.runtime.limits import Limits
from prudent.runtime.tables import number


@dataclass
class Follower:
    """Follows one policy against nature."""

    policy: BudgetPolicy
    intervals: Intervals
    limits: Limits

    def __post_init__(self) -> None:
        if self.policy.remembers:
            raise PrudentError(
                "uncertainty= needs a policy of state and remaining budget, not the paper's; use method='exact'"
            )

    @cached_property
    def _model(self) -> Uncertain:
        return uncertain(self.policy.prepared, self.intervals)

    @cached_property
    def _spent(self) -> FloatArray:
        """Upper bounds on what the policy costs at worst once its budget is gone."""
        alone = restrict(self.policy.prepared, self.policy.without_budget)
        return worst_expected_cost(uncertain(alone, self.intervals)).upper

    def means(self) -> tuple[Values, float]:
        """Return the worst-case expected cost by state and remaining budget, and a bound from above for a whole run."""
        return self._followed(self._spent, Terms(accrual=1.0, slope=0.0), self.policy.level)

    def excesses(self, w: int) -> tuple[Values, float]:
        """Return the worst-case expected excess over a total of ``w`` by state and level, and the same bound."""
        level = self.policy.level
        return self._followed(self._spent + max(level - w, 0), EXCESS, max(w, level), max(w - level, 0))

    def after(self, actions: IntArray, level: int, values: Values) -> FloatArray:
        """Return the worst expectation of such values after each of some actions, played at a level."""
        return self._model.worst_after(actions, level, values)[0]

    def _followed(self, base: FloatArray, terms: Terms, top: int, behind: int = 0) -> tuple[Values, float]:
        """Follow the policy up to a level; its budget is ``behind`` the level."""
        model, prepared = self._model, self.policy.prepared
        need = 8 * prepared.n_states * (top + 1)
        self.limits.check(need, "the values of a policy in the worst model", "raise memory= (--memory)")
        question = Question.given(prepared, self.policy.choices, Base(base, base, base), prepared.mean_cost)
        question = replace(question, terms=terms, nature=model, behind=behind)
        swept = budget_sweep(prepared, question, self.limits, most=top, keep=True)
        if swept.stopped:  # by Ctrl-C: a part of the values is of no use
            raise KeyboardInterrupt
        assert swept.tables is not None
        error = float(error_of(model, np.array(top)))
        return model.values(base, swept.tables.excess, slope=terms.slope), float(swept.excess[-1]) * (1 + error)


class AtWorst:
    """Upper bounds on a policy's numbers in the worst model of a set, whatever nature chooses at each visit.

    Examples
    --------
    >>> import prudent
    >>> model = prudent.domains.figure_2()
    >>> spare = 0.1 * (model.probability < 1)
    >>> sets = prudent.Intervals(model.probability - spare / 2, model.probability + spare / 2)
    >>> result = prudent.evaluate(model, {"s0": "a", "s1": "e", "s2": "b"}, uncertainty=sets)
    >>> round(result.mean, 6), round(result.at_worst.mean, 6), round(result.at_worst.cvar(0.2), 6)
    (7.3, 7.45, 9.25)
    """

    def __init__(self, parts: Sequence[tuple[float, Follower]]) -> None:
        self._parts = parts
        self._excess: dict[int, float] = {}  # expected, over each total asked for

    @cached_property
    def mean(self) -> float:
        """The worst-case expected cost."""
        return self._in_units(sum(share * part.means()[1] for share, part in self._parts))

    def cvar(self, alpha: float) -> float:
        """Return the worst-case CVaR.

        Examples
        --------
        >>> import prudent
        >>> model = prudent.domains.figure_2()
        >>> certain = prudent.Intervals(model.probability, model.probability)
        >>> plan = prudent.solve(model, alpha=0.1)
        >>> round(prudent.evaluate(model, plan.policy, uncertainty=certain).at_worst.cvar(0.1), 6)
        10.0
        """
        alpha = check_alpha(alpha)
        if alpha == 1:
            return self.mean

        def bound(w: int) -> float:
            if w not in self._excess:
                self._excess[w] = sum(share * part.excesses(w)[1] for share, part in self._parts)
            return w + self._excess[w] / alpha

        return self._in_units(_least(bound, max(part.policy.level for _, part in self._parts)))

    def _in_units(self, levels: float) -> float:
        return self._parts[0][1].policy.prepared.scale.in_units(levels)

    def __repr__(self) -> str:
        return f"<AtWorst: expected cost {number(self.mean)}>"


def _least(value: Callable[[int], float], near: int) -> float:
    """Return the least value of a convex function at the whole numbers from 0 on, looking around ``near`` first."""

    def rises(w: int) -> bool:
        return value(w + 1) >= value(w)

    low, high, step = near, near, 1
    while not rises(high):
        low, high, step = high, high + step, 2 * step
    while low > 0 and rises(low - 1):
        low, high, step = max(low - step, 0), low, 2 * step
    return value(bisect_left(range(high), True, low, high, key=rises))
