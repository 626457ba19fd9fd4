"""Plan: a policy, its numbers, and how certain they are."""

import math
from collections.abc import Hashable
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Literal

from prudent.errors import PrudentError
from prudent.methods.objectives import Achieved, Exceedance, MeanPlusCVaR, WorstCase
from prudent.methods.solution import Nominal
from prudent.models.intervals import Intervals
from prudent.models.ssp import SSP
from prudent.policies.distribution import Alphas, Distribution, exceeded_in
from prudent.policies.policy import BudgetPolicy
from prudent.policies.simulation import Simulation
from prudent.policies.total_cost import total_cost
from prudent.results.decisions import Decision, Decisions, bands_of, decisions_of
from prudent.results.explanation import Explainer, Explanation, RobustExplainer
from prudent.results.markov_chain import chain_of
from prudent.results.visits import Visits, visits_of
from prudent.runtime.limits import UNLIMITED, Limits, cores
from prudent.runtime.tables import (
    Framed,
    Numbers,
    Table,
    at_least,
    at_most,
    between,
    bounds,
    certain,
    number,
    probability,
    small,
    worst,
)

STATUS = {
    "optimal": "the optimal CVaR is known to within 1e-8 of its size, and the policy attains it, with the lowest "
    "expected cost at that CVaR",
    "within_gap": "the gap between the bounds on the optimal CVaR is within the tolerance; at the optimal CVaR a lower "
    "expected cost may be possible, down to its bound",
    "gap_not_reached": "the bounds hold, but their gap exceeds the tolerance; use method exact without step=, allow "
    "more time or memory, or request a larger gap",
    "approximate": "this method does not aim at the optimal CVaR and the lowest expected cost at it, but the bounds "
    "hold; method exact finds both",
    "interrupted": "stopped by Ctrl-C; the bounds found so far hold; run it again, with checkpoint= (--checkpoint) "
    "from the start to make it resumable",
}
"""Each status: what it means and what to change."""

STATUS_WITHIN = {
    **STATUS,
    "optimal": "no plan within the limit on CVaR has a lower expected cost, to within 1e-8 of its size",
    "within_gap": "no plan within the limit on CVaR has an expected cost that is lower by more than the tolerance",
    "gap_not_reached": "a plan within the limit on CVaR may have a lower expected cost, down to the bound; use "
    "randomise=True (--randomise) for the best plan of all, request a larger relative_gap, or set a finer step if "
    "costs were rounded",
}
"""The same for a plan with a limit on its CVaR."""

STATUS_OBJECTIVE = {
    **STATUS,
    "optimal": "the optimal value of the objective is known to within 1e-8 of its size, and the policy attains it",
    "within_gap": "the gap between the bounds on the optimal value of the objective is within the tolerance",
    "gap_not_reached": "the bounds hold, but their gap exceeds the tolerance; set a finer step= (--step), or request "
    "a larger gap",
}
"""The same for a plan with another objective."""

STATUS_ROBUST = {
    **STATUS,
    "optimal": "the minimal worst-case CVaR is known to within 1e-8 of its size, and the policy attains it",
    "within_gap": "the gap between the bounds on the minimal worst-case CVaR is within the tolerance",
    "gap_not_reached": "the bounds hold, the upper one for every model in the set, but their gap exceeds the "
    "tolerance; it comes from rounding costs (allow more time or memory, or leave out step=), from a limit or, if "
    "costs were not rounded, from the lower bound for budgets between two cost steps; or request a larger gap",
}
"""The same for a plan for a set of models."""

STATUS_SEARCHED = {
    **STATUS,
    "within_gap": "the bounds on the optimal CVaR hold, and their gap is within the tolerance",
    "gap_not_reached": "the bounds hold, but their gap exceeds the tolerance; allow more time or memory, give a "
    "heuristic closer to the lowest expected cost, set fallback= (--fallback) if there is no upper bound, or request "
    "a larger gap",
    "interrupted": "the bounds found so far hold, but the search was stopped by Ctrl-C; run it again for longer, with "
    "a heuristic closer to the lowest expected cost, or with fallback= (--fallback) if there is no upper bound",
}
"""The same for a plan of a search, which has no checkpoint and starts again."""

UNCERTIFIED = {**STATUS_SEARCHED, "optimal": "no plan has a lower CVaR, and none of that CVaR a lower expected cost"}
"""The same if the bounds rest on a heuristic or on a price; each follows what must be true."""

MAYBE_ZERO = "the value may be 0, to which no gap is relative: the absolute gap reached (gap=, --gap) is {:.3g}"
"""What is added to a gap that was not reached if bounds lie on both sides of 0."""


FIELDS: dict[str, Literal["text", "number", "count"]] = {
    **dict.fromkeys(("model", "method"), "text"),
    **dict.fromkeys(("alpha", "step"), "number"),
    "status": "text",
    **dict.fromkeys(("cvar", "var", "expected", "expected_lower", "lower", "upper", "worst_case"), "number"),
    "max_cvar": "number",
    "objective": "text",
    "goal_probability": "number",
    **dict.fromkeys(("states", "actions", "outcomes"), "count"),
    "seconds": "number",
    "device": "text",
}
"""A plan's numbers and words, and the size of its model: what each is, in the order of JSON, frames and studies."""

NOT_FINITE = {
    **dict.fromkeys(("cvar", "var", "expected"), ("inf", "-inf", "nan")),
    **dict.fromkeys(("upper", "worst_case", "max_cvar"), ("inf",)),
    "lower": ("-inf",),
}
"""The texts that stand for a number in files if it is not finite."""

EPISODES = 20_000
"""The runs that are simulated where a policy is too large to evaluate exactly."""


@dataclass(frozen=True)
class Exploration:
    """How much of a model :func:`prudent.search` explored; the plan and its bounds do not need the rest.

    Examples
    --------
    >>> import prudent
    >>> def actions(state):  # a walk on all whole numbers
    ...     return {step: [(0.9, state + step, 1), (0.1, state, 1)] for step in (-1, 1)} if state else {}
    >>> plan = prudent.search(3, actions, alpha=0.1, heuristic=abs)
    >>> plan.status, plan.explored.met < 50, plan.explored.certified
    ('optimal', True, False)
    """

    met: int  # states found
    expanded: int  # states whose actions were requested
    solves: int = 0  # how often the explored part was solved
    trusted: int = 0  # states that were not expanded and at which the lower bound rests on a given heuristic
    priced: int = 0  # states that were not expanded and at which runs of the plan end at the price of the fallback

    @property
    def certified(self) -> bool:
        """Whether the bounds rest neither on a heuristic nor on a price.

        If states remain that were not expanded, they still need that no cost is negative in the part not explored.
        """
        return not (self.trusted or self.priced)

    @property
    def proviso(self) -> str:
        """What must be true for the bounds to hold, in a few words; empty if nothing must (internal)."""
        return " and ".join(self.provisos())

    def provisos(self, price: str = "") -> dict[str, str]:
        """Return what must be true for the bounds to hold: in a few words, and as a note with the price (internal)."""
        found = {}
        if self.trusted:
            found["the heuristic is valid where it was not checked"] = (
                "not certified: the lower bound holds if the heuristic is at most the lowest expected cost in all "
                f"states that were met but not expanded ({self.trusted:,})"
            )
        elif self.met > self.expanded:
            what = "no cost is negative in the part that was not explored"
            found[what] = f"the lower bound holds if {what}"
        if self.priced:
            found["runs can end at the price of the fallback"] = (
                f"not certified: the upper bound holds if runs can end at a cost of {price} in all states in which "
                f"this plan falls back ({self.priced:,}); the model has no such action"
            )
        return found


@dataclass(frozen=True, eq=False, repr=False)
class Plan(Numbers, Framed):
    """What :func:`prudent.solve` returns; all costs in the user's units.

    The optimal CVaR lies between ``lower`` and ``upper``, and so does the policy's own.  ``cvar``, ``var`` and
    ``expected`` belong to the returned policy and come from its exact evaluation.  If that would take too much, a note
    states this and ``var`` is nan.  ``cvar`` is then nan, too, unless the sweep was finished on costs that were not
    rounded: then it is the optimal CVaR.

    If costs were rounded, a note states this.  ``expected`` is still exact, of the true costs.  ``cvar`` and ``var``
    count runs with the same rounded cost at their mean cost: ``cvar`` is at most the policy's own and at least
    ``lower``, and ``var`` is an estimate.  Both may be far off if the step is coarse.  No policy of optimal CVaR has an
    expected cost below ``expected_lower``; the returned one has the lowest if the status is ``optimal``.

    For a set of models (``uncertainty``), ``lower`` and ``upper`` are bounds on the minimal worst-case CVaR.  ``cvar``
    and ``expected`` are the policy's own, each in the model of the set that is worst for it, and ``var`` is its budget.
    ``nominal`` has all three for the model itself.

    With ``max_cvar`` the policy is the best one found whose CVaR is at most ``max_cvar``, which may be above ``upper``.
    No such policy has an expected cost below ``expected_lower``, which the status compares with ``expected``.

    :meth:`to_frame` returns one row, with the same columns for all plans, so that several can be joined into one table.

    Examples
    --------
    >>> import prudent
    >>> plan = prudent.solve(prudent.domains.figure_2(), alpha=0.1)
    >>> plan
    <Plan for figure-2, exact, alpha 0.1: optimal, CVaR 10 (optimal 10), VaR 9, expected cost 4.06>
    >>> plan.lower <= plan.cvar <= plan.upper, plan.message.partition(",")[0]
    (True, 'the optimal CVaR is known to within 1e-8 of its size')
    """

    model: SSP
    policy: BudgetPolicy
    method: str
    alpha: float
    step: float  # the step of the costs that planning used
    status: str  # a key of STATUS
    cvar: float
    var: float
    expected: float
    expected_lower: float
    lower: float
    upper: float
    worst_case: float  # the minimal worst-case cost over all policies, infinite if none bounds the cost
    seconds: float  # of solving, without compilation
    max_cvar: float = float("inf")  # the limit on CVaR; infinite if there is none
    goal_probability: float = 1.0  # below 1 only with goal="likeliest"
    explored: Exploration | None = None  # how much of the model was explored, if it was searched
    objective: Achieved | None = None  # the objective other than CVaR, if any: value and bounds
    nominal: Nominal | None = None  # for a set of models: the policy's numbers in the model itself
    intervals: Intervals | None = None  # the set of models that the plan is for, if any
    notes: tuple[str, ...] = ()  # rounded costs, a method's fallbacks and the like
    device: str = "cpu"  # what it was computed on

    @property
    def message(self) -> str:
        """What the status means and what to change."""
        statuses, lower, upper = STATUS, self.lower, self.upper
        if self.objective is not None:
            statuses, lower, upper = STATUS_OBJECTIVE, self.objective.lower, self.objective.upper
        elif self.nominal is not None:
            statuses = STATUS_ROBUST
        elif self.max_cvar < math.inf:
            statuses, lower, upper = STATUS_WITHIN, self.expected_lower, self.expected
        elif self.explored is not None:
            statuses = STATUS_SEARCHED if self.explored.certified else UNCERTIFIED
        meaning = statuses[self.status]
        if self.status == "gap_not_reached" and lower <= 0 <= upper < lower + math.inf:
            meaning += f"; {MAYBE_ZERO.format(upper - lower)}"
        proviso = "" if self.explored is None else self.explored.proviso
        return f"if {proviso}, {meaning}" if proviso else meaning

    def __repr__(self) -> str:
        least, about = ("at least ", "about ") if self._from_below else ("", "")
        shown = self.shown()
        optimum = shown["lower"] if shown["lower"] == shown["upper"] else f"{shown['lower']} to {shown['upper']}"
        return (
            f"<Plan for {self.model.name}, {self.method}, alpha {self.alpha:g}: {self.status}, "
            f"{'CVaR' if self.nominal is None else 'worst-case CVaR'} {least}{shown['cvar']} (optimal {optimum}), "
            f"VaR {about}{shown['var']}, expected cost {shown['expected']}>"
        )

    @property
    def own_cvar(self) -> str:
        """What is known of the policy's own CVaR in the model itself, in words (internal)."""
        most, digits = self._most, self._own_decimals
        if math.isnan(self.own.cvar):
            return f"at most {at_most(most, digits)}" if math.isfinite(most) else "unknown"
        if self.policy.prepared.scale.rounded:
            return f"at least {at_least(self.own.cvar, digits)}"
        return f"exactly {number(self.own.cvar, digits)}"

    @property
    def own_expected(self) -> str:
        """The policy's expected cost in the model itself, as text (internal)."""
        return number(self.own.expected, self._decimals(0.0))

    @property
    def own(self) -> Nominal:
        """The policy's numbers in the model itself, also where others are for the worst of a set (internal)."""
        return self.nominal or Nominal(self.cvar, self.var, self.expected)

    @property
    def _from_below(self) -> bool:
        """Whether ``cvar`` is a lower bound on the policy's own: costs were rounded."""
        return self.policy.prepared.scale.rounded and not math.isnan(self.cvar) and self.nominal is None

    def explain(self, state: Hashable, spent: float = 0.0) -> Explanation:
        """Compare all actions of a state, given by its name, after a run has spent so much.

        Examples
        --------
        >>> import prudent
        >>> print(prudent.solve(prudent.domains.figure_2(), alpha=0.1).explain("s1"))
        In 's1', having spent 0: the remaining budget is 9, and no run needs to exceed it, so the expected cost decides
          action  excess  expected cost  allowed  why
          c         0.55            1    no       could exceed the budget
        > d         0               3.4  yes      played: the lowest expected cost of the allowed actions
          e         0               7    yes      allowed, but its expected cost is higher
        """
        return self.explain_left(state, spent, None)

    def explain_left(self, state: Hashable, spent: float, left: int | None) -> Explanation:
        """Compare all actions of a state in a run of the plan's agent, which has so many levels left (internal)."""
        if self.max_cvar < float("inf") or (self.objective is not None and self.objective.objective != WorstCase.name):
            raise PrudentError(
                "this plan has a limit on CVaR or another objective; only plans for the optimal CVaR, the lowest "
                "expected cost or the minimal worst-case cost can be explained"
            )
        return self._explainer.explain(state, spent, left)

    def decisions(self) -> Decisions:
        """Return the plan as a table: state, range of cost so far -> action.

        Examples
        --------
        >>> import prudent
        >>> print(prudent.solve(prudent.domains.figure_2(), alpha=0.1).decisions())
        state  spent      action
        s0     0          a
        s1     0          d
        s2     0 or more  b
        """
        return decisions_of(self)

    def chain(self) -> SSP:
        """Return the Markov chain that the plan makes of the model: a model with one action in each state.

        Its states are those of the model, with the remaining budget where the plan depends on it.  So other tools can
        analyse the plan: ``prudent.save(plan.chain(), "chain.drn")`` writes the chain for Storm, with the label
        ``goal`` and the reward model ``cost``.

        Examples
        --------
        >>> import prudent
        >>> chain = prudent.solve(prudent.domains.figure_2(), alpha=0.1).chain()
        >>> chain, chain.state_names
        (<SSP figure-2-chain: 4 states, 3 actions, 5 outcomes>, ('s0, 9 left', 's2, budget gone', 's1, 9 left', 'g'))
        """
        return chain_of(self.policy)

    def bands(self, state: Hashable) -> tuple[Decision, ...]:
        """Return the actions of the plan in a state for every cost so far, including costs that its runs never have.

        Examples
        --------
        >>> import prudent
        >>> plan = prudent.solve(prudent.domains.figure_2(), alpha=0.1)
        >>> [(band.at_least, band.at_most, band.action) for band in plan.bands("s1")]
        [(0.0, 0.0, 'd'), (1.0, 2.0, 'e'), (3.0, inf, 'c')]
        """
        return bands_of(self.policy, state)

    def visits(self) -> Visits:
        """Return the expected number of times that a run plays each action; exact, and 0 where no run goes.

        Examples
        --------
        >>> import prudent
        >>> visits = prudent.solve(prudent.domains.figure_2(), alpha=0.1).visits()
        >>> visits.of("s1"), visits.of("s1", "d"), visits.of("s1", "c")
        (0.9, 0.9, 0.0)
        """
        return visits_of(self.policy)

    def total_cost(self) -> Distribution:
        """Return the distribution of the total cost: exact, or of simulated runs if VaR is unknown (internal)."""
        if math.isnan(self.own.var):  # too large to evaluate exactly
            return Simulation(EPISODES, 0, cores(), UNLIMITED).of(self.model, self.policy).tally.distribution
        return total_cost(self.policy, Limits.of(None, None))

    @cached_property
    def _explainer(self) -> Explainer:
        return Explainer(self.policy) if self.intervals is None else RobustExplainer(self.policy, self.intervals)

    def _content(self) -> dict[str, Any]:
        achieved = None if self.objective is None else asdict(self.objective)
        nominal = {} if self.nominal is None else {"nominal": asdict(self.nominal)}
        explored = {} if self.explored is None else {**asdict(self.explored), "certified": self.explored.certified}
        return {**self.numbers(), **explored, "objective": achieved, **nominal, "notes": self.notes}

    def _columns(self) -> dict[str, Any]:
        achieved = asdict(self.objective or Achieved("", math.nan, math.nan, math.nan))
        row = {**self.numbers(), "objective": achieved.pop("objective")}
        row |= {f"objective_{name}": math.nan if value is None else value for name, value in achieved.items()}
        return {name: [value] for name, value in {**row, "notes": "\n".join(self.notes)}.items()}

    def numbers(self) -> dict[str, Any]:
        """Return the plan's fields other than policy and notes, and the size of its model (internal)."""
        model = self.model
        sizes = {"states": model.n_states, "actions": model.n_actions, "outcomes": model.n_outcomes}
        return {name: getattr(self, name, None) for name in FIELDS} | {"model": model.name, **sizes}

    def table(self, alpha: Alphas | None = None) -> Table:
        """Return what ``prudent solve`` prints; with one ``alpha`` or several, also the plan's CVaR and VaR at each.

        Examples
        --------
        >>> import prudent
        >>> table = prudent.solve(prudent.domains.figure_2(), alpha=0.1).table(alpha=0.5)
        >>> table.rows[0], table.rows[-2][1]
        (('CVaR', '10', 'mean of the worst 10% of runs'), '7.12')
        """
        table = self._table()
        if alpha is None:
            return table
        how = ", of simulated runs" if math.isnan(self.own.var) else ""
        how += "" if self.nominal is None else ", in the model itself"
        tails = ((name, text, f"{what}{how}") for name, text, what in self.total_cost().tails(alpha))
        return replace(table, rows=(*table.rows, *tails))

    def _table(self) -> Table:
        shown, tail, exceeded = self.shown(), f"mean of {worst(self.alpha)}", exceeded_in(self.alpha)
        if self._from_below:
            tail, exceeded = f"{tail}, at least", f"{exceeded}, about"
        elif math.isnan(self.cvar):
            tail = f"{tail}; {self.own_cvar}"
        if self.nominal is not None:
            rows = self._robust_rows(shown, tail)
        else:
            rows = [("CVaR", shown["cvar"], tail), ("VaR", shown["var"], exceeded), self._mean_row(shown)]
        if self.objective is None:  # else the optimal CVaR was not sought
            rows.append(self._optimum())
        known = "over all plans; this plan may exceed it" if self.explored is None else "over all plans, at least"
        rows.append(("minimal worst-case cost", shown["worst_case"], known))
        if self.goal_probability < 1:
            rows.insert(0, ("probability of a goal", probability(self.goal_probability), "the highest possible"))
        what = f"method {self.method}"
        if (goal := self.objective) is not None:
            rows.insert(0, self._objective_row(goal))
            what = f"objective {goal}"
        title = f"{self.model.name}, alpha {self.alpha:g}, {what}: {self.status}"
        size = f"{self.model.n_states:,} states, {self.model.n_outcomes:,} outcomes, {self.seconds:.3g} s"
        if self.explored is not None:
            size = f"{self.explored.met:,} states met, {self.explored.expanded:,} expanded, {self.seconds:.3g} s"
        return Table(title, tuple(rows), "ldw", notes=(size, f"{self.status}: {self.message}", *self.notes))

    def shown(self) -> dict[str, str]:
        """Return the plan's numbers as text, each with the digits that are certain (internal)."""
        exact, lower, upper = self._decimals(0.0), *bounds(self.lower, self.upper, self._money)
        side = at_least if self._from_below else number if self.nominal is None else at_most
        if self.nominal is not None and lower == upper:  # its CVaR is rounded up, so its upper bound is, too
            upper = at_most(self.upper, self._own_decimals)
        return {
            "cvar": side(self.cvar, self._own_decimals),
            "var": number(self.var, self._own_decimals),
            "expected": number(self.expected, exact),
            "expected_lower": at_least(self.expected_lower, self._decimals(self.expected - self.expected_lower)),
            "lower": lower,
            "upper": upper,
            "worst_case": number(self.worst_case, exact),
        }

    @property
    def _money(self) -> bool:
        return self.policy.prepared.scale.money

    def _decimals(self, gap: float) -> int:
        return certain(gap, self._money)

    @property
    def _own_decimals(self) -> int:
        """How many decimals of the policy's own CVaR and VaR are certain; with rounded costs, its bounds decide."""
        if not self.policy.prepared.scale.rounded:
            return self._decimals(0.0)
        return self._decimals(self._most - (self.cvar if self._from_below else self.lower))

    @property
    def _most(self) -> float:
        """An upper bound on the policy's own CVaR."""
        return self.upper if self.max_cvar == math.inf else self.max_cvar

    def _optimum(self) -> tuple[str, str, str]:
        """Return the row for the bounds on the optimal CVaR."""
        best = "optimal CVaR" if self.nominal is None else "minimal worst-case CVaR"
        lower, upper = bounds(self.lower, self.upper, self._money)
        if lower == upper:
            proviso = "" if self.explored is None else self.explored.proviso
            return best, lower, "known to all digits shown" + (f", if {proviso}" if proviso else "")
        return best, "", between(self.lower, self.upper, self._money)

    def _objective_row(self, goal: Achieved) -> tuple[str, str, str]:
        """Return the row for another objective than CVaR, with the bounds on its optimal value."""
        chance = goal.objective == Exceedance.name
        money = self._money and not chance
        low, high = bounds(goal.lower, goal.upper, money, tiny=chance)
        value = small(goal.value, certain(goal.upper - goal.lower, money))
        return str(goal), value, "optimal, known to all digits shown" if low == high else f"optimal: {low} to {high}"

    def _robust_rows(self, shown: dict[str, str], tail: str) -> list[tuple[str, str, str]]:
        """Return rows for a set of models: the worst of them, and the model itself."""
        own, digits, here = self.own, self._own_decimals, "in the model itself"
        return [
            ("worst-case CVaR", shown["cvar"], f"{tail}, in the worst model of the set, at most"),
            ("worst-case expected cost", shown["expected"], "in the model of the set that is worst for it"),
            ("CVaR", number(own.cvar, digits), here),
            ("VaR", number(own.var, digits), here),
            ("expected cost", self.own_expected, here),
        ]

    def _mean_row(self, shown: dict[str, str]) -> tuple[str, str, str]:
        """Return the row for the second objective."""
        what = "mean of all runs"
        if self.objective is not None:
            sought = self.objective.objective != MeanPlusCVaR.name and not self.policy.prepared.scale.rounded
            what += f"; the lowest at that {self.objective}" if sought else ""
        elif self.max_cvar == math.inf and self.status == "optimal":
            what += "; the lowest at that CVaR"
        else:
            limit = number(self.max_cvar, self._decimals(0.0))
            those = "of optimal CVaR" if self.max_cvar == math.inf else f"with a CVaR up to {limit}"
            what += f"; no plan {those} has less than {shown['expected_lower']}"
        return "expected cost", shown["expected"], what
