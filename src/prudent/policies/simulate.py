"""Simulated runs: a cross-check of the exact numbers, with standard errors."""

from collections.abc import Callable, Hashable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.engine.cost_step import find_lattice
from prudent.engine.prepare import prepare
from prudent.errors import PrudentError, whole_number
from prudent.kernels.episodes import draw, draw_each, run_episodes
from prudent.models.ssp import SSP
from prudent.policies.evaluate import Policy, check_model_and_policy, restricted
from prudent.policies.policy import BudgetPolicy, Walk
from prudent.policies.runs import Path, Runs
from prudent.runtime.limits import Limits, cores, go_on
from prudent.runtime.progress import Progress

__all__ = ["simulate"]

SIMULATING = "simulating runs"

CHUNK = 1024
"""Episodes that share one stream of random numbers; fixed, so that the number of threads changes nothing."""


def simulate(
    model: SSP,
    policy: Policy,
    *,
    episodes: int = 20_000,
    seed: int = 0,
    threads: int | None = None,
    paths: int = 0,
    max_steps: int = 1_000_000,
    time_limit: float | None = None,
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
    time_limit : float, optional
        Seconds, about, after which it is an error that not all runs are finished.

    Examples
    --------
    >>> import prudent
    >>> model = prudent.domains.betting_game()
    >>> plan = prudent.solve(model, alpha=0.2)
    >>> runs = prudent.simulate(model, plan.policy, episodes=20_000, seed=0)
    >>> abs(runs.mean - plan.expected) <= 4 * runs.mean_se
    True
    """
    for name, value, least in (
        ("episodes", episodes, 1),
        ("seed", seed, 0),
        ("paths", paths, 0),
        ("max_steps", max_steps, 1),
        ("threads", 1 if threads is None else threads, 1),
    ):
        whole_number(name, value, least)
    check_model_and_policy(model, policy)
    limits = Limits.of(None, time_limit)
    if isinstance(policy, BudgetPolicy) and len(policy.parts) > 1:
        return _simulate_drawn(policy, episodes, seed, threads, paths, max_steps, limits)
    if isinstance(policy, BudgetPolicy):
        return _simulate_table(policy, episodes, seed, threads, paths, max_steps, limits)
    if isinstance(policy, Mapping):
        alone = restricted(model, policy)
        if find_lattice(alone.cost) is None:
            return _simulate_function(model, lambda state, _: policy[state], episodes, seed, paths, max_steps, limits)
        chain = prepare(alone)
        by_state = BudgetPolicy.of_states(chain, chain.action_start[:-1])
        return _simulate_table(by_state, episodes, seed, threads, paths, max_steps, limits)
    return _simulate_function(model, policy, episodes, seed, paths, max_steps, limits)


def _simulate_drawn(
    policy: BudgetPolicy, episodes: int, seed: int, threads: int | None, paths: int, max_steps: int, limits: Limits
) -> Runs:
    """Draw a policy for each run, then simulate all runs of each policy."""
    drawn = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, 0]))).random(episodes)
    second = drawn >= policy.parts[0][0]
    costs, shown = np.empty(episodes), list[Path]([()] * min(paths, episodes))
    for turn, (_, part) in enumerate(policy.parts):
        which = np.flatnonzero(second == bool(turn))
        if len(which) == 0:
            continue
        own = int(np.random.SeedSequence([seed, 1 + turn]).generate_state(1, np.uint64)[0])
        runs = _simulate_table(part, len(which), own, threads, min(paths, len(which)), max_steps, limits)
        costs[which] = runs.costs
        for i, path in zip(which.tolist(), runs.paths, strict=False):
            if i < len(shown):
                shown[i] = path
    return Runs(costs, seed, tuple(shown))


def _endless(model: SSP, max_steps: int) -> PrudentError:
    return PrudentError(f"a run of {model.name} took more than {max_steps:,} actions; raise max_steps= to let it")


def _simulate_table(
    policy: BudgetPolicy, episodes: int, seed: int, threads: int | None, paths: int, max_steps: int, limits: Limits
) -> Runs:
    walk = policy.walk()
    total, paid = np.empty(episodes, dtype=np.int64), np.empty(episodes)
    streams = np.random.SeedSequence(seed).spawn(-(-episodes // CHUNK))

    def run(chunk: int) -> bool | None:
        if limits.stop:
            return None
        part = slice(chunk * CHUNK, (chunk + 1) * CHUNK)
        rng = np.random.Generator(np.random.PCG64(streams[chunk]))
        return bool(run_episodes(rng, *walk.arrays(), max_steps, total[part], paid[part]))  # type: ignore[call-arg]

    with ThreadPoolExecutor(threads or cores()) as pool, Progress(SIMULATING, total=episodes, unit="runs") as progress:
        for chunk, ended in enumerate(pool.map(run, range(len(streams)))):
            if ended is None:
                go_on(limits, SIMULATING)
            if not ended:
                raise _endless(policy.prepared.model, max_steps)
            progress.at(chunk * CHUNK)
    shown = tuple(policy.named(steps) for steps in _replayed(walk, streams, min(paths, episodes)))
    return Runs(policy.walked(total, paid), seed, shown)


def _replayed(walk: Walk, streams: list[np.random.SeedSequence], n: int) -> Iterator[list[tuple[int, int, int]]]:
    """Repeat the first runs with the same random numbers; yield each as a list of (state, action, outcome)."""
    for i in range(n):
        if i % CHUNK == 0:
            rng = np.random.Generator(np.random.PCG64(streams[i // CHUNK]))
        first = draw(rng.random(), 0, len(walk.first_state), walk.first_probability)
        s, charged, steps = int(walk.first_state[first]), int(walk.first_charge[first]), []
        while walk.offset[s] >= 0:
            a = int(walk.offset[s]) + walk.choices.at(s, walk.level - charged)
            o = draw(rng.random(), walk.begin[a], walk.end[a], walk.probability)
            steps.append((s, int(walk.action[a]), o))
            charged, s = charged + int(walk.charge[o]), int(walk.successor[o])
        yield steps


def _simulate_function(
    model: SSP,
    policy: Callable[[Any, float], Hashable],
    episodes: int,
    seed: int,
    paths: int,
    max_steps: int,
    limits: Limits,
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
        go_on(limits, SIMULATING)
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
