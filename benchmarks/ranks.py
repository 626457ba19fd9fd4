"""What more ranks gain: one solve on 1, 2, 4, ... processes of one thread each.

    mpiexec -n 16 python benchmarks/ranks.py [CAPACITY] [STATES]

Inventory Control and the random cyclic model of ``large_model.py``, on the first n ranks of the job, n doubling.
Prints the seconds of a whole solve, and apart: of preparation, which rank 0 does, with the cores of those that wait for
it unless it is bound to its own (``mpiexec --bind-to none``); of the sweep before its first level
(laying out, telling the ranks); of its levels.  Then how many times faster than one rank the whole is, and the levels;
the bytes of the tables of values for each rank; for each level, the messages and bytes that a rank sends, the most of
all; and the CVaR.
"""

import sys
import time
from collections.abc import Callable
from typing import Any

from mpi4py import MPI

import prudent
from large_model import large_model
from prudent.engine.sweep import bounded
from prudent.engine.sweep.levels import LevelSweep
from prudent.engine.sweep.rank_levels import LevelPart
from prudent.engine.sweep.rank_tiles import TilePart
from prudent.engine.sweep.tiles import TileSweep

ALPHA, TURNS = 0.05, 3
WORLD = MPI.COMM_WORLD


class Watch:
    """What a solve took, as one rank sees it."""

    def __init__(self) -> None:
        self.sweep = self.levels = 0.0
        self.settled = self.table = self.messages = self.bytes = 0

    def timed(self, what: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that adds its time to a field."""

        def call(*arguments: Any, **options: Any) -> Any:
            began = time.perf_counter()
            found = function(*arguments, **options)
            setattr(self, what, getattr(self, what) + time.perf_counter() - began)
            return found

        return call

    def noted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return an ``advance`` that notes what the sweep has and has sent."""

        def call(sweep: Any, *arguments: Any, **options: Any) -> Any:
            before, done = self._sent(sweep), sweep.done
            found = function(sweep, *arguments, **options)
            messages, sent = (now - then for now, then in zip(self._sent(sweep), before, strict=True))
            self.messages, self.bytes = self.messages + messages, self.bytes + sent
            self.settled += sweep.done - done
            window = getattr(sweep.tables, "window", None)
            tables = [sweep.tables.table] if window is None else [*window.tables, *window.before]
            self.table = sum(table.nbytes for table in tables)
            return found

        return call

    @staticmethod
    def _sent(sweep: Any) -> tuple[int, int]:
        ranks = getattr(sweep, "ranks", None)
        return (0, 0) if ranks is None else (ranks.messages, ranks.bytes)


def measured(model: prudent.SSP | None, comm: MPI.Comm) -> tuple[list[float], list[Watch], float]:
    """Solve on all ranks of a communicator; return the times of the best of some turns, what ranks noted, the CVaR."""
    sweep, kinds = bounded.budget_sweep, [LevelSweep, TileSweep] if comm.size == 1 else [LevelPart, TilePart]
    best: tuple[list[float], list[Watch], float] = [float("inf")], [], 0.0
    for _ in range(TURNS):
        watch = Watch()
        saved = {kind: kind.advance for kind in kinds}
        for kind in kinds:
            kind.advance = watch.timed("levels", watch.noted(saved[kind]))
        bounded.budget_sweep = watch.timed("sweep", sweep)
        comm.Barrier()
        began = time.perf_counter()
        plan = prudent.solve(model, ALPHA, threads=1, comm=comm)
        whole = time.perf_counter() - began
        bounded.budget_sweep = sweep
        for kind in kinds:
            kind.advance = saved[kind]
        all_of_them = comm.gather(watch)
        better = comm.bcast(whole < best[0][0])
        if comm.rank == 0 and better:
            best = [whole, whole - watch.sweep, watch.sweep - watch.levels, watch.levels], all_of_them, plan.cvar
    return best


def wait_for_all() -> None:
    """Wait for all ranks without keeping a core busy."""
    request = WORLD.Ibarrier()
    while not request.Test():
        time.sleep(0.01)


def main(capacity: int, states: int) -> None:
    """Print a table for each model."""
    if WORLD.rank == 0:
        print("model      ranks   whole = prepare + lay out + levels     gain of whole, of levels   MB each", end="")
        print("   a level: messages, kB      CVaR", flush=True)
    for name in ("inventory", "cyclic"):
        model = small = None
        if WORLD.rank == 0:
            cyclic = name == "cyclic"
            small = large_model(20_000, 0.05) if cyclic else prudent.domains.inventory_control()
            model = large_model(states, 0.05) if cyclic else prudent.domains.inventory_control(capacity=capacity)
        size, alone = 1, [0.0] * 4
        wait_for_all()
        while size <= WORLD.size:
            some = WORLD.Split(0 if WORLD.rank < size else 1, WORLD.rank)
            if WORLD.rank < size:
                measured(small, some)  # compiles
                times, watches, cvar = measured(model, some)
                if WORLD.rank == 0:
                    alone = times if size == 1 else alone
                    table = max(watch.table for watch in watches) / 1e6
                    each = [
                        max(getattr(watch, what) for watch in watches) / max(watches[0].settled, 1)
                        for what in ("messages", "bytes")
                    ]
                    print(
                        f"{name:<10} {size:5} {times[0]:7.3f} {times[1]:9.3f} {times[2]:9.3f} {times[3]:8.3f}"
                        f"   {alone[0] / times[0]:12.2f} {alone[3] / times[3]:12.2f} {table:12.1f}"
                        f" {each[0]:14.1f} {each[1] / 1e3:8.1f} {cvar:15.9f}",
                        flush=True,
                    )
            wait_for_all()
            size *= 2


if __name__ == "__main__":
    main(*(int(each) for each in sys.argv[1:] or (100, 1_000_000)))
