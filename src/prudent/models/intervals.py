"""Sets of models: each outcome's probability is known only to lie in an interval.

In a set, the probabilities of each action vary independently: any that lie in their intervals and sum to 1.  Counts
give such intervals, those of Clopper and Pearson.  With n observations of an action, k of them of an outcome, ``low``
is the probability at which k or more would be seen with probability only d / 2, and ``high`` the one at which k or
fewer would.  For all intervals to hold together with confidence 1 - D, d is D divided by their number.

With intervals, nature may keep a run from its goal forever.  An action is *held* if nature, within its intervals, can
keep a run in a set of states from which no played action must lead on.  A state is *sure* if some policy reaches a goal
from it with probability 1, whatever nature does: it has an action that stays among sure states and, whatever nature
does, has a chance to lead to states found sure before.  These actions are never held for long, so a plan can do without
the other held ones.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from prudent.errors import PrudentError, as_number
from prudent.models.rows import BoolArray, FloatArray, owner, ranges, row_of
from prudent.models.ssp import SSP, frozen

NEAR = 1e-9
"""The rounding error allowed in sums of bounds, and between the bounds and the model's own probabilities."""


@dataclass(frozen=True, eq=False, repr=False)
class Intervals:
    """Bounds on the probability of each outcome of a model; the model's own probabilities lie within.

    Parameters
    ----------
    low, high : array, (n_outcomes,)
        The bounds, in the order of ``model.probability``.

    Examples
    --------
    >>> import prudent
    >>> model = prudent.domains.figure_2()
    >>> spare = 0.1 * (model.probability < 1)
    >>> set_of_models = prudent.Intervals(model.probability - spare / 2, model.probability + spare / 2)
    >>> set_of_models
    <Intervals for 8 outcomes, 6 of them uncertain, by 0.1 at most>
    >>> plan = prudent.solve(model, alpha=0.1, uncertainty=set_of_models)
    >>> round(plan.upper, 6) >= round(prudent.solve(model, alpha=0.1).upper, 6)
    True
    """

    low: FloatArray  # (n_outcomes,)
    high: FloatArray  # (n_outcomes,)

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            object.__setattr__(self, name, frozen(getattr(self, name), np.float64, name))
        if len(self.low) != len(self.high):
            raise PrudentError(
                f"low has {len(self.low)} entries, high has {len(self.high)}; give one of each per outcome"
            )

    @property
    def width(self) -> float:
        """The largest distance between the bounds of an outcome."""
        return float((self.high - self.low).max(initial=0.0))

    def __repr__(self) -> str:
        uncertain = int((self.high > self.low).sum())
        return (
            f"<Intervals for {len(self.low):,} outcomes, {uncertain:,} of them uncertain, by {self.width:.3g} at most>"
        )

    def within(self, model: SSP) -> "Intervals":
        """Return the intervals tightened to what is possible in a model; reject those that do not fit it (internal)."""
        if len(self.low) != model.n_outcomes:
            raise PrudentError(
                f"uncertainty has bounds for {len(self.low)} outcomes; {model.name} has {model.n_outcomes} outcomes; "
                "give bounds in the order of model.probability"
            )
        p, low, high = model.probability, self.low, self.high
        for wrong, why in (
            (~((low >= 0) & (low <= high) & (high <= 1 + NEAR)), "both must lie between 0 and 1, with low <= high"),
            ((p < low - NEAR) | (p > high + NEAR), "the model's own probability, {p:.12g}, must lie between them"),
            ((p == 0) & (high > 0), "an outcome with high above 0 needs a probability above 0"),
        ):
            for o in np.flatnonzero(wrong)[:1]:
                place = f"{model.place(row_of(model.outcome_start, o))}, to state {model.state(model.successor[o])!r}"
                bounds = f"low {low[o]:.12g}, high {high[o]:.12g}"
                raise PrudentError(f"uncertainty: {place}: {bounds}; {why.format(p=p[o])}")
        return Intervals(np.minimum(low, p), np.minimum(np.maximum(high, p), 1.0))


def clopper_pearson(count: ArrayLike, model: SSP, confidence: float = 0.95) -> Intervals:
    """Return intervals that hold together, with a confidence, given the counts of the outcomes (internal).

    An action with two outcomes has one interval, seen from both ends; one with a single outcome has none.
    """
    from scipy.stats import beta

    confidence = as_number("confidence", confidence, "a number between 0 and 1, such as 0.95", lambda x: 0 < x < 1)
    k = np.asarray(count, dtype=np.float64)
    row, size = owner(model.outcome_start), np.diff(model.outcome_start)
    n = np.bincount(row, weights=k, minlength=model.n_actions)[row]
    number = float(np.where(size > 2, size, size - 1).clip(0).sum())
    share = (1 - confidence) / max(number, 1.0) / 2
    low, high = np.zeros(len(k)), np.ones(len(k))
    low[k > 0] = beta.ppf(share, k[k > 0], (n - k + 1)[k > 0])
    high[k < n] = beta.isf(share, (k + 1)[k < n], (n - k)[k < n])
    most = np.sqrt(-np.log(share) / (2 * np.maximum(n, 1)))  # Hoeffding's bound, for counts too large for a quantile
    share_seen = k / np.maximum(n, 1)
    low = np.where(np.isnan(low), share_seen - most, low)
    high = np.where(np.isnan(high), share_seen + most, high)
    alone = (size == 1)[row]
    low[alone] = high[alone] = 1.0
    return Intervals(np.minimum(low.clip(0), model.probability), np.maximum(high.clip(None, 1), model.probability))


def intervals_of(model: SSP, uncertainty: Any, device: str) -> Intervals | None:
    """Return the set of models that a user means, if any: given, the model's own, or from its counts (internal)."""
    if uncertainty is None:
        return None
    if device != "cpu":
        raise PrudentError(
            f"device is {device!r}; sets of models (uncertainty=) need the CPU; remove device= (--device)"
        )
    if isinstance(uncertainty, Intervals):
        return uncertainty.within(model)
    if isinstance(uncertainty, str) and uncertainty == "own":
        if model.intervals is None:
            raise PrudentError(
                f"uncertainty is 'own', but {model.name} has no intervals of its own; give prudent.Intervals(low, high)"
            )
        return model.intervals.within(model)
    if isinstance(uncertainty, bool) or not isinstance(uncertainty, int | float | np.number):
        raise PrudentError(
            f"uncertainty is {uncertainty!r}; it must be prudent.Intervals(low, high), a confidence such as 0.95 for a "
            "model with counts, or 'own' for a model with intervals of its own"
        )
    if model.count is None:
        raise PrudentError(
            f"uncertainty is {uncertainty!r}, but {model.name} has no counts from which to find intervals; give "
            "prudent.Intervals(low, high), or a model from prudent.from_episodes"
        )
    return clopper_pearson(model.count, model, float(uncertainty)).within(model)


def lasting(model: SSP, intervals: Intervals) -> tuple[SSP, Intervals]:
    """Return the model without held actions that a plan can do without, if there are any, with a note on them.

    Where all outcomes are certain to be possible, runs are held only by the plan's own choice; so if that is enough,
    only actions with another outcome are left out.
    """
    doubtful = (intervals.low <= 0) & (model.probability > 0) & (model.successor != model.outcome_state)
    doubtful = np.bincount(model.outcome_action, doubtful, model.n_actions) > 0
    held = held_actions(model, intervals, np.full(model.n_actions, doubtful.any()))
    if not (held & doubtful).any():
        return model, intervals
    onwards, sure = _onwards(model, intervals)
    if not sure[model.initial_state].all():
        return model, intervals  # the error names the place
    inside = np.bincount(model.outcome_action, ~sure[model.successor] & (model.probability > 0), model.n_actions) == 0
    used = inside & (onwards | ~(held & doubtful))
    if (held_actions(model, intervals, used) & doubtful).any():
        used = inside & (onwards | ~held)
    left_out = np.flatnonzero(~used & held & inside & sure[model.action_state])
    used |= ~sure[model.action_state]  # no action leads there any more
    notes = model.notes
    if len(left_out):  # what is left out otherwise may lead where no plan is sure to reach a goal
        more = f" and {len(left_out) - 1:,} more" if len(left_out) > 1 else ""
        notes += (
            f"left out: {model.place(int(left_out[0]))}{more}, where nature could keep runs from their goal forever; "
            "the bounds are for plans of plan.model, which is without; to plan with all actions, give the outcomes "
            "that lead on a low above 0",
        )
    outcome = ranges(model.outcome_start, np.flatnonzero(used))
    return model.with_actions(used, notes=notes), Intervals(intervals.low[outcome], intervals.high[outcome])


def held_actions(model: Any, sets: Any, used: BoolArray, loop: float | FloatArray = 0.0) -> BoolArray:
    """Return the used actions with which nature can keep a run in a set of states (internal).

    ``model`` may be a prepared one, whose free loops have a probability of up to ``loop``.
    """
    kept = ~model.is_goal
    while True:
        held: BoolArray = used & kept[model.action_state] & ~_must_reach(model, sets, ~kept, loop)
        now = np.bincount(model.action_state[held], minlength=model.n_states) > 0
        if (now == kept).all():
            return held
        kept = now


def _onwards(model: SSP, sets: Intervals) -> tuple[BoolArray, BoolArray]:
    """Return the actions that lead on to states found sure before, whatever nature does, and the sure states."""
    sure = np.ones(model.n_states, dtype=bool)
    while True:
        out = np.bincount(model.outcome_action, ~sure[model.successor] & (model.probability > 0), model.n_actions) > 0
        found, onwards = model.is_goal.copy(), np.zeros(model.n_actions, dtype=bool)
        while True:
            new = ~out & ~found[model.action_state] & _must_reach(model, sets, found)
            if not new.any():
                break
            onwards |= new
            found[model.action_state[new]] = True
        if (found == sure).all():
            return onwards, sure
        sure = found


def _must_reach(model: Any, sets: Any, marked: BoolArray, loop: float | FloatArray = 0.0) -> BoolArray:
    """Return the actions that lead to marked states with a probability above 0, whatever nature does."""
    into, start = marked[model.successor], model.outcome_start[:-1]
    leave = np.add.reduceat(np.where(into, sets.low, 0.0), start)
    stay = loop + np.add.reduceat(np.where(into, 0.0, sets.high), start)
    return np.asarray((leave > 0) | (stay < 1 - NEAR))
