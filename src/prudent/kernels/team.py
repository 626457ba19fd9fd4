"""Several threads in one kernel: they draw numbers, and wait until the work before theirs is done.

Work is cut into parts, numbered in an order in which they could be done one after the other.  Each thread draws the
next number, waits for the parts that its own needs, does it, and counts it as done.  Who does a part changes no sum, so
results have the same bits for any number of threads; and a thread that is held up holds up nobody else for longer
than one part.

Numba's own ``prange`` was tried and found wanting: its threading layers end the process if two threads launch loops at
the same time (workqueue), or if a process that has launched one is forked (OpenMP).
"""

import platform
import sys

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

DRAWN, DONE = 0, 8
"""Where the two counters are: on cache lines of their own."""

ENDED = 2**50
"""Parts done, by which all know that the work has ended early."""

SPINS = 100
"""Looks at a counter, a few microseconds, before a waiting thread lets others run on its core."""

PAUSE = "llvm.x86.sse2.pause" if platform.machine().lower() in ("x86_64", "amd64") else ""
"""The compiler's name for the instruction that tells a core that it waits, where there is one."""

GIVE_WAY = "SwitchToThread" if sys.platform == "win32" else "sched_yield"
"""The system's function that lets other threads run."""


def new_counters() -> np.ndarray:
    """Return the counters for one round of work."""
    return np.zeros(16, dtype=np.int64)


@intrinsic
def add_atomically(typing_context, counters, place, amount):
    """Add to a counter as one step; return what it was before."""

    def generate(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.atomic_rmw("add", builder.gep(array.data, [arguments[1]]), arguments[2], "seq_cst")

    return types.int64(counters, types.int64, types.int64), generate


@intrinsic
def read_atomically(typing_context, counters, place):
    """Return a counter; what was written before it was counted up can be read after it."""

    def generate(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.load_atomic(builder.gep(array.data, [arguments[1]]), "acquire", 8)

    return types.int64(counters, types.int64), generate


@intrinsic
def pause(typing_context):
    """Tell the core that this thread waits."""

    def generate(context, builder, signature, arguments):
        if PAUSE:
            _call(builder, PAUSE, ir.VoidType())
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def give_way(typing_context):
    """Let other threads run."""

    def generate(context, builder, signature, arguments):
        _call(builder, GIVE_WAY, ir.IntType(32))
        return context.get_dummy_value()

    return types.void(), generate


def _call(builder, name, returned):
    """Call a function without arguments that the compiler or the system has."""
    known = builder.module.globals.get(name)
    builder.call(known or ir.Function(builder.module, ir.FunctionType(returned, []), name), [])


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def draw(counters):
    """Return the number of the next part to do."""
    return add_atomically(counters, DRAWN, 1)


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def finish(counters):
    """Count one more part as done."""
    add_atomically(counters, DONE, 1)


@njit(cache=True, nogil=True, _nrt=False)
def wait_for(counters, parts):
    """Wait until so many parts are done."""
    looks = 0
    while read_atomically(counters, DONE) < parts:
        looks += 1
        if looks < SPINS:
            pause()
        else:
            give_way()


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def end(counters):
    """End the work early: nobody waits any longer; all who did find that it has ended."""
    add_atomically(counters, DONE, ENDED)


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def ended(counters):
    """Return whether the work has ended early."""
    return read_atomically(counters, DONE) >= ENDED
