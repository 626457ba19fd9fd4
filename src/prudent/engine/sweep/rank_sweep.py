"""The common part of sweeps over several ranks: rank 0 calls their methods, and all others call them with it.

Only rank 0 knows the user's model, finds the values without budget, keeps the clock and decides how far to sweep.  So
all ranks sweep the same numbers, whatever their machines, and none can take another turn than the others.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any, ClassVar, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from prudent.engine.prepared import Members, Prepared, remember
from prudent.engine.sweep.task import Backend, Task
from prudent.engine.sweep.tile_layout import Tiling
from prudent.engine.values.bellman import bare_free_arcs, free_arcs, largest_rounding, rounding
from prudent.kernels.blocks import Arcs
from prudent.models.ssp import SSP
from prudent.runtime.limits import threads_in_force
from prudent.runtime.ranks import Ranks
from prudent.runtime.team import copy_together

__all__ = ["RankSweep", "shared", "shared_task", "together"]

KNOWN = 2
"""How many models the ranks keep: a refined one and the one before."""

Method = TypeVar("Method", bound=Callable[..., Any])


def together(method: Method) -> Method:
    """Let all ranks call a method when rank 0 does; an error inside ends the job."""

    @wraps(method)
    def called(self: "RankSweep", *arguments: Any) -> Any:
        with self.ranks.at_once():
            if self.ranks.rank == 0:
                self.ranks.tell((method.__name__, *arguments))
            return method(self, *arguments)

    return cast(Method, called)


class RankSweep(Backend):
    """A sweep that ranks share: each has one, and their methods are called at the same time."""

    layouts: ClassVar[tuple[Callable[[Prepared], Any], ...]]  # the layouts of a model that it needs
    _scratch: list[Any]  # the arrays that each lane works in

    @property
    def ranks(self) -> Ranks:
        """The ranks that share it."""
        assert self.task.ranks is not None, "it serves only tasks that have some"
        return self.task.ranks

    def _begin(self) -> None:
        """Make the others begin the same sweep."""
        if self.ranks.rank == 0:
            self.task = replace(self.task, threads=self.ranks.threads)
            for layout in self.layouts:  # while the others sleep
                layout(self.task.prepared)
            with self.ranks.at_once():
                self.ranks.tell(("begin", type(self).__name__))
                shared_task(type(self), self.ranks, self.task)

    def _new_known(self) -> Any:
        """Return the values known before the sweep, as rank 0 finds them."""
        return shared(self.ranks, super()._new_known() if self.ranks.rank == 0 else None)  # type: ignore[misc]

    @property
    def _lost_each(self) -> float:
        """The largest relative increase of U by one choice among actions that tie, on any rank."""
        return self._most_lost()

    @together
    def _most_lost(self) -> float:
        here = max(float(scratch.lost[0]) for scratch in self._scratch)
        return float(np.max(self.ranks.gathered(here) or [np.nan]))

    def _collected(self, mine: NDArray[Any], shapes: list[tuple[int, ...]]) -> list[NDArray[Any]]:
        """Return one array of each rank, which have these shapes, on rank 0; nothing elsewhere."""
        if self.ranks.rank > 0:
            self.ranks.send(np.ascontiguousarray(mine), 0)
            self.ranks.finish()
            return []
        found = [mine] + [np.empty(shape, dtype=mine.dtype) for shape in shapes[1:]]
        for other in range(1, self.ranks.size):
            self.ranks.receive(found[other], other)
        return found


def shared(ranks: Ranks, what: Any) -> Any:
    """Return what rank 0 gives, on all ranks; it copies with as many threads as it may use."""
    return ranks.shared(what, lambda source, target: copy_together(source, target, threads_in_force()))


def shared_task(kind: type[RankSweep], ranks: Ranks, task: Task | None = None) -> Task:
    """Return rank 0's task for a sweep, on all ranks; each has threads of its own."""
    prepared = _shared_model(kind, ranks, None if task is None else task.prepared)
    about = None
    if task is not None:
        about = task.base, task.choice, task.worst, task.aims, task.terms, task.most, task.tie, task.levels
    base, choice, worst, aims, terms, most, tie, levels = shared(ranks, about)
    return task or Task(
        prepared, base, choice, worst, aims, terms, most, threads=ranks.threads, tie=tie, levels=levels, ranks=ranks
    )


def _shared_model(kind: type[RankSweep], ranks: Ranks, prepared: Prepared | None) -> Prepared:
    """Return rank 0's prepared model, on all ranks: the others get the parts that a kind of sweep needs."""
    known = cast(list[tuple[type[RankSweep], Prepared]], ranks.known)
    number = ranks.told(next((i for i, each in enumerate(known) if each == (kind, prepared)), len(known)))
    if number == len(known):
        outline = shared(ranks, None if prepared is None else _outline(prepared, kind.layouts, ranks.threads))
        known.append((kind, outline if prepared is None else prepared))
    known.append(known.pop(number))
    del known[:-KNOWN]
    return known[-1][1]


def _outline(prepared: Prepared, layouts: tuple[Callable[[Prepared], Any], ...], threads: int) -> Prepared:
    """Return a copy with the values found for sweeps, the rows that they need, and nothing of the user's model.

    Layouts have rows of their own.  The model's own rows serve only cycles at no cost; without any cycle, not even
    the data of actions is needed.
    """
    arcs, none, nobody, error = free_arcs(prepared), np.empty(0, dtype=np.int64), cast(SSP, None), rounding(prepared)
    rows: dict[str, Any] = {"model_action": none, "plays": np.empty(0), "threads": threads}
    rows |= {"scale": replace(prepared.scale, luck=none)}
    actions: dict[str, Any] = {"mean_cost": prepared.mean_cost, "cost_range": prepared.cost_range}
    if (np.diff(arcs.block_start) == 1).all():
        by_outcome = ("free_stop", "probability", "successor", "fine", "cost")
        rows |= {name: getattr(prepared, name)[:0] for name in by_outcome}
        arcs = Arcs(*(each[:0] for each in arcs))._replace(block_start=np.arange(2))
    if prepared.acyclic:
        rows["outcome_start"], actions["mean_cost"], error = np.zeros(1, dtype=np.int64), np.empty(0), np.empty(0)
    outline = replace(prepared, model=nobody, members=Members(nobody, none, none), **rows)
    outline.__dict__.update(actions)
    for function, found in (bare_free_arcs, arcs), (rounding, error), (largest_rounding, largest_rounding(prepared)):
        remember(outline, function, found)
    for layout in layouts:
        found = layout(prepared)
        remember(outline, layout, replace(found, prepared=outline) if isinstance(found, Tiling) else found)
    return outline
