"""Runs of a policy on the model as the user gave it."""

from numba import njit


@njit(cache=True, nogil=True)
def draw(random, start, stop, probability):
    """Return which of the outcomes ``start:stop`` happens."""
    for o in range(start, stop - 1):
        random -= probability[o]
        if random < 0.0:
            return o
    o = stop - 1
    while probability[o] == 0.0:  # rounding must not make the impossible happen
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
    outcome_start,
    probability,
    successor,
    steps,
    cost,
    first_state,
    first_probability,
    luck,
    level,
    stride,
    table,
    most,
    total,
    paid,
):
    """Fill ``total`` with total costs in lattice steps and ``paid`` with the costs themselves, added up.

    Returns False if a run takes more than ``most`` actions.

    ``table[b, s]`` is the action in ``s`` with ``b`` levels left, -1 in a goal; ``luck`` is the least cost from
    a state less that from the start, by which a state and the cost so far give the budget left.
    """
    for episode in range(len(total)):
        s = first_state[draw(rng.random(), 0, len(first_state), first_probability)]
        spent = 0
        bill = 0.0
        for taken in range(most + 1):
            a = table[max(level - (spent + luck[s]) // stride, 0), s]
            if a < 0:
                break
            if taken == most:
                return False
            o = draw(rng.random(), outcome_start[a], outcome_start[a + 1], probability)
            spent += steps[o]
            bill += cost[o]
            s = successor[o]
        total[episode] = spent
        paid[episode] = bill
    return True
