"""The total costs of simulated runs, with standard errors."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from prudent.errors import PrudentError
from prudent.models.rows import FloatArray
from prudent.policies.distribution import USUAL, Alphas, Distribution, alphas_of, check_alpha, exceeded_in
from prudent.policies.simulation import KEPT, Path, Tally
from prudent.results.plan import Plan
from prudent.runtime.tables import Framed, Shown, Table, certain, in_hundredths, number, plain, worst

ROUNDING = 1e-12
"""The rounding error of a mean or a CVaR, relative to the largest cost; the whole standard error if all runs cost the
same."""


@dataclass(frozen=True, eq=False, repr=False)
class Runs(Shown, Framed):
    """Total costs of simulated runs, and their tail at ``alpha``: the alpha of the simulated plan, or 0.05.

    Beyond ten million runs only the ``tally`` is kept: ``tally.values``, rising, and ``tally.counts``, the number of
    runs with each.  Beyond 262,144 different costs, these are rounded to 17 binary digits; the standard errors include
    that.  In a data frame, the total ``cost`` of each run has a row.

    Examples
    --------
    >>> import prudent
    >>> plan = prudent.solve(prudent.domains.figure_2(), alpha=0.1)
    >>> runs = prudent.simulate(plan.model, plan, episodes=10_000, seed=0)
    >>> runs
    <Runs: 10,000 episodes, seed 0, expected cost 4.046 ± 0.040, alpha 0.1: CVaR 9.992 ± 0.030, VaR 9>
    >>> abs(runs.mean - plan.expected) <= 4 * runs.mean_se, abs(runs.cvar(0.1) - plan.cvar) <= 4 * runs.cvar_se(0.1)
    (True, True)
    """

    tally: Tally
    seed: int
    paths: tuple[Path, ...] = ()  # the first runs, step by step, as many as requested
    kept: FloatArray | None = None  # (episodes,)
    plan: Plan | None = None  # the plan that was simulated, if it was one

    @classmethod
    def of(cls, costs: FloatArray, seed: int = 0) -> "Runs":
        """Return runs with given total costs.

        Examples
        --------
        >>> import numpy
        >>> import prudent
        >>> prudent.Runs.of(numpy.array([1.0, 1.0, 4.0])).mean
        2.0
        """
        return cls(Tally.of(costs), seed, kept=costs)

    def __repr__(self) -> str:
        alpha = self.alpha
        mean, cvar = self._shown(self.mean, self.mean_se), self._shown(self.cvar(alpha), self.cvar_se(alpha))
        return (
            f"<Runs: {self.episodes:,} episodes, seed {self.seed}, expected cost {' '.join(mean)}, "
            f"alpha {alpha:g}: CVaR {' '.join(cvar)}, VaR {self._shown_var(alpha)}>"
        )

    @property
    def alpha(self) -> float:
        """The worst fraction of runs that is shown: that of the plan, or 0.05 if no plan was simulated."""
        return USUAL if self.plan is None else self.plan.alpha

    @property
    def episodes(self) -> int:
        """The number of runs."""
        return int(self.tally.counts.sum())

    @property
    def costs(self) -> FloatArray:
        """The total cost of each run; kept for up to ten million runs."""
        if self.kept is None:
            raise PrudentError(
                f"the costs of {self.episodes:,} runs are not kept one by one; use tally or distribution, or simulate "
                f"at most {KEPT:,} runs"
            )
        return self.kept

    @property
    def distribution(self) -> Distribution:
        """The empirical distribution."""
        return self.tally.distribution

    @property
    def mean(self) -> float:
        """The sample mean of the total cost, an estimate of the expected cost."""
        return self.distribution.mean

    @property
    def mean_se(self) -> float:
        """The standard error of the sample mean; rounding errors are included."""
        return self._error(self.tally.values)

    def cvar(self, alpha: float) -> float:
        """Return the mean of the worst alpha fraction of the runs.

        Examples
        --------
        >>> import prudent
        >>> plan = prudent.solve(prudent.domains.figure_2(), alpha=0.1)
        >>> runs = prudent.simulate(plan.model, plan.policy, episodes=1000, seed=1)
        >>> round(runs.cvar(0.5), 6), round(prudent.evaluate(plan.model, plan.policy).cvar(0.5), 6)
        (7.078, 7.12)
        """
        return self.distribution.cvar(alpha)

    def cvar_se(self, alpha: float) -> float:
        """Return the standard error of the CVaR: that of the mean excess over VaR, divided by alpha.

        Examples
        --------
        >>> import prudent
        >>> plan = prudent.solve(prudent.domains.figure_2(), alpha=0.1)
        >>> runs = prudent.simulate(plan.model, plan.policy, episodes=1000, seed=1)
        >>> print(f"{runs.cvar(0.5):.2f} ± {runs.cvar_se(0.5):.2f}")
        7.08 ± 0.25
        """
        return self._error(np.maximum(self.tally.values - self.distribution.var(alpha), 0.0)) / check_alpha(alpha)

    def to_dict(self, alpha: float | None = None) -> dict[str, Any]:
        """Return the numbers as ``prudent simulate --json`` prints them: None where unknown or infinite.

        ``var``, ``cvar`` and ``cvar_se`` are those at ``alpha``, by default that of the runs; the costs are in
        :meth:`to_frame`.

        Examples
        --------
        >>> import prudent
        >>> plan = prudent.solve(prudent.domains.figure_2(), alpha=0.1)
        >>> prudent.simulate(plan.model, plan.policy, episodes=100, seed=3).to_dict()["episodes"]
        100
        """
        alpha = self.alpha if alpha is None else check_alpha(alpha)
        return plain(
            {
                "alpha": alpha,
                "episodes": self.episodes,
                "seed": self.seed,
                "mean": self.mean,
                "mean_se": self.mean_se,
                "var": self.distribution.var(alpha),
                "cvar": self.cvar(alpha),
                "cvar_se": self.cvar_se(alpha),
                "paths": [
                    [{"state": str(state), "action": str(action), "cost": cost} for state, action, cost in path]
                    for path in self.paths
                ],
            }
        )

    def _columns(self) -> dict[str, Any]:
        return {"cost": self.costs}

    def table(self, alpha: Alphas | None = None) -> Table:
        """Return what ``prudent simulate`` prints: the expected cost, and the tail at one ``alpha`` or several.

        The default is the alpha of the runs.  The exact numbers of the simulated plan are shown beside the estimates.

        Examples
        --------
        >>> import prudent
        >>> plan = prudent.solve(prudent.domains.figure_2(), alpha=0.1)
        >>> runs = prudent.simulate(plan.model, plan, episodes=1000, seed=1)
        >>> print(runs.table())
        figure-2, exact plan for alpha 0.1
        expected cost  4.04   ± 0.13, exactly 4.06
        CVaR           9.950  ± 0.093, mean of the worst 10% of runs, exactly 10
        VaR            9      exceeded in at most 10% of runs
        1,000 runs, seed 1; ± one standard error
        """
        title, (mean, error), plan = "total cost", self._shown(self.mean, self.mean_se), self.plan
        if plan is not None:
            title = f"{plan.model.name}, {plan.method} plan for alpha {plan.alpha:g}"
            exact = plan.own_expected
            error += ", unknown" if exact == "unknown" else f", exactly {exact}"
        rows = [("expected cost", mean, error)]
        for each in alphas_of(self.alpha if alpha is None else alpha):
            cvar, error = self._shown(self.cvar(each), self.cvar_se(each))
            tail = f"{error}, mean of {worst(each)}"
            if plan is not None and each == plan.alpha:
                tail += f", {plan.own_cvar}"
            rows.append(("CVaR", cvar, tail))
            rows.append(("VaR", self._shown_var(each), exceeded_in(each)))
        note = f"{self.episodes:,} runs, seed {self.seed}; ± one standard error"
        return Table(title, tuple(rows), "ldw", notes=(note,))

    def _shown_var(self, alpha: float) -> str:
        return number(self.distribution.var(alpha), certain(0.0, self.money))

    def _shown(self, value: float, error: float) -> tuple[str, str]:
        """Return an estimate and its standard error as text, each with the digits that are certain."""
        digits = certain(error, self.money)
        return number(value, digits), f"± {number(error, digits)}".replace("unbounded", "unknown")

    @cached_property
    def money(self) -> bool:
        """Whether the costs are in hundredths (internal)."""
        return not self.tally.rounding and in_hundredths(self.tally.values)

    def _error(self, amount: FloatArray) -> float:
        """Return the standard error of the mean of an amount by cost, with an allowance for rounding."""
        n = self.episodes
        if n < 2:
            return float("inf")
        spread = np.sqrt(self.tally.total((amount - self.tally.total(amount) / n) ** 2) / (n - 1) / n)
        rounding = max(ROUNDING, self.tally.rounding)
        return float(np.hypot(spread, rounding * np.abs(self.tally.values[[0, -1]]).max()))
