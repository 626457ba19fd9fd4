"""The fan of tails of a plan on models drawn from what the counts allow."""

from typing import Any

import numpy as np

from prudent.errors import PrudentError
from prudent.plot.canvas import BODY, INK, TAIL, Axes, axes_for
from prudent.results.stress import QUANTILES, Stress
from prudent.runtime.tables import worst

__all__ = ["stress"]


def stress(result: Stress, *, ax: "Axes | None" = None) -> "Axes":
    """Draw the chance of exceeding each total cost, over the models drawn: the middle half, and nine tenths.

    Parameters
    ----------
    result : Stress
        What :func:`prudent.stress` returned.
    ax : Axes, optional
        Where to draw.

    Examples
    --------
    >>> import prudent
    >>> row = {"state": "s", "action": "a", "next_state": "g"}
    >>> data = prudent.from_episodes([{**row, "cost": 1, "n": 9}, {**row, "cost": 5, "n": 1}], count="n", initial="s")
    >>> ax = prudent.plot.stress(prudent.stress(prudent.solve(data.model, alpha=0.2), data, samples=50))
    >>> ax.get_ylabel()
    'chance of a higher cost'
    """
    if not isinstance(result, Stress):
        raise PrudentError(f"result is a {type(result).__name__}; draw what prudent.stress returns")
    ax = axes_for(ax)
    low, lower, middle, upper, high = np.quantile(result.exceeds, QUANTILES, axis=0)
    for least, most, opaque, name in (
        (low, high, 0.35, "nine tenths of the models"),
        (lower, upper, 0.7, "half of them"),
    ):
        how: dict[str, Any] = {"color": BODY, "alpha": opaque, "linewidth": 0, "step": "post"}
        ax.fill_between(result.levels, least, most, label=name, **how)
    ax.plot(result.levels, middle, color=INK, drawstyle="steps-post", label="the model in the middle")
    ax.axhline(result.alpha, color=TAIL, linestyle="--", linewidth=1, label=worst(result.alpha))
    ax.set(xlabel="total cost", ylabel="chance of a higher cost", ylim=(0, None))
    ax.margins(x=0)
    ax.legend(frameon=False)
    return ax
