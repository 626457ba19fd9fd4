"""A plan as a table for people: state, range of cost so far -> action."""

import csv
import io
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from prudent.chain import costs_of
from prudent.errors import PrudentError, printable
from prudent.kernels.forwards import occupy
from prudent.policy import BudgetPolicy, MixedPolicy, UnrolledPolicy
from prudent.values.rounds import free_round
from prudent.values.worst_case import UNREACHED

__all__ = ["Decision", "Decisions", "decisions_of"]


@dataclass(frozen=True)
class Decision:
    """In ``state``, having spent from ``at_least`` to ``at_most``, play ``action``.

    Where costs are rounded, one row ends where the next begins; there the earlier one counts.
    """

    state: Hashable
    at_least: float
    at_most: float  # infinite where nothing changes any more
    action: Hashable


@dataclass(frozen=True)
class Decisions:
    """All decisions a run of the plan can meet, by state and rising cost so far."""

    rows: tuple[Decision, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def of(self, state: Hashable) -> tuple[Decision, ...]:
        """Return the decisions in one state."""
        return tuple(row for row in self.rows if row.state == state)

    def to_csv(self) -> str:
        """Return the table as CSV; an open end is left empty."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["state", "at_least", "at_most", "action"])
        for row in self.rows:
            writer.writerow([row.state, row.at_least, "" if np.isinf(row.at_most) else row.at_most, row.action])
        return text.getvalue()

    def __str__(self) -> str:
        cells = [("state", "spent", "action")]
        for row in self.rows:
            if np.isinf(row.at_most):
                spent = f"{row.at_least:g} or more"
            else:
                spent = f"{row.at_least:g}" + (f" to {row.at_most:g}" if row.at_most > row.at_least else "")
            cells.append((printable(row.state), spent, printable(row.action)))
        width = [max(len(row[i]) for row in cells) for i in range(3)]
        return "\n".join(f"{s:<{width[0]}}  {c:<{width[1]}}  {a}".rstrip() for s, c, a in cells)


def decisions_of(policy: BudgetPolicy) -> Decisions:
    """Return the decisions that a run of the policy can meet."""
    if isinstance(policy, UnrolledPolicy):
        raise PrudentError("a plan that remembers more than the cost so far is no table of it; use method='exact'")
    if isinstance(policy, MixedPolicy):
        raise PrudentError("a plan that draws one of two policies is no table; take those of policy.parts")
    prepared, model = policy.prepared, policy.prepared.model
    arcs = free_round(prepared)
    seen = np.zeros(policy.choice.shape, dtype=bool)
    least = np.full(prepared.n_states, UNREACHED, dtype=np.int64)
    occupy(arcs, costs_of(prepared, arcs), policy.choice, prepared.start, seen, least)
    table, rows = policy.model_actions, []
    for state in np.flatnonzero((prepared.state_of >= 0) & ~model.is_goal).tolist():
        inside = prepared.state_of[state]
        level = np.flatnonzero(seen[:, inside])[::-1]  # falling budget: rising cost
        if len(level) == 0:
            continue
        if prepared.rounded:  # true costs reach the levels in between, too
            level = np.arange(level[0], level[-1] - 1, -1)
        used = np.where(level > 0, policy.level - level, least[inside])
        spent, action = prepared.totals(used, state), table[level, state]
        first = np.flatnonzero(np.append(True, action[1:] != action[:-1]))
        last = np.append(first[1:] - 1, len(level) - 1)
        for i, j in zip(first.tolist(), last.tolist(), strict=True):
            begin, end = float(spent[i]), np.inf if level[j] == 0 else float(spent[j])
            if prepared.rounded:  # a level stands for what rounds up to it
                begin = float(prepared.totals(np.maximum(used[i] - 1, 0), state))
            rows.append(Decision(model.state(state), begin, end, model.action(int(action[i]))))
    return Decisions(tuple(rows))
