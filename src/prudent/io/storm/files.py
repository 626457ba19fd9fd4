"""Models in PRISM's language and in JANI, built by Storm, and models that Storm holds already.

A property says what is meant: ``R{"cost"}min=? [F "goal"]`` makes the states that satisfy ``"goal"`` goals and the
reward structure ``"cost"`` costs; ``Tmin=? [F "goal"]`` counts steps.  As in Storm, a state's reward is paid on leaving
it, and nothing is paid from a goal on.  Where Storm would take the mean of what the outcomes of an action cost, the
model is refused: the mean would be right, the risk would not.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from prudent.errors import PrudentError, printable
from prudent.io.properties import COST, GOAL, Names
from prudent.io.storm.constants import define
from prudent.io.storm.model import OVERLAP, SILENT, Question, convert, listening, refuse_unfit
from prudent.models.ssp import SSP
from prudent.runtime.atomic_files import check_plain, read_bytes

__all__ = ["from_storm", "read", "read_explicit"]

OUTSIDE = "out_of_bounds"
"""Storm's label for the state where runs go if a variable leaves its bounds; it exists only if one does."""

STORMS_OWN = ("init", "deadlock", OUTSIDE, OVERLAP)
"""Labels that Storm makes."""

HEAD, DIGITS = 2**16, 18
"""The bytes at the head of an explicit file that are searched for its sizes, and the most digits of a size."""

FILTER = re.compile(r"Obtain (?:the )?(.*?) of the '(.*)'-states with values described by ", re.DOTALL)
"""How Storm writes a property's filter: a function of the values of some states."""

ONE_VALUE = ("values", "minumum", "minimum", "maximum", "sum", "average")
"""Filters that are all the same for one state; one is misspelt, as in Storm."""

COUNTED = re.compile(r"F \[([a-z, ]*)\]")
"""How Storm writes which rewards a property of JANI counts, where these are not all; [] where the file does not say."""

BUDGET = re.compile(r'P(?:max)?=\? \[true U(?:rew\{"[^"]*"\})?<=(\S+) ')
"""How Storm writes the question for the greatest chance of a goal within a budget."""

SET, NAMED = re.compile(r"\b(\w++)\s*+'\s*+="), re.compile(r"\b(\w++)\s*+:")
"""The variable that an update sets, and what may be the declaration of one."""


def read(path: Path, *, property: str | None = None, constants: Mapping[str, Any] | None = None) -> SSP:
    """Read a model in PRISM's language or JANI."""
    place = str(path)
    check_plain(path)
    with listening(place) as stormpy:
        if path.name.lower().endswith(".jani"):
            described, properties = stormpy.parse_jani_model(path)
        else:
            described, properties = _program(stormpy, path), []
        described, properties = define(stormpy, described, properties, {} if constants is None else constants, place)
        names = _names(described)
        called = [each for each in properties if each.get_name() == property]
        own = _fitting(properties, names, place) if property is None else called
        if len(own) == 1:
            question = _question(asked := own[0], names, place)
        else:
            text = _usual(names, place, own) if property is None else property
            asked = _parsed(stormpy, text, names, place, described)
            question = _named_question(asked, names, place)
        options = stormpy.BuilderOptions([asked], stormpy.io.SymbolicModelDescription(described))
        options.set_build_state_valuations()
        options.set_build_choice_labels()
        options.set_add_out_of_bounds_state()  # else Storm lets variables leave their bounds
        options.set_add_overlapping_guards_label()
        options.set_scale_and_lift_transition_rewards(False)  # else it takes means over the outcomes of an action
        model = stormpy.build_model(described, options=options)
        if OUTSIDE in model.labeling.get_labels():
            options.set_add_out_of_bounds_state(False)
            options.set_exploration_checks()  # they name the place; exact, since they want sums of exactly 1
            stormpy.build_model[stormpy.Rational](described, options=options)
            raise PrudentError(f"{place}: a variable leaves its bounds; mend the update, or widen the bounds")
        return convert(model, question, place, path.name.split(".")[0], [each.name for each in _transient(described)])


def read_explicit(path: Path, *, property: str | None = None) -> SSP:
    """Read a model in Storm's explicit format, DRN."""
    place = str(path)
    _refuse_hollow(path)
    with listening(place) as stormpy:
        options = stormpy.io.DirectEncodingParserOptions()
        options.build_choice_labeling = True
        try:
            model = stormpy.build_model_from_drn(path, options=options)
        except RuntimeError as error:
            if "@nr_choices" not in str(error):
                raise
            model = stormpy.build_model_from_drn(path)  # older files lack the number of actions to name
        return _converted(stormpy, model, property, place, path.name.split(".")[0])


def from_storm(model: Any, property: Any = None, *, name: str = "model") -> SSP:
    """Return a sparse DTMC or MDP of stormpy as an :class:`~prudent.SSP`; needs the extra ``storm``.

    Parameters
    ----------
    model : sparse model of stormpy
        A DTMC or an MDP.  State valuations become names of states, choice labels become names of actions; exact
        numbers become the nearest floating-point ones.
    property : str or property of stormpy, optional
        ``R{"cost"}min=? [F "goal"]``: which states are goals, and which rewards (of states, actions and transitions)
        are costs.  Left out: the label ``"goal"``, and the reward structure ``"cost"`` or the only one.
    name : str
        What messages and reports call the model.

    Examples
    --------
    >>> import prudent, stormpy, stormpy.examples.files
    >>> die = stormpy.build_model(stormpy.parse_prism_program(stormpy.examples.files.prism_dtmc_die))
    >>> prudent.from_storm(die, 'R{"coin_flips"}min=? [F "done"]')
    <SSP model: 13 states, 7 actions, 14 outcomes>
    """
    with listening("model") as stormpy:
        return _converted(stormpy, model, property, "model", name)


def _program(stormpy: Any, path: Path) -> Any:
    """Return a program in PRISM's language; name an undeclared variable, which Storm names only in its log."""
    try:
        return stormpy.parse_prism_program(path)
    except RuntimeError as error:
        if str(error) != SILENT:
            raise
        text = re.sub("//.*", "", read_bytes(path).decode(errors="replace"))
        declared = set(NAMED.findall(text))
        for found in SET.finditer(text):
            if found[1] not in declared:
                line = text.count("\n", 0, found.start()) + 1
                remedy = "no variable has that name; declare it, or mend the name"
                raise PrudentError(f"{path}: line {line} sets {printable(found[1])}, and {remedy}") from None
        raise


def _refuse_hollow(path: Path) -> None:
    """Refuse an explicit file that declares more than its bytes can hold: Storm would allocate all of it."""
    head, size = read_bytes(path, HEAD), path.stat().st_size
    for what, number in re.findall(rb"@nr_(states|choices)\s+(\d+)", head):
        if len(number) > DIGITS or int(number) > size:
            shown = number[:DIGITS].decode()
            raise PrudentError(f"{path}: declares {shown} {what.decode()}, more than its {size} bytes can hold")


def _converted(stormpy: Any, model: Any, property: Any, place: str, name: str) -> SSP:
    refuse_unfit(model, place)
    names = _names(model)
    asked = _usual(names, place) if property is None else property
    if not hasattr(asked, "get_raw_formula"):
        asked = _parsed(stormpy, asked, names, place)
    return convert(model, _named_question(asked, names, place), place, name)


def _parsed(stormpy: Any, text: Any, names: Names, place: str, described: Any = None) -> Any:
    """Return the one property in a text, in the language of PRISM's properties."""
    if not isinstance(text, str):
        raise PrudentError(f"{place}: property is {text!r}; it must be text; {names.offer()}")
    at = f"{place}: property {printable(text)}"
    try:
        with listening(at):
            found = stormpy.parse_properties(text, described)
    except PrudentError as error:
        raise PrudentError(f"{str(error).rstrip('.')}; {names.offer(text)}") from None
    if len(found) != 1 or found[0].contains_undefined_constants():
        what = f"holds {len(found)} properties" if len(found) != 1 else "leaves a constant undefined"
        raise PrudentError(f"{at} {what}; {names.offer(text)}")
    return found[0]


def _named_question(asked: Any, names: Names, place: str) -> Question:
    """Return what a property asks for; refuse unknown names and list the known ones, as Storm would not."""
    question, text = _question(asked, names, place), str(asked.get_raw_formula())
    for brace, name in re.findall(r'(\{?)"([^"]*)"', text):
        what, known = ("reward", names.rewards) if brace else ("label", (*names.labels, *STORMS_OWN))
        if name not in known:
            at = f"{place}: property {printable(text)}"
            raise PrudentError(f'{at}: there is no {what} "{printable(name)}"; {names.offer(text)}')
    return question


def _question(asked: Any, names: Names, place: str) -> Question:
    """Return what a property asks for; refuse any but a least total cost."""
    formula = asked.get_raw_formula()
    path: Any = getattr(formula, "subformula", None)
    kind = type(formula).__name__
    at, offer = f"{place}: property {printable(str(formula))}", names.offer(str(formula))
    if found := BUDGET.match(str(formula)):
        budget = found[1] if found[1].isdecimal() else "BUDGET"
        raise PrudentError(
            f"{at} asks for the chance to stay within a budget: read the model with a property for its costs, then "
            f"prudent.chances answers for every budget, and objective=prudent.Exceedance({budget}) "
            f"(--objective exceed:{budget}) plans for this one; {offer}"
        )
    if kind not in ("RewardOperatorFormula", "TimeOperatorFormula") or type(path).__name__ != "EventuallyFormula":
        raise PrudentError(f"{at} cannot be planned for; {offer}")
    filtered = FILTER.match(str(asked).removeprefix(f"({asked.get_name()}): "))
    if filtered and not (filtered[1] in ONE_VALUE and filtered[2] == '"init"'):
        what = f"{filtered[1]} of {printable(filtered[2])}"
        raise PrudentError(f"{at} has a filter, {what}; plans are for the initial state: leave the filter out; {offer}")
    if formula.has_bound:
        raise PrudentError(f"{at} asks whether a bound holds; ask for the least value, with =? in its place; {offer}")
    if formula.has_optimality_type and formula.optimality_type.name != "MINIMIZE":
        raise PrudentError(f"{at} asks for the most; plans minimise: write min, of rewards that are costs; {offer}")
    found = COUNTED.match(str(path))
    allowed = {"steps"} if kind == "TimeOperatorFormula" else {"steps", "exit"}
    counted = set(re.findall(r"\w+", found[1])) if found else allowed
    if not counted:
        wanted = ", ".join(f'"{each}"' for each in sorted(allowed, reverse=True))
        raise PrudentError(
            f"{at}, called {printable(asked.get_name())}, accumulates nothing on the way to its goal; write "
            f'"accumulate": [{wanted}] into it'
        )
    if not counted <= allowed:
        wanted = " and ".join(sorted(allowed))
        raise PrudentError(f"{at} accumulates over {' and '.join(sorted(counted))}; it must over {wanted}")
    reward = None
    if kind == "RewardOperatorFormula":
        if formula.has_reward_model_name():
            reward = formula.reward_name
        elif len(names.rewards) == 1 or "" in names.rewards:
            reward = "" if "" in names.rewards else names.rewards[0]
        else:
            raise PrudentError(f'{at} names no reward structure, as R{{"name"}} does; {offer}')
    return Question(path.subformula, reward, "exit" in counted, "steps" in counted)


def _fitting(properties: Sequence[Any], names: Names, place: str) -> list[Any]:
    """Return the properties that can be planned for; if there are none, refuse one that only fails to accumulate."""
    fitting = []
    for each in properties:
        with suppress(PrudentError):
            _question(each, names, place)
            fitting.append(each)
    for each in [] if fitting else properties:
        if "min=? [F []" in str(each.get_raw_formula()):
            _question(each, names, place)
    return fitting


def _usual(names: Names, place: str, fitting: Sequence[Any] = ()) -> str:
    """Return the property to take where none is given."""
    rewards = names.rewards
    if GOAL in names.labels and (COST in rewards or "" in rewards or len(rewards) == 1):
        return f'R{{"{COST}"}}min=? [F "{GOAL}"]' if COST in rewards else f'Rmin=? [F "{GOAL}"]'
    if fitting:
        shown = ", ".join(f"{printable(each.get_name())} for {printable(each.get_raw_formula())}" for each in fitting)
        found = f"several of its properties fit; give the name of one: {shown}"
    elif GOAL in names.labels:
        found = f'no reward structure is called "{COST}"'
    else:
        found = f'there is no label "{GOAL}"'
    raise PrudentError(
        f"{place}: say which goals and costs are meant, with property= (--property): {found}; {names.offer()}"
    )


def _names(model: Any) -> Names:
    """Return the names in a program, a JANI model or a built model."""
    if hasattr(model, "global_variables"):
        kind = {each.name: each.expression_variable for each in model.global_variables}
        transient = [each.name for each in _transient(model)]
        labels = [name for name in transient if kind[name].has_boolean_type()]
        lasting = [name for name in kind if kind[name].has_integer_type() and name not in transient]
        return Names(labels, [name for name in transient if name not in labels], (lasting or [""])[0])
    if hasattr(model, "labeling"):
        labels = sorted(model.labeling.get_labels())
        return Names([each for each in labels if each not in STORMS_OWN] or labels, sorted(model.reward_models))
    variables = [each.name for module in model.modules for each in module.integer_variables]
    variables += [each.name for each in model.global_integer_variables]
    labels, rewards = ([each.name for each in found] for found in (model.labels, model.reward_models))
    return Names(labels, rewards, (variables or [""])[0])


def _transient(model: Any) -> list[Any]:
    """Return the variables of a JANI model that are no part of its states: rewards and labels."""
    return [each for each in getattr(model, "global_variables", ()) if each.is_transient]
