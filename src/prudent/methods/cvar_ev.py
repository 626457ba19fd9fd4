"""cvar-ev: the paper's CVaR-Expected-Value (Algorithm 1).

The policy plays cvar-wc until the adversary gives the observed outcome no weight.  From then on the run cannot affect
the tail, and the policy minimises the expected cost among the actions with

    cost so far + Q_worst(s, a) <= VaR,          where VaR is that of the cvar-wc policy.

If no action qualifies, it plays the worst-case action.  The paper estimates VaR by simulation and solves the second
problem on 100 steps of the cost so far, with linear interpolation; both can also be computed exactly.

*Guarantee.*  As for cvar-wc: ``lower`` is the game's value, ``upper`` the policy's own CVaR.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prudent.engine.prepared import Prepared
from prudent.engine.sweep.driver import budget_sweep
from prudent.engine.sweep.question import PLAN, Question
from prudent.engine.values.expected_cost import least_expected_cost
from prudent.engine.values.worst_case import WorstCase, least_worst_case
from prudent.errors import PrudentError
from prudent.kernels.game import Game, bounded_choice, improve_bounded
from prudent.methods.cvar_wc import CvarWC, solution, unroll
from prudent.methods.solution import Solution
from prudent.models.rows import IntArray
from prudent.policies.chain import forward
from prudent.policies.simulation import Simulation
from prudent.runtime.limits import Limits, cores


@dataclass(frozen=True)
class CvarEV(CvarWC):
    """The paper's CVaR-Expected-Value and its options; the defaults are the paper's.

    Examples
    --------
    >>> import prudent
    >>> model = prudent.domains.figure_2()
    >>> plan = prudent.solve(model, alpha=0.1, method=prudent.CvarEV(episodes=None))
    >>> plan.cvar <= prudent.solve(model, alpha=0.1, method="cvar-wc").cvar
    True
    """

    switch: float = 1e-4  # y below this counts as no weight
    episodes: int | None = 20_000  # simulated runs used to estimate VaR; None: VaR is computed exactly
    seed: int = 0
    cost_steps: int | None = 100  # steps of the cost so far, with linear interpolation; None: every level, exactly

    name = "cvar-ev"

    def __call__(self, prepared: Prepared, alpha: float, limits: Limits) -> Solution:
        """Return the policy, its own values, and the game's value as the lower bound."""
        solved = self.solve_game(prepared, limits)
        worst = least_worst_case(prepared, limits)
        fallback = self.worst_choice(prepared, worst)
        limit = self._limit(prepared, solved.game, alpha, fallback, limits)
        if self.cost_steps is None:
            table = self._exact_choice(prepared, worst, fallback, limit, limits)
        else:
            table = self._grid_choice(prepared, solved.game, worst, fallback, limit, limits)
        policy = unroll(prepared, solved.game, alpha, self.switch, table)
        return solution(policy, solved, worst, alpha, limits)

    def _limit(self, prepared: Prepared, game: Game, alpha: float, fallback: IntArray, limits: Limits) -> int:
        """Return the VaR of the cvar-wc policy, in levels."""
        careful = unroll(prepared, game, alpha, self.zero, fallback[None])
        if self.episodes is None:
            own = forward(careful, limits=limits)[0].var(alpha)
        else:
            seconds = None if limits.time_limit is None else max(limits.left, 1e-3)
            runs = Simulation(self.episodes, self.seed, cores(), Limits.of(None, seconds)).of(prepared.model, careful)
            own = runs.tally.distribution.var(alpha)
        return round(prepared.scale.in_levels(own))

    def _exact_choice(
        self, prepared: Prepared, worst: WorstCase, fallback: IntArray, limit: int, limits: Limits
    ) -> NDArray[np.int32]:
        """Return the exact method's actions if no run need exceed the budget, and the fallback elsewhere."""
        least = least_expected_cost(prepared, limits)
        tables = budget_sweep(prepared, Question(least.base, least.choice, worst, PLAN), limits, most=limit)
        if tables.stopped == "interrupted":
            raise KeyboardInterrupt
        if tables.stopped:
            raise PrudentError(
                "cost_steps is None, which exceeds the time or memory limit here; give a number of steps"
            )
        rows = np.minimum(np.arange(limit + 1), len(tables.choice) - 1)
        safe = np.arange(limit + 1)[:, None] >= worst.value
        return np.where(safe, tables.choice[rows], fallback).astype(np.int32)

    def _grid_choice(
        self, prepared: Prepared, game: Game, worst: WorstCase, fallback: IntArray, limit: int, limits: Limits
    ) -> NDArray[np.int32]:
        """Return the actions as the paper finds them: from values at equal steps of the cost so far."""
        assert self.cost_steps is not None
        if self.cost_steps < 1:
            raise PrudentError(f"cost_steps is {self.cost_steps!r}; it must be at least 1, or None for every level")
        width = max(limit, 1) / self.cost_steps
        least = least_expected_cost(prepared, limits)
        value = np.repeat(least.value[:, None], self.cost_steps + 1, axis=1)
        arguments = (
            game,
            prepared.mean_cost,
            worst.action_value.astype(np.float64),
            prepared.action_start[:-1] + fallback,
        )
        about = *arguments, prepared.blocks[1], float(limit), width, value
        self.swept(lambda: improve_bounded(*about), prepared, limits, "choosing actions by cost so far")
        choice = np.zeros((limit + 1, prepared.n_states), dtype=np.int32)
        bounded_choice(*arguments, limit, width, value, choice)
        return choice
