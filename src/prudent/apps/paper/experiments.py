"""The paper's experiments, run again: every domain, method and alpha, exactly and simulated."""

import csv
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from typing import Any

import numpy as np

from prudent.domains import deep_sea_treasure, registry
from prudent.methods.cvar_ev import CvarEV
from prudent.methods.cvar_wc import CvarWC
from prudent.methods.registry import with_grid
from prudent.models.ssp import SSP
from prudent.planning.evaluate import simulate
from prudent.planning.solve import solve
from prudent.results.plan import Plan
from prudent.results.runs import Runs
from prudent.runtime.progress import announce

ALPHAS = (0.02, 0.2)
METHODS = {
    "expected": "Expected Value",
    "cvar-wc": "CVaR-Worst-Case",
    "cvar-ev": "CVaR-Expected-Value",
    "exact": "exact",
}
"""What the paper calls the methods, and the exact one beside them."""

DOMAINS = {
    name: registry.DOMAINS[name].title
    for name in ("inventory-control", "betting-game", "deep-sea-treasure", "autonomous-navigation")
}
"""The titles of the paper's domains."""

FLOOR = 1e-6
"""The y whose value the authors' program keeps at the point y = 0 of its grid."""

GRIDS = (30, 80, 600)

_, *PUBLISHED = csv.reader((files("prudent.apps.paper") / "published.csv").read_text(encoding="utf-8").splitlines())
"""The numbers of Rigter, Duckworth, Lacerda and Hawes (2022), Tables 1 and 2."""

TABLE_1 = {(domain, method, float(alpha)): tuple(map(float, cell)) for domain, method, alpha, *cell, _ in PUBLISHED}
"""CVaR, its standard error, expected cost, its standard error."""

SECONDS: dict[tuple[str, str], float] = {(domain, method): json.loads(last) for domain, method, *_, last in PUBLISHED}
"""C++ and Gurobi on a 3.2 GHz i7."""


@dataclass(frozen=True)
class Row:
    """One cell of Table 1 with all that belongs to it; None where a number is unknown."""

    domain: str
    method: str
    alpha: float
    cvar: float | None  # exact where the policy allows it
    expected: float | None
    lower: float | None
    upper: float | None
    simulated_cvar: float
    simulated_cvar_se: float
    simulated_expected: float
    simulated_expected_se: float
    paper_cvar: float | None
    paper_cvar_se: float | None
    paper_expected: float | None
    paper_expected_se: float | None
    seconds: float
    paper_seconds: float | None
    status: str

    def pair(self, whose: str, what: str) -> tuple[Any, Any]:
        """Return a value with its standard error, either simulated or the paper's."""
        return getattr(self, f"{whose}_{what}"), getattr(self, f"{whose}_{what}_se")

    def off(self, what: str) -> float | None:
        """Return the difference between the simulation and the paper in combined standard errors."""
        (ours, our_error), (theirs, their_error) = self.pair("simulated", what), self.pair("paper", what)
        if theirs is None:
            return None
        gap, error = ours - theirs, float(np.hypot(our_error, their_error))
        return 0.0 if abs(gap) < 1e-9 else gap / error if error else float("inf")


@dataclass
class Results:
    """All that was computed."""

    episodes: int
    traffic: bool  # whether Autonomous Navigation has the paper's own data
    rows: list[Row] = field(default_factory=list)
    grids: list[dict[str, Any]] = field(default_factory=list)  # Deep Sea Treasure at 0.02 by grid, ties and floor
    parts: dict[str, float] = field(default_factory=dict)  # seconds of each part, simulation included
    runs: dict[tuple[str, str, float], Runs] = field(default_factory=dict)

    def row(self, domain: str, method: str, alpha: float) -> Row:
        """Return one row."""
        return next(r for r in self.rows if (r.domain, r.method, r.alpha) == (domain, method, alpha))

    def to_dict(self) -> dict[str, Any]:
        """Return what goes into results.json."""
        return {
            "episodes": self.episodes,
            "traffic": self.traffic,
            "rows": [asdict(row) for row in self.rows],
            "deep_sea_treasure_grids": self.grids,
            "parts": self.parts,
        }


def solve_as_in_paper(model: SSP, method: str, alpha: float) -> Plan:
    """Solve with the options of the authors' program."""
    return solve(model, alpha, method=with_grid(method, floor=FLOOR))


def run_experiments(episodes: int, traffic: str | None, seed: int = 0) -> Results:
    """Run everything."""
    results = Results(episodes, traffic is not None)
    for domain, title in DOMAINS.items():
        with _timed(results, f"{title}, building"):
            options = {"traffic": traffic} if domain == "autonomous-navigation" else {}
            model = registry.DOMAINS[domain].make(**options)
        for alpha in ALPHAS:
            for method in METHODS:
                with _timed(results, f"{title}, {method}, alpha {alpha:g}"):
                    results.rows.append(_row(results, model, domain, method, alpha, seed))
    treasure = deep_sea_treasure()
    for points in GRIDS:
        with _timed(results, f"Deep Sea Treasure, {points} points"):
            results.grids += _grid_study(treasure, points)
    return results


@contextmanager
def _timed(results: Results, part: str) -> Iterator[None]:
    began = time.perf_counter()
    yield
    results.parts[part] = time.perf_counter() - began
    announce(f"{part}: {results.parts[part]:.1f} s")


def _row(results: Results, model: SSP, domain: str, method: str, alpha: float, seed: int) -> Row:
    plan = solve_as_in_paper(model, method, alpha)
    runs = simulate(model, plan.policy, episodes=results.episodes, seed=seed)
    results.runs[domain, method, alpha] = runs
    own = domain != "autonomous-navigation" or results.traffic
    theirs = TABLE_1.get((domain, method, alpha)) if own else None
    papers = ("paper_cvar", "paper_cvar_se", "paper_expected", "paper_expected_se")
    told = plan.to_dict() | dict(zip(papers, theirs or (None,) * 4, strict=True))
    kept = ("method", "alpha", "cvar", "expected", "lower", "upper", "seconds", "status", *papers)
    return Row(
        domain=domain,
        **{name: told[name] for name in kept},
        simulated_cvar=runs.cvar(alpha),
        simulated_cvar_se=runs.cvar_se(alpha),
        simulated_expected=runs.mean,
        simulated_expected_se=runs.mean_se,
        paper_seconds=SECONDS.get((domain, method)) if own else None,
    )


def _grid_study(model: SSP, points: int) -> list[dict[str, Any]]:
    found = []
    for ties, floor in (("first", 0.0), ("last", 0.0), ("first", FLOOR)):
        options: dict[str, Any] = {"points": points, "ties": ties, "floor": floor}
        plans = [solve(model, 0.02, method=method(**options)) for method in (CvarWC, CvarEV)]
        careful, bold = ({"cvar": plan.cvar, "expected": plan.expected} for plan in plans)
        found.append({**options, "game_value": plans[0].lower, "cvar_wc": careful, "cvar_ev": bold})
    return found
