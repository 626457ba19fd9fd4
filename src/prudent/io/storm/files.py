"""Models in PRISM's language and in JANI, built by Storm, and models that stormpy has built.

A property selects goals and costs: ``R{"cost"}min=? [F "goal"]`` makes the states that satisfy ``"goal"`` goals and the
reward structure ``"cost"`` costs; ``Tmin=? [F "goal"]`` counts steps.  As in Storm, a state's reward is paid on leaving
it, and nothing is paid from a goal on.  A model is refused if Storm would replace the costs of an action's outcomes by
their mean: the expected cost would be right, the risk would not.
"""

import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from prudent.errors import PrudentError, naming, printable
from prudent.io.properties import Initial
from prudent.io.storm.constants import define
from prudent.io.storm.model import SILENT, convert, listening, refuse_unfit
from prudent.io.storm.properties import (
    OUTSIDE,
    chosen,
    means_are_harmless,
    named_reward,
    names_of,
    out_of_file,
    reward_of,
    transient_names,
)
from prudent.io.untrusted import gunzipped
from prudent.models.ssp import SSP
from prudent.runtime.atomic_files import check_plain, read_bytes

HEAD, DIGITS = 2**16, 18
"""The bytes at the head of an explicit file that are searched for its sizes, and the most digits of a size."""

SET, NAMED = re.compile(r"\b(\w++)\s*+'\s*+="), re.compile(r"\b(\w++)\s*+:")
"""The variable that an update sets, and what may be the declaration of one."""


def read(
    path: Path,
    *,
    property: str | None = None,
    constants: Mapping[str, Any] | None = None,
    initial: Initial | None = None,
) -> SSP:
    """Read a model in PRISM's language or JANI."""
    place = str(path)
    check_plain(path)
    with listening(place) as stormpy:
        if path.name.lower().endswith(".jani"):
            described, properties = stormpy.parse_jani_model(path)
        else:
            described, properties = _program(stormpy, path), []
        names, given = names_of(described), {} if constants is None else constants
        if not isinstance(given, Mapping):
            raise PrudentError(f"{place}: constants is {constants!r}; it must be {{name: value}}")
        property, given = out_of_file(stormpy, property, given, names, place, described)
        asked = chosen(stormpy, property, properties, names, place, described)
        described, asked = define(stormpy, described, asked, reward_of(asked, names, place).reward, given, path)
        wanted = reward_of(asked, names, place)
        options = stormpy.BuilderOptions([asked], stormpy.io.SymbolicModelDescription(described))
        options.set_build_state_valuations()
        options.set_build_choice_labels()
        options.set_add_out_of_bounds_state()  # else Storm lets variables leave their bounds
        options.set_add_overlapping_guards_label()
        options.set_scale_and_lift_transition_rewards(means_are_harmless(wanted, names, described, place))
        model = stormpy.build_model(described, options=options)
        if OUTSIDE in model.labeling.get_labels():
            options.set_add_out_of_bounds_state(False)
            options.set_exploration_checks()  # they name the place; exact, since they require sums of exactly 1
            stormpy.build_model[stormpy.Rational](described, options=options)
            raise PrudentError(f"{place}: a variable leaves its bounds; fix the update, or widen the bounds")
        return convert(model, wanted, place, path.name.split(".")[0], transient_names(described), initial)


def read_explicit(path: Path, *, property: str | None = None, initial: Initial | None = None) -> SSP:
    """Read a model in Storm's explicit format, DRN, plain or gzipped."""
    place = str(path)
    with listening(place) as stormpy, _plain(path) as plain:
        _refuse_hollow(plain, place)
        options = stormpy.io.DirectEncodingParserOptions()
        options.build_choice_labeling = True
        try:
            model = stormpy.build_model_from_drn(plain, options=options)
        except RuntimeError as error:
            if "@nr_choices" not in str(error):
                raise
            model = stormpy.build_model_from_drn(plain)  # older files lack the number of actions to name
        return _converted(stormpy, model, property, place, path.name.split(".")[0], initial)


def from_storm(model: Any, property: Any = None, *, initial: Initial | None = None, name: str = "model") -> SSP:
    """Return a sparse DTMC or MDP of stormpy as an :class:`~prudent.SSP`; needs the extra ``storm``.

    Parameters
    ----------
    model : sparse model of stormpy
        A DTMC or an MDP.  State valuations become names of states, and choice labels become names of actions.  Exact
        numbers become the nearest floating-point numbers.
    property : str or property of stormpy, optional
        ``R{"cost"}min=? [F "goal"]``: which states are goals, and which rewards (of states, actions and transitions)
        are costs.  By default the label ``"goal"``, and the reward structure ``"cost"`` or the only one.
    initial : state or {state: probability}, optional
        The state where runs start; by default the model's initial state, or one of several, all equally likely.
    name : str
        The name of the model in messages and reports.

    Examples
    --------
    >>> import prudent, stormpy, stormpy.examples.files
    >>> die = stormpy.build_model(stormpy.parse_prism_program(stormpy.examples.files.prism_dtmc_die))
    >>> prudent.from_storm(die, 'R{"coin_flips"}min=? [F "done"]')
    <SSP model: 13 states, 7 actions, 14 outcomes>
    """
    with listening("model") as stormpy:
        return _converted(stormpy, model, property, "model", name, initial)


@contextmanager
def _copied(content: bytes | bytearray, name: str) -> Iterator[Path]:
    """Yield the path of a file with this content, for Storm, which reads nothing else."""
    with tempfile.TemporaryDirectory(prefix="prudent-") as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        yield path


@contextmanager
def _plain(path: Path) -> Iterator[Path]:
    """Yield the path of a file as it is, or of its content if it is gzipped."""
    if not path.name.lower().endswith(".gz"):
        yield path
        return
    with naming(path):
        content = gunzipped(read_bytes(path), "inflate it first and give the .drn file")
    with _copied(content, "model.drn") as copy:
        yield copy


def _program(stormpy: Any, path: Path) -> Any:
    """Return a program in PRISM's language; name an undeclared variable, which Storm names only in its log."""
    try:
        return stormpy.parse_prism_program(path)
    except RuntimeError as error:
        if "expecting <model type>" in str(error):
            return _untyped(stormpy, path, error)
        if str(error) != SILENT:
            raise
        text = re.sub("//.*", "", read_bytes(path).decode(errors="replace"))
        declared = set(NAMED.findall(text))
        for found in SET.finditer(text):
            if found[1] not in declared:
                line = text.count("\n", 0, found.start()) + 1
                remedy = "declare it, or fix the name"
                raise PrudentError(
                    f"{path}: line {line} sets {printable(found[1])}, a variable that is not declared; {remedy}"
                ) from None
        raise


def _untyped(stormpy: Any, path: Path, error: RuntimeError) -> Any:
    """Return the program of a file without a model type: an MDP, as in PRISM."""
    with _copied(b"mdp " + read_bytes(path), path.name) as typed:
        try:
            return stormpy.parse_prism_program(typed)
        except RuntimeError as other:  # in the first line, columns and text are not the file's
            raise error if "error at 1:" in str(other) else other from None


def _refuse_hollow(path: Path, place: str) -> None:
    """Refuse an explicit file that declares more than its bytes can hold: Storm would allocate all of it."""
    head, size = read_bytes(path, HEAD), path.stat().st_size
    for what, number in re.findall(rb"@nr_(states|choices)\s+(\d+)", head):
        if len(number) > DIGITS or int(number) > size:
            shown = number[:DIGITS].decode()
            raise PrudentError(f"{place}: declares {shown} {what.decode()}, more than its {size} bytes can hold")


def _converted(stormpy: Any, model: Any, property: Any, place: str, name: str, initial: Initial | None) -> SSP:
    refuse_unfit(model, place)
    names = names_of(model)
    if not hasattr(property, "get_raw_formula"):
        text, _ = out_of_file(stormpy, property, {}, names, place)
        property = chosen(stormpy, text, (), names, place)
    return convert(model, named_reward(property, names, place), place, name, initial=initial)
