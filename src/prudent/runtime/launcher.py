"""Whether an MPI launcher, such as ``mpiexec``, has started this process, and among how many others."""

import os
import signal
from typing import Any

from prudent.runtime.optional import needed

LAUNCHERS = (
    ("PMI_RANK", "PMI_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMIX_RANK", "SLURM_STEP_NUM_TASKS"),
)
"""The variables in which launchers give a process its number and the number of processes: of MPICH and its kin, of Open
MPI, of Slurm."""


def launched() -> Any:
    """Return the communicator of all processes if an MPI launcher has started this one among others, else None.

    Ctrl-C is then handled by rank 0: the others would wait for a rank that ended by itself.
    """
    if not any(os.environ.get(size, "1") != "1" for number, size in LAUNCHERS if number in os.environ):
        return None
    if not speaks():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return needed("mpi4py.MPI", "mpi").COMM_WORLD


def speaks() -> bool:
    """Return whether this process is the one that prints: rank 0, or no rank at all."""
    return next((os.environ[number] for number, _ in LAUNCHERS if number in os.environ), "0") == "0"
