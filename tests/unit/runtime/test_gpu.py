"""Opening a GPU, what a device remembers, and the clock that stands still while kernels are compiled."""

import pickle
import sys
import time
from collections import deque
from types import SimpleNamespace

import pytest

import prudent
from prudent.kernels import compiler
from prudent.runtime.gpu import OWNERS, Resident, device_named, open_gpu
from prudent.runtime.limits import now


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


def test_a_device_keeps_the_latest_models():
    device, other = (SimpleNamespace(latest=deque(maxlen=OWNERS)) for _ in range(2))
    owners, brought = [Resident() for _ in range(OWNERS + 1)], []

    class Model:
        def __init__(self, device):
            self.device = device
            brought.append(id(self))

    def on(owner, device):
        return id(owner.on(device, lambda: Model(device)))

    first, *others = owners
    assert on(first, device) == on(first, device) and len(brought) == 1
    for each in others:
        on(each, device)
    assert [on(each, device) for each in others] == brought[1:]
    on(first, device)
    assert len(brought) == OWNERS + 2 and len(device.latest) == OWNERS
    on(first, other)
    assert len(brought) == OWNERS + 3 and len(other.latest) == 1
    assert first.on(other, lambda: None) is not None and Resident().on(other, lambda: None) is None
    assert pickle.loads(pickle.dumps(first)).on(other, lambda: None) is None


def test_the_clock_stands_still_while_another_compiler_is_at_work():
    began = now()
    with compiler.at_work("the GPU"):
        time.sleep(0.05)
    assert now() - began < 0.05
