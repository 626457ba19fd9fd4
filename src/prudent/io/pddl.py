"""Planning problems in PPDDL, read through plado (extra ``pddl``): a domain and a problem make one model.

A state is the list of its facts.  Costs are what actions add to ``total-cost``, where the domain has it, or 1 for each
action.  Runs end in states where the problem's goal holds; any other state without actions is a dead end.  Errors of
plado become PrudentError.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from fractions import Fraction
from functools import cached_property, partial
from heapq import heappop, heappush
from io import StringIO
from itertools import chain, product
from math import inf
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn

from prudent.errors import PrudentError, naming, needed
from prudent.io.untrusted import utf8
from prudent.models.build import build
from prudent.models.ssp import SSP
from prudent.runtime.atomic_files import read_bytes
from prudent.runtime.progress import announce_if_long

NAMED = re.compile(r"\([^()]+\)|'[^']+'|\?[\w-]+")
"""What an error of plado may name: an atom, a name in quotes, a variable."""

Fact = tuple[int, tuple[int, ...]]
Operator = tuple[float, set[Fact], Fact]
"""An outcome's least cost, the facts it needs, and one that it adds."""

ALWAYS: Fact = (-1, ())
"""A fact that holds in every state, which every operator needs."""


def model_of(raw: bytes, path: Path, *, problem: str | PathLike[str] | None = None) -> SSP:
    """Return the whole model of a domain, given as a file's bytes, and of a problem's file."""
    task = Problem(raw, path, problem)
    return build(task.initial, task.actions, name=task.name)


class Problem:
    """A problem that can be explored: where runs start, what actions do, and a lower bound on the remaining cost."""

    def __init__(self, raw: bytes, path: Path, problem: str | PathLike[str] | None) -> None:
        needed("plado", "pddl")
        from plado.datalog.evaluator import DatalogEngine
        from plado.semantics.applicable_actions_generator import ApplicableActionsGenerator
        from plado.semantics.goal_checker import GoalChecker
        from plado.semantics.task import Task

        if problem is None:
            raise PrudentError(f"{path}: is a domain; give the file of its problem, too, with problem= (--problem)")
        domain, asked = _parsed(raw, path, Path(problem))
        self.name = Path(problem).stem
        with naming(path):
            self.task = _read(lambda: Task(domain, asked), [(path, raw.decode())])
            self._applicable = _read(lambda: ApplicableActionsGenerator(self.task))
            self._is_goal = _read(lambda: GoalChecker(self.task))
            self._derive = _read(lambda: DatalogEngine(self.task.create_datalog_program(), len(self.task.objects)))
        functions = [function.name for function in self.task.functions]
        self._total = functions.index("total-cost") if "total-cost" in functions else -1
        self._fixed = [dict(values) for values in self.task.initial_state.fluents]
        self._states: dict[str, Any] = {}
        self._path, self._text = path, raw.decode()
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
            for number, ground in sorted(_read(lambda: list(self._applicable(state)))):
                outcomes = []
                for chance, effects in _read(partial(self._outcomes, state, number, ground)):
                    after, paid = self._after(state, effects)
                    if paid < 0:
                        self._refuse(
                            number, ground, f"lowers total-cost by {-paid:g}; the cost of an action must be at least 0"
                        )
                    outcomes.append((float(chance), self._named(after), paid))
                options[self.task.dump_action(number, ground)] = outcomes
        return options or {"wait": [(1.0, name, 0.0)]}  # a dead end

    def _outcomes(self, state: Any, number: int, ground: tuple[int, ...]) -> list[tuple[Fraction, list[Any]]]:
        """Return the possible sets of effects of an action, with their probabilities."""
        atoms, fluents = self.task.prepare_for_query(state.atoms, state.fluents)
        facts = state.duplicate()  # with those that never change, and those that follow from others
        facts.atoms = self._derive(atoms, fluents) if self.task.num_derived_predicates else atoms
        objects, found = range(len(self.task.objects)), [(Fraction(1), list[Any]())]
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
                if (least := min((chance for chance, _ in options), default=0)) < 0:
                    self._refuse(number, ground, f"has the probability {float(least):g}; it must lie between 0 and 1")
                rest = 1 - sum(chance for chance, _ in options)
                if rest < 0:
                    self._refuse(
                        number, ground, "has probabilities that sum to more than 1; they must sum to at most 1"
                    )
                if any(effects for _, effects in options):
                    options.append((rest, []))
                    found = [(p * q, [*a, *b]) for p, a in found for q, b in options if q > 0]
        return found

    def _after(self, state: Any, effects: list[Any]) -> tuple[Any, float]:
        """Return the state after effects, and their cost; in that state total-cost is as at the start again."""
        after, numbers = state.duplicate(), [each for each in effects if hasattr(each, "fluent")]
        facts = (each for each in effects if not hasattr(each, "fluent"))
        for each in sorted(facts, key=lambda each: type(each).__name__ == "AddEffect"):  # what becomes true comes last
            each.apply(after)
        for each in numbers:  # several increases of one number add up
            old = state.fluents[each.fluent.function_id].get(each.fluent.args, 0)
            now = after.fluents[each.fluent.function_id]
            now[each.fluent.args] = now.get(each.fluent.args, 0) + each.expr.value - old
        if self._total < 0:
            return after, 1.0
        paid = after.fluents[self._total].get((), 0) - self._fixed[self._total].get((), 0)
        after.fluents[self._total] = dict(self._fixed[self._total])
        return after, float(paid)

    def heuristic(self, name: str) -> float:
        """Return a lower bound on the least expected cost from a state, h-max; infinite if no goal can be reached.

        Every outcome of an action counts as an action of its own, and facts stay true once they are.  Each fact of the
        goal then has a least cost at which it can be made true on its own.  The largest of these costs is at most the
        cost of the cheapest run, hence at most the expected cost.
        """
        if self.task.num_derived_predicates:
            return 0.0  # these are not relaxed
        operators, using = self._relaxed
        state, first = self._states[name], len(self.task.predicates) - self.task.num_static_predicates
        true = chain(enumerate(state.atoms), enumerate(self.task.static_facts, first))
        least: dict[Fact, float] = {ALWAYS: 0.0, **{(i, each): 0.0 for i, facts in true for each in facts}}
        queue = [(0.0, fact) for fact in least]
        missing = [len(needs) for _, needs, _ in operators]
        done = set[Fact]()
        while queue:
            price, fact = heappop(queue)
            if fact in done:
                continue
            done.add(fact)
            for number in using.get(fact, ()):
                missing[number] -= 1
                if missing[number] == 0:
                    cost, _, added = operators[number]
                    if price + cost < least.get(added, inf):
                        least[added] = price + cost
                        heappush(queue, (price + cost, added))
        goal = (atom for atom in self.task.goal.condition.atoms if not atom.variables)
        return max((least.get((atom.predicate, atom.args), inf) for atom in goal), default=0.0)

    @cached_property
    def _relaxed(self) -> tuple[list[Operator], defaultdict[Fact, list[int]]]:
        """The operators for the lower bound, and which of them need a fact."""
        with naming(self._path), announce_if_long(f"grounding the actions of {self.name} ..."):
            operators, using = list(self._grounded()), defaultdict[Fact, list[int]](list)
        for number, (_, needs, _) in enumerate(operators):
            for fact in needs:
                using[fact].append(number)
        return operators, using

    def _grounded(self) -> Iterator[Operator]:
        """Yield an operator for each fact that an outcome of a ground action adds."""
        from plado.semantics.grounder import Grounder
        from plado.semantics.task import AddEffect

        for number, ground in _read(lambda: Grounder(self.task).get_ground_actions()):
            action = self.task.actions[number]
            needs = {ALWAYS, *((a.predicate, a.instantiate(ground).args) for a in action.precondition.atoms)}
            sure = (effect for effect in action.effect.effects if not effect.parameters)
            cost = 1.0 if self._total < 0 else sum(self._least_of(effect) for effect in sure)
            for effect in action.effect.effects:
                for _, outcome in effect.outcomes:
                    for each in outcome:
                        if isinstance(each.effect, AddEffect):
                            yield from self._operator(cost, needs, each, ground)

    def _operator(self, cost: float, needs: set[Fact], each: Any, ground: tuple[int, ...]) -> Iterator[Operator]:
        """Yield an effect that adds a fact; an effect on all objects adds it whatever else holds."""
        atom = each.effect.atom
        if not each.parameters and all(variable < len(ground) for variable, _ in atom.variables):
            also = {(a.predicate, a.instantiate(ground).args) for a in each.condition.atoms}
            yield cost, needs | also, (atom.predicate, atom.instantiate(ground).args)
            return
        for objects in product(range(len(self.task.objects)), repeat=len(each.parameters)):
            yield cost, needs, (atom.predicate, atom.instantiate((*ground, *objects)).args)

    def _least_of(self, effect: Any) -> float:
        """Return the least that the outcomes of one effect cost: 0 where that depends on the state."""
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

    def _refuse(self, number: int, ground: tuple[int, ...], what: str) -> NoReturn:
        """Refuse an action, with the line of the domain where it stands."""
        line = _line_of_action(self._text, self.task.actions[number].name)
        raise PrudentError(f"line {line}: {self.task.dump_action(number, ground)} {what}")


def _parsed(domain: bytes, path: Path, problem: Path) -> tuple[Any, Any]:
    """Return a domain, given as its file's bytes, and a problem as plado reads them."""
    from plado.parser import normalize_conditions, normalize_effects
    from plado.parser.parser import LookaheadStreamer, parse_domain, parse_problem
    from plado.parser.sanity_checks import make_checks
    from plado.parser.tokenizer import tokenize
    from plado.pddl import Truth

    with naming(path):
        text = utf8(domain)
        found = _read(lambda: parse_domain(LookaheadStreamer(tokenize(text))))
        for action in found.actions:
            if _nested(action.effect):
                raise PrudentError(
                    f"line {_line_of_action(text, action.name)}: action {action.name} has a probabilistic effect "
                    "within another; merge them into one, and multiply their probabilities"
                )
    content = read_bytes(problem)
    with naming(problem):
        more = utf8(content)
        asked = _read(lambda: parse_problem(LookaheadStreamer(tokenize(more))))
        if asked.goal_reward is not None:
            raise PrudentError(
                f"line {_line_of(more, ':goal-reward')}: :goal-reward is not a cost, and every run ends in a goal; "
                "leave it out, and let actions add their costs to (total-cost)"
            )
    for action in found.actions:
        if action.precondition is None:  # it always applies; plado expects that to be stated
            action.precondition = Truth()
        action.effect = _numbers_apart(action.effect)

    def check() -> None:
        said = StringIO()
        with redirect_stdout(said), redirect_stderr(said):  # some errors go there, whatever the file given
            make_checks(found, asked, said)
        if said.getvalue():
            raise ValueError(said.getvalue().splitlines()[0].removeprefix("[!] "))
        normalize_conditions(found, asked)
        normalize_effects(found)

    with naming(f"{path} and {problem}"):
        _read(check, [(path, text), (problem, more)])
    with naming(problem):
        if asked.domain_name != found.name:
            raise PrudentError(f"belongs to the domain {asked.domain_name!r}; the domain given is {found.name!r}")
        if asked.metric is not None and asked.metric.direction == asked.metric.MAXIMIZE:
            raise PrudentError("maximises its metric; it must minimise (total-cost)")
        if asked.metric is not None and getattr(asked.metric.expression, "name", None) != "total-cost":
            minimised = asked.metric.expression.dump(0)
            raise PrudentError(
                f"minimises {minimised}; it must minimise (total-cost), to which actions add their costs"
            )
    return found, asked


def _read(work: Callable[[], Any], files: Sequence[tuple[Path, str]] = ()) -> Any:
    """Return plado's result; raise PrudentError for whatever it cannot read.

    Given the texts of files, an error that names something gets the line where it stands.
    """
    try:
        return work()
    except (PrudentError, KeyboardInterrupt, MemoryError):
        raise
    except RecursionError:
        raise PrudentError("is nested too deeply to be read") from None
    except Exception as error:
        what = re.sub(r"<Token .*'(.*)' @(\d+):(\d+)>", r"'\1' in line \2, column \3", str(error))
        what = re.sub(r"^'@type-(.*)@'$", r"Type '\1' is not defined", what).rstrip(".")
        remedy = "define it, or fix the name" if "not defined" in what else "correct it there"
        for name in NAMED.findall(what):
            for path, text in files:
                if line := _line_of(text, rf"(?<![\w-]){re.escape(name.strip(chr(39)))}(?![\w-])"):
                    raise PrudentError(f"{what}, in line {line} of {path.name}; {remedy}") from None
        what = what or type(error).__name__
        raise PrudentError(f"plado cannot read it: {what}; fix that part, or leave it out") from None


def _line_of(text: str, pattern: str) -> int:
    """Return the line in which a pattern begins, counted from 1; 0 if there is none."""
    found = re.search(pattern, text, re.IGNORECASE)
    return 0 if found is None else text.count("\n", 0, found.start()) + 1


def _line_of_action(text: str, name: str) -> int:
    """Return the line of a domain in which an action begins."""
    return _line_of(text, rf"\(\s*:action\s+{re.escape(name)}(?![\w-])")


def _nested(effect: Any, inside: bool = False) -> bool:
    """Return whether an effect has a probabilistic one within another, which plado cannot take apart."""
    outcomes = getattr(effect, "outcomes", ())
    parts = [each.effect for each in outcomes] or getattr(effect, "effects", None) or [getattr(effect, "effect", None)]
    within = inside or bool(outcomes)
    return (inside and bool(outcomes)) or any(_nested(part, within) for part in parts if part is not None)


def _numbers_apart(effect: Any) -> Any:
    """Return an effect in which each unconditional change of a number is an effect of probability 1.

    Plado copies unconditional effects into every probabilistic effect beside them.  Facts may be set twice;
    numbers may not.
    """
    from plado.pddl import ActionEffectTransformer, NumericConstant, NumericEffect
    from plado.pddl import ProbabilisticEffect as Probabilistic
    from plado.pddl import ProbabilisticOutcome as Outcome

    class Apart(ActionEffectTransformer):  # type: ignore[misc]
        def visit_generic(self, effect: Any) -> Any:
            sure = isinstance(effect, NumericEffect)
            return Probabilistic([Outcome(NumericConstant("1"), effect)]) if sure else effect

        def visit_probabilistic_effect(self, effect: Any) -> Any:
            return effect

    return effect.simplify().traverse(Apart())
