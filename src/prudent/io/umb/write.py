"""Models as UMB archives; :mod:`prudent.io.umb.read` describes them."""

import json

import numpy as np

import prudent
from prudent.errors import PrudentError
from prudent.io.json import written_names
from prudent.io.properties import COST, GOAL
from prudent.io.umb.archive import bit_array, packed, string_arrays
from prudent.io.umb.names import NAMES
from prudent.models.rows import IntArray, offsets, row_of
from prudent.models.ssp import SSP

AUXILIARY = "prudent-auxiliary"
DOUBLE, BOOL = {"type": "double", "size": 64}, {"type": "bool", "size": 1}


def content_of(model: SSP) -> bytes:
    """Return the bytes of a file; refuse names that coincide as strings, and outcomes of probability 0."""
    return packed(members_of(model))


def members_of(model: SSP) -> dict[str, bytes]:
    """Return the members by name, the index first; refuse what UMB or Storm would misread."""
    for o in np.flatnonzero(model.probability == 0)[:1]:
        raise PrudentError(
            f"{model.place(row_of(model.outcome_start, o))} has an outcome of probability 0, which Storm would treat "
            "as possible; remove it from the model, or save the model as .json"
        )
    bits = model.cost.view(np.int64)  # costs count as the same only if they are to the last bit
    per_choice = bool((bits == bits[model.outcome_start[:-1]][model.outcome_action]).all())
    successor, passes_to = (model.successor, np.empty(0, np.int64)) if per_choice else _between(model)
    goal = np.flatnonzero(model.is_goal)
    loop = model.action_start[goal]  # before which of the model's choices the loop of a goal stands
    at = model.outcome_start[loop]
    alone = np.ones(len(passes_to), dtype=np.int64)
    drawn = len(model.initial_state) > 1 or bool(model.initial_probability[0] != 1)
    one = np.ones(int(drawn), dtype=np.int64)
    first = slice(None) if drawn else slice(0)
    last, chance = model.initial_state[first], model.initial_probability[first]  # of a state that draws the initial one
    choices = np.concatenate([np.maximum(np.diff(model.action_start), 1), alone, one])
    branches = np.concatenate([np.insert(np.diff(model.outcome_start), loop, 1), alone, len(last) * one])
    target = np.concatenate([np.insert(successor, at, goal), passes_to, last])
    probability = np.concatenate([np.insert(model.probability, at, 1.0), alone, chance])
    cost = np.concatenate([np.insert(model.cost, at, 0.0), np.zeros(len(passes_to) + len(last))])
    outcome_start, state = offsets(branches), np.arange(len(choices))
    labels = {GOAL: np.isin(state, goal)}
    if len(state) > model.n_states:
        labels[AUXILIARY] = state >= model.n_states
    where, paid = ("choices", cost[outcome_start[:-1]]) if per_choice else ("branches", cost)
    names, n_actions = _names(model, loop, len(branches))
    index = {
        "format-version": 1,
        "format-revision": 0,
        "file-data": {"tool": "prudent", "tool-version": prudent.__version__},
        "transition-system": {
            "time": "discrete",
            "#players": int(choices.max() > 1),
            "#states": len(state),
            "#initial-states": 1,
            "#choices": len(branches),
            "#choice-actions": n_actions,
            "#branches": len(target),
            "#branch-actions": 0,
            "#observations": 0,
            "branch-probability-type": DOUBLE,
        },
        "annotations": {
            "aps": {label: {"alias": label, "applies-to": ["states"], "type": BOOL} for label in labels},
            "rewards": {COST: {"alias": COST, "applies-to": [where], "type": DOUBLE}},
        },
    }
    return {
        "index.json": json.dumps(index, indent=1).encode(),
        "state-to-choices.bin": offsets(choices).astype("<u8").tobytes(),
        "choice-to-branches.bin": outcome_start.astype("<u8").tobytes(),
        "branch-to-target.bin": target.astype("<u8").tobytes(),
        "branch-to-probability.bin": probability.astype("<f8").tobytes(),
        "state-is-initial.bin": bit_array(state == (len(state) - 1 if drawn else model.initial_state[0])),
        **{f"annotations/aps/{label}/states/values.bin": bit_array(has) for label, has in labels.items()},
        f"annotations/rewards/{COST}/{where}/values.bin": paid.astype("<f8").tobytes(),
        **names,
    }


def _names(model: SSP, loop: IntArray, n_choices: int) -> tuple[dict[str, bytes], int]:
    """Return the members that hold names, and the number of distinct actions; numbers need no names."""
    state, action = written_names(model)
    members: dict[str, bytes] = {}
    n_actions = 0
    if model.state_names is not None:
        members |= string_arrays(NAMES, state, "state")
    if model.action_names is not None:
        number = {name: i for i, name in enumerate(dict.fromkeys(action), start=1)}  # 0: loops and auxiliary states
        value = np.zeros(n_choices, dtype="<u4")
        given = np.fromiter(map(number.__getitem__, action), np.int64, len(action))
        value[: model.n_actions + len(loop)] = np.insert(given, loop, 0)
        members["actions/choices/values.bin"] = value.tobytes()
        members |= string_arrays("actions/choices", ["", *number], "action")
        n_actions = len(number) + 1
    return members, n_actions


def _between(model: SSP) -> tuple[IntArray, IntArray]:
    """Return each outcome's target, and where each auxiliary state in between passes on to.

    If outcomes of one action lead to one state at different costs, the first leads there, and each of the others to an
    auxiliary state of its own that passes on to it.  Actions share these states.
    """
    key, bits = model.outcome_action * model.n_states + model.successor, model.cost.view(np.int64)
    _, first, group, size = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
    differs = np.bincount(group, bits != bits[first][group]) > 0
    rank = np.empty(len(key), dtype=np.int64)  # of each outcome among those of its group
    rank[np.argsort(group, kind="stable")] = np.arange(len(key)) - np.repeat(offsets(size)[:-1], size)
    detour = np.flatnonzero(differs[group] & (rank > 0))
    pair = np.stack([model.successor[detour], rank[detour]], axis=1)
    pairs, which = np.unique(pair, axis=0, return_inverse=True)
    target = model.successor.copy()
    target[detour] = model.n_states + which.reshape(-1)
    return target, pairs[:, 0]
