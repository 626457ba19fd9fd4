"""Policy evaluation in a large block, where a dense elimination is out of reach.

The equations ``x = rhs + P x`` of one policy, each divided by its diagonal, are solved in one of two ways:

* *iteratively*: GMRES, preconditioned by one pass of Gauss and Seidel in ascending order of value.  A few dozen
  products do where the block mixes quickly, however slowly it is left (that is one isolated mode, which Krylov
  spaces take care of), and where the policy mostly moves towards lower values;
* *directly*: a sparse LU factorisation, for blocks that mix slowly.  Those are narrow (chains, roads, grids), and
  only narrow ones are factorised: with states in the order of Cuthill and McKee the factors fit into a band.

The first is tried first, with bounded effort.  Either is trusted only as far as the residual, which is summed from
differences of values, shows; and refined until it shows nothing but rounding.  Whoever needs a bound checks it.
"""

from collections.abc import Callable, Iterator

import numpy as np
from scipy.sparse import csr_array, eye_array
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.sparse.linalg import LinearOperator, SuperLU, gmres, splu

from prudent.graph import BoolArray
from prudent.kernels.blocks import (
    ROUNDS,
    Round,
    apply_rows,
    policy_constants,
    policy_rows,
    residual_rows,
    solve_block,
    sweep_rows,
)
from prudent.model import FloatArray, IntArray

__all__ = ["FINE", "UNIT", "LargeBlock"]

UNIT = float(np.finfo(float).eps) / 2
"""Half a unit in the last place of 1: the relative error of one operation."""

ROUGH, FINE = 1e-5, 1e-14
"""How far the residual is brought down, relative to its sums: while policies still change much, and in the end."""

GOOD = 1e-9
"""The residual at which another way of solving is not tried any more."""

KRYLOV = 30
"""Products between two restarts of GMRES; their vectors are kept."""

FEW, MANY = 4, 60
"""Restarts of GMRES before a factorisation is thought of, and where none is possible."""

BAND, WORK = 1e8, 1e11
"""The most entries, and operations, that a factorisation may need inside its band."""


Step = Callable[[FloatArray, float], FloatArray]
"""Takes the lack of each equation, and to what fraction to reduce it; returns what to add to the solution."""


class LargeBlock:
    """One large block of a round; remembers the policy it evaluated last, and what served to evaluate it."""

    def __init__(self, arcs: Round, block: int) -> None:
        self.arcs, self.number = arcs, block
        self.first, self.last = int(arcs.block_start[block]), int(arcs.block_start[block + 1])
        self.state = arcs.block_state[self.first : self.last]
        self.chosen = np.full(len(self.state), -1)
        self.factor: SuperLU | None = None
        self.direct = False  # whether iterating did not help with the last policy, and factorising did

    def solve(
        self, k: FloatArray, allowed: BoolArray, sense: float, choice: IntArray, value: FloatArray, finest: float
    ) -> None:
        """Improve a proper ``choice`` in place by policy iteration, and fill in its values.

        Ends when no gain exceeds what the evaluation resolves, or when the gains no longer add up to anything.  A
        policy that cannot be evaluated (as rounding may have let it never leave the block) is taken back.
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
        """Fill in the values of a policy, from those that ``value`` enters with.

        Returns how far the residual is from what rounding explains, relative to its sums, and its largest size.
        """
        self._take(choice, value)
        rhs = policy_constants(self.arcs, self.first, self.last, self.order, k, choice, value) / self.rows.away
        x = value[self.state[self.order]]
        lack, excess, largest = residual_rows(self.rows, rhs, x, 4 * UNIT)
        for step in self._ways():
            for _ in range(8):
                if excess <= tolerance:
                    break
                new = x + step(lack, max(1e-8, 0.1 * tolerance / excess))
                new_lack, new_excess, new_largest = residual_rows(self.rows, rhs, new, 4 * UNIT)
                falls = new_excess < 0.5 * excess  # false where the step went wrong altogether
                if new_excess < excess:
                    x, lack, excess, largest = new, new_lack, new_excess, new_largest
                if not falls:
                    break
            if excess <= max(tolerance, GOOD):
                break
        value[self.state[self.order]] = x
        return excess, largest

    def _take(self, choice: IntArray, value: FloatArray) -> None:
        """Write down the equations of a policy, states in ascending order of their values so far."""
        chosen = choice[self.state]
        if (chosen == self.chosen).all():
            return
        self.chosen, self.factor = chosen, None
        self.order = np.argsort(value[self.state], kind="stable")
        self.rows = policy_rows(self.arcs, self.first, self.last, self.order, choice)

    def _ways(self) -> Iterator[Step]:
        """Yield the ways to solve the equations; the next is asked for where one did not lead to the end."""
        if not self.direct:
            yield self._iterate(FEW)
        if self._factorise():
            self.direct = True
            yield self._substitute
        self.direct = False
        yield self._iterate(MANY)

    def _iterate(self, restarts: int) -> Step:
        rows, size = self.rows, len(self.state)
        product = LinearOperator((size, size), matvec=lambda x: apply_rows(rows, x), dtype=np.float64)
        sweep = LinearOperator((size, size), matvec=lambda x: sweep_rows(rows, x), dtype=np.float64)

        def step(lack: FloatArray, fraction: float) -> FloatArray:
            found, _ = gmres(product, lack, rtol=fraction, atol=0.0, restart=KRYLOV, maxiter=restarts, M=sweep)
            return np.asarray(found)

        return step

    def _factorise(self) -> bool:
        """Factorise the equations, if that is sure to be affordable; return whether it was done."""
        if self.factor is not None:
            return True
        size = len(self.state)
        moves = csr_array((self.rows.chance, self.rows.column, self.rows.start), shape=(size, size))
        band = _band(moves)
        if size * band > BAND or size * band**2 > WORK:
            return False
        try:
            self.factor = splu((eye_array(size) - moves).tocsc())
        except RuntimeError:  # singular, as far as rounding can tell
            return False
        return True

    def _substitute(self, lack: FloatArray, _: float) -> FloatArray:
        assert self.factor is not None
        return np.asarray(self.factor.solve(lack))


def _band(moves: csr_array) -> int:
    """Return the width of the band in which a graph fits, but for a few states that very many others lead to.

    Those can be put last, where each of them widens the band of the factors by one.
    """
    size = moves.shape[0]
    both = (moves + moves.T).tocsr()
    degree = np.diff(both.indptr)
    hub = degree > max(64, 4 * int(size**0.5))
    rest = both[~hub][:, ~hub].tocsr()
    order = reverse_cuthill_mckee(rest, symmetric_mode=True)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    arcs = rest.tocoo()
    return int(np.abs(place[arcs.row] - place[arcs.col]).max(initial=0)) + int(hub.sum()) + 1
