"""Policy iteration in a large component, for which dense elimination is too expensive.

Policies are improved by a few passes of value iteration, then evaluated.  If all states are near a goal and there are
many, passes go through a few phases of states in parallel, in which almost as much is updated as state by state.  The
equations ``x = rhs + P x`` of one policy, each divided by its diagonal, are solved in one of two ways:

* *iteratively*: by BiCGSTAB, preconditioned by one Gauss-Seidel pass, states nearest to a goal first.  A few dozen
  products suffice if the component mixes quickly, however slowly it is left (that is one isolated mode, which Krylov
  methods handle), or if the policy mostly moves towards the goal; some hundreds do for most of the others;
* *directly*, for components that mix slowly.  Those are narrow (chains, roads, grids), and only narrow ones are
  factorised.  With states by distance to a goal, or in Cuthill-McKee order, the factors fit into a band, and the arcs
  of a few states that most others lead to into a border.  If both are thin, they are solved by elimination without
  subtractions, accurate in every entry whatever the probabilities, even if the way out leads through higher values.
  Wider ones are solved by SuperLU, with less memory and work.

Iteration comes first, with bounded effort, unless the direct method is as fast.  Each result is judged by its residual,
which is summed from differences of values, and refined until the residual is as small as required.  If neither
succeeds, the last result is used as it is.  Callers that need a bound check it themselves.
"""

from collections.abc import Callable, Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.sparse.linalg import splu

from prudent.kernels.band import eliminate_rows, hubs_of, substitute_rows, surely_wide
from prudent.kernels.blocks import ROUNDS, SHARE, Arcs, improved
from prudent.kernels.graphs import UNREACHED
from prudent.kernels.relaxation import Cut, Passes, improve_rows, relax_rows, settles
from prudent.kernels.rows import (
    Component,
    Iteration,
    fill_component,
    fill_constants,
    fill_residuals,
    iterate_rows,
    sweep_rows,
)
from prudent.models.graph import least_ahead
from prudent.models.rows import BoolArray, FloatArray, IntArray, offsets, ranges
from prudent.runtime.limits import Limits, Stopped, go_on
from prudent.runtime.progress import Progress
from prudent.runtime.team import in_parts

NOISE = 2 * float(np.finfo(float).eps)
"""The part of a residual, relative to the value, that is only rounding error."""

ROUGH, FINER, CLOSE, FINE = 2.0**-4, 2.0**-3, 2.0**-20, 2.0**-46
"""The residual to reach at first, relative to its sums; the factors that reduce it from policy to policy, while many
choices change and when few do; and the final residual."""

GOOD = 1e-9
"""The residual below which no other method is tried."""

PASSES, FEW = 20, 0.01
"""Passes of value iteration between two evaluations: at most this many, while changes fall and are not yet few."""

FIRST = 60
"""Passes before the first evaluation: at most this many."""

STEPS, LONG = 1000, 1e9
"""The most steps of BiCGSTAB (two products each) before a factorisation is considered, and the most arcs in them."""

SHALLOW, MANY = 32, 200_000
"""The most actions to an exit, and the fewest arcs, of a component whose states are updated in phases."""

PHASES, PARTS = 8, 32
"""How many phases there are, and parts of each."""

ARCS = 10**7
"""The most arcs in the steps of BiCGSTAB between two checks of the clock: a tenth of a second or two."""

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
        self.action = np.full(size, -1)  # those of the policy evaluated last
        self.factor: Step | None = None
        self.direct = False  # whether the last policy was factorised
        self.passes = 0
        self.kept: tuple[IntArray, FloatArray] | None = None

    @cached_property
    def part(self) -> Component:
        """The rows of all actions."""
        start = self.arcs.action_start
        return self._component(offsets(start[self.state + 1] - start[self.state]), ranges(start, self.state))

    def _component(self, action_start: IntArray, action: IntArray) -> Component:
        """Return the rows of some actions of each state."""
        arc_start = offsets(self.arcs.inner_stop[action] - self.arcs.inner_start[action])
        column, chance = np.empty(arc_start[-1], dtype=np.uint32), np.empty(arc_start[-1])
        rows = action_start, action, arc_start, np.empty(len(action), dtype=np.int64)
        part = Component(*rows, column, chance, *np.empty((2, len(action))))
        in_parts(self.threads, fill_component, self.n_arcs, self.arcs, self.first, self.last, part)
        return part

    def _constants(self, part: Component, k: FloatArray, value: FloatArray) -> FloatArray:
        constant = np.empty(len(part.away))
        in_parts(self.threads, fill_constants, self.n_arcs, part, k, value, constant)
        return constant

    def _play(self, action: IntArray) -> None:
        """Let the rows be those of a policy."""
        if (action != self.action).any():
            self.action, self.factor = action, None
            self.rows = self._component(np.arange(len(action) + 1), action)

    def _residuals(self, rhs: FloatArray, x: FloatArray) -> tuple[FloatArray, float, float]:
        """Return the residuals; the largest beyond rounding error, relative to its sum; and the largest, undivided."""
        lack, worst = np.empty(len(x)), np.empty((2, -(-len(x) // SHARE)))
        in_parts(self.threads, fill_residuals, self.n_arcs, self.rows, rhs, x, NOISE, lack, worst)
        excess, largest = worst.max(axis=1).tolist()
        return lack, excess, largest

    def solve(
        self, k: FloatArray, sense: float, share: float, choice: IntArray, value: FloatArray, finest: float
    ) -> None:
        """Improve a proper ``choice`` in place by policy iteration, and fill in its values.

        Ends when no gain exceeds the accuracy of the evaluation, or when values no longer improve.  The policy returned
        is never worse than an earlier one, as far as their evaluations show.  If the limits ask to stop, it is
        the last one that was evaluated, or the first, with its values as far as they are known.
        """
        constant = self._constants(self.part, sense * k, sense * value)  # what is least, with another sign, is largest
        chosen = self.part.action_start[:-1] + choice[self.state] - self.arcs.action_start[self.state]
        x = sense * value[self.state]
        with Progress(WORKING, unit="passes") as self.progress:
            try:
                self._solve(constant, share, chosen, x, finest, anew=sense > 0)
            except Stopped:
                chosen, x = self.kept or (chosen, x)
        choice[self.state], value[self.state] = self.part.action[chosen], sense * x

    def _solve(
        self, constant: FloatArray, share: float, chosen: IntArray, x: FloatArray, finest: float, *, anew: bool
    ) -> None:
        """Improve the policy and its values, in place, or find them ``anew``; keep the last one evaluated."""

        def evaluate() -> float:
            self._play(self.part.action[chosen])
            return self._evaluate(constant[chosen], x, tolerance)

        self.kept = None
        tolerance = max(ROUGH, finest)
        if anew and self._relaxed(constant, chosen, x):
            tolerance = finest
        noise = evaluate()
        for _ in range(ROUNDS):
            kept, kept_x = self.kept = chosen.copy(), x.copy()
            better = changes = self._improved(constant, (2 * noise, share), chosen, x)
            if better == 0 and tolerance <= finest:
                break
            for turn in range(PASSES if better > 0 else 0):
                before = changes
                changes = self._improved(constant, (0.0, share), chosen, x, turn)
                self._pause()
                if turn > 0 and not FEW * len(x) < changes < before / 2:
                    break
            finer = 0.0 if better == 0 else CLOSE if better <= FEW * len(x) else FINER
            tolerance = max(finer * tolerance, finest)
            noise = evaluate()
            if (chosen != kept).any() and not improved(kept_x, x - kept_x, 1.0):
                chosen[:], x[:] = kept, kept_x
                if tolerance <= finest:
                    break
                noise = evaluate()

    def _improved(
        self, constant: FloatArray, gains: tuple[float, float], chosen: IntArray, x: FloatArray, turn: int | None = None
    ) -> int:
        """Take better actions, in place, and in a ``turn`` also their values; return how many changed."""
        passes = Passes(x, np.empty(0 if turn is None else len(x)), np.zeros((1, 1, self.cut.parts)))
        about = self.part, constant, chosen, passes, gains, turn is not None and turn % 2 == 0
        in_parts(self.threads, improve_rows, self.n_arcs, self.cut, *about, most=self.cut.parts)
        return int(passes.sums.sum())

    def _relaxed(self, constant: FloatArray, chosen: IntArray, x: FloatArray) -> bool:
        """Replace the policy, in place, by the result of a few passes of value iteration, if that is proper."""
        found, size = chosen.copy(), len(x)
        passes = Passes(np.zeros(size), np.empty(size), np.zeros((FIRST, 3, self.cut.parts)))
        each = max(int(ARCS / (1 + len(self.part.column))), 1)
        for first in range(0, FIRST, each):
            self._pause()
            about = self.part, constant, found, passes, (first, min(first + each, FIRST))
            in_parts(self.threads, relax_rows, self.n_arcs, self.cut, *about, most=self.cut.parts)
            if settles(passes.sums, about[-1][1]):
                break
        proper = bool((self.part.leave[found] > 0).all()) or self._leaves(found)
        if proper:
            chosen[:], x[:] = found, passes.x
        return proper

    def _leaves(self, chosen: IntArray) -> bool:
        """Return whether a policy surely leaves the component in the end."""
        self._play(self.part.action[chosen])
        arc_start, column, _ = _inner(self.rows)
        steps = np.where(self.rows.leave > 0, 0, UNREACHED)
        return least_ahead(arc_start, column, None, steps, PASSES) and bool((steps < UNREACHED).all())

    def evaluate(self, k: FloatArray, choice: IntArray, value: FloatArray, finest: float) -> None:
        """Fill in the values of a policy; ``value`` enters with a first guess."""
        self._play(choice[self.state])
        x = value[self.state]
        with Progress(WORKING, unit="passes") as self.progress:
            self._evaluate(self._constants(self.rows, k, value), x, finest)
        value[self.state] = x

    def _evaluate(self, rhs: FloatArray, x: FloatArray, tolerance: float) -> float:
        """Bring the residual of the policy down to ``tolerance``, relative to its sums; return the largest residual.

        Values become infinite, and so does the residual, if elimination shows that they are.
        """
        lack, excess, largest = self._residuals(rhs, x)
        for step in self._ways():
            if not largest <= np.abs(self.rows.away * rhs).max(initial=0.0):  # a guess that is worse than none
                x[:] = 0.0
                lack, excess, largest = self._residuals(rhs, x)
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
        work = min(WORK, PER_SECOND * self.limits.left)
        if self.factor is None:
            self.factor = _factor(self.rows, work if self.direct else THIN, ordered=not self.direct)
        if self.factor is None:
            yield self._iterate
            self.factor = _factor(self.rows, work)
        self.direct = self.factor is not None
        if self.factor is not None:
            yield self.factor

    def _iterate(self, lack: FloatArray, fraction: float) -> FloatArray:
        scale, first = float(np.abs(lack).max()), np.empty(len(lack))  # scaled so that no square underflows
        sweep_rows(self.rows, lack / scale, first)
        x, p, v, t = np.zeros((4, len(lack)))
        iteration = Iteration(x, first, first.copy(), p, v, t, np.ones(3))
        target = fraction**2 * float((first * first).sum())
        arcs = 1 + len(self.rows.column)
        each = max(min(int(ARCS / arcs), STEPS), 1)
        for _ in range(0, min(int(LONG / (2 * arcs)), STEPS), each):
            self._pause()
            if not iterate_rows(self.rows, iteration, each, target):
                break
        return np.asarray(scale * x)


def _inner(rows: Component) -> tuple[IntArray, NDArray[np.uint32], FloatArray]:
    """Return where the inner columns of each row start, once all others are left out; the columns and their chances."""
    inside = np.arange(len(rows.column)) < np.repeat(rows.arc_stop, np.diff(rows.arc_start))
    return offsets(rows.arc_stop - rows.arc_start[:-1]), rows.column[inside], rows.chance[inside]


def _factor(rows: Component, most: float, ordered: bool = False) -> Step | None:
    size = len(rows.leave)
    if surely_wide(rows, int(np.sqrt(max(most, 0.0) / size))):
        return None
    hub, width = hubs_of(rows)
    n_hubs = int(hub.sum())
    rank, moves = np.empty(size, dtype=np.int64), None
    order = np.append(np.flatnonzero(hub), np.flatnonzero(~hub))
    if not ordered:
        arc_start, column, chance = _inner(rows)
        moves = csr_array((chance, column, arc_start.astype(np.int32)), shape=(size, size))
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
