"""Models with cycles of any size: walks that mix slowly, and models whose states are all close to each other."""

import numpy as np

import prudent

ACTIONS, OUTCOMES = 2, 3


def walk(n: int, reach: int = 100, *, seed: int = 0, whole: bool = True) -> prudent.SSP:
    """Return a random walk on a line, whose steps go up to ``reach`` states back or ahead; the goal is beyond its end.

    It mixes slowly: values travel no further in a step than a run does.
    """
    rng = np.random.default_rng(seed)
    hop = rng.integers(-reach, reach + 1, size=(n, ACTIONS, OUTCOMES))
    return _model(f"walk-{n}", np.clip(np.arange(n)[:, None, None] + hop, 0, n), rng, whole=whole)


def spread(n: int, ends: int = 20, *, seed: int = 0, whole: bool = True) -> prudent.SSP:
    """Return a model whose outcomes lead anywhere; ``ends`` in a thousand of the states can end the run."""
    rng = np.random.default_rng(seed)
    successor = rng.integers(0, n, size=(n, ACTIONS, OUTCOMES))
    successor[rng.integers(0, n, size=max(n * ends // 1000, 1)), :, 0] = n
    return _model(f"spread-{n}", successor, rng, whole=whole)


def _model(name: str, successor: np.ndarray, rng: np.random.Generator, *, whole: bool) -> prudent.SSP:
    """Return the model with random probabilities and costs up to 999; the goal is the last state."""
    n, size = len(successor), successor.shape
    cost = rng.integers(1, 1000, size=size).astype(float) if whole else rng.uniform(0, 999, size=size)
    return prudent.from_arrays(
        np.minimum(np.arange(n + 2) * ACTIONS, n * ACTIONS),
        np.arange(n * ACTIONS + 1) * OUTCOMES,
        rng.dirichlet(np.ones(OUTCOMES), size=(n, ACTIONS)).ravel(),
        successor.ravel(),
        cost.ravel(),
        name=name,
    )
