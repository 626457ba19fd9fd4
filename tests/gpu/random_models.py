"""Random models of every kind, by number: cyclic or not, free moves, negative costs, odd steps, real costs, ties."""

import numpy as np

import prudent


def random_model(number: int) -> prudent.SSP:
    """Return a model; its kind follows from the number."""
    rng = np.random.default_rng(number)
    acyclic, free, negative, tied = (bool(number >> bit & 1) for bit in range(4))
    real = number % 7 == 3
    step = 1.0 if real else float(rng.choice([1.0, 0.5, 0.01, 1 / 3, 7.0]))
    n = int(rng.integers(2, 40))
    height = rng.integers(-3, 4, size=n + 1) if negative else np.zeros(n + 1, dtype=int)
    table = {n: {}}
    for s in range(n):
        table[s] = {}
        for a in range(int(rng.integers(1, 12 if number % 5 == 0 else 4))):
            count = int(rng.integers(1, 6))
            low = s + 1 if acyclic else 0
            to = rng.integers(low, n + 1, size=count)
            to[0] = n if rng.random() < 0.5 and not acyclic else to[0]
            most = 300 if number % 11 == 0 else 5
            cost = rng.choice([0, 0, 0, 1, 2], size=count) if free else rng.integers(1, most, size=count)
            cost = cost + (height[to] - height[s]) * (1 if negative else 0)
            p = np.full(count, 1 / count) if tied else rng.dirichlet(np.ones(count))
            extra = rng.random(count) * 0.3 if real else np.zeros(count)
            table[s][a] = [(p[i], int(to[i]), float((cost[i] + extra[i]) * step)) for i in range(count)]
    start = {0: 0.25, min(1, n - 1): 0.75} if number % 3 == 0 and n > 1 else 0
    return prudent.build(start, table.__getitem__)
