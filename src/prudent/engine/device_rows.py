"""The rows of a model on a device, by place, as compact as possible: every level of a sweep reads all of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from prudent.engine.places import places_of
from prudent.engine.prepared import Prepared
from prudent.runtime.gpu import Device, Kernels, Model, Resident
from prudent.runtime.limits import room_on

MOST = 2**32 - 1
"""The most outcomes of a model on a device."""

NARROW = 1024
"""The most states of a layer that one block settles: with several blocks, a launch for each would take longer."""

FAR = 2**31 - 1
"""The largest cost, in levels."""


class Run(NamedTuple):
    """A wide layer, or several narrow ones in sequence."""

    first: int  # its first place
    places: int  # how many places
    layers: int  # how many narrow layers; 0 for a wide one
    start: Any  # where they begin, and the last one ends, on the device


@dataclass(frozen=True, eq=False)
class DeviceRows:
    """The rows of a model on a device; those of goals are empty."""

    device: Device
    kind: Any  # the type of the costs
    runs: list[Run]  # layers in order: free moves lead to layers before
    state: Any  # (n_states,)  int32, the state at each place
    place: Any  # (n_states,)  int32, the place of each state
    action: Any  # (n_actions,)  int32, the model's action at each place
    action_start: Any  # (n_states + 1,)  uint32
    outcome_start: Any  # (n_actions + 1,)  uint32
    probability: Any  # (n_outcomes,)
    successor: Any  # (n_outcomes,)  int32, a place
    cost: Any  # (n_outcomes,)
    mean_cost: Any  # (n_actions,)

    @property
    def n_states(self) -> int:
        """The number of states."""
        return len(self.state)

    @property
    def n_actions(self) -> int:
        """The number of actions."""
        return len(self.action)

    def launch(self, kernels: Kernels, name: str, lanes: int, *about: Any) -> None:
        """Launch a kernel that settles places of one level, layer by layer, with this many threads for each place."""
        for run in self.runs:
            if run.layers > 0:
                kernels.alone(f"{name}_layers", run.layers, run.start, *about)
            else:
                kernels.each(name, lanes * run.places, run.first, *about)

    @property
    def graph(self) -> tuple[Any, Any, Any, Any]:
        """The rows without costs, as kernels take them."""
        return self.action_start, self.outcome_start, self.probability, self.successor

    def by_place(self, values: NDArray[Any]) -> Any:
        """Return an entry for each state on the device, by place."""
        return self.device.take(self.device.up(values), self.state)

    def by_action_place(self, values: NDArray[Any]) -> Any:
        """Return an entry for each action on the device, by place."""
        return self.device.take(self.device.up(values), self.action)

    def by_state(self, values: Any) -> NDArray[Any]:
        """Return an entry for each state on the host."""
        return self.device.down_later(self.device.take(values, self.place))()

    def by_action(self, values: Any) -> NDArray[Any]:
        """Return an entry for each action on the host."""
        there = self.device.down(values)
        found = np.empty_like(there)
        found[self.device.down(self.action)] = there
        return found


def resident(device: Device, prepared: Prepared, bring: Callable[[Device, Prepared], Model | None]) -> Model | None:
    """Return what brings a model to a device, which it does once, as long as the model stays there."""
    kept: Resident = prepared.found.setdefault(bring, Resident())
    return kept.on(device, lambda: bring(device, prepared))


def device_rows(device: Device, prepared: Prepared) -> DeviceRows | None:
    """Return the rows of a model on a device; None if there are free cycles, or too many outcomes."""
    return resident(device, prepared, _rows)


def _rows(device: Device, prepared: Prepared) -> DeviceRows | None:
    block_start, _, block_of = prepared.free_blocks
    if len(block_start) <= prepared.n_states or len(prepared.cost) > MOST:
        return None
    places, action = places_of(prepared)
    kind = np.dtype(np.int32) if places.cost.dtype.itemsize > 2 else places.cost.dtype
    if prepared.cost_range[1] > FAR:
        return None
    need = len(prepared.cost) * (12 + kind.itemsize) + 16 * prepared.n_actions + 12 * prepared.n_states
    room_on(device, need, "the model")
    depth = prepared.free_depth[block_of][places.state]
    layer = np.flatnonzero(np.concatenate([[True], depth[1:] != depth[:-1], [True]]))
    narrow = np.diff(layer) <= NARROW
    cuts = np.flatnonzero(np.concatenate([[True], ~(narrow[1:] & narrow[:-1]), [True]]))
    start = device.up(layer.astype(np.int32))
    runs = [
        Run(int(layer[i]), int(layer[j] - layer[i]), j - i if narrow[i] else 0, start[i : j + 1])
        for i, j in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True)
    ]
    return DeviceRows(
        device=device,
        kind=kind,
        runs=runs,
        state=device.up(places.state.astype(np.int32)),
        place=device.up(places.place),
        action=device.up(action.astype(np.int32)),
        action_start=device.up(places.action_start.astype(np.uint32)),
        outcome_start=device.up(places.outcome_start.astype(np.uint32)),
        probability=device.up(places.probability),
        successor=device.up(places.successor),
        cost=device.up(places.cost.astype(kind, copy=False)),
        mean_cost=device.up(prepared.mean_cost[action]),
    )
