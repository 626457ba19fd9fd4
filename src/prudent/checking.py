"""What kind of model it is, and everything that is wrong with it."""

from dataclasses import asdict, dataclass, field
from os import PathLike
from typing import Any

import numpy as np

from prudent.errors import ModelError, PrudentError, as_number
from prudent.files import load
from prudent.forecasting import Forecast, forecast
from prudent.graph import ordered_blocks, reachable
from prudent.model import SSP, owner, starts
from prudent.prepare import prepare
from prudent.prepared import Prepared
from prudent.risk import check_alpha
from prudent.values.worst_case import true_worst_case

__all__ = ["Report", "check"]

NAMED = 5
"""How many states a note names."""


@dataclass(frozen=True)
class Report:
    """What :func:`prudent.check` found; None where a problem hides it."""

    model: str
    states: int | None = None
    actions: int | None = None
    outcomes: int | None = None
    goals: int | None = None
    acyclic: bool | None = None  # whether no state can be visited twice: a finite horizon
    step: float | None = None  # the common step of the costs, if there is one
    least_cost: float | None = None  # with the best of luck
    worst_case: float | None = None  # the least over all policies, infinite where none bounds it
    deviation: float | None = None  # largest |sum of an action's probabilities - 1| as given
    pruned_states: int | None = None  # states that no plan visits
    pruned_actions: int | None = None  # actions of the other states that no plan plays
    forecast: Forecast | None = None  # about what solving it takes
    notes: tuple[str, ...] = field(default=())  # what was pruned and why
    problems: tuple[str, ...] = field(default=())  # what must be mended before the model can be solved

    @property
    def ok(self) -> bool:
        """Whether the model can be solved."""
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        """Return the findings."""
        return {"ok": self.ok, **asdict(self)}


def check(model: SSP | str | PathLike[str], *, alpha: float = 0.05, step: float | None = None) -> Report:
    """Report what kind of model it is and every problem found, not only the first, and about what solving takes.

    Parameters
    ----------
    model : SSP or path
        The problem, or the file it is in.
    alpha, step : float, optional
        What the estimates of memory, time and gap are for; see :func:`prudent.solve`.

    Examples
    --------
    >>> import prudent
    >>> report = prudent.check(prudent.domains.betting_game())
    >>> report.ok, report.acyclic, report.step, report.worst_case
    (True, True, 1.0, 95.0)
    """
    alpha = check_alpha(alpha)
    step = None if step is None else as_number("step", step, "a number above 0", lambda x: 0 < x < np.inf)
    if not isinstance(model, SSP):
        try:
            model = load(model)
        except ModelError as error:
            return Report(str(model), problems=error.problems)
        except PrudentError as error:
            return Report(str(model), problems=(str(error),))
    known: dict[str, Any] = {}
    problems: list[str] = []
    try:
        prepared = prepare(model)
        known = _findings(prepared, "as finely as the gap asks for" if step is None else f"to multiples of {step:g}")
        known["forecast"] = forecast(model, alpha, step)
    except PrudentError as error:
        problems.append(str(error))
    arc = np.flatnonzero(model.probability > 0)
    action_of = owner(model.outcome_start)
    source, target = owner(model.action_start)[action_of[arc]], model.successor[arc]
    _, acyclic = ordered_blocks(starts(source, model.n_states), target)
    return Report(
        model=model.name,
        states=model.n_states,
        actions=model.n_actions,
        outcomes=model.n_outcomes,
        goals=int(model.is_goal.sum()),
        acyclic=acyclic,
        deviation=model.deviation,
        problems=tuple(problems),
        **known,
    )


def _findings(prepared: Prepared, how: str) -> dict[str, Any]:
    model = prepared.model
    arc = np.flatnonzero(model.probability > 0)
    source = owner(model.action_start)[owner(model.outcome_start)[arc]]
    found = np.zeros(model.n_states, dtype=bool)
    for start in model.initial_state[model.initial_probability > 0].tolist():
        if not found[start]:
            found |= reachable(source, model.successor[arc], model.n_states, start)
    pruned = prepared.state_of < 0
    known = np.concatenate([prepared.model_action, prepared.inner_action])
    dropped = ~np.isin(np.arange(model.n_actions), known) & ~pruned[owner(model.action_start)]
    notes = []
    for which, why in (
        (~found, "cannot be reached from the start"),
        (pruned & found, "can be reached, but no plan goes there: a run could get stuck"),
    ):
        if which.any():
            some = ", ".join(repr(model.state(int(s))) for s in np.flatnonzero(which)[:NAMED])
            more = ", ..." if which.sum() > NAMED else ""
            notes.append(f"{int(which.sum()):,} states {why}: {some}{more}")
    if dropped.any():
        a = int(np.flatnonzero(dropped)[0])
        place = f"{model.action(a)!r} in {model.state(model.state_of_action(a))!r}"
        notes.append(f"{int(dropped.sum()):,} actions may lead to where a run gets stuck, for example {place}")
    if len(prepared.inner_action):
        notes.append(f"{len(prepared.inner_action):,} actions move inside free cycles, whose states count as one")
    if prepared.rounded:
        notes.append(f"the costs have no common step; solve rounds them, {how}")
    worst = true_worst_case(prepared)
    return {
        "step": None if prepared.rounded else prepared.lattice.step,
        "least_cost": prepared.in_units(0),
        "worst_case": prepared.in_units(worst),
        "pruned_states": int(pruned.sum()),
        "pruned_actions": int(dropped.sum()),
        "notes": tuple(notes),
    }
