"""Runs of a policy on the model as the user gave it."""

from numba import njit

from prudent.kernels.choices import look_up


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
def run_episodes(
    rng,
    probability,
    successor,
    charge,
    cost,
    first_state,
    first_probability,
    first_charge,
    level,
    choices,
    offset,
    begin,
    end,
    most,
    total,
    paid,
):
    """Fill ``total`` with the levels charged to each run and ``paid`` with the sum of its costs.

    Returns False if a run takes more than ``most`` actions.

    Where ``choices`` has ``n`` for a state ``s``, the outcomes ``begin[a]:end[a]`` are drawn from, with ``a`` equal to
    ``offset[s] + n``; ``offset`` is -1 in a goal.
    """
    entry, first_entry, low, high, stride, without = choices
    for episode in range(len(total)):
        first = draw(rng.random(), 0, len(first_state), first_probability)
        s = first_state[first]
        charged = first_charge[first]
        bill = 0.0
        for taken in range(most + 1):
            if offset[s] < 0:
                break
            if taken == most:
                return False
            a = offset[s] + look_up(entry, first_entry, low, high, stride, without, level - charged, s)
            o = draw(rng.random(), begin[a], end[a], probability)
            charged += charge[o]
            bill += cost[o]
            s = successor[o]
        total[episode] = charged
        paid[episode] = bill
    return True
