"""The expected number of times that a run of a plan plays each action."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, eye_array
from scipy.sparse.linalg import splu

from prudent.errors import PrudentError
from prudent.models.graph import reachable
from prudent.models.rows import FloatArray
from prudent.models.ssp import SSP
from prudent.policies.forwards import MISSING, followed
from prudent.policies.policy import BudgetPolicy
from prudent.runtime.tables import Framed, Numbers, Table, small

SHOWN = 50
"""The most rows of a table."""


@dataclass(frozen=True, eq=False, repr=False)
class Visits(Numbers, Framed):
    """The expected number of times that a run plays each action; what :meth:`prudent.Plan.visits` returns.

    ``to_dict()`` and ``to_frame()`` have all actions that are played, ``table()`` the 50 that are played most.

    Examples
    --------
    >>> import prudent
    >>> visits = prudent.solve(prudent.domains.figure_2(), alpha=0.1).visits()
    >>> visits
    <Visits for figure-2: 3 actions, 2 plays>
    >>> visits.played.round(6).tolist()
    [1.0, 0.0, 0.9, 0.0, 0.1]
    >>> print(visits.table())
    figure-2: expected number of times that a run plays an action
    state  action  times
    s0     a         1
    s1     d         0.9
    s2     b         0.1
    """

    model: SSP
    played: FloatArray  # (model.n_actions,)

    def of(self, state: Hashable, action: Hashable | None = None) -> float:
        """Return the expected number of actions of a run in a state, or of one action there; goals have none.

        Examples
        --------
        >>> import prudent
        >>> visits = prudent.solve(prudent.domains.figure_2(), alpha=0.1).visits()
        >>> visits.of("s2"), visits.of("s1", "e")
        (0.1, 0.0)
        """
        index = self.model.index(state)
        if action is not None:
            return float(self.played[self.model.find_action(index, action)])
        return float(self.played[self.model.action_start[index] : self.model.action_start[index + 1]].sum())

    def _content(self) -> dict[str, Any]:
        rows = [{"state": str(s), "action": str(a), "times": times} for s, a, times in self._rows()]
        return {"model": self.model.name, "visits": rows}

    def _columns(self) -> dict[str, Any]:
        rows = self._rows()
        times = np.array([row[2] for row in rows], dtype=float)
        return {"state": [row[0] for row in rows], "action": [row[1] for row in rows], "times": times}

    def _table(self) -> Table:
        rows = sorted(self._rows(), key=lambda row: -row[2])
        more = len(rows) - SHOWN
        title = f"{self.model.name}: expected number of times that a run plays an action"
        cells = tuple((str(s), str(a), small(times)) for s, a, times in rows[:SHOWN])
        notes = (f"{more:,} more rows; to_dict() and to_frame() have all",) if more > 0 else ()
        return Table(title, cells, "wwd", head=("state", "action", "times"), notes=notes)

    def _rows(self) -> list[tuple[Hashable, Hashable, float]]:
        model = self.model
        played = np.flatnonzero(self.played).tolist()
        return [(model.state(model.state_of_action(a)), model.action(a), float(self.played[a])) for a in played]

    def __repr__(self) -> str:
        return (
            f"<Visits for {self.model.name}: {np.count_nonzero(self.played):,} actions, {self.played.sum():.6g} plays>"
        )


def visits_of(policy: BudgetPolicy) -> Visits:
    """Return how often a policy plays each action of its model."""
    prepared, model = policy.prepared, policy.prepared.model
    count = np.zeros(model.n_actions)
    for share, part in policy.parts:
        played = times_played(part) * part.prepared.plays
        _refuse_free_cycles(part, played)
        taken = np.flatnonzero((prepared.model_action >= 0) & (played > 0))  # the first chance step is no model action
        np.add.at(count, prepared.model_action[taken], share * played[taken])
    return Visits(model, count)


def _refuse_free_cycles(policy: BudgetPolicy, played: FloatArray) -> None:
    """Refuse a policy that acts in collapsed states, since free moves among their members are not counted."""
    prepared, model = policy.prepared, policy.prepared.model
    plain_state, state_of = policy.plain_state, prepared.members.state_of
    count = np.bincount(state_of[state_of >= 0], minlength=int(plain_state.max()) + 1)
    shared = np.flatnonzero((count[plain_state[prepared.action_state]] > 1) & (played > 0))
    if len(shared):
        state = np.flatnonzero(state_of == plain_state[prepared.action_state[shared[0]]])[0]
        raise PrudentError(
            f"visits are not counted where runs can go round at no cost, as in state {model.state(int(state))!r}: "
            "simulate with paths=, or give those moves a cost"
        )


def times_played(policy: BudgetPolicy) -> FloatArray:
    """Return how often each action of the prepared model is played in a run, in expectation; free loops count once.

    The policy is followed forwards until the budget is gone.  From then on it depends on the state alone, and a linear
    system gives the rest, so nothing is cut off.
    """
    prepared = policy.prepared
    found = followed(policy, 1, policy.level, MISSING)
    played = found.played
    if found.missing == 0:
        return played
    choice, acting = policy.without_budget, ~prepared.is_goal
    arrived = found.there * acting
    arc = np.flatnonzero(prepared.playing(choice)[prepared.outcome_action] & acting[prepared.successor])
    source, target = prepared.outcome_state[arc], prepared.successor[arc]
    met = np.flatnonzero(reachable(source, target, prepared.n_states, np.flatnonzero(arrived > 0)))
    rank = np.full(prepared.n_states, -1, dtype=np.int64)
    rank[met] = np.arange(len(met))
    inside = rank[source] >= 0  # then the target is met as well
    place = rank[target[inside]], rank[source[inside]]
    move = csr_array((prepared.probability[arc[inside]], place), shape=(len(met), len(met)))
    played[choice[met]] += np.maximum(splu((eye_array(len(met)) - move).tocsc()).solve(arrived[met]), 0.0)
    return played
