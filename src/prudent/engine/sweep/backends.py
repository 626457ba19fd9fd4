"""The one list of ways to sweep; the first that serves a task takes it.

Another one is a class beside :class:`~prudent.engine.sweep.levels.LevelSweep`, and an entry here.
"""

from prudent.engine.sweep.levels import LevelSweep
from prudent.engine.sweep.task import Backend, Task
from prudent.engine.sweep.tiles import TileSweep

__all__ = ["BACKENDS", "backend_for"]

BACKENDS: tuple[type[Backend], ...] = (TileSweep, LevelSweep)


def backend_for(task: Task, levels: float) -> type[Backend]:
    """Return the way to sweep a task through about so many levels."""
    return next(backend for backend in BACKENDS if backend.serves(task, levels))
