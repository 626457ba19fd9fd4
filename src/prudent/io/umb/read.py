"""Models in Unified Markov Binary, which PRISM, Storm and Modest share: ``parse``; :mod:`prudent.io.umb.write` writes.

It reads a discrete-time Markov chain or decision process, plain, gzipped or packed with xz.  The goals are the states
with the label "goal", and the costs are the reward "cost" or the only reward; a property like
``R{"time"}min=? [F "done"]`` names others.  Rewards of states, choices and branches add up.  A run ends at a goal, and
transitions from a goal are left out.  Fractions become the nearest doubles.  Intervals of probabilities become the
model's own set, for ``uncertainty="own"``; in each choice, the nominal probabilities then lie at the same fraction of
the way from their lower to their upper bounds.

A model that is written and read again is the same to the last bit.  Goals get a free loop, as Storm requires.  Costs
belong to choices if all outcomes of each action cost the same, so that Storm can bound them, else to branches.  Storm
merges branches of a choice that lead to one state, and allows one initial state.  Where a model needs more, states
labelled as auxiliary pass the run on.  A model with one action in each state is written as a Markov chain.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from prudent.errors import PrudentError, naming
from prudent.io.properties import COST, GOAL, NEGATED, Initial, Start, drawn, referred, reward_property, started, traps
from prudent.io.umb.archive import Arrays, unpacked
from prudent.io.umb.names import action_names, state_names
from prudent.io.umb.write import AUXILIARY
from prudent.io.untrusted import checked, shown
from prudent.models.intervals import Intervals
from prudent.models.rows import SUM_TOLERANCE, BoolArray, FloatArray, IntArray, Rows, offsets
from prudent.models.ssp import SHOWN, SSP

VERSIONS = (0, 1)
"""Versions of the format that are read; 0 is what one library writes for 1."""

BETWEEN = (
    "the file has intervals of probabilities; set uncertainty='own' (--uncertainty own) to plan for all of them; "
    "otherwise the probabilities of each action lie at the same fraction of the way from their lower to upper bounds"
)
"""The note on a model whose probabilities are intervals."""

WHERE = ("states", "choices", "branches")
"""What rewards may belong to."""


def parse(raw: bytes, path: Path, property: str | None = None, initial: Initial | None = None) -> SSP:
    """Return the model in a file's bytes; refuse anything that is not exactly one model."""
    if (found := referred(property)) is not None:
        property = found[0].chosen(found[1], {}, reward_property)
    reward, label, most = (None, GOAL, False) if property is None else reward_property(property)
    with naming(path):
        arrays = Arrays(unpacked(raw))
        graph = TransitionSystem(arrays)
        goal, cost = _labelled(arrays, label, graph.n_states), _costs(arrays, reward, graph)
        first = np.flatnonzero(arrays.bits("state-is-initial.bin", graph.n_states))
        declared = arrays.count(arrays.index["transition-system"], "#initial-states")
        if len(first) != declared or declared == 0:
            raise PrudentError(
                f"state-is-initial.bin: {len(first):,} states are initial, but #initial-states is {declared}; the two "
                "must be equal, and at least 1"
            )
        start = drawn(first, initial)
        acting = ~goal
        if AUXILIARY in arrays.index["annotations"]["aps"]:
            auxiliary = _labelled(arrays, AUXILIARY, graph.n_states)
            start, graph.successor = _passed_on(auxiliary, goal, cost, start, graph)
            acting = acting[~auxiliary]
        for s in np.flatnonzero(acting & graph.is_goal[: len(acting)])[:1]:
            raise PrudentError(
                f"state-to-choices.bin: state {s} has no choices, and lacks the label {label!r} of goals"
            )
        model = graph.model(acting, cost, start, path.name.split(".")[0], most, initial)
        for s in traps(model)[:1] if most else ():
            raise PrudentError(
                f"the maximal total reward is undefined: from state {model.state(s)!r} runs never reach a goal; if "
                f"runs end there, give such states the label {label!r}, too"
            )
        return model


class TransitionSystem(Rows):
    """The states, choices and branches of an archive, as states, actions and outcomes."""

    def __init__(self, arrays: Arrays) -> None:
        if arrays.count(arrays.index, "format-version") not in VERSIONS:
            found = shown(arrays.index["format-version"])
            raise PrudentError(f"index.json: format-version is {found}; this release reads {VERSIONS[-1]}")
        system = checked(arrays.index.get("transition-system"), dict, "index.json: transition-system")
        wrong = "only fully observed, discrete-time Markov chains and decision processes can be read"
        if system.get("time") != "discrete":
            raise PrudentError(f"index.json: time is {shown(system.get('time'))}; {wrong}")
        for name, most in (("#players", 1), ("#observations", 0)):
            if arrays.count(system, name) > most:
                raise PrudentError(f"index.json: {name} is {system[name]}; {wrong}")
        if "branch-probability-type" not in system:
            raise PrudentError(f"index.json: there is no branch-probability-type; {wrong}")
        self.arrays, self.bounds = arrays, None
        sizes = (arrays.count(system, f"#{what}") for what in ("states", "choices", "branches"))
        n_states, n_choices, n_branches = sizes
        member, at = "branch-to-probability.bin", "index.json: branch-probability-type"
        probability = arrays.numbers(member, n_branches, system["branch-probability-type"], at, intervals=True)
        if probability is None:  # read first: its size bounds the arrays made for members that are left out
            raise PrudentError(f"{member} is missing")
        self.outcome_start = arrays.starts("choice-to-branches.bin", n_choices, n_branches)
        self.action_start = arrays.starts("state-to-choices.bin", n_states, n_choices)
        self.successor = arrays.numbers_below("branch-to-target.bin", n_branches, n_states)
        if len(probability) > n_branches:
            self.bounds = probability[::2].copy(), probability[1::2].copy()
            probability = self._between(member, *self.bounds)
        self.probability = probability
        several = np.diff(self.action_start)
        if system["#players"] == 0 and (several > 1).any():
            s = int(several.argmax())
            raise PrudentError(
                f"state-to-choices.bin: state {s} has {several[s]} choices; it must have one, since #players is 0"
            )

    def _between(self, member: str, low: FloatArray, high: FloatArray) -> FloatArray:
        """Return probabilities within intervals: in each choice, the same share of the way from low to high."""
        for o in np.flatnonzero(~((low >= 0) & (low <= high) & (high <= 1)))[:1]:
            raise PrudentError(
                f"{member}: entry {o:,} is from {low[o]:g} to {high[o]:g}; 0 <= low <= high <= 1 must hold"
            )
        choice = self.outcome_action
        least, most = (np.bincount(choice, ends, self.n_actions) for ends in (low, high))
        for c in np.flatnonzero(~((least <= 1 + SUM_TOLERANCE) & (most >= 1 - SUM_TOLERANCE)))[:1]:
            ends = f"from {least[c]:g} to {most[c]:g}"
            raise PrudentError(f"{member}: the intervals of choice {c:,} allow sums {ends}; they must allow 1")
        width = most - least
        share = np.divide(1 - least, width, out=np.zeros_like(width), where=width > 0).clip(0, 1)
        return np.asarray(low + share[choice] * (high - low))

    def costs(self, folder: str, kind: Any, at: str, where: Iterable[str]) -> FloatArray:
        """Return the cost of every branch: the sum of what its state, its choice and the branch itself cost."""
        total = None
        for each in where:
            n = {"states": self.n_states, "choices": self.n_actions, "branches": len(self.successor)}[each]
            value = self.arrays.numbers(f"{folder}/{each}/values.bin", n, kind, at)
            if value is not None:
                if each != "branches":
                    value = value[self.outcome_state if each == "states" else self.outcome_action]
                with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused by the model
                    total = value if total is None else total + value
        return np.zeros(len(self.successor)) if total is None else np.asarray(total)

    def model(
        self, acting: BoolArray, cost: FloatArray, start: Start, name: str, most: bool, initial: Initial | None
    ) -> SSP:
        """Return the model of the first ``len(acting)`` states, of which those that do not act are goals.

        If ``most``, rewards are maximised.
        """
        kept = np.append(acting, np.zeros(self.n_states - len(acting), dtype=bool))[self.action_state]
        taken = kept[self.outcome_action]
        n_labels = self.arrays.count(self.arrays.index["transition-system"], "#choice-actions")
        actions = action_names(self.arrays, n_labels, self.n_actions, self.action_start[:-1][self.action_state])
        model = SSP(
            action_start=offsets(np.where(acting, np.diff(self.action_start)[: len(acting)], 0)),
            outcome_start=offsets(np.diff(self.outcome_start)[kept]),
            probability=self.probability[taken],
            successor=self.successor[taken],
            cost=0.0 - cost[taken] if most else cost[taken],  # without negative zeros
            initial_state=start[0],
            initial_probability=start[1],
            state_names=state_names(self.arrays, len(acting), self.n_states),
            action_names=None if actions is None else [actions[c] for c in np.flatnonzero(kept).tolist()],
            name=name,
            notes=(*start[2], *([BETWEEN] if self.bounds is not None else []), *([NEGATED] if most else [])),
            intervals=None if self.bounds is None else Intervals(*(ends[taken] for ends in self.bounds)),
        )
        return started(model, initial)


def _labelled(arrays: Arrays, label: str, n_states: int) -> BoolArray:
    folder, about = arrays.annotation("aps", label, label)
    kind = checked(about.get("type"), dict, f"{folder}: type").get("type")
    if kind != "bool" or about.get("applies-to") != ["states"]:
        raise PrudentError(f"{folder}: a label must be of type bool, and apply to states and nothing else")
    return arrays.bits(f"{folder}/states/values.bin", n_states)


def _costs(arrays: Arrays, reward: str | None, graph: TransitionSystem) -> FloatArray:
    """Return the cost of every branch by a reward of this name."""
    folder, about = arrays.annotation("rewards", reward, COST)
    if "probability-type" in about:
        raise PrudentError(f"{folder}: is a random reward; costs must be plain numbers")
    applies = dict.fromkeys(map(str, checked(about.get("applies-to"), list, f"{folder}: applies-to")))
    if not applies:
        raise PrudentError(f"{folder}: applies to nothing, so there are no costs; it must apply to {', '.join(WHERE)}")
    for each in applies:
        if each not in WHERE:
            raise PrudentError(f"{folder}: applies to {each[:60]!r}; it must apply to {', '.join(WHERE)}")
    return graph.costs(folder, about.get("type"), f"{folder}: type", applies)


def _passed_on(
    auxiliary: BoolArray, goal: BoolArray, cost: FloatArray, start: Start, graph: TransitionSystem
) -> tuple[Start, IntArray]:
    """Return where runs start, and the successor of every outcome, skipping auxiliary states."""
    n_real, first = int((~auxiliary).sum()), int(start[0][0])
    state, begin, size = np.arange(graph.n_states), graph.arc_start[:-1], np.diff(graph.arc_start)
    passing = auxiliary & (state != first)
    good = auxiliary[n_real:].all() and not (auxiliary & goal).any() and not cost[auxiliary[graph.outcome_state]].any()
    if good and (np.diff(graph.action_start)[auxiliary] == 1).all() and (size[passing] == 1).all():
        state[passing] = graph.successor[begin[passing]]
        successor = state[graph.successor]
        if len(start[0]) == 1 and first >= n_real:
            mine = slice(begin[first], begin[first] + size[first])
            start = graph.successor[mine], graph.probability[mine], ()
        to = np.concatenate([start[0], successor[: graph.arc_start[n_real]]])
        if (graph.probability[begin[passing]] == 1).all() and (to < n_real).all():
            return start, successor
    some = ", ".join(map(str, np.flatnonzero(auxiliary)[:SHOWN]))
    raise PrudentError(
        f"annotations/aps/{AUXILIARY}: states with this label ({some}) must come last and lead, at no cost, to one "
        "state without it (the initial one: to several); was the file changed by hand?"
    )
