"""Runs by their numbers, in chunks that have random numbers of their own, and a tally of what they cost.

The numbers of a chunk depend on the seed and on the chunk's number alone, so it makes no difference who draws them, and
which chunks he draws besides.  What is here can be sent to another process.

A tally, how many runs had which total cost, is what is kept of more runs than memory holds.  Counts are whole numbers,
so the order in which parts are joined changes nothing.  Where there are more than ``MANY`` different costs, all are
rounded to ``BITS`` binary digits.  Whether they are depends on all runs together, and rounding twice is rounding once:
this, too, is the same however the runs were split.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from prudent.engine.cost_step import find_lattice
from prudent.errors import PrudentError
from prudent.kernels.episodes import draw, draw_each, run_episodes
from prudent.models.rows import FloatArray, IntArray
from prudent.models.ssp import SSP
from prudent.policies.distribution import Distribution
from prudent.policies.policy import Walk
from prudent.runtime.limits import Limits, go_on

Path = tuple[tuple[Hashable, Hashable, float], ...]
"""The steps of a run: state, action played there, cost."""

SIMULATING = "simulating runs"


class Episodes(Protocol):
    """Runs that can be asked for by their numbers."""

    chunk: ClassVar[int]  # how many runs share one stream; fixed, since numbers depend on it

    def costs(self, begin: int, end: int, paths: int, limits: Limits) -> tuple[FloatArray, list[Path]]:
        """Return the total costs of runs, the first of which begins a chunk; and those below ``paths`` step by step."""


@dataclass(frozen=True)
class OfTable:
    """Runs of a policy that is a table; :func:`replayed` returns them step by step."""

    walk: Walk
    seed: int
    max_steps: int
    chunk: ClassVar[int] = 1024

    def costs(self, begin: int, end: int, paths: int, limits: Limits) -> tuple[FloatArray, list[Path]]:
        """Return the total costs."""
        charged, paid = np.empty(end - begin, dtype=np.int64), np.empty(end - begin)
        walk = (*self.walk.arrays(), self.max_steps)
        for first in range(begin, end, self.chunk):
            go_on(limits, SIMULATING)
            part = slice(first - begin, first - begin + self.chunk)
            rng = _random(self.seed, first // self.chunk)
            if not run_episodes(rng, *walk, charged[part], paid[part]):  # type: ignore[call-arg]
                raise _endless(self.walk.model.name, self.max_steps)
        return self.walk.totals(charged, paid), []


def replayed(episodes: OfTable, n: int) -> Iterator[Path]:
    """Repeat the first runs with the same random numbers; yield each step by step."""
    walk, model = episodes.walk, episodes.walk.model
    for i in range(n):
        if i % OfTable.chunk == 0:
            rng = _random(episodes.seed, i // OfTable.chunk)
        first = draw(rng.random(), 0, len(walk.first_state), walk.first_probability)
        s, charged, steps = int(walk.first_state[first]), int(walk.first_charge[first]), []
        while walk.offset[s] >= 0:
            a = int(walk.offset[s]) + walk.choices.at(s, walk.level - charged)
            o = draw(rng.random(), walk.begin[a], walk.end[a], walk.probability)
            action = int(walk.action[a])
            steps.append((model.state(model.state_of_action(action)), model.action(action), float(walk.cost[o])))
            charged, s = charged + int(walk.charge[o]), int(walk.successor[o])
        yield tuple(steps)


@dataclass(frozen=True)
class OfFunction:
    """Runs of a user's function.

    The runs of a chunk advance together, one action at a time; the function is asked once for each state and cost so
    far.
    """

    model: SSP
    policy: Callable[[Any, float], Hashable]
    seed: int
    max_steps: int
    chunk: ClassVar[int] = 2**16

    def costs(self, begin: int, end: int, paths: int, limits: Limits) -> tuple[FloatArray, list[Path]]:
        """Return the total costs, and the first runs step by step."""
        costs, told = np.empty(end - begin), list[Path]()
        for first in range(begin, end, self.chunk):
            size = min(self.chunk, end - first)
            shown = min(max(paths - first, 0), size)
            costs[first - begin : first - begin + size], some = self._chunk(first // self.chunk, size, shown, limits)
            told += some
        return costs, told

    def _chunk(self, number: int, size: int, shown: int, limits: Limits) -> tuple[FloatArray, list[Path]]:
        model = self.model
        found = find_lattice(model.cost)
        gain: NDArray[Any] = model.cost if found is None else found[1]
        spent = np.zeros(size, dtype=gain.dtype)
        rng = _random(self.seed, number) if number else np.random.Generator(np.random.PCG64(self.seed))
        state = rng.choice(model.initial_state, size=size, p=model.initial_probability)
        known: dict[tuple[int, float], int] = {}

        def in_units(amount: Any) -> Any:
            return amount if found is None else found[0].value(amount)

        def ask(s: int, amount: float) -> int:
            if (s, amount) not in known:
                known[s, amount] = model.find_action(s, self.policy(model.state(s), float(in_units(amount))))
            return known[s, amount]

        trace: list[list[tuple[Hashable, Hashable, float]]] = [[] for _ in range(shown)]
        active = np.flatnonzero(~model.is_goal[state])
        for _ in range(self.max_steps):
            if len(active) == 0:
                break
            go_on(limits, SIMULATING)
            pairs = np.rec.fromarrays([state[active], spent[active]])
            unique, which = np.unique(pairs, return_inverse=True)
            action = np.array([ask(int(s), amount.item()) for s, amount in unique])[which]
            outcome = np.empty(len(active), dtype=np.int64)
            draw_each(
                rng.random(len(active)),
                model.outcome_start[action],
                model.outcome_start[action + 1],
                model.probability,
                outcome,
            )
            for i in np.flatnonzero(active < shown):
                step = (model.state(state[active[i]]), model.action(int(action[i])), float(model.cost[outcome[i]]))
                trace[active[i]].append(step)
            spent[active] += gain[outcome]
            state[active] = model.successor[outcome]
            active = active[~model.is_goal[state[active]]]
        if len(active):
            raise _endless(model.name, self.max_steps)
        return np.asarray(in_units(spent), dtype=np.float64), list(map(tuple, trace))


def by_state(table: Mapping[Any, Hashable], state: Any, spent: float) -> Hashable:
    """Return the action that a user's table has for a state."""
    return table[state]


def sent_with(thing: object) -> int:
    """Return how many bytes the arrays in a thing have, which go with it to another process."""
    if isinstance(thing, np.ndarray):
        return thing.nbytes
    parts = thing if isinstance(thing, tuple) else vars(thing).values() if is_dataclass(thing) else ()
    return sum(sent_with(part) for part in parts)


def _random(seed: int, number: int) -> np.random.Generator:
    """Return the random numbers of a chunk."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(number,))))


def _endless(name: str, max_steps: int) -> PrudentError:
    return PrudentError(f"a run of {name} took more than {max_steps:,} actions; raise max_steps=")


KEPT = 10_000_000
"""The most runs whose costs are kept one by one."""

MANY = 2**18
"""The most different costs that are counted as they are."""

BITS = 17
"""Binary digits that a cost is rounded to where there are more."""


@dataclass(frozen=True, eq=False)
class Tally:
    """Different costs, each with the number of runs that had it.

    Examples
    --------
    >>> import prudent
    >>> plan = prudent.solve(prudent.domains.figure_2(), alpha=0.1)
    >>> tally = prudent.simulate(plan.model, plan.policy, episodes=1000, seed=1).tally
    >>> tally.values.tolist(), tally.counts.tolist()
    ([1.0, 9.0, 10.0], [632, 273, 95])
    """

    values: FloatArray  # (n,)  rising
    counts: IntArray  # (n,)
    rounded: bool = False

    @classmethod
    def of(cls, costs: FloatArray) -> "Tally":
        """Return the tally of the total costs of runs (internal)."""
        return cls(*np.unique(costs + 0.0, return_counts=True))  # there is one 0, without a sign

    @property
    def rounding(self) -> float:
        """How far a cost may be from what it was, relative to its size."""
        return 2.0**-BITS if self.rounded else 0.0

    @cached_property
    def distribution(self) -> Distribution:
        """The empirical distribution (internal)."""
        n = int(self.counts.sum())
        return Distribution(self.values, self.counts / n, mean=self.total(self.values) / n)

    def total(self, amount: FloatArray) -> float:
        """Return the sum over all runs of an amount that depends on the cost (internal)."""
        return float((amount * self.counts).sum())


def joined(parts: Sequence[Tally]) -> Tally:
    """Return the tally of all runs of several parts."""
    values, counts = (np.concatenate(each) for each in zip(*((p.values, p.counts) for p in parts), strict=True))
    found = _collected(values, counts)
    if found.rounded or any(part.rounded for part in parts):
        digits, exponent = np.frexp(found.values)
        found = _collected(np.ldexp(np.rint(np.ldexp(digits, BITS)), exponent - BITS) + 0.0, found.counts, rounded=True)
    return found


def _collected(values: FloatArray, counts: IntArray, rounded: bool = False) -> Tally:
    order = np.argsort(values, kind="stable")
    values, counts = values[order], counts[order]
    first = np.flatnonzero(np.append(True, values[1:] != values[:-1])) if len(values) else np.zeros(0, dtype=np.int64)
    return Tally(values[first], np.add.reduceat(counts, first), rounded or len(first) > MANY)
