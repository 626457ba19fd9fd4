"""Simulated runs: what they cost.

Runs are numbered.  Pieces of them are done by threads here or by an executor's workers; what comes back is put together
by number or as counts, so the numbers are the same however runs were split.
"""

import math
from collections.abc import Mapping
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from prudent.engine.cost_step import find_lattice
from prudent.engine.prepare import prepare
from prudent.errors import whole_number
from prudent.models.rows import BoolArray, FloatArray
from prudent.models.ssp import SSP
from prudent.policies.episodes import (
    KEPT,
    SIMULATING,
    Episodes,
    OfFunction,
    OfTable,
    Path,
    Tally,
    by_state,
    joined,
    replayed,
    sent_with,
)
from prudent.policies.policy import BudgetPolicy
from prudent.policies.total_cost import Policy, restricted
from prudent.runtime.executors import check_sendable, finished
from prudent.runtime.limits import UNLIMITED, Limits, go_on, now
from prudent.runtime.progress import Progress

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
            if find_lattice(alone.cost) is not None:
                chain = prepare(alone)
                return self._by_table(BudgetPolicy.of_states(chain, chain.action_start[:-1]))
            policy = partial(by_state, policy)
        if isinstance(self.executor, ProcessPoolExecutor):
            check_sendable("policy", policy, "none")
        return self._gathered(OfFunction(model, policy, self.seed, self.max_steps), self.paths)

    def _by_table(self, policy: BudgetPolicy) -> Simulated:
        """Simulate runs of one policy."""
        source = OfTable(policy.walk(), self.seed, self.max_steps)
        return self._gathered(source)._replace(paths=tuple(replayed(source, min(self.paths, self.episodes))))

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
