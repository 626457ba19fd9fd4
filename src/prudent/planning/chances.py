"""The greatest chance of staying within a budget, for many budgets at once.

Model checkers ask for it one budget at a time, as ``Pmax=? [F{"cost"}<=k "goal"]``; here one sweep answers for all
budgets (:mod:`prudent.methods.exceedance`).  Only plans that reach a goal with probability 1 count: where risking a
trap does better, a model checker's number is larger.  Each budget has a best plan of its own:
``prudent.solve(model, alpha, objective=prudent.Exceedance(k))`` returns it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from prudent.engine.prepared import Prepared
from prudent.engine.values.worst_case import UNREACHED, least_worst_case
from prudent.errors import PrudentError, as_number
from prudent.methods.exceedance import exceeding
from prudent.models.rows import FloatArray
from prudent.models.ssp import SSP, check_model
from prudent.planning.driver import Job, begin
from prudent.planning.refine import Stage, likely_step
from prudent.runtime.tables import DataFrame, Shown, Table, frame, number, plain

__all__ = ["Chances", "chances"]

TAIL = 0.1
"""The alpha for which a step is chosen if costs have no common step and the user gives none."""


@dataclass(frozen=True, eq=False, repr=False)
class Chances(Shown):
    """What :func:`prudent.chances` returns, an entry for each budget.

    Examples
    --------
    >>> import prudent
    >>> model = prudent.domains.figure_2()
    >>> found = prudent.chances(model, [1, 9, 10])
    >>> found.chance.round(9).tolist()
    [0.855, 0.9, 1.0]
    """

    model: SSP
    budgets: FloatArray
    chance: FloatArray  # the greatest chance found of a total cost within the budget
    lower: FloatArray  # bounds on the greatest chance of all plans
    upper: FloatArray
    step: float | None  # what costs were rounded to, if they were
    seconds: float

    @property
    def gap(self) -> float:
        """How far apart the bounds are at most."""
        return float((self.upper - self.lower).max(initial=0.0))

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers for JSON.

        Examples
        --------
        >>> import prudent
        >>> prudent.chances(prudent.domains.figure_2(), [0, 9]).to_dict()["chance"]
        [0.855, 0.9]
        """
        names = ("budgets", "chance", "lower", "upper", "gap", "step", "seconds")
        return plain({"model": self.model.name, **{name: getattr(self, name) for name in names}})

    def to_frame(self) -> DataFrame:
        """Return a data frame (extra ``frame``): ``budget``, ``chance``, ``lower``, ``upper``.

        Examples
        --------
        >>> import prudent
        >>> found = prudent.chances(prudent.domains.figure_2(), [1, 9, 10])
        >>> found.to_frame()
           budget  chance  lower  upper
        0     1.0   0.855  0.855  0.855
        1     9.0   0.900  0.900  0.900
        2    10.0   1.000  1.000  1.000
        """
        return frame({"budget": self.budgets, "chance": self.chance, "lower": self.lower, "upper": self.upper})

    def table(self) -> Table:
        """Return the chances as a table.

        Examples
        --------
        >>> import prudent
        >>> found = prudent.chances(prudent.domains.figure_2(), [1, 9, 10])
        >>> found.table().rows[0]
        ('1.000000', '0.855000', '0.855000', '0.855000')
        """
        rounded = () if self.step is None else (f"costs rounded to multiples of {self.step:g}",)
        return Table(
            f"{self.model.name}: greatest chance of a total cost within a budget, {self.seconds:.3g} s",
            tuple(
                tuple(map(number, row)) for row in zip(self.budgets, self.chance, self.lower, self.upper, strict=True)
            ),
            "rrrr",
            head=("budget", "chance", "at least", "at most"),
            notes=rounded,
        )

    def __repr__(self) -> str:
        return f"<Chances for {self.model.name}: {len(self.budgets):,} budgets, bounds up to {self.gap:.2g} apart>"


def chances(
    model: SSP,
    budgets: Iterable[float],
    *,
    step: float | None = None,
    memory: int | float | str | None = None,
    time_limit: float | None = None,
    threads: int | None = None,
) -> Chances:
    """Return the greatest chance of a total cost within each budget, with bounds: all from one sweep.

    Only plans that reach a goal with probability 1 count, as everywhere here.  If every state can reach a goal, the
    chance is what a model checker calls ``Pmax=? [F{"cost"}<=k "goal"]``.

    Parameters
    ----------
    model : SSP
    budgets : numbers
        In any order.
    step : float, optional
        Round costs to multiples of this; the bounds enclose what that changes.
    memory, time_limit, threads
        As in :func:`prudent.solve`; running out of them is an error.

    Examples
    --------
    >>> import prudent
    >>> prudent.chances(prudent.domains.betting_game(), range(40, 101, 20)).chance.round(6).tolist()
    [0.311146, 0.488546, 0.822041, 1.0]
    """
    check_model(model)
    if not isinstance(budgets, Iterable):
        raise PrudentError(f"budgets is {budgets!r}; it must be a sequence of numbers, such as [10, 20]")
    wanted = np.array([as_number("budgets", each, "finite numbers", np.isfinite) for each in budgets], dtype=float)
    job = begin(model, TAIL, step=step, memory=memory, time_limit=time_limit, threads=threads)
    with job.stopping():
        stage = job.refined(lambda prepared: _within(job, prepared, wanted), likely_step)
    chance, lower, upper = stage.found
    scale = stage.prepared.scale
    return Chances(model, wanted, chance, lower, upper, scale.level_size if scale.rounded else None, job.seconds)


def _within(job: Job, prepared: Prepared, budgets: FloatArray) -> Stage[tuple[FloatArray, FloatArray, FloatArray]]:
    """Return the chances of staying within budgets, with their bounds; no gap is asked for."""
    level = np.array([max(min(prepared.scale.level_within(b), UNREACHED), -1) for b in budgets], dtype=np.int64)
    worst = int(least_worst_case(prepared).value[prepared.start])
    most = int(min(level.max(initial=0), worst))
    found = exceeding(prepared, max(most, 0), job.limits)
    inside = np.clip(level, 0, most)
    some, sure = level >= 0, level >= worst  # best luck is within the budget; some plan never exceeds it
    chance, lower, upper = (
        np.where(some, np.where(sure, 1.0, 1.0 - beyond[inside]), 0.0)
        for beyond in (found.chance, found.high, found.low)
    )
    return Stage(prepared, (chance, lower, upper))
