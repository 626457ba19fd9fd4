"""What the paper's own method would take on this machine, extrapolated from a sample of its linear programs.

The paper's minimax value iteration solves a linear program for every state, action, grid point of y above 0 and sweep,
with the value function linear between grid points: maximise sum p_k (t_k + c_k z_k) over z_k in [0, 1] with sum p_k
z_k = y and t_k below every segment of F(s_k, z_k). Counted here are those of its CVaR-WC alone, one sweep where the
model is acyclic and as few as our own game needs where it is not; the second half of CVaR-EV comes on top of that. A
random sample is solved with HiGHS, through SciPy, whose own overhead is in the time; the whole is the mean times the
count.
"""

import re

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array

import prudent
from cases import NO_TRAFFIC, Case, domains
from prudent.methods.cvar_wc import GameValue
from prudent.runtime.limits import Limits
from table import Found, Row
from timing import Spread, once

PART = "the paper's method here (extrapolated)"
TOLERANCE = 1e-3
"""Where the paper's value iteration stops on the road network, in minutes."""


def run(quick: bool) -> Found:
    """Solve a sample of each domain's programs, and the whole domain with the exact method, in turns."""
    found = Found()
    for case in domains(0.02):
        if case.name == "AN, invented":
            found.rows.append(Row(PART, "AN", "not measured", None, note=NO_TRAFFIC))
        elif not (quick and case.name in ("IC", "AN")):
            found.rows += measure(case, batches=3 if quick else 6, size=20 if quick else 50)
    return found


def measure(case: Case, batches: int, size: int) -> list[Row]:
    """Return the count, the seconds of one program, of all of them, and the ratio to our seconds."""
    method = prudent.CvarWC(tolerance=TOLERANCE / case.truth[0])
    sweeps = sweeps_of(case, method)
    programs = Programs(case, method)
    programs.check(np.random.default_rng(1))
    count = case.prepared.n_actions * (len(programs.grid) - 1) * sweeps
    case.solve()
    rng, each, ours, worst = np.random.default_rng(0), [], [], 0.0
    for _ in range(batches):
        ours.append(once(case.solve))
        for _ in range(size):
            a = int(rng.integers(case.prepared.n_actions))
            point = int(rng.integers(1, len(programs.grid)))
            program = programs.program(a, programs.grid[point])
            results: list[float] = []
            each.append(once(lambda program=program, results=results: results.append(solved(program))))
            worst = max(worst, programs.shortfall(a, point, results[0]))
    if worst > 1e-6:
        raise ValueError(f"{case.name}: a program is {worst:g} below the game's value")
    mean, error = float(np.mean(each)), float(np.std(each, ddof=1) / np.sqrt(len(each)))
    total = Spread(tuple(count * (mean + d * error) for d in (-2, 0, 2)))
    ratio = Spread(tuple(count * mean / seconds for seconds in ours))
    sizes = f"{case.prepared.n_actions:,} actions x {len(programs.grid) - 1} points"
    what = f"{sizes} x {sweeps} sweep{'s' * (sweeps > 1)}"
    sample = f"mean of {len(each)} drawn at random, ± 2 standard errors {2 * error / mean:.0%}"
    return [
        Row(PART, case.about, "linear programs", float(count), note=what),
        Row.of(PART, case.about, "seconds of one", Spread(tuple(each)), " s", note=sample),
        Row(
            PART,
            case.about,
            "all, extrapolated",
            total.median,
            " s",
            min(total.values),
            max(total.values),
            note="extrapolated: mean x count, ± 2 standard errors; HiGHS, one core",
        ),
        Row.of(PART, case.about, "extrapolated / our solve", ratio, "x", note=sized(case)),
    ]


def sized(case: Case) -> str:
    """Say what our solve did."""
    return f"step {case.step:g}" if case.step else "exact"


def sweeps_of(case: Case, method: prudent.CvarWC) -> int:
    """Return how many sweeps our own game needs, from what the plan says of itself; 1 on acyclic models."""
    if case.prepared.acyclic:
        return 1
    plan = prudent.solve(case.model, case.alpha, method=method)
    said = re.search(r"the last of (\d+) sweeps", " ".join(plan.notes))
    if said is None:
        raise ValueError("the plan has no note on the number of sweeps of its game")
    return int(said[1])


class Programs:
    """The linear programs of one sweep, with the game's solution for F."""

    def __init__(self, case: Case, method: prudent.CvarWC) -> None:
        self.prepared = case.prepared
        solved: GameValue = method.solve_game(self.prepared, Limits.of(None, None))
        self.grid, self.value = solved.game.grid, solved.game.value
        self.slope = np.diff(self.value, axis=1) / np.diff(self.grid)
        self.cost = self.prepared.fine / self.prepared.scale.stride

    def program(self, a: int, y: float) -> dict[str, object]:
        """Return the program of an action at y; the variables are z, then t."""
        first, last = self.prepared.outcome_start[a : a + 2].tolist()
        chance, successor = self.prepared.probability[first:last], self.prepared.successor[first:last]
        n, segments = last - first, len(self.grid) - 1
        slope = self.slope[successor]
        row, k = np.arange(n * segments), np.repeat(np.arange(n), segments)
        below = csr_array((-slope.ravel(), (row, k)), shape=(n * segments, 2 * n))
        below += csr_array((np.ones(n * segments), (row, n + k)), shape=(n * segments, 2 * n))
        return {
            "c": -np.concatenate([chance * self.cost[first:last], chance]),
            "A_ub": below,
            "b_ub": (self.value[successor, :-1] - slope * self.grid[:-1]).ravel(),
            "A_eq": np.concatenate([chance, np.zeros(n)])[None],
            "b_eq": [y],
            "bounds": [(0, 1)] * n + [(None, None)] * n,
        }

    def check(self, rng: np.random.Generator) -> None:
        """Raise where the least program of a state's actions is not the game's value, in three states."""
        if not self.prepared.acyclic:  # the last sweep may still have moved values
            return
        for s in rng.choice(np.unique(self.prepared.action_state), 3):
            point = int(rng.integers(1, len(self.grid)))
            actions = range(*self.prepared.action_start[s : s + 2])
            least = min(solved(self.program(a, self.grid[point])) for a in actions)
            if abs(least - self.value[s, point]) > 1e-6 * max(least, 1.0):
                raise ValueError(f"programs give {least!r}, the game {self.value[s, point]!r}")

    def shortfall(self, a: int, point: int, value: float) -> float:
        """Return by how much a program's value is below the game's, relatively: that is the least of all actions."""
        least = float(self.value[self.prepared.action_state[a], point])
        return (least - value) / max(least, 1.0)


def solved(program: dict[str, object]) -> float:
    """Return the value of a program, by HiGHS."""
    result = linprog(**program, method="highs")
    if result.status != 0:
        raise ValueError(result.message)
    return float(-result.fun)
