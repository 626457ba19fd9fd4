"""The maximal or minimal probability of staying within a budget, for many budgets at once.

One sweep answers for all budgets (:mod:`prudent.methods.over_budget`), where model checkers answer for one at a time.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from prudent.engine.prepare import prepare
from prudent.engine.prepared import Prepared
from prudent.engine.values.worst_case import UNREACHED, least_worst_case
from prudent.errors import PrudentError, as_number
from prudent.methods.over_budget import SWEEPING, exceeding, finishing, with_arrivals
from prudent.models.rows import BoolArray, FloatArray, IntArray
from prudent.models.ssp import SSP, check_model
from prudent.planning.bounds import Stage, Stop
from prudent.planning.check import about_avoided
from prudent.planning.driver import Question, answer
from prudent.planning.job import Job, begin
from prudent.planning.options import Options
from prudent.planning.plans import stopped_late
from prudent.planning.refine import chance_step
from prudent.runtime.limits import Limits, Stopped
from prudent.runtime.tables import Framed, Numbers, Table, bounds, certain, number, small

TAIL = 0.1
"""The alpha for which a step is chosen if costs have no common step and the user gives none."""

NOTHING = 2.0**-60
"""A probability of exceeding a budget that makes no difference to 1 minus it."""


@dataclass(frozen=True, eq=False, repr=False)
class Chances(Numbers, Framed):
    """The result of :func:`prudent.chances`, with one entry per budget.

    Examples
    --------
    >>> import prudent
    >>> found = prudent.chances(prudent.domains.figure_2(), [1, 9, 10])
    >>> found.chance.round(9).tolist()
    [0.855, 0.9, 1.0]
    """

    model: SSP
    budgets: FloatArray
    chance: FloatArray  # the probability found of a total cost within the budget, maximal or minimal
    lower: FloatArray  # bounds on the maximal or minimal probability over all plans
    upper: FloatArray
    step: float | None  # the step that costs were rounded to; None if they were not
    seconds: float
    worst: bool = False  # whether these are minimal probabilities
    notes: tuple[str, ...] = ()  # which plans count, if that matters
    device: str = "cpu"  # the device that computed them

    def _columns(self) -> dict[str, FloatArray]:
        return {"budget": self.budgets, "chance": self.chance, "lower": self.lower, "upper": self.upper}

    @property
    def gap(self) -> float:
        """The largest gap between the bounds."""
        return float((self.upper - self.lower).max(initial=0.0))

    def _content(self) -> dict[str, Any]:
        columns = self._columns()
        points = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        names = ("worst", "step", "seconds", "notes", "device")
        return {"model": self.model.name, "points": points, **{name: getattr(self, name) for name in names}}

    def _table(self) -> Table:
        rounded = () if self.step is None else (f"costs were rounded to multiples of {self.step:g}",)
        digits = map(certain, self.upper - self.lower)
        columns = {
            "budget": list(map(number, self.budgets)),
            "probability": [small(*each) for each in zip(self.chance, digits, strict=True)],
        }
        limits = [bounds(*pair, tiny=True) for pair in zip(self.lower, self.upper, strict=True)]
        if any(low != high for low, high in limits):
            columns |= {"lower bound": [low for low, _ in limits], "upper bound": [high for _, high in limits]}
        which = "lowest" if self.worst else "highest"
        title = f"{self.model.name}: {which} probability of a total cost within a budget, {self.seconds:.3g} s"
        return Table.of(title, columns, "d" * len(columns), notes=(*rounded, *self.notes))

    def __repr__(self) -> str:
        return f"<Chances for {self.model.name}: {len(self.budgets):,} budgets, bounds up to {self.gap:.2g} apart>"


def chances(
    model: SSP,
    budgets: Iterable[float],
    *,
    worst: bool = False,
    step: float | None = None,
    memory: int | float | str | None = None,
    time_limit: float | None = None,
    threads: int | None = None,
    device: str = "cpu",
) -> Chances:
    """Return the maximal probability of a total cost within each budget, or the minimal one, with bounds.

    One sweep answers for all budgets; ``solve`` with ``objective=prudent.Exceedance(k)`` returns the best plan for one.
    For the maximal probability only plans that reach a goal with probability 1 count, as everywhere in Prudent.  If
    every state can reach a goal, this is a model checker's ``Pmax=? [F{"cost"}<=k "goal"]``; otherwise ``notes`` report
    that actions were left out.  The minimal probability, ``worst=True``, is ``Pmin=? [F{"cost"}<=k "goal"]``: all
    policies count.  It is 0 if a policy can avoid the goals forever: a run that never ends is within no budget.

    Parameters
    ----------
    model : SSP
    budgets : numbers
        The budgets, in any order.
    worst : bool
        Return the minimal probability instead: no policy, however bad, has a smaller one.
    step, memory, time_limit, threads, device : optional
        As in :func:`prudent.solve`; bounds account for rounding.  At the time limit those found so far are returned,
        with a note.

    Examples
    --------
    >>> import prudent
    >>> game = prudent.domains.betting_game()
    >>> prudent.chances(game, range(40, 101, 20)).chance.round(6).tolist()
    [0.311146, 0.488546, 0.822041, 1.0]
    >>> prudent.chances(game, range(40, 101, 20), worst=True).chance.round(6).tolist()
    [0.0, 0.0, 0.0, 1.0]
    """
    given = locals()
    check_model(model)
    if not isinstance(budgets, Iterable):
        raise PrudentError(f"budgets is {budgets!r}; it must be a sequence of numbers, such as [10, 20]")
    wanted = np.array([as_number("budgets", each, "finite numbers", np.isfinite) for each in budgets], dtype=float)
    asked = Options.of("chances", given)
    swept, endless = with_arrivals(model) if worst else (model, None)
    job = begin(swept, TAIL, asked)
    if worst and job.step is not None and not prepare(swept, None, job.limits).fine.any():
        job = replace(job, step=None)  # if runs end at once, there is no cost to round
    job = replace(job, within=float(wanted.max(initial=-np.inf)))  # larger totals do not matter
    with job.stopping():
        stage = answer((_Least if worst else _Greatest)(job, wanted))
    prepared, scale = stage.prepared, stage.prepared.scale
    notes = list(model.notes)
    if job.step is None and scale.rounded and scale.slip == 0:
        common = f"{scale.lattice.step:g}"
        notes.append(
            f"costs were rounded: their common step, {common}, would take too much work; set step={common} to use it"
        )
    notes += [stopped_late(job.limits)] if stage.stopped else []
    notes += _who_counts(model, prepared, endless)
    rounded = scale.level_size if scale.rounded else None
    return Chances(model, wanted, *stage.found, rounded, job.seconds, worst, tuple(notes), device)


Bounded = tuple[FloatArray, FloatArray, FloatArray]
"""Probabilities, lower bounds and upper bounds, with one entry per budget."""


class _Greatest(Question[Bounded]):
    """The maximal probabilities of staying within budgets, with their bounds; there is no gap to reach."""

    order, step_for = 1, staticmethod(chance_step)

    def __init__(self, job: Job, budgets: FloatArray) -> None:
        super().__init__(job)
        self.budgets = budgets

    def levels(self, prepared: Prepared) -> IntArray:
        """Return the budgets in levels; -1 for those that best luck exceeds."""
        within = prepared.scale.level_within
        return np.array([max(min(within(budget), UNREACHED), -1) for budget in self.budgets], dtype=np.int64)

    def attempt(self, prepared: Prepared, limits: Limits) -> Stage[Bounded]:
        """Sweep the budgets."""
        level, worst = self.levels(prepared), int(least_worst_case(prepared, limits).value[prepared.start])
        most = max(int(min(level.max(initial=0), worst)), 0)
        found = exceeding(prepared, most, limits, least=NOTHING, partial=True)
        inside = np.clip(level, 0, len(found.chance) - 1)
        some, sure = level >= 0, level >= worst  # best luck is within the budget; some plan never exceeds it
        chance, lower, upper = (
            np.where(some, np.where(sure, 1.0, less), 0.0)
            for less in (
                1.0 - found.chance[inside],
                _complement(found.high[inside], 0.0),
                np.where(inside < level, 1.0, _complement(found.low[inside], 1.0)),
            )
        )
        return Stage(prepared, (chance, lower, upper), stopped=found.stopped)

    def at_hand(self, stopped: Stopped) -> Stage[Bounded]:
        """Return that budgets below best luck are surely exceeded; nothing is known of others."""
        if stopped.reason != Stop.TIME:
            raise Stopped(stopped.reason, SWEEPING)
        prepared = self.job.prepared(self.job.step)
        some = self.levels(prepared) >= 0
        bounds = np.where(some, np.nan, 0.0), np.zeros(len(some)), np.where(some, 1.0, 0.0)
        return Stage(prepared, bounds, stopped=stopped.reason)


class _Least(_Greatest):
    """The minimal probabilities of staying within budgets."""

    def attempt(self, prepared: Prepared, limits: Limits) -> Stage[Bounded]:
        """Sweep the budgets."""
        level = self.levels(prepared)
        found = finishing(prepared, max(int(level.max(initial=0)), 0), limits)
        inside = np.clip(level, 0, len(found.chance) - 1)
        every = found.chance, found.low, found.high
        chance, lower, upper = (np.where(level >= 0, part[inside], 0.0) for part in every)
        return Stage(prepared, (chance, lower, upper), stopped=found.stopped)


def _complement(chance: FloatArray, towards: float) -> FloatArray:
    """Return 1 minus probabilities, rounded towards 0 or 1; the complements of 0 and 1 are exact."""
    exact = (chance == 0) | (chance == 1)
    return np.where(exact, 1.0 - chance, np.nextafter(1.0 - chance, towards))


def _who_counts(model: SSP, prepared: Prepared, endless: BoolArray | None) -> list[str]:
    """Report actions that plans leave out or, where all policies count, states in which a run can stay forever."""
    if endless is None:
        more = "no plan plays such an action; a model checker's Pmax allows it and may be larger"
        return [f"{about_avoided(model, prepared.avoided)}; {more}"] if prepared.avoided.any() else []
    there = np.flatnonzero(endless & (prepared.members.state_of[:-1] >= 0))
    if len(there) == 0:
        return []
    where = f"{len(there):,} of the states, for example {model.state(int(there[0]))!r}"
    return [f"a run can stay forever in {where}; as in a model checker's Pmin, it is then within no budget"]
