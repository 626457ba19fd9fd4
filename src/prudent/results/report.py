"""Report: what is known of a model before it is solved, and what solving it takes."""

from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np

from prudent.runtime.limits import shown_bytes
from prudent.runtime.tables import Framed, Numbers, Table, certain, in_hundredths, number

KINDS: dict[Any, str] = {
    **dict.fromkeys((int, int | None), "Int64"),
    **dict.fromkeys((float, float | None), "float64"),
    bool | None: "boolean",
}
"""The kinds of columns in a data frame, by the types of fields."""


@dataclass(frozen=True)
class Forecast:
    """Estimates of what a solve takes.

    Examples
    --------
    >>> import prudent
    >>> forecast = prudent.check(prudent.domains.figure_2(), alpha=0.1).forecast
    >>> forecast.levels, forecast.memory < 10_000, forecast.gap
    (11, True, 0.0)
    """

    alpha: float
    step: float  # the unit that costs are counted in, or rounded to
    levels: int
    memory: int  # bytes
    seconds: float
    gap: float  # between the bounds; 0 if costs are exact
    device: str = "cpu"  # the advised device: "gpu" if there is one and it is at least twice as fast


@dataclass(frozen=True, repr=False)
class Report(Numbers, Framed):
    """The findings of :func:`prudent.check`; a field is None if a problem hides its value.

    A data frame has one row: ``forecast`` has one column per number; notes and problems are text, one line each.

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

    def _content(self) -> dict[str, Any]:
        return {"ok": self.ok, **asdict(self)}

    def _columns(self) -> dict[str, Any]:
        estimates = {} if self.forecast is None else asdict(self.forecast)
        row = {
            **self._content(),
            **{f"forecast_{item.name}": estimates.get(item.name) for item in fields(Forecast)},
            "notes": "\n".join(self.notes),
            "problems": "\n".join(self.problems),
        }
        del row["forecast"]
        return {name: [value] for name, value in row.items()}

    def _kinds(self) -> dict[str, str]:
        estimates = {f"forecast_{item.name}": KINDS.get(item.type, "object") for item in fields(Forecast)}
        return {item.name: KINDS[item.type] for item in fields(Report) if item.type in KINDS} | estimates

    def _table(self) -> Table:
        notes = (*(f"note: {note}" for note in self.notes), *(f"problem: {problem}" for problem in self.problems))
        known = tuple(row for row in self._rows() if row[1])
        return Table(f"{self.model}: {self._verdict}", known, "lrw", notes=notes)

    def _rows(self) -> list[tuple[str, str, str]]:
        if self.states is None:
            return []
        digits = certain(0.0, self.step is not None and in_hundredths(self.step))
        least, most = ("" if cost is None else number(cost, digits) for cost in (self.least_cost, self.worst_case))
        horizon = "finite horizon" if self.acyclic else "cyclic"
        rows = [
            ("states", _shown(self.states), f"{_shown(self.goals)} of them goals; {horizon}"),
            ("actions", _shown(self.actions), ""),
            ("outcomes", _shown(self.outcomes), f"probabilities off by at most {self.deviation:.1g}"),
            ("cost step", _shown(self.step), ""),
            ("lowest cost", least, "if every outcome is the best"),
            ("worst-case cost", most, "minimal over all plans"),
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
