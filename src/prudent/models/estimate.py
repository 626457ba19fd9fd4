"""A model estimated from counts: how often each outcome was seen, and the set of models that fits the counts."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from prudent.errors import PrudentError, printable
from prudent.models.intervals import Intervals, clopper_pearson
from prudent.models.rows import FloatArray
from prudent.models.ssp import SHOWN, SSP
from prudent.runtime.tables import Numbers, Table


@dataclass(frozen=True, eq=False, repr=False)
class Estimate(Numbers):
    """The result of :func:`prudent.from_episodes`: the model, and how often each of its outcomes was seen.

    Examples
    --------
    >>> import prudent
    >>> log = {
    ...     "episode": [1, 1, 2, 2], "state": ["home", "stop", "home", "stop"], "action": ["walk", "bus"] * 2,
    ...     "next_state": ["stop", "work"] * 2, "cost": [1, 2, 1, 9],
    ... }
    >>> data = prudent.from_episodes(log)
    >>> data
    <Estimate of log: 2 episodes, 4 steps, 3 states, 2 actions seen fewer than 10 times>
    >>> data.counts.tolist(), data.model.probability.tolist()
    ([2.0, 1.0, 1.0], [1.0, 0.5, 0.5])
    >>> round(prudent.solve(data.model, alpha=0.5, uncertainty=data.intervals(confidence=0.5)).upper, 6)
    10.0
    """

    model: SSP
    episodes: int  # 0 if counts were given
    seldom: int = 10  # actions seen fewer times are named

    @property
    def counts(self) -> FloatArray:
        """(n_outcomes,)  How often each outcome was seen, in the order of ``model.probability``."""
        if self.model.count is None:
            raise PrudentError(
                f"{self.model.name} has no counts; estimate the model with prudent.from_episodes, or load a file "
                "written by prudent learn"
            )
        return self.model.count

    @property
    def seen(self) -> FloatArray:
        """(n_actions,)  How often each action was seen."""
        return np.asarray(np.add.reduceat(self.counts, self.model.outcome_start[:-1]))

    @property
    def seldom_seen(self) -> tuple[tuple[Hashable, Hashable, float], ...]:
        """The actions seen fewer than ``seldom`` times, as (state, action, times); the rarest first."""
        model, seen = self.model, self.seen
        rare = np.flatnonzero(seen < self.seldom)
        rare = rare[np.argsort(seen[rare], kind="stable")]
        return tuple((model.state(model.state_of_action(a)), model.action(a), float(seen[a])) for a in rare.tolist())

    def intervals(self, confidence: float = 0.95) -> Intervals:
        """Return intervals that hold for all probabilities together with a confidence: those of Clopper and Pearson.

        They do not cover outcomes that were never seen and are not in the model.

        Examples
        --------
        >>> import prudent
        >>> row = {"state": "s", "action": "a", "cost": 1}
        >>> log = [{**row, "next_state": "g", "n": 90}, {**row, "next_state": "h", "n": 10}]
        >>> sets = prudent.from_episodes(log, count="n", initial="s").intervals(0.95)
        >>> sets.low.round(3).tolist(), sets.high.round(3).tolist()
        ([0.824, 0.049], [0.951, 0.176])
        """
        return clopper_pearson(self.counts, self.model, confidence)

    def _table(self) -> Table:
        model, rare = self.model, self.seldom_seen
        runs = f"{self.episodes:,} episodes, " if self.episodes else ""
        size = f"{model.n_states:,} states, {model.n_actions:,} actions, {model.n_outcomes:,} outcomes"
        rows = tuple((printable(s, 60), printable(a, 60), f"{times:g}") for s, a, times in rare[:SHOWN])
        notes = [f"every action was seen at least {self.seldom} times"] if not rare else []
        if len(rare) > SHOWN:
            notes.append(f"{len(rare) - SHOWN:,} more were seen fewer than {self.seldom} times")
        head = ("state", "action", "times seen") if rows else ()
        return Table(
            f"{model.name}: {runs}{self.counts.sum():,.0f} steps, {size}", rows, "llr", head, notes=tuple(notes)
        )

    def _content(self) -> dict[str, Any]:
        model, rare = self.model, self.seldom_seen
        sizes = {"states": model.n_states, "actions": model.n_actions, "outcomes": model.n_outcomes}
        seldom = [{"state": s, "action": a, "times": times} for s, a, times in rare]
        steps = float(self.counts.sum())
        return {"model": model.name, "episodes": self.episodes, "steps": steps, **sizes, "seldom": seldom}

    def __repr__(self) -> str:
        runs, rare = f"{self.episodes:,} episodes, " if self.episodes else "", len(self.seldom_seen)
        size = f"{runs}{self.counts.sum():,.0f} steps, {self.model.n_states:,} states"
        return f"<Estimate of {self.model.name}: {size}, {rare:,} actions seen fewer than {self.seldom} times>"
