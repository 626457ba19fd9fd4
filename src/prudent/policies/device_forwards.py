"""Following a policy forwards on a device, level by level, to where its runs arrive: costs as they are, no free cycles.

What the host does on a level is done here after some levels: to add up what ended, and to see whether little is left.
"""

from itertools import pairwise
from typing import Any

import numpy as np

from prudent.engine.prepared import Prepared, choice_type
from prudent.kernels.inflow import CLOSE, LESS, Circling, Ended, Flow, under_way
from prudent.models.rows import FloatArray, IntArray
from prudent.policies.arrivals import Chain
from prudent.policies.policy import BudgetPolicy
from prudent.runtime.gpu import Device
from prudent.runtime.limits import room_on

__all__ = ["DeviceFlow"]

PIECE = 64
"""Arcs to goals that one thread adds up."""

LEVELS = 32
"""Levels after which what ended is added up."""


class DeviceFlow:
    """The mass under way, on a device."""

    def __init__(self, device: Device, policy: BudgetPolicy, chain: Chain, window: int) -> None:
        self.device, self.policy, self.window, self.n = device, policy, window, chain.n_places
        prepared, self._kind = policy.prepared, choice_type(policy.prepared)
        choices, arcs = policy.choices, len(chain.arrivals.source)
        size = np.dtype(self._kind).itemsize
        need = 24 * arcs + (8 + size) * window * self.n + choices.entry.nbytes + 32 * prepared.n_states
        room_on(device, need, "following the policy")
        self._mass = device.new(window * self.n + 1, np.float64)
        self._number = device.new(window * self.n, self._kind)
        self._met = device.new(len(chain.arrivals.state), np.float64)
        self._played = device.new(prepared.n_actions, np.float64)
        up = device.up
        ranges = (up(each) for each in (choices.first, choices.low, choices.high))
        table = up(choices.entry.astype(self._kind, copy=False)), *ranges, choices.stride
        self._choices = *table, up(choices.without.astype(self._kind))
        self._state = up(chain.arrivals.state.astype(np.int32))
        self._action_start = up(prepared.action_start.astype(np.int32))
        self._sections = _sections(prepared, chain.arrivals.state)
        self.take(chain)

    def take(self, chain: Chain) -> None:
        """Take over a chain, with the arcs that still count."""
        found, up, n = chain.arrivals, self.device.up, len(chain.arrivals.state)
        cost = found.cost if found.cost.dtype.itemsize <= 2 else found.cost.astype(np.int32)
        self._kernels = self.device.kernels("forwards", COST=cost.dtype, CHOICE=self._kind)
        arcs = found.source, cost, found.number.astype(self._kind, copy=False), found.probability
        self._arcs = tuple(up(each) for each in arcs)
        self._rows = up(found.arc_start), up(found.sure_stop)
        first, last = int(found.arc_start[n]), int(found.arc_start[-1])
        sure = first + int((found.sure_stop[n:] - found.arc_start[n:-1]).sum())  # then come those that may not count
        pieces = np.append(np.arange(first, last, PIECE), last)
        self._pieces = up(pieces), up(np.clip(sure, pieces[:-1], pieces[1:]))
        self._n_pieces = len(pieces) - 1
        self._changing = up(found.changing.astype(np.int32))

    def pull(self, chain: Chain, circling: Circling, tolerance: float, first: int, last: int, ended: Ended) -> int:
        """Follow the policy on the levels ``first:last``, or as long as more than ``tolerance`` is under way."""
        for begin in range(first, last, LEVELS):
            end = min(begin + LEVELS, last)
            goals = self.device.new((end - begin, self._n_pieces), np.float64)
            for t in range(begin, end):
                self._level(t, chain.start if t == 0 else -1, goals[t - begin])
            ended.total[0, begin:end] = self.device.down(goals).sum(axis=1)
            ended.sums[[0, 2]] += ended.total[0, begin:end].sum()
            left = ended.sums[1] - ended.sums[2]
            if 1.0 - ended.sums[0] > 2.0 * tolerance + CLOSE or left > max(tolerance, LESS * ended.sums[1]):
                continue
            flow, level = self.flow(), self.policy.level
            about = chain.arrivals, circling, self.policy.choices, level, end - 1, flow
            left = under_way(*about, None, None, None, None, None)
            ended.sums[1:] = left, 0.0
            if left <= tolerance and (end > level or left == 0.0):
                ended.stop[0] = end
                return end
        return last

    def _level(self, t: int, entered: int, goals: Any) -> None:
        kernels, line, n, changing = self._kernels, t % self.window * self.n, len(self._state), self._changing
        mass, number = self._mass[line : line + self.n], self._number[line : line + self.n]
        table, looked_up = (self._mass, self._number), (changing, self._state, *self._choices)
        kernels.each("choose", len(changing), line, self.policy.level - t, *looked_up, self._number)
        for first, count in self._sections:
            about = first, t, self.window, self.n, entered
            kernels.each("arrive", count, *about, *self._rows, *self._arcs, *table, mass)
        about = 0, t, self.window, self.n, -1
        kernels.each("arrive", self._n_pieces, *about, *self._pieces, *self._arcs, *table, goals)
        kernels.each("meet", n, mass, self._met)
        kernels.each("play", len(changing), changing, self._state, self._action_start, mass, number, self._played)

    def flow(self) -> Flow:
        """Return the mass under way, on the host."""
        return Flow(self.device.down(self._mass), self.device.down(self._number), self.window, 1)

    def count(self, met: FloatArray, plays: FloatArray) -> None:
        """Add what was met and played so far; forget it."""
        met += self.device.down(self._met)
        plays += self.device.down(self._played)
        self._met[:], self._played[:] = 0.0, 0.0


def _sections(prepared: Prepared, state: IntArray) -> list[tuple[int, int]]:
    """Return where places begin that can be settled side by side, and how many they are."""
    depth = prepared.free_depth[prepared.free_blocks[2]][state]
    cuts = np.flatnonzero(np.concatenate([[True], depth[1:] != depth[:-1], [True]])).tolist()
    return [(first, last - first) for first, last in pairwise(cuts)]
