"""Models in DRN, Storm's explicit text format; :func:`prudent.io.storm.files.read_explicit` reads them.

Goals carry the label ``goal`` and loop at no cost; the costs are the reward model ``cost``.  In DRN a cost belongs to
an action, not to its outcomes.  If outcomes of one action differ in cost, each leads to its next state through a state
labelled ``pay``, in which the cost is paid: the total cost of every run stays the same, while runs have more steps.
Several initial states become one, labelled ``init``, which leads to them with their probabilities.  Names of states are
comments, which Storm does not read.
"""

import re
from collections.abc import Iterator

import numpy as np

from prudent.errors import printable
from prudent.models.build import merge_outcomes
from prudent.models.rows import FloatArray, IntArray, owner, starts
from prudent.models.ssp import SSP

ODD = re.compile(r"[^\w.+-]")
"""Characters that an action's name may not have in DRN, where blanks and brackets end it."""


def content_of(model: SSP) -> bytes:
    """Return the bytes of a file: a Markov chain where each state has one action, else an MDP."""
    return "\n".join([*_lines(model), ""]).encode("utf-8", "replace")


def _lines(model: SSP) -> Iterator[str]:
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
    yield from ("// Written by prudent", f"@type: {'MDP' if (np.diff(model.action_start) > 1).any() else 'DTMC'}")
    yield from ("@value_type: double", "@parameters", "", "@reward_models", "cost", "@nr_states")
    yield from (str(model.n_states + len(paid) + (len(first) > 1)), "@nr_choices", str(n_rows), "@model")
    action_start, goals = model.action_start.tolist(), model.is_goal.tolist()
    for s in range(model.n_states):
        yield f"state {s} [0]{' init' if len(first) == 1 and s == first[0] else ''}{' goal' if goals[s] else ''}"
        yield f"//[{printable(model.state(s))}]"
        if goals[s]:
            yield from ("\taction done [0]", f"\t\t{s} : 1")
        actions = range(action_start[s], action_start[s + 1])
        for a, name in zip(actions, _names(model, actions), strict=True):
            yield f"\taction {name} [{price[a]!r}]"
            yield from (f"\t\t{leads[o]} : {chance[o]}" for o in range(start[a], start[a + 1]))
    for i, (to, value) in enumerate(paid, start=model.n_states):
        yield from (f"state {i} [0] pay", f"\taction pay [{value!r}]", f"\t\t{to} : 1")
    if len(first) > 1:
        yield from (f"state {model.n_states + len(paid)} [0] init", "\taction start [0]")
        order = np.argsort(first)
        yield from (f"\t\t{s} : {p!r}" for s, p in zip(first[order].tolist(), weight[order].tolist(), strict=True))


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
