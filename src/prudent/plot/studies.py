"""Many plans and many models: results against a parameter, and the tails of a plan on models that fit the counts."""

from typing import Any

import numpy as np

from prudent.errors import PrudentError
from prudent.plot.canvas import (
    BODY,
    INK,
    NAMED,
    STYLES,
    TAIL,
    Axes,
    axes_for,
    check_kind,
    hues,
    in_order,
    name_of,
    quiet,
)
from prudent.results.policy_map import is_number
from prudent.results.stress import QUANTILES, Stress
from prudent.results.study import FIELDS, Study
from prudent.runtime.tables import worst

SHOWN = {
    "cvar": "CVaR",
    "var": "VaR",
    "expected": "expected cost",
    "seconds": "seconds",
    "worst_case": "minimal worst-case cost",
}
"""What numbers are called in pictures."""


def study(study: Study, *, x: str | None = None, y: str = "cvar", ax: "Axes | None" = None) -> "Axes":
    """Draw a result of each plan against a parameter or alpha, with a line for each combination of the others.

    Rows that failed are left out.

    Parameters
    ----------
    study : Study
        What :func:`prudent.study` returned.
    x : str, optional
        A parameter, or ``"alpha"``; by default the first of them that has several values.
    y : str
        The result to draw: ``"cvar"``, ``"var"``, ``"expected"``, ``"seconds"`` and others.
    ax : Axes, optional
        The axes to draw on; by default new ones.

    Examples
    --------
    >>> import prudent
    >>> study = prudent.study("betting-game", {"stages": [2, 4, 6]}, alphas=[0.1, 0.5], workers=1)
    >>> ax = prudent.plot.study(study)
    >>> ax.get_xlabel(), [line.get_label() for line in ax.get_lines()]
    ('stages', ['alpha 0.1', 'alpha 0.5'])
    """
    check_kind("study", study, Study, "study")
    names = (*study.parameters, "alpha")
    if x is None:
        x = next((name for name in names if len(study.values(name)) > 1), names[0])
    if x not in names:
        raise PrudentError(f"x is {x!r}; it must be one of {', '.join(names)}")
    if FIELDS.get(y) not in ("number", "count") or y == "alpha":
        numbers = [name for name, kind in FIELDS.items() if kind in ("number", "count") and name != "alpha"]
        raise PrudentError(f"y is {y!r}; it must be one of {', '.join(numbers)}")
    others = [name for name in names if name != x and len(study.values(name)) > 1]
    lines: dict[tuple[Any, ...], list[tuple[Any, Any]]] = {}
    for row in study.rows:
        if row["error"] is None:
            lines.setdefault(tuple(row[name] for name in others), []).append((row[x], row[y]))
    ax = axes_for(ax)
    _draw_lines(ax, lines, others, in_order(study.values(x)))
    ax.set(xlabel=name_of(x), ylabel=SHOWN.get(y, y))
    quiet(ax)
    if others and 0 < len(lines) <= NAMED:
        ax.legend(loc="best", frameon=False, fontsize=9, handlelength=3)
    return ax


def _draw_lines(ax: "Axes", lines: dict[tuple[Any, ...], list[tuple[Any, Any]]], others: list[str], at: Any) -> None:
    """Draw each line, over numbers where they are, over names where not all values are numbers."""
    numbers = all(is_number(value) for value in at)
    place = {value: value if numbers else i for i, value in enumerate(at)}
    for i, ((key, points), colour) in enumerate(zip(lines.items(), hues(len(lines)), strict=True)):
        label = ", ".join(f"{name} {name_of(value)}" for name, value in zip(others, key, strict=True))
        where = sorted((place[value], number) for value, number in points)
        ax.plot(*zip(*where, strict=True), "o", linestyle=STYLES[i % len(STYLES)], color=colour, label=label)
    if not numbers:
        ax.set_xticks(range(len(at)), [name_of(value) for value in at])


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
    check_kind("result", result, Stress, "stress")
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
