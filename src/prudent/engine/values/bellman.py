"""Bellman's equations of a prepared model: along all its arcs, or along the free ones."""

from collections.abc import Iterable

import numpy as np

from prudent.engine.prepared import Prepared, once
from prudent.engine.values.large_components import FINE, LargeBlock
from prudent.errors import PrudentError, TooLarge
from prudent.kernels.acyclic import Actions, solve_backwards
from prudent.kernels.blocks import Arcs, longest_in_blocks, solve_blocks
from prudent.kernels.counting import sorted_by
from prudent.kernels.levels import Costs
from prudent.models.graph import Blocks
from prudent.models.rows import BoolArray, FloatArray, IntArray
from prudent.runtime.limits import Limits
from prudent.runtime.team import in_parts

UNIT = float(np.finfo(float).eps) / 2
"""Half a unit in the last place of 1: the relative error of one operation."""

DENSE = 64
"""Blocks up to this size are solved by dense elimination in the kernel, larger ones by :class:`LargeBlock`."""

RARE = 1e-145
"""If all probabilities are larger, products of two of them are floats with all their digits."""

LARGEST_FREE, SOLVED = 4096, 256
"""The largest block of the zero-cost graph; its dense matrix takes 128 MB.  The largest one that is solved as equations
where a lower bound on its values is enough."""

STAYING = 1000
"""The most passes over a large block for a bound on the number of free steps."""


def all_arcs(prepared: Prepared) -> Arcs:
    """Return the arcs of all outcomes, with a workspace."""
    return _with_workspace(_all(prepared), DENSE)


def free_arcs(prepared: Prepared) -> Arcs:
    """Return the arcs of free outcomes, which stay on one level of the budget, with a workspace."""
    arcs = bare_free_arcs(prepared)
    size = int(np.diff(arcs.block_start).max())
    if size > LARGEST_FREE:
        raise TooLarge(
            f"{size:,} states of {prepared.model.name} form one cycle of outcomes at no cost; at most {LARGEST_FREE:,} "
            "are supported; give some of these outcomes a cost"
        )
    return _with_workspace(arcs, LARGEST_FREE)


def arcs_for_bounds(prepared: Prepared) -> Arcs:
    """Return the same for lower bounds: blocks may have any size, and larger ones are not solved as equations."""
    return _with_workspace(bare_free_arcs(prepared), SOLVED)


@once
def _all(prepared: Prepared) -> Arcs:
    blocks = prepared.blocks
    if not prepared.acyclic:  # then the order inside a block matters: nearest to a goal first
        block_start, _, block_of = blocks
        order = np.argsort(prepared.graph.distance, kind="stable")
        blocks = block_start, order[sorted_by(block_of[order], block_start)], block_of
    return _arcs(prepared, blocks, prepared.outcome_start[1:])


@once
def bare_free_arcs(prepared: Prepared) -> Arcs:
    """Return the same without a workspace."""
    return _arcs(prepared, prepared.free_blocks, prepared.free_stop)


def _arcs(prepared: Prepared, blocks: Blocks, inner_stop: IntArray) -> Arcs:
    block_start, block_state, _ = blocks
    rank = np.empty(prepared.n_states, dtype=np.int32)
    rank[block_state] = np.arange(prepared.n_states, dtype=np.int32)
    leave = np.zeros(prepared.n_actions)
    outer = np.flatnonzero(np.arange(len(prepared.cost)) >= inner_stop[prepared.outcome_action])
    np.add.at(leave, prepared.outcome_action[outer], prepared.probability[outer])
    return Arcs(
        block_start=block_start,
        block_state=block_state,
        rank=rank,
        action_start=prepared.action_start,
        inner_start=prepared.outcome_start[:-1],
        inner_stop=inner_stop,
        probability=prepared.probability,
        successor=prepared.successor,
        leave=leave,
        dense=np.empty((0, 0)),
        work=np.empty((3, 0)),
    )


def _with_workspace(arcs: Arcs, most: int) -> Arcs:
    """Return arcs with a workspace of their own, for blocks up to a size."""
    size = np.diff(arcs.block_start)
    largest = int(size[size <= most].max(initial=1))
    return arcs._replace(dense=np.empty((largest, largest)), work=np.empty((3, largest)))


@once
def rounding(prepared: Prepared) -> FloatArray:
    """Return per action the relative rounding error of one weighted sum over its outcomes.

    It counts one unit for each addition and product, and two per outcome for the probabilities, whose sum may be that
    far from 1.  Outcomes count as in the model, before equal ones were merged.
    """
    given = np.append(np.diff(prepared.model.outcome_start), len(prepared.model.initial_state))  # -1: the initial draw
    return np.asarray((4 * np.maximum(np.diff(prepared.outcome_start), given[prepared.model_action]) + 8) * UNIT)


@once
def largest_rounding(prepared: Prepared) -> float:
    """Return the largest relative rounding error of one weighted sum over an action's outcomes."""
    return float(rounding(prepared).max(initial=0.0))


def costs_of(prepared: Prepared, arcs: Arcs) -> Costs:
    """Return the costs for a kernel, with the relative errors of evaluating a policy in a block by elimination.

    A value is a ratio of sums of products, each of at most as many probabilities as the block has states.  So their
    relative errors count that often, whatever the cycles; the elimination itself adds a small multiple of size^3.
    """
    size = np.diff(arcs.block_start)
    return Costs(
        outcome_start=prepared.outcome_start,
        cost=prepared.cost,
        mean_cost=prepared.mean_cost,
        rounding=rounding(prepared),
        block_rounding=np.asarray(4.0 * size**3 * UNIT + 2 * size * largest_rounding(prepared)),
    )


def path_rounding(prepared: Prepared, steps: FloatArray) -> float:
    """Return the relative error of sums of probabilities along a run; it grows with the run's expected length."""
    return 4 * largest_rounding(prepared) * (10 + float(steps.max(initial=0.0)))


def longest_stay(prepared: Prepared, arcs: Arcs) -> FloatArray:
    """Return per state a bound on the expected number of steps along free arcs, under any policy.

    It is infinite if rounding errors are too large to prove a bound.
    """
    if (np.diff(arcs.block_start) == 1).all():
        return np.full(prepared.n_states, np.inf)  # no block uses it
    steps = np.zeros(prepared.n_states)
    longest_in_blocks(arcs, STAYING, steps)
    inner = np.arange(len(prepared.cost)) < arcs.inner_stop[prepared.outcome_action]
    state, action = prepared.outcome_state[inner], prepared.outcome_action[inner]
    fall = prepared.probability[inner] * (steps[state] - steps[prepared.successor[inner]])
    gain = np.bincount(action, weights=fall, minlength=prepared.n_actions)
    size = np.bincount(action, weights=np.abs(fall), minlength=prepared.n_actions)
    leaving = arcs.leave * steps[prepared.action_state]
    sure = gain + leaving - rounding(prepared) * (size + leaving) >= 0.5
    return 2 * steps if sure.all() else np.full(prepared.n_states, np.inf)


def refuse_endless(prepared: Prepared) -> None:
    """Reject cycles at no cost that floats cannot follow, since they are left too rarely."""
    if prepared.acyclic or prepared.probability.min(initial=1.0) > RARE:
        return
    arcs = free_arcs(prepared)
    steps = solve_bellman(arcs, np.ones(prepared.n_actions), arcs.action_start[:-1].copy(), sense=-1.0)
    if not (steps < 1 / RARE**2).all():
        model, state_of = prepared.model, prepared.members.state_of[: prepared.model.n_states]
        state = model.state(int(np.argmax((state_of >= 0) & ~(steps < 1 / RARE**2)[state_of])))
        raise PrudentError(
            f"state {state!r} of {model.name} leads to a cycle at no cost that is left too rarely for floats, after an "
            f"expected {1 / RARE**2:g} actions or more; give the outcomes that leave it larger probabilities, or "
            "remove its actions"
        )


def solve_bellman(
    arcs: Arcs,
    k: FloatArray,
    choice: IntArray,
    *,
    allowed: BoolArray | None = None,
    sense: float = 1.0,
    share: float = 0.0,
    large: Iterable[LargeBlock] = (),
    finest: float = FINE,
) -> FloatArray:
    """Solve Bellman's equations for action costs ``k``; return the values, and improve a proper ``choice`` in place.

    If only the choice is ``allowed``, it is evaluated.  ``sense`` 1 minimises, -1 maximises.  Gains up to ``share`` of
    an action's own cost do not count.  ``large`` lists the blocks that do not fit into the dense matrix; their
    residuals are reduced to ``finest``, relative to the sums from which they come.
    """
    value, done = np.zeros(len(arcs.rank)), 0
    used = np.ones(len(k), dtype=bool) if allowed is None else allowed
    for block in large:
        solve_blocks(arcs, done, block.number, k, used, sense, share, choice, value)
        if allowed is None:
            block.solve(k, sense, share, choice, value, finest)
        else:
            block.evaluate(k, choice, value, finest)
        done = block.number + 1
    solve_blocks(arcs, done, len(arcs.block_start) - 1, k, used, sense, share, choice, value)
    return value


def evaluate_policy(
    prepared: Prepared,
    k: FloatArray,
    choice: IntArray,
    limits: Limits,
    *,
    large: Iterable[LargeBlock] | None = None,
    finest: float = FINE,
) -> FloatArray:
    """Return the expected totals of action costs ``k``, which may have either sign, of a proper policy.

    ``large`` lists the large blocks if the caller has them already.
    """
    if prepared.acyclic:
        return without_cycles(prepared, k, choice)[0].ravel()
    large = large_blocks(prepared, limits) if large is None else large
    arcs, allowed = all_arcs(prepared), prepared.playing(choice)
    return solve_bellman(arcs, k, choice, allowed=allowed, large=large, finest=finest)


def without_cycles(prepared: Prepared, k: FloatArray, policy: IntArray | None = None) -> tuple[FloatArray, IntArray]:
    """Return, without cycles, the table of values with bounds and the best choice; or the values of a policy alone."""
    first, last, columns, items = prepared.action_start[:-1], prepared.action_start[1:], 4, float(len(prepared.cost))
    if policy is not None:
        first, last, columns = policy, policy + ~prepared.is_goal, 1
        items *= prepared.n_states / max(prepared.n_actions, 1)  # about
    rows = prepared.outcome_start, prepared.probability, prepared.successor
    actions, choice = Actions(first, last, *rows, k, rounding(prepared)), first.copy()
    order, table = prepared.order, np.empty((prepared.n_states, columns))
    in_parts(prepared.threads, solve_backwards, items, order.backwards, actions, choice, table, most=order.width)
    return table, choice


def large_blocks(prepared: Prepared, limits: Limits) -> list[LargeBlock]:
    """Return the blocks of all arcs that do not fit into a dense matrix."""
    arcs = _all(prepared)
    found = np.flatnonzero(np.diff(arcs.block_start) > DENSE)
    ends = arcs.block_state[[arcs.block_start[found], arcs.block_start[found + 1] - 1]]
    nearest, farthest = prepared.graph.distance[ends]
    return [
        LargeBlock(arcs, block, depth, limits, prepared.threads)
        for block, depth in zip(found.tolist(), (farthest - nearest).tolist(), strict=True)
    ]
