"""Check a model: its kind, its problems, and what solving it takes."""

from dataclasses import asdict, dataclass, field, fields
from os import PathLike
from typing import Any

import numpy as np

from prudent.engine.prepare import Trapped, prepare
from prudent.engine.prepared import Prepared
from prudent.engine.values.worst_case import true_worst_case
from prudent.errors import ModelError, PrudentError
from prudent.io.formats import load
from prudent.models.amend import amend, leading
from prudent.models.graph import ordered_blocks, reachable
from prudent.models.rows import BoolArray, IntArray, offsets, owner
from prudent.models.ssp import SSP
from prudent.planning.forecast import Forecast, forecast
from prudent.planning.options import Options
from prudent.policies.distribution import check_alpha
from prudent.runtime.limits import Limits, Stopped, shown_bytes
from prudent.runtime.tables import DataFrame, Shown, Table, certain, frame, in_hundredths, number, plain

NAMED = 5
"""The largest number of states that a note names."""


WHOLE = ("states", "actions", "outcomes", "goals", "pruned_states", "pruned_actions")
FLAGS = ("acyclic", "counts", "intervals")
REAL = ("step", "least_cost", "worst_case", "deviation")


@dataclass(frozen=True, repr=False)
class Report(Shown):
    """The findings of :func:`prudent.check`; a field is None if a problem hides its value.

    Examples
    --------
    >>> import prudent
    >>> stuck = {"start": {"go": [(0.5, "end", 1), (0.5, "trap", 1)]}, "trap": {"wait": [(1, "trap", 1)]}}
    >>> report = prudent.check(prudent.build("start", stuck.get, goals=["end"]))
    >>> report.ok, report.goals, report.problems[0].partition(":")[0]
    (False, 1, 'no policy reaches a goal of model with probability 1')
    """

    model: str
    states: int | None = None
    actions: int | None = None
    outcomes: int | None = None
    goals: int | None = None
    acyclic: bool | None = None  # whether no state can be visited twice: finite horizon
    step: float | None = None  # the common step of the costs, if there is one
    least_cost: float | None = None  # the lowest total cost of any run
    worst_case: float | None = None  # the minimal worst-case cost; infinite if no policy bounds the cost
    deviation: float | None = None  # largest |sum of an action's probabilities - 1| as given
    pruned_states: int | None = None  # states that no plan visits
    pruned_actions: int | None = None  # actions of the other states that no plan plays
    counts: bool | None = None  # whether the model was estimated and has the counts of its outcomes
    intervals: bool | None = None  # whether the model has bounds on its probabilities
    forecast: Forecast | None = None  # an estimate of what solving takes
    notes: tuple[str, ...] = field(default=())  # decisions made while reading; what was pruned and why
    problems: tuple[str, ...] = field(default=())  # what to fix before the model can be solved

    @property
    def ok(self) -> bool:
        """Whether the model can be solved."""
        return not self.problems

    def __repr__(self) -> str:
        found = "" if self.states is None else f", {self.states:,} states, {self.outcomes:,} outcomes"
        wrong = "" if self.ok else f", {len(self.problems)} problems"
        return f"<Report on {self.model}: {self._verdict}{found}{wrong}>"

    @property
    def _verdict(self) -> str:
        return "ready to solve" if self.ok else "not ready"

    def to_dict(self) -> dict[str, Any]:
        """Return the findings as ``prudent check --json`` prints them; unknown and infinite values are None.

        Examples
        --------
        >>> import prudent
        >>> prudent.check(prudent.domains.figure_2()).to_dict()["states"]
        4
        """
        return plain({"ok": self.ok, **asdict(self)})

    def to_frame(self) -> DataFrame:
        """Return the findings as a data frame of one row (extra ``frame``); unknown values are missing.

        ``forecast`` has one column per number; notes and problems are text, one line each.

        Examples
        --------
        >>> import prudent
        >>> report = prudent.check(prudent.domains.figure_2())
        >>> report.to_frame()[["model", "ok", "states", "worst_case", "forecast_levels"]]
              model    ok  states  worst_case  forecast_levels
        0  figure-2  True       4        10.0               11
        """
        estimates = {} if self.forecast is None else asdict(self.forecast)
        row = {
            **asdict(self),
            **{f"forecast_{item.name}": estimates.get(item.name) for item in fields(Forecast)},
            "notes": "\n".join(self.notes),
            "problems": "\n".join(self.problems),
        }
        del row["forecast"]
        kinds = dict.fromkeys(WHOLE, "Int64") | dict.fromkeys(REAL, "float64") | dict.fromkeys(FLAGS, "boolean")
        for item in fields(Forecast):
            kinds[f"forecast_{item.name}"] = "Int64" if item.type is int else "float64"
        kinds["forecast_device"] = "object"
        return frame({name: [value] for name, value in {"ok": self.ok, **row}.items()}).astype(kinds)

    def table(self) -> Table:
        """Return what ``prudent check`` prints.

        Examples
        --------
        >>> import prudent
        >>> prudent.check(prudent.domains.figure_2()).table().rows[0]
        ('states', '4', '1 of them goals; finite horizon')
        """
        notes = (*(f"note: {note}" for note in self.notes), *(f"problem: {problem}" for problem in self.problems))
        known = tuple(row for row in self._rows() if row[1])
        return Table(f"{self.model}: {self._verdict}", known, "lrw", notes=notes)

    def _rows(self) -> list[tuple[str, str, str]]:
        if self.states is None:
            return []
        digits = certain(0.0, self.step is not None and in_hundredths(self.step))
        horizon = "finite horizon" if self.acyclic else "cyclic"
        rows = [
            ("states", _shown(self.states), f"{_shown(self.goals)} of them goals; {horizon}"),
            ("actions", _shown(self.actions), ""),
            ("outcomes", _shown(self.outcomes), f"probabilities off by at most {self.deviation:.1g}"),
            ("cost step", _shown(self.step), ""),
            (
                "lowest cost",
                "" if self.least_cost is None else number(self.least_cost, digits),
                "if every outcome is the best",
            ),
            (
                "worst-case cost",
                "" if self.worst_case is None else number(self.worst_case, digits),
                "minimal over all plans",
            ),
            ("pruned", _shown(self.pruned_states), f"states, and {_shown(self.pruned_actions)} actions"),
        ]
        if self.counts:
            rows.append(("counts", _shown(self.outcomes), "--uncertainty 0.95 plans for all models that fit them"))
        if self.intervals:
            rows.append(("bounds", _shown(self.outcomes), "--uncertainty own plans for all models within them"))
        if (takes := self.forecast) is not None:
            rows += [
                ("solving takes", _duration(takes.seconds), f"about, at alpha {takes.alpha:g}"),
                ("", shown_bytes(takes.memory), f"for up to {takes.levels:,} levels of {takes.step:g}"),
            ]
            if takes.device == "gpu":
                rows.append(("on", "gpu", "an NVIDIA GPU would be at least twice as fast (device=, --device)"))
            if takes.gap > 0:
                rows.append(("gap", f"{takes.gap:,.3g}", f"about, between the bounds, by rounding to {takes.step:g}"))
        return rows


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:,g}"


def _duration(seconds: float) -> str:
    """Return a time as text, to about two digits."""
    if np.isnan(seconds):
        return "unknown"
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.2g} {unit}" if seconds < 100 * size else f"{seconds / size:,.0f} {unit}"
    return "under 0.1 s" if seconds < 0.1 else f"{seconds:.2g} s" if seconds < 100 else f"{seconds:.0f} s"


def check(
    model: SSP | str | PathLike[str],
    *,
    alpha: float = 0.05,
    step: float | None = None,
    time_limit: float | None = None,
) -> Report:
    """Report the kind of a model, all its problems (not only the first), and what solving it takes.

    Parameters
    ----------
    model : SSP or path
        The problem, or its file.
    alpha, step : float, optional
        The parameters for which memory, time and gap are estimated; see :func:`prudent.solve`.
    time_limit : float, optional
        Approximate seconds after which the estimates are left out, with a note.

    Examples
    --------
    >>> import prudent
    >>> report = prudent.check(prudent.domains.betting_game())
    >>> report.ok, report.acyclic, report.step, report.worst_case
    (True, True, 1.0, 95.0)
    """
    asked, alpha = Options.of("check", locals()), check_alpha(alpha)
    step, limits = asked.step, asked.limits()
    if not isinstance(model, SSP):
        try:
            model = load(model)
        except ModelError as error:
            return Report(str(model), problems=error.problems)
        except PrudentError as error:
            return Report(str(model), problems=(str(error),))
    known: dict[str, Any] = {"notes": model.notes}
    problems: list[str] = []
    arcs = _arcs(model)
    try:
        how = "to reach the gap" if step is None else f"to multiples of {step:g}"
        known = _findings(prepare(model, None, limits), arcs, how, limits)
        known["forecast"] = forecast(model, alpha, step, limits)
    except Stopped as stopped:
        known["notes"] += (str(stopped),)
    except PrudentError as error:
        problems.append(str(error))
        if isinstance(error, Trapped):
            known["notes"] += (_dead_ends(model),)
            problems += _behind(model, limits)
    return Report(
        model=model.name,
        states=model.n_states,
        actions=model.n_actions,
        outcomes=model.n_outcomes,
        goals=int(model.is_goal.sum()),
        acyclic=ordered_blocks(*arcs).acyclic,
        deviation=model.deviation,
        counts=model.count is not None,
        intervals=model.intervals is not None,
        problems=tuple(problems),
        **known,
    )


def _arcs(model: SSP) -> tuple[IntArray, IntArray]:
    """Return the possible outcomes of each state: their first indices, and their successors."""
    possible = model.probability > 0
    return offsets(possible)[model.arc_start], model.successor[possible]


def _behind(model: SSP, limits: Limits) -> list[str]:
    """Return what else keeps a model from being solved, where a trap is found first: the trap gets a price."""
    try:
        prepare(amend(model, dead_end_cost=0.0), None, limits)
    except Stopped:
        pass
    except PrudentError as error:
        return [str(error)]
    return []


def _dead_ends(model: SSP) -> str:
    return _about(model, ~leading(model, model.is_goal), "lead to no goal")


def _about(model: SSP, which: BoolArray, what: str) -> str:
    """Say what is true of some states, and name a few of them."""
    some = ", ".join(repr(model.state(int(s))) for s in np.flatnonzero(which)[:NAMED])
    more = ", ..." if which.sum() > NAMED else ""
    return f"{int(which.sum()):,} of the states {what}: {some}{more}"


def _findings(prepared: Prepared, arcs: tuple[IntArray, IntArray], how: str, limits: Limits) -> dict[str, Any]:
    model = prepared.model
    arc_start, target = arcs
    start = model.initial_state[model.initial_probability > 0]
    found = reachable(owner(arc_start), target, model.n_states, start)
    pruned = prepared.members.state_of < 0
    avoided, notes = prepared.avoided, list(model.notes)
    for which, why in (
        (~found, "cannot be reached from the start"),
        (pruned & found, "can be reached, but no plan goes there because a run could get stuck"),
    ):
        if which.any():
            notes.append(_about(model, which, why))
    if avoided.any():
        notes.append(about_avoided(model, avoided))
    if inner := len(prepared.members.inner_action):
        notes.append(
            f"{inner:,} of the actions can only move inside cycles at no cost; the states of such a cycle count as one"
        )
    if prepared.scale.rounded:
        notes.append(f"the costs have no common step; solve rounds them {how}")
    worst = true_worst_case(prepared, limits)
    return {
        "step": None if prepared.scale.rounded else prepared.scale.lattice.step,
        "least_cost": prepared.scale.in_units(0),
        "worst_case": prepared.scale.in_units(worst),
        "pruned_states": int(pruned.sum()),
        "pruned_actions": int(avoided.sum()),
        "notes": tuple(notes),
    }


def about_avoided(model: SSP, avoided: BoolArray) -> str:
    """Report how many actions plans avoid, and why."""
    a, count = int(np.flatnonzero(avoided)[0]), int(avoided.sum())
    place = f"{model.action(a)!r} in {model.state(model.state_of_action(a))!r}"
    return f"{count:,} of the actions may lead to a state from which no goal can be reached, for example {place}"
