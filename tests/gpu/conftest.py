"""The suite for ``device="gpu"``: with a stand-in for the GPU, or with ``PRUDENT_GPU=1`` (``make test-gpu``) on one.

It needs nothing but pytest, NumPy and the package, and CuPy on a GPU.
"""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))

from prudent.runtime import gpu
from standin import StandIn

REAL = os.environ.get("PRUDENT_GPU") == "1"


@pytest.fixture
def opened(monkeypatch):
    """The devices that were opened, the stand-in among them unless there is a GPU."""
    found, real = [], gpu.open_gpu

    def open_one():
        found.append(real() if REAL else StandIn())
        return found[-1]

    monkeypatch.setattr(gpu, "open_gpu", open_one)
    return found


@pytest.fixture
def device(opened):
    """A device."""
    return gpu.open_gpu()
