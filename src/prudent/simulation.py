"""Simulated runs: a cross-check of the exact numbers, with standard errors."""

import os
from collections.abc import Callable, Hashable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.errors import PrudentError
from prudent.evaluation import Policy, restricted
from prudent.kernels.episodes import draw, draw_each, run_episodes
from prudent.lattice import find_lattice
from prudent.model import SSP, FloatArray
from prudent.policy import BudgetPolicy
from prudent.prepare import prepare
from prudent.risk import Distribution, check_alpha

__all__ = ["Runs", "simulate"]

CHUNK = 1024
"""Episodes that share one stream of random numbers; fixed, so that the number of threads changes nothing."""

Path = tuple[tuple[Hashable, Hashable, float], ...]
"""The steps of a run: state, action played there, cost."""


@dataclass(frozen=True, eq=False)
class Runs:
    """Total costs of simulated runs."""

    costs: FloatArray = field(repr=False)  # (episodes,)
    seed: int
    paths: tuple[Path, ...] = field(default=(), repr=False)  # the first runs, step by step, as many as asked for

    @property
    def episodes(self) -> int:
        """How many runs."""
        return len(self.costs)

    @cached_property
    def distribution(self) -> Distribution:
        """The empirical distribution."""
        values, counts = np.unique(self.costs, return_counts=True)
        return Distribution(values, counts / len(self.costs), mean=float(self.costs.mean()))

    @property
    def mean(self) -> float:
        """The mean cost."""
        return self.distribution.mean

    @property
    def mean_se(self) -> float:
        """The standard error of the mean."""
        return self._error(self.costs)

    def cvar(self, alpha: float) -> float:
        """Return the mean of the worst alpha fraction of the runs."""
        return self.distribution.cvar(alpha)

    def cvar_se(self, alpha: float) -> float:
        """Return the standard error of the CVaR: that of the mean excess over VaR, divided by alpha."""
        return self._error(np.maximum(self.costs - self.distribution.var(alpha), 0.0)) / check_alpha(alpha)

    def _error(self, sample: FloatArray) -> float:
        return float(sample.std(ddof=1) / np.sqrt(len(sample))) if len(sample) > 1 else float("inf")


def simulate(
    model: SSP,
    policy: Policy,
    *,
    episodes: int = 20_000,
    seed: int = 0,
    threads: int | None = None,
    paths: int = 0,
    max_steps: int = 1_000_000,
) -> Runs:
    """Simulate runs of a policy.

    Parameters
    ----------
    model : SSP
        The problem.
    policy : policy, mapping or callable
        A plan's policy, a table ``{state: action}``, or a function ``(state, spent) -> action``.
    episodes : int
        How many runs.
    seed : int
        Where the random numbers start; the same seed gives the same runs, whatever the number of threads.
    threads : int, optional
        How many threads; all cores by default.
    paths : int
        How many runs to return step by step.
    max_steps : int
        The most actions of one run; a run that takes more is an error.

    Examples
    --------
    >>> import prudent
    >>> model = prudent.domains.betting_game()
    >>> plan = prudent.solve(model, alpha=0.2)
    >>> runs = prudent.simulate(model, plan.policy, episodes=20_000, seed=0)
    >>> abs(runs.mean - plan.expected) < 4 * runs.mean_se
    True
    """
    for name, value, least in (
        ("episodes", episodes, 1),
        ("seed", seed, 0),
        ("paths", paths, 0),
        ("max_steps", max_steps, 1),
    ):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise PrudentError(f"{name} is {value!r}; it must be a whole number, at least {least}")
    if isinstance(policy, BudgetPolicy):
        policy.check_model(model)
        return _simulate_table(policy, episodes, seed, threads, paths, max_steps)
    if isinstance(policy, Mapping):
        chain = prepare(restricted(model, policy))
        alone = BudgetPolicy.of_states(chain, chain.action_start[:-1])
        return _simulate_table(alone, episodes, seed, threads, paths, max_steps)
    if callable(policy):
        return _simulate_function(model, policy, episodes, seed, paths, max_steps)
    raise PrudentError(
        f"policy is a {type(policy).__name__}; pass plan.policy, a table {{state: action}} or a function (state, spent)"
    )


def _endless(model: SSP, max_steps: int) -> PrudentError:
    return PrudentError(f"a run of {model.name} took more than {max_steps:,} actions; raise max_steps= to let it")


def _simulate_table(
    policy: BudgetPolicy, episodes: int, seed: int, threads: int | None, paths: int, max_steps: int
) -> Runs:
    prepared, model = policy.prepared, policy.prepared.model
    steps = np.rint(model.cost / prepared.lattice.step).astype(np.int64)
    luck, table = prepared.luck - prepared.start_luck, policy.model_actions
    arrays = (
        model.outcome_start,
        model.probability,
        model.successor,
        steps,
        model.initial_state,
        model.initial_probability,
    )
    total = np.empty(episodes, dtype=np.int64)
    streams = np.random.SeedSequence(seed).spawn(-(-episodes // CHUNK))

    def run(chunk: int) -> bool:
        out = total[chunk * CHUNK : (chunk + 1) * CHUNK]
        rng = np.random.Generator(np.random.PCG64(streams[chunk]))
        return bool(run_episodes(rng, *arrays, luck, policy.level, prepared.stride, table, max_steps, out))

    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        if not all(pool.map(run, range(len(streams)))):
            raise _endless(model, max_steps)

    def replayed() -> Iterator[Path]:
        """Yield the runs again, step by step, from the same random numbers."""
        for i in range(min(paths, episodes)):
            if i % CHUNK == 0:
                rng = np.random.Generator(np.random.PCG64(streams[i // CHUNK]))
            s = int(model.initial_state[draw(rng.random(), 0, len(model.initial_state), model.initial_probability)])
            spent, path = 0, []
            while (a := int(table[max(policy.level - (spent + luck[s]) // prepared.stride, 0), s])) >= 0:
                o = draw(rng.random(), model.outcome_start[a], model.outcome_start[a + 1], model.probability)
                path.append((model.state(s), model.action(a), float(model.cost[o])))
                spent, s = spent + int(steps[o]), int(model.successor[o])
            yield tuple(path)

    return Runs(prepared.lattice.value(total), seed, tuple(replayed()))


def _simulate_function(
    model: SSP, policy: Callable[[Any, float], Hashable], episodes: int, seed: int, paths: int, max_steps: int
) -> Runs:
    """Advance all runs together, one action at a time; the function is asked once for each state and cost so far."""
    found = find_lattice(model.cost)
    gain: NDArray[Any] = model.cost if found is None else found[1]
    spent = np.zeros(episodes, dtype=gain.dtype)
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))
    state = rng.choice(model.initial_state, size=episodes, p=model.initial_probability)
    known: dict[tuple[int, float], int] = {}

    def in_units(amount: Any) -> Any:
        return amount if found is None else found[0].value(amount)

    def ask(s: int, amount: float) -> int:
        if (s, amount) not in known:
            known[s, amount] = model.find_action(s, policy(model.state(s), float(in_units(amount))))
        return known[s, amount]

    trace: list[list[tuple[Hashable, Hashable, float]]] = [[] for _ in range(min(paths, episodes))]
    active = np.flatnonzero(~model.is_goal[state])
    for _ in range(max_steps):
        if len(active) == 0:
            break
        pairs = np.rec.fromarrays([state[active], spent[active]])
        unique, which = np.unique(pairs, return_inverse=True)
        action = np.array([ask(int(s), amount.item()) for s, amount in unique])[which]
        outcome = np.empty(len(active), dtype=np.int64)
        draw_each(
            rng.random(len(active)),
            model.outcome_start[action],
            model.outcome_start[action + 1],
            model.probability,
            outcome,
        )
        for i in np.flatnonzero(active < len(trace)):
            step = (model.state(state[active[i]]), model.action(int(action[i])), float(model.cost[outcome[i]]))
            trace[active[i]].append(step)
        spent[active] += gain[outcome]
        state[active] = model.successor[outcome]
        active = active[~model.is_goal[state[active]]]
    if len(active):
        raise _endless(model, max_steps)
    return Runs(np.asarray(in_units(spent), dtype=np.float64), seed, tuple(map(tuple, trace)))
