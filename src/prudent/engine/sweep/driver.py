"""The sweep over rising budgets: how far it goes, when it stops, when it saves a checkpoint."""

from collections.abc import Callable
from hashlib import sha256

import numpy as np

from prudent.engine.prepared import Prepared
from prudent.engine.sweep.against_nature import nature_bytes
from prudent.engine.sweep.backends import backend_for
from prudent.engine.sweep.estimate import likely_levels, memory_advice, sweep_bytes
from prudent.engine.sweep.question import BOTH, EXCESS, Question
from prudent.engine.sweep.task import Backend, Swept, Task
from prudent.engine.values.expected_cost import least_expected_cost
from prudent.engine.values.worst_case import UNREACHED
from prudent.errors import PrudentError
from prudent.runtime.limits import Limits, Pace, Stopped
from prudent.runtime.progress import Progress, announce

FURTHER = 1.25
"""How far a sweep goes before the first check of how far to go, as a multiple of the levels surely needed."""


def budget_sweep(
    prepared: Prepared,
    question: Question,
    limits: Limits,
    *,
    alpha: float | None = None,
    most: int = UNREACHED,
    keep: bool = False,
    until: Callable[[float], bool] | None = None,
) -> Swept:
    """Sweep rising budgets until no larger one can be optimal for alpha, or up to ``most``.

    ``keep`` keeps the values of all levels up to ``most``.  With ``until`` the sweep also ends once that holds for U of
    the start.
    """
    base, aims = question.base, question.aims
    most = min(most, int(question.worst.value[prepared.start]))
    value = float((base.excess if aims.plan else base.low)[prepared.start])
    best = np.inf if alpha is None else _most_needed(prepared, question, value, alpha, limits)
    about = most, keep, limits.threads, min(most, best), limits.device, limits.ranks
    task = Task(prepared, question, *about)
    sure = int(min(most, value if alpha is not None else most if until is None else 0))
    ranks = limits.ranks
    if (need := _bytes(task, sure)) > limits.memory:
        more = memory_advice(prepared, need, limits, alpha, min(most, best), keep)
        limits.check(need, "the tables", more)
    sweep = backend_for(task, task.levels)(task)
    lanes = limits.threads if ranks is None else ranks.threads * ranks.size
    run = Run(sweep, limits, lanes, "" if limits.keeper is None else _key(prepared, question, alpha, most))
    resumed_at, seen = sweep.done, 0
    row, stopped = 0 if aims.plan else 1, ""
    with limits, Progress(question.doing, total=None if best == np.inf else best, unit="levels") as progress:
        while True:
            if alpha is not None:
                f = np.arange(seen, sweep.done) + sweep.found[row, seen : sweep.done] / alpha
                best, seen = min(best, float(f.min(initial=np.inf))), sweep.done
            end = min(most, best * (1 + 1e-9) + sweep.beyond)
            if prepared.between and np.isfinite(end):  # budgets between levels count: up to the level above
                end = np.ceil(end)
            if sweep.done > end:
                break
            if stopped := run.step(end, max(sweep.done, sweep.first, FURTHER * sure - sweep.done)):
                break
            progress.at(sweep.done, min(most, best))
            if until is not None and until(float(sweep.found[row, sweep.done - 1])):
                break
    whole = sweep.choice
    excess, low, mean = sweep.found[:, : sweep.done]
    if limits.keeper is not None and not stopped and aims != BOTH and sweep.done > resumed_at:  # more sweeps follow
        limits.keeper.save(run.key, {"found": np.stack([excess, low, mean]), "choice": whole}, final=True)
    return Swept(excess, low, mean, whole, sweep.values, stopped, sweep.lost)


class Run:
    """One sweep under way: its clock and Ctrl-C, its memory, its checkpoints."""

    def __init__(self, sweep: Backend, limits: Limits, lanes: int = 1, key: str = "", doing: str = "") -> None:
        question = sweep.task.question
        self.sweep, self.limits, self.key = sweep, limits, key
        self._doing = doing or ("the sweep" if question.policy is None else question.doing)
        self._pace = Pace(lanes * sweep.batch / sweep.outcomes(sweep.task.prepared), limits)
        if limits.keeper is not None and (kept := limits.keeper.load(key)) is not None:
            sweep.resume(kept)

    def step(self, end: float, most: float = np.inf) -> str:
        """Settle some levels up to ``end``, at most so many; return why the sweep must stop instead, if it must."""
        sweep, limits = self.sweep, self.limits
        last = int(min(sweep.done + max(min(self._pace.next(sweep.done), most), 1), end + 1))
        while last > sweep.done + 1 and not self._fits(last):
            last = (sweep.done + last) // 2  # after fewer levels, less may turn out to be needed
        stopped = limits.stop or ("" if self._fits(last) else "memory")
        if limits.keeper is not None and (stopped or limits.keeper.due()):
            try:
                limits.keeper.save(self.key, sweep.packed())
            except PrudentError as error:
                if not stopped:
                    raise
                announce(str(error))  # the answer so far is still returned
        if stopped and not limits.partial:
            raise Stopped(stopped, self._doing)
        if not stopped:
            sweep.advance(last, final=last > end)
        return stopped

    def _fits(self, last: int) -> bool:
        return _bytes(self.sweep.task, last) <= self.limits.memory


def _bytes(task: Task, levels: int) -> int:
    """Return the memory that a sweep of this many levels takes."""
    if task.question.nature is not None:
        return nature_bytes(task.question, levels)
    return sweep_bytes(task.prepared, levels, task.question.aims, task.keep, task.ranks)


def _most_needed(prepared: Prepared, question: Question, value: float, alpha: float, limits: Limits) -> float:
    """Return an upper bound on the objective at the best budget, and so on that budget.

    The base itself is one.  Without cycles the variance of the least expected cost is cheap and gives a better one.
    """
    if prepared.acyclic and not prepared.between and question.terms == EXCESS and question.nature is None:
        least = least_expected_cost(prepared, limits)
        if np.array_equal(question.base.excess, least.value):
            return min(value / alpha, likely_levels(prepared, alpha, limits))
    return value / alpha


def _key(prepared: Prepared, question: Question, alpha: float | None, most: int) -> str:
    """Return a digest that identifies this sweep."""
    asked = f"{tuple(question.aims)} {tuple(question.terms)} {alpha!r} {most}"
    digest = sha256(f"{prepared.model.fingerprint} {prepared.scale.step!r} {asked}".encode())
    for array in (*question.base, prepared.action_start, prepared.outcome_start, prepared.cost, prepared.successor):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
