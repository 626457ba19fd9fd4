"""Bellman rounds on a prepared model: over all its arcs, or over those at no cost."""

import numpy as np
from scipy.sparse import csr_array, eye_array
from scipy.sparse.linalg import splu

from prudent.errors import PrudentError
from prudent.graph import Blocks, BoolArray
from prudent.kernels.blocks import ROUNDS, Round, solve_block, solve_blocks
from prudent.model import FloatArray, IntArray, owner
from prudent.prepared import Prepared

__all__ = ["UNIT", "block_rounding", "free_round", "full_round", "longest_stay", "rounding", "solve_round"]

UNIT = float(np.finfo(float).eps) / 2
"""Half a unit in the last place of 1: the relative error of one operation."""

DENSE = 256
"""Blocks up to this size are solved by dense elimination in the kernel, larger ones by sparse factorisation."""

LARGEST_FREE = 4096
"""The largest block of the zero-cost graph; its dense room takes 128 MB."""


def full_round(prepared: Prepared) -> Round:
    """Return the round over all arcs: one step of the model."""
    return _round(prepared, prepared.blocks, prepared.outcome_start[1:].copy(), DENSE)


def free_round(prepared: Prepared) -> Round:
    """Return the round over arcs at no cost: one level of the budget."""
    size = int(np.diff(prepared.free_blocks[0]).max())
    if size > LARGEST_FREE:
        raise PrudentError(
            f"{size:,} states of {prepared.model.name} form one cycle of outcomes at no cost; "
            f"at most {LARGEST_FREE:,} are supported"
        )
    return _round(prepared, prepared.free_blocks, prepared.free_stop, LARGEST_FREE)


def _round(prepared: Prepared, blocks: Blocks, inner_stop: IntArray, most: int) -> Round:
    block_start, block_state, block_of = blocks
    size = np.diff(block_start)
    place = np.empty(prepared.n_states, dtype=np.int64)
    place[block_state] = np.arange(prepared.n_states) - block_start[block_of[block_state]]
    room = int(size[size <= most].max(initial=1))
    outside = np.arange(len(prepared.cost)) >= inner_stop[prepared.outcome_action]
    weight = prepared.probability * outside
    return Round(
        block_start=block_start,
        block_state=block_state,
        place=place,
        action_start=prepared.action_start,
        inner_start=prepared.outcome_start[:-1].copy(),
        inner_stop=inner_stop,
        probability=prepared.probability,
        successor=prepared.successor,
        leave=np.bincount(prepared.outcome_action, weights=weight, minlength=prepared.n_actions),
        dense=np.empty((room, room)),
        work=np.empty((3, room)),
    )


def rounding(prepared: Prepared) -> FloatArray:
    """Return per action the relative rounding error of one weighted sum over its outcomes.

    Counts a unit for each addition and product, and two per outcome for the probabilities, whose sum may be
    that far from 1.
    """
    return (4 * np.diff(prepared.outcome_start) + 8) * UNIT


def block_rounding(prepared: Prepared, arcs: Round) -> FloatArray:
    """Return per block the relative error of evaluating a policy there by elimination.

    A value is a ratio of sums of products of at most as many chances as the block has states, so relative errors
    of the chances count that often, whatever the loops; the elimination itself adds a small multiple of size^3.
    """
    size = np.diff(arcs.block_start)
    return np.asarray(4.0 * size**3 * UNIT + 2 * size * rounding(prepared).max(initial=0.0))


def longest_stay(prepared: Prepared, arcs: Round) -> FloatArray:
    """Return per state a bound on the expected number of steps in the free round, under any policy.

    Infinite where rounding does not let it be sure.
    """
    if (np.diff(arcs.block_start) == 1).all():
        return np.full(prepared.n_states, np.inf)  # not needed
    everything, one = np.ones(prepared.n_actions, dtype=bool), np.ones(prepared.n_actions)
    steps = solve_round(arcs, one, everything, arcs.action_start[:-1].copy(), sense=-1.0)
    inner = np.arange(len(prepared.cost)) < arcs.inner_stop[prepared.outcome_action]
    state, action = prepared.outcome_state[inner], prepared.outcome_action[inner]
    fall = prepared.probability[inner] * (steps[state] - steps[prepared.successor[inner]])
    gain = np.bincount(action, weights=fall, minlength=prepared.n_actions)
    size = np.bincount(action, weights=np.abs(fall), minlength=prepared.n_actions)
    leaving = arcs.leave * steps[prepared.action_state]
    sure = gain + leaving - rounding(prepared) * (size + leaving) >= 0.5
    return 2 * steps if sure.all() else np.full(prepared.n_states, np.inf)


def solve_round(arcs: Round, k: FloatArray, allowed: BoolArray, choice: IntArray, *, sense: float = 1.0) -> FloatArray:
    """Solve a full round for action costs ``k``; improve ``choice`` (proper on entry) in place, return the values."""
    value = np.zeros(len(arcs.place))
    large = np.flatnonzero(np.diff(arcs.block_start) > len(arcs.dense))
    done = 0
    for block in [*large.tolist(), len(arcs.block_start) - 1]:
        solve_blocks(arcs, done, block, k, allowed, sense, choice, value)
        if block < len(arcs.block_start) - 1:
            _solve_large(arcs, block, k, allowed, sense, choice, value)
        done = block + 1
    return value


def _solve_large(
    arcs: Round,
    block: int,
    k: FloatArray,
    allowed: BoolArray,
    sense: float,
    choice: IntArray,
    value: FloatArray,
) -> None:
    """Policy iteration on one large block, each policy evaluated by a sparse factorisation and refined once."""
    state = arcs.block_state[arcs.block_start[block] : arcs.block_start[block + 1]]
    local = np.full(len(arcs.place), -1, dtype=np.int64)
    local[state] = np.arange(len(state))
    count = arcs.action_start[state + 1] - arcs.action_start[state]
    action_start = np.concatenate([[0], np.cumsum(count)])
    action_state = owner(action_start)
    action = np.arange(action_start[-1]) - action_start[action_state] + arcs.action_start[state][action_state]
    size = arcs.inner_stop[action] - arcs.inner_start[action]
    first = np.concatenate([[0], np.cumsum(size)])
    row = owner(first)
    outcome = np.arange(first[-1]) - first[row] + arcs.inner_start[action][row]
    target = local[arcs.successor[outcome]]
    inside = target >= 0
    chance = arcs.probability[outcome]
    constant = k[action] + np.bincount(
        row[~inside], weights=(chance * value[arcs.successor[outcome]])[~inside], minlength=len(action)
    )
    move = csr_array((chance[inside], (row[inside], target[inside])), shape=(len(action), len(state)))
    begin, end = int(arcs.block_start[block]), int(arcs.block_start[block + 1])
    for _ in range(ROUNDS):
        chosen = choice[state] - arcs.action_start[state] + action_start[:-1]
        matrix = (eye_array(len(state)) - move[chosen]).tocsc()
        try:
            factor = splu(matrix)
        except RuntimeError:
            raise PrudentError(
                f"{len(state):,} states form one cycle that is left with less than 1e-16 of probability; "
                "such chances are too small to be told from none"
            ) from None
        u = factor.solve(constant[chosen])
        value[state] = u + factor.solve(constant[chosen] - matrix @ u)
        if solve_block(arcs, begin, end, k, allowed, sense, choice, value, False):
            break
