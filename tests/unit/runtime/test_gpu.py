"""Opening a GPU, what a device remembers, and the clock that stands still while kernels are compiled."""

import sys
import time
from types import SimpleNamespace

import pytest

import prudent
from prudent.kernels import compiler
from prudent.runtime.clock import now
from prudent.runtime.gpu import OWNERS, device_named, open_gpu, remembered


def with_cupy(monkeypatch, count):
    def devices():
        if count is None:
            raise RuntimeError("no CUDA-capable device is detected")
        return count

    runtime = SimpleNamespace(getDeviceCount=devices)
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=SimpleNamespace(runtime=runtime)))


def test_the_cpu_is_no_device_and_other_names_are_refused():
    assert device_named("cpu") is None
    with pytest.raises(prudent.PrudentError, match="device is 'cuda'; it must be 'cpu' or 'gpu'"):
        device_named("cuda")


def test_without_cupy_or_a_gpu_the_message_names_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(prudent.PrudentError, match=r"needs CuPy.*'prudent\[gpu\]' for CUDA 13, or 'prudent\[gpu12\]'"):
        open_gpu()
    with_cupy(monkeypatch, None)
    with pytest.raises(prudent.PrudentError, match=r"finds no GPU \(no CUDA-capable device is detected\)"):
        open_gpu()
    with_cupy(monkeypatch, 0)
    with pytest.raises(prudent.PrudentError, match="has no GPU that CUDA can use; remove device="):
        open_gpu()


def test_what_is_made_for_an_owner_is_made_once_until_others_come_between():
    made, known, first = [], [], object()

    def make():
        made.append(len(made))
        return made[-1]

    assert [remembered(known, first, make, name) for name in ("a", "b", "a")] == [0, 1, 0]
    others = [object() for _ in range(OWNERS)]
    assert [remembered(known, other, make, "a") for other in others] == [2, 3]
    assert remembered(known, first, make, "a") == 4 and len(known) == OWNERS


def test_the_clock_stands_still_while_another_compiler_is_at_work():
    began = now()
    with compiler.at_work("the GPU"):
        time.sleep(0.05)
    assert now() - began < 0.05
