"""Policy iteration in a large component, for which dense elimination is too expensive.

Policies are improved by a few passes of value iteration, then evaluated.  The equations ``x = rhs + P x`` of one
policy, each divided by its diagonal, are solved in one of two ways:

* *iteratively*: passes of value iteration with this policy, if all states are near a goal and there are many: they
  go through a few phases of states in parallel, in which almost as much is updated as state by state.  Or BiCGSTAB,
  preconditioned by one Gauss-Seidel pass, states nearest to a goal first.  A few dozen products suffice if the
  component mixes quickly, however slowly it is left (that is one isolated mode, which Krylov methods handle), or if
  the policy mostly moves towards the goal;
* *directly*, for components that mix slowly.  Those are narrow (chains, roads, grids), and only narrow ones are
  factorised.  With states by distance to a goal, or in Cuthill-McKee order, the factors fit into a band, and the arcs
  of a few states that most others lead to into a border.  If both are thin, they are solved by elimination without
  subtractions, accurate in every entry whatever the probabilities, even if the way out leads through higher values.
  Wider ones are solved by SuperLU, with less memory and work.

Iteration comes first, with bounded effort, unless the direct method is as fast.  If neither succeeds, GMRES runs for
longer, and its result is used as it is.  Each result is judged by its residual, which is summed from differences of
values, and refined until the residual is as small as required.  Callers that need a bound check it themselves.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.sparse import csr_array, eye_array
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.sparse.linalg import LinearOperator, gmres, splu

from prudent.kernels.band import eliminate_rows, hubs_of, substitute_rows, surely_wide
from prudent.kernels.bicgstab import Iteration, apply_and_sweep, iterate_rows, sweep_rows
from prudent.kernels.blocks import ROUNDS, Arcs, improved
from prudent.kernels.graphs import UNREACHED
from prudent.kernels.relaxation import Passes, improve_rows, relax_rows, settles
from prudent.kernels.rows import (
    Component,
    Cut,
    fill_component,
    fill_constants,
    fill_residuals,
    fill_rows,
    lay_out,
    room_for,
)
from prudent.models.graph import least_ahead
from prudent.models.rows import BoolArray, FloatArray, IntArray
from prudent.runtime.limits import Limits, Stopped, go_on
from prudent.runtime.progress import Progress
from prudent.runtime.team import in_parts

UNIT = float(np.finfo(float).eps) / 2
"""Half a unit in the last place of 1: the relative error of one operation."""

ROUGH, FINER, CLOSE, FINE = 2.0**-4, 2.0**-3, 2.0**-20, 2.0**-46
"""The residual to reach at first, relative to its sums; the factors that reduce it from policy to policy, while many
choices change and when few do; and the final residual."""

GOOD = 1e-9
"""The residual below which no other method is tried."""

PASSES, FEW = 20, 0.01
"""Passes of value iteration between two evaluations: at most this many, while changes fall and are not yet few."""

FIRST = 60
"""Passes before the first evaluation, or with one policy: at most this many."""

PRODUCTS = 60
"""Steps of BiCGSTAB (two products each) before a factorisation is considered."""

SHALLOW, MANY = 32, 200_000
"""The most actions to an exit, and the fewest arcs, of a component whose states are updated in phases."""

PHASES, PARTS = 8, 32
"""How many phases there are, and parts of each."""

ARCS = 10**7
"""The most arcs in the steps of BiCGSTAB between two checks of the clock: a tenth of a second or two."""

KRYLOV, RESTARTS, LONG = 40, 50, 1e9
"""The products, and vectors kept, between two restarts of GMRES; the most restarts, and the most arcs in them."""

THIN = 5e6
"""The most operations inside the band for which factorising is as fast, and comes first."""

ENTRIES, WORK, BANDED = 1e8, 1e11, 2e9
"""The most entries and operations of a factorisation inside its band; the most operations of our own elimination."""

PER_SECOND = 1e9
"""The operations of a factorisation in a second, too few rather than too many: it cannot be stopped."""

WORKING = "finding the lowest expected cost"


Step = Callable[[FloatArray, float], FloatArray]
"""Takes the residual of each equation and the fraction to reduce it to; returns a correction of the solution."""


class LargeBlock:
    """One large block; keeps the policy that it evaluated last, and its factorisation.

    ``depth`` is the largest extra number of actions of a state to a goal, compared with the nearest state.
    """

    def __init__(self, arcs: Arcs, block: int, depth: int, limits: Limits, threads: int) -> None:
        self.arcs, self.number, self.limits, self.threads = arcs, block, limits, threads
        self.first, self.last = int(arcs.block_start[block]), int(arcs.block_start[block + 1])
        self.state = arcs.block_state[self.first : self.last]
        size = len(self.state)
        self.n_arcs = size * len(arcs.successor) / len(arcs.rank)  # about
        split = depth <= SHALLOW and self.n_arcs >= MANY
        phase_start = np.linspace(0, size, PHASES + 1).astype(np.int64) if split else np.array([0, size])
        self.cut = Cut(phase_start, PARTS if split else 1)
        self.chosen = np.full(size, -1)  # the actions of the policy evaluated last
        self.factor: Step | None = None
        self.direct = False  # whether the last policy was factorised
        self.passes = 0
        self.kept: tuple[IntArray, FloatArray] | None = None
        self.whole: Component | None = None  # the rows of all actions, once they are needed

    @property
    def part(self) -> Component:
        """The rows of all actions."""
        if self.whole is None:
            self.whole = self._component(None)
        return self.whole

    def _component(self, choice: IntArray | None) -> Component:
        """Return the rows of all actions, or of a policy's."""
        block = self.first, self.last
        alone = choice is not None
        part: Component = lay_out(self.arcs, *block, choice if alone else self.arcs.action_start, alone)
        self._together(fill_component, self.arcs, *block, part)
        return part

    def _constants(self, part: Component, k: FloatArray, value: FloatArray) -> FloatArray:
        constant = np.empty(len(part.away))
        self._together(fill_constants, part, k, value, constant)
        return constant

    def _rows(self, part: Component, chosen: IntArray) -> Component:
        """Return the rows of a policy."""
        rows: Component = room_for(part, chosen)
        self._together(fill_rows, part, chosen, rows)
        return rows

    def _residuals(self, rhs: FloatArray, x: FloatArray) -> tuple[FloatArray, float, float]:
        """Return the residuals; the largest beyond rounding error, relative to its sum; and the largest, undivided."""
        lack, worst = np.empty(len(x)), np.empty((2, self.cut.parts))
        self._together(fill_residuals, self.rows, rhs, x, 4 * UNIT, lack, worst)
        excess, largest = worst.max(axis=1).tolist()
        return lack, excess, largest

    def _together(self, kernel: Callable[..., None], *arguments: Any) -> None:
        """Run a kernel in as many threads as it is worth."""
        in_parts(self.threads, kernel, self.n_arcs if self.cut.parts > 1 else 0, self.cut, *arguments)

    def solve(
        self, k: FloatArray, sense: float, share: float, choice: IntArray, value: FloatArray, finest: float
    ) -> None:
        """Improve a proper ``choice`` in place by policy iteration, and fill in its values.

        Ends when no gain exceeds the accuracy of the evaluation, or when values no longer improve.  The policy returned
        is never worse than an earlier one, as far as their evaluations show.  If the limits ask to stop, it is
        the last one that was evaluated, or the first, with its values as far as they are known.
        """
        constant = self._constants(self.part, sense * k, sense * value)  # what is least, with another sign, is largest
        chosen, x = choice[self.state] - self.part.first_action, sense * value[self.state]
        with Progress(WORKING, unit="passes") as self.progress:
            try:
                self._solve(constant, share, chosen, x, finest, anew=sense > 0)
            except Stopped:
                chosen, x = self.kept or (chosen, x)
        choice[self.state], value[self.state] = chosen + self.part.first_action, sense * x

    def _solve(
        self, constant: FloatArray, share: float, chosen: IntArray, x: FloatArray, finest: float, *, anew: bool
    ) -> None:
        """Improve the policy and its values, in place, or find them ``anew``; keep the last one evaluated."""
        self.kept = None
        tolerance = max(ROUGH, finest)
        if anew and self._relaxed(constant, chosen, x):
            tolerance = finest
        noise = self._evaluate(self.part, constant, chosen, x, tolerance)
        for _ in range(ROUNDS):
            kept, kept_x = self.kept = chosen.copy(), x.copy()
            better = changes = self._improved(constant, (2 * noise, share), chosen, x)
            if better == 0 and tolerance <= finest:
                break
            for turn in range(PASSES if better > 0 else 0):
                before = changes
                changes = self._improved(constant, (0.0, share), chosen, x, update=True, backwards=turn % 2 == 0)
                self._pause()
                if turn > 0 and not FEW * len(x) < changes < before / 2:
                    break
            finer = 0.0 if better == 0 else CLOSE if better <= FEW * len(x) else FINER
            tolerance = max(finer * tolerance, finest)
            noise = self._evaluate(self.part, constant, chosen, x, tolerance)
            if (chosen != kept).any() and not improved(kept_x, x - kept_x, 1.0):
                chosen[:], x[:] = kept, kept_x
                if tolerance <= finest:
                    break
                noise = self._evaluate(self.part, constant, chosen, x, tolerance)

    def _improved(
        self,
        constant: FloatArray,
        gains: tuple[float, float],
        chosen: IntArray,
        x: FloatArray,
        *,
        update: bool = False,
        backwards: bool = False,
    ) -> int:
        """Take better actions, in place, and with ``update`` their values; return how many changed."""
        passes = Passes(x, np.empty(len(x) if update else 0), np.zeros((1, 1, self.cut.parts)))
        self._together(improve_rows, self.part, constant, chosen, passes, gains, backwards)
        return int(passes.sums.sum())

    def _relaxed(self, constant: FloatArray, chosen: IntArray, x: FloatArray) -> bool:
        """Replace the policy, in place, by the result of a few passes of value iteration, if that is proper."""
        found = chosen.copy()
        value = self._passes(self.part, constant, found, 1.0)
        proper = bool((self.part.leave[found] > 0).all()) or self._leaves(found)
        if proper:
            chosen[:], x[:] = found, value
        return proper

    def _passes(self, part: Component, constant: FloatArray, chosen: IntArray, fraction: float) -> FloatArray:
        """Return the values after passes: until choices have settled, or, without any, changes fall to a fraction."""
        size = len(self.state)
        passes = Passes(np.zeros(size), np.empty(size), np.zeros((FIRST, 4, self.cut.parts)))
        each = max(int(ARCS / (1 + len(part.column))), 1)
        for first in range(0, FIRST, each):
            self._pause()
            last = min(first + each, FIRST)
            self._together(relax_rows, part, constant, chosen, passes, (first, last), fraction)
            if settles(passes.sums, last, fraction):
                break
        return passes.x

    def _leaves(self, chosen: IntArray) -> bool:
        """Return whether a policy surely leaves the component in the end."""
        rows = self._rows(self.part, chosen)
        steps = np.where(rows.leave > 0, 0, UNREACHED)
        return least_ahead(rows.arc_start, rows.column, None, steps, PASSES) and bool((steps < UNREACHED).all())

    def evaluate(self, k: FloatArray, choice: IntArray, value: FloatArray, finest: float) -> None:
        """Fill in the values of a policy; ``value`` enters with a first guess."""
        part = self._component(choice) if self.whole is None else self.whole
        constant, x = self._constants(part, k, value), value[self.state]
        with Progress(WORKING, unit="passes") as self.progress:
            self._evaluate(part, constant, choice[self.state] - part.first_action, x, finest)
        value[self.state] = x

    def _evaluate(
        self, part: Component, constant: FloatArray, chosen: IntArray, x: FloatArray, tolerance: float
    ) -> float:
        """Bring the residual of a policy down to ``tolerance``, relative to its sums; return the largest residual.

        Values become infinite, and so does the residual, if elimination shows that they are.
        """
        if (chosen + part.first_action != self.chosen).any():
            self.chosen, self.factor = chosen + part.first_action, None
            self.rows = self._rows(part, chosen)
        rhs = constant[chosen]
        lack, excess, largest = self._residuals(rhs, x)
        if not largest <= np.abs(self.rows.away * rhs).max(initial=0.0):  # a guess that is worse than none
            x[:] = 0.0
            lack, excess, largest = self._residuals(rhs, x)
        for step in self._ways():
            for turn in range(8):
                if excess <= tolerance:
                    break
                anew = turn == 0 and step is self.factor  # from 0, elimination gives each value its full accuracy
                new = step(rhs, 0.0) if anew else x + step(lack, max(1e-9, 0.1 * tolerance / excess))
                if step is self.factor and not np.isfinite(new).all():  # beyond floats, or never left
                    x[:] = np.inf
                    return float("inf")
                new_lack, new_excess, new_largest = self._residuals(rhs, new)
                falls = new_excess < 0.5 * excess  # also false if the step gave nan
                if new_excess < excess or anew:
                    x[:], lack, excess, largest = new, new_lack, new_excess, new_largest
                if not (falls or anew):
                    break
            if excess <= max(tolerance, GOOD):
                break
        return float(largest)

    def _pause(self) -> None:
        """Check the clock, and show progress."""
        go_on(self.limits, WORKING)
        self.passes += 1
        self.progress.at(self.passes)

    def _ways(self) -> Iterator[Step]:
        """Yield the methods to solve the equations, in the order in which to try them."""
        if self.cut.parts > 1:
            yield self._relax
        work = min(WORK, PER_SECOND * self.limits.left)
        step = self._factorised(work if self.direct else THIN, ordered=not self.direct)
        if step is None:
            yield self._iterate
            step = self._factorised(work)
        self.direct = step is not None
        if step is not None:
            yield step
        yield self._iterate_long

    def _relax(self, lack: FloatArray, fraction: float) -> FloatArray:
        """Pass over the rows as value iteration does, with one policy."""
        return self._passes(self.rows, lack, np.empty(0, dtype=np.int64), fraction)

    def _iterate(self, lack: FloatArray, fraction: float) -> FloatArray:
        scale, first = self._swept(lack)
        x, p, v, t = np.zeros((4, len(lack)))
        iteration = Iteration(x, first, first.copy(), p, v, t, np.ones(3))
        target = fraction**2 * float((first * first).sum())
        each = max(min(int(ARCS / (1 + len(self.rows.column))), PRODUCTS), 1)
        for _ in range(0, PRODUCTS, each):
            self._pause()
            if not iterate_rows(self.rows, iteration, each, target):
                break
        return np.asarray(scale * x)

    def _swept(self, lack: FloatArray) -> tuple[float, FloatArray]:
        """Return a scale for residuals, so that no square underflows, and a pass of Gauss-Seidel for them, scaled."""
        scale, x = float(np.abs(lack).max()), np.empty(len(lack))
        sweep_rows(self.rows, lack / scale, x)
        return scale, x

    def _iterate_long(self, lack: FloatArray, fraction: float) -> FloatArray:
        def product(x: FloatArray) -> FloatArray:
            self._pause()
            result = np.empty(len(lack))
            apply_and_sweep(self.rows, x.ravel(), result)
            return result

        scale, first = self._swept(lack)
        swept = LinearOperator((len(lack), len(lack)), matvec=product, dtype=np.float64)
        restarts = max(min(RESTARTS, int(LONG / (KRYLOV * (1 + len(self.rows.column))))), 1)
        with np.errstate(all="ignore"):  # it may break down; the residual shows that
            found, _ = gmres(swept, first, rtol=fraction, atol=0.0, restart=KRYLOV, maxiter=restarts)
        return np.asarray(scale * found)

    def _factorised(self, most: float, *, ordered: bool = False) -> Step | None:
        """Factorise the equations if that takes at most ``most`` operations; else return None.

        With ``ordered``, states keep their present order.
        """
        if self.factor is None:
            self.factor = _factor(self.rows, most, ordered)
        return self.factor


def _factor(rows: Component, most: float, ordered: bool = False) -> Step | None:
    size = len(rows.leave)
    if surely_wide(rows, int(np.sqrt(max(most, 0.0) / size))):
        return None
    hub, width = hubs_of(rows)
    n_hubs = int(hub.sum())
    rank, moves = np.empty(size, dtype=np.int64), None
    order = np.append(np.flatnonzero(hub), np.flatnonzero(~hub))
    if not ordered:
        moves = csr_array((rows.chance, rows.column, rows.arc_start.astype(np.int32)), shape=(size, size))
        order, width = _shorter(moves, hub)
    full = width + n_hubs
    if size * full > ENTRIES or size * full**2 > most:
        return None
    rank[order] = np.arange(size)
    if moves is None or size * full**2 <= BANDED:
        factors = eliminate_rows(rows, rank, width, n_hubs)
        return lambda lack, _: np.asarray(substitute_rows(factors, rank, width, lack))
    try:
        factor = splu((eye_array(size) - moves).tocsc())
    except RuntimeError:  # numerically singular
        return None
    return lambda lack, _: np.asarray(factor.solve(lack))


def _shorter(moves: csr_array, hub: BoolArray) -> tuple[IntArray, int]:
    """Return the states in an order with short arcs, hubs first, and the length of the longest arc between others.

    Arcs of hubs do not count: eliminated last, each hub widens the band of the factors by one.
    """
    rest = (moves + moves.T)[~hub][:, ~hub].tocsr()
    others = reverse_cuthill_mckee(rest, symmetric_mode=True)
    rank = np.empty(len(others), dtype=np.int64)
    rank[others] = np.arange(len(others))
    arcs = rest.tocoo()
    width = int(np.abs(rank[arcs.row] - rank[arcs.col]).max(initial=0))
    return np.append(np.flatnonzero(hub), np.flatnonzero(~hub)[others]), width
