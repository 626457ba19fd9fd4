"""The models that are timed, and what is known about them."""

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

import prudent
from prudent.engine.prepare import prepare
from prudent.engine.prepared import Prepared
from prudent.methods.exact import explore
from prudent.runtime.limits import Limits

TRAFFIC = Path(os.environ.get("PRUDENT_TRAFFIC", Path(__file__).parents[2] / "shared" / "data" / "la_traffic.csv"))
"""The paper's traffic data, as the tests look for it, or where the environment says."""

NO_TRAFFIC = "the paper's traffic file is not here; name it with PRUDENT_TRAFFIC=FILE"
TRAFFIC_STEP = 0.02
ONE_CORE = {"threads": 1}
"""Options for a solve on one core."""

PAPER_SECONDS = {"IC": 48527.0, "BG": 6526.0, "DST": 10653.0, "AN": 23020.0}
"""The paper's CVaR-EV (its Table 2)."""


@dataclass(frozen=True)
class Case:
    """A model with an alpha, and the step to round its costs to, if they have none."""

    name: str
    model: prudent.SSP
    alpha: float
    step: float | None = None

    @cached_property
    def prepared(self) -> Prepared:
        """The prepared arrays, as the references take them."""
        return prepare(self.model, self.step)

    @cached_property
    def truth(self) -> tuple[float, float]:
        """The optimal CVaR as charged and the least mean at it, by the package."""
        plan = self.solve()
        if not self.prepared.scale.rounded:
            return plan.cvar, plan.expected
        excess = explore(self.prepared, self.alpha, Limits.of(None, None), bounded=False).swept.excess
        charged = float((np.arange(len(excess)) + excess / self.alpha).min())
        return self.prepared.scale.in_units(charged), plan.expected

    @cached_property
    def levels(self) -> int:
        """How many budgets a naive sweep needs: up to the optimal CVaR, where the search may end."""
        return int(self.prepared.scale.in_levels(self.truth[0])) + 1

    @property
    def naive(self) -> int:
        """The multiply-adds of a naive sweep: outcomes x levels x two objectives."""
        return 2 * len(self.prepared.cost) * self.levels

    def solve(self, **options: object) -> prudent.Plan:
        """Solve it, from the model as the user has it."""
        return prudent.solve(self.model, self.alpha, step=self.step, **options)  # type: ignore[arg-type]

    def check(self, cvar: float, expected: float) -> None:
        """Raise where an answer is not the package's to 1e-9."""
        for found, true in zip((cvar, expected), self.truth, strict=True):
            if not abs(found - true) <= 1e-9 * max(1.0, abs(true)):
                raise ValueError(f"{self.name}: {found!r} is not {true!r}")

    @property
    def about(self) -> str:
        """What it is, in a few words."""
        step = f", step {self.step:g}" if self.step else ""
        return f"{self.name}, alpha {self.alpha:g}{step}"


def inventory_control(alpha: float = 0.02) -> Case:
    """Return the paper's largest domain."""
    return Case("IC", prudent.domains.inventory_control(), alpha)


def traffic(alpha: float = 0.02, step: float | None = TRAFFIC_STEP) -> Case | None:
    """Return Autonomous Navigation on the paper's traffic data, if that is here."""
    if not TRAFFIC.exists():
        return None
    return Case("AN", prudent.domains.autonomous_navigation(str(TRAFFIC)), alpha, step)


def domains(alpha: float) -> list[Case]:
    """Return the paper's domains; without the traffic file the invented network takes its place."""
    return [
        inventory_control(alpha),
        Case("BG", prudent.domains.betting_game(), alpha),
        Case("DST", prudent.domains.deep_sea_treasure(), alpha),
        traffic(alpha) or Case("AN, invented", prudent.domains.autonomous_navigation(), alpha, TRAFFIC_STEP),
    ]


def staged(stages: int, width: int, most: int = 20, actions: int = 3, outcomes: int = 5, seed: int = 0) -> prudent.SSP:
    """Return a random finite-horizon model: so many stages of so many states, whole costs from 0 to ``most``.

    It starts anywhere in the first stage; successors lie in the next one.
    """
    rng = np.random.default_rng(seed)
    n = stages * width
    n_actions = n * actions
    stage = np.repeat(np.arange(n) // width, actions)
    successor = (stage[:, None] + 1) * width + rng.integers(0, width, size=(n_actions, outcomes))
    successor[stage == stages - 1] = n
    cost = rng.integers(0, most + 1, size=(n_actions, outcomes))
    probability = rng.dirichlet(np.ones(outcomes), size=n_actions)
    return prudent.from_arrays(
        np.minimum(np.arange(n + 2) * actions, n_actions),
        np.arange(n_actions + 1) * outcomes,
        probability.ravel(),
        successor.ravel(),
        cost.ravel().astype(float),
        initial={s: 1 / width for s in range(width)},
        name=f"staged-{stages}x{width}",
    )


def fifty_thousand(quick: bool) -> Case:
    """Return the finite-horizon model of 50,000 states, or a tenth of it: 5 actions of 10 outcomes in each."""
    stages = 50 if quick else 500
    return Case(f"staged {stages} x 100", staged(stages, 100, most=10, actions=5, outcomes=10), 0.05)


def wide(quick: bool) -> Case:
    """Return one that is harder on the caches: few but wide stages, 3 actions of 5 outcomes, a tenth of the budgets."""
    width = 100 if quick else 1000
    return Case(f"staged 50 x {width:,}", staged(50, width), 0.05)
