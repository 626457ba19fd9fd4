"""Why a plan plays an action: all actions of a state, with the numbers that the method compares."""

from collections.abc import Hashable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from prudent.engine.sweep.driver import budget_sweep
from prudent.engine.sweep.question import PLAN, TIE, Question
from prudent.engine.values.expected_cost import least_expected_cost
from prudent.engine.values.worst_case import least_worst_case
from prudent.errors import printable
from prudent.models.intervals import Intervals
from prudent.models.rows import FloatArray, IntArray
from prudent.policies.policy import BudgetPolicy
from prudent.results.at_worst import Follower
from prudent.runtime.limits import Limits
from prudent.runtime.tables import Framed, Numbers, Table, certain, number, small

LOOKED_UP = (
    "the action is looked up by the true cost so far, as in plan.decisions(); the plan's agent charges itself each "
    "cost rounded up, so it may have less left and play another action"
)
"""The note where costs were rounded."""


@dataclass(frozen=True)
class Option:
    """One action, with its numbers if it is played now and the plan is followed afterwards.

    In a plan for a set of models ``excess`` and ``expected`` are for the worst of them.

    Examples
    --------
    >>> import prudent
    >>> option = prudent.solve(prudent.domains.figure_2(), alpha=0.1).explain("s1").options[0]
    >>> option.action, option.allowed, round(option.excess, 6), option.why
    ('c', False, 0.55, 'could exceed the budget')
    """

    action: Hashable
    at: Hashable  # the state that has the action: another one if moves at no cost lead there first
    excess: float  # expected excess of the total cost over the budget; infinite if stuck, nan without a budget
    expected: float  # expected cost still to come
    allowed: bool  # whether it keeps the first objective at its optimum
    why: str
    nominal_excess: float | None = None  # for a set of models, ``excess`` in the model itself
    nominal_expected: float | None = None  # for a set of models, ``expected`` in the model itself


@dataclass(frozen=True, repr=False)
class Explanation(Numbers, Framed):
    """The actions of a state, and why the plan plays the one it plays.

    In a table that action is marked; in a data frame the column ``played`` says which one it is.

    Examples
    --------
    >>> import prudent
    >>> told = prudent.solve(prudent.domains.figure_2(), alpha=0.1).explain("s1")
    >>> told.action, told.budget, told.safe
    ('d', 9.0, True)
    """

    state: Hashable
    spent: float
    budget: float | None  # the remaining budget; None if the plan minimises the expected cost alone
    safe: bool  # whether a policy exists under which no run exceeds the budget from here
    action: Hashable  # the action that the plan plays
    options: tuple[Option, ...]
    summary: str
    notes: tuple[str, ...] = ()
    money: bool = False  # whether costs are in hundredths, and shown with two decimals (internal)

    def _content(self) -> dict[str, Any]:
        names = {"state": str(self.state), "action": str(self.action)}
        options = [vars(o) | {"action": str(o.action), "at": str(o.at)} for o in self.options]
        content = vars(self) | names | {"options": options}
        return {name: value for name, value in content.items() if name != "money"}

    def _columns(self) -> dict[str, Any]:
        columns = {item.name: [getattr(option, item.name) for option in self.options] for item in fields(Option)}
        return {**columns, "played": [self._plays(option) for option in self.options]}

    def _table(self) -> Table:
        rows, digits = [], certain(0.0, self.money)
        robust = any(option.nominal_expected is not None for option in self.options)
        for option in self.options:
            name = printable(option.action) + ("" if option.at == self.state else f" at {printable(option.at)}")
            numbers: list[float | None] = [option.excess, option.expected]
            numbers += [option.nominal_excess, option.nominal_expected] if robust else []
            shown = ("" if x is None or np.isnan(x) else small(x, digits) for x in numbers)
            allowed = "yes" if option.allowed else "no"
            rows.append((f"{'>' if self._plays(option) else ' '} {name}", *shown, allowed, option.why))
        title = f"In {self.state!r}, having spent {number(self.spent, digits)}: {self.summary}"
        names, notes = ["excess", "expected cost"], self.notes
        if robust:
            names = [*(f"worst {name}" for name in names), *names]
            worst = "worst: in the worst model of the set, which decides; excess, expected cost: in the model itself"
            notes = (worst, *notes)
        head = ("  action", *names, "allowed", "why")
        return Table(title, tuple(rows), "w" + "d" * len(names) + "lw", head=head, notes=notes)

    def _plays(self, option: Option) -> bool:
        return (option.action, option.at) == (self.action, self.state)

    def __str__(self) -> str:
        return str(self.table())

    def __repr__(self) -> str:
        return f"<Explanation in {self.state!r}, spent {self.spent:g}: plays {self.action!r} of {len(self.options)}>"


class Explainer:
    """Compares actions by values that it computes anew, since a plan keeps only its actions."""

    def __init__(self, policy: BudgetPolicy) -> None:
        policy.refuse_as("cannot be explained")
        prepared = policy.prepared
        self.policy, limits = policy, Limits.of(None, None)
        self.worst = least_worst_case(prepared, limits)
        least = least_expected_cost(prepared, limits)
        question = Question(least.base, least.choice, self.worst, PLAN)
        swept = budget_sweep(prepared, question, limits, most=policy.level, keep=True)
        if swept.stopped == "interrupted":
            raise KeyboardInterrupt
        assert swept.tables is not None
        self.tables = swept.tables

    def values(self, action: IntArray, left: int) -> list[tuple[FloatArray, FloatArray]]:
        """Return the expected excess and the expected cost, in levels, after each action with that remaining budget.

        For a set of models: in the worst of them, then in the model itself.
        """
        expected = self.policy.prepared.mean_cost[action] + self._following(action, left, self.tables.mean, slope=0.0)
        return [(self._following(action, left, self.tables.excess, slope=1.0), expected)]

    def explain(self, state: Hashable, spent: float, left: int | None = None) -> Explanation:
        """Compare all actions of a state, given what the run has spent and, if it is an agent's, what it has left.

        What is left, in levels, is negative where the budget is overdrawn.
        """
        policy, prepared, model = self.policy, self.policy.prepared, self.policy.prepared.model
        notes = (LOOKED_UP,) if left is None and prepared.scale.rounded and policy.budget is not None else ()
        index = model.index(state)
        inside = int(prepared.members.state_of[index])
        if left is None:
            played = policy(state, spent)
            left = policy.level - policy.used(index, spent)
        else:
            played = model.action(policy.model_action(index, max(left, 0)))
        safe = int(self.worst.value[inside]) <= left and policy.budget is not None
        action = np.arange(prepared.action_start[inside], prepared.action_start[inside + 1])
        (excess, expected), *own = self.values(action, left)
        if safe:
            allowed = self.worst.action_value[action] <= left
        else:
            first = excess if left > 0 else expected
            allowed = first <= first.min() * (1 + 8 * TIE)
        chosen = policy.choices.at(inside, left)
        unit = prepared.scale.level_size
        luck = float(prepared.scale.lattice.value(int(prepared.scale.luck[index])))
        options = [
            Option(
                action=model.action(a),
                at=model.state(model.state_of_action(a)),
                excess=np.nan if policy.budget is None else float(excess[i]) * unit,
                expected=float(expected[i]) * unit + luck,
                allowed=bool(allowed[i]),
                why=_why(i == chosen, bool(allowed[i]), bool(expected[i] <= expected[chosen]), safe, left > 0),
                nominal_excess=float(own[0][0][i]) * unit if own and policy.budget is not None else None,
                nominal_expected=float(own[0][1][i]) * unit + luck if own else None,
            )
            for i, a in enumerate(prepared.model_action[action].tolist())
        ]
        budget = None if policy.budget is None else policy.budget - spent
        options += self._beside(index, options[chosen])
        summary = _summary(budget, luck, safe, left > 0, certain(0.0, prepared.scale.money))
        return Explanation(state, spent, budget, safe, played, tuple(options), summary, notes, prepared.scale.money)

    def _following(self, action: IntArray, left: int, table: FloatArray, *, slope: float) -> FloatArray:
        """Return the expected value after each action; below budget 0 the value rises by the slope per level."""
        prepared = self.policy.prepared
        first = prepared.outcome_start[action]
        outcome = np.arange(first[0], prepared.outcome_start[action[-1] + 1])
        rest = left - prepared.cost[outcome]
        value = table[prepared.successor[outcome], np.maximum(rest, 0)] - slope * np.minimum(rest, 0)
        return np.add.reduceat(prepared.probability[outcome] * value, first - first[0])

    def _beside(self, state: int, chosen: Option) -> list[Option]:
        """Return the state's actions that the prepared model lacks: free moves, and those that may lead into a trap."""
        prepared, model = self.policy.prepared, self.policy.prepared.model
        found = []
        for a in range(int(model.action_start[state]), int(model.action_start[state + 1])):
            if a in prepared.model_action:
                continue
            names = model.action(a), model.state(state)
            if a in prepared.members.inner_action:
                why = "costs nothing and keeps every choice open"
                found.append(replace(chosen, action=names[0], at=names[1], allowed=True, why=why))
            else:
                found.append(Option(*names, np.inf, np.inf, False, "may lead to a state from which no goal is reached"))
        return found


class RobustExplainer(Explainer):
    """Compares actions by the values of a plan for a set of models: in the worst of them, and in the model itself."""

    def __init__(self, policy: BudgetPolicy, intervals: Intervals) -> None:
        policy.refuse_as("cannot be explained")
        self.policy, limits = policy, Limits.of(None, None)
        self.worst = least_worst_case(policy.prepared, limits)
        chance = policy.prepared.model.probability
        both = Follower(policy, intervals, limits), Follower(policy, Intervals(chance, chance), limits)
        self._values = [(each, each.excesses(policy.level)[0], each.means()[0]) for each in both]

    def values(self, action: IntArray, left: int) -> list[tuple[FloatArray, FloatArray]]:
        """Return both, as :class:`Explainer` does."""
        return [(at.after(action, left, excess), at.after(action, left, mean)) for at, excess, mean in self._values]


def _summary(budget: float | None, luck: float, safe: bool, counts: bool, digits: int) -> str:
    """Return what decides: ``luck`` is the lowest possible cost; ``counts``: the budget exceeds it."""
    if budget is None:
        return "this plan minimises the expected cost alone"
    remaining = f"the remaining budget is {number(budget, digits)}"
    if safe:
        return f"{remaining}, and no run needs to exceed it, so the expected cost decides"
    if counts:
        return f"{remaining}; the expected excess over it comes first, then the expected cost"
    if budget > 0:
        return f"{remaining}, but every run costs at least {number(luck, digits)} more, so the expected cost decides"
    return "no budget remains: every further unit of cost counts, so the expected cost decides"


def _why(played: bool, allowed: bool, as_good: bool, safe: bool, budget_left: bool) -> str:
    if played:
        return "played: the lowest expected cost of the allowed actions"
    if allowed:
        return "allowed, and as good" if as_good else "allowed, but its expected cost is higher"
    if safe:
        return "could exceed the budget"
    return "raises the expected excess" if budget_left else "its expected cost is higher"
