"""The prepared model that every method works on, and the way back to the user's model.

Costs are whole, non-negative numbers of *levels* above best luck; zero-cost end components are collapsed.
:mod:`prudent.engine.prepare` describes how it is made, :mod:`prudent.engine.cost_scale` how levels are counted.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast

import numpy as np

from prudent.engine.cost_scale import CostScale
from prudent.errors import Defect
from prudent.kernels.acyclic import least_behind, longest_ahead
from prudent.kernels.counting import mean_costs
from prudent.kernels.graphs import UNREACHED
from prudent.kernels.layout import layers
from prudent.kernels.search import least_costs, lower_behind
from prudent.models.graph import Blocks, Order, entering, least_ahead, least_by_state, ordered_blocks, towards
from prudent.models.rows import BoolArray, FloatArray, IntArray, Rows, offsets
from prudent.models.ssp import SSP
from prudent.runtime.team import cut, in_parts

PASSES = 16
"""The most passes over all outcomes in a search for least totals; then the search continues state by state."""

Found = dict[Callable[..., Any], Any]
"""Values found so far, each under the function that found it."""


class Owner(Protocol):
    """What keeps the values that functions find for it."""

    @property
    def found(self) -> Found:
        """The values found so far."""


T = TypeVar("T")
P = ParamSpec("P")
Keeps = TypeVar("Keeps", bound=Owner)


@dataclass(frozen=True, eq=False)
class Members:
    """The model's states that each prepared state stands for: one, or those of a zero-cost end component."""

    model: SSP
    state_of: IntArray  # (model.n_states,)  the prepared state; -1: pruned
    inner_action: IntArray  # the model's actions inside collapsed end components
    _routes: dict[int, IntArray] = field(default_factory=dict, init=False, repr=False)  # by target, as they are found

    def route(self, state: int, action: int) -> int:
        """Return the model action to play in a model state so that ``action`` is played eventually, with probability 1.

        The two differ only inside a collapsed end component: a member without the action moves along a shortest path
        inside it, at no cost, to the member that has the action.
        """
        target = self.model.state_of_action(action)
        return action if state == target else int(self.routes(target)[state])

    def route_each(self, state: IntArray, action: IntArray) -> IntArray:
        """Return :meth:`route` for each of many states and actions."""
        if len(self.inner_action) == 0:
            return action
        n, found = self.model.n_actions, action.copy()
        away = np.searchsorted(self.model.action_start, action, side="right") - 1 != state
        moves, which = np.unique(state[away] * n + action[away], return_inverse=True)
        found[away] = np.array([self.route(*divmod(move, n)) for move in moves.tolist()], dtype=np.int64)[which]
        return found

    def routes(self, target: int) -> IntArray:
        """Return, for each other member of ``target``'s end component, the model action towards it; -1 elsewhere."""
        if target not in self._routes:
            model = self.model
            inside = np.zeros(model.n_actions, dtype=bool)
            inside[self.inner_action] = True
            arc = np.flatnonzero(inside[model.outcome_action] & (model.probability > 0))
            source = model.outcome_state[arc]
            hop = towards(source, model.successor[arc], model.n_states, np.arange(model.n_states) == target)
            good = hop[source] == model.successor[arc]
            route = np.full(model.n_states, -1, dtype=np.int64)
            route[source[good]] = model.outcome_action[arc[good]]
            self._routes[target] = route
        return self._routes[target]


@dataclass(frozen=True, eq=False)
class Graph(Rows):
    """Where outcomes lead, whatever they cost and however likely they are: all steps of a model share it."""

    action_start: IntArray  # (n_states + 1,)
    outcome_start: IntArray  # (n_actions + 1,)
    successor: IntArray  # (n_outcomes,)
    threads: int  # that find the rest; no number depends on it
    known: Order | None = None  # the order, if it was found before

    @cached_property
    def order(self) -> Order:
        """The components, successors first; without cycles, in layers."""
        return self.known or ordered_blocks(self.arc_start, self.successor, threads=self.threads)

    @cached_property
    def entering(self) -> tuple[IntArray, IntArray]:
        """The outcomes that lead to each state: their starts and the outcomes."""
        return entering(self.successor, self.n_states)

    @cached_property
    def distance(self) -> IntArray:
        """The fewest actions after which each state can be at a goal."""
        return self.least_ahead(None)

    def least_ahead(self, cost: IntArray | None) -> IntArray:
        """Return the least total of outcomes' costs on a path to a goal from every state; without costs, of actions."""
        least = np.where(self.is_goal, 0, UNREACHED)
        if not least_ahead(self.arc_start, self.successor, cost, least, PASSES, self.threads):
            cost = np.ones_like(self.successor) if cost is None else cost
            least_by_state(self, self.successor, self.entering, cost, least)
        return least


@dataclass(frozen=True, eq=False)
class Prepared(Rows):
    """A model ready for planning: costs are whole levels, at least 0; zero-cost end components are collapsed."""

    model: SSP
    scale: CostScale
    members: Members
    start: int
    action_start: IntArray  # (n_states + 1,)
    outcome_start: IntArray  # (n_actions + 1,)
    free_stop: IntArray  # (n_actions,)  outcomes at no cost come first, up to here
    probability: FloatArray  # (n_outcomes,)
    successor: IntArray  # (n_outcomes,)
    fine: IntArray  # (n_outcomes,)  normalised cost in lattice steps
    cost: IntArray  # (n_outcomes,)  in levels
    model_action: IntArray  # (n_actions,)  the model's action; -1: the draw of the initial state
    plays: FloatArray  # (n_actions,)  expected number of plays in a row, since free loops are dropped
    graph: Graph  # of the same rows
    between: bool = False  # whether costs may lie between levels: ``cost`` is then ``fine``, rounded up
    found: Found = field(default_factory=dict, init=False, repr=False)  # by functions that are computed once

    def __post_init__(self) -> None:
        graph = self.graph
        if graph.action_start is not self.action_start or graph.successor is not self.successor:
            raise Defect("a prepared model has the graph of another one")

    @cached_property
    def mean_cost(self) -> FloatArray:
        """(n_actions,)  The expected cost of each action in levels, not rounded."""
        mean = np.empty(self.n_actions)
        rows = cut(self.outcome_start), self.outcome_start, self.probability, self.fine
        in_parts(self.threads, mean_costs, len(self.fine), *rows, float(self.scale.stride), mean)
        return mean

    @cached_property
    def cost_range(self) -> tuple[int, int]:
        """The least cost above 0, UNREACHED if there is none, and the largest cost, in levels."""
        return int(self.cost.min(initial=UNREACHED, where=self.cost > 0)), int(self.cost.max(initial=0))

    @cached_property
    def most_actions(self) -> int:
        """The most actions of a state, at least 1."""
        return int(np.diff(self.action_start).max(initial=1))

    @cached_property
    def free_blocks(self) -> Blocks:
        """The components of the zero-cost graph, successors first; also successors at less than a level ``between``."""
        if self.acyclic:
            return self.blocks
        inside = self.fine < self.scale.stride if self.between else self.cost == 0
        return ordered_blocks(offsets(inside)[self.arc_start], self.successor[inside], threads=self.threads).blocks

    @cached_property
    def free_depth(self) -> IntArray:
        """(n_blocks,)  The most such outcomes, from block to block, on a path from each of the free blocks."""
        depth = np.empty(len(self.free_blocks[0]) - 1, dtype=np.int64)
        free = self.scale.down(self.fine) if self.between else self.cost
        layers(self.free_blocks, self.action_start, self.outcome_start, self.successor, free, 1, depth)
        return depth

    @property
    def threads(self) -> int:
        """How many threads find its values; no number depends on it."""
        return self.graph.threads

    @property
    def order(self) -> Order:
        """The components of the whole graph, successors first; without cycles, in layers."""
        return self.graph.order

    @property
    def blocks(self) -> Blocks:
        """The components of the whole graph, successors first."""
        return self.order.blocks

    @property
    def acyclic(self) -> bool:
        """Whether no state can be visited twice."""
        return self.order.acyclic

    def proper_choice(self) -> IntArray:
        """Choose in each state an action that may move closer to a goal: such a policy surely reaches one."""
        choice = self.action_start[:-1].copy()
        distance = self.graph.distance
        closer = distance[self.successor] < distance[self.outcome_state]
        arc = np.flatnonzero(closer)[::-1]  # the first action of each state is written last
        choice[self.outcome_state[arc]] = self.outcome_action[arc]
        return choice

    @property
    def finite(self) -> bool:
        """Whether no state of the model can be visited twice, apart from free loops of one action."""
        return self.acyclic and len(self.members.inner_action) == 0

    @cached_property
    def longest(self) -> int:
        """The most actions of the model on a path that visits no state twice, or an upper bound on it."""
        if not self.finite:
            return self.model.n_states
        longest = np.empty(self.n_states, dtype=np.int64)
        longest_ahead(self.blocks[1], self.arc_start, self.successor, longest)
        return int(longest.max())

    @cached_property
    def least_spent(self) -> IntArray:
        """The fewest levels that a run in each state can have used; the rest of its budget is the most that remains.

        If costs are rounded up, the total is rounded as a whole, which may give fewer levels than cost by cost.
        """
        up = self.scale.rounded and bool((self.cost * self.scale.stride >= self.fine).all())
        least = np.full(self.n_states, UNREACHED)
        least[self.start] = 0
        rows = self.arc_start, self.successor, self.fine if up else self.cost
        if self.acyclic:
            few = self.order.width // 4  # threads lower the same numbers, so each must have much to do
            in_parts(self.threads, least_behind, len(self.cost), self.order.forwards, *rows, least, most=few)
        else:
            lowered, changed = np.full(self.n_states, -1, dtype=np.int8), np.zeros(2 * PASSES, dtype=bool)
            lowered[self.start] = 0
            in_parts(self.threads, lower_behind, len(self.cost), cut(self.arc_start), *rows, least, lowered, changed)
            if changed[-1]:
                least[:] = UNREACHED
                least_costs(*rows, self.start, least)
        least[least == UNREACHED] = least[least < UNREACHED].max()  # unreachable states get the largest finite value
        return self.scale.up(least) if up else least

    def playing(self, choice: IntArray) -> BoolArray:
        """Return a mask of the actions in ``choice``, one for each state; the entries of goals are ignored."""
        played = np.zeros(self.n_actions, dtype=bool)
        played[choice[~self.is_goal]] = True
        return played

    @property
    def avoided(self) -> BoolArray:
        """The model's actions that no plan plays, in states that plans visit: a run could get stuck after them."""
        used = np.zeros(self.model.n_actions, dtype=bool)
        used[self.model_action[self.model_action >= 0]] = True
        used[self.members.inner_action] = True
        return np.asarray(~used & (self.members.state_of >= 0)[self.model.action_state])

    @cached_property
    def left_out(self) -> FloatArray:
        """What rounding left out of each outcome's cost, in levels."""
        return self.scale.left_out(self.fine, self.cost)


def once(function: Callable[Concatenate[Keeps, P], T]) -> Callable[Concatenate[Keeps, P], T]:
    """Cache a function's result in its first argument, which owns it; callers must not write to the result.

    The function itself is the key: it says what is kept, and of which type.  Prepared models cannot have a field for
    each, since most are found by modules that build on them.  What else a function is given, such as limits, says what
    it may use, not what to find.
    """

    @wraps(function)
    def found(owner: Keeps, *given: P.args, **more: P.kwargs) -> T:
        if found not in owner.found:
            owner.found[found] = function(owner, *given, **more)
        return cast(T, owner.found[found])

    return cast(Callable[Concatenate[Keeps, P], T], found)


def choice_type(prepared: Prepared) -> type[Any]:
    """Return the smallest type that holds the number of an action within its state."""
    most = prepared.most_actions - 1
    return np.uint8 if most < 2**8 else np.uint16 if most < 2**16 else np.int32


def restrict(prepared: Prepared, choice: IntArray) -> Prepared:
    """Return the prepared model with only the actions in ``choice``, one for each state."""
    return restrict_to(prepared, prepared.playing(choice))


def restrict_to(prepared: Prepared, used: BoolArray) -> Prepared:
    """Return the prepared model with only the ``used`` actions, at least one for each state that has any."""
    inside = used[prepared.outcome_action]
    return of_actions(prepared, used, inside, offsets(used)[prepared.action_start], prepared.successor[inside])


def of_actions(
    prepared: Prepared,
    action: IntArray | BoolArray,
    outcome: IntArray | BoolArray,
    action_start: IntArray,
    successor: IntArray,
    **fields: Any,
) -> Prepared:
    """Return the prepared model of some of its actions, each any number of times, and of their outcomes.

    They are given as masks or as numbers; ``action_start`` and ``successor`` are those of the new model, which may have
    other states.
    """
    outcome_start = offsets(np.diff(prepared.outcome_start)[action])
    return replace(
        prepared,
        action_start=action_start,
        outcome_start=outcome_start,
        free_stop=outcome_start[:-1] + (prepared.free_stop - prepared.outcome_start[:-1])[action],
        probability=prepared.probability[outcome],
        successor=successor,
        fine=prepared.fine[outcome],
        cost=prepared.cost[outcome],
        model_action=prepared.model_action[action],
        plays=prepared.plays[action],
        graph=Graph(action_start, outcome_start, successor, prepared.threads),
        **fields,
    )
