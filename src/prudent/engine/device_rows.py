"""The rows of a model on a device, by place, as compact as they can be: every level of a sweep reads all of them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.engine.places import places_of
from prudent.engine.prepared import Prepared
from prudent.models.rows import FloatArray, IntArray
from prudent.runtime.gpu import Device
from prudent.runtime.limits import room_on

__all__ = ["DeviceRows", "device_rows", "in_int"]

MOST = 2**32 - 1
"""The most outcomes of a model on a device."""

FAR = 2**31 - 1
"""Stands for any larger number of levels on a device."""


@dataclass(frozen=True, eq=False)
class DeviceRows:
    """The rows of a model on a device."""

    device: Device
    n_states: int
    n_actions: int
    kind: Any  # the type of the costs
    layer: IntArray  # (n_layers + 1,)  where layers begin: along free moves, none waits for a later one
    action: IntArray  # (n_actions,)  the model's actions, by place, here on the host
    order: IntArray  # (n_states,)  the state at each place, here on the host
    state: Any  # (n_states,)  int32
    action_start: Any  # (n_states + 1,)  uint32
    outcome_start: Any  # (n_actions + 1,)  uint32
    probability: Any  # (n_outcomes,)
    successor: Any  # (n_outcomes,)  int32, a place
    cost: Any  # (n_outcomes,)
    mean_cost: Any  # (n_actions,)

    @property
    def graph(self) -> tuple[Any, Any, Any, Any]:
        """The rows without costs, as kernels take them."""
        return self.action_start, self.outcome_start, self.probability, self.successor

    def by_place(self, values: FloatArray) -> Any:
        """Return values of states on the device, by place."""
        return self.device.up(values[self.order])


def device_rows(device: Device, prepared: Prepared) -> DeviceRows | None:
    """Return the rows of a model on a device; None where there are free cycles, or too many outcomes."""
    return device.once(prepared, lambda: _rows(device, prepared), "rows")


def _rows(device: Device, prepared: Prepared) -> DeviceRows | None:
    block_start, _, block_of = prepared.free_blocks
    if len(block_start) <= prepared.n_states or len(prepared.cost) > MOST:
        return None
    places, action = places_of(prepared)
    kind = np.dtype(np.int32) if places.cost.dtype.itemsize > 2 else places.cost.dtype
    if int(prepared.cost.max(initial=0)) > FAR:
        return None
    need = len(prepared.cost) * (12 + kind.itemsize) + 12 * prepared.n_actions + 8 * prepared.n_states
    room_on(device, need, "the model")
    depth = prepared.free_depth[block_of][places.state]
    layer = np.flatnonzero(np.concatenate([[True], depth[1:] != depth[:-1], [True]]))
    return DeviceRows(
        device=device,
        n_states=prepared.n_states,
        n_actions=prepared.n_actions,
        kind=kind,
        layer=layer,
        action=action,
        order=places.state,
        state=device.up(places.state.astype(np.int32)),
        action_start=device.up(places.action_start.astype(np.uint32)),
        outcome_start=device.up(places.outcome_start.astype(np.uint32)),
        probability=device.up(places.probability),
        successor=device.up(places.successor),
        cost=device.up(places.cost.astype(kind, copy=False)),
        mean_cost=device.up(prepared.mean_cost[action]),
    )


def in_int(levels: IntArray) -> NDArray[np.int32]:
    """Return numbers of levels as a device has them."""
    return np.minimum(levels, FAR).astype(np.int32)
