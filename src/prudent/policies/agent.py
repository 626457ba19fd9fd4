"""One run of a policy: act, observe, act again."""

from collections.abc import Hashable
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np

from prudent.engine.cost_step import find_lattice
from prudent.errors import PrudentError, as_number
from prudent.models.rows import FloatArray, IntArray
from prudent.models.ssp import SSP

if TYPE_CHECKING:
    from prudent.policies.policy import BudgetPolicy

NEAR = 1e-9
"""Tolerance for an observed cost to count as a listed one, relative to that or to one level if it is larger."""

MOST = 6
"""The most costs, and states, that a message lists."""


class Agent:
    """Carries a policy through one run.

    Ask :attr:`action`, play it, tell :meth:`observe` where it led and what it cost; until :attr:`done`.
    :meth:`prudent.policies.policy.BudgetPolicy.start` makes one.

    Examples
    --------
    >>> import prudent
    >>> plan = prudent.solve(prudent.domains.figure_2(), alpha=0.1)
    >>> agent = plan.policy.start()
    >>> agent.observe("s1", cost=0)
    >>> agent.action, agent.spent, agent.budget, agent.done
    ('d', 0.0, 9.0, False)
    """

    def __init__(self, policy: "BudgetPolicy", state: int) -> None:
        self._policy = policy
        self._state = state
        self._node = policy.first_node(state)  # the state in the policy's own model, which may remember more
        self._left = policy.level - int(policy.prepared.scale.first_charge(state))  # of the budget, in levels
        self._steps = 0  # spent so far, in lattice steps
        self._paid = 0.0  # spent in addition, where costs are rounded or measured
        self._measured = False  # whether a cost that is not listed was observed

    @property
    def state(self) -> Hashable:
        """The state of the run."""
        return self._policy.prepared.model.state(self._state)

    @property
    def spent(self) -> float:
        """The cost so far."""
        return float(self._policy.prepared.scale.lattice.value(self._steps)) + self._paid

    @property
    def budget(self) -> float | None:
        """The remaining budget, before the total cost exceeds the budget; None if the plan has none.

        Below 0, the total will exceed the budget unless negative costs follow.
        """
        return None if self._policy.budget is None else self._policy.budget - self.spent

    @property
    def left(self) -> int:
        """The remaining budget in levels, costs charged as the plan rounds them (internal)."""
        return self._left

    @property
    def done(self) -> bool:
        """Whether the run has reached a goal."""
        start = self._policy.prepared.model.action_start
        return bool(start[self._state] == start[self._state + 1])

    @property
    def action(self) -> Hashable:
        """The action to play now; None once the run has reached a goal."""
        if self.done:
            return None
        return self._policy.prepared.model.action(self._policy.moves(self._node, self._state, self._left)[1])

    def observe(self, next_state: Hashable, cost: float, *, measured: bool = False) -> None:
        """Take in the state that the action led to and its cost; raise an error if the model has no such outcome.

        Measured costs, such as clock times, rarely are exactly the listed ones.  With ``measured`` any cost is taken
        and added as it is; to choose an action, the total spent is rounded up to one that the plan knows.

        Parameters
        ----------
        next_state : hashable
            The name of the state that :attr:`action` led to.
        cost : float
            What this step cost, as the model lists it.
        measured : bool
            Whether it may be any other finite number, too.

        Examples
        --------
        >>> import prudent
        >>> plan = prudent.solve(prudent.domains.figure_2(), alpha=0.1)
        >>> agent = plan.policy.start()
        >>> agent.observe("s2", cost=0)
        >>> agent.observe("g", cost=10)
        >>> agent
        <Agent in 'g', spent 10, budget -1, done>
        >>> agent = plan.policy.start()
        >>> agent.observe("s1", cost=0.25, measured=True)
        >>> agent, agent.action == plan.policy("s1", spent=1)
        (<Agent in 's1', spent 0.25, budget 8.75, next 'e'>, True)
        """
        prepared, model, scale = self._policy.prepared, self._policy.prepared.model, self._policy.prepared.scale
        if self.done:
            raise PrudentError(f"the run is over: state {self.state!r} is a goal")
        as_number("cost", cost, "a finite number", isfinite)
        if not isinstance(next_state, Hashable):
            raise PrudentError(f"next_state is {next_state!r}; it must be the name of a state")
        if measured and self._policy.remembers:
            raise PrudentError(
                "this policy remembers more than the cost so far and needs a cost that the model lists; give one of "
                "those, without measured=True, or use method='exact'"
            )
        action, a = self._policy.moves(self._node, self._state, self._left)
        outcome = np.arange(model.outcome_start[a], model.outcome_start[a + 1])
        outcome = outcome[model.probability[outcome] > 0]
        there = [o for o in outcome.tolist() if model.state(model.successor[o]) == next_state]
        nearest = min(there, key=lambda o: abs(model.cost[o] - cost), default=-1)
        listed, target = float(model.cost[nearest]), int(model.successor[nearest])
        known = bool(there) and abs(listed - cost) <= NEAR * max(scale.level_size, abs(listed))
        if not known and not (there and measured):
            hint = "; measured=True takes it as it is" if there and not self._policy.remembers else ""
            raise PrudentError(
                f"action {model.action(a)!r} in state {self.state!r} cannot lead to {next_state!r} at cost {cost!r}; "
                + (_costs_there(model.cost[there], cost) if there else _elsewhere(model, outcome))
                + hint
            )
        gain = int(scale.normalised(listed, self._state, target))
        if a == prepared.model_action[action]:
            self._node = self._policy.next_node(self._node, action, target, gain)
        self._left -= scale.up(gain)
        self._state = target
        if not known or scale.rounded:
            self._paid += listed if known else float(cost)
        else:
            self._steps += int(scale.lattice.multiples(np.array(listed)))
        self._measured |= not known
        if self._measured:  # the total spent is rounded up as a whole
            least = int(prepared.least_spent[prepared.members.state_of[target]])
            self._left = self._policy.level - scale.measured(target, self.spent, least)

    def __repr__(self) -> str:
        after = "done" if self.done else f"next {self.action!r}"
        budget = "" if self.budget is None else f", budget {self.budget:g}"
        return f"<Agent in {self.state!r}, spent {self.spent:g}{budget}, {after}>"


def _costs_there(listed: FloatArray, observed: float) -> str:
    """Say what outcomes with the observed successor can cost; of many costs, those nearest to the observed one."""
    costs = np.unique(listed)
    if len(costs) <= MOST:
        return f"possible there: cost {', '.join(f'{each:.12g}' for each in costs)}"
    found = find_lattice(costs)
    step = f", all multiples of {found[0].step:.12g}" if found else ""
    near = np.sort(costs[np.argsort(np.abs(costs - observed), kind="stable")[:2]])
    return (
        f"possible there: {len(costs):,} costs from {costs[0]:.12g} to {costs[-1]:.12g}{step}, "
        f"the nearest {near[0]:.12g} and {near[1]:.12g}"
    )


def _elsewhere(model: SSP, outcome: IntArray) -> str:
    """Say where an action can lead and at which costs; of many states, the first ones and how many more."""
    costs: dict[int, list[float]] = {}
    for target, each in zip(model.successor[outcome].tolist(), model.cost[outcome].tolist(), strict=True):
        costs.setdefault(target, []).append(each)
    shown = []
    for target, some in list(costs.items())[:MOST]:
        listed = [f"{each:.12g}" for each in some]
        if len(outcome) > MOST and len(some) > 1:
            listed = [f"{min(some):.12g} to {max(some):.12g}"]
        shown += [f"{model.state(target)!r} at cost {each}" for each in listed]
    more = f" and {len(costs) - MOST:,} more states" if len(costs) > MOST else ""
    return f"possible: {', '.join(shown)}{more}"
