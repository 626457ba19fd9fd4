"""The other ranks' share of a solve of rank 0: its sweeps."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from prudent.engine.sweep.rank_levels import RankLevelSweep
from prudent.engine.sweep.rank_sweep import RankSweep, shared_task
from prudent.engine.sweep.rank_tiles import RankTileSweep
from prudent.runtime.limits import Limits, in_force, own_cores
from prudent.runtime.ranks import Ranks

__all__ = ["follow"]

SWEEPS: dict[str, type[RankSweep]] = {kind.__name__: kind for kind in (RankTileSweep, RankLevelSweep)}


def follow(ranks: Ranks, threads: object) -> None:
    """Do this rank's share of all sweeps of rank 0, until it ends; Ctrl-C is left to rank 0."""
    own = threads if isinstance(threads, int) and threads > 0 else own_cores(ranks)
    sweep: Any = None
    ranks.threads = own
    with _deaf(), in_force(Limits(ranks.memory, threads=own)):
        while True:
            with ranks.at_once():
                order, *arguments = ranks.hear()
                if order == "end":
                    break
                if order == "begin":
                    sweep = None  # its tables are not needed any longer
                    kind = SWEEPS[arguments[0]]
                    sweep = kind(shared_task(kind, ranks))
                else:
                    getattr(sweep, order)(*arguments)
    ranks.part(*arguments)


@contextmanager
def _deaf() -> Iterator[None]:
    """Ignore Ctrl-C inside."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
