"""Policy evaluation in a large block, for which dense elimination is too expensive.

The equations ``x = rhs + P x`` of one policy, each divided by its diagonal, are solved in one of two ways:

* *iteratively*: BiCGSTAB, preconditioned by one Gauss-Seidel pass in ascending order of value.  A few dozen products
  suffice if the block mixes quickly, however slowly it is left (that is one isolated mode, which Krylov methods
  handle), or if the policy mostly moves towards lower values;
* *directly*, for blocks that mix slowly.  Those are narrow (chains, roads, grids), and only narrow ones are factorised:
  with states in Cuthill-McKee order the factors fit into a band.  A thin band is solved by elimination without
  subtractions, accurate in every entry whatever the probabilities, even if the way out leads through higher values.
  A wider band, or one with a few states that most others lead to, is solved by SuperLU, with less memory and work.

Iteration comes first, with bounded effort, unless the direct way is as quick.  If neither succeeds, GMRES runs for
longer, and its result is used as it is.  Each result is judged by its residual, which is summed from differences of
values, and refined until the residual is within rounding error.  Callers that need a bound check it themselves.
"""

from collections.abc import Callable, Iterator

import numpy as np
from scipy.sparse import csr_array, eye_array
from scipy.sparse.csgraph import breadth_first_order, reverse_cuthill_mckee
from scipy.sparse.linalg import LinearOperator, gmres, splu

from prudent.kernels.blocks import ROUNDS, Arcs, solve_block
from prudent.kernels.rows import (
    Rows,
    apply_rows,
    eliminate_rows,
    iterate_rows,
    policy_constants,
    policy_rows,
    residual_rows,
    substitute_rows,
    sweep_rows,
)
from prudent.models.rows import BoolArray, FloatArray, IntArray, owner

__all__ = ["FINE", "UNIT", "LargeBlock"]

UNIT = float(np.finfo(float).eps) / 2
"""Half a unit in the last place of 1: the relative error of one operation."""

ROUGH, FINE = 1e-5, 1e-14
"""The residuals to reach, relative to their sums: while policies still change much, and in the end."""

GOOD = 1e-9
"""The residual below which no other way of solving is tried."""

PRODUCTS = 60
"""Steps of BiCGSTAB (two products each) before a factorisation is considered."""

KRYLOV, RESTARTS = 40, 50
"""The products, and vectors kept, between two restarts of GMRES; and the number of restarts."""

SMALL, THIN = 20_000, 5e6
"""The most states of a block, and operations inside its band, for which factorising is as quick and comes first."""

ENTRIES, WORK, BANDED = 1e8, 1e11, 2e9
"""The most entries and operations of a factorisation inside its band; the most operations of our own elimination."""


Step = Callable[[FloatArray, float], FloatArray]
"""Takes the residual of each equation and the fraction to reduce it to; returns a correction of the solution."""


class LargeBlock:
    """One large block; keeps the policy that it evaluated last, and its factorisation."""

    def __init__(self, arcs: Arcs, block: int) -> None:
        self.arcs, self.number = arcs, block
        self.first, self.last = int(arcs.block_start[block]), int(arcs.block_start[block + 1])
        self.state = arcs.block_state[self.first : self.last]
        self.chosen = np.full(len(self.state), -1)
        self.factor: Step | None = None
        self.direct = False  # whether the last policy was factorised
        self.wide = False  # whether the band of a policy was too wide for factorising to come first

    def solve(
        self, k: FloatArray, allowed: BoolArray, sense: float, choice: IntArray, value: FloatArray, finest: float
    ) -> None:
        """Improve a proper ``choice`` in place by policy iteration, and fill in its values.

        Ends when no gain exceeds the accuracy of the evaluation, or when the sum of the values no longer improves.  A
        policy that cannot be evaluated (after rounding errors, it may never leave the block) is undone.
        """
        tolerance = max(ROUGH, finest)
        kept, kept_value, total = choice[self.state], value[self.state], np.inf
        for turn in range(ROUNDS):
            excess, lack = self.evaluate(k, choice, value, tolerance)
            now = sense * float(value[self.state].sum())
            if turn > 0 and not (excess <= max(10 * tolerance, GOOD) and now < total + ROUGH * abs(total)):
                choice[self.state], value[self.state] = kept, kept_value
                if tolerance <= finest:
                    return
                tolerance = finest
                continue
            if tolerance <= finest and now >= total - FINE * abs(total):
                return
            kept, kept_value, total = choice[self.state], value[self.state], now
            if solve_block(self.arcs, self.first, self.last, k, allowed, sense, choice, value, False, 2 * lack):
                if tolerance <= finest:
                    return
                tolerance, total = finest, np.inf

    def evaluate(self, k: FloatArray, choice: IntArray, value: FloatArray, tolerance: float) -> tuple[float, float]:
        """Fill in the values of a policy; ``value`` enters with a first guess.

        Returns the part of the residual beyond rounding error, relative to its sums, and the largest residual.
        """
        self._take(choice, value)
        rhs = policy_constants(self.arcs, self.first, self.last, self.order, k, choice, value) / self.rows.away
        x = value[self.state[self.order]]
        lack, excess, largest = residual_rows(self.rows, rhs, x, 4 * UNIT)
        for step in self._ways():
            for _ in range(8):
                if excess <= tolerance:
                    break
                new = x + step(lack, max(1e-9, 0.01 * tolerance / excess))
                new_lack, new_excess, new_largest = residual_rows(self.rows, rhs, new, 4 * UNIT)
                falls = new_excess < 0.5 * excess  # also false if the step gave nan
                if new_excess < excess:
                    x, lack, excess, largest = new, new_lack, new_excess, new_largest
                if not falls:
                    break
            if excess <= max(tolerance, GOOD):
                break
        value[self.state[self.order]] = x
        return excess, largest

    def _take(self, choice: IntArray, value: FloatArray) -> None:
        """Set up the equations of a policy, states in ascending order of their current values."""
        chosen = choice[self.state]
        if (chosen == self.chosen).all():
            return
        self.chosen, self.factor = chosen, None
        here = value[self.state]
        self.order = np.argsort(here, kind="stable")
        self.rows = policy_rows(self.arcs, self.first, self.last, self.order, choice)
        if not here.any():  # no values yet: order by the number of steps out of the block
            self.order = self.order[_outwards(self.rows)]
            self.rows = policy_rows(self.arcs, self.first, self.last, self.order, choice)

    def _ways(self) -> Iterator[Step]:
        """Yield the ways to solve the equations, in the order in which to try them."""
        step = None
        if self.direct or (len(self.state) <= SMALL and not self.wide):
            step = self._factorised(WORK if self.direct else THIN)
            self.wide = step is None
        if step is None:
            yield self._iterate
            step = self._factorised(WORK)
        self.direct = step is not None
        if step is not None:
            yield step
        yield self._iterate_long

    def _iterate(self, lack: FloatArray, fraction: float) -> FloatArray:
        scale = np.abs(lack).max()  # so that no square underflows
        return np.asarray(scale * iterate_rows(self.rows, lack / scale, fraction, PRODUCTS))

    def _iterate_long(self, lack: FloatArray, fraction: float) -> FloatArray:
        shape, scale = (len(lack), len(lack)), np.abs(lack).max()
        product = LinearOperator(shape, matvec=lambda x: apply_rows(self.rows, x), dtype=np.float64)
        sweep = LinearOperator(shape, matvec=lambda x: sweep_rows(self.rows, x), dtype=np.float64)
        with np.errstate(all="ignore"):  # it may break down; the residual shows that
            found, _ = gmres(product, lack / scale, rtol=fraction, atol=0.0, restart=KRYLOV, maxiter=RESTARTS, M=sweep)
        return np.asarray(scale * found)

    def _factorised(self, most: float) -> Step | None:
        """Factorise the equations if that takes at most ``most`` operations; else return None."""
        if self.factor is None:
            self.factor = _factor(self.rows, most)
        return self.factor


def _outwards(rows: Rows) -> IntArray:
    """Return the states in the order of a breadth-first search backwards from outside the block."""
    size = len(rows.leave)
    leaving = np.flatnonzero(rows.leave > 0)
    source, target = np.append(rows.column, np.full(len(leaving), size)), np.append(owner(rows.start), leaving)
    back = csr_array((np.ones(len(source)), (source, target)), shape=(size + 1, size + 1))
    order: IntArray = breadth_first_order(back, size, return_predecessors=False)[1:].astype(np.int64)
    return order if len(order) == size else np.arange(size)


def _factor(rows: Rows, most: float) -> Step | None:
    size = len(rows.leave)
    start = rows.start.astype(np.int32)  # the type that SuperLU needs
    moves = csr_array((rows.chance, rows.column, start), shape=(size, size))
    rank, width, n_hubs = _band(moves)
    full = width + n_hubs
    if size * full > ENTRIES or size * full**2 > most:
        return None
    if n_hubs == 0 and size * width**2 <= BANDED:
        band, stay = eliminate_rows(rows, rank, width)
        return lambda lack, _: np.asarray(substitute_rows(band, stay, rank, width, lack))
    try:
        factor = splu((eye_array(size) - moves).tocsc())
    except RuntimeError:  # numerically singular
        return None
    return lambda lack, _: np.asarray(factor.solve(lack))


def _band(moves: csr_array) -> tuple[IntArray, int, int]:
    """Return the ranks of states in an order with short arcs, the length of the longest arc, and the number of hubs.

    Hubs are states with very many arcs, which are left out: put last, each widens the band of the factors by one.
    """
    both = (moves + moves.T).tocsr()
    hub = np.diff(both.indptr) > max(64, 4 * int(len(both.indptr) ** 0.5))
    rest = both[~hub][:, ~hub].tocsr()
    order = reverse_cuthill_mckee(rest, symmetric_mode=True)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    arcs = rest.tocoo()
    width = int(np.abs(rank[arcs.row] - rank[arcs.col]).max(initial=0))
    return rank, width, int(hub.sum())
