"""A plan as a table for people: state, range of cost so far -> action."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from prudent.engine.values.worst_case import UNREACHED
from prudent.errors import PrudentError
from prudent.kernels.following import occupy
from prudent.models.rows import BoolArray, FloatArray, IntArray
from prudent.policies.forwards import MISSING
from prudent.policies.function import follow_function
from prudent.policies.policy import BudgetPolicy
from prudent.runtime.atomic_files import check_place, write_bytes
from prudent.runtime.limits import Limits
from prudent.runtime.tables import DataFrame, Framed, Numbers, Table, at_most, certain, csv_text, frame, number

if TYPE_CHECKING:
    from prudent.results.plan import Plan

SHOWN = 50
"""The most rows that a notebook, or rich, shows; as text, the table is whole."""

COLUMNS = ("state", "at_least", "at_most", "action")
ENDS = COLUMNS[1:3]

NEAR = 1e-12
"""How far beyond the end of a range a cost counts as on it, relative to that end: the rounding error of a sum."""

PATIENCE = 5.0
"""The most seconds that the evaluation of a table takes."""


@dataclass(frozen=True)
class Decision:
    """In ``state``, having spent from ``at_least`` to ``at_most``, play ``action``.

    Where costs are rounded, one row ends where the next begins; at that cost the earlier row applies.  In a table
    of decisions the first row of a state then begins at minus infinity, so that the rows cover every cost.

    Examples
    --------
    >>> import prudent
    >>> prudent.solve(prudent.domains.figure_2(), alpha=0.1).bands("s1")[0]
    Decision(state='s1', at_least=0.0, at_most=0.0, action='d')
    """

    state: Hashable
    at_least: float  # minus infinity in the first row of a state if costs are rounded
    at_most: float  # infinite in the last row of a state
    action: Hashable


@dataclass(frozen=True, repr=False)
class Decisions(Numbers, Framed):
    """All decisions that a run of the plan can face, by state and rising cost so far.

    The column ``spent`` is the cost so far: ``8`` is exactly 8, ``8.3 to 31.7`` includes both ends, and ``39.8 or
    more`` has no upper end.  No run of the plan is ever between two rows.  The table is a policy as well: call it with
    a state and the cost so far, or pass it to :func:`prudent.evaluate`.

    Where costs were rounded, the rows of a state cover every cost so far: one range begins where another ends, and at
    that cost the earlier row applies.  The table, looked up by the true cost so far, is then another policy than the
    plan, whose agent charges itself each cost rounded up and so may have less left.  ``notes`` has the numbers of both.

    Examples
    --------
    >>> import prudent
    >>> trip = {
    ...     "home": {"bus": [(0.5, "work", 2), (0.5, "work", 8)]},
    ...     "work": {"bus": [(0.5, "back", 2), (0.5, "back", 8)], "taxi": [(1, "back", 6)]},
    ... }
    >>> plan = prudent.solve(prudent.build("home", trip.get, goals=["back"]), alpha=0.3)
    >>> print(plan.decisions())
    state  spent  action
    home   0      bus
    work   2      bus
    work   8      taxi
    """

    rows: tuple[Decision, ...]
    plan: "Plan | None" = field(default=None, compare=False)  # whose numbers are not the table's; None: they are

    def __call__(self, state: Hashable, spent: float = 0.0) -> Hashable:
        """Return the action for a state and the cost so far.

        Examples
        --------
        >>> import prudent
        >>> table = prudent.solve(prudent.domains.figure_2(), alpha=0.1).decisions()
        >>> table("s2", 3), prudent.evaluate(prudent.domains.figure_2(), table).cvar(0.1)
        ('b', 10.0)
        """
        return self.actions_at(state, np.array([spent]))[0]

    def actions_at(self, state: Hashable, spent: FloatArray) -> list[Hashable]:
        """Return the action in a state for each of several costs so far (internal)."""
        if state not in self._by_state:
            raise PrudentError(f"there is no row for state {state!r}, in which no run of the table is")
        ends, actions = self._by_state[state]
        return [actions[i] for i in np.searchsorted(ends, spent).tolist()]

    @cached_property
    def _by_state(self) -> dict[Hashable, tuple[FloatArray, list[Hashable]]]:
        found: dict[Hashable, list[Decision]] = {}
        for row in self.rows:
            found.setdefault(row.state, []).append(row)
        return {state: (_between(rows), [row.action for row in rows]) for state, rows in found.items()}

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Where costs were rounded, the expected cost and the CVaR of the table beside those of the plan's agent.

        They are computed when they are asked for, within a few seconds.
        """
        return () if self.plan is None else _both(self, self.plan)

    def __len__(self) -> int:
        return len(self.rows)

    def of(self, state: Hashable) -> tuple[Decision, ...]:
        """Return the decisions in one state.

        Examples
        --------
        >>> import prudent
        >>> prudent.solve(prudent.domains.figure_2(), alpha=0.1).decisions().of("s1")
        (Decision(state='s1', at_least=0.0, at_most=0.0, action='d'),)
        """
        return tuple(row for row in self.rows if row.state == state)

    @overload
    def to_csv(self, *, names: Sequence[str] | None = None) -> str: ...
    @overload
    def to_csv(self, path: str | PathLike[str], *, names: Sequence[str] | None = None) -> None: ...
    def to_csv(self, path: str | PathLike[str] | None = None, *, names: Sequence[str] | None = None) -> str | None:
        """Return the table as CSV, or write it to a file (``.csv``, UTF-8), whole or not at all.

        Text is quoted, numbers are not; an open end is left empty; ``notes`` is not in the file.  A spreadsheet would
        take a name for a formula if it begins with ``=``, ``+``, ``-`` or ``@`` and is not a number; such a name gets
        an apostrophe in front, and so does one that begins with an apostrophe: remove one to get the name.  Invisible
        characters at the beginning are skipped in this.  :meth:`to_dict` and :meth:`to_frame` keep names as they are.

        Parameters
        ----------
        path : str or path, optional
            Where to write it; without one the text is returned.
        names : sequence of str, optional
            If states are tuples, a column for each of their parts: ``("week", "stock")``.

        Examples
        --------
        >>> import prudent
        >>> prudent.solve(prudent.domains.figure_2(), alpha=0.1).decisions().to_csv().splitlines()
        ['"state","at_least","at_most","action"', '"s0",0.0,0.0,"a"', '"s1",0.0,0.0,"d"', '"s2",0.0,,"b"']
        >>> decisions = prudent.solve(prudent.domains.betting_game(), alpha=0.2).decisions()
        >>> decisions.to_csv(names=("stage", "money")).splitlines()[:2]
        ['"stage","money","at_least","at_most","action"', '0,5,0.0,0.0,2']
        """
        if path is not None:
            check_csv_path(path)
        columns = self._columns(names)
        for name in ENDS:
            columns[name] = [None if np.isinf(end) else end for end in columns[name]]
        text = csv_text(tuple(columns), zip(*columns.values(), strict=True))
        if path is None:
            return text
        try:
            content = text.encode()
        except UnicodeEncodeError as error:
            near = text[max(error.start - 20, 0) : error.end]
            why = f"UTF-8 has no {near[-1]!r}, in {near!r}; rename that"
            raise PrudentError(f"{path}: cannot be written: {why}") from None
        write_bytes(Path(path), content)
        return None

    def _content(self) -> dict[str, Any]:
        rows = [vars(row) | {"state": str(row.state), "action": str(row.action)} for row in self.rows]
        return {"decisions": rows, **({"decisions_notes": self.notes} if self.notes else {})}

    def to_frame(self, *, names: Sequence[str] | None = None) -> DataFrame:
        """Return the rows as a data frame (extra ``frame``): names as they are, an open end is infinite.

        ``names`` splits states that are tuples, as in :meth:`to_csv`.

        Examples
        --------
        >>> import prudent
        >>> plan = prudent.solve(prudent.domains.betting_game(stages=2), alpha=0.1)
        >>> plan.decisions().to_frame(names=("stage", "money"))
           stage  money  at_least  at_most action
        0      0      5       0.0      0.0      0
        1      1      5       0.0      0.0      0
        2      2      5       0.0      inf   stop
        """
        columns: dict[str, Any] = self._columns(names)
        return frame(columns | {name: np.array(columns[name], float) for name in ENDS})

    def _columns(self, names: Sequence[str] | None = None) -> dict[str, list[Any]]:
        """Return the table by columns; with ``names``, each part of a state has one."""
        columns: dict[str, list[Any]] = {name: [getattr(row, name) for row in self.rows] for name in COLUMNS}
        if names is None:
            return columns
        named = isinstance(names, Sequence) and not isinstance(names, str)
        if not named or not all(isinstance(name, str) for name in names):
            raise PrudentError(f"names is {names!r}; it must be a sequence of texts, one for each part of a state")
        if twice := {name for name in names if [*names, *COLUMNS[1:]].count(name) > 1}:
            raise PrudentError(f"names: {min(twice)!r} would name two columns")
        for state in columns.pop("state"):
            if not isinstance(state, tuple) or len(state) != len(names):
                raise PrudentError(f"names has {len(names)} names, but state {state!r} is no tuple of as many parts")
        return {name: [row.state[i] for row in self.rows] for i, name in enumerate(names)} | columns  # type: ignore[index]

    def _table(self) -> Table:
        return self.whole(SHOWN)

    def whole(self, most: int | None = None) -> Table:
        """Return all rows as a table, or the first of them (internal)."""
        rows = self.rows[:most]
        more = len(self.rows) - len(rows)
        notes = (f"{more:,} more rows; print(decisions), to_frame() and to_csv() have all",) if more > 0 else ()
        cells = tuple((str(row.state), _range(row, self.plan is not None), str(row.action)) for row in rows)
        return Table("", cells, "wlw", head=("state", "spent", "action"), notes=(*notes, *self.notes))

    def __str__(self) -> str:
        return str(self.whole())

    def __repr__(self) -> str:
        return f"<Decisions: {len(self.rows):,} rows for {len({row.state for row in self.rows}):,} states>"


def _range(row: Decision, rounded: bool) -> str:
    """Return a range of costs so far as text, with all its digits."""
    low, high = f"{row.at_least:.12g}", f"{row.at_most:.12g}"
    if np.isinf(row.at_least):
        return "any" if np.isinf(row.at_most) else f"up to {high}"
    if np.isinf(row.at_most):
        return f"more than {low}" if rounded else f"{low} or more"
    return f"{low} to {high}" if row.at_most > row.at_least else low


def _between(rows: list[Decision]) -> FloatArray:
    """Return a cost between every two rows of a state: in the middle, or just above the end where they meet."""
    end, begin = np.array([(row.at_most, after.at_least) for row, after in pairwise(rows)]).reshape(-1, 2).T
    return np.asarray(end + np.maximum((begin - end) / 2, NEAR * np.abs(end)))


def _both(table: Decisions, plan: "Plan") -> tuple[str, ...]:
    """Say what the table is, and give its numbers beside those of the plan."""
    step = plan.policy.prepared.scale.step
    first = (
        "looked up by the true cost so far, this table is another policy than the plan: the plan's agent "
        f"(plan.policy.start()) charges itself each cost rounded up to multiples of {step:g}"
    )
    digits = certain(0.0, plan.policy.prepared.scale.money)
    sure = plan.method == "exact" and plan.objective is None and plan.max_cvar == np.inf
    agent = f"the plan by its agent: expected cost {plan.own_expected}, CVaR {plan.own_cvar}"
    if sure and np.isfinite(plan.upper) and " at most " not in agent:  # that bound is the agent's, not the table's
        agent += f" and at most {at_most(plan.upper, digits)}"
    try:
        found = follow_function(plan.model, table, None, MISSING, Limits.of(None, PATIENCE))
    except PrudentError:  # it takes too long, or too much memory
        return first, f"{agent}; this table: unknown, since evaluating it takes too long"
    about = "about " if found.grouped else ""
    own = f"expected cost {about}{number(found.mean, digits)}, CVaR {about}{number(found.cvar(plan.alpha), digits)}"
    return first, f"{agent}; this table: {own}"


def check_csv_path(path: str | PathLike[str]) -> None:
    """Refuse a path where no CSV file can be written, before anything is computed."""
    check_place(path, ".csv", "decisions are written")


def decisions_of(plan: "Plan") -> Decisions:
    """Return the decisions that a run of the plan's table can meet."""
    policy = plan.policy
    if not policy.prepared.scale.rounded:
        return Decisions(met_of(policy))
    policy.refuse_as("is no table")
    model = policy.prepared.model
    rows: dict[int, tuple[Decision, ...]] = {}
    ahead = model.initial_state[model.initial_probability > 0].tolist()
    while ahead:  # a run by the table may come where no run of the plan does
        state = ahead.pop()
        if state in rows or model.is_goal[state]:
            continue
        first, *more = bands_of(policy, model.state(state))
        rows[state] = (replace(first, at_least=-np.inf), *more)
        for action in {model.find_action(state, row.action) for row in rows[state]}:
            outcome = slice(*model.outcome_start[action : action + 2])
            ahead += model.successor[outcome][model.probability[outcome] > 0].tolist()
    same = all(len(some) == 1 for some in rows.values())  # then state alone decides
    return Decisions(tuple(row for state in sorted(rows) for row in rows[state]), None if same else plan)


def met_of(policy: BudgetPolicy) -> tuple[Decision, ...]:
    """Return the decisions that a run of the policy, by its agent, can meet."""
    policy.refuse_as("is no table")
    prepared, model = policy.prepared, policy.prepared.model
    width, rows = policy.level + 1, list[Decision]()
    pairs, least = _pairs(policy)
    met = np.unique(pairs)
    first = np.searchsorted(met, width * np.arange(prepared.n_states + 1))  # of each state's pairs
    for state in np.flatnonzero((prepared.members.state_of >= 0) & ~model.is_goal).tolist():
        inside = prepared.members.state_of[state]
        level = met[first[inside] : first[inside + 1]][::-1] % width  # falling budget: rising cost
        if len(level) == 0:
            continue
        if prepared.scale.rounded:  # true costs reach the levels in between, too
            level = np.arange(level[0], level[-1] - 1, -1)
        rows += _rows(policy, state, level, int(least[inside]), policy.model_actions_at(state, level))
    return tuple(rows)


def states_met(policy: BudgetPolicy) -> BoolArray:
    """Return which prepared states runs of a policy can meet, with whatever budget; it takes less memory than pairs."""
    pairs, met = _pairs(policy)[0], np.zeros(policy.prepared.n_states, dtype=bool)
    pairs //= policy.level + 1
    met[pairs] = True
    return met


def _pairs(policy: BudgetPolicy) -> tuple[IntArray, IntArray]:
    """Return the pairs of state and remaining budget that runs can meet, as ``state * (level + 1) + left``.

    States are prepared ones.  Also return the fewest levels that a run has used in a state once its budget is spent.
    """
    prepared, least = policy.prepared, np.full(policy.prepared.n_states, UNREACHED, dtype=np.int64)
    rows = prepared.action_start, prepared.outcome_start, prepared.successor, prepared.cost
    return occupy(rows, policy.choices, policy.level, prepared.start, least), least


def bands_of(policy: BudgetPolicy, state: Hashable) -> tuple[Decision, ...]:
    """Return the decisions in a state for every cost so far, from the least that a run of any policy can have spent."""
    policy.refuse_as("is no table")
    index = policy.covered(state)
    least = int(policy.prepared.least_spent[policy.prepared.members.state_of[index]])
    level = np.arange(max(policy.level - least, 0), -1, -1)
    return tuple(_rows(policy, index, level, max(policy.level, least), policy.model_actions_at(index, level)))


def _rows(policy: BudgetPolicy, state: int, level: IntArray, least: int, action: NDArray[Any]) -> Iterator[Decision]:
    """Yield ranges of cost so far, by falling remaining budget; ``least``: the fewest levels used with none left."""
    prepared, model = policy.prepared, policy.prepared.model
    used = np.where(level > 0, policy.level - level, least)
    spent = prepared.scale.totals(used, state)
    first = np.flatnonzero(np.append(True, action[1:] != action[:-1]))
    last = np.append(first[1:] - 1, len(level) - 1)
    for i, j in zip(first.tolist(), last.tolist(), strict=True):
        begin, end = float(spent[i]), np.inf if level[j] == 0 else float(spent[j])
        if prepared.scale.rounded:  # a level stands for what rounds up to it
            begin = float(prepared.scale.totals(np.maximum(used[i] - 1, 0), state))
        yield Decision(model.state(state), begin, end, model.action(int(action[i])))
