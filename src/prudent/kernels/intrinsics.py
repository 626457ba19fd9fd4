"""Machine instructions that numba has no name for: atomic counters, waiting, fetching ahead."""

import platform
import sys

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

PAUSE = "llvm.x86.sse2.pause" if platform.machine().lower() in ("x86_64", "amd64") else ""
"""The compiler's name for the instruction that signals a core that its thread waits, if there is one."""

PREFETCH = "llvm.prefetch.p0"
"""The compiler's name for fetching ahead."""

GIVE_WAY = "SwitchToThread" if sys.platform == "win32" else "sched_yield"
"""The system's function that lets other threads run."""


@intrinsic
def add_atomically(typing_context, counters, place, amount):
    """Add to a counter as one step; return what it was before."""

    def generate(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.atomic_rmw("add", builder.gep(array.data, [arguments[1]]), arguments[2], "seq_cst")

    return types.int64(counters, types.int64, types.int64), generate


@intrinsic
def lower_atomically(typing_context, values, place, value):
    """Lower a number to another one, if that is less, as one step; return what it was before."""

    def generate(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.atomic_rmw("min", builder.gep(array.data, [arguments[1]]), arguments[2], "monotonic")

    return types.int64(values, types.int64, types.int64), generate


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


@intrinsic
def prefetch(typing_context, table, place):
    """Ask for an entry of a table to be brought into the caches; the place need not exist."""

    def generate(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        address = builder.bitcast(builder.gep(array.data, [arguments[1]]), byte)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        known = builder.module.globals.get(PREFETCH) or ir.Function(builder.module, kind, PREFETCH)
        builder.call(known, [address, number(0), number(3), number(1)])  # to read, into the nearest cache, data
        return context.get_dummy_value()

    return types.void(table, types.uint64), generate


def _call(builder, name, returned):
    """Call a function without arguments that the compiler or the system has."""
    known = builder.module.globals.get(name)
    builder.call(known or ir.Function(builder.module, ir.FunctionType(returned, []), name), [])
