"""Models in PRISM's language and in JANI, built by Storm, and models that Storm holds already.

A property says what is meant: ``R{"cost"}min=? [F "goal"]`` makes the states that satisfy ``"goal"`` goals and the
reward structure ``"cost"`` costs; ``Tmin=? [F "goal"]`` counts steps.  As in Storm, a state's reward is paid on leaving
it, and nothing is paid from a goal on.  Where Storm could only take the mean of what the outcomes of an action cost,
the model is refused: the mean would be right, the risk would not.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from prudent.atomic import check_plain, read_bytes
from prudent.errors import PrudentError, printable
from prudent.files.storm_constants import define
from prudent.files.storm_model import Question, convert, listening, refuse_unfit, rewards_of
from prudent.model import SSP

__all__ = ["from_storm", "read", "read_explicit"]

COST, GOAL = "cost", "goal"
"""The reward structure and the label that are taken where no property says which."""

UNDERSTOOD = (
    f'understood are R{{"{COST}"}}min=? [F "{GOAL}"], the least total cost until a goal, and Tmin=? [F "{GOAL}"], '
    "the least number of steps, with any label or condition on states after F"
)
OUTSIDE = "out_of_bounds"
"""Storm's label for where runs go if a variable would leave its bounds; there if any would."""

HEAD, DIGITS = 2**16, 18
"""In how many bytes an explicit file tells its sizes, and how many digits they may have."""

COUNTED = re.compile(r"F \[([a-z, ]+)\]")
"""How Storm writes which rewards a property of JANI counts, where these are not all."""


def read(path: Path, *, property: str | None = None, constants: Mapping[str, Any] | None = None) -> SSP:
    """Read a model in PRISM's language or JANI."""
    place = str(path)
    check_plain(path)
    with listening(place) as stormpy:
        if path.name.lower().endswith(".jani"):
            described, properties = stormpy.parse_jani_model(path)
        else:
            described, properties = stormpy.parse_prism_program(path), []
        described, properties = define(stormpy, described, properties, {} if constants is None else constants, place)
        fitting = [] if property is not None else _fitting(properties)
        if len(fitting) == 1:
            asked = fitting[0]
        else:
            text = _usual(described, place, fitting) if property is None else property
            asked = _parsed(stormpy, text, place, described)
        question = _question(asked, _rewards(described), place)
        options = stormpy.BuilderOptions([asked], stormpy.io.SymbolicModelDescription(described))
        options.set_build_state_valuations()
        options.set_build_choice_labels()
        options.set_add_out_of_bounds_state()  # else Storm lets variables leave their bounds
        options.set_add_overlapping_guards_label()
        options.set_scale_and_lift_transition_rewards(False)  # else it takes means over the outcomes of an action
        model = stormpy.build_model(described, options=options)
        if OUTSIDE in model.labeling.get_labels():
            options.set_add_out_of_bounds_state(False)
            options.set_exploration_checks()  # which say where; exactly, for they want sums of 1 to the last digit
            stormpy.build_model[stormpy.Rational](described, options=options)
            raise PrudentError(f"{place}: a variable leaves its bounds; mend the update, or widen the bounds")
        transient = [each.name for each in _transient(described)]
        return convert(model, question, place, path.name.split(".")[0], hidden=transient)


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
            model = stormpy.build_model_from_drn(path)  # older files do not say how many actions there are to name
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
    >>> import prudent, stormpy                                                     # doctest: +SKIP
    >>> die = stormpy.build_model(stormpy.parse_prism_program("die.pm"))            # doctest: +SKIP
    >>> prudent.from_storm(die, 'R{"coin_flips"}min=? [F "done"]')                  # doctest: +SKIP
    <SSP model: 13 states, 7 actions, 14 outcomes>
    """
    with listening("model") as stormpy:
        return _converted(stormpy, model, property, "model", name)


def _refuse_hollow(path: Path) -> None:
    """Refuse an explicit file that declares more than its bytes can hold: Storm would make room for all of it."""
    head, size = read_bytes(path, HEAD), path.stat().st_size
    for what, number in re.findall(rb"@nr_(states|choices)\s+(\d+)", head):
        if len(number) > DIGITS or int(number) > size:
            shown = number[:DIGITS].decode()
            raise PrudentError(f"{path}: declares {shown} {what.decode()}, more than its {size} bytes can hold")


def _converted(stormpy: Any, model: Any, property: Any, place: str, name: str) -> SSP:
    refuse_unfit(model, place)
    asked = _usual(model, place) if property is None else property
    if not hasattr(asked, "get_raw_formula"):
        asked = _parsed(stormpy, asked, place)
    return convert(model, _question(asked, _rewards(model), place), place, name)


def _parsed(stormpy: Any, text: Any, place: str, described: Any = None) -> Any:
    """Return the one property that a text is, in the language of PRISM's properties."""
    if not isinstance(text, str):
        raise PrudentError(f"{place}: property is {text!r}; it must be text; {UNDERSTOOD}")
    with listening(f"{place}: property {printable(text)}"):
        found = stormpy.parse_properties(text, described)
    if len(found) != 1 or found[0].contains_undefined_constants():
        what = f"holds {len(found)} properties" if len(found) != 1 else "leaves a constant undefined"
        raise PrudentError(f"{place}: property {printable(text)} {what}; {UNDERSTOOD}")
    return found[0]


def _question(asked: Any, rewards: Sequence[str], place: str) -> Question:
    """Return what a property says; refuse any that does not ask for a least total cost."""
    formula = asked.get_raw_formula()
    path: Any = getattr(formula, "subformula", None)
    kind = type(formula).__name__
    at = f"{place}: property {printable(str(formula))}"
    if kind not in ("RewardOperatorFormula", "TimeOperatorFormula") or type(path).__name__ != "EventuallyFormula":
        raise PrudentError(f"{at} cannot be planned for; {UNDERSTOOD}")
    if formula.has_bound:
        raise PrudentError(f"{at} asks whether a bound holds; ask for the least value, with =? in place of the bound")
    if formula.has_optimality_type and formula.optimality_type.name != "MINIMIZE":
        raise PrudentError(f"{at} asks for the most; plans minimise: write min, of rewards that are costs")
    found = COUNTED.match(str(path))
    allowed = {"steps"} if kind == "TimeOperatorFormula" else {"steps", "exit"}
    counted = set(re.split(r"\W+", found[1])) if found else allowed
    if not counted <= allowed:
        wanted = " and ".join(sorted(allowed))
        raise PrudentError(f"{at} accumulates over {' and '.join(sorted(counted))}; it must over {wanted}")
    reward = None
    if kind == "RewardOperatorFormula":
        reward = formula.reward_name if formula.has_reward_model_name() else _only(rewards, at)
    return Question(path.subformula, reward, "exit" in counted, "steps" in counted)


def _only(rewards: Sequence[str], at: str) -> str:
    if len(rewards) != 1 and "" not in rewards:
        raise PrudentError(f'{at} names no reward structure, as R{{"name"}} does; there is {rewards_of(rewards)}')
    return "" if "" in rewards else rewards[0]


def _fitting(properties: Sequence[Any]) -> list[Any]:
    """Return the properties of a file that can be planned for."""
    fitting = []
    for each in properties:
        with suppress(PrudentError):
            _question(each, [""], "")
            fitting.append(each)
    return fitting


def _usual(model: Any, place: str, fitting: Sequence[Any] = ()) -> str:
    """Return the property that is meant where none is given."""
    rewards = _rewards(model)
    if GOAL in _labels(model) and (COST in rewards or "" in rewards or len(rewards) == 1):
        return f'R{{"{COST}"}}min=? [F "{GOAL}"]' if COST in rewards else f'Rmin=? [F "{GOAL}"]'
    if fitting:
        found = f"several of its properties fit: {', '.join(printable(each.get_raw_formula()) for each in fitting)}"
    elif GOAL in _labels(model):
        found = f'no reward structure is called "{COST}"; there is {rewards_of(rewards)}'
    else:
        found = f'there is no label "{GOAL}"'
    raise PrudentError(
        f"{place}: say which goals and costs are meant, with property= (--property): {found}; {UNDERSTOOD}"
    )


def _rewards(model: Any) -> list[str]:
    """Return the names of the reward structures of a program, of a JANI model or of a model that is built."""
    if hasattr(model, "global_variables"):
        return [each.name for each in _transient(model) if not each.expression_variable.has_boolean_type()]
    found = model.reward_models
    return list(found) if isinstance(found, Mapping) else [each.name for each in found]


def _labels(model: Any) -> list[str]:
    """Return the labels of the same."""
    if hasattr(model, "global_variables"):
        return [each.name for each in _transient(model) if each.expression_variable.has_boolean_type()]
    return list(model.labeling.get_labels()) if hasattr(model, "labeling") else [each.name for each in model.labels]


def _transient(model: Any) -> list[Any]:
    """Return the variables of a JANI model that are no part of its states: rewards and labels."""
    return [each for each in getattr(model, "global_variables", ()) if each.is_transient]
