"""What a limit on CVaR takes, in units of a plain solve.

    python benchmarks/what_limits_take.py [MODELS [ROUNDS]]

For each kind of limit the processor time on random models of up to 8 states with prices in cents, relative to the plain
solves of the same models; then of all kinds together.  In each round every model is solved once in each way, one way
after the other.  The median of the rounds counts, after one that warms up.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from time import process_time

import numpy as np

import prudent
from timing import Spread

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from cents import in_cents, limits_on

MOST_STATES = 8
AIM = 3.0

Ways = dict[str, Callable[[], prudent.Plan]]


def ways(seed: int) -> Ways:
    """Return a plain solve of one random model, and one within a limit of each kind."""
    rng = np.random.default_rng([seed, 1])
    model, alpha = in_cents(seed, MOST_STATES), float(rng.choice([0.3, 0.1, 0.02]))
    plan = prudent.solve(model, alpha)
    found: Ways = {"plain": lambda: prudent.solve(model, alpha, threads=1)}
    for limit, _ in limits_on(model, plan, rng):
        found[", ".join(limit)] = lambda limit=limit: prudent.solve(model, alpha, threads=1, **limit)
    return found


def measured(models: int, rounds: int) -> dict[str, Spread]:
    """Return the seconds that each way takes for all models together, in each round."""
    every = [ways(seed) for seed in range(100, 100 + models)]
    seconds = np.zeros((rounds + 1, len(every[0])))
    for here in seconds:
        for model in every:
            for way, ask in enumerate(model.values()):
                began = process_time()
                ask()
                here[way] += process_time() - began
    return {way: Spread(tuple(seconds[1:, i].tolist())) for i, way in enumerate(every[0])}


def main(models: int = 100, rounds: int = 5) -> None:
    """Print the table."""
    found = measured(models, rounds)
    plain = found.pop("plain")
    together = Spread(tuple(np.mean([each.values for each in found.values()], axis=0).tolist()))
    print(f"{models} models, {rounds} rounds; plain solves: {plain.median:.2f} s")
    for way, spread in (*found.items(), ("all kinds", together)):
        ratio = spread.over(plain)
        print(f"{way:<18} {ratio.median:.2f} plain solves ({ratio.low:.2f} to {ratio.high:.2f}); aim: {AIM:g}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
