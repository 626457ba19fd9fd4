"""``stress``: a plan on models drawn from the posterior of the counts.

The probabilities of each action are drawn from a Dirichlet distribution: its counts, with half an observation more for
each outcome.  A sample depends only on the seed and its own number, so the answer does not depend on the executor.

The share of an action is the part of the variance of CVaR that is linear in its probabilities.  Actions are drawn
independently, so the shares add up to at most 1, up to the noise of the samples.  With twice as many observations, the
variance of an action's probabilities halves.
"""

from concurrent.futures import Executor
from dataclasses import replace
from typing import Any

import numpy as np

from prudent.engine.prepared import Prepared
from prudent.engine.uncertain import uncertain
from prudent.errors import PrudentError, whole_number
from prudent.models.estimate import Estimate
from prudent.models.intervals import Intervals
from prudent.models.rows import BoolArray, FloatArray
from prudent.models.ssp import SSP
from prudent.policies.distribution import mixture
from prudent.policies.policy import BudgetPolicy
from prudent.policies.total_cost import total_cost
from prudent.results.plan import Plan
from prudent.results.stress import QUANTILES, Matter, Stress
from prudent.runtime.executors import check_executor, finished
from prudent.runtime.limits import Limits, go_on
from prudent.runtime.progress import Progress

PRIOR = 0.5
"""The amount added to each count."""

LEVELS = 200
"""The number of total costs in the fan of tails."""

CHUNK = 25
"""The number of samples that a worker does at once."""

NOISE = 3
"""The number of standard deviations of noise below which a share does not count."""

STRESSING = "evaluating the plan on drawn models"


def stress(
    plan: Plan, data: Estimate | SSP, *, samples: int = 1000, seed: int = 0, executor: Executor | None = None
) -> Stress:
    """Evaluate a plan on models drawn from the counts of an estimated model.

    Parameters
    ----------
    plan : Plan
        The plan, made for the estimated model.
    data : Estimate or SSP
        The result of :func:`from_episodes`, or an estimated model with its counts.
    samples : int
        The number of models to draw.
    seed : int
        The seed of the random numbers.
    executor : Executor, optional
        Workers, which take some samples at a time: a pool of ``concurrent.futures``, the executor of a Dask client
        (``client.get_executor()``), or one of ``mpi4py.futures``.  The answer does not depend on it.

    Examples
    --------
    >>> import prudent
    >>> row = {"state": "s", "action": "a", "next_state": "g"}
    >>> data = prudent.from_episodes([{**row, "cost": 1, "n": 9}, {**row, "cost": 5, "n": 1}], count="n", initial="s")
    >>> plan = prudent.solve(data.model, alpha=0.2)
    >>> result = prudent.stress(plan, data, samples=50)
    >>> result.quantiles()[0.05] < plan.cvar < result.quantiles()[0.95]
    True
    """
    if not isinstance(plan, Plan):
        raise PrudentError(f"plan is a {type(plan).__name__}; stress needs the plan first, then its data")
    known = Estimate(data, episodes=0) if isinstance(data, SSP) else data
    if not isinstance(known, Estimate):
        raise PrudentError(f"data is a {type(data).__name__}; pass the result of prudent.from_episodes, or its model")
    model = known.model
    plan.policy.check_model(model)
    count = known.counts
    if plan.policy.remembers:
        raise PrudentError(
            "stress needs a plan whose policy depends on state and budget, not one of the paper's methods"
        )
    n, seed = whole_number("samples", samples, 2), whole_number("seed", seed, 0)
    check_executor(executor)
    own = total_cost(plan.policy, Limits.of(None, None))
    levels = np.linspace(own.values[0], own.quantile(0.999), LEVELS)
    bare = replace(plan.policy, prepared=replace(plan.policy.prepared))  # only its rows and its graph are sent
    drawn, found = _gathered((bare, count, plan.alpha, seed, levels), n, executor)
    matters = _matters(model, count, plan.visits().played > 0, drawn, found[:, 0])
    cvar, var, expected = found[:, :3].T.copy()
    return Stress(model.name, plan.alpha, own.cvar(plan.alpha), cvar, var, expected, levels, found[:, 3:], matters)


def _gathered(about: tuple[Any, ...], n: int, executor: Executor | None) -> tuple[FloatArray, FloatArray]:
    """Return the probabilities drawn, and the numbers on each model, by the samples' numbers."""
    limits = Limits.of(None, None)
    limits.check(16 * n * len(about[1]), "the drawn models", "reduce samples=")
    calls = [(*about, range(first, min(first + CHUNK, n))) for first in range(0, n, CHUNK)]
    each: dict[int, tuple[FloatArray, FloatArray]] = {}
    with limits, Progress(STRESSING, total=n, unit="models") as progress:
        for number, future in finished(executor, run_draws, calls, lambda: limits.stop):
            each[number] = future.result()
            progress.at(min(len(each) * CHUNK, n))
    if len(each) < len(calls):
        go_on(limits, STRESSING)
    drawn, found = zip(*(each[number] for number in sorted(each)), strict=True)
    return np.concatenate(drawn), np.concatenate(found)


def run_draws(
    policy: BudgetPolicy, count: FloatArray, alpha: float, seed: int, levels: FloatArray, samples: range
) -> tuple[FloatArray, FloatArray]:
    """Return the probabilities of some samples, and the policy's numbers on each: a worker's part (internal).

    The numbers are CVaR, VaR, the mean, and the probabilities to exceed the levels.
    """
    model = policy.prepared.model
    drawn = np.array([_draw(model, count, seed, i) for i in samples])
    each = []
    for probability in drawn:
        parts = [(share, replace(part, prepared=_with(part.prepared, probability))) for share, part in policy.parts]
        each.append(mixture([(share, total_cost(part, Limits.of(None, None))) for share, part in parts]))
    return drawn, np.array([[d.cvar(alpha), d.var(alpha), d.mean, *map(d.exceeds, levels.tolist())] for d in each])


def _draw(model: SSP, count: FloatArray, seed: int, i: int) -> FloatArray:
    """Return the probabilities of one model drawn from the posterior."""
    weight = np.random.default_rng([seed, i]).standard_gamma(count + PRIOR)
    weight = np.maximum(weight, np.finfo(float).tiny)
    total = np.add.reduceat(weight, model.outcome_start[:-1])
    return np.asarray(weight / np.repeat(total, np.diff(model.outcome_start)))


def _with(prepared: Prepared, probability: FloatArray) -> Prepared:
    """Return a prepared model with other probabilities of its model's outcomes, none of them 0."""
    sets = uncertain(prepared, Intervals(probability, probability)).sets
    away = 1 - sets.loop_low
    return replace(prepared, probability=sets.low / away[prepared.outcome_action], plays=1 / away)


def _matters(
    model: SSP, count: FloatArray, played: BoolArray, drawn: FloatArray, cvar: FloatArray
) -> tuple[Matter, ...]:
    """Return the played actions whose counts explain part of the variance of CVaR, largest share first."""
    if not np.isfinite(cvar).all():  # too much is unknown of some
        return ()
    spread = cvar - cvar.mean()
    total = float(spread @ spread)
    if total <= 1e-18 * max(float(cvar @ cvar), 1e-300):
        return ()
    middle = float(np.subtract(*np.quantile(cvar, (QUANTILES[-1], QUANTILES[0]))))
    found = []
    for a in np.flatnonzero(played & (np.diff(model.outcome_start) > 1)).tolist():
        here = slice(model.outcome_start[a], model.outcome_start[a + 1] - 1)  # the last follows from the others
        x = drawn[:, here] - drawn[:, here].mean(axis=0)
        fit, *_ = np.linalg.lstsq(x, spread, rcond=None)
        free, n = x.shape[1], len(cvar)
        explained = float(np.sum((x @ fit) ** 2)) / total
        share = 1 - (1 - explained) * (n - 1) / max(n - free - 1, 1)  # without what noise would explain
        if share > NOISE * (2 * free) ** 0.5 / n + 0.01:
            seen = float(count[model.outcome_start[a] : model.outcome_start[a + 1]].sum())
            share = min(share, 1.0)
            narrower = middle * (1 - (1 - share / 2) ** 0.5)
            found.append(Matter(model.state(model.state_of_action(a)), model.action(a), seen, share, narrower))
    return tuple(sorted(found, key=lambda each: -each.share))
