"""A GPU: arrays there and back, kernels by name, and copies to the host while kernels run.

The only module that imports CuPy, when a GPU is asked for.  In tests a stand-in for :class:`Device`, with the same
methods, has NumPy arrays and NumPy kernels.  Kernels are CUDA files in
``prudent/kernels/cuda``, compiled when first used, without fast-math: IEEE doubles, some multiply-adds fused.
"""

from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from prudent.errors import PrudentError, TooLarge
from prudent.kernels import compiler

BLOCK, LONE = 128, 1024
"""Threads in a block of several, and in a single block."""

SOURCES = Path(__file__).parent.parent / "kernels" / "cuda"

INSTALL = (
    "install CuPy with: pip install 'prudent[gpu]' for CUDA 13, or 'prudent[gpu12]' for CUDA 12; or remove device="
)

C_TYPES = {"uint8": "unsigned char", "uint16": "unsigned short", "int32": "int", "int64": "long long"}

OWNERS = 2
"""How many models a device keeps: a refined one and the one before."""

Model = TypeVar("Model")

IN_C: dict[type, Callable[[Any], Any]] = {bool: np.int32, int: np.int64, float: np.float64}
"""Numbers as kernels take them: flags are ``int`` there, whole numbers ``long long``, others ``double``."""


class Kernels:
    """The kernels of one file, compiled for some types."""

    def __init__(self, cupy: Any, file: str, types: dict[str, str]) -> None:
        options = ("--std=c++17", *(f"-D{name}={kind}" for name, kind in types.items()))
        with compiler.at_work("the GPU"):
            self._module = cupy.RawModule(code=(SOURCES / f"{file}.cu").read_text(encoding="ascii"), options=options)
            self._module.compile()
        self._functions: dict[str, Any] = {}

    def each(self, name: str, items: int, *arguments: Any) -> None:
        """Launch a kernel with a thread for each item; their number is its first argument."""
        if items > 0:
            self._launch(name, (-(-items // BLOCK),), (items, *arguments))

    def blocks(self, name: str, grid: tuple[int, int], *arguments: Any) -> None:
        """Launch a kernel with a block of threads for each pair of numbers below those of ``grid``."""
        if min(grid) > 0:
            self._launch(name, grid, arguments)

    def alone(self, name: str, *arguments: Any) -> None:
        """Launch a kernel with one block, whose threads can wait for each other."""
        self._launch(name, (1,), arguments, LONE)

    def _launch(self, name: str, grid: tuple[int, ...], arguments: tuple[Any, ...], threads: int = BLOCK) -> None:
        if name not in self._functions:
            self._functions[name] = self._module.get_function(name)
        given = tuple(IN_C[type(each)](each) if type(each) in IN_C else each for each in arguments)
        self._functions[name](grid, (threads,), given)


class Device:
    """A GPU by way of CuPy; its arrays have a shape, slices and a type, and nothing else of them is used."""

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self.name = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)["name"].decode()
        self._copying = cupy.cuda.Stream(non_blocking=True)
        self.latest = deque[object](maxlen=OWNERS)  # the memory that they take there ends with the device
        self._kernels: dict[tuple[Any, ...], Kernels] = {}

    @property
    def free(self) -> int:
        """The bytes of memory that are free."""
        return int(self._cupy.cuda.runtime.memGetInfo()[0] + self._cupy.get_default_memory_pool().free_bytes())

    def up(self, array: NDArray[Any]) -> Any:
        """Return a copy on the device."""
        return self._within(lambda: self._cupy.asarray(array))

    def down(self, array: Any) -> NDArray[Any]:
        """Return a copy on the host, once all work before is done."""
        return np.asarray(self._cupy.asnumpy(array))

    def new(self, size: int | tuple[int, ...], kind: Any) -> Any:
        """Return zeros on the device."""
        return self._within(lambda: self._cupy.zeros(size, dtype=kind))

    def _within(self, make: Callable[[], Any]) -> Any:
        """Return a new array, or raise an error if memory is lacking: other programs may have taken it."""
        try:
            return make()
        except self._cupy.cuda.memory.OutOfMemoryError as error:
            raise TooLarge(f"the GPU has too little memory ({error}); remove device= (--device)") from None

    def kernels(self, file: str, **types: Any) -> Kernels:
        """Return the kernels of a file, compiled with these types."""
        named = {name: C_TYPES[np.dtype(kind).name] for name, kind in types.items()}
        key = file, *named.items()
        if key not in self._kernels:
            self._kernels[key] = Kernels(self._cupy, file, named)
        return self._kernels[key]

    def take(self, array: Any, index: Any) -> Any:
        """Return the entries of an array at an array of indices."""
        return self._within(lambda: array[index])

    def down_later(self, array: Any) -> Callable[[], NDArray[Any]]:
        """Begin a copy to the host after all work so far; return a function that waits for it and returns it."""
        cupy = self._cupy
        ready, done = cupy.cuda.Event(disable_timing=True), cupy.cuda.Event(disable_timing=True)
        ready.record()
        held = cupy.cuda.alloc_pinned_memory(array.nbytes)  # from a pool, so the next copy reuses it
        there: NDArray[Any] = np.frombuffer(held, dtype=array.dtype, count=array.size).reshape(array.shape)
        self._copying.wait_event(ready)
        array.get(stream=self._copying, out=there, blocking=False)
        done.record(self._copying)

        def wait() -> NDArray[Any]:
            done.synchronize()
            return there

        return wait


class Resident:
    """What its owner has on a device, as long as the device keeps it."""

    def __init__(self) -> None:
        self._there: Callable[[], Any] = lambda: None

    def on(self, device: Device, bring: Callable[[], Model]) -> Model:
        """Return a model on a device, or what else ``bring`` returns; bring it there if need be."""
        found: Model = self._there()
        if getattr(found, "device", None) is not device:
            found = bring()
            if found is not None:
                device.latest.append(found)
                self._there = ref(found)
        return found

    def __reduce__(self) -> tuple[type["Resident"], tuple[()]]:
        return type(self), ()  # another process has another device


def device_named(name: str) -> Device | None:
    """Return the device that a user names, None for the CPU; reject other names, and a missing GPU."""
    if name not in ("cpu", "gpu"):
        raise PrudentError(f"device is {name!r}; it must be 'cpu' or 'gpu'")
    return open_gpu() if name == "gpu" else None


def open_gpu() -> Device:
    """Return the GPU, or raise an error with the reason why there is none."""
    try:
        import cupy
    except ImportError as error:
        raise PrudentError(f"device 'gpu' needs CuPy, which cannot be imported ({error}); {INSTALL}") from None
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except Exception as error:  # no driver, or one that is too old: CuPy raises many kinds of errors
        raise PrudentError(f"device 'gpu': CuPy finds no GPU ({error}); {INSTALL}") from None
    if count == 0:
        raise PrudentError("device 'gpu': this machine has no GPU that CUDA can use; remove device= (--device)")
    return Device(cupy)
