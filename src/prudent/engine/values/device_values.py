"""Least expected cost and minimal worst-case cost on a device: models whose free moves have no cycles.

*Expected cost.*  Passes of value iteration over all states at once.  Every few passes are followed by a shift of all
values: their average change divided by the average probability of ending.  If a model is hardly ever left, passes alone
would take longest to find this shift.  The bounds do not depend on how values were found: the claim of
:mod:`prudent.engine.values.expected_cost` is checked for every action, rounding included, and gives the bounds.  If
passes are slow, or bounds not close, the CPU's method is used.

*Worst-case cost.*  Whole numbers, lowered from infinity until none changes.
"""

from typing import Any

import numpy as np

from prudent.engine.device_rows import DeviceRows, device_rows
from prudent.engine.prepared import Prepared, choice_type
from prudent.models.rows import FloatArray, IntArray
from prudent.runtime.gpu import Device, Kernels
from prudent.runtime.limits import Limits, go_on, room_on

LANES = 2
"""Threads for each state in a pass, as in the kernel."""

THREADS = 2**12
"""Threads that add up the changes of a pass."""

MANY = 2**18
"""The most threads that check the claim."""

PASSES, EACH = 2000, 4
"""The most passes, and the number of passes between two checks of the changes."""

NOISE = 2.0**-50
"""Changes in a pass, relative to the values, that are only rounding errors."""

TRIES = 3
"""How often further passes are tried if bounds are not close."""

WORKING = "finding the lowest expected cost"


def device_expected(
    rows: DeviceRows, prepared: Prepared, claimed: tuple[Any, Any], close: float, limits: Limits
) -> tuple[FloatArray, FloatArray, FloatArray, IntArray] | None:
    """Return least expected costs, bounds on them, and the actions, or None if the CPU should find them.

    ``claimed`` has, on the device, the relative rounding error of each action's sums, and the amount to add to each
    state's value for the cost before normalising; bounds must be ``close``, relative to that.
    """
    device, n, n_actions = rows.device, rows.n_states, rows.n_actions
    room_on(device, 64 * n + 24 * n_actions, "expected costs")
    kernels, leave = _kernels(rows, prepared), device.new(n_actions, np.float64)
    kernels.each("ends", n_actions, *rows.graph, leave)
    x, (units, lucks) = device.new(n, np.float64), claimed
    chosen, threads = device.new(n, choice_type(prepared)), min(n, MANY)
    for turn in range(TRIES):
        found = _iterated(rows, kernels, leave, x, turn == 0, limits)
        if found is None:
            return None
        x, least, most = found, device.new(threads, np.float64), device.new(threads, np.float64)
        kernels.each("claim", threads, n, *rows.graph, rows.mean_cost, units, x, lucks, chosen, least, most)
        factor = float(device.down(least).max()) * (1 + close)
        if factor <= close and factor <= float(device.down(most).min()) * (1 - close):
            break
    else:
        return None
    lower, upper = device.new(n, np.float64), device.new(n, np.float64)
    kernels.each("enclose", n, factor * (1 + close), lucks, x, lower, upper)
    choice = prepared.action_start[:-1] + rows.by_state(chosen)
    return rows.by_state(x), rows.by_state(lower), rows.by_state(upper), choice


def _kernels(rows: DeviceRows, prepared: Prepared) -> Kernels:
    return rows.device.kernels("values", COST=rows.kind, CHOICE=choice_type(prepared))


def _iterated(rows: DeviceRows, kernels: Kernels, leave: Any, x: Any, shifts: bool, limits: Limits) -> Any | None:
    """Return values after passes that change them by more than rounding errors, or None if there are too many."""
    device, n = rows.device, rows.n_states
    threads = min(n, THREADS)
    new, gone, sums = device.new(n, np.float64), device.new(n, np.float64), device.new(4 * threads, np.float64)
    before = list[float]()
    for turn in range(PASSES):
        kernels.each("relax", LANES * n, n, *rows.graph, rows.mean_cost, leave, x, new, gone)
        x, new = new, x
        if turn % EACH < EACH - 1:
            continue
        go_on(limits, WORKING)
        kernels.each("tally", threads, n, new, x, gone, sums)
        drift, moved, ended, size = device.down(sums).reshape(4, threads).sum(axis=1).tolist()
        if not np.isfinite(moved) or moved <= NOISE * size:
            return x if np.isfinite(moved) else None
        before.append(moved)
        slow = len(before) > 8 and moved > 0.5 * before[-9]
        if slow and moved <= 2**10 * NOISE * size:
            return x  # rounding errors keep it from falling further
        if slow and shifts:
            shifts = False  # one shift for all does not help here
            before.clear()
        elif slow and moved > 0.9 * before[-9]:
            return None
        if shifts and ended > 0:
            kernels.each("shift", n, drift / ended * (1 - ended / n), x)
    return None


def device_worst_case(device: Device, prepared: Prepared) -> tuple[IntArray, IntArray] | None:
    """Return the minimal worst-case cost of each state, and after each action; None if the CPU should find them."""
    rows = device_rows(device, prepared)
    if rows is None:
        return None
    room_on(device, 8 * rows.n_states + 8 * rows.n_actions, "worst cases")
    kernels = _kernels(rows, prepared)
    value = device.new(rows.n_states, np.int64)
    kernels.each("begin_worst", rows.n_states, rows.action_start, value)
    for _ in range(PASSES):
        changed = device.new(1, np.int32)
        for _ in range(EACH):
            about = rows.action_start, rows.outcome_start, rows.successor, rows.cost
            kernels.each("lower_worst", rows.n_states, *about, value, changed)
        if not device.down(changed)[0]:
            break
    else:
        return None
    after = device.new(rows.n_actions, np.int64)
    kernels.each("worst_after", rows.n_actions, rows.outcome_start, rows.successor, rows.cost, value, after)
    return rows.by_state(value), rows.by_action(after)
