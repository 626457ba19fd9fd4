"""The exact method: optimal CVaR of the total cost first, least expected cost second.

With b the budget left, U(s, b) the least expected excess E[(C - b)+] and V the least expected cost:

    U(goal, b) = max(-b, 0)
    U(s, b)    = V(s) - b                                            for b <= 0
    U(s, b)    = min over a of  sum over outcomes of  p U(s', b - c)  for b > 0
    f(w)       = w + U(start, w) / alpha,      optimal CVaR = min over w of f(w).

Costs are whole levels, so f is concave between levels and its minimum lies on one: nothing is interpolated.
f(w) >= w, so the sweep over rising budgets stops at the first budget above the best f found: no bound is
asked from anyone.  With A*(s, b) the actions that attain U(s, b), the second objective is

    M(s, b) = min over a in A*(s, b) of  sum over outcomes of  p (c + M(s', b - c)),     M(s, b) = V(s) for b <= 0

and the plan starts from the w with least M(start, w) among those that attain min f.  Where b >= V_worst(s),
U is 0 and A* is decided in whole numbers; elsewhere actions within a relative tolerance of the minimum tie.

*Guarantee.*  Beside U the sweep carries a table that is surely below it: it starts from a lower bound on V and
is rounded down at every step by more than the arithmetic can err; ``lower`` = min over w of f taken from it holds
in exact arithmetic.  ``upper`` is the returned policy's own excess at w, evaluated backwards and rounded up.  What
the tie tolerance cost, if anything, is their difference.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.chain import backward, costs_of, value_at_risk
from prudent.kernels.sweep import Ends, Room, Tables, sweep
from prudent.methods.solution import Solution
from prudent.policy import BudgetPolicy
from prudent.prepare import Prepared
from prudent.progress import Progress
from prudent.values.expected import Expected, least_expected_cost
from prudent.values.rounds import UNIT, free_round, longest_stay
from prudent.values.worst_case import UNREACHED, WorstCase, least_worst_case

__all__ = ["TIE", "budget_tables", "exact"]

TIE = 1e-11
"""Relative difference within which actions, and budgets, count as equally good: more than rounding, far less than
anyone would notice."""

BATCH = 100_000_000
"""Outcomes times levels that one call of the kernel handles, so that progress and Ctrl-C get their turn."""


def exact(prepared: Prepared, alpha: float) -> Solution:
    """Return a policy of optimal CVaR and, among those, least expected cost."""
    expected, worst = least_expected_cost(prepared), least_worst_case(prepared)
    tables = budget_tables(prepared, expected, worst, alpha)
    excess = tables.excess[:, prepared.start] / alpha
    f = np.arange(len(excess)) + excess
    best = int(np.argmin(f))
    attains = f <= f[best] + 4 * TIE * (excess + excess[best]) + 8 * UNIT * f[best]
    mean = np.where(attains, tables.mean[:, prepared.start], np.inf)
    w = int(np.argmax(mean <= mean.min() * (1 + TIE)))
    surely = np.arange(len(excess)) + tables.low[:, prepared.start] / alpha

    policy = BudgetPolicy(prepared, tables.choice[: w + 1].copy())
    values, above = backward(policy, expected), backward(policy, expected, up=True)
    start = prepared.start
    cvar = w + float(values.excess[w, start]) / alpha
    return Solution(
        policy=policy,
        var=value_at_risk(policy, cvar, alpha),
        cvar=cvar,
        expected=float(values.mean[w, start]),
        lower=float(surely.min()) * (1 - 4 * UNIT),
        upper=(w + float(above.excess[w, start]) / alpha) * (1 + 4 * UNIT),
        worst=worst.at(start),
    )


def budget_tables(
    prepared: Prepared, expected: Expected, worst: WorstCase, alpha: float | None, most: int = UNREACHED
) -> Tables:
    """Sweep the budgets upwards, to where no larger one can be optimal for alpha, or to ``most``."""
    arcs = free_round(prepared)
    costs = costs_of(prepared, arcs)
    ends = Ends(worst.value, worst.action_value, longest_stay(prepared, arcs))
    most = min(most, int(worst.value[prepared.start]))

    n = prepared.n_states
    tables = Tables(np.empty((64, n)), np.empty((64, n)), np.empty((64, n)), np.empty((64, n), dtype=np.int32))
    tables.excess[0], tables.low[0], tables.mean[0] = expected.value, expected.lower, expected.value
    tables.choice[0] = expected.choice - prepared.action_start[:-1]
    room = Room(np.empty(prepared.n_actions), np.ones(prepared.n_actions, dtype=bool), expected.choice.copy())
    done, best = 1, np.inf if alpha is None else float(expected.value[prepared.start]) / alpha
    batch = max(BATCH // max(len(prepared.cost), 1), 1)
    with Progress("sweeping budgets", total=None if most == UNREACHED else most, unit="levels") as progress:
        while done <= most and done <= best * (1 + 1e-9):
            last = min(done + min(batch, max(done, 63)), most + 1)
            if last > len(tables.excess):
                rows = max(last, 2 * len(tables.excess))
                tables = Tables._make(_longer(table, rows, done) for table in tables)
            sweep(arcs, costs, ends, TIE, done, last, tables, room)
            if alpha is not None:
                f = np.arange(done, last) + tables.excess[done:last, prepared.start] / alpha
                best = min(best, float(f.min()))
            done = last
            progress.at(done)
    return Tables._make(table[:done] for table in tables)


def _longer(table: NDArray[Any], rows: int, used: int) -> NDArray[Any]:
    longer = np.empty((rows, table.shape[1]), dtype=table.dtype)
    longer[:used] = table[:used]
    return longer
