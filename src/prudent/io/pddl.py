"""Planning problems in PPDDL, read through plado (extra ``pddl``): a domain and a problem make one model.

A state is the list of its facts.  Costs are what actions add to ``total-cost``, where the domain has it, or 1 for each
action.  Runs end in states where the problem's goal holds; a state without actions that is none is a dead end.

The lower bound for a search is h-max: every outcome of an action counts as an action of its own, and facts stay true
once they are.  Then the least cost of the dearest fact of the goal, if each fact is had on its own, is at most the cost
of a run under the best luck, hence at most the expected cost.
"""

import re
from collections.abc import Iterator
from fractions import Fraction
from heapq import heappop, heappush
from io import StringIO
from itertools import chain, product
from math import inf
from os import PathLike
from pathlib import Path
from typing import Any

from prudent.errors import PrudentError, naming
from prudent.models.build import build
from prudent.models.ssp import SSP
from prudent.runtime.atomic_files import read_bytes
from prudent.runtime.optional import needed

__all__ = ["Problem", "model_of"]

Fact = tuple[int, tuple[int, ...]]


def model_of(raw: bytes, path: Path, *, problem: str | PathLike[str] | None = None) -> SSP:
    """Return the whole model of a domain, given as a file's bytes, and of a problem's file."""
    task = Problem(raw, path, problem)
    return build(task.initial, task.actions, name=task.name)


class Problem:
    """A problem that can be explored: where runs start, what actions do, and a lower bound on what is ahead."""

    def __init__(self, raw: bytes, path: Path, problem: str | PathLike[str] | None) -> None:
        needed("plado", "pddl")
        from plado.datalog.evaluator import DatalogEngine
        from plado.semantics.applicable_actions_generator import ApplicableActionsGenerator
        from plado.semantics.goal_checker import GoalChecker
        from plado.semantics.task import Task

        if problem is None:
            raise PrudentError(f"{path}: is the domain; give its problem, too: problem= (--problem)")
        domain, asked = _parsed(raw, path, Path(problem))
        self.name = Path(problem).stem
        if asked.metric is not None and asked.metric.direction == asked.metric.MAXIMIZE:
            raise PrudentError(f"{problem}: maximises its metric; costs are minimised: state them as total-cost")
        with naming(path):
            self.task = _read(lambda: Task(domain, asked))
            self._applicable = _read(lambda: ApplicableActionsGenerator(self.task))
            self._is_goal = _read(lambda: GoalChecker(self.task))
            self._derive = _read(lambda: DatalogEngine(self.task.create_datalog_program(), len(self.task.objects)))
        functions = [function.name for function in self.task.functions]
        self._total = functions.index("total-cost") if "total-cost" in functions else -1
        self._fixed = [dict(values) for values in self.task.initial_state.fluents]
        self._states: dict[str, Any] = {}
        self._path = path
        self._operators: list[tuple[float, tuple[Fact, ...], tuple[Fact, ...]]] | None = None
        self.initial = self._named(self.task.initial_state)

    def _named(self, state: Any) -> str:
        """Return a state's name: its facts, and the numbers that have changed."""
        task = self.task
        facts = [task.dump_fact(i, arguments) for i, atoms in enumerate(state.atoms) for arguments in atoms]
        for i, values in enumerate(state.fluents):
            if i != self._total and values != self._fixed[i]:
                called = task.functions[i].name
                facts += [f"(= ({' '.join([called, *(task.objects[o] for o in a)])}) {v})" for a, v in values.items()]
        name = " ".join(sorted(facts)) or "(no facts)"
        self._states.setdefault(name, state)
        return name

    def actions(self, name: str) -> dict[str, list[tuple[float, str, float]]]:
        """Return the actions of a state, as :func:`prudent.build` takes them."""
        state, options = self._states[name], dict[str, list[tuple[float, str, float]]]()
        with naming(self._path):
            if _read(lambda: self._is_goal(state)):
                return {}
            for ground in sorted(_read(lambda: list(self._applicable(state)))):
                outcomes = []
                for chance, effects in _read(lambda g=ground: self._outcomes(state, *g)):
                    after, paid = self._after(state, effects)
                    outcomes.append((float(chance), self._named(after), paid))
                options[self.task.dump_action(*ground)] = outcomes
        return options or {"wait": [(1.0, name, 0.0)]}  # a dead end

    def _outcomes(self, state: Any, number: int, ground: tuple[int, ...]) -> list[tuple[Fraction, list[Any]]]:
        """Return what an action may bring about: sets of effects, with their probabilities."""
        facts, objects, found = self._facts(state), range(len(self.task.objects)), [(Fraction(1), list[Any]())]
        for effect in self.task.actions[number].effect.effects:
            for some in product(objects, repeat=len(effect.parameters)):
                options = []
                for chance, outcome in effect.outcomes:
                    effects = []
                    for each in outcome:
                        for more in product(objects, repeat=len(each.parameters)):
                            place = (*ground, *some, *more)
                            if each.condition.evaluate(place, facts):
                                effects.append(each.effect.instantiate(place, state))
                    options.append((chance.evaluate((*ground, *some), state.fluents), effects))
                rest = 1 - sum(chance for chance, _ in options)
                if rest < 0:
                    raise PrudentError(f"{self.task.dump_action(number, ground)} has probabilities above 1 in all")
                if any(effects for _, effects in options):
                    options.append((rest, []))
                    found = [(p * q, [*a, *b]) for p, a in found for q, b in options if q > 0]
        return found

    def _facts(self, state: Any) -> Any:
        """Return a state with the facts that never change, and with those that follow from others."""
        atoms, fluents = self.task.prepare_for_query(state.atoms, state.fluents)
        whole = state.duplicate()
        whole.atoms = self._derive(atoms, fluents) if self.task.num_derived_predicates else atoms
        return whole

    def _after(self, state: Any, effects: list[Any]) -> tuple[Any, float]:
        """Return the state after effects, and what they cost; it begins to count from 0 again."""
        after, numbers = state.duplicate(), [each for each in effects if hasattr(each, "fluent")]
        for each in sorted((each for each in effects if not hasattr(each, "fluent")), key=_adds):
            each.apply(after)
        for each in numbers:  # several increases of one number add up
            old = state.fluents[each.fluent.function_id].get(each.fluent.args, 0)
            now = after.fluents[each.fluent.function_id]
            now[each.fluent.args] = now.get(each.fluent.args, 0) + each.expr.value - old
        if self._total < 0:
            return after, 1.0
        paid = after.fluents[self._total].get((), 0) - self._fixed[self._total].get((), 0)
        after.fluents[self._total] = dict(self._fixed[self._total])
        if paid < 0:
            raise PrudentError(f"an action lowers total-cost, by {float(-paid):g}; costs of actions are at least 0")
        return after, float(paid)

    def heuristic(self, name: str) -> float:
        """Return a lower bound on the least expected cost from a state; infinite if no goal can be reached."""
        if self._operators is None:
            self._operators = list(self._grounded())
            self._using: dict[Fact, list[int]] = {}
            for number, (_, needs, _) in enumerate(self._operators):
                for fact in needs:
                    self._using.setdefault(fact, []).append(number)
        if self.task.num_derived_predicates:
            return 0.0  # these are not relaxed
        state = self._states[name]
        least = {fact: 0.0 for fact in self._true(state.atoms)}
        queue: list[tuple[float, Fact]] = [(0.0, fact) for fact in least]
        missing = [len(needs) for _, needs, _ in self._operators]

        def add(price: float, adds: tuple[Fact, ...]) -> None:
            for fact in adds:
                if price < least.get(fact, inf):
                    least[fact] = price
                    heappush(queue, (price, fact))

        for cost, needs, adds in self._operators:
            if not needs:
                add(cost, adds)
        done = set[Fact]()
        while queue:
            price, fact = heappop(queue)
            if fact in done:
                continue
            done.add(fact)
            for number in self._using.get(fact, ()):
                missing[number] -= 1
                if missing[number] == 0:
                    cost, _, adds = self._operators[number]
                    add(price + cost, adds)
        goal = (atom for atom in self.task.goal.condition.atoms if not atom.variables)
        return max((least.get((atom.predicate, atom.args), inf) for atom in goal), default=0.0)

    def _true(self, atoms: Any) -> Iterator[Fact]:
        """Yield the facts of a state, with those that never change."""
        first = len(self.task.predicates) - self.task.num_static_predicates
        for i, arguments in chain(enumerate(atoms), enumerate(self.task.static_facts, first)):
            yield from ((i, each) for each in arguments)

    def _grounded(self) -> Iterator[tuple[float, tuple[Fact, ...], tuple[Fact, ...]]]:
        """Yield each outcome of each ground action as an operator: its cost, the facts it needs, those it adds."""
        from plado.semantics.grounder import Grounder
        from plado.semantics.task import AddEffect

        with naming(self._path):
            instances = _read(lambda: Grounder(self.task).get_ground_actions())
        for number, ground in instances:
            action = self.task.actions[number]
            needs = tuple({(a.predicate, a.instantiate(ground).args) for a in action.precondition.atoms})
            cost = self._least_cost(action)
            for effect in action.effect.effects:
                for _, outcome in effect.outcomes:
                    for each in outcome:
                        if isinstance(each.effect, AddEffect):
                            yield from self._operator(cost, needs, each, ground)

    def _operator(
        self, cost: float, needs: tuple[Fact, ...], each: Any, ground: tuple[int, ...]
    ) -> Iterator[tuple[float, tuple[Fact, ...], tuple[Fact, ...]]]:
        """Yield an effect that adds a fact; one for all objects adds it whatever else holds."""
        atom = each.effect.atom
        if not each.parameters and all(variable < len(ground) for variable, _ in atom.variables):
            also = tuple((a.predicate, a.instantiate(ground).args) for a in each.condition.atoms)
            yield cost, tuple({*needs, *also}), ((atom.predicate, atom.instantiate(ground).args),)
            return
        for objects in product(range(len(self.task.objects)), repeat=len(each.parameters)):
            yield cost, needs, ((atom.predicate, atom.instantiate((*ground, *objects)).args),)

    def _least_cost(self, action: Any) -> float:
        """Return a lower bound on what an action costs: 0 where that depends on anything."""
        if self._total < 0:
            return 1.0
        return sum(self._least_of(effect) for effect in action.effect.effects if not effect.parameters)

    def _least_of(self, effect: Any) -> float:
        """Return the least that the outcomes of one effect cost, as far as that is a number in any state."""
        prices, rest = [], Fraction(1)
        for chance, outcome in effect.outcomes:
            prices.append(0.0)
            rest -= getattr(chance, "value", 0)
            for each in outcome:
                paid = hasattr(each.effect, "fluent") and each.effect.fluent.function_id == self._total
                if paid and not each.parameters and not any(vars(each.condition).values()):
                    sign = {"Addition": 1, "Subtraction": -1}.get(type(each.effect.expr).__name__, 0)
                    prices[-1] += sign * float(getattr(getattr(each.effect.expr, "rhs", None), "value", 0))
        return min(prices, default=0.0) if rest <= 0 else 0.0


def _parsed(raw: bytes, path: Path, problem: Path) -> tuple[Any, Any]:
    """Return a domain and a problem as plado reads them."""
    from plado.parser import normalize_conditions, normalize_effects
    from plado.parser.parser import LookaheadStreamer, parse_domain, parse_problem
    from plado.parser.sanity_checks import make_checks
    from plado.parser.tokenizer import tokenize

    def text(content: bytes) -> str:
        try:
            return content.decode()
        except UnicodeDecodeError:
            raise PrudentError("is not a text") from None

    with naming(path):
        domain = _read(lambda: parse_domain(LookaheadStreamer(tokenize(text(raw)))))
    with naming(problem):
        asked = _read(lambda: parse_problem(LookaheadStreamer(tokenize(text(read_bytes(problem))))))
    said = StringIO()
    with naming(f"{path} and {problem}"):
        _read(lambda: make_checks(domain, asked, said))
        if problems := said.getvalue().splitlines():
            raise PrudentError(f"{problems[0].removeprefix('[!] ')}; define it, or correct its name")
        _read(lambda: normalize_conditions(domain, asked))
        _read(lambda: normalize_effects(domain))
    return domain, asked


def _adds(effect: Any) -> bool:
    """Return whether an effect makes a fact true: in PDDL that comes after making facts false."""
    return type(effect).__name__ == "AddEffect"


def _read(work: Any) -> Any:
    """Return what plado makes of a file; whatever it cannot read is the file's."""
    try:
        return work()
    except (PrudentError, KeyboardInterrupt, MemoryError):
        raise
    except RecursionError:
        raise PrudentError("is nested too deeply to be read") from None
    except Exception as error:
        what = re.sub(r"<Token .*'(.*)' @(\d+):(\d+)>", r"'\1' in line \2, column \3", str(error))
        raise PrudentError(f"plado does not read it: {what or type(error).__name__}") from None
