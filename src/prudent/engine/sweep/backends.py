"""The list of backends; the first one that serves a task takes it.

To add one, write a class like :class:`~prudent.engine.sweep.levels.LevelSweep` and enter it here.
"""

from prudent.engine.sweep.against_nature import NatureSweep
from prudent.engine.sweep.between import BetweenSweep
from prudent.engine.sweep.device_levels import DeviceLevelSweep
from prudent.engine.sweep.device_tiles import DeviceTileSweep
from prudent.engine.sweep.levels import LevelSweep
from prudent.engine.sweep.rank_levels import RankLevelSweep
from prudent.engine.sweep.rank_tiles import RankTileSweep
from prudent.engine.sweep.task import Backend, Task
from prudent.engine.sweep.tiles import TileSweep

BACKENDS: tuple[type[Backend], ...] = (
    NatureSweep,
    BetweenSweep,
    DeviceTileSweep,
    DeviceLevelSweep,
    RankTileSweep,
    TileSweep,
    RankLevelSweep,
    LevelSweep,
)


def backend_for(task: Task, levels: float) -> type[Backend]:
    """Return the backend for a task of about so many levels."""
    return next(backend for backend in BACKENDS if backend.serves(task, levels))
