"""Simulated runs: what they cost.

Runs are numbered, in chunks that have random numbers of their own.  The numbers of a chunk depend on the seed and on
the chunk's number alone.  Pieces, of several chunks, are done by threads here or by an executor's workers; what comes
back is put together by number or as counts.  So it makes no difference who does which piece.

A tally, how many runs had which total cost, is what is kept of more runs than memory holds.  Counts are whole numbers,
so the order in which parts are joined changes nothing.  Where there are more than ``MANY`` different costs, all are
rounded to ``BITS`` binary digits.  Whether they are depends on all runs together, and rounding twice is rounding once:
this, too, is the same however the runs were split.
"""

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, is_dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from prudent.engine.cost_scale import CostScale
from prudent.engine.cost_step import find_lattice
from prudent.engine.prepare import prepare
from prudent.errors import PrudentError, whole_number
from prudent.kernels.episodes import Walk, draw, draw_each, run_episodes
from prudent.models.rows import BoolArray, FloatArray, IntArray
from prudent.models.ssp import SSP
from prudent.policies.distribution import Distribution
from prudent.policies.policy import BudgetPolicy
from prudent.policies.total_cost import Policy, restricted
from prudent.runtime.executors import check_sendable, finished
from prudent.runtime.limits import UNLIMITED, Limits, go_on, now
from prudent.runtime.progress import Progress

Path = tuple[tuple[Hashable, Hashable, float], ...]
"""The steps of a run: state, action played there, cost."""

SIMULATING = "simulating runs"

KEPT = 10_000_000
"""The most runs whose costs are kept one by one."""

MANY = 2**18
"""The most different costs that are counted as they are."""

BITS = 17
"""Binary digits that a cost is rounded to where there are more."""

PIECES = 1024
"""The most pieces that runs are split into."""

BRIEF, PER_BYTE = 0.1, 1e-7
"""Seconds that a piece takes at least that is sent to a worker; and for each byte that is sent with it, some ten times
what that takes."""

WAITING, FEWEST = 2 * 10**9, 16
"""Bytes that are sent to workers at once, about; and the fewest pieces that are, however large."""

TRIED = 1024
"""Runs that are timed to tell what a piece takes."""

COUNTED = 2**16
"""Runs that are counted at once; a multiple of the chunks."""


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
    different, place = np.unique(values, return_inverse=True)
    total = np.bincount(place, weights=counts, minlength=len(different)).astype(np.int64)
    return Tally(different, total, rounded or len(different) > MANY)


@dataclass(frozen=True)
class OfTable:
    """Runs of a policy that is a table, by their numbers; :func:`replayed` returns them step by step."""

    walk: Walk
    scale: CostScale
    name: str  # of the model
    seed: int
    max_steps: int
    chunk: ClassVar[int] = 1024  # how many runs share one stream; fixed, since numbers depend on it

    def costs(self, begin: int, end: int, paths: int, limits: Limits) -> tuple[FloatArray, list[Path]]:
        """Return the total costs of runs, the first of which begins a chunk."""
        charged, paid = np.empty(end - begin, dtype=np.int64), np.empty(end - begin)
        for first in range(begin, end, self.chunk):
            go_on(limits, SIMULATING)
            part = slice(first - begin, first - begin + self.chunk)
            rng = _random(self.seed, first // self.chunk)
            if not run_episodes(rng, self.walk, self.max_steps, charged[part], paid[part]):
                raise _endless(self.name, self.max_steps)
        return paid if self.scale.rounded else self.scale.totals(charged), []


def replayed(episodes: OfTable, model: SSP, n: int) -> Iterator[Path]:
    """Repeat the first runs with the same random numbers; yield each step by step."""
    walk = episodes.walk
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
    """Runs of a user's function, by their numbers.

    The runs of a chunk advance together, one action at a time; the function is asked once for each state and cost so
    far.
    """

    model: SSP
    policy: Callable[[Any, float], Hashable]
    seed: int
    max_steps: int
    chunk: ClassVar[int] = 2**16

    def costs(self, begin: int, end: int, paths: int, limits: Limits) -> tuple[FloatArray, list[Path]]:
        """Return the total costs of runs, the first of which begins a chunk; and those below ``paths`` step by step."""
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


Episodes = OfTable | OfFunction
"""Runs that can be asked for by their numbers."""


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


class Simulated(NamedTuple):
    """What runs cost."""

    tally: Tally
    costs: FloatArray | None  # one by one, if the runs are not too many
    paths: tuple[Path, ...]  # the first runs, step by step


Piece = tuple[FloatArray | Tally, list[Path]]
"""The total costs of some runs, or their tally; and the first runs of all, step by step, if they are among them."""


@dataclass(frozen=True)
class Simulation:
    """Runs to simulate, and who does them: an executor's workers, or threads here."""

    episodes: int
    seed: int
    threads: int
    limits: Limits
    executor: Executor | None = None
    paths: int = 0  # how many runs to return step by step
    max_steps: int = 1_000_000  # the most actions of a run

    def __post_init__(self) -> None:
        for name, least in (("episodes", 1), ("seed", 0), ("paths", 0), ("max_steps", 1), ("threads", 1)):
            whole_number(name, getattr(self, name), least)

    def of(self, model: SSP, policy: Policy) -> Simulated:
        """Simulate runs of a plan's policy, of a table or of a function."""
        if isinstance(policy, BudgetPolicy):
            return self._drawn(policy) if len(policy.parts) > 1 else self._by_table(policy)
        if isinstance(policy, Mapping):
            alone = restricted(model, policy)
            if find_lattice(alone.cost[alone.probability > 0]) is not None:
                chain = prepare(alone)
                return self._by_table(BudgetPolicy.of_states(chain, chain.action_start[:-1]))
            policy = partial(by_state, policy)
        if isinstance(self.executor, ProcessPoolExecutor):
            check_sendable("policy", policy, "none")
        return self._gathered(OfFunction(model, policy, self.seed, self.max_steps), self.paths)

    def _by_table(self, policy: BudgetPolicy) -> Simulated:
        """Simulate runs of one policy."""
        prepared, n = policy.prepared, min(self.paths, self.episodes)
        source = OfTable(policy.walk(), prepared.scale, prepared.model.name, self.seed, self.max_steps)
        return self._gathered(source)._replace(paths=tuple(replayed(source, prepared.model, n)))

    def _drawn(self, policy: BudgetPolicy) -> Simulated:
        """Draw a policy for each run, then simulate all runs of each policy."""
        costs = np.empty(self.episodes) if self.episodes <= KEPT else None
        n_shown = min(self.paths, self.episodes)
        seconds, second = self._draws(policy, known=n_shown if costs is None else self.episodes)
        found, shown = list[Tally](), list[Path]([()] * n_shown)
        for turn, (_, part) in enumerate(policy.parts):
            n = seconds if turn else self.episodes - seconds
            if n == 0:
                continue
            which = np.flatnonzero(second == bool(turn))
            own = int(np.random.SeedSequence([self.seed, 1 + turn]).generate_state(1, np.uint64)[0])
            first = which[which < n_shown].tolist()
            runs = replace(self, episodes=n, seed=own, paths=len(first))._by_table(part)
            found.append(runs.tally)
            if costs is not None:
                costs[which] = runs.costs
            for i, path in zip(first, runs.paths, strict=True):
                shown[i] = path
        return Simulated(joined(found) if costs is None else Tally.of(costs), costs, tuple(shown))

    def _draws(self, policy: BudgetPolicy, known: int) -> tuple[int, BoolArray]:
        """Return how many runs draw the second of two policies; and of the first ``known`` runs, whether they do."""
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence([self.seed, 0])))
        total, told = 0, [np.zeros(0, dtype=bool)]
        for begin in range(0, self.episodes, COUNTED):
            second = rng.random(min(COUNTED, self.episodes - begin)) >= policy.parts[0][0]
            total += int(second.sum())
            if begin < known:
                told.append(second[: known - begin])
        return total, np.concatenate(told)

    def _gathered(self, source: Episodes, paths: int = 0) -> Simulated:
        """Return what all runs cost: tallied and, if they are not too many, one by one; and the paths asked for."""
        episodes = self.episodes
        size, at_once = self._split(source)
        begin = range(0, episodes, size)
        costs = np.empty(episodes) if episodes <= KEPT else None
        here = self.limits if self.executor is None else UNLIMITED  # elsewhere, another clock runs
        calls = [(source, at, min(at + size, episodes), costs is None, paths, here) for at in begin]
        found, shown, done = list[Tally](), dict[int, list[Path]](), 0
        with self._pool(source, len(calls)) as pool, Progress(SIMULATING, total=episodes, unit="runs") as progress:
            try:
                for number, future in finished(pool, run_piece, calls, lambda: self.limits.stop, at_once):
                    piece, shown[number] = future.result()
                    if isinstance(piece, Tally):
                        found = [joined([*found, piece])]
                    elif costs is not None:
                        costs[begin[number] : begin[number] + size] = piece
                    done += 1
                    progress.at(done * size)
            except BaseException:
                self.limits.interruption.asked = True  # threads end with the chunk that they are at
                raise
        if done < len(calls):
            go_on(self.limits, SIMULATING)
        paths_shown = tuple(path for number in sorted(shown) for path in shown[number])
        return Simulated(found[0] if costs is None else Tally.of(costs), costs, paths_shown)

    def _split(self, source: Episodes) -> tuple[int, int | None]:
        """Return how many runs make a piece, and how many pieces an executor gets at once; numbers do not depend on it.

        Each piece brings the model and the policy to a worker, so it is large enough to be worth that.
        """
        chunks = -(-self.episodes // (PIECES * source.chunk))
        if self.executor is None or self.episodes <= source.chunk:
            return chunks * source.chunk, None
        sent, tried, began = sent_with(source), min(TRIED, self.episodes), now()
        source.costs(0, tried, 0, self.limits)
        worth = tried * max(BRIEF, PER_BYTE * sent) / max(now() - began, 1e-9)
        return max(chunks, math.ceil(worth / source.chunk)) * source.chunk, max(WAITING // max(sent, 1), FEWEST)

    def _pool(self, source: Episodes, pieces: int) -> Any:
        if self.executor is not None or isinstance(source, OfFunction) or min(self.threads, pieces) == 1:
            return nullcontext(self.executor)
        return ThreadPoolExecutor(self.threads)


def run_piece(source: Episodes, begin: int, end: int, counted: bool, paths: int, limits: Limits) -> Piece:
    """Return what the runs ``begin:end`` cost, one by one or counted (internal)."""
    if not counted:
        return source.costs(begin, end, paths, limits)
    tally, shown, step = list[Tally](), list[Path](), max(COUNTED, source.chunk)
    for first in range(begin, end, step):
        costs, told = source.costs(first, min(first + step, end), paths, limits)
        tally = [joined([*tally, Tally.of(costs)])]
        shown += told
    return tally[0], shown
