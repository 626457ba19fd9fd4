"""A model as a network: the ways between its states, how often a plan's runs take them, and where states lie."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from prudent.errors import PrudentError
from prudent.models.rows import FloatArray, IntArray, owner
from prudent.models.ssp import SSP

MOST = 600
"""The most states that are laid out."""


@dataclass(frozen=True)
class Ways:
    """Pairs of states that an action may lead between, (n_ways,) each."""

    source: IntArray
    target: IntArray
    action: IntArray
    share: FloatArray  # the chance that the action leads there
    cost: FloatArray  # the mean cost if it does

    def used(self, played: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return pairs of states, (n, 2), and how often a run goes from one to the other, (n,).

        ``played`` gives how often a run plays each action.
        """
        pairs = np.column_stack([self.source, self.target])
        once, which = np.unique(pairs, axis=0, return_inverse=True)
        times = np.bincount(which.ravel(), weights=played[self.action] * self.share, minlength=len(once))
        return once, times.astype(np.float64)


def ways_of(model: SSP) -> Ways:
    """Return the ways of each action, with the chance of each and its mean cost."""
    action = owner(model.outcome_start)
    key = action * model.n_states + model.successor
    once, which = np.unique(key[model.probability > 0], return_inverse=True)
    chance = model.probability[model.probability > 0]
    share = np.bincount(which, weights=chance, minlength=len(once)).astype(np.float64)
    cost = np.bincount(which, weights=chance * model.cost[model.probability > 0], minlength=len(once)) / share
    a = once // model.n_states
    return Ways(owner(model.action_start)[a], once % model.n_states, a, share, cost)


def place_states(model: SSP) -> FloatArray:
    """Return positions of states, (n_states, 2), whose distances match the costs between them as a plane allows.

    This is classical multidimensional scaling of shortest-path costs, turned so that the start is left of the goal.
    """
    if model.n_states > MOST:
        raise PrudentError(f"{model.name} has {model.n_states:,} states; {MOST} are laid out at most: give positions=")
    way = ways_of(model)
    length = np.maximum(way.cost, 1e-3 * max(float(np.abs(way.cost).max(initial=0.0)), 1e-9))
    n = model.n_states
    order = np.lexsort((length, way.target, way.source))
    keep = np.append(True, np.diff(way.source[order] * n + way.target[order]) != 0)
    order = order[keep]
    arcs = csr_array((length[order], (way.source[order], way.target[order])), shape=(n, n))
    far = shortest_path(arcs, directed=False)
    far = np.where(np.isfinite(far), far, 1.2 * far[np.isfinite(far)].max(initial=1.0))
    middle = np.eye(n) - 1 / n
    value, vector = np.linalg.eigh(-0.5 * middle @ far**2 @ middle)
    flat = vector[:, -2:][:, ::-1] * np.sqrt(np.maximum(value[-2:][::-1], 0.0))
    if flat.shape[1] < 2:
        flat = np.column_stack([flat, np.zeros(n)])
    across = flat[np.flatnonzero(model.is_goal)[0]] - flat[model.initial_state[0]]
    angle = np.arctan2(across[1], across[0])
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    flat = flat @ turn
    if flat[np.argmax(np.abs(flat[:, 1]).round(6)), 1] < 0:  # of two mirror images, always take the same
        flat[:, 1] *= -1
    return np.asarray(flat)
