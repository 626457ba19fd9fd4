"""The lower bound for a search: h-max.

Every outcome of an action counts as an action of its own, and facts stay true once they are.  Each fact of the goal
then has a least cost at which it can be made true on its own.  The largest of these costs is at most the cost of the
cheapest run, hence at most the expected cost.
"""

from collections.abc import Iterator
from fractions import Fraction
from heapq import heappop, heappush
from itertools import chain, product
from math import inf
from typing import Any

from prudent.io.pddl.files import read

Fact = tuple[int, tuple[int, ...]]
Operator = tuple[float, tuple[Fact, ...], tuple[Fact, ...]]


class Relaxed:
    """A problem in which facts stay true."""

    def __init__(self, task: Any, total: int) -> None:
        self.task, self.total = task, total
        self.operators = [] if task.num_derived_predicates else list(self._grounded())
        self.using: dict[Fact, list[int]] = {}  # which operators need a fact
        for number, (_, needs, _) in enumerate(self.operators):
            for fact in needs:
                self.using.setdefault(fact, []).append(number)

    def least(self, state: Any) -> float:
        """Return a lower bound on the least expected cost from a state; infinite if no goal can be reached."""
        if self.task.num_derived_predicates:
            return 0.0  # these are not relaxed
        least = {fact: 0.0 for fact in self._true(state.atoms)}
        queue: list[tuple[float, Fact]] = [(0.0, fact) for fact in least]
        missing = [len(needs) for _, needs, _ in self.operators]

        def add(price: float, adds: tuple[Fact, ...]) -> None:
            for fact in adds:
                if price < least.get(fact, inf):
                    least[fact] = price
                    heappush(queue, (price, fact))

        for cost, needs, adds in self.operators:
            if not needs:
                add(cost, adds)
        done = set[Fact]()
        while queue:
            price, fact = heappop(queue)
            if fact in done:
                continue
            done.add(fact)
            for number in self.using.get(fact, ()):
                missing[number] -= 1
                if missing[number] == 0:
                    cost, _, adds = self.operators[number]
                    add(price + cost, adds)
        goal = (atom for atom in self.task.goal.condition.atoms if not atom.variables)
        return max((least.get((atom.predicate, atom.args), inf) for atom in goal), default=0.0)

    def _true(self, atoms: Any) -> Iterator[Fact]:
        """Yield the facts of a state, with those that never change."""
        first = len(self.task.predicates) - self.task.num_static_predicates
        for i, arguments in chain(enumerate(atoms), enumerate(self.task.static_facts, first)):
            yield from ((i, each) for each in arguments)

    def _grounded(self) -> Iterator[Operator]:
        """Yield each outcome of each ground action as an operator: its cost, the facts it needs, those it adds."""
        from plado.semantics.grounder import Grounder
        from plado.semantics.task import AddEffect

        for number, ground in read(lambda: Grounder(self.task).get_ground_actions()):
            action = self.task.actions[number]
            needs = tuple({(a.predicate, a.instantiate(ground).args) for a in action.precondition.atoms})
            cost = self._least_cost(action)
            for effect in action.effect.effects:
                for _, outcome in effect.outcomes:
                    for each in outcome:
                        if isinstance(each.effect, AddEffect):
                            yield from self._operator(cost, needs, each, ground)

    def _operator(self, cost: float, needs: tuple[Fact, ...], each: Any, ground: tuple[int, ...]) -> Iterator[Operator]:
        """Yield an effect that adds a fact; an effect on all objects adds it whatever else holds."""
        atom = each.effect.atom
        if not each.parameters and all(variable < len(ground) for variable, _ in atom.variables):
            also = tuple((a.predicate, a.instantiate(ground).args) for a in each.condition.atoms)
            yield cost, tuple({*needs, *also}), ((atom.predicate, atom.instantiate(ground).args),)
            return
        for objects in product(range(len(self.task.objects)), repeat=len(each.parameters)):
            yield cost, needs, ((atom.predicate, atom.instantiate((*ground, *objects)).args),)

    def _least_cost(self, action: Any) -> float:
        """Return a lower bound on what an action costs: 0 where that depends on anything."""
        if self.total < 0:
            return 1.0
        return sum(self._least_of(effect) for effect in action.effect.effects if not effect.parameters)

    def _least_of(self, effect: Any) -> float:
        """Return the least that the outcomes of one effect cost, as far as that is a number in any state."""
        prices, rest = [], Fraction(1)
        for chance, outcome in effect.outcomes:
            prices.append(0.0)
            rest -= getattr(chance, "value", 0)
            for each in outcome:
                paid = hasattr(each.effect, "fluent") and each.effect.fluent.function_id == self.total
                if paid and not each.parameters and not any(vars(each.condition).values()):
                    sign = {"Addition": 1, "Subtraction": -1}.get(type(each.effect.expr).__name__, 0)
                    prices[-1] += sign * float(getattr(getattr(each.effect.expr, "rhs", None), "value", 0))
        return min(prices, default=0.0) if rest <= 0 else 0.0
