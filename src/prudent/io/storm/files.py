"""What Storm reads: models in PRISM's language and in JANI, its own explicit format, and models that stormpy has built.

A property selects goals and costs: ``R{"cost"}min=? [F "goal"]`` makes the states that satisfy ``"goal"`` goals and the
reward structure ``"cost"`` costs; ``Tmin=? [F "goal"]`` counts steps.  As in Storm, a state's reward is paid on leaving
it, and nothing is paid from a goal on.  A model is refused if Storm would replace the costs of an action's outcomes by
their mean: the expected cost would be right, the risk would not.

In the explicit format, DRN, models are written too, without Storm.  Goals carry the label ``goal`` and loop at no cost;
the costs are the reward model ``cost``.  In DRN a cost belongs to an action, not to its outcomes.  If outcomes of one
action differ in cost, each leads to its next state through a state labelled ``pay``, in which the cost is paid: the
total cost of every run stays the same, while runs have more steps.  Several initial states become one, labelled
``init``, which leads to them with their probabilities.  Names of states are comments, which Storm does not read.
"""

import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from prudent.errors import PrudentError, naming, needed, printable
from prudent.io.properties import Initial
from prudent.io.storm.constants import define
from prudent.io.storm.model import SILENT, convert, listening, refuse_unfit
from prudent.io.storm.properties import OUTSIDE, chosen, means_are_harmless, named_reward, names_of, reward_of
from prudent.io.untrusted import gunzipped
from prudent.models.rows import FloatArray, IntArray, merge_outcomes, owner, starts
from prudent.models.ssp import SSP
from prudent.runtime.atomic_files import check_plain, read_bytes

HEAD, DIGITS = 2**16, 18
"""The bytes at the head of an explicit file that are searched for its sizes, and the most digits of a size."""

SET, NAMED = re.compile(r"\b(\w++)\s*+'\s*+="), re.compile(r"\b(\w++)\s*+:")
"""The variable that an update sets, and what may be the declaration of one."""

ODD = re.compile(r"[^\w.+-]")
"""Characters that an action's name may not have in DRN, where blanks and brackets end it."""


def read(
    path: Path,
    *,
    property: str | None = None,
    constants: Mapping[str, Any] | None = None,
    initial: Initial | None = None,
) -> SSP:
    """Read a model in PRISM's language or JANI."""
    check_plain(path)
    with listening(str(path)) as stormpy:
        if path.name.lower().endswith(".jani"):
            described, properties = stormpy.parse_jani_model(path)
        else:
            described, properties = _program(stormpy, path), []
        names = names_of(described)
        asked, given = chosen(property, names, constants, properties, described)
        described, asked = define(described, asked, reward_of(asked, names).reward, given, path)
        wanted = reward_of(asked, names)
        options = stormpy.BuilderOptions([asked], stormpy.io.SymbolicModelDescription(described))
        options.set_build_state_valuations()
        options.set_build_choice_labels()
        options.set_add_out_of_bounds_state()  # else Storm lets variables leave their bounds
        options.set_add_overlapping_guards_label()
        options.set_scale_and_lift_transition_rewards(means_are_harmless(wanted, names))
        model = stormpy.build_model(described, options=options)
        refuse_unfit(model)
        if OUTSIDE in model.labeling.get_labels():
            options.set_add_out_of_bounds_state(False)
            options.set_exploration_checks()  # they name the place; exact, since they require sums of exactly 1
            stormpy.build_model[stormpy.Rational](described, options=options)
            raise PrudentError("a variable leaves its bounds; fix the update, or widen the bounds")
        return convert(model, wanted, path.name.split(".")[0], initial, names.transient)


def read_explicit(path: Path, *, property: str | None = None, initial: Initial | None = None) -> SSP:
    """Read a model in Storm's explicit format, DRN, plain or gzipped."""
    packed = path.name.lower().endswith(".gz")
    with naming(path):
        content = gunzipped(read_bytes(path), "inflate it first and give the .drn file") if packed else b""
    with listening(str(path)) as stormpy, _copied(content, "model.drn") if packed else nullcontext(path) as plain:
        head, size = read_bytes(plain, HEAD), plain.stat().st_size
        for what, number in re.findall(rb"@nr_(states|choices)\s+(\d+)", head):
            if len(number) > DIGITS or int(number) > size:  # Storm would allocate all of it
                shown = number[:DIGITS].decode()
                raise PrudentError(f"declares {shown} {what.decode()}, more than its {size} bytes can hold")
        options = stormpy.io.DirectEncodingParserOptions()
        options.build_choice_labeling = True
        try:
            model = stormpy.build_model_from_drn(plain, options=options)
        except RuntimeError as error:
            if "@nr_choices" not in str(error):
                raise
            model = stormpy.build_model_from_drn(plain)  # older files lack the number of actions to name
        return _converted(model, property, path.name.split(".")[0], initial)


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
    needed("stormpy", "storm")
    if not hasattr(model, "is_sparse_model"):
        raise PrudentError(f"model is a {type(model).__name__}; it must be a sparse DTMC or MDP that stormpy built")
    with listening("model"):
        return _converted(model, property, name, initial)


@contextmanager
def _copied(content: bytes | bytearray, name: str) -> Iterator[Path]:
    """Yield the path of a file with this content, for Storm, which reads nothing else."""
    with tempfile.TemporaryDirectory(prefix="prudent-") as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        yield path


def _program(stormpy: Any, path: Path) -> Any:
    """Return a program in PRISM's language, an MDP if it has no model type, as in PRISM.

    An undeclared variable, which Storm names only in its log, is named.
    """
    try:
        return stormpy.parse_prism_program(path)
    except RuntimeError as error:
        if "expecting <model type>" in str(error):
            with _copied(b"mdp " + read_bytes(path), path.name) as typed:
                try:
                    return stormpy.parse_prism_program(typed)
                except RuntimeError as other:  # in the first line, columns and text are not the file's
                    raise error if "error at 1:" in str(other) else other from None
        if str(error) != SILENT:
            raise
        text = re.sub("//.*", "", read_bytes(path).decode(errors="replace"))
        declared = set(NAMED.findall(text))
        for found in SET.finditer(text):
            if found[1] not in declared:
                line = text.count("\n", 0, found.start()) + 1
                remedy = "declare it, or fix the name"
                raise PrudentError(
                    f"line {line} sets {printable(found[1])}, a variable that is not declared; {remedy}"
                ) from None
        raise


def _converted(model: Any, property: Any, name: str, initial: Initial | None) -> SSP:
    refuse_unfit(model)
    names = names_of(model)
    if not hasattr(property, "get_raw_formula"):
        property, _ = chosen(property, names)
    return convert(model, named_reward(property, names), name, initial)


def content_of(model: SSP) -> bytes:
    """Return the bytes of a DRN file: a Markov chain where each state has one action, else an MDP."""
    likely = model.probability > 0
    action, successor, cost, probability = merge_outcomes(
        owner(model.outcome_start)[likely], model.successor[likely], model.cost[likely], model.probability[likely]
    )
    price, target, paid = _paying(model, action, successor, cost)
    order = np.lexsort((target, action))
    start, leads = starts(action, model.n_actions).tolist(), target[order].tolist()
    chance = [repr(p) for p in probability[order].tolist()]
    first, weight = (part[model.initial_probability > 0] for part in (model.initial_state, model.initial_probability))
    n_rows = model.n_actions + int(model.is_goal.sum()) + len(paid) + (len(first) > 1)
    lines = ["// Written by prudent", f"@type: {'MDP' if (np.diff(model.action_start) > 1).any() else 'DTMC'}"]
    lines += ["@value_type: double", "@parameters", "", "@reward_models", "cost", "@nr_states"]
    lines += [str(model.n_states + len(paid) + (len(first) > 1)), "@nr_choices", str(n_rows), "@model"]
    for s, is_goal in enumerate(model.is_goal.tolist()):
        lines.append(f"state {s} [0]{' init' if len(first) == 1 and s == first[0] else ''}{' goal' if is_goal else ''}")
        lines.append(f"//[{printable(model.state(s))}]")
        if is_goal:
            lines += ["\taction done [0]", f"\t\t{s} : 1"]
        for a, name in zip(model.actions(s), _names(model, model.actions(s)), strict=True):
            lines.append(f"\taction {name} [{price[a]!r}]")
            lines += [f"\t\t{leads[o]} : {chance[o]}" for o in range(start[a], start[a + 1])]
    for i, (to, value) in enumerate(paid, start=model.n_states):
        lines += [f"state {i} [0] pay", f"\taction pay [{value!r}]", f"\t\t{to} : 1"]
    if len(first) > 1:
        lines += [f"state {model.n_states + len(paid)} [0] init", "\taction start [0]"]
        order = np.argsort(first)
        lines += [f"\t\t{s} : {p!r}" for s, p in zip(first[order].tolist(), weight[order].tolist(), strict=True)]
    return "\n".join([*lines, ""]).encode("utf-8", "replace")


def _paying(
    model: SSP, action: IntArray, successor: IntArray, cost: FloatArray
) -> tuple[list[float], IntArray, list[tuple[int, float]]]:
    """Return what each action costs, where each outcome leads, and the (next state, cost) of states in which to pay."""
    begin = starts(action, model.n_actions)[:-1]
    least, most = (pick.reduceat(cost, begin) if len(begin) else np.empty(0) for pick in (np.minimum, np.maximum))
    alike = least == most
    apart = np.flatnonzero(~alike[action] & (cost != 0))
    pairs, which = np.unique(np.stack([successor[apart], cost[apart]]), axis=1, return_inverse=True)
    target = successor.copy()
    target[apart] = model.n_states + which.reshape(-1)
    paid = list(zip(pairs[0].astype(np.int64).tolist(), pairs[1].tolist(), strict=True))
    return np.where(alike, least, 0.0).tolist(), target, paid


def _names(model: SSP, actions: range) -> list[str]:
    """Return the names of a state's actions as DRN takes them, or else their numbers."""
    names = [ODD.sub("_", str(model.action(a))) for a in actions]
    good = all(names) and len(set(names)) == len(names)
    return names if good else [str(i) for i in range(len(names))]
