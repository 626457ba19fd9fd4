"""What a property asks of a model that Storm reads: which goals, which costs, whether to minimise or maximise."""

import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from prudent.errors import PrudentError, printable
from prudent.io.properties import COST, GOAL, referred
from prudent.io.storm.constants import WORD, value_of
from prudent.io.storm.model import OVERLAP, TotalReward, listening
from prudent.models.ssp import SHOWN

OUTSIDE = "out_of_bounds"
"""Storm's label for the state where runs go if a variable leaves its bounds; it exists only if one does."""

STORMS_OWN = ("init", "deadlock", OUTSIDE, OVERLAP)
"""Labels that Storm makes."""

FILTER = re.compile(r"Obtain (?:the )?(.*?) of the '(.*)'-states with values described by ", re.DOTALL)
"""How Storm writes a property's filter: a function of the values of some states."""

MEAN = ("values", "average")
ONE_VALUE = (*MEAN, "minumum", "minimum", "maximum", "sum")
"""Filters that are the same for one initial state, the first two also for a drawn one; Storm misspells one."""

COUNTED = re.compile(r"F \[([a-z, ]*)\]")
"""How Storm writes which rewards a property of JANI counts, if not all; [] if the file does not state it."""

BUDGET = re.compile(r'P(?:max)?=\? \[true U(?:rew\{"[^"]*"\})?<=(\S+) ')
"""How Storm writes the question for the maximal probability of a goal within a budget."""

UNNAMED = re.compile(r'(?<![\w"])R(?=\s*(?:min|max)?\s*=\s*\?)')
"""The operator of a property that names no reward structure."""


@dataclass(frozen=True)
class Names:
    """The names in a model that properties can use."""

    labels: Sequence[str]
    rewards: Sequence[str]  # "" is one without a name
    variable: str = ""  # a whole number, for a condition where there are no labels
    constants: Collection[str] = ()
    only_reward: str = ""  # the one that a property may leave unnamed though Storm would not find it
    transient: Sequence[str] = ()  # variables of JANI that are no part of its states: rewards and labels

    def offer(self, asked: str = "") -> str:
        """Return the known names, and properties in these names that are close to what was asked."""
        words = re.findall(r'"([^"]*)"', asked)
        goal = f'"{_nearest([*words, GOAL], self.labels)}"'
        if not self.labels and self.variable:
            goal = f"{self.variable}=1"
        steps, reward = f"Tmin=? [F {goal}]", _nearest([*words, COST], self.rewards)
        named = f'{{"{reward}"}}' if reward else ""
        total = f"property='R{named}min=? [F {goal}]' (--property) for the total cost until a goal, or {steps}"
        given = total if self.rewards else f"property='{steps}' (--property)"
        return (
            f"labels: {_listed(self.labels)}; rewards: {_listed(self.rewards)}; give {given} for the number of steps; "
            "any label or condition on states may follow F"
        )


def _nearest(words: Sequence[str], known: Sequence[str]) -> str:
    """Return the known name that is near to a word, or the first."""
    near = [name for word in words for name in get_close_matches(word, known, n=1)]
    return printable([*near, *known, words[-1]][0])


def _listed(names: Sequence[str]) -> str:
    shown = ["one without a name" if name == "" else f'"{printable(name)}"' for name in names[:SHOWN]]
    return ", ".join([*shown, *([f"{len(names) - SHOWN} more"] if len(names) > SHOWN else [])]) or "none"


def means_are_harmless(wanted: TotalReward, names: Names) -> bool:
    """Return whether Storm may take the mean over an action's outcomes: if these do not count, or all cost the same.

    Storm takes the mean for every reward in JANI that is an expression.
    """
    if wanted.reward is None or not wanted.of_actions:
        return True
    if wanted.reward in names.rewards:
        return False
    if set(WORD.findall(wanted.reward)) <= set(names.constants):
        return True
    raise PrudentError(
        f"property {printable(wanted.text)}: its reward is an expression, and Storm would take the mean "
        "over the outcomes of an action; assign the expression to a transient variable, and name that variable"
    )


def chosen(
    property: Any, names: Names, constants: Any = None, properties: Sequence[Any] = (), described: Any = None
) -> tuple[Any, Mapping[str, Any]]:
    """Return the property that is asked for, and the constants that are left for the model.

    It is one of the model file's own, by its name or because it fits, or a text, which may be in a file of properties.
    """
    given = {} if constants is None else constants
    if not isinstance(given, Mapping):
        raise PrudentError(f"constants is {constants!r}; it must be {{name: value}}")
    if (found := referred(property)) is not None:
        file, name = found
        own = {each: kind for each, kind in file.kind.items() if each in given}
        value = {each: str(value_of(kind, each, given[each])).lower() for each, kind in own.items()}
        given = {each: given[each] for each in given if each not in own or each in names.constants}
        property = file.chosen(name, value, lambda text: _parsed(text, names, described))
    fitting = [each for each in properties if each.get_name() == property]
    if property is None:
        fitting = _fitting(properties, names)
        property = _usual(names, fitting) if len(fitting) != 1 else None
    return fitting[0] if len(fitting) == 1 else _parsed(property, names, described), given


def _parsed(text: Any, names: Names, described: Any) -> Any:
    """Return the one property in a text, in the language of PRISM's properties; refuse one that plans are not for."""
    if not isinstance(text, str):
        raise PrudentError(f"property is {text!r}; it must be text; {names.offer()}")
    at, said = f"property {printable(text)}", text
    if names.only_reward:
        said = UNNAMED.sub(f'R{{"{names.only_reward}"}}', text, count=1)
    try:
        with listening(at) as stormpy:
            found = stormpy.parse_properties(said, described)
    except PrudentError as error:
        raise PrudentError(f"{str(error).rstrip('.')}; {names.offer(text)}") from None
    if len(found) != 1 or not {each.name for each in found[0].get_undefined_constants()} <= set(names.constants):
        what = f"holds {len(found)} properties" if len(found) != 1 else "leaves a constant undefined"
        raise PrudentError(f"{at} {what}; {names.offer(text)}")
    named_reward(found[0], names)
    return found[0]


def named_reward(asked: Any, names: Names) -> TotalReward:
    """Return what a property asks for; refuse unknown names and list the known ones, which Storm does not."""
    wanted, text = reward_of(asked, names), str(asked.get_raw_formula())
    for brace, name in re.findall(r'(\{?)"([^"]*)"', text):
        what, known = ("reward", names.rewards) if brace else ("label", (*names.labels, *STORMS_OWN))
        if name not in known:
            raise PrudentError(
                f'property {printable(text)}: there is no {what} "{printable(name)}"; {names.offer(text)}'
            )
    return wanted


def reward_of(asked: Any, names: Names) -> TotalReward:
    """Return what a property asks for; refuse any but a total cost, or reward, until a goal."""
    formula = asked.get_raw_formula()
    path: Any = getattr(formula, "subformula", None)
    kind = type(formula).__name__
    at, offer = f"property {printable(formula)}", names.offer(str(formula))
    if found := BUDGET.match(str(formula)):
        budget = found[1] if found[1].isdecimal() else "BUDGET"
        raise PrudentError(
            f"{at} asks for the probability of staying within a budget; read the model with a property for its costs, "
            f"then use prudent.chances for every budget, or objective=prudent.Exceedance({budget}) "
            f"(--objective exceed:{budget}) to plan for this one; {offer}"
        )
    if kind not in ("RewardOperatorFormula", "TimeOperatorFormula") or type(path).__name__ != "EventuallyFormula":
        raise PrudentError(f"{at} does not ask for a total cost until a goal; {offer}")
    filtered = FILTER.match(str(asked).removeprefix(f"({asked.get_name()}): "))
    if filtered and not (filtered[1] in ONE_VALUE and filtered[2] == '"init"'):
        what = f"{filtered[1]} of {printable(filtered[2])}"
        raise PrudentError(f"{at} has a filter, {what}; plans are for the initial state: leave out the filter; {offer}")
    if formula.has_bound:
        raise PrudentError(f"{at} asks whether a bound holds; ask for the value, with =? instead of the bound; {offer}")
    found = COUNTED.match(str(path))
    allowed = {"steps"} if kind == "TimeOperatorFormula" else {"steps", "exit"}
    counted = set(re.findall(r"\w+", found[1])) if found else allowed
    if not counted:
        wanted = ", ".join(f'"{each}"' for each in sorted(allowed, reverse=True))
        raise PrudentError(
            f"{at}, called {printable(asked.get_name())}, accumulates nothing on the way to its goal; add "
            f'"accumulate": [{wanted}] to it'
        )
    if not counted <= allowed:
        wanted = " and ".join(sorted(allowed))
        raise PrudentError(f"{at} accumulates over {' and '.join(sorted(counted))}; it must accumulate over {wanted}")
    reward = None
    if kind == "RewardOperatorFormula":
        if formula.has_reward_model_name():
            reward = formula.reward_name
        elif len(names.rewards) == 1 or "" in names.rewards:
            reward = "" if "" in names.rewards else names.rewards[0]
        else:
            raise PrudentError(f'{at} names no reward structure; write R{{"name"}}; {offer}')
    return TotalReward(
        path.subformula,
        reward,
        of_states="exit" in counted,
        of_actions="steps" in counted,
        most=formula.has_optimality_type and formula.optimality_type.name == "MAXIMIZE",
        over=filtered[1].replace("minumum", "minimum") if filtered and filtered[1] not in MEAN else "",
        text=str(formula),
    )


def _fitting(properties: Sequence[Any], names: Names) -> list[Any]:
    """Return the properties that can be planned for: those that minimise, if there are any, else those that maximise.

    If there are none, refuse one that only lacks what to accumulate.
    """
    least, most = list[Any](), list[Any]()
    for each in properties:
        with suppress(PrudentError):
            (most if reward_of(each, names).most else least).append(each)
    fitting = least or most
    for each in [] if fitting else properties:
        if "min=? [F []" in str(each.get_raw_formula()):
            reward_of(each, names)
    return fitting


def _usual(names: Names, fitting: Sequence[Any]) -> str:
    """Return the property to take where none is given."""
    rewards = names.rewards
    if GOAL in names.labels and (COST in rewards or "" in rewards or len(rewards) == 1):
        return f'R{{"{COST}"}}min=? [F "{GOAL}"]' if COST in rewards else f'Rmin=? [F "{GOAL}"]'
    if fitting:
        shown = ", ".join(f"{printable(each.get_name())} ({printable(each.get_raw_formula())})" for each in fitting)
        found = f"several of its properties fit, so one must be named: {shown}"
    elif GOAL in names.labels:
        found = f'no reward structure is called "{COST}"'
    else:
        found = f'there is no label "{GOAL}"'
    raise PrudentError(f"{found}; choose goals and costs with property= (--property); {names.offer()}")


def names_of(model: Any) -> Names:
    """Return the names in a program, a JANI model or a built model."""
    constants = {each.name for each in getattr(model, "constants", ())}
    if hasattr(model, "global_variables"):
        kind = {each.name: each.expression_variable for each in model.global_variables}
        transient = [each.name for each in model.global_variables if each.is_transient]
        labels = [name for name in transient if kind[name].has_boolean_type()]
        rewards = [name for name in transient if name not in labels]
        lasting = [name for name in kind if kind[name].has_integer_type() and name not in transient]
        only = rewards[0] if len(rewards) == 1 else ""
        return Names(labels, rewards, (lasting or [""])[0], constants, only, transient)
    if hasattr(model, "labeling"):
        labels = sorted(model.labeling.get_labels())
        own = [each for each in labels if each not in STORMS_OWN] or labels
        return Names(own, sorted(model.reward_models))
    variables = [each.name for module in model.modules for each in module.integer_variables]
    variables += [each.name for each in model.global_integer_variables]
    labels, rewards = ([each.name for each in found] for found in (model.labels, model.reward_models))
    return Names(labels, rewards, (variables or [""])[0], constants)
