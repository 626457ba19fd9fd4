"""Models in Unified Markov Binary, which PRISM, Storm and Modest share: ``read``; :mod:`prudent.io.umb.write` writes.

What is read: a discrete Markov chain or decision process, plain, gzipped or packed with xz.  The goals are the states
with the label "goal", the costs are the reward "cost", or the only reward there is; a property like
``R{"time"}min=? [F "done"]`` names others.  What is paid in a state, for a choice and on a branch adds up; a run ends
at a goal, and what would follow there is left out.  Fractions become the nearest doubles; intervals are refused.

What is written is read again as the same model, to the last bit.  Goals get a free loop, as Storm wants them.  Costs
are paid for choices where all outcomes of each action cost the same, which Storm can bound, and else on branches.
Storm takes two branches of one choice to one state for one, and there is one initial state: where that is not enough,
auxiliary states, labelled so, pass on.  A model with one action in each state is written as a Markov chain.

A file may come from anybody.  Reading it takes time and memory in proportion to its size; of a packed file the size is
that of its content, which may be 200 times the file and 16 MiB, not more.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.errors import PrudentError, naming
from prudent.io.json.document import checked, shown
from prudent.io.properties import reward_property
from prudent.io.umb.archive import unpacked
from prudent.io.umb.arrays import Arrays
from prudent.io.umb.names import action_names, state_names
from prudent.io.umb.write import AUXILIARY, COST, GOAL
from prudent.models.rows import FloatArray, IntArray, offsets, owner
from prudent.models.ssp import SHOWN, SSP
from prudent.runtime.atomic_files import read_bytes

__all__ = ["parse", "read"]

VERSIONS = (0, 1)
"""Versions of the format that are read; 0 is what one library writes for 1."""


def read(path: Path, property: str | None = None) -> SSP:
    """Read a model; refuse anything that is not exactly one."""
    return parse(read_bytes(path), path, property)


def parse(raw: bytes, path: Path, property: str | None = None) -> SSP:
    """Return the model that a file's bytes are; refuse anything that is not exactly one."""
    reward, label = (None, GOAL) if property is None else reward_property(property)
    with naming(path):
        return _model(Arrays(unpacked(raw)), reward, label, path.name.split(".")[0])


def _model(arrays: Arrays, reward: str | None, label: str, name: str) -> SSP:
    system = _system(arrays)
    n_states, n_choices, n_branches = (arrays.count(system, f"#{each}") for each in ("states", "choices", "branches"))
    member, at = "branch-to-probability.bin", "index.json: branch-probability-type"
    probability = arrays.numbers(member, n_branches, system.get("branch-probability-type"), at)
    if probability is None:  # asked for first: its size bounds what is made for members that are left out
        raise PrudentError(f"{member}: is missing")
    branch = arrays.starts("choice-to-branches.bin", n_choices, n_branches)
    choice = arrays.starts("state-to-choices.bin", n_states, n_choices)
    target = arrays.numbers_below("branch-to-target.bin", n_branches, n_states)
    state_of, choice_of = owner(choice), owner(branch)
    if system["#players"] == 0 and (np.diff(choice) > 1).any():
        s = int(np.diff(choice).argmax())
        raise PrudentError(f"state-to-choices.bin: state {s} has {choice[s + 1] - choice[s]} choices; #players is 0")

    goal = _labelled(arrays, label, n_states)
    cost = _costs(arrays, reward, state_of, choice_of, n_states)
    initial, chance, n_real = _initial(arrays, system, n_states), np.ones(1), n_states
    if AUXILIARY in arrays.index["annotations"]["aps"]:
        auxiliary = _labelled(arrays, AUXILIARY, n_states)
        if (auxiliary & goal).any() or cost[auxiliary[state_of][choice_of]].any():
            raise _strange(auxiliary)
        initial, chance, target = _passed_on(auxiliary, int(initial[0]), choice, branch, target, probability)
        n_real -= int(auxiliary.sum())
    acting = ~goal
    acting[n_real:] = False
    kept, n_actions = acting[state_of], np.where(acting, np.diff(choice), 0)[:n_real]
    for s in np.flatnonzero(acting[:n_real] & (n_actions == 0))[:1]:
        raise PrudentError(f"state-to-choices.bin: state {s} has no choices, and not the label {label!r} of a goal")
    taken = kept[choice_of]
    actions = action_names(arrays, arrays.count(system, "#choice-actions"), n_choices, choice[:-1][state_of])
    return SSP(
        action_start=offsets(n_actions),
        outcome_start=offsets(np.diff(branch)[kept]),
        probability=probability[taken],
        successor=target[taken],
        cost=cost[taken],
        initial_state=initial,
        initial_probability=chance,
        state_names=state_names(arrays, n_real, n_states),
        action_names=None if actions is None else [actions[c] for c in np.flatnonzero(kept).tolist()],
        name=name,
    )


def _system(arrays: Arrays) -> dict[str, Any]:
    """Return what the index says of the transitions; refuse what is not a Markov chain or decision process."""
    if arrays.count(arrays.index, "format-version") not in VERSIONS:
        found = shown(arrays.index["format-version"])
        raise PrudentError(f"index.json: format-version is {found}; this release reads {VERSIONS[-1]}")
    system: dict[str, Any] = checked(arrays.index.get("transition-system"), dict, "index.json: transition-system")
    wrong = "only Markov chains and decision processes in discrete time, fully observed, can be read"
    if system.get("time") != "discrete":
        raise PrudentError(f"index.json: time is {shown(system.get('time'))}; {wrong}")
    for name, most in (("#players", 1), ("#observations", 0)):
        if arrays.count(system, name) > most:
            raise PrudentError(f"index.json: {name} is {system[name]}; {wrong}")
    if "branch-probability-type" not in system:
        raise PrudentError(f"index.json: there is no branch-probability-type; {wrong}")
    return system


def _labelled(arrays: Arrays, label: str, n_states: int) -> NDArray[np.bool_]:
    folder, about = arrays.annotation("aps", label, label)
    kind = checked(about.get("type"), dict, f"{folder}: type").get("type")
    if kind != "bool" or about.get("applies-to") != ["states"]:
        raise PrudentError(f"{folder}: a label must be of type bool, and apply to states and nothing else")
    return arrays.bits(f"{folder}/states/values.bin", n_states)


def _costs(arrays: Arrays, reward: str | None, state_of: IntArray, choice_of: IntArray, n_states: int) -> FloatArray:
    """Return the cost of every branch: what its state, its choice and itself cost, added up."""
    folder, about = arrays.annotation("rewards", reward, COST)
    if "probability-type" in about:
        raise PrudentError(f"{folder}: is random by itself; costs must be plain numbers")
    where: dict[str, tuple[int, Any]] = {
        "states": (n_states, lambda value: value[state_of][choice_of]),
        "choices": (len(state_of), lambda value: value[choice_of]),
        "branches": (len(choice_of), lambda value: value),
    }
    total, applies = None, checked(about.get("applies-to"), list, f"{folder}: applies-to")
    if not applies:
        raise PrudentError(f"{folder}: applies to nothing, so there are no costs; it must apply to {', '.join(where)}")
    for each in dict.fromkeys(map(str, applies)):
        if each not in where:
            raise PrudentError(f"{folder}: applies to {each[:60]!r}; costs are those of {', '.join(where)}")
        n, spread = where[each]
        value = arrays.numbers(f"{folder}/{each}/values.bin", n, about.get("type"), f"{folder}: type")
        if value is not None:
            with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused by the model
                total = spread(value) if total is None else total + spread(value)
    return np.zeros(len(choice_of)) if total is None else np.asarray(total)


def _initial(arrays: Arrays, system: dict[str, Any], n_states: int) -> IntArray:
    initial = np.flatnonzero(arrays.bits("state-is-initial.bin", n_states))
    declared = arrays.count(system, "#initial-states")
    if len(initial) != declared or declared != 1:
        raise PrudentError(
            f"state-is-initial.bin: {len(initial):,} states are initial, and #initial-states is {declared}; there must "
            "be one, since UMB gives no probabilities of several: add a state that leads to each with its own"
        )
    return initial


def _passed_on(
    auxiliary: NDArray[np.bool_], first: int, choice: IntArray, branch: IntArray, target: IntArray, chance: FloatArray
) -> tuple[IntArray, FloatArray, IntArray]:
    """Return the initial states, their probabilities, and every branch's target, without auxiliary states."""
    n_real, n_states = len(auxiliary) - int(auxiliary.sum()), len(auxiliary)
    if not auxiliary[n_real:].all() or (np.diff(choice)[n_real:] != 1).any():
        raise _strange(auxiliary)
    begin, end = branch[choice[n_real:-1]], branch[choice[n_real:-1] + 1]
    passing = np.arange(n_real, n_states) != first
    if (end - begin != 1)[passing].any() or (chance[begin[passing]] != 1).any():
        raise _strange(auxiliary)
    through = np.arange(n_states)
    through[n_real:][passing] = target[begin[passing]]
    initial, initial_chance = np.array([first]), np.ones(1)
    if first >= n_real:
        mine = slice(int(begin[first - n_real]), int(end[first - n_real]))
        initial, initial_chance = target[mine], chance[mine]
    through_targets = through[target]
    if (through_targets[: int(branch[choice[n_real]])] >= n_real).any() or (initial >= n_real).any():
        raise _strange(auxiliary)
    return initial, initial_chance, through_targets


def _strange(auxiliary: NDArray[np.bool_]) -> PrudentError:
    some = ", ".join(map(str, np.flatnonzero(auxiliary)[:SHOWN]))
    return PrudentError(
        f"annotations/aps/{AUXILIARY}: states with this label ({some}) come last and pass on, at no cost, to one state "
        "that is not; the initial one to several. Is the file changed by hand?"
    )
