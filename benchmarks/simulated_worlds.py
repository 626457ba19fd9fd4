"""Simulated worlds: whether the promise of a plan made from a log holds in the world that the log came from.

Random worlds, each with a log of runs under random actions.  From the log two plans are made: one for the estimates,
one for the set of models that fits the log with 95 % confidence.  The table shows, by the length of the log, in which
share of worlds the true CVaR of each plan is at most what was promised, by how much broken promises are exceeded on
average, and what robustness costs in true CVaR and expected cost.  The possible outcomes are known (``possible=``);
"log alone" is for robust plans that know only the outcomes seen; there, a run in which the plan has no action breaks
the promise, too.

    python benchmarks/simulated_worlds.py [--worlds 200] [--runs 100,1000,10000]
"""

import argparse
from contextlib import suppress

import numpy as np

import prudent

ALPHA, CONFIDENCE = 0.1, 0.95


def world(rng: np.random.Generator, stages: int = 3, width: int = 2) -> prudent.SSP:
    """Return a random world of a few stages: two actions in each state, three outcomes each."""
    table = {
        (stage, place): {
            action: [
                (p, (stage + 1, int(rng.integers(width))), int(cost))
                for p, cost in zip(rng.dirichlet([4, 2, 0.7]), rng.choice(12, 3, replace=False), strict=True)
            ]
            for action in ("a", "b")
        }
        for stage in range(stages)
        for place in range(width)
    }
    return prudent.build((0, 0), lambda state: table.get(state, {}), name="world")


def counts(model: prudent.SSP, rng: np.random.Generator, runs: int) -> list[dict[str, object]]:
    """Return the log of runs under random actions, as rows with counts."""
    seen = np.zeros(model.n_outcomes)
    here = {int(model.initial_state[0]): runs}
    while here:
        after: dict[int, int] = {}
        for s, n in here.items():
            first, last = int(model.action_start[s]), int(model.action_start[s + 1])
            each = rng.multinomial(n, np.ones(last - first) / max(last - first, 1))
            for a, times in zip(range(first, last), each, strict=True):
                rows = slice(model.outcome_start[a], model.outcome_start[a + 1])
                drawn = rng.multinomial(times, model.probability[rows])
                seen[rows] += drawn
                for t, many in zip(model.successor[rows].tolist(), drawn.tolist(), strict=True):
                    after[t] = after.get(t, 0) + many
        here = {s: n for s, n in after.items() if n and not model.is_goal[s]}
    columns = {
        "state": [model.state(s) for s in model.outcome_state.tolist()],
        "action": [model.action(a) for a in model.outcome_action.tolist()],
        "next_state": [model.state(s) for s in model.successor.tolist()],
        "cost": model.cost.tolist(),
        "n": seen.tolist(),
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def promises(runs: int, worlds: int) -> np.ndarray:
    """Return promised CVaR, true CVaR and true expected cost: of the nominal plan, then of the robust one."""
    found = []
    for i in range(worlds):
        rng = np.random.default_rng([runs, i])
        true = world(rng)
        data = prudent.from_episodes(counts(true, rng, runs), count="n", initial=(0, 0), possible=true)
        row = []
        for options in ({}, {"uncertainty": data.intervals(CONFIDENCE)}):
            plan = prudent.solve(data.model, ALPHA, **options)
            own = prudent.evaluate(true, plan.policy.__call__)
            row += [plan.upper, own.cvar(ALPHA), own.mean]
        found.append(row)
    return np.array(found).T


def held_alone(runs: int, worlds: int) -> float:
    """Return the share of worlds in which the robust plan's promise holds if only what was seen is in its model."""
    held = 0
    for i in range(worlds):
        rng = np.random.default_rng([runs, i])
        true = world(rng)
        seen = [row for row in counts(true, rng, runs) if row["n"]]
        data = prudent.from_episodes(seen, count="n", initial=(0, 0))
        plan = prudent.solve(data.model, ALPHA, uncertainty=data.intervals(CONFIDENCE))
        with suppress(prudent.PrudentError):  # it has no action for what it has never seen
            held += prudent.evaluate(true, plan.policy.__call__).cvar(ALPHA) <= plan.upper + 1e-9
    return held / worlds


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--worlds", type=int, default=200)
    parser.add_argument("--runs", default="100,300,1000,3000,10000")
    asked = parser.parse_args()
    print(
        "runs      promise holds                 broken by (mean)   true CVaR          true expected cost upper / true"
    )
    print("        nominal  robust  log alone    nominal            nominal  robust    nominal  robust    robust")
    for runs in map(int, asked.runs.split(",")):
        promised, cvar, mean, upper, robust_cvar, robust_mean = promises(runs, asked.worlds)
        broken = np.maximum(cvar - promised, 0)
        by = broken[broken > 1e-9].mean() if (broken > 1e-9).any() else 0.0
        above = np.mean(upper / robust_cvar)
        held, robustly = (cvar <= promised + 1e-9).mean(), (robust_cvar <= upper + 1e-9).mean()
        print(
            f"{runs:<7} {held:7.0%}  {robustly:6.0%}  {held_alone(runs, asked.worlds):9.0%}    {by:7.2f}"
            f"            {cvar.mean():7.2f}  {robust_cvar.mean():6.2f}"
            f"    {mean.mean():7.2f}  {robust_mean.mean():6.2f}    {above:6.2f}"
        )


if __name__ == "__main__":
    main()
