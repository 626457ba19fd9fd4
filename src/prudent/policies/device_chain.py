"""Evaluating a policy backwards on a device, level by level: models with cycles, none of them free."""

import numpy as np

from prudent.engine.device_rows import DeviceRows
from prudent.engine.prepared import choice_type
from prudent.engine.sweep.level_layout import level_layout
from prudent.engine.sweep.levels import window_of
from prudent.models.rows import FloatArray
from prudent.policies.policy import BudgetPolicy
from prudent.runtime.limits import Limits, go_on, room_on
from prudent.runtime.progress import Progress

__all__ = ["backward_on_device"]

LEVELS = 64
"""Levels between two looks at the clock."""


def backward_on_device(
    rows: DeviceRows, policy: BudgetPolicy, excess: FloatArray, mean: FloatArray, mean_cost: FloatArray,
    limits: Limits, doing: str,
) -> FloatArray:  # fmt: skip
    """Return the expected excess and cost of a policy begun with each budget up to its own, (2, n_levels).

    ``excess`` and ``mean`` are those once the budget is gone, by state, and ``mean_cost`` that of each action.
    """
    device, prepared, choices, kind = rows.device, policy.prepared, policy.choices, choice_type(policy.prepared)
    n, window, start = rows.n_states, window_of(prepared, policy.level), level_layout(prepared).start
    room_on(device, 16 * n * window + choices.entry.nbytes + 40 * n + 8 * rows.n_actions, "evaluating the plan")
    kernels, up = device.kernels("levels", COST=rows.kind, CHOICE=kind), device.up
    table = device.new((window * n, 2), np.float64)
    table[:n, 0], table[:n, 1] = rows.by_place(excess), rows.by_place(mean)
    model = *rows.graph, rows.cost, rows.by_action_place(mean_cost), device.new(1, np.int64)
    ranges = (up(each) for each in (choices.first, choices.low, choices.high))
    looked_up = rows.state, up(choices.entry.astype(kind, copy=False)), *ranges, choices.stride
    found = device.new((policy.level, 2), np.float64)
    without = up(choices.without.astype(kind))
    with Progress(doing, total=policy.level, unit="levels") as progress:
        for b in range(1, policy.level + 1):
            about = n, start, b, window, 0.0, 1.0, *model
            rows.launch(kernels, "follow", 1, *about, *looked_up, without, table, found[b - 1])
            if b % LEVELS == 0:
                go_on(limits, doing)
                progress.at(b)
    first = [[excess[prepared.start]], [mean[prepared.start]]]
    return np.concatenate([first, device.down(found).T], axis=1)
