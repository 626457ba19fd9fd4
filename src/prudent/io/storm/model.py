"""A model that Storm holds in memory, as an SSP.

Storm gives Python no arrays, but it writes any sparse model as a UMB archive, whose members are arrays.  Reading that
archive avoids a Python loop over transitions.
"""

import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from prudent.errors import PrudentError, naming, needed, printable
from prudent.io.properties import Initial, drawn, traps
from prudent.io.umb.archive import SIZES, Arrays, unpacked
from prudent.io.umb.read import WHERE, TransitionSystem
from prudent.models.rows import FloatArray, IntArray
from prudent.models.ssp import SSP
from prudent.runtime.atomic_files import read_bytes

OVERLAP = "overlap_guards"
"""Storm's label for states of a chain in which several commands are enabled, one of which it draws."""

OUTSIDE_BIT, LOCATION = "_OutOfBoundsBit", "_loc_"
"""Names of variables that Storm adds: whether bounds were left, and the prefix of an automaton's location in JANI."""

NAMELESS = "default"
"""How Storm exports a reward structure without a name."""

SILENT = "std::exception"
"""Storm's message where only its log gives the reason."""

ONLY = "only fully observed, discrete-time models of one player can be read: DTMC, MDP"
"""The message for other kinds of models."""


@dataclass(frozen=True)
class TotalReward:
    """Which states of a Storm model become goals, and which rewards become costs."""

    goal: Any  # a state formula of Storm's
    reward: str | None  # the reward structure, "" for one without a name; None: each step costs 1
    of_states: bool = True  # whether its state rewards count
    of_actions: bool = True  # whether its action and transition rewards count
    most: bool = False  # whether they are maximised
    over: str = ""  # how the values of several initial states are combined, if not by their mean
    text: str = ""  # the property, as messages show it


@contextmanager
def listening(place: str) -> Iterator[Any]:
    """Yield stormpy with its log, which goes to stdout, turned off; raise its errors as PrudentError."""
    stormpy, developer = needed("stormpy", "storm"), needed("stormpy.developer", "storm")
    before = developer.get_log_level()
    developer.set_log_level(developer.LogLevel.OFF)
    try:
        with naming(place):
            yield stormpy
    except PrudentError:
        raise
    except (RuntimeError, ValueError, IndexError, stormpy.exceptions.StormError) as error:
        raise PrudentError(f"{place}: Storm: {_said(error)}") from None
    except MemoryError:  # a number of states in a file may be any number
        raise PrudentError(f"{place}: Storm: the model does not fit into memory; give a smaller one") from None
    finally:
        developer.set_log_level(before)


def _said(error: Exception) -> str:
    """Return Storm's message on one line, without the kind of exception and the mark under a column."""
    kind, colon, rest = str(error).partition(": ")
    text = rest if colon and kind.isalnum() and kind.endswith("Exception") else str(error)
    if text == SILENT:
        return "gives no reason; often a name is not declared"
    if found := re.match(r"The input model is a CTMC|Expected other \w+ model type", text):
        return f"{found[0]}; {ONLY}"
    lines = [" ".join(line.split()) for line in text.splitlines()]
    if "ransition rewards" in text:  # which Storm only reads from explicit files
        lines.append("Move the cost of an outcome to the state it leads to, as that state's reward.")
    return " ".join(line for line in lines if line not in ("", "^"))


def convert(model: Any, wanted: TotalReward, name: str, initial: Initial | None, hidden: Sequence[str] = ()) -> SSP:
    """Return a sparse DTMC or MDP as an SSP, with some variables left out of state names; call it while listening."""
    truth = needed("stormpy", "storm").model_checking(model, wanted.goal, only_initial_states=False)
    is_goal = np.zeros(model.nr_states, dtype=bool)
    is_goal[np.fromiter(truth.get_truth_values_vector(), dtype=np.int64)] = True
    if not is_goal.any():
        raise PrudentError(f"there is no goal: no state satisfies {wanted.goal}")
    first = np.array(list(model.initial_states), dtype=np.int64)
    if len(first) == 0:
        raise PrudentError("has no initial state; it must have at least one")
    if len(first) > 1 and initial is None and wanted.over:
        raise PrudentError(
            f"property {printable(wanted.text)} asks for the {wanted.over} over {len(first):,} initial "
            "states; a plan is for one initial state, fixed or drawn: choose it with initial= (--initial), or leave "
            "out the filter"
        )
    graph = TransitionSystem(_arrays(model, hidden))
    cost = _costs(wanted, graph, WHERE)
    found = graph.model(~is_goal, cost, drawn(first, initial), name, wanted.most, initial)
    for s in np.flatnonzero(graph.is_goal & ~is_goal)[:1]:
        raise PrudentError(f"state {found.state(s)!r} has no actions and is not a goal; a dead end must lead to itself")
    if model.model_type.name == "DTMC" and model.labeling.contains_label(OVERLAP):
        paid = _costs(wanted, graph, ("choices",))
        for s in model.labeling.get_states(OVERLAP):  # Storm draws one of the commands: another risk
            if not is_goal[s] and paid[graph.arc_start[s]] != 0:
                raise PrudentError(
                    f"in state {found.state(s)!r} of this DTMC several commands are enabled, and Storm takes the mean "
                    "of their rewards; make their guards disjoint"
                )
    if wanted.most and len(stuck := traps(found)):
        raise PrudentError(_endless(model, found, stuck, wanted))
    return found


def _endless(model: Any, found: SSP, stuck: IntArray, wanted: TotalReward) -> str:
    """Return why a maximal reward until a goal is undefined if runs can get stuck, and which goal would fix it."""
    missed, goals = set(stuck.tolist()), set(np.flatnonzero(found.is_goal).tolist())
    labels = {label: set(model.labeling.get_states(label)) for label in sorted(model.labeling.get_labels())}
    fitting = [f'"{label}"' for label, states in labels.items() if missed <= states <= missed | goals]
    if found.state_names is not None:
        fitting.append(f"({str(found.state(stuck[0])).replace(', ', ' & ')})")
    offer = f"[F {wanted.goal} | {fitting[0]}]" if fitting else "give such states a label, and name it after F"
    return (
        f"property {printable(wanted.text)} asks for the maximal reward until a goal, which is undefined: "
        f"from state {found.state(stuck[0])!r} runs never reach one; if runs end there, make that a goal, too: {offer}"
    )


def refuse_unfit(model: Any) -> None:
    """Refuse what is not a sparse DTMC or MDP with numbers as probabilities."""
    if not model.is_sparse_model:
        raise PrudentError("is a symbolic model; build it with Storm's sparse engine")
    if (kind := model.model_type.name) not in ("DTMC", "MDP"):
        raise PrudentError(f"is of type {kind}; {ONLY}")
    if model.supports_parameters or model.supports_uncertainty:
        found = "parameters" if model.supports_parameters else "intervals"
        raise PrudentError(f"has {found} for probabilities; they must be numbers")


def _arrays(model: Any, hidden: Sequence[str]) -> Arrays:
    """Return the arrays of a model; hidden variables, and Storm's own without information, become padding."""
    io = needed("stormpy.io", "storm")
    options = io.UmbExportOptions()
    options.compression = io.CompressionMode.NO_COMPRESSION
    options.value_type = io.UmbExportValueType.DOUBLE  # the nearest ones, for exact models
    with tempfile.TemporaryDirectory(prefix="prudent-") as folder:
        path = Path(folder) / "model.umb"
        io.export_to_umb(model, path, options=options)
        arrays = Arrays(unpacked(read_bytes(path)))
    if not model.has_choice_labeling():
        arrays.index["transition-system"]["#choice-actions"] = 0
    valuations = arrays.index.get("valuations", {})
    told = False
    for variables in (kind["variables"] for kind in valuations.get("states", {}).get("classes", [])):
        for i, each in enumerate(variables):
            name, idle = each.get("name", ""), each.get("lower", 0) == each.get("upper", 1)
            if name in hidden or name == OUTSIDE_BIT or (name.startswith(LOCATION) and idle):
                kind = each["type"]
                variables[i] = {"padding": kind.get("size", SIZES[kind["type"]]) + each.get("is-optional", False)}
        told |= any("name" in each for each in variables)
    if not told:
        valuations.pop("states", None)
    return arrays


def _costs(wanted: TotalReward, graph: TransitionSystem, where: Iterable[str]) -> FloatArray:
    """Return what each outcome costs, counting what belongs to states, choices or branches."""
    if wanted.reward is None:
        return np.ones(len(graph.successor))
    folder, _ = graph.arrays.annotation("rewards", wanted.reward or NAMELESS, NAMELESS)
    counted = [each for each in where if (wanted.of_states if each == "states" else wanted.of_actions)]
    return graph.costs(folder, {"type": "double"}, folder, counted)
