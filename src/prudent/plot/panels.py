"""Figures with several panels: histograms of several methods, and the trade-off that each method makes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prudent.plot import canvas
from prudent.plot.tails import distribution
from prudent.results.runs import Runs

MARKS = (("o", canvas.ORANGE, 7.0), ("s", canvas.BLUE, 11.0), ("D", canvas.GREEN, 8.5), ("*", canvas.BLACK, 11.0))
"""How methods are marked, in their order, and how large: where several agree, each is seen."""


@dataclass(frozen=True)
class TradeOff:
    """One panel: expected cost and CVaR of several methods, as computed here and as published."""

    title: str
    here: Mapping[str, tuple[float, float]]  # expected cost and CVaR by method
    published: Mapping[str, tuple[float, float]]
    optimal: float  # no plan has a lower CVaR


def histograms(runs: Mapping[str, Runs], alpha: float, *, bins: Sequence[float], mark: float | None = None) -> Any:
    """Return a figure with a histogram for each method, one above the other, on the same axes.

    ``mark`` is a cost at which a dashed line is drawn.
    """
    figure = canvas.part("figure").Figure(figsize=(4.7, 1.55 * len(runs) + 0.4), layout="constrained")
    axes = figure.subplots(len(runs), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    tops = []
    for axis, (method, each) in zip(axes, runs.items(), strict=True):
        distribution(each, alpha=alpha, bins=bins, ax=axis)
        tops.append(axis.get_ylim()[1])
        if mark is not None:
            axis.axvline(mark, color=canvas.INK, linewidth=1.2, linestyle="--")
        axis.get_legend().set_title(method, {"size": 9, "weight": "bold"})
        axis.set_ylabel("share of runs", fontsize=8.5)
        axis.tick_params(labelsize=8.5)
        axis.label_outer()
    axes[0].set_ylim(0, max(tops))
    return figure


def trade_offs(panels: Sequence[TradeOff], columns: int) -> Any:
    """Return a figure with a panel for each problem: CVaR against expected cost, a mark for each method.

    Filled marks are computed here, rings are published; no plan lies in the shaded part.
    """
    rows = -(-len(panels) // columns)
    figure = canvas.part("figure").Figure(
        figsize=((2.4 if columns > 2 else 2.1) * columns, 2.2 * rows + 0.5), layout="constrained"
    )
    axes = figure.subplots(rows, columns, squeeze=False)
    for i, axis in enumerate(axes.ravel()):
        if i < len(panels):
            _draw_trade_off(axis, panels[i])
            axis.set_xlabel("expected cost" if i >= len(panels) - columns else "", fontsize=8.5)
            axis.set_ylabel("CVaR" if i % columns == 0 else "", fontsize=8.5)
        else:
            axis.set_axis_off()
    Line, Patch = canvas.part("lines").Line2D, canvas.part("patches").Patch
    look: dict[str, Any] = {"linestyle": "none", "markeredgecolor": canvas.PAPER, "markeredgewidth": 0.6}
    handles = [
        Line([], [], marker=marker, color=colour, markersize=size, label=method, **look)
        for method, (marker, colour, size) in zip(panels[0].here, MARKS, strict=False)
    ]
    if any(panel.published for panel in panels):
        ring = {"linestyle": "none", "markerfacecolor": "none", "markeredgecolor": canvas.INK, "markersize": 9}
        handles.append(Line([], [], marker="o", label="ring: the paper", **ring))
    handles.append(Patch(facecolor=canvas.PALE, edgecolor=canvas.FAINT, label="no plan can be here"))
    figure.legend(
        handles=handles, loc="outside upper left", ncols=len(handles) if columns > 3 else 2, frameon=False,
        fontsize=8.5, handletextpad=0.4, columnspacing=1.2,
    )  # fmt: skip
    return figure


def _draw_trade_off(axis: Any, panel: TradeOff) -> None:
    every = [*panel.here.values(), *panel.published.values()]
    (left, right), (low, high) = ((min(v), max(v)) for v in zip(*every, strict=True))
    wide, tall = max(right - left, 1e-3 * abs(right), 1e-9), max(high - panel.optimal, 1e-3 * abs(high), 1e-9)
    axis.set(xlim=(left - 0.15 * wide, right + 0.15 * wide))
    axis.set(ylim=(min(panel.optimal, low) - 0.22 * tall, high + 0.15 * tall))
    axis.axhspan(axis.get_ylim()[0], panel.optimal, facecolor=canvas.PALE, zorder=0)
    axis.axhline(panel.optimal, color=canvas.FAINT, linewidth=1, zorder=1)
    for order, (method, (marker, colour, size)) in enumerate(zip(panel.here, MARKS, strict=False)):
        look: dict[str, Any] = {"linestyle": "none", "zorder": 4 + order, "clip_on": False}
        axis.plot(*panel.here[method], marker, color=colour, markersize=size, markeredgecolor=canvas.PAPER, **look)
        if method in panel.published:
            ring = {"markerfacecolor": "none", "markeredgecolor": colour, "markersize": 14, "markeredgewidth": 1.2}
            axis.plot(*panel.published[method], marker="o", **ring, **(look | {"zorder": 3}))
    axis.set_title(panel.title, fontsize=9, loc="left")
    axis.tick_params(labelsize=8)
    axis.locator_params(nbins=3)
    axis.spines[["top", "right"]].set_visible(False)
