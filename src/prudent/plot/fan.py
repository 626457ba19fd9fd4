"""The tails of a plan, as a fan, on models sampled from the posterior of the counts."""

from typing import Any

import numpy as np

from prudent.errors import PrudentError
from prudent.plot.canvas import BODY, INK, TAIL, Axes, axes_for
from prudent.results.stress import QUANTILES, Stress
from prudent.runtime.tables import worst

__all__ = ["stress"]


def stress(result: Stress, *, ax: "Axes | None" = None) -> "Axes":
    """Draw the probability of exceeding each total cost over the sampled models: median, middle 50% and 90%.

    Parameters
    ----------
    result : Stress
        What :func:`prudent.stress` returned.
    ax : Axes, optional
        The axes to draw on; by default new ones.

    Examples
    --------
    >>> import prudent
    >>> row = {"state": "s", "action": "a", "next_state": "g"}
    >>> data = prudent.from_episodes([{**row, "cost": 1, "n": 9}, {**row, "cost": 5, "n": 1}], count="n", initial="s")
    >>> ax = prudent.plot.stress(prudent.stress(prudent.solve(data.model, alpha=0.2), data, samples=50))
    >>> ax.get_ylabel()
    'probability of a higher cost'
    """
    if not isinstance(result, Stress):
        raise PrudentError(f"result is a {type(result).__name__}; give what prudent.stress returned")
    ax = axes_for(ax)
    low, lower, middle, upper, high = np.quantile(result.exceeds, QUANTILES, axis=0)
    for least, most, opaque, name in (
        (low, high, 0.35, "90% of the models"),
        (lower, upper, 0.7, "50% of the models"),
    ):
        how: dict[str, Any] = {"color": BODY, "alpha": opaque, "linewidth": 0, "step": "post"}
        ax.fill_between(result.levels, least, most, label=name, **how)
    ax.plot(result.levels, middle, color=INK, drawstyle="steps-post", label="median of the models")
    ax.axhline(result.alpha, color=TAIL, linestyle="--", linewidth=1, label=worst(result.alpha))
    ax.set(xlabel="total cost", ylabel="probability of a higher cost", ylim=(0, None))
    ax.margins(x=0)
    ax.legend(frameon=False)
    return ax
