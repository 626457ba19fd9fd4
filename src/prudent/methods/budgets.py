"""The sweep over rising budgets: what it needs, how far it goes, how it stops and goes on.

It keeps the values of only as many levels as the largest cost reaches back, and each level's actions in the smallest
type that holds them; so its memory is known in advance but for the number of levels, which is at least the least
expected cost and at most about what :func:`likely_levels` says.
"""

import time
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.allowance import Allowance, Arrays
from prudent.chain import BATCH, costs_of, window_of
from prudent.errors import PrudentError
from prudent.kernels.sweep import Aims, Base, Ends, Room, Tables, Terms, sweep
from prudent.lattice import nice_step
from prudent.model import FloatArray, IntArray
from prudent.policy import choice_type
from prudent.prepared import Prepared
from prudent.progress import Progress, announce
from prudent.values.expected import Expected
from prudent.values.rounds import free_round, full_round, longest_stay, solve_round
from prudent.values.worst_case import UNREACHED, WorstCase

__all__ = ["TIE", "Swept", "budget_sweep", "likely_levels", "seconds_per_level", "sweep_bytes"]

TIE = 1e-11
"""Relative difference within which actions, and budgets, count as equally good: more than rounding, far less than
anyone would notice."""

PER_LEVEL = 120
"""Bytes for each level, of what is noted of the start and computed from it."""

MISFIT = "the checkpoint does not fit this solve; delete it, or name another file"

HUGE = 1e100
"""A value that no table has."""

TRIAL = 10**9
"""The most bytes that are taken to see how long a level takes."""

SAMPLE = 10_000_000
"""Outcomes times levels that are swept to see how long they take."""

PLAN, BOUND, BOTH = Aims(True, False), Aims(False, True), Aims(True, True)
EXCESS = Terms(accrual=0.0, slope=1.0)


@dataclass(frozen=True)
class Swept:
    """What a sweep found, by budget: row 0 is for no budget."""

    excess: FloatArray  # (n_levels,)  U of the start
    low: FloatArray  # (n_levels,)  surely at most that
    mean: FloatArray  # (n_levels,)  M of the start
    choice: NDArray[Any]  # (n_levels, n_states)  the action's number within its state
    tables: Tables | None  # the values of all levels, if they were to be kept
    stopped: str  # why it ended early: "interrupted", "time", "memory", or nothing


def budget_sweep(
    prepared: Prepared,
    base: Base,
    choice: IntArray,
    worst: WorstCase,
    allowance: Allowance,
    *,
    alpha: float | None = None,
    most: int = UNREACHED,
    aims: Aims = BOTH,
    terms: Terms = EXCESS,
    keep: bool = False,
) -> Swept:
    """Sweep the budgets upwards, to where no larger one can be optimal for alpha, or to ``most``.

    ``choice`` is a proper policy for no budget; ``keep`` keeps the values of all levels up to ``most``.
    """
    most = min(most, int(worst.value[prepared.start]))
    value = (base.excess if aims.plan else base.low)[prepared.start]
    best = np.inf if alpha is None else float(value) / alpha
    sure = int(min(most, value if alpha is not None else most))
    allowance.check(
        sweep_bytes(prepared, sure, aims, keep), "the tables", _advice(prepared, allowance, sure, aims, keep)
    )

    arcs = free_round(prepared)
    ends = Ends(worst.value, worst.action_value, longest_stay(prepared, arcs))
    arguments = arcs, costs_of(prepared, arcs), ends, terms
    batch = max(BATCH // max(len(prepared.cost), 1), 1)
    state = _Place.opened(prepared, base, choice, aims, keep)
    key = _key(prepared, base, aims, terms, alpha, most)
    kept = None if allowance.keeper is None else allowance.keeper.load(key)
    if kept is not None:
        state = state.resumed(kept, prepared)
    resumed_at = state.done
    stopped = ""
    total = None if best == np.inf else best
    with allowance, Progress("sweeping budgets", total=total, unit="levels") as progress:
        while True:
            if alpha is not None:
                f = np.arange(state.done) + state.found[0 if aims.plan else 1, : state.done] / alpha
                best = min(best, float(f.min()))
            if state.done > min(most, best * (1 + 1e-9)):
                break
            last = min(state.done + min(batch, max(state.done, 63)), most + 1)
            stopped = allowance.stop
            if not stopped and sweep_bytes(prepared, last, aims, keep) > allowance.memory:
                stopped = "memory"
            if allowance.keeper is not None and (stopped or allowance.keeper.due()):
                try:
                    allowance.keeper.save(key, state.packed())
                except PrudentError as error:
                    if not stopped:
                        raise
                    announce(str(error))  # there is an answer to return all the same
            if stopped:
                break
            state.advance(arguments, last, base, prepared.start)
            progress.at(state.done, min(most, best))
    whole = np.concatenate(state.choice)
    excess, low, mean = state.found[:, : state.done]
    if allowance.keeper is not None and not stopped and aims != BOTH and state.done > resumed_at:  # more sweeps follow
        allowance.keeper.save(key, {"found": np.stack([excess, low, mean]), "choice": whole}, final=True)
    return Swept(excess, low, mean, whole, state.tables if keep else None, stopped)


@dataclass
class _Place:
    """How far a sweep is."""

    done: int  # levels settled
    found: FloatArray  # (3, at least done)
    choice: list[NDArray[Any]]  # the actions of the levels settled, in parts
    tables: Tables  # grows with the levels, as far as a level looks back
    room: Room
    aims: Aims
    furthest: int  # how far that is

    @classmethod
    def opened(cls, prepared: Prepared, base: Base, choice: IntArray, aims: Aims, keep: bool) -> "_Place":
        n, kind = prepared.n_states, choice_type(prepared)
        unused = np.zeros((1, 1))
        rows = (1, n)
        tables = Tables(
            np.zeros(rows) if aims.plan else unused,
            np.zeros(rows) if aims.bound else unused,
            np.zeros(rows) if aims.plan else unused,
            np.empty((0, n), dtype=kind),
        )
        for table, first, wanted in zip(tables, base, (aims.plan, aims.bound, aims.plan), strict=False):
            if wanted:
                table[0] = first
        found = np.zeros((3, 64))
        found[:, 0] = [values[prepared.start] for values in base]
        room = Room(np.empty(prepared.n_actions), np.ones(prepared.n_actions, dtype=bool), choice.copy())
        furthest = UNREACHED if keep else int(prepared.cost.max(initial=0))
        return cls(1, found, [(choice - prepared.action_start[:-1]).astype(kind)[None]], tables, room, aims, furthest)

    def advance(self, arguments: tuple[Any, ...], last: int, base: Base, start: int) -> None:
        if last > self.found.shape[1]:
            self.found = np.concatenate([self.found, np.zeros((3, max(last, self.found.shape[1])))], axis=1)
        self._reach(last)
        n, kind = self.tables.choice.shape[1], self.tables.choice.dtype
        part = np.empty((last - self.done if self.aims.plan else 0, n), dtype=kind)
        tables = self.tables._replace(choice=part)
        arcs, costs, ends, terms = arguments
        sweep(arcs, costs, ends, terms, TIE, self.aims, self.done, last, base, tables, start, self.found, self.room)
        if self.aims.plan:
            self.choice.append(part)
        self.done = last

    def _reach(self, last: int) -> None:
        """Make room for the levels before ``last``, as far as a level looks back; no row has been used again so far."""
        window = min(self.furthest, last - 1) + 1
        wanted = (self.aims.plan, self.aims.bound, self.aims.plan)
        longer = list(self.tables)
        for i, (table, used) in enumerate(zip(self.tables[:3], wanted, strict=True)):
            if used and len(table) < window:
                longer[i] = np.zeros((window, table.shape[1]))
                longer[i][: len(table)] = table
        self.tables = Tables(*longer)

    def packed(self) -> Arrays:
        return {
            "found": np.ascontiguousarray(self.found[:, : self.done]),
            "choice": np.concatenate(self.choice),
            "excess": self.tables.excess,
            "low": self.tables.low,
            "mean": self.tables.mean,
            "chosen": self.room.chosen,
        }

    def resumed(self, kept: Arrays, prepared: Prepared) -> "_Place":
        """Return the place that was kept; refuse arrays that do not fit, whoever wrote them."""
        n, done = prepared.n_states, kept["found"].shape[-1] if "found" in kept and kept["found"].ndim else 0
        rows, unused = (min(self.furthest, done - 1) + 1, n), (1, 1)
        wanted: dict[str, tuple[tuple[int, ...], type[Any]]] = {
            "found": ((3, done), np.float64),
            "choice": ((done if self.aims.plan else 1, n), choice_type(prepared)),
        }
        finished = "chosen" not in kept  # then only what it found was kept
        if not finished:
            wanted |= {
                "excess": (rows if self.aims.plan else unused, np.float64),
                "low": (rows if self.aims.bound else unused, np.float64),
                "mean": (rows if self.aims.plan else unused, np.float64),
                "chosen": ((n,), np.int64),
            }
        if (
            done < 1
            or kept.keys() != wanted.keys()
            or not all(kept[name].shape == shape and kept[name].dtype == kind for name, (shape, kind) in wanted.items())
        ):
            raise PrudentError(MISFIT)
        first, count = prepared.action_start[:-1], np.maximum(np.diff(prepared.action_start), 1)
        chosen = self.room.chosen if finished else kept["chosen"]
        sane = [
            (kept["choice"] >= 0).all() and (kept["choice"] < count).all(),
            (kept["choice"][0] == self.choice[0][0]).all(),
            (chosen >= first).all() and (chosen < first + count).all(),
            *(
                ((kept[name] >= 0) & (kept[name] <= HUGE)).all()
                for name, (_, kind) in wanted.items()
                if kind is np.float64
            ),
        ]
        if not all(sane):
            raise PrudentError(MISFIT)
        tables = self.tables
        if not finished:
            tables = Tables(kept["excess"], kept["low"], kept["mean"], self.tables.choice)
        room = self.room._replace(chosen=chosen)
        return replace(self, done=done, found=kept["found"], choice=[kept["choice"]], tables=tables, room=room)


def _key(prepared: Prepared, base: Base, aims: Aims, terms: Terms, alpha: float | None, most: int) -> str:
    """Return what tells one sweep from all others."""
    digest = sha256(
        f"{prepared.model.fingerprint} {prepared.step!r} {tuple(aims)} {tuple(terms)} {alpha!r} {most}".encode()
    )
    for array in (*base, prepared.action_start, prepared.outcome_start, prepared.cost, prepared.successor):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def sweep_bytes(prepared: Prepared, levels: int, aims: Aims = BOTH, keep: bool = False) -> int:
    """Return the memory that a sweep of so many levels takes, beside the model's."""
    n = prepared.n_states
    window = levels + 1 if keep else window_of(prepared, levels)
    values = 8 * n * window * (3 if aims.plan else 1)  # the evaluation afterwards takes three tables, too
    actions = 2 * n * (levels + 1) * np.dtype(choice_type(prepared)).itemsize if aims.plan else 0  # parts, then whole
    return values + actions + PER_LEVEL * (levels + 1)


def _advice(prepared: Prepared, allowance: Allowance, levels: int, aims: Aims, keep: bool) -> str:
    share = sweep_bytes(prepared, levels, aims, keep) / allowance.memory
    step = nice_step(10 * share * prepared.level_size)
    return (
        f"round costs to a larger step (step=, --step; {step:g} would fit easily), which gives bounds instead of the "
        "optimum, or allow more (memory=, --memory)"
    )


def likely_levels(prepared: Prepared, least: Expected, worst: WorstCase, alpha: float) -> float:
    """Return about how many levels a sweep for alpha goes through, rather too many than too few.

    It ends at the optimal CVaR.  That is at most the least worst case, and at most the CVaR of the policy of least
    expected cost, for which Cantelli's inequality takes its mean and its variance.
    """
    played = np.zeros(prepared.n_actions, dtype=bool)
    played[least.choice[np.diff(prepared.action_start) > 0]] = True
    cost = prepared.fine / prepared.stride
    square = prepared.probability * cost * (cost + 2 * least.value[prepared.successor])
    k = np.bincount(prepared.outcome_action, weights=square, minlength=prepared.n_actions).astype(np.float64)
    second = solve_round(full_round(prepared), k, played, least.choice.copy(), finest=1e-3)
    mean = float(least.value[prepared.start])
    spread = float(np.sqrt(max(float(second[prepared.start]) - mean**2, 0.0)))
    cantelli = mean + spread * float(np.sqrt((1 - alpha) / alpha))
    return float(min(worst.at(prepared.start), mean / alpha, cantelli, UNREACHED - 1) + 1)


def seconds_per_level(prepared: Prepared, base: Base, choice: IntArray, levels: int) -> float:
    """Sweep a few levels halfway through, on values that mean nothing; return how long one takes."""
    window = window_of(prepared, levels)
    if 24 * window * prepared.n_states > TRIAL:
        return float("nan")
    state = _Place.opened(prepared, base, choice, BOTH, keep=False)
    state._reach(window)
    for table, first in zip(state.tables[:3], base, strict=True):
        table[:] = first
    arcs = free_round(prepared)
    worst = np.full(prepared.n_states, UNREACHED), np.full(prepared.n_actions, UNREACHED)
    arguments = arcs, costs_of(prepared, arcs), Ends(*worst, longest_stay(prepared, arcs)), EXCESS
    few = min(max(SAMPLE // max(len(prepared.cost), 1), 1), max(levels, 1))
    state.done = max(min(levels // 2, window), 1)
    state.found = np.zeros((3, state.done + 1 + few))
    state.advance(arguments, state.done + 1, base, prepared.start)  # by now the kernel is loaded
    began = time.perf_counter()
    state.advance(arguments, state.done + few, base, prepared.start)
    return (time.perf_counter() - began) / few
