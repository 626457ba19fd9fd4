"""Runs of a policy on the model as the user gave it."""

from typing import NamedTuple

import numpy as np
from numba import njit

from prudent.kernels.choices import Choices, look_up


class Walk(NamedTuple):
    """What runs of a policy walk over: the states of the model, then those with the memory of the policy, if any.

    What is played is the number chosen plus the state's ``offset``; ``begin``, ``end`` and ``action`` are by this sum.
    """

    probability: np.ndarray  # (n_outcomes,)
    successor: np.ndarray  # (n_outcomes,)
    charge: np.ndarray  # (n_outcomes,)  in levels
    cost: np.ndarray  # (n_outcomes,)  the model's
    first_state: np.ndarray  # (n_initial,)
    first_probability: np.ndarray  # (n_initial,)
    first_charge: np.ndarray  # (n_initial,)
    level: int
    choices: Choices
    offset: np.ndarray  # (n_states,)  -1 in goals
    begin: np.ndarray  # the first outcome
    end: np.ndarray  # past the last outcome
    action: np.ndarray  # the model's action
    state: np.ndarray  # (n_states,)  the model's state
    memory: np.ndarray  # (n_states,)  what is remembered there; 0 for the model's own


@njit(cache=True, nogil=True)
def draw(random, start, stop, probability):
    """Return the outcome among ``start:stop`` that a random number in [0, 1) draws."""
    for o in range(start, stop - 1):
        random -= probability[o]
        if random < 0.0:
            return o
    o = stop - 1
    while probability[o] == 0.0:  # rounding must not draw an outcome of probability 0
        o -= 1
    return o


@njit(cache=True, nogil=True)
def draw_each(random, start, stop, probability, out):
    """Draw one outcome for each of many rows."""
    for i in range(len(out)):
        out[i] = draw(random[i], start[i], stop[i], probability)


@njit(cache=True, nogil=True)
def run_episodes(rng, walk, most, total, paid):
    """Fill ``total`` with the levels charged to each run and ``paid`` with the sum of its costs.

    Returns False if a run takes more than ``most`` actions.
    """
    entry, first_entry, low, high, stride, without = walk.choices
    for episode in range(len(total)):
        first = draw(rng.random(), 0, len(walk.first_state), walk.first_probability)
        s = walk.first_state[first]
        charged = walk.first_charge[first]
        bill = 0.0
        for taken in range(most + 1):
            if walk.offset[s] < 0:
                break
            if taken == most:
                return False
            a = walk.offset[s] + look_up(entry, first_entry, low, high, stride, without, walk.level - charged, s)
            o = draw(rng.random(), walk.begin[a], walk.end[a], walk.probability)
            charged += walk.charge[o]
            bill += walk.cost[o]
            s = walk.successor[o]
        total[episode] = charged
        paid[episode] = bill
    return True
