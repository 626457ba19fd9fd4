"""Simulated runs: a cross-check of the exact numbers, with standard errors.

Runs are numbered.  Pieces of them are done by threads here or by an executor's workers; what comes back is put together
by number or as counts, so the numbers are the same however runs were split.
"""

import math
from collections.abc import Mapping
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from prudent.engine.cost_step import find_lattice
from prudent.engine.prepare import prepare
from prudent.errors import whole_number
from prudent.models.rows import BoolArray, FloatArray
from prudent.models.ssp import SSP
from prudent.policies.episodes import SIMULATING, Episodes, OfFunction, OfTable, by_state, replayed, sent_with
from prudent.policies.evaluate import Policy, PolicyOrPlan, policy_of, restricted
from prudent.policies.policy import BudgetPolicy
from prudent.policies.runs import KEPT, Path, Runs
from prudent.policies.tally import Tally, joined
from prudent.runtime.executors import check_executor, check_sendable, finished
from prudent.runtime.limits import UNLIMITED, Limits, cores, go_on, now
from prudent.runtime.progress import Progress

if TYPE_CHECKING:
    from prudent.results.plan import Plan

__all__ = ["simulate"]

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


def simulate(
    model: SSP,
    policy: PolicyOrPlan,
    *,
    episodes: int = 20_000,
    seed: int = 0,
    threads: int | None = None,
    paths: int = 0,
    max_steps: int = 1_000_000,
    time_limit: float | None = None,
    executor: Executor | None = None,
) -> Runs:
    """Simulate runs of a policy.

    Parameters
    ----------
    model : SSP
        The problem.
    policy : plan, policy, mapping or callable
        A plan or its policy, a table ``{state: action}``, or a function ``(state, spent) -> action``.
    episodes : int
        The number of runs.  Beyond ten million, only a tally of their costs is kept, so any number takes little
        memory.
    seed : int
        The seed of the random numbers; the same seed gives the same runs with any number of threads or workers.
    threads : int, optional
        The number of threads; all cores by default.  A function is called by one thread.
    paths : int
        The number of runs to return step by step.
    max_steps : int
        The largest number of actions in one run; a longer run is an error.
    time_limit : float, optional
        The time limit in seconds, approximately; exceeding it is an error.
    executor : Executor, optional
        Workers that simulate the runs instead of threads: a process pool of ``concurrent.futures``, that of a Dask
        client (``client.get_executor()``), or one of ``mpi4py.futures``.  A function must be one that can be sent to
        them.

    Examples
    --------
    >>> import prudent
    >>> model = prudent.domains.betting_game()
    >>> plan = prudent.solve(model, alpha=0.2)
    >>> runs = prudent.simulate(model, plan, episodes=20_000, seed=0)
    >>> abs(runs.mean - plan.expected) <= 4 * runs.mean_se
    True
    """
    for name, value, least in (
        ("episodes", episodes, 1),
        ("seed", seed, 0),
        ("paths", paths, 0),
        ("max_steps", max_steps, 1),
        ("threads", 1 if threads is None else threads, 1),
    ):
        whole_number(name, value, least)
    own = policy_of(model, policy)
    check_executor(executor)
    by = _Workers(executor, threads or cores(), Limits.of(None, time_limit))
    runs = _simulated(model, own, episodes, seed, paths, max_steps, by)
    return runs if own is policy else replace(runs, plan=cast("Plan", policy))


def _simulated(
    model: SSP, policy: Policy, episodes: int, seed: int, paths: int, max_steps: int, by: "_Workers"
) -> Runs:
    """Simulate runs of a plan's policy, of a table or of a function."""
    if isinstance(policy, BudgetPolicy):
        simulated = _drawn if len(policy.parts) > 1 else _by_table
        return simulated(policy, episodes, seed, paths, max_steps, by)
    if isinstance(policy, Mapping):
        alone = restricted(model, policy)
        if find_lattice(alone.cost) is not None:
            chain = prepare(alone)
            same = BudgetPolicy.of_states(chain, chain.action_start[:-1])
            return _by_table(same, episodes, seed, paths, max_steps, by)
        policy = partial(by_state, policy)
    if isinstance(by.executor, ProcessPoolExecutor):
        check_sendable("policy", policy, "none")
    tally, costs, shown = by.gathered(OfFunction(model, policy, seed, max_steps), episodes, paths)
    return Runs(tally, seed, tuple(shown), costs)


def _by_table(policy: BudgetPolicy, episodes: int, seed: int, paths: int, max_steps: int, by: "_Workers") -> Runs:
    """Simulate runs of one policy."""
    source = OfTable(policy.walk(), policy.prepared.model.name, seed, max_steps)
    tally, costs, _ = by.gathered(source, episodes)
    shown = tuple(policy.named(steps) for steps in replayed(source, min(paths, episodes)))
    return Runs(tally, seed, shown, costs)


def _drawn(policy: BudgetPolicy, episodes: int, seed: int, paths: int, max_steps: int, by: "_Workers") -> Runs:
    """Draw a policy for each run, then simulate all runs of each policy."""
    costs = np.empty(episodes) if episodes <= KEPT else None
    n_shown = min(paths, episodes)
    seconds, second = _draws(policy, episodes, seed, known=n_shown if costs is None else episodes)
    found, shown = list[Tally](), list[Path]([()] * n_shown)
    for turn, (_, part) in enumerate(policy.parts):
        n = seconds if turn else episodes - seconds
        if n == 0:
            continue
        which = np.flatnonzero(second == bool(turn))
        own = int(np.random.SeedSequence([seed, 1 + turn]).generate_state(1, np.uint64)[0])
        first = which[which < n_shown].tolist()
        runs = _by_table(part, n, own, len(first), max_steps, by)
        found.append(runs.tally)
        if costs is not None:
            costs[which] = runs.costs
        for i, path in zip(first, runs.paths, strict=True):
            shown[i] = path
    return Runs(joined(found) if costs is None else Tally.of(costs), seed, tuple(shown), costs)


def _draws(policy: BudgetPolicy, episodes: int, seed: int, known: int) -> tuple[int, BoolArray]:
    """Return how many runs draw the second of two policies; and of the first ``known`` runs, whether they do."""
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, 0])))
    total, told = 0, [np.zeros(0, dtype=bool)]
    for begin in range(0, episodes, COUNTED):
        second = rng.random(min(COUNTED, episodes - begin)) >= policy.parts[0][0]
        total += int(second.sum())
        if begin < known:
            told.append(second[: known - begin])
    return total, np.concatenate(told)


Piece = tuple[FloatArray | Tally, list[Path]]
"""The total costs of some runs, or their tally; and the first runs of all, step by step, if they are among them."""


@dataclass(frozen=True)
class _Workers:
    """Who does the runs: an executor's workers, or threads here."""

    executor: Executor | None
    threads: int
    limits: Limits

    def gathered(self, source: Episodes, episodes: int, paths: int = 0) -> tuple[Tally, FloatArray | None, list[Path]]:
        """Return what all runs cost: tallied and, if they are not too many, one by one; and the paths asked for."""
        size, at_once = self._split(source, episodes)
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
        return found[0] if costs is None else Tally.of(costs), costs, [p for i in sorted(shown) for p in shown[i]]

    def _split(self, source: Episodes, episodes: int) -> tuple[int, int | None]:
        """Return how many runs make a piece, and how many pieces an executor gets at once; numbers do not depend on it.

        Each piece brings the model and the policy to a worker, so it is large enough to be worth that.
        """
        chunks = -(-episodes // (PIECES * source.chunk))
        if self.executor is None or episodes <= source.chunk:
            return chunks * source.chunk, None
        sent, tried, began = sent_with(source), min(TRIED, episodes), now()
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
